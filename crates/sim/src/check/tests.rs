//! Each checker sees what it is there for, on a history that is written by hand, and nothing in one that is in order.

mod rules;

use giga_domain::job::JobSpec;
use giga_domain::manifest::parse_markdown;
use giga_domain::{
    Actor, Epoch, EventKind, EventSeq, FeedPos, Job, JobId, Rev, Run, RunOutcome, RunReport, Stage, State,
    Timestamp,
};
use serde_json::Map;

use super::*;
use crate::history::Seen;
use crate::prng::Prng;

const LEASE_MS: i64 = 2_000;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn event(seq: u64, kind: EventKind, from: Option<Stage>, to: Stage, millis: i64) -> Event {
    let mut data = Map::new();
    if kind == EventKind::Assigned {
        data.insert("factoryId".to_owned(), "f1".into());
        data.insert("leaseEpoch".to_owned(), seq.into());
    }
    let by_holder = matches!(kind, EventKind::Assigned | EventKind::Started | EventKind::Shipped);
    let factory = Actor::Factory("f1".parse().unwrap());
    Event {
        pos: FeedPos(seq),
        product: Some("demo".parse().unwrap()),
        job: Some((JobId::MIN, EventSeq(seq))),
        at: at(millis),
        actor: if by_holder { factory } else { Actor::system("test") },
        kind,
        from,
        to: Some(to),
        cause: String::new(),
        data,
    }
}

fn spec() -> JobSpec {
    parse_markdown(b"---\nname: a\n---\nb").unwrap().0.to_spec(Vec::new(), None)
}

fn run(epoch: u64, outcome: RunOutcome) -> Run {
    Run {
        job: JobId::MIN,
        product: "demo".parse().unwrap(),
        epoch: Epoch(epoch),
        factory: "f1".parse().unwrap(),
        engine: None,
        model: None,
        assigned_at: at(0),
        started_at: None,
        ended_at: None,
        outcome,
        report: RunReport::default(),
    }
}

fn one_shipped() -> QueueState {
    let mut queue = QueueState::default();
    queue.by_stage[Stage::Shipped] = 1;
    queue
}

/// Submitted, granted, lost to its lease's end, granted again, shipped.
fn in_order() -> Evidence {
    use Stage::{Assigned, Building, Queued, Shipped};
    let events = vec![
        event(1, EventKind::Submitted, None, Queued, 0),
        event(2, EventKind::Assigned, Some(Queued), Assigned, 10),
        event(3, EventKind::LeaseExpired, Some(Assigned), Queued, 10 + LEASE_MS),
        event(4, EventKind::Assigned, Some(Queued), Assigned, 9_000),
        event(5, EventKind::Started, Some(Assigned), Building, 9_010),
        event(6, EventKind::Shipped, Some(Building), Shipped, 9_020),
    ];
    let job = Job {
        rev: Rev(6),
        epoch: Epoch(4),
        last_event: EventSeq(6),
        attempts: 1,
        updated_at: at(9_020),
        ..Job::new(JobId::MIN, "demo".parse().unwrap(), spec(), State::Shipped, at(0))
    };
    let granted = |seq: u64, ends: i64| Record::Granted {
        factory: "f1".parse().unwrap(),
        request: format!("r{seq}").parse().unwrap(),
        job: Seen {
            id: JobId::MIN,
            epoch: Epoch(seq),
            seq: EventSeq(seq),
            holder: Some("f1".parse().unwrap()),
            expires_at: Some(at(ends)),
            has_checkpoint: false,
        },
    };
    let mut scenario = Scenario::of(&mut Prng::new(0));
    scenario.lease = std::time::Duration::from_millis(LEASE_MS as u64);
    Evidence {
        scenario,
        records: vec![granted(2, 10 + LEASE_MS), granted(4, 9_000 + LEASE_MS)],
        read: events.clone(),
        events,
        jobs: vec![job],
        explained: BTreeMap::new(),
        topic_jobs: Vec::new(),
        runs: vec![run(2, RunOutcome::Expired), run(4, RunOutcome::Succeeded)],
        queues: vec![("demo".parse().unwrap(), one_shipped())],
        topic_counts: Vec::new(),
        budgets: Vec::new(),
        charges: Vec::new(),
        webhooks: Vec::new(),
        effects: Vec::new(),
        branches: BTreeMap::new(),
        calm_since: at(-LEASE_MS),
        ended_at: at(10_000),
    }
}

