//! What a run is charged when its lease ends, and how a job gives its seat up.

use giga_domain::transition::{RunChange, RunCharge};
use giga_domain::{
    ChargeHow, Command, EventKind, Evict, HolderAction, Job, JobId, Lease, OperatorAction, Refusal, Rev,
    RunOutcome, RunReport, Spend, Stage, State, Transition, Usd, transition,
};

use crate::transition::fixture::*;

const CAP: i64 = 1_000_000;

/// Held, with its cap reserved.
fn capped(stage: Stage) -> Job {
    let mut job = job_in(stage);
    let (State::Assigned { lease } | State::Building { lease }) = &mut job.state else { panic!("not held") };
    lease.reserved = Usd::from_micros(CAP);
    job
}

fn after_actions(job: &Job, actions: Vec<HolderAction>) -> Transition {
    transition(job, &holder("a", job.epoch.0, actions), NOW).expect("the holder may")
}

fn lease(job: &Job) -> &Lease {
    job.lease().expect("it is held")
}

fn usd(charge: Option<RunCharge>) -> Option<(i64, ChargeHow)> {
    charge.map(|charge| (charge.spend.usd.micros(), charge.how))
}

#[test]
fn a_claim_sets_aside_and_a_repeated_one_changes_nothing() {
    let claim = |micros| Command::Claim {
        factory: factory("b"),
        request: request("r"),
        rev: None,
        dispatch_seq: None,
        lease: LEASE,
        reserve: Usd::from_micros(micros),
    };
    let held = transition(&job_in(Stage::Queued), &claim(CAP), NOW).unwrap();
    assert_eq!((lease(&held.job).reserved.micros(), held.charge), (CAP, None));
    let again = transition(&held.job, &claim(7), NOW).unwrap();
    assert_eq!(again.job, held.job, "what was reserved for this very request stays");
}

#[test]
fn what_is_told_only_ever_grows_and_an_overrun_is_reserved_at_once() {
    let job = capped(Stage::Building);
    let some = after_actions(&job, vec![HolderAction::Spend(spent(300, 40))]);
    assert!(some.is_silent() && some.charge.is_none(), "claims elsewhere must not notice it");
    assert_eq!(lease(&some.job).spent, spent(300, 40));
    assert_eq!(lease(&some.job).reserved.micros(), CAP, "within its cap nothing changes");
    let less = after_actions(&some.job, vec![HolderAction::Spend(spent(200, 50))]);
    assert_eq!(lease(&less.job).spent, spent(300, 50), "each for itself");
    let over = after_actions(&less.job, vec![spend(CAP + 5)]);
    assert_eq!(lease(&over.job).reserved.micros(), CAP + 5);
}

#[test]
fn nonsense_does_not_break_the_sums() {
    let all = Spend { usd: Usd::MAX, tokens: u64::MAX };
    let job = after_actions(&capped(Stage::Building), vec![HolderAction::Spend(all)]).job;
    let report = RunReport { cost: Some(all.usd), tokens: Some(all.tokens), ..RunReport::default() };
    let charge = after_actions(&job, vec![HolderAction::Report(report)]).charge.unwrap();
    let sum = |one: u64| one.checked_mul(1_000).and_then(|sum| i64::try_from(sum).ok());
    assert!(
        sum(charge.spend.usd.micros().unsigned_abs()).is_some() && sum(charge.spend.tokens).is_some(),
        "{charge:?}"
    );
}

#[test]
fn every_end_that_the_holder_tells_of_is_charged_as_measured() {
    let job = after_actions(&capped(Stage::Building), vec![spend(300)]).job;
    let ends = [report(), fail(true), fail(false), HolderAction::Release { checkpoint: None }];
    for end in ends {
        let after = after_actions(&job, vec![end.clone()]);
        assert_eq!(usd(after.charge), Some((300, ChargeHow::Measured)), "{end:?}");
        let more = after_actions(&job, vec![spend(450), end.clone()]);
        assert_eq!(usd(more.charge), Some((450, ChargeHow::Measured)), "{end:?} with the last figure");
    }
    let nothing = after_actions(&capped(Stage::Assigned), vec![fail(false)]);
    assert_eq!(usd(nothing.charge), Some((0, ChargeHow::Measured)));
}

