//! A claim as the stream's message.
//!
//! Everything that a claim's answer has is named here, taken or passed over: whoever adds a field decides at this place
//! whether factories work by it.

use giga_api::wire::{
    Checkpoint, ClaimAnswer, Job, JobResult, Lease, RepoCommit, ReviewNote, ReviewVerdict, Spend,
};
use giga_domain::job::BudgetCaps;
use giga_domain::manifest::{self, Manifest};
use giga_domain::{Timestamp, Usd};
use giga_proto::v1;

use super::dispatch::to_proto;

/// Public for the factory's tests, which compare what it makes of the message and of the claim itself.
pub fn grant_message(claim: ClaimAnswer) -> v1::Grant {
    let ClaimAnswer { job, lease_epoch, expires_at, job_token } = claim;
    let Job {
        id,
        product_id: _,
        name,
        kind: _,
        stage: _,
        priority: _,
        rev: _,
        lease_epoch: _,
        // These are in the manifest.
        repo: _,
        repos: _,
        engine: _,
        capabilities: _,
        deps: _,
        deps_mode: _,
        parent_id: _,
        topic: _,
        attempts: _,
        evictions: _,
        dispatch_seq: _,
        target_factory_id: _,
        lease,
        checkpoint,
        failure: _,
        last_failure: _,
        approvals: _,
        gate: _,
        needs_input: _,
        has_conversation,
        open_questions: _,
        reviews,
        idempotency_key: _,
        last_factory_id: _,
        result,
        merge: _,
        created_at: _,
        updated_at: _,
        enqueued_at: _,
        ready_at: _,
        manifest,
        body_md,
        persona_md,
    } = job;
    v1::Grant {
        job_id: id,
        name,
        lease: Some(lease_message(lease, lease_epoch, &expires_at)),
        job_token,
        // A factory fails the job of a manifest that cannot be read, with the reason.
        spec: manifest.and_then(|manifest| manifest::from_json(&manifest).ok()).map(spec),
        body_md: body_md.unwrap_or_default(),
        persona_md,
        checkpoint: checkpoint.map(checkpoint_message),
        reviews: reviews.into_iter().map(review).collect(),
        result_epoch: result
            .map(|JobResult { lease_epoch, branch: _, commit: _, base: _, unseen: _, repos: _ }| lease_epoch),
        has_conversation,
    }
}

fn lease_message(lease: Option<Lease>, epoch: u64, expires_at: &str) -> v1::Lease {
    let taken = |lease: Lease| {
        let Lease { factory_id: _, granted_at, expires_at: _, reserved_usd, spent_usd: _, spent_tokens: _ } =
            lease;
        (time(&granted_at), reserved_usd.micros())
    };
    let (granted_at, reserved_usd_micros) = lease.map(taken).unwrap_or_default();
    v1::Lease { epoch, granted_at, expires_at: time(expires_at), reserved_usd_micros }
}

fn spec(manifest: Manifest) -> v1::Spec {
    let Manifest {
        name: _,
        product: _,
        repo,
        more_repos,
        engine,
        script,
        persona: _,
        capabilities: _,
        priority: _,
        kind: _,
        deps: _,
        deps_mode: _,
        on_failure: _,
        on_conflict: _,
        base,
        target,
        merge: _,
        budget: BudgetCaps { usd, tokens, wall_ms },
        retry: _,
        retry_on: _,
        verify,
        secrets,
        review: _,
        ship: _,
        permissions,
        ask: _,
        concurrency: _,
        idempotency_key: _,
        run_at: _,
        written: _,
    } = manifest;
    let budget = v1::BudgetCaps { usd_micros: usd.map(Usd::micros), tokens, wall_ms };
    // What goes into a branch is made on it, unless the manifest says otherwise.
    let base = base.or(target);
    v1::Spec {
        repo,
        engine,
        script,
        verify,
        budget: Some(budget),
        base,
        more_repos,
        has_secrets: !secrets.is_empty(),
        permissions: permissions.map(|permissions| permissions.as_str().to_owned()),
    }
}

fn checkpoint_message(checkpoint: Checkpoint) -> v1::Checkpoint {
    let Checkpoint { wip_ref, commit, session_id, session_spend, repos, factory_id, note } = checkpoint;
    let session_spend =
        session_spend.map(|Spend { usd, tokens }| v1::Spend { usd_micros: usd.micros(), tokens });
    let repos = repos
        .into_iter()
        .map(|RepoCommit { repo, commit, base: _ }| v1::RepoCommit { repo, commit })
        .collect();
    v1::Checkpoint { wip_ref, commit, session_id, session_spend, factory_id, note, repos }
}

fn review(note: ReviewNote) -> v1::ReviewNote {
    let ReviewNote { reviewer, verdict, comment, at, lease_epoch } = note;
    let verdict = match verdict {
        ReviewVerdict::Approve => v1::Verdict::Approve,
        ReviewVerdict::RequestChanges => v1::Verdict::RequestChanges,
        ReviewVerdict::Reject => v1::Verdict::Reject,
    };
    v1::ReviewNote { reviewer, verdict: verdict.into(), comment, at: time(&at), lease_epoch }
}

/// The API writes times as text.
fn time(text: &str) -> Option<prost_types::Timestamp> {
    text.parse::<Timestamp>().ok().map(to_proto)
}
