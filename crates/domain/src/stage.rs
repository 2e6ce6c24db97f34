//! The ten stages of a job and which steps between them exist.
//!
//! ```text
//!            submit                  submit, deps unmet
//!              │                            │
//!              ▼        deps met            ▼
//!   ┌──────▶ queued ◀──────────────────  blocked
//!   │          │ claim (compare-and-set + lease, epoch + 1)
//!   │          ▼
//!   │◀────── assigned ───────────────────────────────┐
//!   │ expired  │ start (fenced)                      │ logical failure
//!   │ released ▼                                     ▼
//!   │◀────── building ───────────────────────────▶ failed ──▶ dead_letter
//!   │ retry    │ report (fenced); gates decide     ▲   │        (retries exhausted)
//!   │          ├────────▶ review ──── rejected ────┘   │
//!   │          │            │ │                         │ operator requeue,
//!   │          │            │ └─ changes asked ─▶ queued│ retry policy
//!   │          │            ▼ approved                  │
//!   │          ├────────▶ testing                       │
//!   │          │            │ ship                      │
//!   │          ▼            ▼                           │
//!   │        shipped ◀──────┘      any non-terminal ──▶ cancelled (operator)
//!   └───────────────────────────────────────────────────┘
//! ```
//!
//! Who may cause which step is decided by [`crate::transition()`]; this table is what it is checked against.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::id::IdError;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    Queued,
    Blocked,
    Assigned,
    Building,
    Review,
    Testing,
    Shipped,
    Failed,
    DeadLetter,
    Cancelled,
}

impl Stage {
    pub const ALL: [Self; 10] = [
        Self::Queued,
        Self::Blocked,
        Self::Assigned,
        Self::Building,
        Self::Review,
        Self::Testing,
        Self::Shipped,
        Self::Failed,
        Self::DeadLetter,
        Self::Cancelled,
    ];

    /// Terminal stages absorb everything, the reaper included.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Shipped | Self::DeadLetter | Self::Cancelled)
    }

    /// A lease exists in exactly these stages.
    pub const fn is_held(self) -> bool {
        matches!(self, Self::Assigned | Self::Building)
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Blocked => "blocked",
            Self::Assigned => "assigned",
            Self::Building => "building",
            Self::Review => "review",
            Self::Testing => "testing",
            Self::Shipped => "shipped",
            Self::Failed => "failed",
            Self::DeadLetter => "dead_letter",
            Self::Cancelled => "cancelled",
        }
    }

    /// The table of the specification: may a job go from here to `next` in one step?
    pub const fn may_become(self, next: Self) -> bool {
        use Stage::{
            Assigned, Blocked, Building, Cancelled, DeadLetter, Failed, Queued, Review, Shipped, Testing,
        };
        matches!(
            (self, next),
            (Blocked | Assigned | Building | Review | Failed, Queued)
                | (Queued, Assigned)
                | (Assigned, Building)
                // From blocked: a composite, when its children have shipped.
                | (Building | Blocked, Review | Testing)
                | (Building | Blocked | Review | Testing, Shipped)
                | (Review, Testing)
                // From blocked: what the job waits for can never come.
                | (Assigned | Building | Blocked | Review, Failed)
                // A composite that is to try again waits for its children.
                | (Failed | Review, Blocked)
                | (Failed, DeadLetter)
                | (Queued | Blocked | Assigned | Building | Review | Testing | Failed, Cancelled)
        )
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Stage {
    type Err = IdError;
    fn from_str(text: &str) -> Result<Self, IdError> {
        Self::ALL.into_iter().find(|s| s.as_str() == text).ok_or_else(|| IdError {
            what: "stage",
            given: text.chars().take(80).flat_map(char::escape_default).collect(),
            rule: "the stages are queued, blocked, assigned, building, review, testing, shipped, failed, dead_letter and cancelled",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terminal_stages_lead_nowhere() {
        for from in Stage::ALL.into_iter().filter(|s| s.is_terminal()) {
            assert!(Stage::ALL.into_iter().all(|to| !from.may_become(to)), "{from}");
        }
    }

    #[test]
    fn everything_else_can_be_cancelled() {
        for from in Stage::ALL.into_iter().filter(|s| !s.is_terminal()) {
            assert!(from.may_become(Stage::Cancelled), "{from}");
        }
    }

    #[test]
    fn names_round_trip() {
        for stage in Stage::ALL {
            assert_eq!(stage.as_str().parse::<Stage>(), Ok(stage));
            assert_eq!(serde_json::to_value(stage).unwrap(), stage.as_str());
        }
        assert!("Queued".parse::<Stage>().is_err());
    }
}
