//! What people read in the event log. There is no other way to make an event, so every sentence is here.
//!
//! A cause is one line that says by itself what happened. It begins with a lower-case word and never with a name, so
//! that a screen may capitalize it.

mod pools;

use serde_json::{Map, Value};

use super::{EventKind, NewEvent};
use crate::job::{MergeCandidate, ReviewGate};
use crate::token::{Permission, TokenRecord};
use crate::topic::TopicKey;
use crate::{
    Artifact, DispatchSeq, Effect, EngineUse, Epoch, FactoryId, FactoryState, FailReason, Failure, JobId,
    JobKind, JobSpec, Judgement, NodeId, OperatorAction, Period, ProductId, Profile, Question, QuestionKind,
    Secret, Stage, Term, Timestamp, Usd, Verdict, Webhook,
};

impl NewEvent {
    fn new(kind: EventKind, cause: impl Into<String>) -> Self {
        Self { kind, from: None, to: None, cause: cause.into(), data: Map::new() }
    }

    #[must_use]
    fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.data.insert(key.to_owned(), value.into());
        self
    }

    fn with_some(self, key: &str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.with(key, value),
            None => self,
        }
    }
}

/// Jobs: from the manifest to a holder.
impl NewEvent {
    pub fn submitted(spec: &JobSpec, stage: Stage) -> Self {
        let cause = match stage {
            Stage::Queued => "submitted".to_owned(),
            _ if spec.kind == JobKind::Composite => "submitted; waiting for its children".to_owned(),
            _ => {
                let (mode, deps) = (spec.deps_mode, count(spec.deps.len() as u64, "dep"));
                format!("submitted; waiting for {mode} of {deps}")
            }
        };
        let event = Self::new(EventKind::Submitted, cause).with("name", spec.name.as_str());
        Self { to: Some(stage), ..event }
    }

    pub(crate) fn unblocked() -> Self {
        Self::new(EventKind::Unblocked, "deps satisfied; queued")
    }

    pub(crate) fn targeted(factory: &FactoryId, dispatch: DispatchSeq) -> Self {
        Self::new(EventKind::Targeted, format!("offered to {factory}"))
            .with("factoryId", factory.as_str())
            .with("dispatchSeq", dispatch.0)
    }

    pub(crate) fn assigned(factory: &FactoryId, epoch: Epoch) -> Self {
        Self::new(EventKind::Assigned, format!("claimed by {factory} as run {epoch}"))
            .with("factoryId", factory.as_str())
            .with("leaseEpoch", epoch.0)
    }

    pub(crate) fn diverged(routed_to: &FactoryId, claimed_by: &FactoryId, lag_ms: u64) -> Self {
        let cause = format!("claimed by {claimed_by}; the dispatcher would have chosen {routed_to}");
        Self::new(EventKind::Diverged, cause)
            .with("routedTo", routed_to.as_str())
            .with("claimedBy", claimed_by.as_str())
            .with("lagMs", lag_ms)
    }
}

/// Jobs: what their holders do.
impl NewEvent {
    pub(crate) fn started(factory: &FactoryId) -> Self {
        Self::new(EventKind::Started, format!("started on {factory}"))
    }

    pub(crate) fn engine_passed_over(factory: &FactoryId, taken: &EngineUse) -> Self {
        let EngineUse { engine, model, passed_over } = taken;
        let why: Vec<String> = passed_over.iter().map(ToString::to_string).collect();
        Self::new(EventKind::EnginePassedOver, format!("runs with {engine} on {factory}: {}", why.join("; ")))
            .with("engine", engine.as_str())
            .with_some("model", model.as_deref())
            .with("passedOver", serde_json::to_value(passed_over).unwrap_or_default())
    }

    /// No attempt is used.
    pub(crate) fn account_closed(failure: &Failure, ready_at: Timestamp) -> Self {
        let cause = format!("{}; queued again, no attempt used", failure.headline());
        Self::failure(EventKind::AccountClosed, failure, cause).with("readyAt", ready_at.to_string())
    }

    pub(crate) fn checkpointed() -> Self {
        Self::new(EventKind::Checkpointed, "checkpoint saved")
    }

