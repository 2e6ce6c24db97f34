//! Random histories never break what every store and route relies on.

use std::collections::{BTreeSet, HashSet};
use std::mem::discriminant;
use std::time::Duration;

use giga_domain::job::{MergeCandidate, MergeFeedback, RetryPolicy, ReviewGate, ShipMode};
use giga_domain::transition::{Deps, ParentEnd, Relations, RunChange, Tally};
use giga_domain::{
    ChargeHow, Checkpoint, Command, Epoch, Evict, FailReason, Holder, HolderAction, Job, JobId, JobKind,
    MergeAction, MergeOutcome, MergeState, OperatorAction, Refusal, RequestChange, RequestNews, Rev, Stage,
    State, Timestamp, Transition, Usd, Verdict, transition,
};
use proptest::prelude::*;
use proptest::{collection, sample};

use crate::transition::fixture::*;

/// A command before it is known which epoch and revision the job will have.
#[derive(Debug, Clone)]
enum Intent {
    Claim {
        who: &'static str,
        request: u8,
        rev_off: u64,
        seq_off: Option<u64>,
    },
    Hold {
        who: &'static str,
        epoch_off: i64,
        actions: Vec<HolderAction>,
    },
    Target {
        who: &'static str,
        rev_off: u64,
    },
    Evict {
        rev_off: u64,
        for_job: bool,
        after_ms: u64,
    },
    Merge {
        who: &'static str,
        attempt_off: i32,
        action: MergeAction,
    },
    /// About the result that the job has, or about another.
    Request {
        about_it: bool,
        change: RequestChange,
    },
    Plain(Command),
}

impl Intent {
    fn aimed_at(&self, job: &Job, now: Timestamp) -> Command {
        match self {
            Self::Claim { who, request: number, rev_off, seq_off } => Command::Claim {
                factory: factory(who),
                request: request(&format!("r{number}")),
                rev: Some(Rev(job.rev.0 + rev_off)),
                dispatch_seq: seq_off.map(|off| giga_domain::DispatchSeq(job.dispatch_seq.0 + off)),
                lease: LEASE,
                reserve: Usd::from_micros(1_000),
            },
            Self::Hold { who, epoch_off, actions } => Command::Holder {
                holder: Holder {
                    factory: factory(who),
                    epoch: Epoch(job.epoch.0.saturating_add_signed(*epoch_off)),
                },
                actions: actions.clone(),
            },
            Self::Target { who, rev_off } => Command::Target {
                rev: Rev(job.rev.0 + rev_off),
                factory: factory(who),
                pickup_deadline: now.plus(LEASE),
            },
            Self::Evict { rev_off, for_job, after_ms } => Command::Evict {
                rev: Rev(job.rev.0 + rev_off),
                evict: Evict::new(for_job.then_some(JobId::MAX), now.plus(Duration::from_millis(*after_ms))),
            },
            Self::Merge { who, attempt_off, action } => Command::HoldMerge {
                factory: factory(who),
                attempt: job
                    .merge
                    .as_ref()
                    .map_or(0, |merge| merge.attempt)
                    .saturating_add_signed(*attempt_off),
                action: action.clone(),
            },
            Self::Request { about_it, change } => {
                let of_job = job.result.as_ref().filter(|_| *about_it).map(|result| result.commit.clone());
                let about = of_job.unwrap_or_else(|| "older".to_owned());
                Command::RequestNews(RequestNews { about, change: change.clone() })
            }
            Self::Plain(command) => command.clone(),
        }
    }
}

fn who() -> impl Strategy<Value = &'static str> {
    // Mostly one factory, so that histories get somewhere.
    prop_oneof![4 => Just("a"), 1 => Just("b")]
}

fn action() -> impl Strategy<Value = HolderAction> {
    prop_oneof![
        4 => Just(HolderAction::Start),
        1 => (0u64..60).prop_map(|secs| HolderAction::Renew { lease: Duration::from_secs(secs) }),
        2 => (0..3_000i64).prop_map(spend),
        1 => "[ab]".prop_map(|at| HolderAction::Checkpoint(Checkpoint { commit: Some(at), ..Checkpoint::default() })),
        3 => Just(report()),
        1 => any::<bool>().prop_map(fail),
        1 => Just(HolderAction::Release { checkpoint: None }),
        1 => Just(HolderAction::Release { checkpoint: Some(checkpoint()) }),
        1 => prop_oneof![Just(ask("a")), (1..4u64).prop_map(|seq| HolderAction::Delivered(vec![seq]))],
    ]
}

