//! Feature flags: typed, persisted, audited. A flag that is not in this table does not exist.

use serde_json::Value;
use strum::VariantNames;
use thiserror::Error;

use crate::{Delivery, FactoryId};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlagType {
    Bool,
    /// One of the words.
    Choice(&'static [&'static str]),
    /// A whole number in the range.
    Integer {
        min: i64,
        max: i64,
    },
}

#[derive(Debug, Clone, Copy)]
pub struct FlagDef {
    pub name: &'static str,
    pub about: &'static str,
    pub kind: FlagType,
    default: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FlagError {
    #[error("there is no flag `{name}`{}", suggestion.map(|s| format!("; did you mean `{s}`?")).unwrap_or_default())]
    Unknown { name: String, suggestion: Option<&'static str> },
    #[error("flag `{name}` cannot be {given}: it takes {wanted}")]
    BadValue { name: &'static str, given: String, wanted: String },
}

pub const DELIVERY: &str = "delivery";

pub const FLAGS: &[FlagDef] = &[
    FlagDef {
        name: "strict",
        about: "Refuse a job that no factory could ever run, instead of accepting it with a warning",
        kind: FlagType::Bool,
        default: "false",
    },
    FlagDef {
        name: DELIVERY,
        about: "How jobs reach factories; `delivery.FACTORY` sets it for one factory",
        kind: FlagType::Choice(<Delivery as VariantNames>::VARIANTS),
        default: "\"stream\"",
    },
    FlagDef {
        name: "pickup_ms",
        about: "How long a factory may take to pick up a job that was offered to it",
        kind: FlagType::Integer { min: 250, max: 600_000 },
        default: "10000",
    },
    FlagDef {
        name: "topic_lease_ms",
        about: "How long a topic job may run without a heartbeat from its worker",
        kind: FlagType::Integer { min: 1_000, max: 3_600_000 },
        default: "30000",
    },
    FlagDef {
        name: "lease_ms",
        about: "How long a lease lasts without a renewal",
        kind: FlagType::Integer { min: 1_000, max: 3_600_000 },
        default: "60000",
    },
    FlagDef {
        name: "merge_lease_ms",
        about: "How long a merge is a factory's without a word from it",
        kind: FlagType::Integer { min: 1_000, max: 3_600_000 },
        default: "45000",
    },
    FlagDef {
        name: "heartbeat_interval_ms",
        about: "How often factories send a heartbeat; a factory that misses three is offline",
        kind: FlagType::Integer { min: 250, max: 600_000 },
        default: "10000",
    },
    FlagDef {
        name: "preemption",
        about: "Let a critical job without a free seat preempt a less urgent one",
        kind: FlagType::Bool,
        default: "false",
    },
    FlagDef {
        name: "eviction_grace_ms",
        about: "How long a holder that is asked to release its job may take to save a checkpoint",
        kind: FlagType::Integer { min: 1_000, max: 3_600_000 },
        default: "60000",
    },
    FlagDef {
        name: "max_evictions",
        about: "How often a job may be preempted",
        kind: FlagType::Integer { min: 0, max: 100 },
        default: "3",
    },
    FlagDef {
        name: "foreign_repos",
        about: "What to do with a job for a repository that another product owns: refuse it, or route it with a warning",
        kind: FlagType::Choice(&["refuse", "route"]),
        default: "\"refuse\"",
    },
    FlagDef {
        name: "artifact_mib",
        about: "How large an artifact may be, in MiB",
        kind: FlagType::Integer { min: 1, max: 1_024 },
        default: "64",
    },
    FlagDef {
        name: "artifact_job_mib",
        about: "How large all artifacts of a job may be together, in MiB",
        kind: FlagType::Integer { min: 1, max: 1_048_576 },
        default: "1024",
    },
    FlagDef {
        name: "artifact_product_mib",
        about: "How large all artifacts of a product may be together, in MiB; 0 sets no limit",
        kind: FlagType::Integer { min: 0, max: 1_073_741_824 },
        default: "0",
    },
    FlagDef {
        name: "disk_floor_mib",
        about: "Refuse logs and artifacts while less than this is free on their disk, in MiB, so that the database keeps room; 0 never refuses",
        kind: FlagType::Integer { min: 0, max: 1_073_741_824 },
        default: "256",
    },
    FlagDef {
        name: "submits_per_minute",
        about: "How many jobs a product may submit per minute, children included; a burst of ten minutes' worth passes at once",
        kind: FlagType::Integer { min: 1, max: 1_000_000 },
        default: "6000",
    },
    FlagDef {
        name: "enqueues_per_second",
        about: "How many topic jobs a product may enqueue per second; a burst of one minute's worth passes at once",
        kind: FlagType::Integer { min: 1, max: 10_000_000 },
        default: "100000",
    },
    FlagDef {
        name: "max_queued_jobs",
        about: "How many jobs of a product may wait or be blocked at once, children included",
        kind: FlagType::Integer { min: 1, max: 10_000_000 },
        default: "100000",
    },
    FlagDef {
        name: "artifact_retention_hours",
        about: "How long artifacts of ended jobs are kept; 0 keeps them as long as their jobs",
        kind: FlagType::Integer { min: 0, max: 87_600 },
        default: "0",
    },
    FlagDef {
        name: "branch_retention_hours",
        about: "How long branches of ended jobs are kept that were not merged; set it lower than retention_hours: branches of forgotten jobs stay",
        kind: FlagType::Integer { min: 0, max: 87_600 },
        default: "336",
    },
    FlagDef {
        name: "retention_hours",
        about: "How long shipped, cancelled and dead-lettered jobs are kept",
        kind: FlagType::Integer { min: 1, max: 87_600 },
        default: "720",
    },
];

/// The factory that `delivery.FACTORY` is about; `None` for every other name.
pub fn factory_of(name: &str) -> Option<FactoryId> {
    name.strip_prefix(DELIVERY).and_then(|rest| rest.strip_prefix('.')).and_then(|id| id.parse().ok())
}

/// The name of the flag that sets the delivery mode of this factory alone.
pub fn delivery_of(factory: &FactoryId) -> String {
    format!("{DELIVERY}.{factory}")
}

impl FlagDef {
    pub fn named(name: &str) -> Result<&'static Self, FlagError> {
        let name = if factory_of(name).is_some() { DELIVERY } else { name };
        FLAGS.iter().find(|f| f.name == name).ok_or_else(|| FlagError::Unknown {
            name: name.chars().take(80).flat_map(char::escape_default).collect(),
            suggestion: crate::manifest::suggest(name, FLAGS.iter().map(|f| f.name)),
        })
    }

    pub fn default_value(&self) -> Value {
        serde_json::from_str(self.default).expect("the defaults in FLAGS are JSON; a test parses each")
    }

    pub fn check(&self, value: &Value) -> Result<(), FlagError> {
        let (fits, wanted) = match self.kind {
            FlagType::Bool => (value.is_boolean(), "true or false".to_owned()),
            FlagType::Choice(words) => {
                (value.as_str().is_some_and(|w| words.contains(&w)), format!("one of {}", words.join(", ")))
            }
            FlagType::Integer { min, max } => (
                value.as_i64().is_some_and(|n| (min..=max).contains(&n)),
                format!("a whole number from {min} to {max}"),
            ),
        };
        if fits {
            Ok(())
        } else {
            let given: String = value.to_string().chars().take(80).collect();
            Err(FlagError::BadValue { name: self.name, given, wanted })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_fits_its_own_type() {
        for flag in FLAGS {
            assert_eq!(flag.check(&flag.default_value()), Ok(()), "{}", flag.name);
        }
    }

    #[test]
    fn delivery_can_be_set_for_one_factory_and_nothing_else_can() {
        let flag = FlagDef::named("delivery.mac-1.lan").unwrap();
        assert_eq!(flag.name, "delivery");
        let factory = factory_of("delivery.mac-1.lan").unwrap();
        assert_eq!((factory.as_str(), delivery_of(&factory).as_str()), ("mac-1.lan", "delivery.mac-1.lan"));
        for name in ["delivery.", "delivery..x", "lease_ms.mac-1", "deliveries.mac-1"] {
            assert!(FlagDef::named(name).is_err(), "{name}");
        }
        assert_eq!(factory_of("delivery"), None);
    }

    #[test]
    fn a_wrong_name_or_value_says_what_would_be_right() {
        assert_eq!(
            FlagDef::named("stict").unwrap_err().to_string(),
            "there is no flag `stict`; did you mean `strict`?"
        );
        let flag = FlagDef::named("lease_ms").unwrap();
        assert_eq!(
            flag.check(&Value::from("soon")).unwrap_err().to_string(),
            "flag `lease_ms` cannot be \"soon\": it takes a whole number from 1000 to 3600000"
        );
    }
}
