//! What people and their checks do to the pull request of a job that waits for it.
//!
//! The same news may come by several ways and more than once, and late: what is not about the result that waits is
//! refused, and what was heard before changes nothing.

use super::{Refusal, Transition, Verdict, merge, people};
use crate::job::{MergeFeedback, OpenRequest};
use crate::{FailReason, MergeState, NewEvent, ReviewNote, Stage, State, Timestamp, limits};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestNews {
    /// The result that it is about: the commit that the request shows, or that is among those that it shows.
    pub about: String,
    pub change: RequestChange,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestChange {
    /// It is there, and shows the result.
    Opened { number: u64, url: String },
    /// It cannot be opened, in the forge's words.
    NotOpened { detail: String },
    /// Somebody merged it, as this commit of this branch.
    Merged { commit: String, into: String },
    /// Somebody closed it without merging it.
    Closed { by: Option<String> },
    /// `id` tells it from everything else that was said there.
    Said { id: String, by: String, verdict: Option<Verdict>, words: String },
    /// All of them are done.
    Checks { id: String, passed: bool, detail: String },
}

/// Who is named as the reviewer of a result whose checks failed on the forge.
const CHECKS: &str = "checks";

pub(super) fn take_news(next: &mut Transition, news: &RequestNews, now: Timestamp) -> Result<(), Refusal> {
    let RequestNews { about, change } = news;
    let is_of_result = next.job.merging().is_some_and(|merging| merging.commit == about);
    let known = next.job.merge.as_mut().and_then(|merge| Some((&merge.state, merge.request.as_mut()?)));
    let Some((state, request)) = known.filter(|_| is_of_result) else {
        return Err(Refusal::NotClaimable("it has no pull request that shows this commit"));
    };
    if !matches!(state, MergeState::Proposed { .. }) {
        return late_news(next, change, now);
    }
    match change {
        RequestChange::Opened { number, url } => {
            let opened = Some(OpenRequest { number: *number, url: url.clone() });
            if request.opened != opened {
                request.opened = opened;
                next.note(NewEvent::request_opened(*number, url));
            }
        }
        RequestChange::NotOpened { detail } => merge::fail(next, FailReason::MergeRefused, detail),
        RequestChange::Merged { commit, into } => merge::landed(next, commit, into, None, now),
        RequestChange::Closed { by } => {
            let url = request.opened.as_ref().map_or("it", |opened| opened.url.as_str());
            let by = by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
            let detail = format!("{url} was closed{by} without being merged");
            merge::fail(next, FailReason::RequestClosed, &detail);
        }
        RequestChange::Said { id, by, verdict, words } => {
            if request.see(id) {
                next.note(NewEvent::request_comment(by, *verdict, words));
                if *verdict == Some(Verdict::RequestChanges) && wants_changes(next) {
                    send_back(next, by, words, now);
                }
            }
        }
        RequestChange::Checks { id, passed, detail } => {
            if request.see(id) {
                next.note(NewEvent::request_checks(*passed, detail));
                if !passed && wants_changes(next) && may_redo(next) {
                    send_back(
                        next,
                        CHECKS,
                        &format!("The checks of its pull request failed.\n\n{detail}"),
                        now,
                    );
                }
            }
        }
    }
    Ok(())
}

/// It does not wait for its request any more. What was closed, or could not be opened, may be merged all the same.
fn late_news(next: &mut Transition, change: &RequestChange, now: Timestamp) -> Result<(), Refusal> {
    let merge_failed = merge::can_be_shipped_again(&next.job);
    let request = next.job.merge.as_ref().and_then(|merge| merge.request.as_ref());
    match (change, next.job.merge.as_ref().map(|merge| &merge.state)) {
        // Heard before.
        (RequestChange::Merged { .. }, Some(MergeState::Done { .. })) => Ok(()),
        (RequestChange::Said { id, .. } | RequestChange::Checks { id, .. }, _)
            if request.is_some_and(|request| request.has_seen(id)) =>
        {
            Ok(())
        }
        (RequestChange::Closed { .. } | RequestChange::NotOpened { .. }, _) if merge_failed => Ok(()),
        (RequestChange::Merged { commit, into }, _) if merge_failed => {
            next.enter(State::Shipping { since: now }, NewEvent::merged_after_all());
            merge::landed(next, commit, into, None, now);
            Ok(())
        }
        _ => Err(Refusal::NotClaimable("it does not wait for a pull request")),
    }
}

fn wants_changes(next: &Transition) -> bool {
    next.job.spec.merge.feedback == Some(MergeFeedback::Changes)
}

/// A person who asks again wants it again; checks that keep failing are somebody's to look at.
fn may_redo(next: &mut Transition) -> bool {
    let Some(merge) = next.job.merge.as_mut().filter(|merge| merge.redos < merge::REDOS) else {
        return false;
    };
    merge.redos += 1;
    true
}

/// To another run, as a review would send it, which goes on from what is shown.
fn send_back(next: &mut Transition, by: &str, words: &str, now: Timestamp) {
    debug_assert_eq!(next.job.stage(), Stage::Shipping);
    if let Some(merge) = next.job.merge.as_mut() {
        merge.state = MergeState::SentBack { detail: words.to_owned() };
    }
    let epoch = next.job.result.as_ref().map_or(next.job.epoch, |result| result.epoch);
    next.job.reviews.push(ReviewNote {
        reviewer: by.to_owned(),
        verdict: Verdict::RequestChanges,
        comment: (!words.is_empty()).then(|| words.to_owned()),
        at: now,
        epoch,
    });
    let old = next.job.reviews.len().saturating_sub(limits::REVIEW_NOTES);
    next.job.reviews.drain(..old);
    next.job.attempts = 0;
    next.job.enqueued_at = now;
    people::resume_from_result(&mut next.job);
    next.requeue(now, now, NewEvent::request_sent_back(by));
}
