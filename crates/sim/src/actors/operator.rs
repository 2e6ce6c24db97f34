//! Somebody who looks at the jobs now and then and ships, approves, requeues or cancels some of them.

use std::sync::Arc;

use giga_coordinator::{Coordinator, Error};
use giga_domain::topic::TopicKey;
use giga_domain::{Actor, Delivery, FactoryId, FactoryState, Job, OperatorAction, Stage, Verdict};
use giga_ports::store::JobFilter;

use super::{nap, topics};
use crate::prng::Prng;
use crate::world::World;

#[derive(Debug)]
pub(crate) struct Operator {
    pub world: Arc<World>,
    pub prng: Prng,
}

enum Wish {
    Do(OperatorAction),
    Say(Verdict),
}

impl Operator {
    pub(crate) async fn run(mut self) {
        // A call that was given up may still close something later, so what was closed is opened several times.
        let mut times_to_open = 0;
        loop {
            let (low, high) = if self.world.is_stormy() { (200, 900) } else { (50, 200) };
            nap(&mut self.prng, low, high).await;
            let rates = self.world.rates();
            if self.prng.chance(rates.switched) {
                self.switch().await;
            }
            if self.prng.chance(rates.switched) {
                self.close_something().await;
                times_to_open = 5;
            }
            let in_time = !self.world.is_stormy() || self.prng.chance(150);
            if times_to_open > 0 && in_time && self.open_everything().await && !self.world.is_stormy() {
                times_to_open -= 1;
            }
            self.look_after_some_job().await;
        }
    }

    async fn look_after_some_job(&mut self) {
        let stages = vec![Stage::Review, Stage::Testing, Stage::Failed];
        let stages = if self.prng.chance(200) { Vec::new() } else { stages };
        let filter = JobFilter { stages, ..JobFilter::default() };
        let look = self
            .world
            .call(&mut self.prng, |one| async move {
                one.reads().list_jobs(&filter, None, 50).await.map_err(Error::from)
            })
            .await;
        let Some(jobs) = look.ok().filter(|jobs| !jobs.is_empty()) else { return };
        let job = self.prng.pick(&jobs).clone();
        if let Some(wish) = self.wish(&job) {
            self.act(&job, wish).await;
        }
    }

    /// Drains a factory, or pauses a topic or all of them.
    async fn close_something(&mut self) {
        let actor = Actor::system("operator");
        if self.world.scenario.topic_jobs > 0 && self.prng.chance(500) {
            let some = self.prng.pick(&topics::topics()).clone();
            let key = self.prng.chance(600).then(|| TopicKey { product: topics::product(), topic: some });
            self.world.trace.note(|| format!("an operator pauses {key:?}"));
            let pause = |one: Arc<Coordinator>| async move { one.pause_topic(key, actor).await };
            let _ = self.world.call(&mut self.prng, pause).await;
        } else {
            let factory = self.prng.pick(&self.world.scenario.factories).id.clone();
            self.world.trace.note(|| format!("an operator drains {factory}"));
            let drain = |one: Arc<Coordinator>| async move {
                one.set_factory_state(factory, FactoryState::Draining, actor).await
            };
            let _ = self.world.call(&mut self.prng, drain).await;
        }
    }

    /// Whether it worked.
    async fn open_everything(&mut self) -> bool {
        let actor = Actor::system("operator");
        let factories: Vec<FactoryId> =
            self.world.scenario.factories.iter().map(|factory| factory.id.clone()).collect();
        let has_topics = self.world.scenario.topic_jobs > 0;
        let open = |one: Arc<Coordinator>| async move {
            for factory in factories {
                one.set_factory_state(factory, FactoryState::Active, actor.clone()).await?;
            }
            if has_topics {
                one.resume_topic(None, actor.clone()).await?;
                for topic in topics::topics() {
                    let key = TopicKey { product: topics::product(), topic };
                    one.resume_topic(Some(key), actor.clone()).await?;
                }
            }
            Ok(())
        };
        self.world.trace.note(|| "an operator opens everything".to_owned());
        self.world.call(&mut self.prng, open).await.is_ok()
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