/// Each kind of action at most once, as the routes put them together.
fn actions() -> impl Strategy<Value = Vec<HolderAction>> {
    collection::vec(action(), 0..4).prop_map(|actions| {
        let mut kinds = HashSet::new();
        actions.into_iter().filter(|action| kinds.insert(discriminant(action))).collect()
    })
}

fn relations() -> impl Strategy<Value = Relations> {
    let count = || prop_oneof![3 => Just(0u32), 1 => 1..3u32];
    let parent =
        prop::option::weighted(0.05, Just(ParentEnd { parent: JobId::MIN, stage: Stage::Cancelled }));
    let children = (count(), count(), count());
    let children = children.prop_map(|(shipped, failed, open)| Tally { shipped, failed, open });
    (count(), count(), count(), children, parent).prop_map(|(shipped, lost, open, children, parent)| {
        Relations { deps: Deps { shipped, lost, open }, children, parent }
    })
}

fn merge_action() -> impl Strategy<Value = MergeAction> {
    let text = String::from;
    prop_oneof![
        1 => Just(MergeAction::Renew { lease: LEASE }),
        4 => "[cd]".prop_map(move |commit| MergeAction::Push {
            candidate: MergeCandidate { commit, tip: None, into: text("main"), head: None },
            lease: LEASE,
        }),
        6 => sample::select(vec![
            MergeOutcome::Merged { commit: text("c"), into: text("main"), note: None },
            MergeOutcome::Conflict { detail: text("x") },
            MergeOutcome::ChecksFailed { detail: text("x") },
            MergeOutcome::Refused { detail: text("x") },
            MergeOutcome::Unreachable { detail: text("x") },
            MergeOutcome::Outrun,
            MergeOutcome::Proposed {
                commit: text("c"),
                into: text("main"),
                forge: text("github"),
                repo: text("acme/app"),
                branch: text("giga/request/x"),
            },
        ])
        .prop_map(MergeAction::Settle),
    ]
}

fn request_change() -> impl Strategy<Value = RequestChange> {
    let text = String::from;
    let said = |id: &str, verdict| RequestChange::Said {
        id: id.to_owned(),
        by: text("ana"),
        verdict,
        words: text("x"),
    };
    sample::select(vec![
        RequestChange::Opened { number: 7, url: text("https://forge/7") },
        RequestChange::NotOpened { detail: text("x") },
        RequestChange::Merged { commit: text("m"), into: text("main") },
        RequestChange::Closed { by: None },
        said("review:1", Some(Verdict::RequestChanges)),
        said("review:2", Some(Verdict::RequestChanges)),
        said("comment:1", None),
        RequestChange::Checks { id: text("checks:1:failed"), passed: false, detail: text("x") },
        RequestChange::Checks { id: text("checks:2:failed"), passed: false, detail: text("x") },
    ])
}

fn intent() -> impl Strategy<Value = Intent> {
    let off = prop_oneof![8 => Just(0u64), 1 => Just(1u64)];
    let epoch_off = prop_oneof![8 => Just(0i64), 2 => Just(-1), 1 => Just(1)];
    let claim = (who(), 0u8..3, off.clone(), prop::option::of(off.clone()));
    let verdict =
        sample::select(vec![Verdict::Approve, Verdict::Approve, Verdict::RequestChanges, Verdict::Reject]);
    prop_oneof![
        6 => claim.prop_map(|(who, request, rev_off, seq_off)| Intent::Claim { who, request, rev_off, seq_off }),
        12 => (who(), epoch_off, actions())
            .prop_map(|(who, epoch_off, actions)| Intent::Hold { who, epoch_off, actions }),
        1 => (who(), off.clone()).prop_map(|(who, rev_off)| Intent::Target { who, rev_off }),
        3 => (off, any::<bool>(), 0..30_000u64)
            .prop_map(|(rev_off, for_job, after_ms)| Intent::Evict { rev_off, for_job, after_ms }),
        2 => Just(Intent::Plain(Command::Expire)),
        5 => who().prop_map(|who| Intent::Plain(Command::TakeMerge { factory: factory(who), lease: LEASE, joins: false })),
        6 => (who(), prop_oneof![8 => Just(0i32), 1 => Just(-1)], merge_action())
            .prop_map(|(who, attempt_off, action)| Intent::Merge { who, attempt_off, action }),
        6 => (prop::bool::weighted(0.9), request_change())
            .prop_map(|(about_it, change)| Intent::Request { about_it, change }),
        6 => (1..4u32).prop_map(|question| {
            let (answer, by) = ("8080".to_owned(), "ana".to_owned());
            Intent::Plain(Command::Answer { question, answer, by })
        }),
        1 => Just(Intent::Plain(Command::Say { id: request("say"), text: "faster".to_owned(), by: "ana".to_owned() })),
        1 => Just(Intent::Plain(Command::CloseQuestions)),
        3 => relations().prop_map(|relations| Intent::Plain(Command::Reconsider(relations))),
        1 => (0..3u32, any::<bool>()).prop_map(|(quorum, may_weaken)| {
            let gate = ReviewGate { quorum, reviewers: Vec::new() };
            Intent::Plain(Command::RequestReview { gate, may_weaken })
        }),
        3 => sample::select(&[OperatorAction::Ship, OperatorAction::Requeue, OperatorAction::Requeue, OperatorAction::Reject])
            .prop_map(|action| Intent::Plain(operator(action))),
        // Rare, because it is the end.
        1 => prop::bool::weighted(0.2).prop_map(|cancel| {
            Intent::Plain(operator(if cancel { OperatorAction::Cancel } else { OperatorAction::Requeue }))
        }),
        4 => (verdict, sample::select(&["ana", "bo", "eve"]))
            .prop_map(|(verdict, who)| Intent::Plain(review(verdict, who))),
    ]
}

