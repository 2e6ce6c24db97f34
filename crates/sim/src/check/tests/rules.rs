//! The same for money, evictions, graphs and the world outside.

use giga_domain::budget::PerPeriod;
use giga_domain::{
    Budget, BudgetSettings, Charge, ChargeHow, Effect, EffectState, EffectTarget, JobKind, NewEffect,
    Priority, SigningKey, Usd, Webhook, WebhookId,
};
use serde_json::json;

use super::*;
use crate::history::Word;

fn demo() -> ProductId {
    "demo".parse().unwrap()
}

fn charge(epoch: u64, micros: i64) -> Charge {
    let run = Some((JobId::MIN, Epoch(epoch)));
    Charge {
        product: demo(),
        run,
        at: at(9_020),
        usd: Usd::from_micros(micros),
        tokens: 0,
        how: ChargeHow::Measured,
    }
}

/// The second run reported a cost of seven, and was charged for it.
fn charged(evidence: &mut Evidence) {
    let Record::Granted { factory, job, .. } = evidence.records[1].clone() else { return };
    let reported = Usd::from_micros(7);
    evidence.records.push(Record::Reporting { job: JobId::MIN, epoch: Epoch(4), reported });
    let (epoch, word, after) = (Epoch(4), Word::Report, Seen { seq: EventSeq(6), holder: None, ..job });
    evidence.records.push(Record::Held { factory, epoch, word, reported, after });
    evidence.charges = vec![charge(4, 7)];
    let mut budget = Budget::new(demo());
    budget.spent.total.usd = Usd::from_micros(7);
    evidence.budgets = vec![budget];
}

fn with_limit(evidence: &mut Evidence, total: i64, cap: i64) {
    let limits = PerPeriod { total: Some(Usd::from_micros(total)), ..PerPeriod::default() };
    let settings = BudgetSettings { limits, job_cap: None };
    evidence.records.push(Record::BudgetSet { at: at(-1), product: demo(), settings });
    evidence.records.push(Record::Asked { job: JobId::MIN, cap: Some(Usd::from_micros(cap)) });
}

/// Puts an event before the one at `place`; those after it are numbered anew.
fn insert(evidence: &mut Evidence, place: usize, event: Event) {
    evidence.events.insert(place, event);
    for (event, number) in evidence.events.iter_mut().zip(1..) {
        event.pos = FeedPos(number);
        event.job = event.job.map(|(job, _)| (job, EventSeq(number)));
    }
    evidence.read = evidence.events.clone();
}

#[test]
fn money_that_is_in_order() {
    let found = broken(|evidence| {
        charged(evidence);
        with_limit(evidence, 12, 10);
    });
    assert_eq!(found, []);
}

#[test]
fn a_grant_that_does_not_fit_its_limit() {
    assert_eq!(broken(|evidence| with_limit(evidence, 9, 10)), [Promise::BudgetKept]);
}

#[test]
fn a_grant_of_a_paused_budget() {
    let found = broken(|evidence| {
        let paused =
            Event { job: None, to: None, ..event(9, EventKind::BudgetPaused, None, Stage::Queued, 5) };
        insert(evidence, 1, paused);
    });
    assert!(found.contains(&Promise::BudgetKept), "{found:?}");
}

#[test]
fn a_run_that_is_not_charged() {
    let found = broken(|evidence| {
        charged(evidence);
        (evidence.charges, evidence.budgets) = (Vec::new(), Vec::new());
    });
    assert_eq!(found, [Promise::ChargedOnce]);
}

#[test]
fn a_run_that_is_charged_twice_or_too_much() {
    let twice = broken(|evidence| {
        charged(evidence);
        evidence.charges.push(charge(4, 7));
        evidence.budgets[0].spent.total.usd = Usd::from_micros(14);
    });
    assert_eq!(twice, [Promise::ChargedOnce]);
    let too_much = broken(|evidence| {
        charged(evidence);
        evidence.charges[0].usd = Usd::from_micros(8);
        evidence.budgets[0].spent.total.usd = Usd::from_micros(8);
    });
    assert_eq!(too_much, [Promise::ChargedOnce]);
}

#[test]
fn a_silent_run_that_is_charged_nothing() {
    let found = broken(|evidence| {
        with_limit(evidence, 100, 10);
        change(evidence, 2, |event| event.from = Some(Stage::Building));
    });
    assert!(found.contains(&Promise::ChargedOnce), "{found:?}");
}

#[test]
fn books_that_do_not_agree_with_the_leases() {
    let off = Record::BudgetOff {
        at: at(0),
        product: demo(),
        reserved: Usd::from_micros(1),
        leases: Usd::from_micros(2),
    };
    assert_eq!(broken(|evidence| evidence.records.push(off)), [Promise::ChargedOnce]);
}

