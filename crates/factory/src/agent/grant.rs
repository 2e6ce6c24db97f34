//! What was granted, as far as this machine works by it: the same whichever way it came.
//!
//! A message is taken apart field by field, so that what a coordinator sends cannot be forgotten here.

use std::time::Duration;

use giga_api::wire::{Checkpoint, ClaimAnswer, RepoCommit, ReviewNote, ReviewVerdict, Spend};
use giga_domain::id::IdError;
use giga_domain::job::BudgetCaps;
use giga_domain::{Epoch, JobId, Permissions, Timestamp, Usd, manifest};
use giga_proto::v1;

/// Where a lease does not say how long it is.
const DEFAULT_LEASE: Duration = Duration::from_secs(30);

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Grant {
    pub(super) job: JobId,
    pub(super) name: String,
    pub(super) epoch: Epoch,
    /// Without a renewal.
    pub(super) lease: Duration,
    /// What the claim reserved for this run.
    pub(super) reserved: Usd,
    /// Empty where an older coordinator hands out none.
    pub(super) job_token: String,
    /// `None` if the manifest cannot be read.
    pub(super) spec: Option<Spec>,
    pub(super) body: String,
    pub(super) persona: Option<String>,
    pub(super) checkpoint: Option<Checkpoint>,
    /// Oldest first.
    pub(super) reviews: Vec<ReviewNote>,
    /// Of the run whose result the job has.
    pub(super) result_epoch: Option<u64>,
    /// People answered or said something.
    pub(super) has_conversation: bool,
}

/// What the manifest asks of the machine.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Spec {
    pub(super) repo: Option<String>,
    /// Those beside `repo`.
    pub(super) more_repos: Vec<String>,
    /// `None` means any.
    pub(super) engine: Option<String>,
    pub(super) script: Option<String>,
    pub(super) verify: Vec<String>,
    pub(super) budget: BudgetCaps,
    /// The branch that the work starts from, if not the repository's own.
    pub(super) base: Option<String>,
    /// They are asked for when the work starts.
    pub(super) has_secrets: bool,
    /// What the engine may do without asking; `None`: what the settings of the engine say.
    pub(super) permissions: Option<Permissions>,
}

/// Both ends are the store's time, so their difference is a length whatever this machine's clock says.
fn length(granted: Option<Timestamp>, expires: Option<Timestamp>) -> Duration {
    let length = granted.zip(expires).map(|(from, to)| to.since(from));
    length.filter(|length| !length.is_zero()).unwrap_or(DEFAULT_LEASE)
}

impl TryFrom<ClaimAnswer> for Grant {
    type Error = IdError;

    fn try_from(claim: ClaimAnswer) -> Result<Self, IdError> {
        let job = claim.job;
        let granted = job.lease.as_ref().and_then(|lease| lease.granted_at.parse().ok());
        let manifest = job.manifest.and_then(|snapshot| manifest::from_json(&snapshot).ok());
        Ok(Self {
            job: job.id.parse()?,
            name: job.name,
            epoch: Epoch(claim.lease_epoch),
            lease: length(granted, claim.expires_at.parse().ok()),
            reserved: job.lease.map_or(Usd::ZERO, |lease| lease.reserved_usd),
            job_token: claim.job_token,
            spec: manifest.map(|manifest| Spec {
                repo: manifest.repo,
                more_repos: manifest.more_repos,
                engine: manifest.engine,
                script: manifest.script,
                verify: manifest.verify,
                budget: manifest.budget,
                base: manifest.base.or(manifest.target),
                has_secrets: !manifest.secrets.is_empty(),
                permissions: manifest.permissions,
            }),
            body: job.body_md.unwrap_or_default(),
            persona: job.persona_md,
            checkpoint: job.checkpoint,
            reviews: job.reviews,
            result_epoch: job.result.map(|result| result.lease_epoch),
            has_conversation: job.has_conversation,
        })
    }
}

impl TryFrom<v1::Grant> for Grant {
    type Error = IdError;