    pub(crate) fn artifact_added(artifact: &Artifact) -> Self {
        let cause = format!("uploaded {} ({})", artifact.name, count(artifact.size, "byte"));
        Self::artifact(EventKind::ArtifactAdded, artifact, cause).with("size", artifact.size)
    }

    pub(crate) fn artifact_removed(artifact: &Artifact) -> Self {
        Self::artifact(EventKind::ArtifactRemoved, artifact, format!("deleted {}", artifact.name))
    }

    fn artifact(kind: EventKind, artifact: &Artifact, cause: String) -> Self {
        Self::new(kind, cause)
            .with("artifactId", artifact.id.to_string())
            .with("name", artifact.name.as_str())
    }

    pub(crate) fn reported(to: Stage) -> Self {
        let (kind, then) = match to {
            Stage::Review => (EventKind::Reported, "waiting for review"),
            Stage::Shipped => (EventKind::Shipped, "shipped automatically; there is nothing to merge"),
            Stage::Shipping => (EventKind::Shipping, "shipping; waiting for its turn to be merged"),
            _ => (EventKind::Reported, to.label()),
        };
        Self::new(kind, format!("succeeded; {then}"))
    }

    pub(crate) fn failed(failure: &Failure, attempt: u32) -> Self {
        let cause = format!("{} (attempt {attempt}); will not be retried", failure.headline());
        Self::failure(EventKind::Failed, failure, cause)
    }

    /// `attempt`: which one of how many. `lost`: the factory that let its lease expire. `ready_at`: of the next attempt, where there is one.
    pub(crate) fn attempt_failed(
        failure: &Failure,
        attempt: (u32, u32),
        lost: Option<&FactoryId>,
        ready_at: Option<Timestamp>,
    ) -> Self {
        let (kind, what) = match lost {
            Some(factory) => (EventKind::LeaseExpired, format!("lease of {factory} expired")),
            None => (EventKind::Retried, failure.headline().to_owned()),
        };
        let (attempt, of) = attempt;
        let then = ready_at.map(|at| format!("; retrying at {at}")).unwrap_or_default();
        Self::failure(kind, failure, format!("{what} (attempt {attempt} of {of}){then}"))
            .with_some("readyAt", ready_at.map(|at| at.to_string()))
            .with_some("factoryId", lost.map(FactoryId::as_str))
    }

    pub(crate) fn dead_lettered(attempts: u32) -> Self {
        let cause = format!("no retries left after {}", count(attempts.into(), "failed attempt"));
        Self::new(EventKind::DeadLettered, cause)
    }

    fn failure(kind: EventKind, failure: &Failure, cause: String) -> Self {
        Self::new(kind, cause)
            .with("reason", failure.reason.as_str())
            .with_some("detail", failure.detail.as_deref())
    }

    pub(crate) fn released(factory: &FactoryId) -> Self {
        Self::new(EventKind::Released, format!("released by {factory}"))
    }

    /// `for_job`: that is to have the seat. None where the budget is paused.
    pub(crate) fn eviction_asked(factory: &FactoryId, for_job: Option<JobId>) -> Self {
        let why = for_job
            .map_or_else(|| "its budget is paused".to_owned(), |job| format!("job {job} is more urgent"));
        Self::new(EventKind::EvictionAsked, format!("asked {factory} to release the job: {why}"))
            .with_some("forJob", for_job.map(|job| job.to_string()))
    }

    pub(crate) fn preempted(for_job: Option<JobId>) -> Self {
        let cause = for_job.map_or_else(
            || "stopped because its budget is paused; queued again".to_owned(),
            |job| format!("preempted by job {job}; queued again"),
        );
        Self::new(EventKind::Preempted, cause).with_some("forJob", for_job.map(|job| job.to_string()))
    }
}

