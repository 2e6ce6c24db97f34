//! What the deliverer remembers between two looks: who is being spoken to, and who failed lately.
//!
//! Lost with its process, and nothing of it is missed.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use giga_domain::{Effect, EffectReceiver, Timestamp};

use crate::backoff::pause_after;

/// A receiver that failed is left alone for so long, and for twice as long the next time.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_mins(5);

/// A receiver that failed lately.
#[derive(Debug, Clone, Copy)]
struct Away {
    failures: u32,
    until: Timestamp,
}

/// How a line ended.
#[derive(Debug)]
pub(super) struct Ended {
    pub(super) receiver: EffectReceiver,
    pub(super) delivered: usize,
    /// The last thing failed; for how long the receiver asked to be left alone, if it did.
    pub(super) failed: Option<Duration>,
}

/// For whom a line can be begun.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Free {
    pub(super) receiver: EffectReceiver,
    /// It failed the last time: one thing is enough to see whether it is back.
    pub(super) failed_last: bool,
}

#[derive(Debug, Default)]
pub(super) struct ReceiverBackoff {
    /// Those with a line that has not ended.
    busy: HashSet<EffectReceiver>,
    away: HashMap<EffectReceiver, Away>,
}

impl ReceiverBackoff {
    /// Of all for whom something waits those that can be spoken to now, at most so many, and when to look again for
    /// another. A line that ends is reason enough to look.
    pub(super) fn free(
        &mut self,
        waiting: Vec<(EffectReceiver, Timestamp)>,
        most: usize,
        now: Timestamp,
    ) -> (Vec<Free>, Option<Timestamp>) {
        // Whoever nothing waits for any more is forgotten with the rest.
        self.away.retain(|receiver, away| {
            away.until > now || waiting.iter().any(|(waiting, _)| waiting == receiver)
        });
        let (mut free, mut next) = (Vec::new(), None::<Timestamp>);
        for (receiver, due) in waiting {
            if self.busy.contains(&receiver) {
                continue;
            }
            let away = self.away.get(&receiver);
            let from = away.map_or(due, |away| away.until.max(due));
            if from > now {
                next = Some(next.map_or(from, |next| next.min(from)));
            } else if free.len() < most {
                free.push(Free { failed_last: away.is_some(), receiver });
            }
        }
        (free, next)
    }

    pub(super) fn begun(&mut self, receiver: EffectReceiver) {
        self.busy.insert(receiver);
    }

    pub(super) fn ended(&mut self, ended: &Ended, now: Timestamp) {
        self.busy.remove(&ended.receiver);
        let Some(asked) = ended.failed else {
            self.away.remove(&ended.receiver);
            return;
        };
        let before = self.away.get(&ended.receiver).map_or(0, |away| away.failures);
        // Something got through before it failed: it is not away, it stumbled.
        let failures = if ended.delivered > 0 { 1 } else { before.saturating_add(1) };
        let pause = pause_after(failures, FIRST_PAUSE, LONGEST_PAUSE);
        let pause = pause.max(asked.min(Effect::LONGEST_PAUSE));
        self.away.insert(ended.receiver.clone(), Away { failures, until: now.plus(pause) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receiver(name: &str) -> EffectReceiver {
        EffectReceiver::Tracker(name.to_owned())
    }

    fn ended(delivered: usize, failed: Option<Duration>) -> Ended {
        Ended { receiver: receiver("github"), delivered, failed }
    }

    #[test]
    fn a_receiver_that_fails_is_left_alone_for_longer_and_longer_until_it_answers() {
        let (mut backoff, now) = (ReceiverBackoff::default(), Timestamp::ZERO);
        let waiting = || vec![(receiver("github"), now)];
        let pause = |backoff: &mut ReceiverBackoff, how: Ended| {
            backoff.begun(receiver("github"));
            backoff.ended(&how, now);
            let (free, next) = backoff.free(waiting(), 16, now);
            assert!(free.is_empty() == next.is_some());
            next.map(|next| next.since(now).as_secs())
        };
        let pauses: Vec<_> =
            (0..9).map(|_| pause(&mut backoff, ended(0, Some(Duration::ZERO))).unwrap()).collect();
        assert_eq!(pauses, [5, 10, 20, 40, 80, 160, 300, 300, 300]);
        let hour = Duration::from_hours(1);
        assert_eq!(pause(&mut backoff, ended(0, Some(hour))), Some(3_600), "as it asked");
        let long = Effect::LONGEST_PAUSE.as_secs();
        assert_eq!(pause(&mut backoff, ended(0, Some(hour * 10_000))), Some(long), "within reason");
        assert_eq!(pause(&mut backoff, ended(3, Some(Duration::ZERO))), Some(5), "it stumbled");
        let back = now.plus(Duration::from_secs(5));
        let free = backoff.free(waiting(), 16, back).0;
        assert_eq!(free, [Free { receiver: receiver("github"), failed_last: true }]);
        assert_eq!(pause(&mut backoff, ended(1, None)), None);
        assert!(!backoff.free(waiting(), 16, now).0[0].failed_last);
    }

    #[test]
    fn nobody_waits_for_somebody_else() {
        let (mut backoff, now) = (ReceiverBackoff::default(), Timestamp::ZERO);
        let soon = now.plus(Duration::from_secs(9));
        backoff.begun(receiver("busy"));
        let waiting = ["busy", "one", "two"].map(|name| (receiver(name), now));
        let waiting = || waiting.iter().cloned().chain([(receiver("later"), soon)]).collect::<Vec<_>>();
        let names = |free: Vec<Free>| free.into_iter().map(|free| free.receiver).collect::<Vec<_>>();
        let (free, next) = backoff.free(waiting(), 16, now);
        assert_eq!((names(free), next), (vec![receiver("one"), receiver("two")], Some(soon)));
        assert_eq!(names(backoff.free(waiting(), 1, now).0), [receiver("one")]);
        backoff.ended(&Ended { receiver: receiver("busy"), delivered: 1, failed: None }, now);
        assert_eq!(backoff.free(waiting(), 16, now).0.len(), 3);
    }
}
