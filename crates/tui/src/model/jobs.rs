//! The list of jobs: so many pages of it as somebody scrolled to, kept up to date in place.

use std::collections::BTreeSet;

use giga_api::wire::{Event, Job, JobPage, Stage};
use giga_domain::Phase;

use super::List;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Group {
    #[default]
    All,
    Live,
    Waiting,
    Running,
    Review,
    Ended,
    Failed,
}

impl Group {
    const ALL: [Self; 7] =
        [Self::All, Self::Live, Self::Waiting, Self::Running, Self::Review, Self::Ended, Self::Failed];

    pub const fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Live => "live",
            Self::Waiting => "waiting",
            Self::Running => "running",
            Self::Review => "review",
            Self::Ended => "ended",
            Self::Failed => "failed",
        }
    }

    /// The narrowest group that jobs in this stage belong to.
    fn of(stage: Stage) -> Self {
        match stage.phase() {
            Phase::Queued | Phase::Blocked => Self::Waiting,
            Phase::Running | Phase::Shipping => Self::Running,
            Phase::Review | Phase::Ready => Self::Review,
            Phase::Shipped | Phase::Cancelled => Self::Ended,
            Phase::Failed => Self::Failed,
        }
    }

    pub fn has(self, stage: Stage) -> bool {
        match self {
            Self::All => true,
            Self::Live => matches!(Self::of(stage), Self::Waiting | Self::Running | Self::Review),
            group => Self::of(stage) == group,
        }
    }

    /// What to ask for; none stands for every stage.
    pub fn stages(self) -> Vec<Stage> {
        let all = Stage::ALL.iter().copied();
        all.filter(|stage| self != Self::All && self.has(*stage)).collect()
    }

    #[must_use]
    pub fn next(self) -> Self {
        let at = Self::ALL.iter().position(|group| *group == self).unwrap_or(0);
        Self::ALL[(at + 1) % Self::ALL.len()]
    }
}

#[derive(Debug, Clone, Default)]
pub struct Jobs {
    pub list: List,
    pub group: Group,
    /// Newest first.
    pub rows: Vec<Job>,
    /// Where the next page begins; none on the last.
    pub next: Option<String>,
    /// Something was ever answered for this question.
    pub loaded: bool,
    /// The next page is under way.
    pub loading: bool,
    /// Raised when another question is asked: an answer to an older one is not for us.
    pub generation: u64,
    /// Rows that changed below the first page.
    pub touched: BTreeSet<String>,
}

impl Jobs {
    /// Another question. What is there stays until it is answered, as far as it fits.
    pub fn ask_anew(&mut self) {
        self.generation += 1;
        self.loaded = false;
        self.next = None;
        self.loading = false;
        self.touched.clear();
    }

    /// The first page again: it says everything about its stretch, and the rows below it stay.
    pub fn head(&mut self, page: JobPage, generation: u64) {
        if generation != self.generation {
            return;
        }
        let old = std::mem::take(&mut self.rows);
        let seen: BTreeSet<&str> = old.iter().map(|row| row.id.as_str()).collect();
        // Without a row in common there may be others between, so what is below has to be asked for again.
        let joins = std::mem::replace(&mut self.loaded, true)
            && page.jobs.iter().any(|job| seen.contains(job.id.as_str()));
        if !joins && !old.is_empty() {
            // A page that is under way goes on below rows which are not here any more.
            self.generation += 1;
            self.loading = false;
        }
        let below: Vec<Job> = match page.jobs.last() {
            Some(last) if joins && page.next_cursor.is_some() => {
                old.iter().filter(|row| row.id < last.id).cloned().collect()
            }
            _ => Vec::new(),
        };
        if below.is_empty() {
            self.next = page.next_cursor;
        }
        self.rows = page.jobs;
        self.rows.extend(below);
    }

    pub fn more(&mut self, page: JobPage, generation: u64) {
        if generation != self.generation {
            return;
        }
        self.loading = false;
        self.next = page.next_cursor;
        let known: BTreeSet<String> = self.rows.iter().map(|row| row.id.clone()).collect();
        self.rows.extend(page.jobs.into_iter().filter(|job| !known.contains(&job.id)));
    }

    /// What became of rows that changed; those that do not fit the question any more are not among the answers.
    pub fn rows(&mut self, asked: &[String], jobs: Vec<Job>, generation: u64) {
        if generation != self.generation {
            return;
        }
        self.rows.retain(|row| !asked.contains(&row.id) || jobs.iter().any(|job| job.id == row.id));
        for job in jobs {
            if let Some(row) = self.rows.iter_mut().find(|row| row.id == job.id) {
                *row = job;
            }
        }
    }

    /// What an event says is shown at once; the rest comes with the next answer.
    pub fn hear(&mut self, event: &Event) {
        let (Some(id), Some(to)) = (&event.job_id, event.to) else { return };
        if let Some(row) = self.rows.iter_mut().find(|row| row.id == *id) {
            row.stage = to;
            if !to.is_held() {
                row.lease = None;
            }
            self.touched.insert(id.clone());
        }
    }
}
