//! The one function that changes a job's stage. Every store, route, reconciler and test goes through it.
//!
//! It never looks anything up: the job, the command and the time decide alone. A command is safe to repeat:
//! the same one after a lost reply finds its own effect and is answered again without another change.
//! The drawing of the stages stands in [`crate::stage`].

mod claim;
mod eviction;
mod graph;
mod merge;
mod people;
mod request;
mod talk;

pub use graph::{Deps, ParentEnd, Relations, Tally};
pub use merge::{MERGE_QUEUE, MergeAction, MergeOutcome};
pub use request::{RequestChange, RequestNews};

use std::time::Duration;

use thiserror::Error;

use crate::job::{ReviewGate, ShipMode};
use crate::word::words;
use crate::{
    Artifact, Ask, ChargeHow, Checkpoint, DispatchSeq, Epoch, Evict, FactoryId, FailReason, Failure, Job,
    JobResult, LeaseEnd, LeaseEndHow, NewEvent, RequestId, Rev, RunOutcome, RunReport, Setback, Spend, Stage,
    State, TalkError, Timestamp, Usd,
};

/// Who writes as the holder of a lease. Both parts are checked: the epoch fences zombies, the factory keeps a
/// stolen epoch from being of use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    pub factory: FactoryId,
    pub epoch: Epoch,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HolderAction {
    Start,
    Renew {
        lease: Duration,
    },
    /// What the run has used so far, in total. Only ever grows.
    Spend(Spend),
    Checkpoint(Checkpoint),
    /// The work is done and verified; the gates decide where it goes.
    Report(RunReport),
    Fail {
        failure: Failure,
        /// Another attempt may well succeed, and somebody is there who could make it. Where it is not, the manifest may
        /// still ask for one.
        retryable: bool,
    },
    Release {
        checkpoint: Option<Checkpoint>,
    },
    /// A question for people. The same one again finds the first, also where it has its answer by now.
    Ask(Ask),
    /// The engine was given these answers and messages, by their places.
    Delivered(Vec<u64>),
}

words! {
    "action",
    pub enum OperatorAction {
        Ship,
        Requeue,
        Reject,
        Cancel,
    }
}

words! {
    "verdict",
    pub enum Verdict {
        Approve,
        RequestChanges,
        Reject,
    }
}

/// What a reviewer says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    pub verdict: Verdict,
    pub reviewer: String,
    pub comment: Option<String>,
    /// Of the result that was looked at; another one is not judged by it. `None`: whichever is there.
    pub epoch: Option<Epoch>,
    /// The same by its commit.
    pub commit: Option<String>,
    /// Whoever approves knows that the diff does not show everything.
    pub acknowledge_unseen: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// `rev` is what the claimer saw; another revision means that somebody was faster.
    /// `dispatch_seq` is set by an accept: the offer must still be the current one.
    Claim {
        factory: FactoryId,
        request: RequestId,
        rev: Option<Rev>,
        dispatch_seq: Option<DispatchSeq>,
        lease: Duration,
        /// What is reserved from the product's budget; whether it is there is not asked here.
        reserve: Usd,
    },
    Holder {
        holder: Holder,
        actions: Vec<HolderAction>,
    },
    /// The reaper found the lease expired, or its holder asked to let go and silent.
    Expire,
    /// The holder is asked to save its work and let go.
    Evict {
        rev: Rev,
        evict: Evict,
    },
    /// Something that it hangs on has moved.
    Reconsider(Relations),
    /// The dispatcher chose a factory.
    Target {
        rev: Rev,
        factory: FactoryId,
        pickup_deadline: Timestamp,
    },
    /// Shadow mode: the dispatcher would have chosen another factory than the one that claimed it.
    Diverged {
        routed_to: FactoryId,
        claimed_by: FactoryId,
        lag_ms: u64,
    },
    Operator {
        action: OperatorAction,
        reason: Option<String>,
    },
    Review(Judgement),
    /// Somebody wants it reviewed before it goes on.
    RequestReview {
        gate: ReviewGate,
        /// Also where less is asked than the gate that holds asks for.
        may_weaken: bool,
    },
    /// A factory asks for the merge of a job that is shipping.
    TakeMerge {
        factory: FactoryId,
        lease: Duration,
        /// Into a batch of which the factory has the first already: then nobody else goes first.
        joins: bool,
    },
    /// `attempt` is the one that was taken: an older one is no longer heard.
    HoldMerge {
        factory: FactoryId,
        attempt: u32,
        action: MergeAction,
    },
    /// What became of its pull request.
    RequestNews(RequestNews),
    /// A person answers.
    Answer {
        question: u32,
        answer: String,
        by: String,
    },
    /// A person says something to the engine. The same `id` again is the same message.
    Say {
        id: RequestId,
        text: String,
        by: String,
    },
    /// Questions whose deadline has passed get their default, or fail the job.
    CloseQuestions,
    AddArtifact {
        holder: Holder,
        artifact: Artifact,
    },
    RemoveArtifact(Artifact),
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum Refusal {
    /// The writer does not hold the job (any more).
    #[error("fenced: epoch {given} does not hold the job, which is {stage} at epoch {current}")]
    Fenced { given: Epoch, current: Epoch, stage: Stage },
    #[error("a job that is {from} cannot {action}; {remedy}")]
    Illegal { from: Stage, action: &'static str, remedy: &'static str },
    /// Nothing the claimer must understand: it takes the next best job.
    #[error("the job cannot be claimed: {0}")]
    NotClaimable(&'static str),
    #[error("{0} may not review this job; its reviewers are {1}")]
    NotAReviewer(String, String),
    #[error(
        "the gate that holds asks for {quorum} approval(s) from {reviewers}; only an admin may ask for less"
    )]
    WeakerGate { quorum: u32, reviewers: String },
    #[error(
        "the verdict is about the result of run {given}, the job has that of run {current}; look at it first"
    )]
    OtherResult { given: Epoch, current: Epoch },
    #[error("the verdict is about {given}, the result of the job is {current}; look at it first")]
    OtherCommit { given: String, current: String },
    #[error(
        "its diff does not show everything ({0}); look at the branch, and approve with the acknowledgement"
    )]
    Unseen(String),
    #[error("{0}")]
    Talk(#[from] TalkError),
}