#[test]
fn an_eviction_that_nobody_asked_for() {
    let preempted = |event: &mut Event| event.kind = EventKind::Preempted;
    let found = broken(|evidence| {
        change(evidence, 2, preempted);
        evidence.jobs[0].attempts = 0;
        evidence.jobs[0].evictions = 1;
    });
    assert_eq!(found, [Promise::EvictionsFree]);
}

/// Asked in the middle of the first run, for a job of that priority.
fn asked(evidence: &mut Evidence, asker: Priority) {
    evidence.scenario.rules.preemption = true;
    evidence.scenario.rules.max_evictions = 3;
    let mut other = evidence.jobs[0].clone();
    other.id = JobId::from_u128(7);
    other.spec.priority = asker;
    evidence.jobs.push(other);
    let mut ask = event(9, EventKind::EvictionAsked, None, Stage::Assigned, 20);
    ask.to = None;
    ask.data.insert("forJob".to_owned(), JobId::from_u128(7).to_string().into());
    insert(evidence, 2, ask);
}

#[test]
fn an_eviction_for_a_job_that_is_not_more_urgent() {
    let fine = broken(|evidence| asked(evidence, Priority::Critical));
    assert!(!fine.contains(&Promise::EvictionsFree), "{fine:?}");
    let found = broken(|evidence| asked(evidence, Priority::High));
    assert!(found.contains(&Promise::EvictionsFree), "{found:?}");
}

#[test]
fn an_eviction_too_many() {
    let found = broken(|evidence| {
        asked(evidence, Priority::Critical);
        evidence.scenario.rules.max_evictions = 0;
    });
    assert!(found.contains(&Promise::EvictionsFree), "{found:?}");
}

#[test]
fn a_job_that_runs_before_its_deps() {
    let found = broken(|evidence| evidence.jobs[0].spec.deps = vec![JobId::from_u128(7)]);
    assert_eq!(found, [Promise::GraphKept]);
}

#[test]
fn a_composite_that_is_granted() {
    assert_eq!(broken(|evidence| evidence.jobs[0].spec.kind = JobKind::Composite), [Promise::GraphKept]);
}

#[test]
fn a_job_that_waits_for_what_never_comes() {
    let found = broken(|evidence| {
        evidence.jobs[0].state = State::Blocked;
        evidence.jobs[0].spec.deps = vec![JobId::from_u128(7)];
    });
    assert!(found.contains(&Promise::GraphKept), "{found:?}");
}

#[test]
fn a_child_that_outlives_its_cancelled_parent() {
    let found = broken(|evidence| {
        let mut child = evidence.jobs[0].clone();
        (child.id, child.state, child.spec.parent) = (JobId::from_u128(7), State::Testing, Some(JobId::MIN));
        evidence.jobs.push(child);
        evidence.jobs[0].state = State::Cancelled { reason: None };
    });
    assert!(found.contains(&Promise::GraphKept), "{found:?}");
}

/// Somebody subscribed to the job's shipping, and got the event.
fn listens(evidence: &mut Evidence) {
    let id = WebhookId::MIN;
    evidence.webhooks.push(Webhook {
        id,
        product: None,
        url: String::new(),
        kinds: vec![EventKind::Shipped],
        secret: SigningKey([0; 32]),
        created_at: at(0),
        since: FeedPos::ZERO,
    });
    let new = NewEffect {
        id: "wh:6".parse().unwrap(),
        product: None,
        target: EffectTarget::Webhook(id),
        job: None,
        payload: json!({ "pos": 6 }),
    };
    evidence.effects.push(Effect { state: EffectState::Delivered, ..Effect::new(new, at(0)) });
    evidence.records.push(Record::Outside { id: "wh:6".to_owned(), webhook: id, pos: 6, taken: true });
}

#[test]
fn what_is_told_once_is_in_order() {
    assert_eq!(broken(listens), []);
}

#[test]
fn an_event_that_nobody_is_told_of() {
    let found = broken(|evidence| {
        listens(evidence);
        evidence.effects.clear();
    });
    assert_eq!(found, [Promise::DeliveredOnce]);
}

#[test]
fn an_event_that_is_told_twice_or_under_two_names_or_never() {
    let twice = broken(|evidence| {
        listens(evidence);
        evidence.effects.push(evidence.effects[0].clone());
    });
    assert_eq!(twice, [Promise::DeliveredOnce]);
    let renamed = broken(|evidence| {
        listens(evidence);
        let webhook = WebhookId::MIN;
        evidence.records.push(Record::Outside { id: "wh:6-2".to_owned(), webhook, pos: 6, taken: true });
    });
    assert_eq!(renamed, [Promise::DeliveredOnce]);
    let pending = broken(|evidence| {
        listens(evidence);
        evidence.effects[0].state = EffectState::Pending { due: at(0) };
    });
    assert_eq!(pending, [Promise::DeliveredOnce]);
    let pretended = broken(|evidence| {
        listens(evidence);
        evidence.records.pop();
    });
    assert_eq!(pretended, [Promise::DeliveredOnce]);
}