/// What is found when this is done to a history that is in order.
fn broken(breaks: impl FnOnce(&mut Evidence)) -> Vec<Promise> {
    let mut evidence = in_order();
    breaks(&mut evidence);
    let mut promises: Vec<Promise> = check(&evidence).iter().map(|violation| violation.promise).collect();
    promises.dedup();
    promises
}

/// The feed and what its reader got of it are changed alike.
fn change(evidence: &mut Evidence, at: usize, change: impl Fn(&mut Event)) {
    change(&mut evidence.events[at]);
    change(&mut evidence.read[at]);
}

#[test]
fn a_history_that_is_in_order_breaks_nothing() {
    assert_eq!(broken(|_| {}), []);
}

#[test]
fn a_lease_that_is_taken_back_early() {
    let early = |event: &mut Event| event.at = at(9 + LEASE_MS);
    assert_eq!(broken(|evidence| change(evidence, 2, early)), [Promise::LeaseKept]);
}

#[test]
fn a_lease_that_is_noticed_late() {
    let late = |event: &mut Event| event.at = at(8_999);
    assert_eq!(broken(|evidence| change(evidence, 2, late)), [Promise::RecoveredInTime]);
}

#[test]
fn a_grant_to_a_second_holder() {
    // The first one's lease did not end.
    let nothing = |event: &mut Event| (event.kind, event.to) = (EventKind::Checkpointed, None);
    assert!(broken(|evidence| change(evidence, 2, nothing)).contains(&Promise::OneHolder));
}

#[test]
fn an_epoch_that_does_not_rise() {
    let same = |event: &mut Event| {
        event.data.insert("leaseEpoch".to_owned(), 2.into());
    };
    assert!(broken(|evidence| change(evidence, 3, same)).contains(&Promise::OneHolder));
}

#[test]
fn a_terminal_stage_that_is_left() {
    let found = broken(|evidence| {
        let back = event(7, EventKind::Requeued, Some(Stage::Shipped), Stage::Queued, 9_030);
        evidence.events.push(back.clone());
        evidence.read.push(back);
    });
    assert!(found.contains(&Promise::TerminalAbsorbs), "{found:?}");
}

#[test]
fn a_step_that_is_not_in_the_table() {
    // Shipped without having been started.
    let skipped = |event: &mut Event| event.from = Some(Stage::Assigned);
    let found = broken(|evidence| {
        change(evidence, 4, |event| event.to = Some(Stage::Assigned));
        change(evidence, 5, skipped);
    });
    assert!(found.contains(&Promise::StageTable), "{found:?}");
}

#[test]
fn a_number_that_is_missing() {
    let found = broken(|evidence| change(evidence, 5, |event| event.job = Some((JobId::MIN, EventSeq(7)))));
    assert_eq!(found, [Promise::EventsNumbered]);
}

#[test]
fn an_event_that_is_read_twice() {
    let found = broken(|evidence| evidence.read.insert(3, evidence.read[2].clone()));
    assert_eq!(found, [Promise::FeedComplete]);
}

#[test]
fn an_attempt_too_few() {
    assert_eq!(broken(|evidence| evidence.jobs[0].attempts = 0), [Promise::AttemptsCounted]);
}

#[test]
fn a_job_that_waits_for_nobody() {
    let found = broken(|evidence| {
        evidence.events.truncate(3);
        evidence.read.truncate(3);
        evidence.records.truncate(1);
        let job = &mut evidence.jobs[0];
        job.state = State::Queued { since: at(0), ready_at: at(0), target: None };
        job.last_event = EventSeq(3);
        evidence.runs.truncate(1);
        evidence.queues.clear();
    });
    assert_eq!(found, [Promise::NotStranded]);
}

#[test]
fn a_request_that_wins_twice() {
    let found = broken(|evidence| {
        // The first lease did not end before the second was granted to the same request.
        let Record::Granted { request: first, .. } = evidence.records[0].clone() else { return };
        let Record::Granted { request, .. } = &mut evidence.records[1] else { return };
        *request = first;
        change(evidence, 2, |event| (event.kind, event.to) = (EventKind::Checkpointed, None));
    });
    assert!(found.contains(&Promise::SameGrant), "{found:?}");
}

#[test]
fn a_run_that_never_ends() {
    let found = broken(|evidence| evidence.runs[0].outcome = RunOutcome::Running);
    assert_eq!(found, [Promise::CountsBalance]);
}

#[test]
fn a_count_that_is_wrong() {
    assert_eq!(broken(|evidence| evidence.queues[0].1.by_stage[Stage::Queued] = 1), [Promise::CountsBalance]);
}
