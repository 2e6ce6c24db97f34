//! The way of a result into its branch: taken by one factory, announced before it is pushed, settled.
//!
//! Whoever takes the merge over raises its attempt, and the one before is no longer heard. What it may have pushed after
//! it was heard the last time is exactly what it had announced (`MergeState::Pushing`), and that is what the next one
//! finishes: so nothing is pushed that was not decided, and nothing is decided against what may have been pushed.

use std::time::Duration;

use super::{Refusal, Transition};
use crate::job::{ConflictPolicy, MergeCandidate, MergedRepo, Merging, PullRequest};
use crate::{
    FactoryId, FailReason, Failure, Job, Merge, MergeState, NewEvent, RepoCommit, ReviewNote, Stage, State,
    Timestamp, Verdict, backoff, limits,
};

/// Whoever ran the job has its repository at hand and goes first.
const HEAD_START: Duration = Duration::from_secs(10);
/// A repository that says no is not going to say yes often.
const REFUSALS: u32 = 5;
/// One that cannot be reached may be away for an hour.
const OUTAGES: u32 = 16;
/// With a candidate under way only a look at the branch says what became of it, so that is tried for about a day.
const OUTAGES_ANNOUNCED: u32 = 150;
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(10);
/// How often a job is sent back to be redone.
pub(super) const REDOS: u32 = 2;
/// Who is named as the reviewer of what is sent back.
pub const MERGE_QUEUE: &str = "merge-queue";

/// What the factory that holds a merge does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MergeAction {
    Renew {
        lease: Duration,
    },
    /// The candidate passed; it is going to be pushed.
    Push {
        candidate: MergeCandidate,
        lease: Duration,
    },
    Settle(MergeOutcome),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MergeOutcome {
    /// The result is in the branch.
    Merged {
        commit: String,
        into: String,
        note: Option<String>,
    },
    Conflict {
        detail: String,
    },
    /// On the merged tree.
    ChecksFailed {
        detail: String,
    },
    /// The repository said no, in its own words.
    Refused {
        detail: String,
    },
    /// Nobody knows whether a push arrived.
    Unreachable {
        detail: String,
    },
    /// Somebody else moved the branch: the candidate is on a tip that is no longer there.
    Outrun,
    /// The result is on the branch of its pull request, which is to be merged into `into`.
    Proposed {
        commit: String,
        into: String,
        forge: String,
        repo: String,
        branch: String,
    },
}

const NOTHING_TO_MERGE: Refusal = Refusal::NotClaimable("there is nothing to merge now");
const NOT_YOURS: Refusal = Refusal::NotClaimable("the merge is not this factory's any more");

pub(super) fn take(
    next: &mut Transition,
    factory: &FactoryId,
    lease: Duration,
    joins: bool,
    now: Timestamp,
) -> Result<(), Refusal> {
    let goes_first = joins || next.job.last_factory.as_ref() == Some(factory);
    let waited = now.since(next.job.updated_at);
    let merge = next.job.merge.as_mut().ok_or(NOTHING_TO_MERGE)?;
    // Whoever has it asks again after a lost reply or a restart: what it had before is then no longer heard.
    let has_it = merge.holder() == Some(factory);
    if merge.due().is_none_or(|due| due > now && !has_it) {
        return Err(NOTHING_TO_MERGE);
    }
    if merge.attempt == 0 && !goes_first && waited < HEAD_START {
        return Err(Refusal::NotClaimable("the factory that ran the job goes first"));
    }
    merge.attempt += 1;
    let until = now.plus(lease);
    let factory = factory.clone();
    merge.state = match &merge.state {
        MergeState::Pushing { candidate, .. } => {
            MergeState::Pushing { factory: Some(factory.clone()), until, candidate: candidate.clone() }
        }
        _ => MergeState::Taken { factory: factory.clone(), until },
    };
    let attempt = merge.attempt;
    next.note(NewEvent::merge_started(&factory, attempt));
    Ok(())
}

pub(super) fn hold(
    next: &mut Transition,
    factory: &FactoryId,
    attempt: u32,
    action: &MergeAction,
    now: Timestamp,
) -> Result<(), Refusal> {
    let merge = next.job.merge.as_mut().ok_or(NOT_YOURS)?;
    if merge.attempt != attempt || merge.holder() != Some(factory) {
        let MergeAction::Settle(said) = action else { return Err(NOT_YOURS) };
        // Said again after a lost reply.
        let again = match (&merge.state, said) {
            (MergeState::Done { commit: known, .. }, MergeOutcome::Merged { commit, .. })
            | (MergeState::Proposed { commit: known, .. }, MergeOutcome::Proposed { commit, .. }) => {
                known == commit
            }
            (MergeState::Waiting { .. }, MergeOutcome::Merged { commit, .. }) => {
                merge.attempt == attempt && merge.merged.last().is_some_and(|last| last.commit == *commit)
            }
            _ => false,
        };
        return if again { Ok(()) } else { Err(NOT_YOURS) };
    }
    match (action, &mut merge.state) {
        (
            MergeAction::Renew { lease },
            MergeState::Taken { until, .. } | MergeState::Pushing { until, .. },
        ) => {
            *until = (*until).max(now.plus(*lease));
            Ok(())
        }
        (MergeAction::Push { candidate, lease }, MergeState::Taken { .. }) => {
            merge.state = MergeState::Pushing {
                factory: Some(factory.clone()),
                until: now.plus(*lease),
                candidate: candidate.clone(),
            };
            next.note(NewEvent::merge_checked(candidate));
            Ok(())
        }
        // Said again after a lost reply.
        (MergeAction::Push { candidate, .. }, MergeState::Pushing { candidate: known, .. })
            if candidate == known =>
        {
            Ok(())
        }
        (MergeAction::Settle(outcome), _) => settle(next, outcome, now),
        _ => Err(Refusal::NotClaimable("another candidate is being pushed")),
    }
}