/// What becomes of the run that belongs to the current epoch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunChange {
    Open { factory: FactoryId },
    Start,
    Close { outcome: RunOutcome, report: Box<RunReport> },
}

/// What the run that ends is charged for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunCharge {
    pub spend: Spend,
    pub how: ChargeHow,
}

/// What a run was charged too much: its holder reported later what it really cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refund {
    pub usd: Usd,
    /// Those it had not reported yet.
    pub tokens: u64,
    /// Refunded to the periods that it was charged to.
    pub charged_at: Timestamp,
}

/// The job after the command, and what is to be recorded with it in the same transaction.
#[derive(Debug, Clone, PartialEq)]
pub struct Transition {
    pub job: Job,
    /// In order; the first has the seq after the old job's `last_event`.
    pub events: Vec<NewEvent>,
    pub run: Vec<RunChange>,
    /// Set where a lease ended. Zero where nothing was spent.
    pub charge: Option<RunCharge>,
    /// Of the last run, which was charged before.
    pub refund: Option<Refund>,
}

impl Transition {
    fn of(job: &Job) -> Self {
        Self { job: job.clone(), events: Vec::new(), run: Vec::new(), charge: None, refund: None }
    }

    /// A repeated command or a renewal leaves the revision as it was.
    pub fn is_silent(&self) -> bool {
        self.events.is_empty()
    }

    fn enter(&mut self, state: State, event: NewEvent) {
        let (from, to) = (self.job.stage(), state.stage());
        assert!(from.may_become(to), "transition() left its own table: {from} -> {to}");
        self.job.state = state;
        // It succeeded, or its own failure says why it did not.
        if !to.is_live() {
            self.job.setback = None;
        }
        self.note(NewEvent { from: Some(from), to: Some(to), ..event });
        if let State::Shipping { since } = self.job.state {
            self.job.merge = Some(merge::queued(&self.job, since));
        } else if from == Stage::Shipping
            && self.job.merge.as_ref().is_some_and(|merge| merge.due().is_some())
        {
            // Out of the queue by somebody's word: whoever is at it is not heard any more.
            self.job.merge = None;
        }
    }

    fn note(&mut self, event: NewEvent) {
        self.job.last_event = self.job.last_event.next();
        self.events.push(event);
    }

    /// Back to the queue at once, or after a back-off. The epoch rises so that the old holder is fenced.
    fn requeue(&mut self, now: Timestamp, ready_at: Timestamp, event: NewEvent) {
        if self.job.stage().is_held() {
            self.job.epoch = self.job.epoch.next();
        }
        // What is asked has to be answered before anybody can go on.
        let answered_by = self.job.conversation.as_ref().and_then(|talk| talk.waits_until());
        let ready_at = answered_by.map_or(ready_at, |until| until.max(ready_at));
        self.enter(State::Queued { since: now, ready_at, target: None }, event);
    }