/// Jobs: what they and people say to each other.
impl NewEvent {
    pub(crate) fn question_asked(question: &Question) -> Self {
        let Question { number, kind, text, options, default, deadline, .. } = question;
        let what = match kind {
            QuestionKind::Question => "asked",
            QuestionKind::Permission => "asked for permission",
        };
        let most = default.as_ref().map(|default| format!("; `{}` at {deadline}", first_line(default)));
        let cause = format!("{what}: {}{}", first_line(text), most.unwrap_or_default());
        Self::new(EventKind::QuestionAsked, cause)
            .with("question", *number)
            .with("kind", kind.as_str())
            .with("text", text.as_str())
            .with("options", options.clone())
            .with_some("default", default.as_deref())
            .with("deadline", deadline.to_string())
    }

    /// `by` is missing where the default was taken.
    pub(crate) fn question_answered(number: u32, answer: &str, by: Option<&str>) -> Self {
        let short = first_line(answer);
        let cause = match by {
            Some(by) => format!("question {number} answered by {by}: {short}"),
            None => format!("question {number} not answered in time; its default is taken: {short}"),
        };
        Self::new(EventKind::QuestionAnswered, cause)
            .with("question", number)
            .with("answer", answer)
            .with_some("by", by)
    }

    pub(crate) fn question_expired(question: &Question) -> Self {
        let cause = format!("nobody answered in time: {}", first_line(&question.text));
        Self::new(EventKind::QuestionExpired, cause).with("question", question.number)
    }

    /// Also the failure's detail.
    pub(crate) fn unanswered(failure: &Failure) -> Self {
        let cause = failure.detail.as_deref().map(first_line).unwrap_or_default();
        Self::failure(EventKind::Failed, failure, cause)
    }

    pub(crate) fn parked(factory: &FactoryId, question: &Question) -> Self {
        let cause = format!("parked by {factory}: waiting for an answer to: {}", first_line(&question.text));
        Self::new(EventKind::Parked, cause).with("question", question.number)
    }

    pub(crate) fn message_sent(by: &str, text: &str) -> Self {
        Self::new(EventKind::MessageSent, format!("message from {by}: {}", first_line(text)))
            .with("by", by)
            .with("text", text)
    }

    pub(crate) fn messages_delivered(epoch: Epoch, number: u64) -> Self {
        let cause = format!("{} delivered to run {epoch}", count(number, "message"));
        Self::new(EventKind::MessageDelivered, cause).with("leaseEpoch", epoch.0).with("count", number)
    }
}

/// Jobs: what those that they hang on do to them.
impl NewEvent {
    /// Also the failure's detail, like the next.
    pub(crate) fn deps_lost(lost: u32) -> Self {
        Self::hopeless(FailReason::DependencyFailed, format!("{lost} of its deps will never ship"))
    }

    pub(crate) fn children_failed(failed: u32, total: u32) -> Self {
        Self::hopeless(FailReason::ChildFailed, format!("{failed} of {total} children failed"))
    }

    fn hopeless(reason: FailReason, detail: String) -> Self {
        Self::failure(EventKind::Failed, &Failure { reason, detail: Some(detail.clone()) }, detail)
    }

    pub(crate) fn children_retried() -> Self {
        Self::new(EventKind::ChildrenRetried, "no child has failed any more; following its children again")
    }

    pub(crate) fn children_done(to: Stage, shipped: u32) -> Self {
        let kind = if to == Stage::Shipped { EventKind::Shipped } else { EventKind::ChildrenDone };
        Self::new(kind, format!("all children have shipped ({shipped})"))
    }

    pub(crate) fn cancelled_because(reason: &str) -> Self {
        Self::new(EventKind::Cancelled, format!("cancelled: {reason}"))
    }
}

/// Jobs: what people do.
impl NewEvent {
    pub(crate) fn operated(action: OperatorAction, reason: Option<&str>) -> Self {
        let (kind, done) = match action {
            OperatorAction::Ship => (EventKind::Shipped, "shipped"),
            OperatorAction::Requeue => (EventKind::Requeued, "requeued"),
            OperatorAction::Reject => (EventKind::Rejected, "rejected"),
            OperatorAction::Cancel => (EventKind::Cancelled, "cancelled"),
        };
        Self::new(kind, because(format!("{done} by an operator"), reason))
    }

    pub(crate) fn review_requested(gate: &ReviewGate) -> Self {
        let cause =
            format!("review requested: {} from {}", count(gate.quorum.into(), "approval"), gate.who());
        Self::new(EventKind::ReviewRequested, cause)
            .with("quorum", gate.quorum)
            .with("reviewers", gate.reviewers.clone())
    }

