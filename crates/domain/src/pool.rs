//! Pools: templates of factories that appear with the work and leave after it.
//!
//! A pool says what a factory of it is like and how many there may be; a *member* is one such factory, from the order to start
//! it until nothing of it is left. What members do, the scheduler's demand decides; nothing here starts anything.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::factory::FactoryRepo;
use crate::word::words;
use crate::{Account, CapabilitySet, FactoryId, PoolName, ProductId, Rev, Timestamp, Usd, limits};

words! {
    "pool driver",
    /// Who starts and stops the factories of a pool.
    #[derive(Default)]
    pub enum DriverKind {
        /// The leading coordinator, as processes on its own host.
        #[default]
        Process,
        /// A program of the operator's: a cloud's command line, a script that wakes a machine.
        Command,
        /// The coordinator, as Jobs of a Kubernetes cluster.
        Kubernetes,
        /// Somebody else, who asks how many are wanted: KEDA's external scaler.
        Keda,
    }
}

/// What an operator sets.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct PoolSettings {
    pub driver: DriverKind,
    /// `command`: the program and its first arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// `kubernetes`: the image of the factory, and where its Jobs are made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// More arguments of `giga factory run`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Where its factories find the coordinator; without it, where the coordinator says that it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// What its factories advertise beside what they detect.
    #[serde(skip_serializing_if = "CapabilitySet::is_empty")]
    pub capabilities: CapabilitySet,
    /// Whose jobs they take; none means everybody's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub products: Vec<ProductId>,
    /// Jobs at a time on one of them.
    pub seats: u32,
    /// So many at all times.
    pub min: u32,
    /// So many at most.
    pub max: u32,
    /// So many beyond those that work, for whoever comes next.
    pub warm: u32,
    /// One without work for so long leaves.
    #[serde(rename = "idleMs", with = "millis")]
    pub idle: Duration,
    /// One that has not enrolled by then has failed to start.
    #[serde(rename = "startTimeoutMs", with = "millis")]
    pub start_timeout: Duration,
    #[serde(
        rename = "costUsdMicrosPerHour",
        skip_serializing_if = "Option::is_none",
        with = "crate::usd::as_micros::option"
    )]
    pub cost_per_hour: Option<Usd>,
    /// The product whose budget pays its hours. While that budget is closed nothing is started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub charge_to: Option<ProductId>,
    /// Starts nothing; what runs goes on and leaves when it is idle.
    pub paused: bool,
}

impl Default for PoolSettings {
    fn default() -> Self {
        Self {
            driver: DriverKind::default(),
            command: Vec::new(),
            image: None,
            namespace: None,
            args: Vec::new(),
            url: None,
            capabilities: CapabilitySet::default(),
            products: Vec::new(),
            seats: 1,
            min: 0,
            max: 1,
            warm: 0,
            idle: Duration::from_mins(5),
            start_timeout: Duration::from_mins(10),
            cost_per_hour: None,
            charge_to: None,
            paused: false,
        }
    }
}

/// What is wrong with settings: which field, and what would be right.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {rule}")]
pub struct PoolError {
    pub field: &'static str,
    pub rule: String,
}

impl PoolSettings {
    /// Settings that contradict themselves are refused before anything is started by them.
    pub fn check(&self) -> Result<(), PoolError> {
        let wrong = |field, rule: String| Err(PoolError { field, rule });
        if self.seats == 0 || self.seats > limits::POOL_SEATS {
            return wrong("seats", format!("from 1 to {}", limits::POOL_SEATS));
        }
        if self.max > limits::POOL_FACTORIES {
            return wrong("max", format!("at most {}", limits::POOL_FACTORIES));
        }
        if self.min > self.max {
            return wrong("min", format!("at most `max`, which is {}", self.max));
        }
        if self.warm > self.max {
            return wrong("warm", format!("at most `max`, which is {}", self.max));
        }
        if self.idle < Duration::from_secs(1) || self.idle > limits::POOL_TIME {
            return wrong("idle", "from 1s to 7d".to_owned());
        }
        if self.start_timeout < Duration::from_secs(1) || self.start_timeout > limits::POOL_TIME {
            return wrong("startTimeout", "from 1s to 7d".to_owned());
        }
        let is_command = self.driver == DriverKind::Command;
        if is_command && self.command.first().is_none_or(|program| program.trim().is_empty()) {
            return wrong("command", "the driver `command` needs the program that it runs".to_owned());
        }
        if !is_command && !self.command.is_empty() {
            return wrong("command", format!("the driver is `{}`; only `command` has one", self.driver));
        }
        if self.driver == DriverKind::Kubernetes && self.image.as_deref().is_none_or(str::is_empty) {
            return wrong("image", "the driver `kubernetes` needs the image of the factory".to_owned());
        }
        if self.driver == DriverKind::Keda && (self.min > 0 || self.warm > 0) && self.max == 0 {
            return wrong("max", "at least what is kept".to_owned());
        }
        let texts = self.command.iter().chain(&self.args).chain(&self.image).chain(&self.namespace);
        if texts.chain(&self.url).any(|text| text.len() > limits::POOL_TEXT || text.contains('\0')) {
            return wrong("args", format!("texts of at most {} bytes", limits::POOL_TEXT));
        }
        if self.command.len() + self.args.len() > limits::POOL_ARGS {
            return wrong("args", format!("at most {} words", limits::POOL_ARGS));
        }
        if self.charge_to.is_some() && self.cost_per_hour.is_none() {
            return wrong("costPerHour", "without it there is nothing to charge".to_owned());
        }
        Ok(())
    }
}

