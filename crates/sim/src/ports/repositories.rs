//! The branches that results are merged into: outside of the store, and moved by compare-and-set, as git does it.

use std::collections::{BTreeMap, BTreeSet};

use giga_domain::{Epoch, JobId};
use parking_lot::Mutex;

/// A result that is in a branch.
pub(crate) type Landed = (JobId, Epoch);

#[derive(Debug, Default)]
pub(crate) struct Repositories(Mutex<BTreeMap<String, Branch>>);

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
    pub(crate) result: Landed,
    /// What stood in the branch with it passes its checks.
    pub(crate) passed: bool,
    /// The store knew of this very commit before it was pushed.
    pub(crate) announced: bool,
}

impl Repositories {
    pub(crate) fn branch(&self, repo: &str) -> Branch {
        self.0.lock().get(repo).cloned().unwrap_or_default()
    }

    /// Whether the branch was where the candidate was made, and so is at the candidate now.
    pub(crate) fn push(&self, repo: &str, onto: &str, push: Push) -> bool {
        let mut repositories = self.0.lock();
        let branch = repositories.entry(repo.to_owned()).or_default();
        if branch.tip == push.commit {
            return true;
        }
        if branch.tip != onto {
            return false;
        }
        branch.tip.clone_from(&push.commit);
        branch.landed.push(push.result);
        branch.pushes.push(push);
        true
    }

    pub(crate) fn all(&self) -> BTreeMap<String, Branch> {
        self.0.lock().clone()
    }
}

/// Each passes alone; some pairs do not pass together.
pub(crate) fn passes(landed: &[Landed], with: Landed) -> bool {
    let all: BTreeSet<JobId> = landed.iter().map(|(job, _)| *job).collect();
    // Done again, it is another piece of work, which fits.
    with.1.0 > 2 || !all.iter().any(|other| *other != with.0 && (digest(*other) + digest(with.0)) % 12 == 0)
}

pub(crate) fn conflicts(landed: &[Landed], with: Landed) -> bool {
    with.1.0 < 2
        && landed.iter().any(|(other, _)| *other != with.0 && (digest(*other) + digest(with.0)) % 17 == 1)
}

fn digest(job: JobId) -> u64 {
    job.to_string().bytes().fold(7, |sum: u64, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)))
}