fn settle(next: &mut Transition, outcome: &MergeOutcome, now: Timestamp) -> Result<(), Refusal> {
    let place = place(&next.job);
    let told = |detail: &str| format!("{place}{detail}");
    let Some(merge) = next.job.merge.as_mut() else { return Err(NOT_YOURS) };
    let announced = match &merge.state {
        MergeState::Pushing { candidate, .. } => Some(candidate.clone()),
        _ => None,
    };
    match outcome {
        MergeOutcome::Merged { commit, into, note } => landed(next, commit, into, note.as_deref(), now),
        // What is announced may be in the branch by now: only a look at the branch says what became of it.
        MergeOutcome::Conflict { .. } | MergeOutcome::ChecksFailed { .. } | MergeOutcome::Proposed { .. }
            if announced.is_some() =>
        {
            return Err(Refusal::NotClaimable("a candidate that passed is being pushed"));
        }
        MergeOutcome::Proposed { commit, into, forge, repo, branch } => {
            let same = merge.request.take().filter(|known| (&known.forge, &known.repo) == (forge, repo));
            merge.request = Some(same.unwrap_or_else(|| PullRequest {
                forge: forge.clone(),
                repo: repo.clone(),
                branch: branch.clone(),
                opened: None,
                seen: Vec::new(),
            }));
            merge.state = MergeState::Proposed { commit: commit.clone(), into: into.clone() };
            next.note(NewEvent::merge_proposed(commit, into, branch));
        }
        MergeOutcome::Conflict { detail } => send_back(next, FailReason::MergeConflict, &told(detail), now),
        MergeOutcome::ChecksFailed { detail } => {
            send_back(next, FailReason::MergeChecksFailed, &told(detail), now);
        }
        MergeOutcome::Refused { detail } => {
            merge.failures += 1;
            if merge.failures >= REFUSALS {
                fail(next, FailReason::MergeRefused, &told(detail));
            } else {
                try_later(next, None, &told(detail), now);
            }
        }
        MergeOutcome::Unreachable { detail } => {
            merge.failures += 1;
            let most = if announced.is_some() { OUTAGES_ANNOUNCED } else { OUTAGES };
            if merge.failures >= most {
                fail(next, FailReason::MergeRefused, &told(detail));
            } else {
                try_later(next, announced, &told(detail), now);
            }
        }
        // No push of that candidate can succeed any more, whoever tries.
        MergeOutcome::Outrun => {
            merge.state = MergeState::Waiting { due: now, detail: None };
            next.note(NewEvent::merge_outrun());
        }
    }
    Ok(())
}

/// Of several repositories: which one it is about, and which have their part already.
fn place(job: &Job) -> String {
    let (Some(Merging { repo, .. }), Some(merge)) = (job.merging(), &job.merge) else { return String::new() };
    if job.spec.more_repos.is_empty() {
        return String::new();
    }
    let merged = merge.merged.iter().map(|MergedRepo { repo, commit, into, .. }| {
        format!("{repo} as {} in {into}", commit.get(..12).unwrap_or(commit))
    });
    match merged.collect::<Vec<_>>().join(", ").as_str() {
        "" => format!("{repo}: "),
        merged => format!("{repo} (merged already: {merged}): "),
    }
}

/// A candidate that may have arrived stays announced.
fn try_later(next: &mut Transition, announced: Option<MergeCandidate>, detail: &str, now: Timestamp) {
    let Some(merge) = next.job.merge.as_mut() else { return };
    let failures = merge.failures;
    let due = now.plus(backoff::doubling(FIRST_PAUSE, failures, LONGEST_PAUSE));
    merge.state = match announced {
        Some(candidate) => MergeState::Pushing { factory: None, until: due, candidate },
        None => MergeState::Waiting { due, detail: Some(detail.to_owned()) },
    };
    next.note(NewEvent::merge_failed(failures, Some(due), detail));
}

