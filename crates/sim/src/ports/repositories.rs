//! The branches that results are merged into: outside of the store, and moved by compare-and-set, as git does it.

use std::collections::{BTreeMap, BTreeSet};

use giga_domain::{Epoch, JobId};
use parking_lot::Mutex;

/// A result that is in a branch.
pub(crate) type Landed = (JobId, Epoch);

#[derive(Debug, Default)]
pub(crate) struct Repositories(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    branches: BTreeMap<String, Branch>,
    /// What a candidate brings, by its commit.
    made: BTreeMap<String, Vec<Landed>>,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Branch {
    /// Empty before the first.
    pub(crate) tip: String,
    /// In the order in which they came in.
    pub(crate) landed: Vec<Landed>,
    /// What a push brought in, with the announcement that the store had for it then.
    pub(crate) pushes: Vec<Push>,
}

#[derive(Debug, Clone)]
pub(crate) struct Push {
    pub(crate) commit: String,
    pub(crate) results: Vec<Landed>,
    /// The store knew of this very commit before it was pushed, for every job in it.
    pub(crate) announced: bool,
}

impl Branch {
    /// The commit that holds it.
    pub(crate) fn holding(&self, result: Landed) -> Option<String> {
        let push = self.pushes.iter().find(|push| push.results.contains(&result));
        push.map(|push| push.commit.clone())
    }
}

impl Repositories {
    pub(crate) fn branch(&self, repo: &str) -> Branch {
        self.0.lock().branches.get(repo).cloned().unwrap_or_default()
    }

    /// A candidate with these on top of each other.
    pub(crate) fn make(&self, commit: &str, of: &[Landed]) {
        self.0.lock().made.insert(commit.to_owned(), of.to_vec());
    }

    pub(crate) fn made(&self, commit: &str) -> Vec<Landed> {
        self.0.lock().made.get(commit).cloned().unwrap_or_default()
    }

    /// Whether the branch was where the candidate was made, and so is at the candidate now.
    pub(crate) fn push(&self, repo: &str, onto: &str, push: Push) -> bool {
        let mut known = self.0.lock();
        let branch = known.branches.entry(repo.to_owned()).or_default();
        if branch.tip == push.commit {
            return true;
        }
        if branch.tip != onto {
            return false;
        }
        branch.tip.clone_from(&push.commit);
        branch.landed.extend(&push.results);
        branch.pushes.push(push);
        true
    }

    pub(crate) fn all(&self) -> BTreeMap<String, Branch> {
        self.0.lock().branches.clone()
    }
}

/// Each passes alone; some pairs do not pass together.
fn passes(landed: &[Landed], with: Landed) -> bool {
    let all: BTreeSet<JobId> = landed.iter().map(|(job, _)| *job).collect();
    // Done again, it is another piece of work, which fits.
    with.1.0 > 2
        || !all.iter().any(|other| *other != with.0 && (digest(*other) + digest(with.0)).is_multiple_of(12))
}

/// All of them, on top of what is there.
pub(crate) fn pass_together(landed: &[Landed], more: &[Landed]) -> bool {
    let mut with = landed.to_vec();
    more.iter().all(|result| {
        let passes = passes(&with, *result);
        with.push(*result);
        passes
    })
}

pub(crate) fn conflicts(landed: &[Landed], with: Landed) -> bool {
    with.1.0 < 2
        && landed.iter().any(|(other, _)| *other != with.0 && (digest(*other) + digest(with.0)) % 17 == 1)
}

fn digest(job: JobId) -> u64 {
    job.to_string().bytes().fold(7, |sum, byte| (sum * 31 + u64::from(byte)) % 65_521)
}
