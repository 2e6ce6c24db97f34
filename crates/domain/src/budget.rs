//! What a product may spend, what it has spent, and what its running jobs may still spend.
//!
//! Money is promised before it is spent: a claim sets the job's own cap aside (it stands on the lease, so it ends with
//! it), and what the run really cost is charged when the lease ends. A claim is admitted only where spent + reserved +
//! its own cap stays within every limit; so whatever is in flight, the limit can be passed by overruns alone.
//!
//! Days, weeks (from Monday) and months are those of UTC.

use jiff::civil::Weekday;
use jiff::tz::TimeZone;
use jiff::{RoundMode, Unit, ZonedRound};
use serde::{Deserialize, Serialize};

use crate::transition::Refund;
use crate::word::words;
use crate::{Actor, Epoch, JobId, NewEvent, ProductId, Rev, Timestamp, Usd};

words! {
    "period",
    pub enum Period {
        Day,
        Week,
        Month,
        Total,
    }
}

impl Period {
    /// What people read for it, before "limit".
    pub const fn label(self) -> &'static str {
        match self {
            Self::Day => "daily",
            Self::Week => "weekly",
            Self::Month => "monthly",
            Self::Total => "total",
        }
    }

    /// When the period that `now` lies in began. `Total` has begun before everything.
    pub fn start(self, now: Timestamp) -> Timestamp {
        self.bounds(now).map_or(Timestamp::ZERO, |(start, _)| start)
    }

    /// When it ends; `None` for `Total`.
    pub fn end(self, now: Timestamp) -> Option<Timestamp> {
        self.bounds(now).map(|(_, end)| end)
    }

    fn bounds(self, now: Timestamp) -> Option<(Timestamp, Timestamp)> {
        let day = jiff::Timestamp::from_millisecond(now.as_millis())
            .ok()?
            .to_zoned(TimeZone::UTC)
            .round(ZonedRound::new().smallest(Unit::Day).mode(RoundMode::Trunc))
            .ok()?;
        let (start, end) = match self {
            Self::Day => (day.clone(), day.tomorrow().ok()?),
            Self::Week => {
                let back = day.weekday().since(Weekday::Monday);
                let monday = day.checked_sub(jiff::Span::new().days(back)).ok()?;
                (monday.clone(), monday.checked_add(jiff::Span::new().days(7)).ok()?)
            }
            Self::Month => {
                let first = day.first_of_month().ok()?;
                (first.clone(), first.checked_add(jiff::Span::new().months(1)).ok()?)
            }
            Self::Total => return None,
        };
        let millis = |at: jiff::Zoned| Timestamp::from_millis(at.timestamp().as_millisecond());
        Some((millis(start), millis(end)))
    }
}

/// What was used up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spend {
    #[serde(rename = "usdMicros", with = "crate::usd::as_micros")]
    pub usd: Usd,
    pub tokens: u64,
}

impl Spend {
    pub const fn is_zero(self) -> bool {
        self.usd.is_zero() && self.tokens == 0
    }

    /// The larger of each: what is reported of a run only ever grows.
    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self { usd: self.usd.max(other.usd), tokens: self.tokens.max(other.tokens) }
    }

    /// More than any run can use up counts as this much, so that sums over thousands of runs stay numbers that a
    /// database can count, whatever a holder tells.
    #[must_use]
    pub fn bounded(self) -> Self {
        const MOST_USD: Usd = Usd::from_dollars(1_000_000_000);
        const MOST_TOKENS: u64 = 1_000_000_000_000_000;
        Self { usd: self.usd.min(MOST_USD), tokens: self.tokens.min(MOST_TOKENS) }
    }
}

/// One value per period.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PerPeriod<T> {
    pub day: T,
    pub week: T,
    pub month: T,
    pub total: T,
}

impl<T> PerPeriod<T> {
    pub fn map<U>(self, each: impl Fn(T) -> U) -> PerPeriod<U> {
        PerPeriod {
            day: each(self.day),
            week: each(self.week),
            month: each(self.month),
            total: each(self.total),
        }
    }

