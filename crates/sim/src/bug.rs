//! Bugs to be planted: each breaks one promise in the simulation's own wrappers, so that a checker has to notice.
//!
//! The product has no switch for any of them. A bug that no checker finds is a missing checker.

use std::fmt;
use std::str::FromStr;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// A stale holder's write is let through under the current holder's name.
    FenceOff,
    /// Now and then a submit is answered without being written.
    AckBeforeDurable,
    /// Now and then the idempotency key of a submit is dropped.
    KeyForgotten,
    /// A claim that lost is answered with the winner's grant.
    DoubleGrant,
    /// Claims forget which request they were made for.
    RequestForgotten,
    /// An older leader's offers, refused, are written again in the newer one's name.
    OldTermAccepted,
    /// A failure is written as a release, which uses up no attempt.
    AttemptsForgotten,
    /// A page of the feed lacks one event now and then.
    FeedGap,
    /// The broker tells duplicates by the job alone, and never forgets.
    DedupByJob,
    /// The end of a lease is never noticed.
    NoReaper,
    /// A stale worker's result is let through under the current epoch.
    TopicFenceOff,
    /// Workers are given more than they asked for.
    TooManyInFlight,
    /// Claims of a topic do not look whether it is paused.
    PauseIgnored,
    /// Factories are taken for larger than they are.
    TooManySeats,
    /// The caps of jobs are lost on the way to the store, so nothing is reserved for them.
    ReserveForgotten,
    /// Now and then what a run cost is charged once more.
    ChargedTwice,
    /// A holder that lets go because it was asked to is taken for one that failed.
    EvictionCostsAttempt,
    /// Nobody looks again at jobs because of those that they hang on.
    ReconsiderLost,
    /// What is sent again to the world outside is sent under another id.
    EffectRenamed,
    /// Now and then an event is passed over that somebody subscribed to.
    EffectLost,
    /// What fails on the merged tree is merged all the same.
    UncheckedMerge,
    /// What is pushed was not announced before.
    UnannouncedPush,
    /// Now and then a person's answer is taken and not kept.
    AnswerForgotten,
    /// That an account is closed does not reach the store.
    ClosedAccountForgotten,
    /// A run that its account ended is taken for one that failed.
    QuotaCostsAttempt,
}

impl Bug {
    pub const ALL: [Self; 25] = [
        Self::FenceOff,
        Self::AckBeforeDurable,
        Self::KeyForgotten,
        Self::DoubleGrant,
        Self::RequestForgotten,
        Self::OldTermAccepted,
        Self::AttemptsForgotten,
        Self::FeedGap,
        Self::DedupByJob,
        Self::NoReaper,
        Self::TopicFenceOff,
        Self::TooManyInFlight,
        Self::PauseIgnored,
        Self::TooManySeats,
        Self::ReserveForgotten,
        Self::ChargedTwice,
        Self::EvictionCostsAttempt,
        Self::ReconsiderLost,
        Self::EffectRenamed,
        Self::EffectLost,
        Self::UncheckedMerge,
        Self::UnannouncedPush,
        Self::AnswerForgotten,
        Self::ClosedAccountForgotten,
        Self::QuotaCostsAttempt,
    ];
}

impl fmt::Display for Bug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

impl FromStr for Bug {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let named = Self::ALL.into_iter().find(|bug| bug.to_string() == text);
        named.ok_or_else(|| {
            let names: Vec<String> = Self::ALL.iter().map(ToString::to_string).collect();
            format!("--bug: there is no bug `{text}`; choose one of {}", names.join(", "))
        })
    }
}