    /// One more attempt is used up: try again after a back-off, or give the job up.
    fn use_up_attempt(&mut self, failure: Failure, lost: Option<&FactoryId>, now: Timestamp) {
        self.job.attempts += 1;
        let attempts = self.job.attempts;
        let count = (attempts, self.job.spec.retry.attempts());
        if self.job.spec.retry.exhausted(attempts) {
            let event = NewEvent::attempt_failed(&failure, count, lost, None);
            self.enter(State::Failed { failure: failure.clone() }, event);
            self.enter(State::DeadLetter { failure }, NewEvent::dead_lettered(attempts));
        } else {
            // A holder that died, or that lacks something, says nothing against the job: it goes on as soon as somebody
            // has a seat.
            let of_the_machine = failure.reason.is_of_the_machine();
            let pause = if of_the_machine || failure.reason == FailReason::LeaseExpired {
                Duration::ZERO
            } else {
                self.job.spec.retry.backoff(attempts)
            };
            let ready_at = now.plus(pause);
            let event = NewEvent::attempt_failed(&failure, count, lost, Some(ready_at));
            let mut unfit = self.job.setback.take().map(|before| before.unfit).unwrap_or_default();
            unfit.extend(self.job.last_factory.clone().filter(|_| of_the_machine));
            self.job.setback = Some(Setback { failure, unfit });
            self.requeue(now, ready_at, event);
        }
    }

    /// The holder's run is over, and says itself what it cost. Before the lease goes.
    fn close_run(&mut self, outcome: RunOutcome, report: RunReport) {
        self.end_run(outcome, report, ChargeHow::Measured);
    }

    /// The same where the holder went silent. One that was at work may have spent all that it was allowed to, and nobody
    /// will ever tell: it is charged in full, so that no crash can lead past a limit.
    fn abandon_run(&mut self, outcome: RunOutcome) {
        self.end_run(outcome, RunReport::default(), ChargeHow::Assumed);
    }

    fn end_run(&mut self, outcome: RunOutcome, mut report: RunReport, how: ChargeHow) {
        let building = self.job.stage() == Stage::Building;
        let lease = self.job.lease().expect("a run ends before its lease does");
        let reported =
            Spend { usd: report.cost.unwrap_or_default(), tokens: report.tokens.unwrap_or_default() };
        let known = lease.spent.max(reported.bounded());
        let reserved = lease.reserved;
        self.charge = Some(if how == ChargeHow::Assumed && building && reserved > known.usd {
            RunCharge { spend: Spend { usd: reserved, ..known }, how }
        } else {
            RunCharge { spend: known, how: ChargeHow::Measured }
        });
        report.cost = report.cost.or((!known.usd.is_zero()).then_some(known.usd));
        report.tokens = report.tokens.or((known.tokens > 0).then_some(known.tokens));
        self.run.push(RunChange::Close { outcome, report: Box::new(report) });
    }
}

/// What the job becomes, or why not. Nothing changes on a refusal.
pub fn transition(job: &Job, command: &Command, now: Timestamp) -> Result<Transition, Refusal> {
    let mut next = Transition::of(job);
    match command {
        Command::Claim { factory, request, rev, dispatch_seq, lease, reserve } => {
            claim::check_claim(job, factory, request, *rev, *dispatch_seq, now)?;
            claim::claim(&mut next, factory, request, *lease, *reserve, now);
        }
        Command::Holder { holder, actions } => {
            // Asked first, so that a zombie is fenced even when it has nothing to write.
            if holds(job, holder) {
                for action in actions {
                    hold(&mut next, holder, action, now)?;
                }
            } else if let Some(spent) = last_bill(job, holder, actions) {
                people::report_cost(&mut next, spent);
            } else if !is_replay(job, holder, actions) {
                return Err(fenced(job, holder));
            }
        }
        Command::Expire => expire(&mut next, now),
        Command::Evict { rev, evict } => eviction::ask(&mut next, *rev, *evict)?,
        Command::Reconsider(relations) => graph::reconsider(&mut next, relations, now),
        Command::Target { rev, factory, pickup_deadline } => {
            claim::target(&mut next, *rev, factory, *pickup_deadline, now)?;
        }
        Command::Diverged { .. } if job.stage().is_terminal() => {}
        Command::Diverged { routed_to, claimed_by, lag_ms } => {
            next.note(NewEvent::diverged(routed_to, claimed_by, *lag_ms));
        }
        Command::Operator { action, reason } => people::operate(&mut next, *action, reason.as_deref(), now)?,
        Command::TakeMerge { factory, lease, joins } => {
            merge::take(&mut next, factory, *lease, *joins, now)?;
        }
        Command::HoldMerge { factory, attempt, action } => {
            merge::hold(&mut next, factory, *attempt, action, now)?;
        }
        Command::RequestNews(news) => request::take_news(&mut next, news, now)?,
        Command::AddArtifact { holder, artifact } => {
            check_holder(job, holder)?;
            next.note(NewEvent::artifact_added(artifact));
        }
        Command::Answer { question, answer, by } => talk::answer(&mut next, *question, answer, by, now)?,
        Command::Say { id, text, by } => talk::say(&mut next, id, text, by, now)?,
        Command::CloseQuestions => talk::close_due(&mut next, now),
        Command::RemoveArtifact(artifact) => next.note(NewEvent::artifact_removed(artifact)),
        Command::Review(judgement) => people::review(&mut next, judgement, now)?,
        Command::RequestReview { gate, may_weaken } => {
            people::request_review(&mut next, gate, *may_weaken)?;
        }
    }
    if !next.job.stage().is_live() {
        talk::withdraw(&mut next.job, now);
    }
    if !next.is_silent() {
        next.job.rev = job.rev.next();
        // What is tidied up behind a job that is over does not make it end later.
        let tidies_up = matches!(command, Command::RemoveArtifact(_) | Command::Holder { .. });
        if !(job.stage().is_terminal() && tidies_up) {
            next.job.updated_at = now;
        }
    }
    Ok(next)
}

