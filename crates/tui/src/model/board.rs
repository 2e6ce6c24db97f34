//! The board: what is in which stage, newest first.

use std::collections::BTreeMap;

use giga_api::wire::{Job, Stage};
use giga_domain::Phase;

use super::Cursor;

/// Stages that people take for one, side by side.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Column {
    Blocked,
    Queued,
    Running,
    Review,
    Testing,
    Shipped,
    Failed,
}

impl Column {
    pub const ALL: [Self; 7] = [
        Self::Blocked,
        Self::Queued,
        Self::Running,
        Self::Review,
        Self::Testing,
        Self::Shipped,
        Self::Failed,
    ];

    pub fn title(self) -> &'static str {
        match self {
            Self::Blocked => Stage::Blocked.label(),
            Self::Queued => Stage::Queued.label(),
            Self::Running => Stage::Building.label(),
            Self::Review => Stage::Review.label(),
            Self::Testing => Stage::Testing.label(),
            Self::Shipped => Stage::Shipped.label(),
            Self::Failed => Stage::Failed.label(),
        }
    }

    /// The column that jobs in this stage stand in; cancelled ones stand in none.
    pub fn of(stage: Stage) -> Option<Self> {
        Some(match stage.phase() {
            Phase::Blocked => Self::Blocked,
            Phase::Queued => Self::Queued,
            Phase::Running | Phase::Shipping => Self::Running,
            Phase::Review => Self::Review,
            Phase::Ready => Self::Testing,
            Phase::Shipped => Self::Shipped,
            Phase::Failed => Self::Failed,
            Phase::Cancelled => return None,
        })
    }

    pub fn stages(self) -> Vec<Stage> {
        Stage::ALL.iter().copied().filter(|stage| Self::of(*stage) == Some(self)).collect()
    }
}

#[derive(Debug, Clone)]
pub struct Board {
    pub columns: BTreeMap<Column, Vec<Job>>,
    pub column: Column,
    pub cursors: BTreeMap<Column, Cursor>,
    pub filter: String,
}

impl Default for Board {
    fn default() -> Self {
        Self {
            columns: BTreeMap::new(),
            column: Column::Queued,
            cursors: BTreeMap::new(),
            filter: String::new(),
        }
    }
}