    pub(crate) fn reviewed(judgement: &Judgement) -> Self {
        let Judgement { verdict, reviewer, comment, .. } = judgement;
        let (kind, done) = match verdict {
            Verdict::Approve => (EventKind::Approved, "approved"),
            Verdict::RequestChanges => (EventKind::ChangesRequested, "changes requested"),
            Verdict::Reject => (EventKind::Rejected, "rejected"),
        };
        Self::new(kind, because(format!("{done} by {reviewer}"), comment.as_deref()))
            .with("reviewer", reviewer.as_str())
    }

    pub(crate) fn cost_reported(cost: Usd) -> Self {
        Self::new(EventKind::CostReported, format!("final cost of the cancelled run: {cost}"))
            .with("usdMicros", cost.micros())
    }
}

/// Jobs: merging their results.
impl NewEvent {
    pub(crate) fn merge_started(factory: &FactoryId, attempt: u32) -> Self {
        let again = if attempt > 1 { format!(" (attempt {attempt})") } else { String::new() };
        Self::new(EventKind::MergeStarted, format!("merge started on {factory}{again}"))
            .with("factoryId", factory.as_str())
            .with("attempt", attempt)
    }

    pub(crate) fn ship(to: Stage, reason: Option<&str>) -> Self {
        let (kind, done) = match to {
            Stage::Shipped => (EventKind::Shipped, "shipped by an operator; there is nothing to merge"),
            _ => (EventKind::Shipping, "shipping, as an operator asked; waiting for its turn to be merged"),
        };
        Self::new(kind, because(done.to_owned(), reason))
    }

    pub(crate) fn merge_checked(candidate: &MergeCandidate) -> Self {
        let MergeCandidate { commit, tip, into, head } = candidate;
        Self::new(EventKind::MergeChecked, format!("checks passed on the merged tree; pushing it to {into}"))
            .with("commit", commit.as_str())
            .with_some("tip", tip.as_deref())
            .with("into", into.as_str())
            .with_some("head", head.as_deref())
    }

    /// `repo` of a job with several of them.
    pub(crate) fn merged(repo: Option<&str>, commit: &str, into: &str, note: Option<&str>) -> Self {
        let place = repo.map_or_else(|| into.to_owned(), |repo| format!("{into} of {repo}"));
        let mut event = Self::landed(EventKind::Merged, "merged", commit, &place).with("into", into);
        if let Some(note) = note {
            note.clone_into(&mut event.cause);
        }
        event.with_some("note", note).with_some("repo", repo)
    }

    pub(crate) fn shipped(commit: &str, into: &str) -> Self {
        Self::landed(EventKind::Shipped, "shipped", commit, into)
    }

    fn landed(kind: EventKind, what: &str, commit: &str, into: &str) -> Self {
        let short = commit.get(..12).unwrap_or(commit);
        Self::new(kind, format!("{what}: {short} is in {into}")).with("commit", commit).with("into", into)
    }

    pub(crate) fn merge_outrun() -> Self {
        Self::new(EventKind::MergeFailed, "the branch moved while it was being merged; merging again")
    }

    pub(crate) fn merge_sent_back(reason: FailReason, detail: &str) -> Self {
        Self::new(EventKind::MergeSentBack, format!("{}; doing it again: {detail}", reason.label()))
            .with("reason", reason.as_str())
            .with("detail", detail)
    }

    pub(crate) fn merge_given_up(failure: &Failure) -> Self {
        let kind = match failure.reason {
            FailReason::MergeRefused => EventKind::MergeFailed,
            FailReason::RequestClosed => EventKind::RequestClosed,
            _ => EventKind::MergeConflict,
        };
        let detail = failure.detail.as_deref().unwrap_or_default();
        Self::failure(kind, failure, format!("{}: {detail}", failure.reason.label()))
    }

