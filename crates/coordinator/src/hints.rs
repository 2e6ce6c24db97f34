//! Hints between coordinators: sends the others what this one committed, and receives what they did.
//!
//! A hint only says "look". One that is lost costs time until the next timer, one that comes twice costs a look. What
//! piles up while one is on its way is sent together, so a busy coordinator sends a few times a second, not once per
//! commit, and never inside a transaction.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use giga_domain::topic::TopicKey;
use giga_domain::{FeedPos, JobId, Timestamp, WorkerId};
use giga_ports::BrokerError;
use giga_ports::broker::{Hint, ReadyTopic};
use tokio::sync::{mpsc, watch};

use crate::Coordinator;
use crate::core::Core;

/// The first hint after a quiet time leaves at once; what follows waits for so long and leaves together.
const TOGETHER: Duration = Duration::from_millis(20);
const AFTER_A_FAILURE: Duration = Duration::from_secs(1);
/// How many hints may wait to be sent; more are dropped, because a timer finds what they are about.
const WAITING: usize = 4_096;

/// Where the rest of the coordinator drops what others should know.
pub(crate) struct Hints {
    core: Arc<Core>,
    outgoing: mpsc::Sender<Hint>,
    /// The newest feed position that is known of, from here or elsewhere.
    head: watch::Sender<FeedPos>,
}

impl Hints {
    pub(crate) fn new(core: Arc<Core>) -> (Self, mpsc::Receiver<Hint>) {
        let (outgoing, waiting) = mpsc::channel(WAITING);
        let head = watch::Sender::new(*core.store.head().borrow());
        (Self { core, outgoing, head }, waiting)
    }

    pub(crate) fn send(&self, hint: Hint) {
        let _ = self.outgoing.try_send(hint);
    }

    pub(crate) fn head(&self) -> watch::Receiver<FeedPos> {
        self.head.subscribe()
    }

    fn reached(&self, pos: FeedPos) {
        self.head.send_if_modified(|head| {
            let newer = pos > *head;
            *head = pos.max(*head);
            newer
        });
    }

    /// This process's commits: news here at once, and for the others.
    pub(crate) async fn watch_commits(self: Arc<Self>) {
        let mut head = self.core.store.head();
        loop {
            tokio::select! {
                () = self.core.stop.cancelled() => return,
                changed = head.changed() => if changed.is_err() { return },
            }
            let pos = *head.borrow_and_update();
            self.reached(pos);
            self.send(Hint::Feed { pos });
        }
    }

