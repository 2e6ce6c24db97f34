//! What a tenant is allowed and how much it counts. A product without settings is an ordinary one.

use serde::{Deserialize, Serialize};

use crate::job::MergeSettings;
use crate::{PolicyFloor, ProductId, Rev, Weights};

/// Where work goes whose sender may use every product and names none. Its policy holds in repositories that nobody owns.
pub const DEFAULT_PRODUCT: &str = "default";
/// Enough to make up for checks that take minutes, and few enough that a culprit is soon found.
pub const MERGE_BATCH: u32 = 4;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ProductSettings {
    /// Its share of the fleet against the other products'.
    pub share: f64,
    pub weights: Weights,
    /// The repositories that it owns, by name ([`names_of_repo`]). One name has one owner at most.
    pub repos: Vec<String>,
    /// What a job's manifest leaves out about its merge.
    #[serde(skip_serializing_if = "MergeSettings::is_unsaid")]
    pub merge: MergeSettings,
    /// Commands that must pass on every merged tree, after the job's own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub merge_checks: Vec<String>,
    /// How many results may be merged and checked together.
    pub merge_batch: u32,
    /// What its jobs keep to, and those of others in its repositories.
    #[serde(skip_serializing_if = "PolicyFloor::is_default")]
    pub policy: PolicyFloor,
}

impl Default for ProductSettings {
    fn default() -> Self {
        Self {
            share: 1.0,
            weights: Weights::default(),
            repos: Vec::new(),
            merge: MergeSettings::default(),
            merge_checks: Vec::new(),
            merge_batch: MERGE_BATCH,
            policy: PolicyFloor::default(),
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Product {
    pub id: ProductId,
    pub settings: ProductSettings,
    pub rev: Rev,
}

/// The names that a repository can be owned by, the most exact first: `team/notes` and `notes` for
/// `https://example.org/Team/Notes.git`. Hosts do not count, nor does case: most of them do not tell it apart either.
pub fn names_of_repo(repo: &str) -> impl Iterator<Item = String> {
    let whole = owned_name(repo);
    let starts: Vec<usize> = whole.match_indices('/').map(|(at, _)| at + 1).collect();
    std::iter::once(0).chain(starts).map(move |start| whole[start..].to_owned())
}

/// The path of a URL, or the name itself, as it is compared with others.
pub fn owned_name(repo: &str) -> String {
    let path = match repo.split_once("://") {
        Some((_, rest)) => rest.split_once('/').map_or("", |(_, path)| path),
        None => repo.split_once(':').map_or(repo, |(_, path)| path),
    };
    let path = path.trim_matches('/').to_ascii_lowercase();
    path.strip_suffix(".git").map_or(path.clone(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_goes_by_every_end_of_its_path() {
        for repo in [
            "https://example.org/team/notes.git",
            "https://user@example.org:8443/Team/NOTES/",
            "git@example.org:team/notes.git",
            "ssh://git@example.org:22/team/notes.GIT",
            "file:///team/notes",
            "team/notes",
        ] {
            assert_eq!(names_of_repo(repo).collect::<Vec<_>>(), ["team/notes", "notes"], "{repo}");
        }
        assert_eq!(names_of_repo("https://example.org/notes").collect::<Vec<_>>(), ["notes"]);
        assert_eq!(names_of_repo("Notes").collect::<Vec<_>>(), ["notes"]);
    }
}