fn fenced(job: &Job, holder: &Holder) -> Refusal {
    Refusal::Fenced { given: holder.epoch, current: job.epoch, stage: job.stage() }
}

/// For what a holder writes outside of the store: refuses whoever does not hold the job now.
pub fn check_holder(job: &Job, holder: &Holder) -> Result<(), Refusal> {
    if holds(job, holder) { Ok(()) } else { Err(fenced(job, holder)) }
}

fn holds(job: &Job, holder: &Holder) -> bool {
    holder.epoch == job.epoch && job.lease().is_some_and(|lease| lease.factory == holder.factory)
}

/// The lease is over, and the same holder says again what ended it: the whole command was applied then, since
/// its last action is what closed the lease, and is answered again.
fn is_replay(job: &Job, holder: &Holder, actions: &[HolderAction]) -> bool {
    let how = match actions {
        [.., HolderAction::Report(_)] => LeaseEndHow::Reported,
        [.., HolderAction::Fail { .. }] => LeaseEndHow::Failed,
        [.., HolderAction::Release { .. }] => LeaseEndHow::Released,
        // Not a write: the holder learns that an operator cancelled the job (see `was_cancelled`).
        [HolderAction::Renew { .. }] | [HolderAction::Spend(_), HolderAction::Renew { .. }] => {
            LeaseEndHow::Cancelled
        }
        _ => return false,
    };
    ended_so(job, holder, how)
}

fn ended_so(job: &Job, holder: &Holder, how: LeaseEndHow) -> bool {
    job.last_factory.as_ref() == Some(&holder.factory)
        && job.lease_end.is_some_and(|end| (end.epoch, end.how) == (holder.epoch, how))
}

/// The one word that the holder of a cancelled run still has: it let go, and says what the run cost.
fn last_bill(job: &Job, holder: &Holder, actions: &[HolderAction]) -> Option<Spend> {
    match actions {
        [HolderAction::Spend(spent), HolderAction::Release { .. }] => {
            ended_so(job, holder, LeaseEndHow::Cancelled).then_some(*spent)
        }
        _ => None,
    }
}

