//! What hangs on what: deps, children, parents.

use giga_domain::stage::PerStage;
use giga_domain::{Job, JobId, Usd};

use super::noun::Result;
use super::{Execute, Intercept, InterceptReads, Write};

macro_rules! graph {
    ($make:ident) => {
        $make! {
            writes GraphStore {
                /// Looks again at jobs because something that they hang on has moved: deps, children, a parent.
                reconsider(Reconsider) -> Reconsidered;
            }
            reads GraphReads {
                /// The job and all below it, parents before their children, at most so many.
                subtree(root: JobId, limit: usize) -> Vec<Job>;

                /// How all jobs of a subtree stand that do the work, and what they have cost, however many they are.
                subtree_totals(root: JobId) -> SubtreeTotals;
            }
        }
    };
}
graph!(traits);
pub(super) use graph;

#[derive(Debug, Clone, Copy)]
pub struct Reconsider {
    /// At most so many.
    pub limit: usize,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reconsidered {
    /// Those that moved.
    pub moved: Vec<JobId>,
    /// How many reasons to look were seen to, those of jobs that did not move included.
    pub looked_at: usize,
    /// There may be more to look at: at once, or, where nothing was looked at, somebody else has it and may yet fail.
    pub more: bool,
}

/// The jobs of a tree that do the work; composites only stand for them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SubtreeTotals {
    pub by_stage: PerStage<u64>,
    /// What runs have cost so far, those that are under way included.
    pub spent: Usd,
}
