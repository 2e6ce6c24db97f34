//! Many seeds, none of which may break a promise.

use giga_sim::{Tally, report, run_many};

const SEEDS: u64 = 2_000;

#[test]
fn every_seed_keeps_every_promise() {
    let (tally, failed) = run_many(0, SEEDS, None, 1);
    if let Some(outcome) = failed.first() {
        panic!("{}", report(outcome.seed, None));
    }
    // A simulation in which little happens finds nothing.
    let Tally { faults, grants, expiries, offers, terms, ended, topic_grants, fenced, stale_terms, .. } =
        tally;
    assert!(faults > SEEDS && grants > 5 * SEEDS && ended > 2 * SEEDS, "{tally:?}");
    assert!(expiries > SEEDS / 2 && fenced > SEEDS / 20, "{tally:?}");
    assert!(offers > 2 * SEEDS && terms > SEEDS && stale_terms > SEEDS / 100, "{tally:?}");
    assert!(topic_grants > 2 * SEEDS, "{tally:?}");
    let Tally { charges, evictions, children, effects, .. } = tally;
    assert!(charges > SEEDS && children > SEEDS / 10, "{tally:?}");
    assert!(evictions > SEEDS / 40 && effects > SEEDS, "{tally:?}");
    let Tally { questions, unanswered, parked, quota, .. } = tally;
    assert!(questions > SEEDS / 10 && unanswered > SEEDS / 100 && parked > SEEDS / 50, "{tally:?}");
    assert!(quota > SEEDS / 20, "{tally:?}");
}
