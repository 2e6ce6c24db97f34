//! Whether what is shown is still true.

use giga_domain::Timestamp;

/// Lost since when, and the error.
type Loss = (Timestamp, String);

/// The feed and the answers can fail apart: either makes everything on the screen old.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Link {
    feed: Option<Loss>,
    answers: Option<Loss>,
    /// The feed was heard at least once.
    pub open: bool,
}

impl Link {
    pub fn lost(&self) -> Option<&Loss> {
        match (&self.feed, &self.answers) {
            (Some(feed), Some(answers)) => Some(if feed.0 <= answers.0 { feed } else { answers }),
            (feed, answers) => feed.as_ref().or(answers.as_ref()),
        }
    }

    pub fn feed_lost(&mut self, now: Timestamp, reason: String) {
        let since = self.feed.as_ref().map_or(now, |(since, _)| *since);
        self.feed = Some((since, reason));
    }

    /// Whether it was away.
    pub fn feed_back(&mut self) -> bool {
        self.open = true;
        self.feed.take().is_some()
    }

    pub fn feed_is_lost(&self) -> bool {
        self.feed.is_some()
    }

    pub fn unanswered(&mut self, now: Timestamp, reason: String) {
        let since = self.answers.as_ref().map_or(now, |(since, _)| *since);
        self.answers = Some((since, reason));
    }

    pub fn answered(&mut self) {
        self.answers = None;
    }
}