impl PoolSettings {
    fn makes_the_same_factories(&self, other: &Self) -> bool {
        let what = |settings: &Self| {
            let Self { driver, command, image, namespace, args, url, capabilities, .. } = settings.clone();
            (driver, command, image, namespace, args, url, capabilities)
        };
        what(self) == what(other)
    }
}

/// What factories of the pool turned out to be like: the newest that was heard from.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PoolTemplate {
    pub capabilities: CapabilitySet,
    pub repos: Vec<FactoryRepo>,
    pub can_clone: bool,
    pub clones: Vec<String>,
    pub accounts: Vec<Account>,
}

/// What was seen of its starts. Forgotten where the settings change.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PoolRecord {
    /// From the order to the enrolment, smoothed.
    #[serde(rename = "startMs", skip_serializing_if = "Option::is_none", with = "millis::option")]
    pub start_time: Option<Duration>,
    /// Orders to start one, since the pool was made.
    pub starts: u64,
    /// Starts that failed since the last one that did not.
    pub failed_in_a_row: u32,
    /// Nothing is started before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<Timestamp>,
    /// Why the last start failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub template: Option<PoolTemplate>,
}

impl PoolRecord {
    const FIRST_WAIT: Duration = Duration::from_secs(10);
    const LONGEST_WAIT: Duration = Duration::from_mins(15);

    /// What of it is still worth something under other settings: the same factories are as they were, and whoever changes
    /// anything at all wants the next start to be tried at once.
    #[must_use]
    pub fn under(&self, before: &PoolSettings, after: &PoolSettings) -> Self {
        let starts = self.starts;
        if before.makes_the_same_factories(after) {
            Self { starts, start_time: self.start_time, template: self.template.clone(), ..Self::default() }
        } else {
            Self { starts, ..Self::default() }
        }
    }

    /// One has enrolled so long after the order.
    pub fn started(&mut self, took: Duration) {
        // Half of what is new: a template that got slower is known after a few starts, and one outlier is not believed.
        self.start_time = Some(self.start_time.map_or(took, |known| (known + took) / 2));
        self.failed_in_a_row = 0;
        self.retry_at = None;
        self.failure = None;
    }

    pub fn failed(&mut self, why: &str, now: Timestamp) {
        let doubled = Self::FIRST_WAIT.saturating_mul(1 << self.failed_in_a_row.min(10));
        self.failed_in_a_row = self.failed_in_a_row.saturating_add(1);
        self.retry_at = Some(now.plus(doubled.min(Self::LONGEST_WAIT)));
        self.failure = Some(crate::text::first_chars(why, limits::POOL_TEXT));
    }

    /// Until when nothing is started, if so.
    pub fn waits_until(&self, now: Timestamp) -> Option<Timestamp> {
        self.retry_at.filter(|at| *at > now)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Pool {
    pub name: PoolName,
    pub settings: PoolSettings,
    pub record: PoolRecord,
    /// Of the settings.
    pub rev: Rev,
}

impl Pool {
    /// How long a start takes, as far as anybody knows.
    pub fn start_time(&self) -> Option<Duration> {
        self.record.start_time
    }
}

words! {
    "member state",
    /// Draining is a state of the factory, not of the member: it works still.
    pub enum MemberState {
        /// The driver was told to start it, or is about to be.
        Starting,
        /// It has enrolled.
        Running,
        /// Its factory has left or is given up; the driver takes away what is left of it.
        Stopping,
    }
}

/// One factory of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    pub factory: FactoryId,
    pub pool: PoolName,
    pub state: MemberState,
    /// Since when it is in this state.
    pub since: Timestamp,
    /// When its start was ordered.
    pub ordered_at: Timestamp,
    pub enrolled_at: Option<Timestamp>,
    /// What the driver knows it by: a process, a name in a cloud.
    pub handle: Option<String>,
    /// Why it is stopped, for people.
    pub reason: Option<String>,
    /// Its hours are paid up to here.
    pub charged_until: Timestamp,
}

impl Member {
    /// To be started, or started by somebody else.
    pub fn ordered(pool: PoolName, factory: FactoryId, now: Timestamp) -> Self {
        Self {
            factory,
            pool,
            state: MemberState::Starting,
            since: now,
            ordered_at: now,
            enrolled_at: None,
            handle: None,
            reason: None,
            charged_until: now,
        }
    }
}

/// What `cost_per_hour` makes for a stretch of time, rounded up to a millionth.
pub fn cost_of(per_hour: Usd, time: Duration) -> Usd {
    let micros = i128::from(per_hour.micros()) * i128::try_from(time.as_millis()).unwrap_or(i128::MAX / 2);
    let hour = 3_600_000;
    Usd::from_micros(i64::try_from((micros + hour - 1) / hour).unwrap_or(i64::MAX))
}

mod millis {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        u64::deserialize(deserializer).map(Duration::from_millis)
    }