fn hold(
    next: &mut Transition,
    holder: &Holder,
    action: &HolderAction,
    now: Timestamp,
) -> Result<(), Refusal> {
    let job = &next.job;
    if !holds(job, holder) {
        // An earlier action of the same command gave the lease up.
        return Err(fenced(job, holder));
    }
    match action {
        HolderAction::Start => {
            if let State::Assigned { lease } = &job.state {
                let lease = lease.clone();
                next.enter(State::Building { lease }, NewEvent::started(&holder.factory));
                next.run.push(RunChange::Start);
            }
        }
        HolderAction::Renew { lease: ttl } => {
            if let State::Assigned { lease } | State::Building { lease } = &mut next.job.state {
                // Never shorter than before: a delayed renewal cannot take time away from a newer one.
                lease.expires_at = lease.expires_at.max(now.plus(*ttl));
            }
        }
        HolderAction::Spend(spent) => {
            if let State::Assigned { lease } | State::Building { lease } = &mut next.job.state {
                lease.spent = lease.spent.max(spent.bounded());
                // An overrun is known to everybody at once, not when the job ends.
                lease.reserved = lease.reserved.max(lease.spent.usd);
            }
        }
        HolderAction::Checkpoint(checkpoint) => {
            if job.checkpoint.as_ref() != Some(checkpoint) {
                next.job.checkpoint = Some(checkpoint.clone());
                next.note(NewEvent::checkpointed());
            }
        }
        HolderAction::Report(report) => {
            if job.stage() != Stage::Building {
                return Err(Refusal::Illegal {
                    from: job.stage(),
                    action: "report success",
                    remedy: "start it first: PATCH with stage building",
                });
            }
            next.close_run(RunOutcome::Succeeded, report.clone());
            end_lease(next, holder, LeaseEndHow::Reported);
            let epoch = holder.epoch;
            let handed_over = report.branch.clone().zip(report.commit.clone());
            // In the order of the manifest, which is that of the merges; what the job does not work on is not merged.
            let commits =
                next.job.spec.repos().filter_map(|repo| report.repos.iter().find(|c| c.repo == repo));
            let repos = commits.cloned().collect();
            let (base, unseen) = (report.base.clone(), report.unseen.clone());
            next.job.result =
                handed_over.map(|(branch, commit)| JobResult { epoch, branch, commit, base, unseen, repos });
            if let Some(merge) = next.job.merge.as_mut() {
                merge.part = 0;
            }
            let state = after_work(&next.job, now);
            let event = NewEvent::reported(state.stage());
            next.enter(state, event);
        }
        HolderAction::Fail { failure, retryable } => {
            let unanswered = talk::unanswered(job, holder.epoch);
            let (failure, retryable) = match &unanswered {
                Some(failure) => (failure, &false),
                None => (failure, retryable),
            };
            end_lease(next, holder, LeaseEndHow::Failed);
            next.close_run(RunOutcome::Failed { failure: failure.clone() }, RunReport::default());
            if *retryable || next.job.spec.retry_on.contains(&failure.reason) {
                next.use_up_attempt(failure.clone(), None, now);
            } else {
                next.job.attempts += 1;
                let event = NewEvent::failed(failure, next.job.attempts);
                next.enter(State::Failed { failure: failure.clone() }, event);
            }
        }
        HolderAction::Release { checkpoint } => {
            if checkpoint.is_some() {
                next.job.checkpoint.clone_from(checkpoint);
            }
            end_lease(next, holder, LeaseEndHow::Released);
            if let Some(evict) = job_evict(next) {
                next.close_run(RunOutcome::Preempted, RunReport::default());
                eviction::let_go(next, evict, now);
            } else {
                next.close_run(RunOutcome::Released, RunReport::default());
                let event = match next.job.open_questions().next() {
                    Some(question) => NewEvent::parked(&holder.factory, question),
                    None => NewEvent::released(&holder.factory),
                };
                next.requeue(now, now, event);
            }
        }
        HolderAction::Ask(ask) => talk::ask(next, ask, now)?,
        HolderAction::Delivered(seqs) => talk::delivered(next, seqs, now),
    }
    Ok(())
}

fn job_evict(next: &Transition) -> Option<Evict> {
    next.job.lease().and_then(|lease| lease.evict)
}

fn end_lease(next: &mut Transition, holder: &Holder, how: LeaseEndHow) {
    next.job.lease_end = Some(LeaseEnd { epoch: holder.epoch, how, assumed: None });
}

/// The renewal of a cancelled job's last holder changes nothing; the answer tells it to stop.
pub fn was_cancelled(job: &Job, epoch: Epoch) -> bool {
    job.lease_end.is_some_and(|end| (end.epoch, end.how) == (epoch, LeaseEndHow::Cancelled))
}

/// Where the gates send a job whose work is done.
fn after_work(job: &Job, now: Timestamp) -> State {
    if job.gate().quorum > 0 { State::Review { approvals: Vec::new() } } else { after_review(job, now) }
}

fn after_review(job: &Job, now: Timestamp) -> State {
    match job.spec.ship {
        ShipMode::Manual => State::Testing,
        ShipMode::Auto => merge::shipping(job, now),
    }
}

fn expire(next: &mut Transition, now: Timestamp) {
    let Some(lease) = next.job.lease().filter(|lease| lease.due() <= now) else {
        return;
    };
    let holder = lease.factory.clone();
    if let Some(evict) = lease.evict.filter(|_| lease.expires_at > now) {
        next.abandon_run(RunOutcome::Preempted);
        return eviction::let_go(next, evict, now);
    }
    let detail = format!("{holder} did not renew its lease in time");
    next.abandon_run(RunOutcome::Expired);
    let failure = Failure { reason: FailReason::LeaseExpired, detail: Some(detail) };
    next.use_up_attempt(failure, Some(&holder), now);
}
