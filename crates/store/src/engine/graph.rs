//! What hangs on what: jobs to be looked at again because another one moved, and who waits for whom.
//!
//! Nothing is ever looked for among all jobs that wait. Whoever ends leaves a row for each job that hangs on it, in the
//! same transaction, and a sweep takes such rows; so none can be missed, and a fleet without graphs pays nothing.

use std::collections::{BTreeSet, HashMap};

use giga_domain::transition::{ParentEnd, Relations};
use giga_domain::{Job, JobId, ProductId, Stage};

#[derive(Debug, Default)]
pub struct GraphNeeds {
    /// The oldest rows of `reconsider`, at most so many, with how the jobs that they name stand to others. Rows that
    /// somebody else has taken are passed over.
    pub reconsider: usize,
    /// Jobs that are to get children: where each of them stands.
    pub parents: BTreeSet<JobId>,
    /// Jobs that are to wait for more than before: who waits for them, directly or through others. Nobody else may let
    /// such a job wait for more until commit.
    pub awaited: BTreeSet<JobId>,
    /// Keys whose jobs others are to wait for: where one has made a job, that has to be locked.
    pub keys: BTreeSet<(ProductId, String)>,
}

/// A row of `reconsider`.
#[derive(Debug, Clone, Copy)]
pub struct Taken {
    pub row: u64,
    pub job: JobId,
    /// It stands there because its parent ended, before the job itself had failed.
    pub parent_ended: bool,
}

/// Where a job stands that is to get children.
#[derive(Debug, Clone, Copy, Default)]
pub struct Standing {
    /// How many stand above it.
    pub above: usize,
    pub children: usize,
}

#[derive(Debug, Default)]
pub struct GraphLoaded {
    pub taken: Vec<Taken>,
    /// Of the jobs that were taken. The counts are at least as new as the rows.
    pub relations: HashMap<JobId, Relations>,
    /// Where each of the parents stands.
    pub parents: HashMap<JobId, Standing>,
    /// Who waits, and for whom.
    pub waits: Vec<(JobId, JobId)>,
}

/// What is to be looked at again. Behind the jobs themselves: those that this very batch makes are found too.
#[derive(Debug, Default)]
pub struct GraphWrites {
    /// Rows that were seen to.
    pub seen_to: Vec<u64>,
    /// Jobs that are over: whoever waits for them.
    pub over: Vec<JobId>,
    /// Composites among these jobs: a child of theirs has ended, or is tried again after it had failed.
    pub parents: BTreeSet<JobId>,
    /// Jobs that end their children with them: these, and for those that have not failed by then the row says why.
    pub ending: Vec<JobId>,
    /// These jobs themselves.
    pub again: Vec<JobId>,
}

impl GraphWrites {
    pub fn is_empty(&self) -> bool {
        self.seen_to.is_empty()
            && self.over.is_empty()
            && self.parents.is_empty()
            && self.ending.is_empty()
            && self.again.is_empty()
    }

    /// The job has just come to another stage.
    pub(super) fn moved(&mut self, from: Stage, job: &Job) {
        let stage = job.stage();
        if stage.is_terminal() {
            self.over.push(job.id);
        }
        if stage.is_terminal() || stage == Stage::Failed || from == Stage::Failed {
            self.parents.extend(job.spec.parent);
        }
        if ParentEnd::of(job).is_some() {
            self.ending.push(job.id);
        }
        // It tries again; what it waits for may have come while it did not.
        if stage == Stage::Blocked {
            self.again.push(job.id);
        }
    }
}