prop_compose! {
    fn new_job()(
        blocked in any::<bool>(),
        quorum in 0..3u32,
        named in any::<bool>(),
        ship in sample::select(&[ShipMode::Manual, ShipMode::Auto]),
        max in 0..3u32,
        in_a_repository in any::<bool>(),
        composite in prop::bool::weighted(0.2),
        retry_on in sample::subsequence(FailReason::RETRIED_ON_REQUEST.to_vec(), 0..=3),
        feedback in prop::option::of(sample::select(&[MergeFeedback::Events, MergeFeedback::Changes])),
    ) -> Job {
        let in_a_repository = in_a_repository && !composite;
        let mut job = job_in(if blocked || composite { Stage::Blocked } else { Stage::Queued });
        job.spec.kind = if composite { JobKind::Composite } else { JobKind::Agent };
        job.spec.retry_on = retry_on;
        job.epoch = Epoch(0);
        let reviewers = if named { vec!["ana".to_owned(), "bo".to_owned()] } else { Vec::new() };
        job.spec.review = ReviewGate { quorum, reviewers };
        job.spec.ship = ship;
        job.spec.merge.feedback = feedback;
        job.spec.repo = in_a_repository.then(|| "hello".to_owned());
        job.spec.retry = RetryPolicy { max, backoff_ms: 1_000 };
        job
    }
}

/// The steps between stages that the events tell of.
fn steps(after: &Transition) -> Vec<(Stage, Stage)> {
    after.events.iter().filter_map(|event| event.from.zip(event.to)).collect()
}