    pub(crate) fn merge_failed(failures: u32, retry_at: Option<Timestamp>, detail: &str) -> Self {
        let then = retry_at.map(|at| format!("; trying again at {at}")).unwrap_or_default();
        Self::new(EventKind::MergeFailed, format!("merge failed (attempt {failures}){then}: {detail}"))
            .with("detail", detail)
            .with_some("readyAt", retry_at.map(|at| at.to_string()))
    }
}

/// Jobs: their pull requests.
impl NewEvent {
    pub(crate) fn merge_proposed(commit: &str, into: &str, branch: &str) -> Self {
        let cause = format!("pushed to {branch}; opening its pull request into {into}");
        Self::new(EventKind::MergeProposed, cause)
            .with("commit", commit)
            .with("into", into)
            .with("branch", branch)
    }

    pub(crate) fn request_opened(number: u64, url: &str) -> Self {
        Self::new(EventKind::RequestOpened, format!("waiting for its pull request {url} to be merged"))
            .with("number", number)
            .with("url", url)
    }

    pub(crate) fn request_comment(by: &str, verdict: Option<Verdict>, words: &str) -> Self {
        let what = match verdict {
            None => "comment",
            Some(Verdict::Approve) => "approval",
            Some(Verdict::RequestChanges) => "request for changes",
            Some(Verdict::Reject) => "rejection",
        };
        let said = if words.is_empty() { String::new() } else { format!(": {}", first_line(words)) };
        Self::new(EventKind::RequestComment, format!("{what} on its pull request by {by}{said}"))
            .with("by", by)
            .with_some("verdict", verdict.map(Verdict::as_str))
            .with("comment", words)
    }

    pub(crate) fn request_checks(passed: bool, detail: &str) -> Self {
        let what = if passed { "passed" } else { "failed" };
        let which = if detail.is_empty() { String::new() } else { format!(": {}", first_line(detail)) };
        Self::new(EventKind::RequestChecks, format!("checks of its pull request {what}{which}"))
            .with("passed", passed)
            .with("detail", detail)
    }

    /// Somebody merged what had been given up.
    pub(crate) fn merged_after_all() -> Self {
        Self::new(EventKind::Shipping, "its pull request was merged after all")
    }

    /// To another run, because of what was said on its pull request.
    pub(crate) fn request_sent_back(by: &str) -> Self {
        let cause = format!("changes requested on its pull request by {by}; queued for another run");
        Self::new(EventKind::ChangesRequested, cause).with("reviewer", by)
    }
}

fn first_line(text: &str) -> String {
    text.trim().lines().next().unwrap_or_default().chars().take(200).collect()
}

/// Factories and their tokens.
impl NewEvent {
    pub fn factory_enrolled(id: &FactoryId) -> Self {
        Self::factory(EventKind::FactoryEnrolled, id, "enrolled")
    }

    pub fn factory_changed(id: &FactoryId) -> Self {
        Self::factory(EventKind::FactoryChanged, id, "changed its capabilities, repos, seats or health")
    }

    pub fn stream_lost(id: &FactoryId) -> Self {
        Self::factory(EventKind::FactoryChanged, id, "lost its stream")
    }

    pub fn factory_state(id: &FactoryId, state: FactoryState) -> Self {
        match state {
            FactoryState::Draining => {
                Self::factory(EventKind::FactoryDraining, id, "is draining: it takes no new jobs")
            }
            FactoryState::Active => Self::factory(EventKind::FactoryResumed, id, "takes jobs again"),
        }
    }

    pub fn factory_deregistered(id: &FactoryId) -> Self {
        Self::factory(EventKind::FactoryDeregistered, id, "removed")
    }

    pub fn factory_pruned(id: &FactoryId) -> Self {
        Self::factory(EventKind::FactoryDeregistered, id, "removed: it was offline for too long")
    }

    fn factory(kind: EventKind, id: &FactoryId, what: &str) -> Self {
        Self::new(kind, format!("factory {id} {what}")).with("factoryId", id.as_str())
    }

    pub fn token_issued(token: &TokenRecord) -> Self {
        Self::token(EventKind::TokenIssued, token, "issued")
    }

    pub fn token_renewed(token: &TokenRecord) -> Self {
        let event = Self::token(EventKind::TokenRenewed, token, "renewed");
        match token.expires_at {
            Some(end) => event.with("expiresAt", end.to_string()),
            None => event,
        }
    }

