//! What one run has used up so far and the session that it is in, as its engine reports it.
//!
//! Renewals, checkpoints, the final report and the note beside the work read it. It repeats what the engine reported, and
//! adds to it only if the engine ended without reporting; the coordinator makes sure that the reported spend only grows.

use std::sync::Arc;

use giga_api::wire::{Checkpoint, Spend};
use giga_domain::{Timestamp, Usd};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::engines::{EngineReport, Usage};
use crate::workspace::{SessionNote, SpendNote};

#[derive(Debug, Clone, Default)]
pub(super) struct Meter(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    reading: Mutex<Reading>,
    /// There is a session that nobody has noted yet.
    new_session: Notify,
}

#[derive(Debug, Default)]
struct Reading {
    usage: Usage,
    session: Option<Session>,
    model: Option<String>,
    /// Nothing is added any more.
    ended: bool,
    /// Of the cost, more than the engine reported.
    assumed: bool,
    /// What the engine counts is known here at once, and it ends with this process.
    current: bool,
    began: Option<Timestamp>,
}

#[derive(Debug)]
struct Session {
    id: String,
    engine: String,
    used_before: Usage,
}

impl Meter {
    /// The total of the run so far.
    pub(super) fn used(&self, usage: Usage) {
        self.0.reading.lock().usage = usage;
    }

    /// The engine has ended. One that did not report its usage may have used all that was reserved for it.
    pub(super) fn ended(&self, report: &EngineReport, reserved: Usd) {
        let mut reading = self.0.reading.lock();
        (reading.usage, reading.ended) = (report.usage, true);
        if !report.metered && !reserved.is_zero() {
            let reported = reading.usage.cost.unwrap_or_default();
            reading.usage.cost = Some(reported.max(reserved));
            reading.assumed = reserved > reported;
        }
    }

    pub(super) fn usage(&self) -> Usage {
        self.0.reading.lock().usage
    }

    /// Whether the cost is what was reserved, because the engine did not say.
    pub(super) fn is_assumed(&self) -> bool {
        self.0.reading.lock().assumed
    }

    /// For whoever finds the work after a crash.
    pub(super) fn note(&self) -> SpendNote {
        let Reading { usage, ended, session, current, began, .. } = &*self.0.reading.lock();
        let Spend { usd, tokens } = spend(*usage);
        let session = session.as_ref().map(|session| {
            let Spend { usd, tokens } = spend(plus(session.used_before, *usage));
            SessionNote { id: session.id.clone(), engine: Some(session.engine.clone()), usd, tokens }
        });
        SpendNote { usd, tokens, whole: *ended, current: *current, began: *began, session }
    }

    /// The engine is about to be started.
    pub(super) fn begins(&self, now: Timestamp) {
        self.0.reading.lock().began = Some(now);
    }

    /// From the start of an engine that counts as it goes and cannot outlive this process.
    pub(super) fn stays_current(&self) {
        self.0.reading.lock().current = true;
    }

    pub(super) fn session(&self, id: String, engine: &str, used_before: Usage) {
        self.0.reading.lock().session = Some(Session { id, engine: engine.to_owned(), used_before });
        self.0.new_session.notify_one();
    }

    /// Comes back when the engine has named a session since the last time.
    pub(super) async fn new_session(&self) {
        self.0.new_session.notified().await;
    }

    pub(super) fn worked_with(&self, model: String) {
        self.0.reading.lock().model = Some(model);
    }

    /// As the engine named it.
    pub(super) fn model(&self) -> Option<String> {
        self.0.reading.lock().model.clone()
    }

    /// `None` while nothing is known to be used up.
    pub(super) fn spend(&self) -> Option<Spend> {
        Some(self.0.reading.lock().usage).filter(|usage| *usage != Usage::default()).map(spend)
    }

    /// Where there is a session, a later run can go on with it, and knows what it has cost up to here.
    pub(super) fn note_session(&self, checkpoint: &mut Checkpoint) {
        let reading = self.0.reading.lock();
        let Some(session) = &reading.session else { return };
        checkpoint.session_id = Some(session.id.clone());
        checkpoint.session_engine = Some(session.engine.clone());
        checkpoint.session_spend = Some(spend(plus(session.used_before, reading.usage)));
    }
}

fn spend(usage: Usage) -> Spend {
    Spend { usd: usage.cost.unwrap_or_default(), tokens: usage.tokens }
}

fn plus(one: Usage, other: Usage) -> Usage {
    let cost = one.cost.unwrap_or_default() + other.cost.unwrap_or_default();
    Usage { tokens: one.tokens.saturating_add(other.tokens), cost: Some(cost) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engines::EngineOutcome;

    fn usage(tokens: u64, micros: i64) -> Usage {
        Usage { tokens, cost: Some(Usd::from_micros(micros)) }
    }

    #[test]
    fn a_run_tells_its_own_part_and_its_session_the_whole() {
        let meter = Meter::default();
        assert_eq!(meter.spend(), None);
        meter.session("s-1".to_owned(), "claude", usage(100, 2_000_000));
        meter.used(usage(10, 500_000));
        assert_eq!(meter.spend(), Some(Spend { usd: Usd::from_micros(500_000), tokens: 10 }));
        let mut checkpoint = Checkpoint { wip_ref: Some("w".to_owned()), ..Checkpoint::default() };
        meter.note_session(&mut checkpoint);
        assert_eq!(checkpoint.session_id.as_deref(), Some("s-1"));
        assert_eq!(checkpoint.session_spend, Some(Spend { usd: Usd::from_micros(2_500_000), tokens: 110 }));
        assert_eq!(checkpoint.wip_ref.as_deref(), Some("w"), "the rest stays");
    }

    #[test]
    fn a_run_that_did_not_report_its_usage_used_what_was_reserved() {
        let report = |usage, metered| EngineReport {
            outcome: EngineOutcome::Stopped,
            session_id: None,
            usage,
            metered,
            summary: None,
        };
        let after = |report: &EngineReport, reserved| {
            let meter = Meter::default();
            meter.ended(report, Usd::from_micros(reserved));
            (meter.spend(), meter.note().whole)
        };
        let spend = |micros, tokens| Some(Spend { usd: Usd::from_micros(micros), tokens });
        assert_eq!(after(&report(Usage::default(), false), 2_000_000), (spend(2_000_000, 0), true));
        assert_eq!(after(&report(usage(7, 500_000), false), 2_000_000), (spend(2_000_000, 7), true));
        assert_eq!(
            after(&report(usage(7, 3_000_000), false), 2_000_000),
            (spend(3_000_000, 7), true),
            "more is more"
        );
        assert_eq!(after(&report(usage(7, 500_000), true), 2_000_000), (spend(500_000, 7), true));
        assert_eq!(after(&report(Usage::default(), true), 2_000_000), (None, true));
        assert_eq!(after(&report(Usage::default(), false), 0), (None, true), "nothing was reserved");
    }

    #[test]
    fn without_a_session_a_checkpoint_stays_as_it_is() {
        let meter = Meter::default();
        meter.used(usage(10, 5));
        let mut checkpoint = Checkpoint::default();
        meter.note_session(&mut checkpoint);
        assert_eq!(checkpoint, Checkpoint::default());
    }
}