#[test]
fn what_the_holder_assumes_is_charged_as_assumed() {
    let job = capped(Stage::Building);
    let assumed_in = |after: &Transition| match after.run.last() {
        Some(RunChange::Close { report, .. }) => report.cost_assumed,
        other => panic!("not closed: {other:?}"),
    };
    for end in [fail(true), fail(false), HolderAction::Release { checkpoint: None }] {
        let after = after_actions(&job, vec![spend(450), HolderAction::Assumed, end.clone()]);
        assert_eq!(usd(after.charge), Some((450, ChargeHow::Assumed)), "{end:?}");
        assert!(assumed_in(&after), "the run says so: {end:?}");
        let measured = after_actions(&job, vec![spend(450), end.clone()]);
        assert!(!assumed_in(&measured), "{end:?}");
    }
    let cost = Some(Usd::from_micros(450));
    let report = RunReport { cost, cost_assumed: true, ..RunReport::default() };
    let after = after_actions(&job, vec![HolderAction::Report(report)]);
    assert_eq!(usd(after.charge), Some((450, ChargeHow::Assumed)));
    let nothing = after_actions(&job, vec![HolderAction::Assumed, fail(false)]);
    assert_eq!(usd(nothing.charge), Some((0, ChargeHow::Measured)), "nothing is nothing");
}

#[test]
fn the_report_and_what_was_told_before_count_once() {
    let job = after_actions(&capped(Stage::Building), vec![spend(300)]).job;
    let with = |micros: Option<i64>, tokens: Option<u64>| {
        let report = RunReport { cost: micros.map(Usd::from_micros), tokens, ..RunReport::default() };
        let after = after_actions(&job, vec![HolderAction::Report(report)]);
        let Some(RunChange::Close { report, .. }) = after.run.last().cloned() else { panic!("not closed") };
        (after.charge.unwrap().spend.usd.micros(), report.cost.map(Usd::micros), report.tokens)
    };
    assert_eq!(with(Some(500), Some(9)), (500, Some(500), Some(9)));
    assert_eq!(with(None, None), (300, Some(300), None), "the run shows what was told while it went on");
    assert_eq!(
        with(Some(100), None),
        (300, Some(100), None),
        "the larger is charged; the report stays as it was"
    );
}

#[test]
fn whoever_goes_silent_at_work_is_charged_all_that_it_was_allowed() {
    let expired = |job: &Job| transition(job, &Command::Expire, NOW.plus(LEASE)).unwrap();
    let silent = after_actions(&capped(Stage::Building), vec![spend(300)]).job;
    let after = expired(&silent);
    assert_eq!(usd(after.charge), Some((CAP, ChargeHow::Assumed)));
    let Some(RunChange::Close { report, outcome }) = after.run.last() else { panic!("not closed") };
    assert_eq!(
        (report.cost.map(Usd::micros), outcome),
        (Some(300), &RunOutcome::Expired),
        "the run shows what is known"
    );
    let over = after_actions(&silent, vec![spend(CAP * 2)]).job;
    assert_eq!(usd(expired(&over).charge), Some((CAP * 2, ChargeHow::Measured)), "it has told all of it");
    let never_began = expired(&capped(Stage::Assigned));
    assert_eq!(usd(never_began.charge), Some((0, ChargeHow::Measured)), "no engine was started");
    let free = expired(&job_in(Stage::Building));
    assert_eq!(usd(free.charge), Some((0, ChargeHow::Measured)), "without a cap nothing is known to be lost");
}

fn cancelled(job: &Job) -> Transition {
    transition(job, &operator(OperatorAction::Cancel), NOW).expect("any open job can be cancelled")
}

fn bill(micros: i64, tokens: u64) -> Vec<HolderAction> {
    vec![HolderAction::Spend(spent(micros, tokens)), HolderAction::Release { checkpoint: Some(checkpoint()) }]
}

