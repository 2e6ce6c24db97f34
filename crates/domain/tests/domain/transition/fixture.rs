//! Jobs in every stage, and commands as their lawful senders would send them.

use std::time::Duration;

use giga_domain::job::{BudgetCaps, DepsMode, FailurePolicy, JobKind, RetryPolicy, ReviewGate, ShipMode};
use giga_domain::{
    Ask, AskPolicy, CapabilitySet, Checkpoint, Command, DispatchSeq, Epoch, EventSeq, Evict, FactoryId,
    FailReason, Failure, Holder, HolderAction, Job, JobId, JobSpec, Judgement, Lease, OperatorAction,
    Priority, RequestId, Rev, RunReport, Spend, Stage, State, Timestamp, Usd, Verdict, transition,
};

pub(crate) const LEASE: Duration = Duration::from_secs(30);
pub(crate) const NOW: Timestamp = Timestamp::from_millis(1_800_000_000_000);

pub(crate) fn factory(name: &str) -> FactoryId {
    name.parse().expect("a factory id")
}

pub(crate) fn request(name: &str) -> RequestId {
    name.parse().expect("a request id")
}

pub(crate) fn spec() -> JobSpec {
    JobSpec {
        name: "job".to_owned(),
        kind: JobKind::Agent,
        topic: None,
        priority: Priority::Normal,
        repo: None,
        more_repos: Vec::new(),
        engine: None,
        capabilities: CapabilitySet::new(),
        deps: Vec::new(),
        deps_mode: DepsMode::All,
        parent: None,
        on_failure: FailurePolicy::FailFast,
        base: None,
        target: None,
        merge: giga_domain::job::MergeSettings::default(),
        on_conflict: giga_domain::job::ConflictPolicy::Redo,
        budget: BudgetCaps::default(),
        retry: RetryPolicy { max: 3, backoff_ms: 1_000 },
        retry_on: Vec::new(),
        review: ReviewGate { quorum: 1, reviewers: Vec::new() },
        ship: ShipMode::Manual,
        permissions: None,
        ask: AskPolicy::default(),
        concurrency: None,
        run_at: None,
        idempotency_key: None,
    }
}

pub(crate) fn failure(reason: FailReason) -> Failure {
    Failure { reason, detail: Some("it broke".to_owned()) }
}

/// Held by factory `a` at epoch 7 where the stage is held.
pub(crate) fn job_in(stage: Stage) -> Job {
    let lease = Lease {
        factory: factory("a"),
        request: request("first"),
        granted_at: NOW,
        expires_at: NOW.plus(LEASE),
        reserved: Usd::ZERO,
        spent: Spend::default(),
        evict: None,
    };
    let failure = failure(FailReason::VerifyFailed);
    let state = match stage {
        Stage::Queued => State::Queued { since: NOW, ready_at: NOW, target: None },
        Stage::Review => State::Review { approvals: Vec::new() },
        Stage::Shipping => State::Shipping { since: NOW },
        Stage::Failed => State::Failed { failure },
        Stage::DeadLetter => State::DeadLetter { failure },
        Stage::Cancelled => State::Cancelled { reason: None },
        stage => State::of(stage, stage.is_held().then_some(lease)).expect("a payload that is made up here"),
    };
    let product = "demo".parse().expect("a product id");
    Job {
        rev: Rev(11),
        epoch: Epoch(7),
        last_event: EventSeq(20),
        dispatch_seq: DispatchSeq(2),
        last_factory: stage.is_held().then(|| factory("a")),
        ..Job::new(JobId::from_parts(NOW, 1), product, spec(), state, NOW)
    }
}

pub(crate) fn claim(who: &str, asked: &str) -> Command {
    Command::Claim {
        factory: factory(who),
        request: request(asked),
        rev: None,
        dispatch_seq: None,
        lease: LEASE,
        reserve: Usd::ZERO,
    }
}

pub(crate) fn holder(who: &str, epoch: u64, actions: Vec<HolderAction>) -> Command {
    Command::Holder { holder: Holder { factory: factory(who), epoch: Epoch(epoch) }, actions }
}

pub(crate) fn operator(action: OperatorAction) -> Command {
    Command::Operator { action, reason: Some("because".to_owned()) }
}

pub(crate) fn review(verdict: Verdict, reviewer: &str) -> Command {
    Command::Review(Judgement {
        verdict,
        reviewer: reviewer.to_owned(),
        comment: None,
        epoch: None,
        commit: None,
        acknowledge_unseen: false,
    })
}

/// Another job needs the seat; there is time until half of the lease.
pub(crate) fn evict(rev: Rev) -> Command {
    Command::Evict { rev, evict: Evict::new(Some(JobId::MAX), NOW.plus(LEASE / 2)) }
}

/// The job after its holder was asked to let go.
pub(crate) fn asked_to_let_go(job: &Job) -> Job {
    transition(job, &evict(job.rev), NOW).expect("it is held").job
}

/// The job after its holder was asked to let go and did.
pub(crate) fn preempted(job: &Job) -> Job {
    let release = holder("a", job.epoch.0, vec![HolderAction::Release { checkpoint: None }]);
    transition(&asked_to_let_go(job), &release, NOW).expect("it is held").job
}

/// So much money, and a token for each cent.
pub(crate) fn spend(micros: i64) -> HolderAction {
    HolderAction::Spend(spent(micros, micros.unsigned_abs() / 10_000))
}

pub(crate) const fn spent(micros: i64, tokens: u64) -> Spend {
    Spend { usd: Usd::from_micros(micros), tokens }
}

pub(crate) fn checkpoint() -> Checkpoint {
    Checkpoint { wip_ref: Some("refs/wip/1".to_owned()), ..Checkpoint::default() }
}

pub(crate) fn report() -> HolderAction {
    HolderAction::Report(RunReport {
        summary: Some("done".to_owned()),
        branch: Some("giga/job/x/7".to_owned()),
        commit: Some("c0ffee".to_owned()),
        ..RunReport::default()
    })
}

pub(crate) fn fail(retryable: bool) -> HolderAction {
    let reason = if retryable { FailReason::Infrastructure } else { FailReason::VerifyFailed };
    HolderAction::Fail { failure: failure(reason), retryable }
}

pub(crate) fn ask(text: &str) -> HolderAction {
    HolderAction::Ask(Ask { text: text.to_owned(), ..Ask::default() })
}

/// One of each.
pub(crate) fn holder_actions() -> Vec<HolderAction> {
    vec![
        HolderAction::Start,
        HolderAction::Renew { lease: LEASE },
        spend(5),
        HolderAction::Checkpoint(checkpoint()),
        report(),
        fail(false),
        fail(true),
        HolderAction::Release { checkpoint: None },
        ask("which port?"),
        HolderAction::Delivered(vec![1]),
    ]
}
