//! What reviewers are asked and what they say.

use giga_domain as domain;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::ReviewVerdict;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ReviewRequest {
    pub verdict: ReviewVerdict,
    /// Who says so; the token's label when left out. Only an admin speaks for somebody else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reviewer: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Of the result that was looked at (`result.leaseEpoch`): refused where the job has another one by now. Left out, the
    /// verdict is about whichever is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_epoch: Option<u64>,
    /// The same by its commit (`result.commit`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// Needed for an approval where the diff does not show everything (`result.unseen`).
    #[serde(default)]
    pub acknowledge_unseen: bool,
}

/// Asks for a review before the job goes on. An empty body asks for one approval, by anyone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RequestReviewRequest {
    /// How many have to approve; 1 if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quorum: Option<u32>,
    /// Who may; anyone if left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reviewers: Vec<String>,
}

/// What a review takes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReviewGate {
    pub quorum: u32,
    /// Empty: anyone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reviewers: Vec<String>,
}

/// A verdict and its comment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReviewNote {
    pub reviewer: String,
    pub verdict: ReviewVerdict,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    pub at: String,
    /// Of the run that was judged.
    pub lease_epoch: u64,
}

impl super::Job {
    /// Reviews. Long, so they go with single jobs only.
    #[must_use]
    pub fn with_reviews(mut self, job: &domain::Job) -> Self {
        self.reviews = job.reviews.iter().map(Into::into).collect();
        self
    }
}

impl From<&domain::job::ReviewGate> for ReviewGate {
    fn from(gate: &domain::job::ReviewGate) -> Self {
        Self { quorum: gate.quorum, reviewers: gate.reviewers.clone() }
    }
}

impl From<&domain::ReviewNote> for ReviewNote {
    fn from(note: &domain::ReviewNote) -> Self {
        Self {
            reviewer: note.reviewer.clone(),
            verdict: note.verdict.into(),
            comment: note.comment.clone(),
            at: note.at.to_string(),
            lease_epoch: note.epoch.0,
        }
    }
}