#[test]
fn a_cancelled_run_counts_as_all_that_it_was_allowed_until_its_holder_says_otherwise() {
    let job = after_actions(&capped(Stage::Building), vec![spend(300)]).job;
    let over = cancelled(&job);
    assert_eq!(usd(over.charge), Some((CAP, ChargeHow::Assumed)), "its holder may be dead");
    for (says, real) in [(400, 400), (200, 300), (CAP * 3, CAP)] {
        let later = NOW.plus(LEASE);
        let command = holder("a", job.epoch.0, bill(says, 7));
        let settled = transition(&over.job, &command, later).unwrap();
        let refund = settled.refund.expect("the difference is given back");
        assert_eq!((refund.usd.micros(), refund.tokens, refund.charged_at), (CAP - real, 7, NOW), "{says}");
        assert_eq!((settled.charge, settled.run.len()), (None, 0));
        let kinds: Vec<_> = settled.events.iter().map(|event| (event.kind, event.from, event.to)).collect();
        assert_eq!(kinds, [(EventKind::CostReported, None, None)]);
        assert_eq!(settled.events[0].data["usdMicros"], says.max(300));
        let as_before = |job: &Job| (job.state.clone(), job.epoch, job.checkpoint.clone(), job.updated_at);
        assert_eq!(as_before(&settled.job), as_before(&over.job), "nothing else changes");
        let again = transition(&settled.job, &command, later).unwrap();
        assert!(again.is_silent() && again.refund.is_none() && again.job == settled.job, "once");
    }
}

#[test]
fn nothing_is_given_back_where_nothing_was_assumed() {
    let idle = after_actions(&capped(Stage::Assigned), vec![spend(300)]).job;
    let free = after_actions(&job_in(Stage::Building), vec![spend(300)]).job;
    let overrun = after_actions(&capped(Stage::Building), vec![spend(CAP * 2)]).job;
    for (job, known) in [(idle, 300), (free, 300), (overrun, CAP * 2)] {
        let over = cancelled(&job);
        assert_eq!(usd(over.charge), Some((known, ChargeHow::Measured)));
        let answer = after_actions(&over.job, bill(1, 0));
        assert!(answer.is_silent() && answer.refund.is_none() && answer.job == over.job, "it is answered");
    }
}

#[test]
fn the_last_bill_of_a_cancelled_run_is_its_holders_alone() {
    let job = capped(Stage::Building);
    let over = cancelled(&job).job;
    let release = HolderAction::Release { checkpoint: None };
    let says = |who: &str, epoch: u64, actions: Vec<HolderAction>| {
        transition(&over, &holder(who, epoch, actions), NOW)
    };
    let fenced = [
        says("b", job.epoch.0, bill(1, 0)),
        says("a", job.epoch.0 - 1, bill(1, 0)),
        says("a", job.epoch.0 + 1, bill(1, 0)),
        says("a", job.epoch.0, vec![release.clone()]),
        says("a", job.epoch.0, vec![spend(1)]),
        says("a", job.epoch.0, vec![spend(1), fail(true)]),
        says("a", job.epoch.0, vec![HolderAction::Start, spend(1), release]),
    ];
    for (index, answer) in fenced.into_iter().enumerate() {
        assert!(matches!(answer, Err(Refusal::Fenced { .. })), "{index}: {answer:?}");
    }
    // Neither does one that lost its lease have such a word.
    let expired = transition(&job, &Command::Expire, NOW.plus(LEASE)).unwrap().job;
    let late = transition(&expired, &holder("a", job.epoch.0, bill(1, 0)), NOW.plus(LEASE));
    assert!(matches!(late, Err(Refusal::Fenced { .. })), "{late:?}");
}

#[test]
fn one_that_is_forced_out_is_charged_in_full_whatever_it_told_since() {
    let asked = asked_to_let_go(&after_actions(&capped(Stage::Building), vec![spend(100)]).job);
    let deadline = lease(&asked).evict.unwrap().deadline;
    let alive = after_actions(&asked, vec![spend(300), HolderAction::Renew { lease: LEASE * 9 }]).job;
    let gone = transition(&alive, &Command::Expire, deadline).unwrap();
    assert_eq!((gone.job.stage(), usd(gone.charge)), (Stage::Queued, Some((CAP, ChargeHow::Assumed))));
}