    pub fn of(&self, period: Period) -> &T {
        match period {
            Period::Day => &self.day,
            Period::Week => &self.week,
            Period::Month => &self.month,
            Period::Total => &self.total,
        }
    }

    pub fn of_mut(&mut self, period: Period) -> &mut T {
        match period {
            Period::Day => &mut self.day,
            Period::Week => &mut self.week,
            Period::Month => &mut self.month,
            Period::Total => &mut self.total,
        }
    }
}

/// What was spent since a period began. One that is over counts as empty.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Window {
    pub since: Timestamp,
    #[serde(rename = "usdMicros", with = "crate::usd::as_micros")]
    pub usd: Usd,
    pub tokens: u64,
}

/// What people set. No limit at all is normal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BudgetSettings {
    #[serde(default, rename = "ceilings", with = "limits_as_micros")]
    pub limits: PerPeriod<Option<Usd>>,
    /// The cap of a job that names none: reserved for it and enforced while it runs. Without it such a job is admitted
    /// while anything is left, and may overrun.
    #[serde(
        rename = "jobUsdMicros",
        default,
        skip_serializing_if = "Option::is_none",
        with = "crate::usd::as_micros::option"
    )]
    pub job_cap: Option<Usd>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "cause", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum PauseCause {
    /// By an operator. It stays until somebody resumes it.
    Operator {
        by: Actor,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A limit was reached. It ends with the period, or with a higher limit.
    #[serde(rename = "ceiling")]
    Limit { period: Period },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Pause {
    pub at: Timestamp,
    #[serde(flatten)]
    pub cause: PauseCause,
}

/// Of every product that ever had a job claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Budget {
    pub product: ProductId,
    pub settings: BudgetSettings,
    pub paused: Option<Pause>,
    pub spent: PerPeriod<Window>,
    /// The sum of what stands on the leases of its jobs.
    pub reserved: Usd,
    /// Rises with what people change, not with what is spent.
    pub rev: Rev,
}

/// Why a claim is not admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closed {
    Paused,
    /// So much more would have to be left for the job to fit.
    Short {
        period: Period,
        missing: Usd,
    },
}

/// What a run cost, for the ledger: written once, when its lease ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Charge {
    pub product: ProductId,
    /// `None` for a correction by hand.
    pub run: Option<(JobId, Epoch)>,
    pub at: Timestamp,
    /// Negative only for corrections.
    pub usd: Usd,
    pub tokens: u64,
    pub how: ChargeHow,
}

