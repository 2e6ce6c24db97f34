//! Which message ids were seen lately.
//!
//! Bounded both ways: an id is forgotten after a time, and the oldest goes early when there are too many.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

/// As long as the duplicate window of the NATS stream, so that the brokers behave alike.
pub(crate) const WINDOW: Duration = Duration::from_mins(2);
/// About 10 MB of ids.
const MOST: usize = 100_000;

#[derive(Debug, Default)]
pub(super) struct Window {
    known: HashSet<String>,
    by_age: VecDeque<(Instant, String)>,
}

impl Window {
    /// Whether it is the first of its kind inside the window.
    pub(super) fn is_new(&mut self, message_id: String, now: Instant) -> bool {
        while let Some((seen, _)) = self.by_age.front()
            && (now.duration_since(*seen) >= WINDOW || self.by_age.len() >= MOST)
        {
            if let Some((_, oldest)) = self.by_age.pop_front() {
                self.known.remove(&oldest);
            }
        }
        let new = self.known.insert(message_id.clone());
        if new {
            self.by_age.push_back((now, message_id));
        }
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_forgotten_when_its_window_is_over() {
        let (mut window, start) = (Window::default(), Instant::now());
        assert!(window.is_new("a:1".into(), start));
        assert!(!window.is_new("a:1".into(), start + WINDOW - Duration::from_millis(1)));
        assert!(window.is_new("a:2".into(), start), "another dispatch of the job is another message");
        assert!(window.is_new("a:1".into(), start + WINDOW));
    }

    #[test]
    fn too_many_ids_push_the_oldest_out() {
        let (mut window, now) = (Window::default(), Instant::now());
        for n in 0..=MOST {
            assert!(window.is_new(n.to_string(), now));
        }
        assert_eq!((window.known.len(), window.by_age.len()), (MOST, MOST));
        assert!(window.is_new("0".into(), now), "the oldest was forgotten");
        assert!(!window.is_new(MOST.to_string(), now), "the newest was not");
    }
}