fn check_step(
    before: &Job,
    command: &Command,
    now: Timestamp,
    after: &Transition,
) -> Result<(), TestCaseError> {
    let job = &after.job;
    let steps = steps(after);

    let mut at = before.stage();
    for (from, to) in &steps {
        prop_assert!(*from == at && from.may_become(*to), "{from} -> {to} is not in the table");
        at = *to;
    }
    prop_assert_eq!(at, job.stage(), "the events tell the whole way");

    prop_assert!(job.epoch >= before.epoch);
    let granted = steps.contains(&(Stage::Queued, Stage::Assigned));
    let given_back = steps.iter().any(|(from, to)| from.is_held() && *to == Stage::Queued);
    prop_assert_eq!(
        job.epoch > before.epoch,
        granted || given_back,
        "the epoch rises with each grant and return"
    );

    prop_assert_eq!(job.last_event.0, before.last_event.0 + after.events.len() as u64);
    prop_assert_eq!(job.rev.0, before.rev.0 + u64::from(!after.is_silent()));
    prop_assert_eq!(job.lease().is_some(), job.stage().is_held(), "a lease exactly while held");
    prop_assert!(!job.needs_input() || job.stage().is_live(), "nobody is asked for a job that does not run");
    prop_assert!(!(granted && before.needs_input()), "nobody runs what waits for an answer");
    if let State::Queued { ready_at, .. } = &job.state
        && job.needs_input()
    {
        let until = job.open_questions().map(|question| question.deadline).max();
        prop_assert!(Some(*ready_at) >= until, "it is not ready before its questions are closed");
    }
    let is_in = job.merge.as_ref().is_some_and(|merge| matches!(merge.state, MergeState::Done { .. }));
    let has_a_result = job.result.is_some() && job.spec.repo.is_some();
    prop_assert_eq!(job.stage() == Stage::Shipped && has_a_result, is_in, "shipped means merged");
    let moves = job
        .merge
        .as_ref()
        .is_some_and(|merge| merge.due().is_some() || matches!(merge.state, MergeState::Proposed { .. }));
    prop_assert_eq!(job.stage() == Stage::Shipping, moves, "a merge is under way exactly while shipping");
    let announced = before.merge.as_ref().is_some_and(giga_domain::Merge::is_pushing);
    if announced && !matches!(command, Command::HoldMerge { .. }) {
        prop_assert_eq!(job.stage(), Stage::Shipping, "only its holder ends what is announced");
    }
    if let (Command::Reconsider(relations), State::Failed { failure }) = (command, &before.state)
        && job.stage() != Stage::Failed
        && job.stage() != Stage::Cancelled
    {
        prop_assert_eq!(failure.reason, FailReason::ChildFailed, "nothing else is mended by children");
        prop_assert_eq!(relations.children.failed, 0, "every child has shipped or still can");
        prop_assert!(steps.first() == Some(&(Stage::Failed, Stage::Blocked)), "it waits for them again");
    }
    prop_assert!(job.setback.is_none() || job.stage().is_live(), "only what is tried again looks back");
    if before.stage().is_terminal() && after.refund.is_none() {
        prop_assert_eq!(job, before, "a terminal stage absorbs everything");
    }
    if after.is_silent() {
        let mut unrenewed = job.clone();
        if let (State::Assigned { lease } | State::Building { lease }, Some(old)) =
            (&mut unrenewed.state, before.lease())
        {
            lease.expires_at = old.expires_at;
            lease.spent = old.spent;
            lease.reserved = old.reserved;
            lease.evict = old.evict;
        }
        if matches!(command, Command::HoldMerge { action: MergeAction::Renew { .. }, .. }) {
            unrenewed.merge.clone_from(&before.merge);
        }
        prop_assert_eq!(&unrenewed, before, "silence changes nothing but the lease");
    } else {
        let ended = before.stage().is_terminal();
        prop_assert_eq!(job.updated_at, if ended { before.updated_at } else { now });
    }

    let closed = after.run.iter().filter(|change| matches!(change, RunChange::Close { .. })).count();
    let opened = after.run.iter().filter(|change| matches!(change, RunChange::Open { .. })).count();
    prop_assert_eq!(opened, usize::from(granted));
    prop_assert_eq!(
        closed,
        usize::from(before.stage().is_held() && !job.stage().is_held()),
        "a run ends with its lease"
    );

    check_charge(before, command, now, after)?;
    check_attempts(before, command, now, job)
}

fn check_attempts(before: &Job, command: &Command, now: Timestamp, job: &Job) -> Result<(), TestCaseError> {
    let left_the_holder = before.stage().is_held() && !job.stage().is_held();
    let used_up = left_the_holder
        && match command {
            Command::Expire => before.lease().is_some_and(|lease| lease.expires_at <= now),
            Command::Holder { actions, .. } => {
                actions.iter().any(|action| matches!(action, HolderAction::Fail { .. }))
            }
            _ => false,
        };
    let gives_back = match command {
        Command::Operator { action, .. } => *action == OperatorAction::Requeue,
        Command::Review(judgement) => judgement.verdict == Verdict::RequestChanges,
        _ => false,
    };
    let given_back = gives_back && job.rev > before.rev;
    let expected = if given_back { 0 } else { before.attempts + u32::from(used_up) };
    prop_assert_eq!(job.attempts, expected);
    if job.stage() == Stage::DeadLetter && before.stage() != Stage::DeadLetter {
        prop_assert!(job.attempts > job.spec.retry.max, "given up too early");
    }
    Ok(())
}

