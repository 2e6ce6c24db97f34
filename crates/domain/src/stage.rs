//! The stages of a job and which steps between them exist.
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

use std::ops::{Index, IndexMut};

use serde::{Deserialize, Serialize};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

use crate::word::words;

#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    Display,
    EnumString,
    IntoStaticStr,
    VariantArray,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case", const_into_str)]
#[strum(parse_err_ty = crate::id::IdError, parse_err_fn = Self::unknown)]
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

words!(Stage, "stage");

impl Stage {
    /// Terminal stages absorb everything, the reaper included.
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Shipped | Self::DeadLetter | Self::Cancelled)
    }

    /// A lease exists in exactly these stages.
    pub const fn is_held(self) -> bool {
        matches!(self, Self::Assigned | Self::Building)
    }

    /// Waits for a factory or is with one: what a scheduler has to know of.
    pub const fn is_live(self) -> bool {
        matches!(self, Self::Queued) || self.is_held()
    }

    /// Waits for other jobs, or may come to wait for them again.
    pub const fn is_waiting(self) -> bool {
        matches!(self, Self::Blocked | Self::Review | Self::Failed)
    }

    /// What the stage comes down to for whoever only shows, counts or waits.
    pub const fn phase(self) -> Phase {
        match self {
            Self::Queued => Phase::Queued,
            Self::Blocked => Phase::Blocked,
            Self::Assigned | Self::Building => Phase::Running,
            Self::Review => Phase::Review,
            Self::Testing => Phase::Ready,
            Self::Shipped => Phase::Shipped,
            Self::Failed | Self::DeadLetter => Phase::Failed,
            Self::Cancelled => Phase::Cancelled,
        }
    }

    /// What a job in this stage waits for, for the guide of operators.
    pub const fn waits_for(self) -> &'static str {
        match self {
            Self::Queued => "a factory: explain says which filter rejects which",
            Self::Blocked => "its deps, or its children",
            Self::Assigned | Self::Building => {
                "its holder; the lease ends at the time shown, then it is queued again"
            }
            Self::Review => "`giga review JOB --approve`",
            Self::Testing => "`giga job ship JOB`",
            Self::Failed => "you: `giga job requeue JOB` or `giga job cancel JOB`",
            Self::Shipped => "nothing; it is done",
            Self::DeadLetter => "nothing; it was given up after its retries",
            Self::Cancelled => "nothing; somebody cancelled it",
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

/// A few words for many stages. Colors, columns of a board, groups of a list and exit codes go by these, so that a stage
/// more is nothing to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    Queued,
    Blocked,
    Running,
    Review,
    Ready,
    Shipped,
    Failed,
    Cancelled,
}

/// One value for every stage. Written and stored by name, so a stage more is not a column or a place more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PerStage<T>([T; Stage::ALL.len()]);

impl<T: Default> Default for PerStage<T> {
    fn default() -> Self {
        Self(std::array::from_fn(|_| T::default()))
    }
}

impl<T> PerStage<T> {
    pub fn iter(&self) -> impl Iterator<Item = (Stage, &T)> {
        Stage::ALL.into_iter().zip(&self.0)
    }
}

impl<T> Index<Stage> for PerStage<T> {
    type Output = T;
    fn index(&self, stage: Stage) -> &T {
        &self.0[stage as usize]
    }
}

impl<T> IndexMut<Stage> for PerStage<T> {
    fn index_mut(&mut self, stage: Stage) -> &mut T {
        &mut self.0[stage as usize]
    }
}

/// The last of those for the same stage counts.
impl<T: Default> FromIterator<(Stage, T)> for PerStage<T> {
    fn from_iter<I: IntoIterator<Item = (Stage, T)>>(values: I) -> Self {
        let mut all = Self::default();
        values.into_iter().for_each(|(stage, value)| all[stage] = value);
        all
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
        for stage in Stage::ALL.into_iter() {
            assert_eq!(stage.as_str().parse::<Stage>(), Ok(stage));
            assert_eq!(serde_json::to_value(stage).unwrap(), stage.as_str());
        }
        assert!("Queued".parse::<Stage>().is_err());
    }
}