/// It is in. Of a result in several repositories the next one has its turn then, and the job is shipped with the last.
pub(super) fn landed(next: &mut Transition, commit: &str, into: &str, note: Option<&str>, now: Timestamp) {
    let Job { spec, result, merge: Some(merge), .. } = &mut next.job else { return };
    let repos = result.as_ref().map(|result| result.repos.as_slice()).unwrap_or_default();
    let several = !spec.more_repos.is_empty();
    if let Some(RepoCommit { repo, .. }) = repos.get(merge.part) {
        let (repo, commit, into) = (repo.clone(), commit.to_owned(), into.to_owned());
        merge.merged.push(MergedRepo { repo, commit, into, note: note.map(str::to_owned) });
    }
    let repo = repos.get(merge.part).map(|part| part.repo.clone());
    let event = NewEvent::merged(repo.as_deref(), commit, into, note);
    if several && merge.part + 1 < repos.len() {
        merge.part += 1;
        merge.failures = 0;
        merge.request = None;
        merge.state = MergeState::Waiting { due: now, detail: None };
        next.note(event);
        return;
    }
    let (commit, into) = (commit.to_owned(), into.to_owned());
    merge.state =
        MergeState::Done { commit: commit.clone(), into: Some(into.clone()), note: note.map(str::to_owned) };
    next.note(event);
    next.enter(State::Shipped, NewEvent::shipped(&commit, &into));
}

/// To another run, which is given the facts; or to somebody who looks at it.
fn send_back(next: &mut Transition, reason: FailReason, detail: &str, now: Timestamp) {
    let Job { spec, merge: Some(merge), .. } = &mut next.job else { return };
    if spec.on_conflict == ConflictPolicy::Fail || merge.redos >= REDOS {
        return fail(next, reason, detail);
    }
    merge.redos += 1;
    merge.state = MergeState::SentBack { detail: detail.to_owned() };
    let epoch = next.job.result.as_ref().map_or(next.job.epoch, |result| result.epoch);
    let comment = facts(&next.job, reason, detail);
    next.job.reviews.push(ReviewNote {
        reviewer: MERGE_QUEUE.to_owned(),
        verdict: Verdict::RequestChanges,
        comment: Some(comment),
        at: now,
        epoch,
    });
    let old = next.job.reviews.len().saturating_sub(limits::REVIEW_NOTES);
    next.job.reviews.drain(..old);
    // On the branch as it is now: what was made on an older one is what does not fit.
    next.job.checkpoint = None;
    next.job.attempts = 0;
    next.job.enqueued_at = now;
    next.requeue(now, now, NewEvent::merge_sent_back(reason, detail));
}

/// For whoever does it again: the earlier work is still there to be taken from.
fn facts(job: &Job, reason: FailReason, detail: &str) -> String {
    let earlier = job.result.as_ref().map_or_else(String::new, |result| {
        let commits = match result.repos.as_slice() {
            [] => format!("commit {}", result.commit),
            several => {
                let commits =
                    several.iter().map(|RepoCommit { repo, commit, .. }| format!("{commit} in {repo}"));
                commits.collect::<Vec<_>>().join(", ")
            }
        };
        format!("\n\nThe earlier result is {commits}, which `git show` and `git cherry-pick` find here.")
    });
    let what = match reason {
        FailReason::MergeConflict => "conflicts with what has been merged since",
        _ => "passes alone, but not together with what has been merged since",
    };
    format!("The result of the last run {what}. Do it again on the branch as it is now.\n\n{detail}{earlier}")
}

pub(super) fn fail(next: &mut Transition, reason: FailReason, detail: &str) {
    if let Some(merge) = next.job.merge.as_mut() {
        merge.state = MergeState::SentBack { detail: detail.to_owned() };
    }
    let failure = Failure { reason, detail: Some(detail.to_owned()) };
    let event = NewEvent::merge_given_up(&failure);
    next.enter(State::Failed { failure }, event);
}

/// Where the word to ship leads: into the queue of its branch, or straight to the end where there is nothing to merge.
pub(super) fn shipping(job: &Job, now: Timestamp) -> State {
    if job.result.is_some() && job.spec.repo.is_some() {
        State::Shipping { since: now }
    } else {
        State::Shipped
    }
}

/// A job that enters the queue.
pub(super) fn queued(job: &Job, since: Timestamp) -> Merge {
    let redos = job.merge.as_ref().map_or(0, |merge| merge.redos);
    let request = job.merge.as_ref().and_then(|merge| merge.request.clone());
    let (part, merged) = match &job.merge {
        Some(merge) => (merge.part, merge.merged.clone()),
        None => Default::default(),
    };
    Merge {
        attempt: 0,
        failures: 0,
        redos,
        part,
        merged,
        request,
        state: MergeState::Waiting { due: since, detail: None },
    }
}

/// Whether the word to ship is enough for a job that failed: its result is there, and only the merge did not work.
pub(super) fn can_be_shipped_again(job: &Job) -> bool {
    job.stage() == Stage::Failed && job.failure().is_some_and(|failure| failure.reason.is_of_a_merge())
}
