//! Somebody who looks at the jobs now and then and ships, approves, requeues or cancels some of them.

use std::sync::Arc;

use giga_coordinator::Error;
use giga_domain::{Actor, Delivery, Job, OperatorAction, Stage, Verdict};
use giga_ports::store::JobFilter;

use super::nap;
use crate::prng::Prng;
use crate::world::World;

#[derive(Debug)]
pub struct Operator {
    pub world: Arc<World>,
    pub prng: Prng,
}

enum Wish {
    Do(OperatorAction),
    Say(Verdict),
}

impl Operator {
    pub async fn run(mut self) {
        loop {
            nap(&mut self.prng, 200, 900).await;
            if self.prng.chance(self.world.rates().switched) {
                self.switch().await;
            }
            let stages = vec![Stage::Review, Stage::Testing, Stage::Failed];
            let stages = if self.prng.chance(200) { Vec::new() } else { stages };
            let filter = JobFilter { stages, ..JobFilter::default() };
            let look = self
                .world
                .call(&mut self.prng, |one| async move {
                    one.reads().list_jobs(&filter, None, 50).await.map_err(Error::from)
                })
                .await;
            let Some(jobs) = look.ok().filter(|jobs| !jobs.is_empty()) else { continue };
            let job = self.prng.pick(&jobs).clone();
            if let Some(wish) = self.wish(&job) {
                self.act(&job, wish).await;
            }
        }
    }

    /// Lets jobs reach some factory another way from here on.
    async fn switch(&mut self) {
        let factory = self.prng.pick(&self.world.scenario.factories).id.clone();
        let mode = *self.prng.pick(&Delivery::ALL);
        self.world.trace.note(|| format!("{factory} is to work by {mode}"));
        let actor = Actor::system("operator");
        let _ = self
            .world
            .call(&mut self.prng, |one| async move {
                one.set_flag(&format!("delivery.{factory}"), mode.as_str().into(), actor).await
            })
            .await;
    }

    fn wish(&mut self, job: &Job) -> Option<Wish> {
        let stormy = self.world.is_stormy();
        let verdict = self.prng.below(10);
        match job.stage() {
            Stage::Testing => Some(Wish::Do(OperatorAction::Ship)),
            Stage::Review if stormy && verdict == 0 => Some(Wish::Say(Verdict::RequestChanges)),
            Stage::Review if stormy && verdict == 1 => Some(Wish::Say(Verdict::Reject)),
            Stage::Review if stormy && verdict == 2 => Some(Wish::Do(OperatorAction::Requeue)),
            Stage::Review => Some(Wish::Say(Verdict::Approve)),
            Stage::Failed if stormy => Some(Wish::Do(OperatorAction::Requeue)),
            // Cancelling what is over must change nothing.
            _ if stormy && verdict < 4 => Some(Wish::Do(OperatorAction::Cancel)),
            _ => None,
        }
    }

    async fn act(&mut self, job: &Job, wish: Wish) {
        let actor = Actor::system("operator");
        let (id, rev) = (job.id, self.prng.chance(300).then_some(job.rev));
        let _ = self
            .world
            .call(&mut self.prng, |one| async move {
                match wish {
                    Wish::Do(action) => one.operate(id, action, None, rev, actor).await,
                    Wish::Say(verdict) => one.review(id, verdict, "ana".to_owned(), None, rev, actor).await,
                }
            })
            .await;
    }
}
