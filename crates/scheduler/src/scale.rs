//! What a pool should do now: how many factories to start, and which to let go.
//!
//! It starts no more than there is work for, in steps that grow with what is there, so that a burst is met quickly and a mistake
//! stays small; and it lets go only of what holds nothing and has been idle for long enough. It never ends work: whoever is
//! let go drains.

use std::time::Duration;

use giga_domain::{FactoryId, PoolSettings, Timestamp};

use crate::PoolDemand;

/// A pool and its members as they are.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PoolNow {
    /// Members that work, or could: enrolled, not draining.
    pub running: u32,
    pub starting: u32,
    /// Members that drain or are being taken away: they count towards `max` until they are gone.
    pub leaving: u32,
    /// Of those that run, the ones that hold nothing and get nothing, each since when.
    pub idle: Vec<Idle>,
    /// Starts that failed since the last one that did not.
    pub failed_in_a_row: u32,
    /// Nothing may be started before: a back-off, or a closed budget.
    pub held_until: Option<Timestamp>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Idle {
    pub factory: FactoryId,
    pub since: Timestamp,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scale {
    /// How many there should be.
    pub target: u32,
    pub start: u32,
    /// More are wanted than are there: by so many, whether they are started now or not.
    pub wanted: u32,
    pub drain: Vec<FactoryId>,
    /// When the next of the idle may go, should nothing else happen.
    pub again_at: Option<Timestamp>,
}

/// On their way at once in a pool that has none yet.
const FIRST_STEP: u32 = 4;

pub fn scale(settings: &PoolSettings, pool: &PoolNow, demand: &PoolDemand, now: Timestamp) -> Scale {
    let there = pool.running + pool.starting;
    let spare = pool.idle.len() as u32 + demand.spare.len() as u32;
    let useful = there.saturating_sub(spare);
    let target = useful
        .saturating_add(demand.factories)
        .saturating_add(settings.warm)
        .clamp(settings.min, settings.max.max(settings.min));
    let mut scale = Scale { target, ..Scale::default() };
    if target > there {
        scale.wanted = target - there;
        scale.start = scale.wanted.min(may_start(settings, pool, now));
    } else {
        let (drain, again_at) = let_go(settings, pool, there - target, now);
        (scale.drain, scale.again_at) = (drain, again_at);
    }
    scale
}

fn may_start(settings: &PoolSettings, pool: &PoolNow, now: Timestamp) -> u32 {
    if settings.paused || pool.held_until.is_some_and(|until| until > now) {
        return 0;
    }
    // One tries it out where the last one failed; otherwise as many at once as are there already.
    let at_once = if pool.failed_in_a_row > 0 { 1 } else { pool.running.max(FIRST_STEP) };
    let there = pool.running + pool.starting + pool.leaving;
    at_once.saturating_sub(pool.starting).min(settings.max.saturating_sub(there))
}

/// Those that have been idle longest; at once where there are more than there may be.
fn let_go(
    settings: &PoolSettings,
    pool: &PoolNow,
    surplus: u32,
    now: Timestamp,
) -> (Vec<FactoryId>, Option<Timestamp>) {
    let mut idle: Vec<&Idle> = pool.idle.iter().collect();
    idle.sort_by(|a, b| a.since.cmp(&b.since).then_with(|| a.factory.cmp(&b.factory)));
    let too_many = (pool.running + pool.starting).saturating_sub(settings.max) as usize;
    let mut drain = Vec::new();
    for (at, one) in idle.into_iter().take(surplus as usize).enumerate() {
        let goes_at = one.since.plus(settings.idle);
        if at >= too_many && goes_at > now {
            return (drain, Some(goes_at));
        }
        drain.push(one.factory.clone());
    }
    (drain, None)
}

/// For people: the time that a start takes, as far as it is known.
pub fn about(start_time: Option<Duration>) -> Option<String> {
    let seconds = start_time?.as_secs_f64().ceil().max(1.0) as u64;
    Some(if seconds < 120 {
        format!("about {seconds} s")
    } else {
        format!("about {} min", seconds.div_ceil(60))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn settings(min: u32, max: u32, warm: u32) -> PoolSettings {
        PoolSettings { min, max, warm, idle: Duration::from_mins(1), ..PoolSettings::default() }
    }

    fn at(seconds: u64) -> Timestamp {
        Timestamp::ZERO.plus(Duration::from_secs(seconds))
    }

    fn idle(since: &[(&str, u64)]) -> Vec<Idle> {
        since.iter().map(|(id, s)| Idle { factory: id.parse().unwrap(), since: at(*s) }).collect()
    }

    fn wants(factories: u32) -> PoolDemand {
        PoolDemand { factories, jobs: factories, ..PoolDemand::default() }
    }

    #[test]
    fn a_burst_is_met_in_steps_that_grow() {
        let settings = settings(0, 100, 0);
        let none = PoolNow::default();
        assert_eq!(scale(&settings, &none, &wants(64), at(0)).start, FIRST_STEP);
        let first = PoolNow { starting: 4, ..none.clone() };
        assert_eq!(scale(&settings, &first, &wants(60), at(1)).start, 0, "they are on their way");
        let there = PoolNow { running: 4, ..none.clone() };
        assert_eq!(scale(&settings, &there, &wants(60), at(2)).start, 4);
        let many = PoolNow { running: 32, ..none };
        assert_eq!(scale(&settings, &many, &wants(60), at(3)).start, 32);
    }

    #[test]
    fn nobody_is_started_past_the_limit_nor_before_the_time() {
        let failed = PoolNow { failed_in_a_row: 1, held_until: Some(at(10)), ..PoolNow::default() };
        assert_eq!(scale(&settings(0, 8, 0), &failed, &wants(5), at(9)).start, 0);
        assert_eq!(scale(&settings(0, 8, 0), &failed, &wants(5), at(10)).start, 1, "one tries it out");
        let full = PoolNow { running: 5, leaving: 2, starting: 1, ..PoolNow::default() };
        assert_eq!(scale(&settings(0, 8, 0), &full, &wants(5), at(0)).start, 0);
        let paused = PoolSettings { paused: true, ..settings(2, 8, 0) };
        let answer = scale(&paused, &PoolNow::default(), &wants(5), at(0));
        assert_eq!((answer.start, answer.wanted), (0, 5));
    }

    #[test]
    fn the_idle_go_when_their_time_is_over_and_the_warm_stay() {
        let pool = PoolNow { running: 3, idle: idle(&[("p-b", 10), ("p-a", 20)]), ..PoolNow::default() };
        let settings = settings(0, 8, 0);
        let early = scale(&settings, &pool, &wants(0), at(60));
        assert_eq!((early.drain.len(), early.again_at), (0, Some(at(70))));
        let later = scale(&settings, &pool, &wants(0), at(70));
        assert_eq!((later.drain, later.again_at), (vec!["p-b".parse().unwrap()], Some(at(80))));
        assert_eq!(scale(&settings, &pool, &wants(0), at(99)).drain.len(), 2);
        let warm = PoolSettings { warm: 1, ..settings.clone() };
        assert_eq!(scale(&warm, &pool, &wants(0), at(99)).drain, ["p-b".parse().unwrap()]);
        let kept = PoolSettings { min: 3, ..settings.clone() };
        assert_eq!(scale(&kept, &pool, &wants(0), at(99)).drain, []);
        let fewer = PoolSettings { max: 2, ..settings };
        assert_eq!(
            scale(&fewer, &pool, &wants(0), at(21)).drain,
            ["p-b".parse().unwrap()],
            "there may be two"
        );
    }

    #[test]
    fn warm_ones_are_beside_those_that_work() {
        let warm = settings(0, 8, 2);
        assert_eq!(scale(&warm, &PoolNow::default(), &wants(0), at(0)).start, 2);
        let busy = PoolNow { running: 2, ..PoolNow::default() };
        assert_eq!(scale(&warm, &busy, &wants(0), at(0)).start, 2, "both have work");
        let spare = PoolNow { running: 2, idle: idle(&[("p-a", 0)]), starting: 1, ..PoolNow::default() };
        let demand = PoolDemand { spare: vec!["p-c".parse().unwrap()], ..PoolDemand::default() };
        assert_eq!(scale(&warm, &spare, &demand, at(0)), Scale { target: 3, ..Scale::default() });
    }

    proptest! {
        /// Whatever the numbers: never past `max`, never one that works, never both at once.
        #[test]
        fn it_keeps_its_bounds(
            min in 0u32..6, more in 0u32..6, warm in 0u32..6, busy in 0u32..8, idle_n in 0usize..8,
            starting in 0u32..8, leaving in 0u32..4, wanted in 0u32..64, now in 0u64..200,
        ) {
            let settings = settings(min, min + more, warm.min(min + more));
            let idle: Vec<Idle> = (0..idle_n)
                .map(|n| Idle { factory: format!("p-{n}").parse().unwrap(), since: at(n as u64 * 10) })
                .collect();
            let pool = PoolNow { running: busy + idle_n as u32, starting, leaving, idle: idle.clone(), ..PoolNow::default() };
            let answer = scale(&settings, &pool, &wants(wanted), at(now));
            let there = pool.running + starting + leaving;
            prop_assert!(answer.start == 0 || there + answer.start <= settings.max);
            prop_assert!(answer.start == 0 || answer.drain.is_empty());
            prop_assert!(answer.drain.iter().all(|id| idle.iter().any(|one| one.factory == *id)));
            let left = pool.running + starting - answer.drain.len() as u32;
            prop_assert!(answer.drain.is_empty() || left >= settings.min);
            // A fixed point: what was started and what was let go calls for nothing new by itself.
            if answer.start > 0 {
                let next = PoolNow { starting: starting + answer.start, ..pool };
                let rest = scale(&settings, &next, &wants(wanted.saturating_sub(answer.start)), at(now));
                prop_assert!(rest.drain.is_empty());
            }
        }
    }
}