    pub fn key_rotated(name: &str) -> Self {
        Self::new(EventKind::KeyRotated, format!("signing key {name} rotated")).with("name", name)
    }

    pub fn token_revoked(token: &TokenRecord) -> Self {
        Self::token(EventKind::TokenRevoked, token, "revoked")
    }

    /// `subject` is what the provider calls this person for ever; the label may be another's some day.
    pub fn signed_in(token: &TokenRecord, issuer: &str, subject: &str, via: &str) -> Self {
        let products = match &token.permission {
            Permission::User { products, .. } => products.iter().map(ToString::to_string).collect(),
            Permission::Factory { .. } | Permission::Pool { .. } | Permission::Scaler { .. } => Vec::new(),
        };
        let cause = format!("signed in on the {via} as {}", token.label);
        Self { cause, ..Self::token(EventKind::SignedIn, token, "") }
            .with("products", products)
            .with("issuer", issuer)
            .with("subject", subject)
            .with("via", via)
    }

    fn token(kind: EventKind, token: &TokenRecord, done: &str) -> Self {
        let event = Self::new(kind, format!("token {} {done}", token.label))
            .with("tokenId", token.id.as_str())
            .with("label", token.label.as_str());
        match &token.permission {
            Permission::Factory { factory, .. } => event.with("factoryId", factory.as_str()),
            Permission::User { role, .. } => event.with("role", role.as_str()),
            Permission::Pool { pool, factory } => event
                .with("pool", pool.as_str())
                .with_some("factoryId", factory.as_ref().map(FactoryId::as_str)),
            Permission::Scaler { pool } => event.with("pool", pool.as_str()),
        }
    }
}

/// Topics and the dispatcher.
impl NewEvent {
    /// `None`: all topics.
    pub fn topic_paused(topic: Option<&TopicKey>) -> Self {
        Self::topic(EventKind::TopicPaused, topic, "paused")
    }

    pub fn topic_resumed(topic: Option<&TopicKey>) -> Self {
        Self::topic(EventKind::TopicResumed, topic, "resumed")
    }

    fn topic(kind: EventKind, topic: Option<&TopicKey>, done: &str) -> Self {
        let which = topic.map_or_else(|| "all topics".to_owned(), |key| format!("topic {key}"));
        Self::new(kind, format!("{which} {done}"))
            .with_some("topic", topic.map(|key| key.topic.as_str()))
            .with_some("productId", topic.map(|key| key.product.as_str()))
    }

    pub fn topic_retried(topic: &TopicKey, jobs: usize) -> Self {
        Self::topic(
            EventKind::TopicRetried,
            Some(topic),
            &format!("retries {}", count(jobs as u64, "dead job")),
        )
        .with("count", jobs)
    }

    pub fn leader_changed(node: &NodeId, term: Term) -> Self {
        Self::new(EventKind::LeaderChanged, format!("coordinator {node} is now the leader (term {term})"))
            .with("nodeId", node.as_str())
            .with("term", term.0)
    }
}

/// Budgets.
impl NewEvent {
    pub(crate) fn budget_set(product: &ProductId) -> Self {
        Self::budget(EventKind::BudgetChanged, product, "changed")
    }

    pub(crate) fn budget_corrected(product: &ProductId, usd: Usd, reason: &str) -> Self {
        let what = format!("corrected by {usd}: {reason}");
        Self::budget(EventKind::BudgetChanged, product, &what).with("usdMicros", usd.micros())
    }

    pub(crate) fn budget_paused(product: &ProductId, reason: Option<&str>) -> Self {
        Self::budget(EventKind::BudgetPaused, product, &because("paused".to_owned(), reason))
    }

    pub(crate) fn budget_resumed(product: &ProductId) -> Self {
        Self::budget(EventKind::BudgetResumed, product, "resumed")
    }

    pub(crate) fn budget_reopened(product: &ProductId) -> Self {
        Self::budget(EventKind::BudgetResumed, product, "resumed: its limit is no longer reached")
    }