/// Every lease that ends is charged once, for no less than its holder reported; and for all that was reserved where its
/// holder went silent at work or was cancelled. Given back is only what was assumed, and once.
fn check_charge(
    before: &Job,
    command: &Command,
    now: Timestamp,
    after: &Transition,
) -> Result<(), TestCaseError> {
    let job = &after.job;
    let Some(lease) = before.lease() else {
        prop_assert_eq!(after.charge, None);
        let assumed = |job: &Job| job.lease_end.and_then(|settled| settled.assumed);
        if let Some(refund) = after.refund {
            let assumed = assumed(before).expect("nothing was assumed");
            let by_holder = matches!(command, Command::Holder { .. });
            prop_assert!(by_holder && job.stage() == Stage::Cancelled, "nobody else can");
            prop_assert!(refund.usd <= assumed.charged - assumed.reported.usd);
        }
        prop_assert!(after.refund.is_none() || assumed(job).is_none());
        return Ok(());
    };
    prop_assert_eq!(after.refund, None);
    if let Some(held) = job.lease() {
        prop_assert_eq!(after.charge, None, "charged while it is held");
        prop_assert!(held.spent.usd >= lease.spent.usd, "what was spent was taken back");
        prop_assert!(held.reserved >= held.spent.usd.max(lease.reserved));
        return Ok(());
    }
    let charge = after.charge.expect("a lease that ends is charged");
    let reported = lease.spent.usd;
    match command {
        Command::Expire if before.stage() == Stage::Building => {
            prop_assert!(lease.due() <= now, "taken away before its time");
            prop_assert_eq!(charge.spend.usd, lease.reserved.max(reported));
        }
        Command::Holder { .. } => prop_assert!(charge.spend.usd >= reported),
        _ if job.stage() == Stage::Cancelled && before.stage() == Stage::Building => {
            prop_assert_eq!(charge.spend.usd, lease.reserved.max(reported));
        }
        _ => prop_assert_eq!(charge.spend.usd, reported),
    }
    let assumed = charge.spend.usd > reported && !matches!(command, Command::Holder { .. });
    prop_assert_eq!(charge.how == ChargeHow::Assumed, assumed);
    Ok(())
}

/// The same command again finds its own effect, or is refused for a reason that names it.
fn check_repetition(command: &Command, now: Timestamp, job: &Job) -> Result<(), TestCaseError> {
    match transition(job, command, now) {
        // The one whose reply was lost is no longer heard, and that is all.
        Ok(again) if matches!(command, Command::TakeMerge { .. }) => {
            let attempt = |job: &Job| job.merge.as_ref().map(|merge| merge.attempt);
            prop_assert!(again.job.stage() == job.stage() && attempt(&again.job) > attempt(job));
        }
        Ok(again) => {
            prop_assert!(again.is_silent() && again.run.is_empty(), "{command:?} had a second effect");
            prop_assert_eq!(&again.job, job);
        }
        Err(refusal) => {
            let lawful = match command {
                Command::Target { .. } | Command::Evict { .. } | Command::HoldMerge { .. } => {
                    matches!(refusal, Refusal::NotClaimable(_))
                }
                _ => false,
            };
            prop_assert!(lawful, "{command:?} was taken once and then refused: {refusal}");
        }
    }
    Ok(())
}

fn check_fence(
    before: &Job,
    command: &Command,
    result: &Result<Transition, Refusal>,
) -> Result<(), TestCaseError> {
    let Command::Holder { holder, .. } = command else { return Ok(()) };
    let holds =
        before.lease().is_some_and(|lease| lease.factory == holder.factory) && before.epoch == holder.epoch;
    match result {
        // What a cancelled run really cost is told by its holder alone.
        Ok(Transition { refund: Some(_), .. }) => prop_assert_eq!(before.epoch, holder.epoch),
        Ok(after) => prop_assert!(holds || after.is_silent(), "a zombie wrote"),
        Err(Refusal::Fenced { given, current, .. }) => {
            prop_assert_eq!((*given, *current >= before.epoch), (holder.epoch, true));
        }
        Err(other) => prop_assert!(holds, "not the holder, yet told {other} instead of fenced"),
    }
    if before.stage().is_held() && !holds {
        prop_assert!(matches!(result, Err(Refusal::Fenced { .. })), "not fenced while another holds");
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn no_history_breaks_the_rules(
        start in new_job(),
        history in collection::vec((intent(), 0..20_000u64), 1..40),
    ) {
        let (mut job, mut now) = (start, NOW);
        for (intent, waited_ms) in history {
            now = now.plus(Duration::from_millis(waited_ms));
            let command = intent.aimed_at(&job, now);
            let result = transition(&job, &command, now);
            check_fence(&job, &command, &result)?;
            if let Ok(after) = result {
                check_step(&job, &command, now, &after)?;
                check_repetition(&command, now, &after.job)?;
                job = after.job;
            }
        }
    }
}

/// The property above says nothing if the histories never get anywhere.
#[test]
fn the_histories_visit_every_stage() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;

    let mut runner = TestRunner::deterministic();
    let mut seen = BTreeSet::new();
    let histories = (new_job(), collection::vec((intent(), 0..20_000u64), 1..40));
    for _ in 0..2_000 {
        let (mut job, history) = histories.new_tree(&mut runner).expect("a history").current();
        let mut now = NOW;
        for (intent, waited_ms) in history {
            now = now.plus(Duration::from_millis(waited_ms));
            seen.insert(job.stage());
            if let Ok(after) = transition(&job, &intent.aimed_at(&job, now), now) {
                job = after.job;
            }
        }
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), Stage::ALL);
}
