//! The stages of a job, what a job carries in each, and which steps between them exist.
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
//!   │          ▼            ▼    refused for good       │
//!   │◀────── shipping ◀─────┘ ──────────────▶ failed ───┤
//!   │ conflict │ merged                                 │
//!   │          ▼                                        │
//!   │        shipped               any non-terminal ──▶ cancelled (operator)
//!   └───────────────────────────────────────────────────┘
//!
//! What has nothing to merge is shipped without shipping. A queued job whose question nobody answered in time is failed.
//! ```
//!
//! Who may cause which step is decided by [`crate::transition()`]; this table is what it is checked against.

use std::ops::{Index, IndexMut};

use serde::{Deserialize, Serialize};

use crate::word::words;
use crate::{Failure, Lease, Target, Timestamp};

words! {
    "stage",
    pub enum Stage {
        Queued,
        Blocked,
        Assigned,
        Building,
        Review,
        Testing,
        Shipping,
        Shipped,
        Failed,
        DeadLetter,
        Cancelled,
    }
}

impl Stage {
    /// What a stage comes down to: everything below goes by this one table.
    const fn facts(self) -> (Phase, Standing) {
        match self {
            Self::Queued => (Phase::Queued, Standing::ForAFactory),
            Self::Blocked => (Phase::Blocked, Standing::ForOthers),
            Self::Assigned | Self::Building => (Phase::Running, Standing::Held),
            Self::Review => (Phase::Review, Standing::ForOthers),
            Self::Testing => (Phase::Ready, Standing::ForAnOperator),
            Self::Shipping => (Phase::Shipping, Standing::ForItsBranch),
            Self::Shipped => (Phase::Shipped, Standing::Over),
            Self::Failed => (Phase::Failed, Standing::ForOthers),
            Self::DeadLetter => (Phase::Failed, Standing::Over),
            Self::Cancelled => (Phase::Cancelled, Standing::Over),
        }
    }

    /// What people read for it.
    pub const fn label(self) -> &'static str {
        match self {
            Self::Assigned => "starting",
            Self::Building => "running",
            Self::Testing => "ready to ship",
            Self::DeadLetter => "dead letter",
            Self::Queued
            | Self::Blocked
            | Self::Review
            | Self::Shipping
            | Self::Shipped
            | Self::Failed
            | Self::Cancelled => self.as_str(),
        }
    }

    /// For whoever only shows, counts or waits.
    pub const fn phase(self) -> Phase {
        self.facts().0
    }

    /// Terminal stages absorb everything, the reaper included.
    pub const fn is_terminal(self) -> bool {
        matches!(self.facts().1, Standing::Over)
    }

    /// A lease exists in exactly these stages.
    pub const fn is_held(self) -> bool {
        matches!(self.facts().1, Standing::Held)
    }

    /// Waits for a factory or is with one: what a scheduler has to know of.
    pub const fn is_live(self) -> bool {
        matches!(self.facts().1, Standing::ForAFactory | Standing::Held)
    }

    /// Waits for other jobs, or may come to wait for them again.
    pub const fn is_waiting(self) -> bool {
        matches!(self.facts().1, Standing::ForOthers)
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
            Self::Shipping => {
                "its turn to be merged, the checks on the merged tree, the push: explain says which"
            }
            Self::Failed => "you: `giga job requeue JOB` or `giga job cancel JOB`",
            Self::Shipped => "nothing; it is done",
            Self::DeadLetter => "nothing; it was given up after its retries",
            Self::Cancelled => "nothing; somebody cancelled it",
        }
    }

    /// The table of the specification: may a job go from here to `next` in one step?
    pub const fn may_become(self, next: Self) -> bool {
        use Stage::{
            Assigned, Blocked, Building, Cancelled, DeadLetter, Failed, Queued, Review, Shipped, Shipping,
            Testing,
        };
        matches!(
            (self, next),
            (Blocked | Assigned | Building | Review | Shipping | Failed, Queued)
                | (Queued, Assigned)
                | (Assigned, Building)
                // From blocked: a composite, when its children have shipped.
                | (Building | Blocked, Review | Testing)
                // From failed: what could not be merged is tried again.
                | (Building | Review | Testing | Failed, Shipping)
                // From anything but shipping: there is nothing to merge.
                | (Building | Blocked | Review | Testing | Shipping, Shipped)
                | (Review, Testing)
                // From blocked: what the job waits for can never come. From queued: nobody answered its question.
                | (Queued | Assigned | Building | Blocked | Review | Shipping, Failed)
                // A composite that is to try again waits for its children.
                | (Failed | Review, Blocked)
                | (Failed, DeadLetter)
                | (Queued | Blocked | Assigned | Building | Review | Testing | Shipping | Failed, Cancelled)
        )
    }
}

