//! What has to be written to the store or the broker, but not by whoever found it out: jobs that could not be delivered,
//! jobs that may no longer be held, pauses that may have moved, dead letters. Letters go their own way: a slow broker must
//! not hold up what the store has to hear.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use giga_domain::topic::{Outcome, TopicKey};
use giga_domain::{Epoch, JobId, limits};
use giga_ports::StoreError;
use giga_ports::broker::DeadLetter;
use giga_ports::topics::{Settle, Settled};

use super::Topics;

const AFTER_A_FAILURE: Duration = Duration::from_secs(1);
/// How many dead letters may wait for the broker; more are not mirrored. The store has them all.
const LETTERS: usize = 10_000;
/// How long the broker may take over one.
const LETTER_TIMEOUT: Duration = Duration::from_secs(5);

#[derive(Default)]
pub(super) struct FollowUps {
    /// Claimed and never handed to a transport.
    pub(super) unsent: Vec<(JobId, Epoch)>,
    /// Perhaps settled by somebody else.
    pub(super) doubtful: Vec<(JobId, Epoch)>,
    pub(super) pauses_are_old: bool,
}

impl Topics {
    pub(crate) async fn keep_following_up(self: Arc<Self>) {
        while !self.core.stop.is_cancelled() {
            tokio::select! {
                () = self.core.stop.cancelled() => {}
                () = self.follow_ups_wake.notified() => {}
            }
            if let Err(error) = self.follow_up_once().await {
                tracing::warn!(%error, "topic jobs could not be released or looked up; retrying");
                tokio::select! {
                    () = self.core.stop.cancelled() => {}
                    () = tokio::time::sleep(AFTER_A_FAILURE) => self.follow_ups_wake.notify_one(),
                }
            }
        }
        // What the streams left that ended with the server.
        let _ = self.follow_up_once().await;
    }

    /// All that is to be done; what fails stays to be done.
    pub(super) async fn follow_up_once(&self) -> Result<(), StoreError> {
        let FollowUps { unsent, doubtful, pauses_are_old } = std::mem::take(&mut *self.follow_ups());
        let (unsent_left, given_back) = self.give_back(unsent).await;
        let (doubtful_left, verified) = self.verify_held(doubtful).await;
        let pauses = if pauses_are_old { self.read_pauses().await } else { Ok(()) };
        let mut follow_ups = self.follow_ups();
        follow_ups.unsent.extend(unsent_left);
        follow_ups.doubtful.extend(doubtful_left);
        follow_ups.pauses_are_old |= pauses.is_err();
        drop(follow_ups);
        given_back.and(verified).and(pauses)
    }

    /// Claimed for somebody who was gone before it could be sent: ready again at once, no attempt used up.
    async fn give_back(
        &self,
        mut unsent: Vec<(JobId, Epoch)>,
    ) -> (Vec<(JobId, Epoch)>, Result<(), StoreError>) {
        while !unsent.is_empty() {
            let batch = unsent.split_off(unsent.len().saturating_sub(limits::TOPIC_BATCH));
            let release = |&(id, epoch)| Settle { id, epoch, outcome: Outcome::Release };
            match self.store.settle(batch.iter().map(release).collect()).await {
                Ok(settled) => {
                    let keys: Vec<(TopicKey, JobId)> = batch
                        .iter()
                        .zip(settled)
                        .filter_map(|((id, _), settled)| match settled {
                            Settled::Applied { key, .. } => Some((key, *id)),
                            Settled::Fenced | Settled::Unknown => None,
                        })
                        .collect();
                    self.ready(keys.iter().map(|(key, id)| (key, *id)), false);
                }
                Err(error) => {
                    unsent.extend(batch);
                    return (unsent, Err(error));
                }
            }
        }
        (unsent, Ok(()))
    }

    /// Frees the slots of those that their worker holds no more. Renewing for no time at all changes nothing and says
    /// who still holds what.
    pub(super) async fn verify_held(
        &self,
        mut doubtful: Vec<(JobId, Epoch)>,
    ) -> (Vec<(JobId, Epoch)>, Result<(), StoreError>) {
        while !doubtful.is_empty() {
            let batch = doubtful.split_off(doubtful.len().saturating_sub(limits::TOPIC_BATCH));
            match self.store.renew(batch.clone(), Duration::ZERO).await {
                Ok(still_held) => {
                    let until = self.core.clock.now().plus(self.lease());
                    let mut registry = self.registry();
                    for ((id, epoch), still_held) in batch.into_iter().zip(still_held) {
                        if still_held {
                            registry.renewed(id, epoch, until);
                        } else {
                            registry.free(id, epoch);
                        }
                    }
                    drop(registry);
                    self.wake.notify_one();
                }
                Err(error) => {
                    doubtful.extend(batch);
                    return (doubtful, Err(error));
                }
            }
        }
        (doubtful, Ok(()))
    }

    async fn read_pauses(&self) -> Result<(), StoreError> {
        let closed: HashSet<_> = self.store.pauses().await?.into_iter().map(|closed| closed.scope).collect();
        self.registry().set_pauses(closed);
        self.wake.notify_one();
        Ok(())
    }

    /// Nobody will try it again.
    pub(super) fn died(&self, key: &TopicKey, id: JobId, reason: String) {
        self.core.metrics.topics.died(key);
        let letter = DeadLetter {
            job_id: id,
            product_id: key.product.clone(),
            topic: Some(key.topic.clone()),
            reason,
            at: self.core.store_now(),
        };
        let mut letters = self.letters();
        if letters.len() < LETTERS {
            letters.push_back(letter);
        }
        drop(letters);
        self.letters_wake.notify_one();
    }

    /// What still waits when the coordinator stops is not mirrored.
    pub(crate) async fn keep_mirroring_dead(self: Arc<Self>) {
        loop {
            tokio::select! {
                () = self.core.stop.cancelled() => return,
                () = self.letters_wake.notified() => {}
            }
            while !self.mirror_dead_once().await {
                tokio::select! {
                    () = self.core.stop.cancelled() => return,
                    () = tokio::time::sleep(AFTER_A_FAILURE) => {}
                }
            }
        }
    }

    /// Mirrors what waits, oldest first. `false` where the broker did not take one; that one and the rest keep waiting.
    pub(super) async fn mirror_dead_once(&self) -> bool {
        while !self.core.stop.is_cancelled() {
            let Some(letter) = self.letters().pop_front() else { break };
            let mirrored = tokio::select! {
                () = self.core.stop.cancelled() => break,
                mirrored = tokio::time::timeout(LETTER_TIMEOUT, self.core.broker.dead_letter(&letter)) => mirrored,
            };
            let problem = match mirrored {
                Ok(Ok(())) => continue,
                Ok(Err(error)) => error.to_string(),
                Err(_) => format!("no answer within {} seconds", LETTER_TIMEOUT.as_secs()),
            };
            tracing::warn!(problem, job = %letter.job_id, "a dead letter could not be mirrored to the broker");
            self.letters().push_front(letter);
            return false;
        }
        true
    }
}
