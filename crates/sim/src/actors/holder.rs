//! The work on one job: start, renew, checkpoint, and a last word. A zombie sleeps past its lease and then goes on as if
//! nothing had happened.

use std::sync::Arc;
use std::time::Duration;

use giga_domain::{Checkpoint, FactoryId, FailReason, Failure, Holder, HolderAction, Job, JobId, RunReport};

use super::nap;
use crate::prng::Prng;
use crate::world::{Trouble, World};

#[derive(Debug)]
pub(crate) struct Holding {
    world: Arc<World>,
    job: JobId,
    holder: Holder,
    prng: Prng,
}

impl Holding {
    pub(crate) fn new(world: Arc<World>, factory: FactoryId, job: &Job, prng: Prng) -> Self {
        Self { world, job: job.id, holder: Holder { factory, epoch: job.epoch }, prng }
    }

    pub(crate) async fn run(mut self) {
        self.sleep_like_a_zombie().await;
        if !self.say(vec![HolderAction::Start]).await {
            return;
        }
        let lease = self.world.scenario.lease.as_millis() as u64;
        for step in 0..self.prng.below(4) {
            nap(&mut self.prng, lease / 10, lease / 3).await;
            self.sleep_like_a_zombie().await;
            let going_on = if self.prng.chance(300) {
                let note = Some(format!("step {step} of epoch {}", self.holder.epoch));
                self.say(vec![HolderAction::Checkpoint(Checkpoint { note, ..Checkpoint::default() })]).await
            } else {
                self.renew().await
            };
            if !going_on {
                return;
            }
        }
        self.sleep_like_a_zombie().await;
        let last = self.last_word();
        self.say(vec![last]).await;
    }

    async fn sleep_like_a_zombie(&mut self) {
        if self.prng.chance(self.world.rates().zombie) {
            let lease = self.world.scenario.lease.as_millis() as u64;
            self.world.trace.note(|| format!("{} sleeps on {}", self.holder.factory, self.job));
            nap(&mut self.prng, lease, lease * 3).await;
        }
    }

    fn last_word(&mut self) -> HolderAction {
        let drawn = self.prng.below(100);
        let failed = |reason| Failure { reason, detail: None };
        match drawn {
            0..70 => HolderAction::Report(RunReport {
                branch: Some(format!("aq/job/{}/{}", self.job, self.holder.epoch)),
                commit: Some("0".repeat(40)),
                ..RunReport::default()
            }),
            70..84 => HolderAction::Fail { failure: failed(FailReason::Infrastructure), retryable: true },
            84..90 => HolderAction::Fail { failure: failed(FailReason::VerifyFailed), retryable: false },
            _ => HolderAction::Release { checkpoint: None },
        }
    }

    async fn renew(&mut self) -> bool {
        for _ in 0..6 {
            let (job, holder) = (self.job, self.holder.clone());
            let renewed =
                self.world.call(&mut self.prng, |one| async move { one.renew(job, holder).await }).await;
            match renewed {
                Ok(renewal) => return renewal.directives.is_empty(),
                Err(Trouble::Refused(_)) => return false,
                Err(Trouble::Lost) => nap(&mut self.prng, 20, 200).await,
            }
        }
        // It cannot know; the work goes on.
        true
    }

    /// Repeats itself until somebody answers; whether it may go on.
    async fn say(&mut self, actions: Vec<HolderAction>) -> bool {
        for _ in 0..20 {
            let (job, holder, actions) = (self.job, self.holder.clone(), actions.clone());
            let said = self
                .world
                .call(&mut self.prng, |one| async move { one.hold(job, holder, actions).await })
                .await;
            match said {
                Ok(_) => return true,
                Err(Trouble::Refused(_)) => return false,
                Err(Trouble::Lost) => nap(&mut self.prng, 20, 200).await,
            }
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        false
    }
}
