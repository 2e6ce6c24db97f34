//! The queued jobs, grouped by shape and kept in order as jobs come and go.

use giga_domain::JobId;

use crate::JobView;

/// Jobs of the same shape are feasible on the same factories, so a plan decides once per shape.
#[derive(Debug, Default)]
pub struct ReadyQueue {
    jobs: std::collections::HashMap<JobId, JobView>,
}

impl ReadyQueue {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the job or replaces what was known of it.
    pub fn upsert(&mut self, job: JobView) {
        self.jobs.insert(job.id, job);
    }

    pub fn remove(&mut self, id: JobId) -> Option<JobView> {
        self.jobs.remove(&id)
    }

    pub fn get(&self, id: JobId) -> Option<&JobView> {
        self.jobs.get(&id)
    }

    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }
}