    fn try_from(grant: v1::Grant) -> Result<Self, IdError> {
        let v1::Grant {
            job_id,
            name,
            lease,
            job_token,
            spec,
            body_md,
            persona_md,
            checkpoint,
            reviews,
            result_epoch,
            has_conversation,
        } = grant;
        let v1::Lease { epoch, granted_at, expires_at, reserved_usd_micros } = lease.unwrap_or_default();
        Ok(Self {
            job: job_id.parse()?,
            name,
            epoch: Epoch(epoch),
            lease: length(granted_at.map(time), expires_at.map(time)),
            reserved: Usd::from_micros(reserved_usd_micros),
            job_token,
            spec: spec.map(Spec::from),
            body: body_md,
            persona: persona_md,
            checkpoint: checkpoint.map(read_checkpoint),
            reviews: reviews.into_iter().filter_map(read_review).collect(),
            result_epoch,
            has_conversation,
        })
    }
}

impl From<v1::Spec> for Spec {
    fn from(spec: v1::Spec) -> Self {
        let v1::Spec { repo, engine, script, verify, budget, base, more_repos, has_secrets, permissions } =
            spec;
        // A word that this version does not know is taken for the strictest.
        let permissions = permissions.map(|word| word.parse().unwrap_or(Permissions::Ask));
        let v1::BudgetCaps { usd_micros, tokens, wall_ms } = budget.unwrap_or_default();
        let budget = BudgetCaps { usd: usd_micros.map(Usd::from_micros), tokens, wall_ms };
        Self { repo, more_repos, engine, script, verify, budget, base, has_secrets, permissions }
    }
}

fn read_checkpoint(checkpoint: v1::Checkpoint) -> Checkpoint {
    let v1::Checkpoint { wip_ref, commit, session_id, session_spend, factory_id, note, repos } = checkpoint;
    let session_spend = session_spend
        .map(|v1::Spend { usd_micros, tokens }| Spend { usd: Usd::from_micros(usd_micros), tokens });
    let repos = repos
        .into_iter()
        .map(|v1::RepoCommit { repo, commit }| RepoCommit { repo, commit, base: None })
        .collect();
    Checkpoint { wip_ref, commit, session_id, session_spend, repos, factory_id, note }
}

/// Nothing for a verdict that this version does not know.
fn read_review(note: v1::ReviewNote) -> Option<ReviewNote> {
    let v1::ReviewNote { reviewer, verdict, comment, at, lease_epoch } = note;
    let verdict = match v1::Verdict::try_from(verdict).ok()? {
        v1::Verdict::Unspecified => return None,
        v1::Verdict::Approve => ReviewVerdict::Approve,
        v1::Verdict::RequestChanges => ReviewVerdict::RequestChanges,
        v1::Verdict::Reject => ReviewVerdict::Reject,
    };
    let at = at.map_or(Timestamp::ZERO, time).to_string();
    Some(ReviewNote { reviewer, verdict, comment, at, lease_epoch })
}

fn time(at: prost_types::Timestamp) -> Timestamp {
    Timestamp::from_millis(at.seconds.saturating_mul(1_000).saturating_add(i64::from(at.nanos) / 1_000_000))
}

#[cfg(test)]
mod tests {
    use giga_server::grant_message;
    use serde_json::json;

    use super::*;

    const ID: JobId = JobId::from_u128(7);