words! {
    "kind of charge",
    pub enum ChargeHow {
        /// What the holder reported.
        Measured,
        /// The holder went silent while it worked: all that it was allowed to spend counts as spent.
        Assumed,
        Correction,
        /// Hours of factories of a pool.
        PoolHours,
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BudgetChange {
    Set(BudgetSettings),
    Pause {
        reason: Option<String>,
    },
    Resume,
    /// A correction of the ledger by hand.
    Correct {
        usd: Usd,
        reason: String,
    },
}

/// Above this share of a limit (in percent) there is an alert.
pub const NEAR_PERCENT: i64 = 80;

impl Budget {
    pub fn new(product: ProductId) -> Self {
        Self {
            product,
            settings: BudgetSettings::default(),
            paused: None,
            spent: PerPeriod::default(),
            reserved: Usd::ZERO,
            rev: Rev(0),
        }
    }

    /// What was spent in the period that `now` lies in.
    pub fn spent_in(&self, period: Period, now: Timestamp) -> Spend {
        let window = self.spent.of(period);
        if window.since >= period.start(now) {
            Spend { usd: window.usd, tokens: window.tokens }
        } else {
            Spend::default()
        }
    }

    /// What is left of the tightest limit, reservations taken off. `None`: there is no limit.
    pub fn left(&self, now: Timestamp) -> Option<(Usd, Period)> {
        let left = |period: Period| {
            let limit = (*self.settings.limits.of(period))?;
            Some((limit.less(self.spent_in(period, now).usd + self.reserved), period))
        };
        Period::ALL.into_iter().filter_map(left).min_by_key(|(left, _)| *left)
    }

    /// What stops every job of the product now. A pause by a limit ends with its period, and names the limit that
    /// holds now, which need not be the one that closed it.
    pub fn pause_now(&self, now: Timestamp) -> Option<Pause> {
        let pause = self.paused.as_ref()?;
        match pause.cause {
            PauseCause::Operator { .. } => Some(pause.clone()),
            PauseCause::Limit { .. } => {
                self.reached(now).map(|period| Pause { at: pause.at, cause: PauseCause::Limit { period } })
            }
        }
    }

    /// Of the limits that what was spent has reached, the one whose period ends last: until then it stays closed.
    fn reached(&self, now: Timestamp) -> Option<Period> {
        let reached = |period: &Period| {
            self.settings.limits.of(*period).is_some_and(|c| self.spent_in(*period, now).usd >= c)
        };
        let ends = |period: &Period| period.end(now).map_or(i64::MAX, Timestamp::as_millis);
        Period::ALL.into_iter().filter(reached).max_by_key(ends)
    }

    /// How much is reserved for a job with this cap of its own.
    pub fn share_of(&self, cap: Option<Usd>) -> Usd {
        cap.or(self.settings.job_cap).unwrap_or_default()
    }

    /// Whether a job with this cap may be claimed now.
    pub fn admits(&self, cap: Option<Usd>, now: Timestamp) -> Result<(), Closed> {
        if self.pause_now(now).is_some() {
            return Err(Closed::Paused);
        }
        let Some((left, period)) = self.left(now) else { return Ok(()) };
        // One that reserves nothing needs that something is left.
        let needed = self.share_of(cap).max(Usd::LEAST);
        let missing = needed.less(left);
        if missing.is_zero() { Ok(()) } else { Err(Closed::Short { period, missing }) }
    }

    /// Adds a charge to every period, and closes the budget when a limit is reached by it. The events are in
    /// order: a pause of a period that is over ends first, so that the new one has an event of its own.
    pub fn charge(&mut self, usd: Usd, tokens: u64, now: Timestamp) -> Vec<NewEvent> {
        let mut events = Vec::from_iter(self.reopen(now));
        for period in Period::ALL {
            let start = period.start(now);
            let window = self.spent.of_mut(period);
            // Only ever forward: a clock that is set back over midnight must not make a day begin anew.
            if window.since < start {
                *window = Window { since: start, ..Window::default() };
            }
            window.usd = (window.usd + usd).max(Usd::ZERO);
            window.tokens = window.tokens.saturating_add(tokens);
        }
        events.extend(self.judge(now));
        events
    }

    /// Takes back what a run was charged too much, from those periods alone that it was charged to.
    pub fn refund(&mut self, refund: Refund, now: Timestamp) -> Vec<NewEvent> {
        for period in Period::ALL {
            let window = self.spent.of_mut(period);
            if window.since <= refund.charged_at {
                window.usd = window.usd.less(refund.usd);
                window.tokens = window.tokens.saturating_add(refund.tokens);
            }
        }
        self.judge(now)
    }

    /// Opens or closes it, as what was spent says.
    fn judge(&mut self, now: Timestamp) -> Vec<NewEvent> {
        let reopened = self.reopen(now);
        reopened.into_iter().chain(self.close_where_reached(now)).collect()
    }

    /// An event once for each limit that closes it.
    fn close_where_reached(&mut self, now: Timestamp) -> Option<NewEvent> {
        let period = self.reached(now)?;
        match self.paused.as_ref().map(|pause| &pause.cause) {
            Some(PauseCause::Operator { .. }) => return None,
            Some(PauseCause::Limit { period: known }) if *known == period => return None,
            Some(PauseCause::Limit { .. }) | None => {}
        }
        self.paused = Some(Pause { at: now, cause: PauseCause::Limit { period } });
        let limit = self.settings.limits.of(period).unwrap_or_default();
        let spent = self.spent_in(period, now).usd;
        Some(NewEvent::budget_exhausted(&self.product, period, spent, limit))
    }

    /// A pause by a limit that holds no longer is taken back, with the event that says so.
    pub fn reopen(&mut self, now: Timestamp) -> Option<NewEvent> {
        self.paused.as_ref()?;
        if self.pause_now(now).is_some() {
            return None;
        }
        self.paused = None;
        Some(NewEvent::budget_reopened(&self.product))
    }

    /// What people change. The events that tell of it; none where everything is so already.
    pub fn change(&mut self, change: &BudgetChange, actor: &Actor, now: Timestamp) -> Vec<NewEvent> {
        let reopened = self.reopen(now);
        let mut events = Vec::new();
        match change {
            BudgetChange::Set(settings) if self.settings == *settings => {}
            BudgetChange::Set(settings) => {
                self.settings = *settings;
                events.push(NewEvent::budget_set(&self.product));
                events.extend(self.judge(now));
            }
            BudgetChange::Pause { .. }
                if matches!(&self.paused, Some(Pause { cause: PauseCause::Operator { .. }, .. })) => {}
            BudgetChange::Pause { reason } => {
                let cause = PauseCause::Operator { by: actor.clone(), reason: reason.clone() };
                self.paused = Some(Pause { at: now, cause });
                events.push(NewEvent::budget_paused(&self.product, reason.as_deref()));
            }
            BudgetChange::Resume => {
                if self.paused.take().is_some() {
                    events.push(NewEvent::budget_resumed(&self.product));
                    // Where the limit is still reached it stays closed, and the history says so.
                    events.extend(self.close_where_reached(now));
                }
            }
            BudgetChange::Correct { usd, reason } => {
                events.push(NewEvent::budget_corrected(&self.product, *usd, reason));
                events.extend(self.charge(*usd, 0, now));
            }
        }
        if !events.is_empty() {
            self.rev = self.rev.next();
        }
        reopened.into_iter().chain(events).collect()
    }
}

/// Stored like every other amount: `{"day": 2500000, …}`.
mod limits_as_micros {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::PerPeriod;
    use crate::usd::{Micros, Usd};

    pub(super) fn serialize<S: Serializer>(
        limits: &PerPeriod<Option<Usd>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        limits.map(|limit| limit.map(Micros)).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<PerPeriod<Option<Usd>>, D::Error> {
        let limits = PerPeriod::<Option<Micros>>::deserialize(deserializer)?;
        Ok(limits.map(|limit| limit.map(|Micros(usd)| usd)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EventKind;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn budget(settings: BudgetSettings) -> Budget {
        Budget { settings, ..Budget::new("demo".parse().unwrap()) }
    }

    fn kinds(events: Vec<NewEvent>) -> Vec<EventKind> {
        events.into_iter().map(|event| event.kind).collect()
    }

    const fn usd(micros: i64) -> Usd {
        Usd::from_micros(micros)
    }

    fn day(micros: i64) -> BudgetSettings {
        let limits = PerPeriod { day: Some(usd(micros)), ..PerPeriod::default() };
        BudgetSettings { limits, job_cap: None }
    }

    #[test]
    fn periods_begin_where_the_calendar_says() {
        let now = at("2026-11-15T16:30:12.345Z"); // a Sunday
        let bounds = |period: Period| {
            (period.start(now).to_string(), period.end(now).map(|end| end.to_string()).unwrap_or_default())
        };
        let pair = |a: &str, b: &str| (format!("{a}T00:00:00.000Z"), format!("{b}T00:00:00.000Z"));
        assert_eq!(bounds(Period::Day), pair("2026-11-15", "2026-11-16"));
        assert_eq!(bounds(Period::Week), pair("2026-11-09", "2026-11-16"));
        assert_eq!(bounds(Period::Month), pair("2026-11-01", "2026-12-01"));
        assert_eq!((Period::Total.start(now), Period::Total.end(now)), (Timestamp::ZERO, None));
        let leap = at("2028-02-29T23:59:59.999Z");
        assert_eq!(Period::Month.end(leap), Some(at("2028-03-01T00:00:00Z")));
    }

    #[test]
    fn what_is_reserved_counts_as_much_as_what_is_spent() {
        let now = at("2026-11-15T10:00:00Z");
        let mut budget = budget(day(10));
        assert_eq!(budget.admits(Some(usd(10)), now), Ok(()));
        budget.reserved = usd(4);
        budget.charge(usd(3), 0, now);
        assert_eq!(budget.admits(Some(usd(3)), now), Ok(()));
        let missing = usd(1);
        assert_eq!(budget.admits(Some(usd(4)), now), Err(Closed::Short { period: Period::Day, missing }));
        assert_eq!(budget.admits(None, now), Ok(()), "something is left");
        budget.reserved = usd(7);
        assert!(budget.admits(None, now).is_err(), "nothing is left");
    }

    #[test]
    fn a_limit_pauses_until_its_period_is_over() {
        let (today, tomorrow) = (at("2026-11-15T10:00:00Z"), at("2026-11-16T00:00:00Z"));
        let mut budget = budget(day(10));
        assert_eq!(budget.charge(usd(9), 0, today), []);
        assert_eq!(
            kinds(budget.charge(usd(2), 0, today)),
            [EventKind::BudgetExhausted],
            "the limit is passed"
        );
        assert_eq!(budget.charge(usd(1), 0, today), [], "one event");
        assert_eq!(budget.admits(None, today), Err(Closed::Paused));
        assert_eq!(budget.reopen(today), None);
        assert_eq!(budget.admits(Some(usd(10)), tomorrow), Ok(()));
        assert_eq!(budget.reopen(tomorrow).map(|event| event.kind), Some(EventKind::BudgetResumed));
        assert_eq!(budget.paused, None);
    }

    #[test]
    fn a_clock_that_is_set_back_over_midnight_gives_nothing_back() {
        let (before, after) = (at("2026-11-15T23:59:00Z"), at("2026-11-16T00:01:00Z"));
        let mut budget = budget(day(10));
        budget.charge(usd(6), 0, after);
        budget.charge(usd(3), 0, before);
        assert_eq!(
            [budget.spent_in(Period::Day, before), budget.spent_in(Period::Day, after)].map(|s| s.usd),
            [usd(9), usd(9)]
        );
    }

    #[test]
    fn an_operators_pause_outlives_every_period_and_a_resume_cannot_lift_a_limit() {
        let (today, next_year) = (at("2026-11-15T10:00:00Z"), at("2027-11-15T10:00:00Z"));
        let mut budget = budget(day(10));
        let somebody = Actor::system("ana");
        let pause = BudgetChange::Pause { reason: None };
        assert_eq!(kinds(budget.change(&pause, &somebody, today)), [EventKind::BudgetPaused]);
        assert_eq!(kinds(budget.change(&pause, &somebody, today)), []);
        assert_eq!(budget.admits(None, next_year), Err(Closed::Paused));
        budget.charge(usd(10), 0, today);
        let resumed = kinds(budget.change(&BudgetChange::Resume, &somebody, today));
        assert_eq!(resumed, [EventKind::BudgetResumed, EventKind::BudgetExhausted]);
        let raised = kinds(budget.change(&BudgetChange::Set(day(20)), &somebody, today));
        assert_eq!(raised, [EventKind::BudgetChanged, EventKind::BudgetResumed]);
        assert_eq!(budget.admits(Some(usd(10)), today), Ok(()));
    }

    /// Nobody looked at it in between: neither a claim nor a sweep took the pause back.
    #[test]
    fn each_period_that_is_used_up_is_told_anew() {
        let (today, tomorrow) = (at("2026-11-15T10:00:00Z"), at("2026-11-16T09:00:00Z"));
        let mut budget = budget(day(10));
        assert_eq!(kinds(budget.charge(usd(10), 0, today)), [EventKind::BudgetExhausted]);
        let both = [EventKind::BudgetResumed, EventKind::BudgetExhausted];
        assert_eq!(kinds(budget.charge(usd(10), 0, tomorrow)), both);
        assert_eq!(budget.paused.as_ref().map(|pause| pause.at), Some(tomorrow));
        let next = at("2026-11-17T09:00:00Z");
        let correct = BudgetChange::Correct { usd: usd(10), reason: "by mail".to_owned() };
        let events = kinds(budget.change(&correct, &Actor::system("ana"), next));
        assert_eq!(events, [both[0], EventKind::BudgetChanged, both[1]]);
    }

    #[test]
    fn a_pause_names_the_limit_that_holds_it_longest() {
        let today = at("2026-11-15T10:00:00Z"); // a Sunday
        let limits = PerPeriod {
            day: Some(usd(10)),
            week: Some(usd(10)),
            month: Some(usd(30)),
            ..PerPeriod::default()
        };
        let mut budget = budget(BudgetSettings { limits, job_cap: None });
        let period = |budget: &Budget, now| match budget.pause_now(now).map(|pause| pause.cause) {
            Some(PauseCause::Limit { period }) => Some(period),
            other => panic!("{other:?}"),
        };
        budget.charge(usd(10), 0, today);
        assert_eq!(period(&budget, today), Some(Period::Week));
        assert_eq!(
            kinds(budget.charge(usd(20), 0, today)),
            [EventKind::BudgetExhausted],
            "it lasts longer now"
        );
        assert_eq!(period(&budget, today), Some(Period::Month));
        assert_eq!(budget.pause_now(today), budget.paused);
        assert_eq!(budget.charge(usd(1), 0, today), [], "that is known");
        // What was noted is not what holds it: whoever looks sees what does.
        budget.paused = Some(Pause { at: today, cause: PauseCause::Limit { period: Period::Day } });
        assert_eq!(period(&budget, at("2026-11-16T10:00:00Z")), Some(Period::Month));
        assert_eq!(budget.pause_now(at("2026-12-01T00:00:00Z")), None);
    }

    #[test]
    fn what_is_given_back_goes_to_the_periods_that_it_was_taken_from() {
        let (before, after) = (at("2026-11-15T23:59:00Z"), at("2026-11-16T00:01:00Z"));
        let mut budget = budget(day(10));
        budget.charge(usd(9), 0, before);
        budget.charge(usd(10), 0, after);
        let refund = Refund { usd: usd(7), tokens: 3, charged_at: before };
        assert_eq!(budget.refund(refund, after), [], "today's money is as spent as it was");
        assert_eq!(budget.spent_in(Period::Day, after), Spend { usd: usd(10), tokens: 0 });
        assert_eq!(budget.spent_in(Period::Month, after), Spend { usd: usd(12), tokens: 3 });
        let refund = Refund { charged_at: after, ..refund };
        assert_eq!(kinds(budget.refund(refund, after)), [EventKind::BudgetResumed]);
        assert_eq!(budget.spent_in(Period::Day, after).usd, usd(3));
    }

    #[test]
    fn stored_settings_and_windows_keep_their_millionths() {
        let old = r#"{"ceilings":{"day":2500000,"week":null,"month":null,"total":1},"jobUsdMicros":250000}"#;
        let settings: BudgetSettings = serde_json::from_str(old).unwrap();
        let limits = PerPeriod { day: Some(usd(2_500_000)), total: Some(usd(1)), ..PerPeriod::default() };
        assert_eq!(settings, BudgetSettings { limits, job_cap: Some(usd(250_000)) });
        assert_eq!(serde_json::to_string(&settings).unwrap(), old);
        assert_eq!(serde_json::from_str::<BudgetSettings>("{}").unwrap(), BudgetSettings::default());
        let old = r#"{"since":"2026-11-15T00:00:00.000Z","usdMicros":7,"tokens":3}"#;
        let window: Window = serde_json::from_str(old).unwrap();
        assert_eq!((window.usd, window.tokens), (usd(7), 3));
        assert_eq!(serde_json::to_string(&window).unwrap(), old);
        for negative in [r#"{"ceilings":{"day":-1}}"#, r#"{"jobUsdMicros":-1}"#] {
            assert!(serde_json::from_str::<BudgetSettings>(negative).is_err(), "{negative}");
        }
    }
}