#[test]
fn an_eviction_asks_and_the_release_is_a_preemption() {
    for stage in [Stage::Assigned, Stage::Building] {
        let job = capped(stage);
        let asked = transition(&job, &evict(job.rev), NOW).unwrap();
        assert_eq!((asked.job.stage(), asked.job.rev, asked.job.epoch), (stage, job.rev.next(), job.epoch));
        assert_eq!(asked.events[0].kind, EventKind::EvictionAsked);
        assert_eq!(asked.events[0].data["forJob"], JobId::MAX.to_string());
        let saved = HolderAction::Release { checkpoint: Some(checkpoint()) };
        let gone = after_actions(&asked.job, vec![spend(300), saved]);
        assert_eq!((gone.job.stage(), gone.job.attempts, gone.job.evictions), (Stage::Queued, 0, 1));
        assert_eq!((gone.job.checkpoint.clone(), gone.job.epoch), (Some(checkpoint()), job.epoch.next()));
        assert_eq!(gone.events.last().unwrap().kind, EventKind::Preempted);
        assert!(matches!(gone.run.last(), Some(RunChange::Close { outcome: RunOutcome::Preempted, .. })));
        assert_eq!(usd(gone.charge), Some((300, ChargeHow::Measured)));
    }
}

#[test]
fn an_eviction_is_a_compare_and_set_and_is_asked_once() {
    let job = capped(Stage::Building);
    for rev in [Rev(job.rev.0 - 1), job.rev.next()] {
        assert!(matches!(transition(&job, &evict(rev), NOW), Err(Refusal::NotClaimable(_))));
    }
    let asked = asked_to_let_go(&job);
    assert!(matches!(transition(&asked, &evict(asked.rev), NOW), Err(Refusal::NotClaimable(_))));
}

#[test]
fn an_evicted_holder_may_still_finish_or_fail() {
    let asked = asked_to_let_go(&capped(Stage::Building));
    assert_eq!(after_actions(&asked, vec![report()]).job.stage(), Stage::Review);
    let failed = after_actions(&asked, vec![fail(true)]).job;
    assert_eq!((failed.attempts, failed.evictions), (1, 0), "a failure is a failure");
}

#[test]
fn a_holder_that_does_not_let_go_loses_the_job_at_the_deadline() {
    let asked = asked_to_let_go(&capped(Stage::Building));
    let deadline = lease(&asked).evict.unwrap().deadline;
    assert_eq!(lease(&asked).due(), deadline);
    let renew = holder("a", 7, vec![HolderAction::Renew { lease: LEASE * 9 }]);
    let renewed = transition(&asked, &renew, NOW).unwrap().job;
    assert_eq!(lease(&renewed).due(), deadline, "renewing does not buy time");
    let before = deadline.minus(std::time::Duration::from_millis(1));
    assert!(transition(&renewed, &Command::Expire, before).unwrap().is_silent());
    let gone = transition(&renewed, &Command::Expire, deadline).unwrap();
    assert_eq!((gone.job.stage(), gone.job.attempts, gone.job.evictions), (Stage::Queued, 0, 1));
    assert_eq!(gone.job.epoch, asked.epoch.next(), "the old holder is fenced");
    assert_eq!(usd(gone.charge), Some((CAP, ChargeHow::Assumed)), "nobody knows what it spent");

    // One that had died anyway has used an attempt up.
    let dead = transition(&asked, &Command::Expire, NOW.plus(LEASE)).unwrap();
    assert_eq!((dead.job.attempts, dead.job.evictions), (1, 0));
    assert_eq!(dead.events[0].kind, EventKind::LeaseExpired);
}

#[test]
fn work_that_stops_for_a_paused_budget_gave_no_seat_up() {
    let job = capped(Stage::Building);
    let evict = Evict::new(None, NOW.plus(LEASE));
    let asked = transition(&job, &Command::Evict { rev: job.rev, evict }, NOW).unwrap();
    assert!(!asked.events[0].data.contains_key("forJob"));
    let gone = after_actions(&asked.job, vec![HolderAction::Release { checkpoint: None }]);
    assert_eq!((gone.job.stage(), gone.job.attempts, gone.job.evictions), (Stage::Queued, 0, 0));
    assert!(gone.events.last().unwrap().cause.contains("paused"), "{:?}", gone.events);
}