    pub(super) mod option {
        use std::time::Duration;

        use serde::{Deserialize, Deserializer, Serialize, Serializer};

        #[expect(clippy::ref_option, reason = "serde gives it so")]
        pub(in super::super) fn serialize<S: Serializer>(
            time: &Option<Duration>,
            serializer: S,
        ) -> Result<S::Ok, S::Error> {
            time.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX)).serialize(serializer)
        }

        pub(in super::super) fn deserialize<'de, D: Deserializer<'de>>(
            deserializer: D,
        ) -> Result<Option<Duration>, D::Error> {
            Ok(Option::<u64>::deserialize(deserializer)?.map(Duration::from_millis))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(settings: PoolSettings) -> &'static str {
        settings.check().expect_err("it contradicts itself").field
    }

    #[test]
    fn settings_that_contradict_themselves_name_the_field() {
        let ok = PoolSettings { max: 4, ..PoolSettings::default() };
        assert_eq!(ok.check(), Ok(()));
        assert_eq!(refused(PoolSettings { seats: 0, ..ok.clone() }), "seats");
        assert_eq!(refused(PoolSettings { max: limits::POOL_FACTORIES + 1, ..ok.clone() }), "max");
        assert_eq!(refused(PoolSettings { min: 5, ..ok.clone() }), "min");
        assert_eq!(refused(PoolSettings { warm: 5, ..ok.clone() }), "warm");
        assert_eq!(refused(PoolSettings { idle: Duration::ZERO, ..ok.clone() }), "idle");
        assert_eq!(refused(PoolSettings { start_timeout: Duration::ZERO, ..ok.clone() }), "startTimeout");
        assert_eq!(refused(PoolSettings { driver: DriverKind::Command, ..ok.clone() }), "command");
        assert_eq!(refused(PoolSettings { command: vec!["x".into()], ..ok.clone() }), "command");
        assert_eq!(refused(PoolSettings { driver: DriverKind::Kubernetes, ..ok.clone() }), "image");
        let charged = PoolSettings { charge_to: Some("demo".parse().unwrap()), ..ok.clone() };
        assert_eq!(refused(charged), "costPerHour");
        assert_eq!(refused(PoolSettings { args: vec!["a".repeat(99_999)], ..ok }), "args");
    }

    #[test]
    fn settings_survive_their_json_and_unknown_ones_are_refused() {
        let settings = PoolSettings {
            driver: DriverKind::Command,
            command: vec!["cloud".into(), "gpu".into()],
            capabilities: CapabilitySet::parse(["gpu:a100=2"]).unwrap(),
            cost_per_hour: Some(Usd::from_micros(2_500_000)),
            charge_to: Some("demo".parse().unwrap()),
            idle: Duration::from_millis(1_500),
            ..PoolSettings::default()
        };
        let json = serde_json::to_value(&settings).unwrap();
        assert_eq!(serde_json::from_value::<PoolSettings>(json).unwrap(), settings);
        assert!(serde_json::from_str::<PoolSettings>(r#"{"maxx": 3}"#).is_err());
    }

    #[test]
    fn failures_wait_longer_each_time_and_a_start_forgets_them() {
        let mut record = PoolRecord::default();
        let now = Timestamp::from_millis(1_000_000);
        let waits: Vec<u64> = (0..9)
            .map(|_| {
                record.failed("no", now);
                record.waits_until(now).unwrap().since(now).as_secs()
            })
            .collect();
        assert_eq!(waits, [10, 20, 40, 80, 160, 320, 640, 900, 900]);
        assert_eq!(record.waits_until(now.plus(Duration::from_mins(15))), None);
        record.started(Duration::from_secs(40));
        assert_eq!((record.failed_in_a_row, record.waits_until(now)), (0, None));
        record.started(Duration::from_secs(20));
        assert_eq!(record.start_time, Some(Duration::from_secs(30)));
    }

    #[test]
    fn hours_are_paid_to_the_millisecond() {
        let rate = Usd::from_micros(3_600_000);
        assert_eq!(cost_of(rate, Duration::from_secs(1)), Usd::from_micros(1_000));
        assert_eq!(cost_of(rate, Duration::from_hours(2)), Usd::from_micros(7_200_000));
        assert_eq!(cost_of(Usd::from_micros(1), Duration::from_millis(1)), Usd::from_micros(1), "rounded up");
        assert_eq!(cost_of(Usd::ZERO, Duration::from_hours(9)), Usd::ZERO);
    }
}
