//! What lies in the container.
//!
//! One document says where the log ends (`head`); each commit is a document of its own behind it, and everything before
//! some commit lies in the pieces of a snapshot. Head and commits share a logical partition, because they are written in
//! one transactional batch; everything else has a partition to itself, so that none of it counts against the limits of one.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The logical partition of head and commits.
pub(super) const LOG: &str = "log";
pub(super) const HEAD: &str = "head";
/// What this program writes, and the newest that it can read.
pub(super) const FORMAT: u32 = 1;
/// A document may have 2 MB and so may a batch; what is longer is cut into parts of so many bytes. They are text inside
/// JSON by then, where a quotation mark takes two.
pub(super) const PART: usize = 900_000;
/// Changes up to this length lie in the document of their commit.
pub(super) const WHOLE: usize = 1_500_000;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Head {
    pub(super) id: String,
    pub(super) pk: String,
    pub(super) format: u32,
    /// The number of the last commit.
    pub(super) last: u64,
    /// When the last commit was made, by the store's time.
    pub(super) at: i64,
    /// How many writers have opened the store: the next one's number.
    pub(super) writers: u64,
    /// The manifest of the snapshot that the log goes on from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) snapshot: Option<Snapshot>,
    /// How much was written to the log since that.
    pub(super) bytes: u64,
    /// The first commit that is still there.
    pub(super) oldest: u64,
    /// How much had been written when somebody last began a snapshot.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) saving: Option<u64>,
}

impl Head {
    pub(super) fn new() -> Self {
        Self {
            id: HEAD.to_owned(),
            pk: LOG.to_owned(),
            format: FORMAT,
            last: 0,
            at: 0,
            writers: 0,
            snapshot: None,
            bytes: 0,
            oldest: 1,
            saving: None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Snapshot {
    /// The document with the names of its pieces.
    pub(super) manifest: String,
    /// The log goes on behind this commit.
    pub(super) at: u64,
    pub(super) bytes: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Manifest {
    pub(super) id: String,
    pub(super) pk: String,
    pub(super) pieces: Vec<String>,
    /// Parts of the pieces.
    pub(super) parts: Vec<String>,
}

/// Changes: of a commit, or the rows of a piece of a snapshot.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Carrier {
    pub(super) id: String,
    pub(super) pk: String,
    #[serde(flatten)]
    pub(super) load: Load,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Load {
    Changes(Value),
    /// The documents that they were cut into, as text.
    Parts(Vec<String>),
}

impl Load {
    pub(super) fn parts(&self) -> &[String] {
        match self {
            Self::Changes(_) => &[],
            Self::Parts(parts) => parts,
        }
    }
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Part {
    pub(super) id: String,
    pub(super) pk: String,
    pub(super) text: String,
}

/// Where somebody says that others were faster again and again.
pub(super) const WAITING: &str = "waiting";

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Waiting {
    pub(super) id: String,
    pub(super) pk: String,
    pub(super) writer: u64,
    /// The last commit that it lost against.
    pub(super) last: u64,
}

pub(super) fn commit_id(number: u64) -> String {
    format!("commit-{number:020}")
}

/// Pieces of at most [`PART`] bytes, cut between characters.
pub(super) fn cut(text: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (part, behind) = rest.split_at(rest.floor_char_boundary(PART));
        parts.push(part);
        rest = behind;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_comes_together_again() {
        // One byte first, so that the cut would go through a character.
        let text = format!("a{}", "é".repeat(PART));
        let parts = cut(&text);
        assert_eq!(parts.len(), 3);
        assert!(parts.iter().all(|part| part.len() <= PART));
        assert_eq!(parts.concat(), text);
    }
}
