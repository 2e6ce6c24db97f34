//! A seed replays exactly: the same lines at the same times, twice in one process.

use giga_sim::{fingerprint, run};

#[test]
fn a_seed_replays_line_by_line() {
    for seed in 0..40 {
        let (first, second) = (run(seed, None, true), run(seed, None, true));
        let differs = first.trace.iter().zip(&second.trace).find(|(one, other)| one != other);
        assert_eq!(differs, None, "seed {seed}");
        assert_eq!(fingerprint(&first.trace), fingerprint(&second.trace), "seed {seed}");
        assert!(first.trace.len() > 20, "seed {seed} tells too little: {:?}", first.trace);
    }
}

#[test]
fn another_seed_is_another_history() {
    assert_ne!(fingerprint(&run(1, None, true).trace), fingerprint(&run(2, None, true).trace));
}
