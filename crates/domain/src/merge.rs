//! How a job's result comes into its branch: what was asked for, and how far it is.

use serde::{Deserialize, Serialize};

use crate::word::words;
use crate::{FactoryId, Timestamp};

words! {
    "conflict policy",
    /// What becomes of a result that cannot be merged as it is: it conflicts, or the checks fail on the merged tree.
    #[derive(Default)]
    pub enum ConflictPolicy {
        /// Another run on the branch as it is now, which is given the facts.
        #[default]
        Redo,
        /// It fails, and waits for somebody.
        Fail,
    }
}

words! {
    "merge strategy",
    /// How a result comes into its branch.
    pub enum MergeStrategy {
        /// A merge commit whose second parent is the result.
        Merge,
        /// One commit with everything that the result changes.
        Squash,
        /// The result's own commits, made again on top of the branch.
        Rebase,
        /// The result as it is, and only where the branch has not moved since.
        FastForward,
    }
}

words! {
    "way to merge",
    /// Who moves the branch.
    pub enum MergeBy {
        /// The merge queue pushes what passed its checks.
        Push,
        /// Somebody merges a pull request.
        PullRequest,
    }
}

words! {
    "feedback policy",
    /// What becomes of a request for changes, or of failed checks, on a pull request.
    pub enum MergeFeedback {
        /// An event, for whoever follows the job.
        Events,
        /// Another run, which is given the words. Failed checks lead to a bounded number of them.
        Changes,
    }
}

/// How a result is merged, as far as it was said: by the manifest, or by its product for what the manifest leaves out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct MergeSettings {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub strategy: Option<MergeStrategy>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<MergeBy>,
    /// Of a pull request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub feedback: Option<MergeFeedback>,
    /// The message of the commit that is made, with placeholders; see [`crate::merge_message`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// `Name <address>` of the commit that is made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
}

impl MergeSettings {
    pub fn is_unsaid(&self) -> bool {
        *self == Self::default()
    }

    /// What is not said here is as it is there.
    #[must_use]
    pub fn or(self, other: &Self) -> Self {
        Self {
            strategy: self.strategy.or(other.strategy),
            by: self.by.or(other.by),
            feedback: self.feedback.or(other.feedback),
            message: self.message.or_else(|| other.message.clone()),
            author: self.author.or_else(|| other.author.clone()),
        }
    }
}

/// The way of a job's result into its branch, from the word to ship on. One factory at a time carries it out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Merge {
    /// Raised whenever a factory takes it, so that the one before is no longer heard.
    #[serde(default)]
    pub attempt: u32,
    /// How often the repository refused it or could not be reached.
    #[serde(default)]
    pub failures: u32,
    /// How often the job was sent back because of it.
    #[serde(default)]
    pub redos: u32,
    /// Of a result in several repositories: whose turn it is.
    #[serde(default)]
    pub part: usize,
    /// Of a job with several repositories: what is in already, whatever becomes of the rest.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub merged: Vec<MergedRepo>,
    /// Where the result is shown to people, who merge it. It outlives the runs that are shown there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<PullRequest>,
    #[serde(flatten)]
    pub state: MergeState,
}

/// A repository that has its part of a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergedRepo {
    pub repo: String,
    pub commit: String,
    pub into: String,
    /// What its owner should know about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A pull request, or what a forge calls so.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PullRequest {
    /// By the name that the coordinator has for it.
    pub forge: String,
    /// As the forge calls it, such as `acme/app`.
    pub repo: String,
    /// Of this job alone, so that whatever request exists for it is the one.
    pub branch: String,
    /// What the forge calls it, once it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub opened: Option<OpenRequest>,
    /// What was said there and has been passed on: at most [`PullRequest::SEEN`] of a kind, the newest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seen: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenRequest {
    pub number: u64,
    pub url: String,
}

impl PullRequest {
    /// Whoever looks at a request looks at no more of a kind than this.
    pub const SEEN: usize = 30;

    pub(crate) fn has_seen(&self, id: &str) -> bool {
        self.seen.iter().any(|seen| seen == id)
    }

    /// Whether it is new; then it is not new again. The kind is what stands before the first `:`.
    pub(crate) fn see(&mut self, id: &str) -> bool {
        if self.has_seen(id) {
            return false;
        }
        let kind = |id: &str| id.split(':').next().unwrap_or_default().to_owned();
        let of_kind = |seen: &String| kind(seen) == kind(id);
        if self.seen.iter().filter(|seen| of_kind(seen)).count() >= Self::SEEN
            && let Some(oldest) = self.seen.iter().position(of_kind)
        {
            self.seen.remove(oldest);
        }
        self.seen.push(id.to_owned());
        true
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum MergeState {
    Waiting {
        due: Timestamp,
        /// Why it did not work the last time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        detail: Option<String>,
    },
    /// Merged onto the tip and checked there; nothing is pushed yet.
    Taken { factory: FactoryId, until: Timestamp },
    /// The intent: from here on this candidate is pushed, by whoever holds the merge, and nothing else is decided.
    Pushing {
        /// Nobody, where the origin could not be reached: it is tried again from `until` on.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        factory: Option<FactoryId>,
        until: Timestamp,
        candidate: MergeCandidate,
    },
    /// On the branch of its pull request: whoever merges or closes that decides.
    Proposed { commit: String, into: String },
    Done {
        commit: String,
        /// Unknown for what was merged by an older version.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        into: Option<String>,
        /// What its owner should know about it, such as what to do in a checkout.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        note: Option<String>,
    },
    /// Out of the queue: redone, or failed.
    #[serde(alias = "conflict", alias = "failed")]
    SentBack { detail: String },
}

/// A commit that contains the result and passed its checks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergeCandidate {
    pub commit: String,
    /// What the branch was at; none in an empty repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tip: Option<String>,
    pub into: String,
    /// What is pushed: the last commit of a batch, which holds this one. The commit itself where it is alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
}

impl MergeCandidate {
    /// What the branch is moved to.
    pub fn pushed(&self) -> &str {
        self.head.as_deref().unwrap_or(&self.commit)
    }
}

impl Merge {
    /// From when on it may be taken; `None` when there is nothing left to do.
    pub const fn due(&self) -> Option<Timestamp> {
        match &self.state {
            MergeState::Waiting { due, .. } => Some(*due),
            MergeState::Taken { until, .. } | MergeState::Pushing { until, .. } => Some(*until),
            MergeState::Proposed { .. } | MergeState::Done { .. } | MergeState::SentBack { .. } => None,
        }
    }

    /// What may no longer be stopped.
    pub const fn is_pushing(&self) -> bool {
        self.candidate().is_some()
    }

    /// What is announced.
    pub const fn candidate(&self) -> Option<&MergeCandidate> {
        match &self.state {
            MergeState::Pushing { candidate, .. } => Some(candidate),
            _ => None,
        }
    }

    /// Who carries it out now.
    pub const fn holder(&self) -> Option<&FactoryId> {
        match &self.state {
            MergeState::Taken { factory, .. } => Some(factory),
            MergeState::Pushing { factory, .. } => factory.as_ref(),
            _ => None,
        }
    }
}
