//! The board: what is in which stage, newest first.

use std::collections::BTreeMap;

use giga_api::wire::Job;

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

    pub const fn title(self) -> &'static str {
        match self {
            Self::Blocked => "blocked",
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Review => "review",
            Self::Testing => "testing",
            Self::Shipped => "shipped",
            Self::Failed => "failed",
        }
    }

    pub const fn stages(self) -> &'static [&'static str] {
        match self {
            Self::Blocked => &["blocked"],
            Self::Queued => &["queued"],
            Self::Running => &["assigned", "building"],
            Self::Review => &["review"],
            Self::Testing => &["testing"],
            Self::Shipped => &["shipped"],
            Self::Failed => &["failed", "dead_letter"],
        }
    }

    /// The column that jobs in this stage stand in; cancelled ones stand in none.
    pub fn of(stage: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|column| column.stages().contains(&stage))
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