/// A stage together with what only that stage has: a lease exists exactly while the job is held.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "stage", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum State {
    /// `ready_at` lies ahead for scheduled jobs and during a back-off.
    Queued {
        since: Timestamp,
        ready_at: Timestamp,
        #[serde(default)]
        target: Option<Target>,
    },
    Blocked,
    Assigned {
        lease: Lease,
    },
    Building {
        lease: Lease,
    },
    Review {
        approvals: Vec<String>,
    },
    Testing,
    /// Its result is on the way into the target branch; see `Job::merge`.
    Shipping {
        since: Timestamp,
    },
    Shipped,
    Failed {
        failure: Failure,
    },
    DeadLetter {
        failure: Failure,
    },
    Cancelled {
        #[serde(default)]
        reason: Option<String>,
    },
}

impl State {
    pub const fn stage(&self) -> Stage {
        match self {
            Self::Queued { .. } => Stage::Queued,
            Self::Blocked => Stage::Blocked,
            Self::Assigned { .. } => Stage::Assigned,
            Self::Building { .. } => Stage::Building,
            Self::Review { .. } => Stage::Review,
            Self::Testing => Stage::Testing,
            Self::Shipping { .. } => Stage::Shipping,
            Self::Shipped => Stage::Shipped,
            Self::Failed { .. } => Stage::Failed,
            Self::DeadLetter { .. } => Stage::DeadLetter,
            Self::Cancelled { .. } => Stage::Cancelled,
        }
    }

    /// The state that goes with a stage and nothing else, or with a stage and a lease. `None` where a stage has more to
    /// it, or less.
    pub fn of(stage: Stage, lease: Option<Lease>) -> Option<Self> {
        match (stage, lease) {
            (Stage::Blocked, None) => Some(Self::Blocked),
            (Stage::Testing, None) => Some(Self::Testing),
            (Stage::Shipped, None) => Some(Self::Shipped),
            (Stage::Assigned, Some(lease)) => Some(Self::Assigned { lease }),
            (Stage::Building, Some(lease)) => Some(Self::Building { lease }),
            (
                Stage::Queued
                | Stage::Review
                | Stage::Shipping
                | Stage::Failed
                | Stage::DeadLetter
                | Stage::Cancelled,
                _,
            )
            | (Stage::Assigned | Stage::Building, None)
            | (Stage::Blocked | Stage::Testing | Stage::Shipped, Some(_)) => None,
        }
    }
}

/// What a job in a stage waits for.
enum Standing {
    ForAFactory,
    Held,
    /// Deps, children, or a parent: also those who may come to wait for them again.
    ForOthers,
    ForAnOperator,
    /// The branch that its result goes into.
    ForItsBranch,
    Over,
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
    Shipping,
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
        for stage in Stage::ALL {
            assert_eq!(stage.as_str().parse::<Stage>(), Ok(stage));
            assert_eq!(serde_json::to_value(stage).unwrap(), stage.as_str());
        }
        assert!("Queued".parse::<Stage>().is_err());
    }
}