    pub(crate) fn budget_exhausted(product: &ProductId, period: Period, spent: Usd, limit: Usd) -> Self {
        let what = format!("exhausted: {spent} spent, its {} limit is {limit}", period.label());
        Self::budget(EventKind::BudgetExhausted, product, &what)
            .with("period", period.as_str())
            .with("spentUsdMicros", spent.micros())
            .with("ceilingUsdMicros", limit.micros())
    }

    fn budget(kind: EventKind, product: &ProductId, what: &str) -> Self {
        Self::new(kind, format!("budget of {product} {what}")).with("productId", product.as_str())
    }
}

/// Products, profiles, flags, webhooks and what is sent to them.
impl NewEvent {
    pub fn product_changed(id: &ProductId) -> Self {
        Self::new(EventKind::ProductChanged, format!("settings of product {id} changed"))
            .with("productId", id.as_str())
    }

    pub fn profile_added(profile: &Profile) -> Self {
        let Profile { product, name, version, .. } = profile;
        Self::new(EventKind::ProfileAdded, format!("profile {name}@{version} added"))
            .with("productId", product.as_str())
            .with("name", name.as_str())
            .with("version", *version)
    }

    pub fn secret_set(secret: &Secret) -> Self {
        let done = format!("secret {} set, version {}", secret.name, secret.version);
        Self::secret(EventKind::SecretSet, secret, done).with("version", secret.version)
    }

    pub fn secret_removed(secret: &Secret) -> Self {
        Self::secret(EventKind::SecretRemoved, secret, format!("secret {} removed", secret.name))
    }

    pub fn secret_rekeyed(secret: &Secret) -> Self {
        let done = format!("secret {} encrypted with key {}", secret.name, secret.key_id);
        Self::secret(EventKind::SecretRekeyed, secret, done).with("keyId", secret.key_id.as_str())
    }

    fn secret(kind: EventKind, secret: &Secret, done: String) -> Self {
        Self::new(kind, done).with("productId", secret.product.as_str()).with("name", secret.name.as_str())
    }

    /// Null is no value: the default.
    pub fn flag_changed(name: &str, from: Value, to: Value) -> Self {
        let what = if to.is_null() { "reset to its default".to_owned() } else { format!("set to {to}") };
        Self::new(EventKind::FlagChanged, format!("flag {name} {what}"))
            .with("name", name)
            .with("from", from)
            .with("to", to)
    }

    pub fn webhook_added(webhook: &Webhook) -> Self {
        Self::webhook(EventKind::WebhookAdded, webhook, "added")
    }

    pub fn webhook_removed(webhook: &Webhook, given_up: u64) -> Self {
        Self::webhook(EventKind::WebhookRemoved, webhook, "removed").with("givenUp", given_up)
    }

    /// Never with the secret, and only with so much of the address as is none: what follows the host may be one.
    fn webhook(kind: EventKind, webhook: &Webhook, done: &str) -> Self {
        let origin = origin(&webhook.url);
        Self::new(kind, format!("webhook {} to {origin} {done}", webhook.id))
            .with("webhookId", webhook.id.to_string())
            .with("url", origin)
    }

    pub fn effect_given_up(effect: &Effect) -> Self {
        let detail = effect.detail.as_deref().unwrap_or_default();
        let attempts = count(effect.attempts.into(), "attempt");
        let cause = format!("delivery to {} failed after {attempts}: {detail}", effect.target.receiver());
        Self::new(EventKind::EffectGivenUp, cause)
            .with("effectId", effect.id.as_str())
            .with("target", serde_json::to_value(&effect.target).unwrap_or_default())
            .with("detail", detail)
    }

    pub fn effect_revived(effect: &Effect) -> Self {
        let cause = format!("delivery to {} will be retried", effect.target.receiver());
        Self::new(EventKind::EffectRevived, cause).with("effectId", effect.id.as_str())
    }
}

fn because(what: String, reason: Option<&str>) -> String {
    reason.map_or_else(|| what.clone(), |reason| format!("{what}: {reason}"))
}

fn count(number: u64, noun: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{plural}")
}

/// Scheme and host.
fn origin(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return String::new() };
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    format!("{scheme}://{host}")
}