    fn claim() -> ClaimAnswer {
        let (granted, expires) = ("2026-11-15T16:00:00.250Z", "2026-11-15T16:00:31Z");
        let lease = json!({"factoryId": "a", "grantedAt": granted, "expiresAt": expires, "reservedUsd": 2.5,
            "spentUsd": 0.5, "spentTokens": 7});
        let manifest = json!({"name": "fix", "repos": ["hello", "lib"], "engine": "shell", "script": "make",
            "verify": ["make test", "make lint"], "target": "release/2.1", "secrets": ["KEY"], "permissions": "edit", "budget": {"usd": 1.25, "tokens": 9, "wall": "3s"}});
        let checkpoint = json!({"wipRef": "giga/wip/1", "commit": "abc", "sessionId": "s", "factoryId": "b",
            "sessionSpend": {"usd": 0.75, "tokens": 11}, "note": "half",
            "repos": [{"repo": "lib", "commit": "abc"}]});
        let review = |verdict: &str, comment: Option<&str>| json!({"reviewer": "ana", "verdict": verdict, "comment": comment, "at": granted, "leaseEpoch": 3});
        let reviews =
            [review("approve", None), review("request_changes", Some("more")), review("reject", None)];
        let job = json!({"id": ID.to_string(), "productId": "demo", "name": "fix", "kind": "agent", "stage": "assigned",
            "priority": "normal", "rev": 1, "leaseEpoch": 4, "capabilities": [], "deps": [], "depsMode": "all",
            "attempts": 0, "dispatchSeq": 0, "hasConversation": true, "lease": lease, "checkpoint": checkpoint, "reviews": reviews,
            "result": {"leaseEpoch": 2, "branch": "giga", "commit": "def"}, "manifest": manifest, "bodyMd": "Do it.",
            "personaMd": "You are careful.", "createdAt": granted, "updatedAt": granted, "enqueuedAt": granted});
        let claim = json!({"job": job, "leaseEpoch": 4, "expiresAt": expires, "jobToken": "giga_job"});
        serde_json::from_value(claim).unwrap()
    }

    #[test]
    fn a_claim_and_its_message_are_the_same_grant() {
        let at = "2026-11-15T16:00:00.250Z";
        let review = |verdict, comment: Option<&str>| ReviewNote {
            reviewer: "ana".to_owned(),
            verdict,
            comment: comment.map(str::to_owned),
            at: at.to_owned(),
            lease_epoch: 3,
        };
        let expected = Grant {
            job: ID,
            name: "fix".to_owned(),
            epoch: Epoch(4),
            lease: Duration::from_millis(30_750),
            reserved: Usd::from_micros(2_500_000),
            job_token: "giga_job".to_owned(),
            spec: Some(Spec {
                repo: Some("hello".to_owned()),
                more_repos: vec!["lib".to_owned()],
                engine: Some("shell".to_owned()),
                script: Some("make".to_owned()),
                verify: vec!["make test".to_owned(), "make lint".to_owned()],
                budget: BudgetCaps {
                    usd: Some(Usd::from_micros(1_250_000)),
                    tokens: Some(9),
                    wall_ms: Some(3_000),
                },
                base: Some("release/2.1".to_owned()),
                has_secrets: true,
                permissions: Some(Permissions::Edit),
            }),
            body: "Do it.".to_owned(),
            persona: Some("You are careful.".to_owned()),
            checkpoint: Some(Checkpoint {
                wip_ref: Some("giga/wip/1".to_owned()),
                commit: Some("abc".to_owned()),
                session_id: Some("s".to_owned()),
                session_spend: Some(Spend { usd: Usd::from_micros(750_000), tokens: 11 }),
                repos: vec![RepoCommit { repo: "lib".to_owned(), commit: "abc".to_owned(), base: None }],
                factory_id: Some("b".to_owned()),
                note: Some("half".to_owned()),
            }),
            reviews: vec![
                review(ReviewVerdict::Approve, None),
                review(ReviewVerdict::RequestChanges, Some("more")),
                review(ReviewVerdict::Reject, None),
            ],
            result_epoch: Some(2),
            has_conversation: true,
        };
        assert_eq!(Grant::try_from(claim()).unwrap(), expected);
        assert_eq!(Grant::try_from(grant_message(claim())).unwrap(), expected);
    }

    #[test]
    fn what_is_left_out_is_left_out_either_way() {
        let mut bare = claim();
        bare.job.lease = None;
        bare.job.manifest = Some(json!({"name": "fix"}));
        bare.job.checkpoint = None;
        bare.job.reviews = Vec::new();
        bare.job.result = None;
        bare.job.persona_md = None;
        let mut unreadable = bare.clone();
        unreadable.job.manifest = Some(json!({"name": 7}));
        for claim in [bare, unreadable] {
            let message = Grant::try_from(grant_message(claim.clone())).unwrap();
            assert_eq!(message, Grant::try_from(claim).unwrap());
        }
        assert!(Grant::try_from(v1::Grant::default()).is_err(), "a grant is of a job");
    }
}