    pub(crate) async fn publish_hints(self: Arc<Self>, mut waiting: mpsc::Receiver<Hint>) {
        let mut taken = Vec::new();
        let mut broker_is_away = false;
        loop {
            tokio::select! {
                () = self.core.stop.cancelled() => return,
                count = waiting.recv_many(&mut taken, WAITING) => if count == 0 { return },
            }
            let published = self.publish_all(merged(taken.drain(..))).await;
            match &published {
                Err(error) if !broker_is_away => {
                    tracing::warn!(%error, "hints cannot be published; timers make up for it");
                }
                Ok(()) if broker_is_away => tracing::info!("hints can be published again"),
                _ => {}
            }
            broker_is_away = published.is_err();
            let pause = if broker_is_away { AFTER_A_FAILURE } else { TOGETHER };
            tokio::select! {
                () = self.core.stop.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    /// Up to the first that cannot be sent: timers find what is lost.
    async fn publish_all(&self, hints: Vec<Hint>) -> Result<(), BrokerError> {
        for hint in hints {
            self.core.within_patience(self.core.broker.hint(&hint)).await?;
        }
        Ok(())
    }
}

impl Coordinator {
    pub(crate) async fn receive_hints(self: Arc<Self>) {
        while !self.core.stop.is_cancelled() {
            let pause = match self.core.broker.hints().await {
                Ok(mut hints) => {
                    // Whatever was sent before is missed: look at everything once.
                    self.look_at_everything();
                    loop {
                        let next = tokio::select! {
                            () = self.core.stop.cancelled() => return,
                            next = hints.next() => next,
                        };
                        match next {
                            Ok(hint) => self.received(&hint),
                            Err(error) => break error,
                        }
                    }
                }
                Err(error) => error,
            };
            tracing::warn!(error = %pause, "hints of other coordinators cannot be received");
            tokio::select! {
                () = self.core.stop.cancelled() => return,
                () = tokio::time::sleep(AFTER_A_FAILURE) => {}
            }
        }
    }

    fn received(&self, hint: &Hint) {
        match hint {
            Hint::Feed { pos } => self.hints.reached(*pos),
            Hint::Leaderless => self.dispatch.leader_left(),
            Hint::Effects => self.effects.may_wait(),
            // Also sent after hints were missed, so it means "look at everything".
            Hint::Pauses => {
                self.hints.head.send_modify(|_| {});
                self.topics.hear(hint);
            }
            Hint::Ready { .. } | Hint::Due { .. } | Hint::Settled { .. } => self.topics.hear(hint),
        }
    }

    fn look_at_everything(&self) {
        self.hints.head.send_modify(|_| {});
        self.dispatch.leader_left();
        self.effects.may_wait();
        self.topics.hear(&Hint::Pauses);
    }
}

/// The same hint sent once.
fn merged(hints: impl Iterator<Item = Hint>) -> Vec<Hint> {
    let mut feed: Option<FeedPos> = None;
    let mut ready: BTreeMap<TopicKey, JobId> = BTreeMap::new();
    let mut due: Option<Timestamp> = None;
    let mut settled: BTreeMap<WorkerId, Vec<JobId>> = BTreeMap::new();
    let (mut pauses, mut leaderless, mut effects) = (false, false, false);
    for hint in hints {
        match hint {
            Hint::Feed { pos } => feed = feed.max(Some(pos)),
            Hint::Ready { topics } => {
                for topic in topics {
                    let lowest = ready.entry(topic.key()).or_insert(topic.lowest);
                    *lowest = (*lowest).min(topic.lowest);
                }
            }
            Hint::Due { at } => due = Some(due.map_or(at, |known| known.min(at))),
            Hint::Settled { worker, jobs } => settled.entry(worker).or_default().extend(jobs),
            Hint::Pauses => pauses = true,
            Hint::Leaderless => leaderless = true,
            Hint::Effects => effects = true,
        }
    }
    let topics: Vec<ReadyTopic> = ready
        .into_iter()
        .map(|(key, lowest)| ReadyTopic { product: key.product, topic: key.topic, lowest })
        .collect();
    let mut all = Vec::new();
    all.extend(leaderless.then_some(Hint::Leaderless));
    all.extend(pauses.then_some(Hint::Pauses));
    all.extend(feed.map(|pos| Hint::Feed { pos }));
    all.extend((!topics.is_empty()).then_some(Hint::Ready { topics }));
    all.extend(due.map(|at| Hint::Due { at }));
    all.extend(settled.into_iter().map(|(worker, jobs)| Hint::Settled { worker, jobs }));
    all.extend(effects.then_some(Hint::Effects));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ready(topic: &str, lowest: u128) -> Hint {
        let topic = ReadyTopic {
            product: "demo".parse().unwrap(),
            topic: topic.parse().unwrap(),
            lowest: JobId::from_u128(lowest),
        };
        Hint::Ready { topics: vec![topic] }
    }

    #[test]
    fn what_piles_up_is_told_once_and_nothing_of_it_is_lost() {
        let worker = || "w1".parse::<WorkerId>().unwrap();
        let job = JobId::from_u128;
        let sent = merged(
            [
                Hint::Feed { pos: FeedPos(9) },
                ready("mail", 7),
                Hint::Feed { pos: FeedPos(4) },
                ready("mail", 3),
                ready("sms", 8),
                Hint::Settled { worker: worker(), jobs: vec![job(1)] },
                Hint::Due { at: Timestamp::from_millis(50) },
                Hint::Due { at: Timestamp::from_millis(20) },
                Hint::Pauses,
                Hint::Settled { worker: worker(), jobs: vec![job(2)] },
                Hint::Pauses,
            ]
            .into_iter(),
        );
        let (Hint::Ready { topics: mut mail }, Hint::Ready { topics: sms }) =
            (ready("mail", 3), ready("sms", 8))
        else {
            unreachable!("ready() makes nothing else")
        };
        mail.extend(sms);
        assert_eq!(
            sent,
            [
                Hint::Pauses,
                Hint::Feed { pos: FeedPos(9) },
                Hint::Ready { topics: mail },
                Hint::Due { at: Timestamp::from_millis(20) },
                Hint::Settled { worker: worker(), jobs: vec![job(1), job(2)] },
            ]
        );
    }
}
