//! Merges results, only on the coordinator's order, which names job, epoch and commit.
//!
//! Made and checked here, announced there, and only then pushed: whoever takes over knows what may be on its way.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use giga_api::client::ClientError;
use giga_api::wire::{
    self, BesideRepo, ClaimMergesRequest, HeldMerge, MergeOrder as Order, PushMerge, PushMergesRequest,
    RenewMergesRequest, SettleMergeRequest,
};
use giga_domain::repo::folder_name;
use giga_domain::{Delivery, Epoch, limits};
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::backoff::jittered;
use super::checks::Tail;
use super::{Shared, intake, plan};
use crate::engines::{Engine, EngineEvent, EngineOutcome, EngineRequest, Inbox, RUN_MARKER};
use crate::workspace::{
    Ahead, Author, Beside, Candidate, CandidateTree, MergeOrder, Prepared, Proposed, Pushed, Stacked,
    WorkspaceError,
};

/// While a stream delivers hints, how often to look without one: a hint may be lost, or the factory that took an order
/// may have died.
const LOOK_EVERY: Duration = Duration::from_mins(2);

/// How often a lease is renewed within its length.
const RENEWALS: u32 = 4;
/// The end of a check's output is what says why.
const MOST_DETAIL: usize = 2_000;

/// Beside the jobs and without a seat: what has shipped must not wait for what is being built.
pub(super) async fn run(shared: Arc<Shared>, stop: CancellationToken) {
    let mut actual = shared.delivery.actual.subscribe();
    let mut known = None;
    loop {
        let streaming = *actual.borrow_and_update() == Delivery::Stream;
        // Waited for before the orders are looked at: what changes after it ends the next wait.
        let waited = tokio::select! {
            biased;
            () = stop.cancelled() => return,
            // The delivery mode changed: a hint in between may have been lost.
            _ = actual.changed() => Ok(None),
            () = shared.merge_hint.notified() => Ok(known),
            () = jittered(LOOK_EVERY), if streaming => Ok(known),
            version = intake::wait_for_version(&shared, known, &stop), if !streaming => version,
        };
        // Never cut short: an order that was taken is carried out.
        let looked = match waited {
            Ok(version) => take(&shared).await.map(|()| version),
            Err(error) => Err(error),
        };
        match looked {
            Ok(version) => known = version,
            Err(error) => {
                tracing::debug!(%error, "cannot claim merge orders; retrying");
                tokio::select! {
                    () = stop.cancelled() => return,
                    () = tokio::time::sleep(intake::RETRY_DELAY) => {}
                }
                if streaming {
                    shared.merge_hint.notify_one();
                }
            }
        }
    }
}

/// Takes one batch after the other until there is none.
pub(super) async fn take(shared: &Shared) -> Result<(), ClientError> {
    loop {
        let request = ClaimMergesRequest { factory_id: shared.id.to_string() };
        let Some(taken) = shared.client.claim_merges(&request).await? else { return Ok(()) };
        let held = Held::of(&taken.orders);
        let over = CancellationToken::new();
        let carried_out = async {
            let done = Batches { shared, held: &held, over: &over }.carry_out(taken.orders.clone()).await;
            over.cancel();
            done
        };
        let (done, ()) =
            tokio::join!(carried_out, keep(shared, &held, Duration::from_millis(taken.lease_ms), &over));
        done?;
    }
}

/// The merges that are this factory's and not settled yet.
struct Held(Mutex<BTreeMap<String, u32>>);

impl Held {
    fn of(orders: &[Order]) -> Self {
        Self(Mutex::new(orders.iter().map(|order| (order.job_id.clone(), order.attempt)).collect()))
    }

    fn forget(&self, job: &str) {
        self.0.lock().remove(job);
    }

    fn all(&self) -> Vec<HeldMerge> {
        let held = self.0.lock();
        held.iter().map(|(job, attempt)| HeldMerge { job_id: job.clone(), attempt: *attempt }).collect()
    }
}

/// Renews the hold on the merges until they are over, or somebody else has one of them.
async fn keep(shared: &Shared, held: &Held, lease: Duration, over: &CancellationToken) {
    loop {
        tokio::select! {
            () = over.cancelled() => return,
            () = tokio::time::sleep(lease / RENEWALS) => {}
        }
        let merges = held.all();
        if merges.is_empty() {
            continue;
        }
        let asked = merges.len();
        let request = RenewMergesRequest { factory_id: shared.id.to_string(), merges };
        match shared.client.renew_merges(&request).await {
            Ok(still) if still.merges.len() < asked && held.all().len() >= asked => return over.cancel(),
            Err(error) if !error.is_passing() => return over.cancel(),
            // Another one follows in time.
            Ok(_) | Err(_) => {}
        }
    }
}

/// What one try with a batch came to.
enum Tried {
    /// One for each order.
    Settled(Vec<Outcome>),
    /// It does not work together: those before this one, and then the others.
    Split(usize),
    /// It is no longer this factory's, in part at least.
    Lost,
}

#[derive(Clone)]
enum Outcome {
    Merged { commit: String, into: String },
    Proposed { commit: String, into: String, branch: String, origin: Option<String> },
    Outrun,
    Not(wire::MergeOutcome, String),
}

impl Outcome {
    fn of(error: &WorkspaceError) -> Self {
        let word = match error {
            WorkspaceError::PushRefused { .. }
            | WorkspaceError::Refused { .. }
            | WorkspaceError::UnknownRepo(_) => wire::MergeOutcome::Refused,
            _ => wire::MergeOutcome::Unreachable,
        };
        Self::Not(word, error.to_string())
    }
}

struct Batches<'a> {
    shared: &'a Shared,
    held: &'a Held,
    /// Cancelled when somebody else has one of the merges.
    over: &'a CancellationToken,
}

impl Batches<'_> {
    /// All of them at once; what does not work together in halves, until the culprit is alone.
    async fn carry_out(&self, orders: Vec<Order>) -> Result<(), ClientError> {
        let mut left = vec![orders];
        while let Some(batch) = left.pop() {
            match self.try_together(&batch).await {
                Tried::Settled(outcomes) => {
                    let mut merged = Vec::new();
                    for (order, outcome) in batch.iter().zip(outcomes) {
                        if self.settle(order, outcome).await? {
                            merged.push(order);
                        }
                    }
                    self.clean_up(&merged).await;
                }
                Tried::Split(at) => {
                    let (before, after) = batch.split_at(at.clamp(1, batch.len() - 1));
                    left.extend([after.to_vec(), before.to_vec()]);
                }
                Tried::Lost => {
                    // The others go back to their queue, where whoever comes next finds them.
                    for order in left.iter().rev().flatten().chain(&batch) {
                        tracing::warn!(job = order.job_id, "the merge was taken over by another factory");
                        self.settle(order, Outcome::Outrun).await?;
                    }
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    async fn try_together(&self, batch: &[Order]) -> Tried {
        let mut orders = Vec::with_capacity(batch.len());
        for order in batch {
            match read(self.shared, order).await {
                Ok(read) => orders.push(read),
                Err(error) => return apart(batch, Outcome::of(&error)),
            }
        }
        // Announced by whoever had it before: that commit, and nothing else.
        if let Some(announced) = batch.first().and_then(|order| order.candidate.as_ref()) {
            return self.finish(batch, &orders, announced).await;
        }
        if let [order] = orders.as_slice()
            && batch[0].by == wire::MergeBy::PullRequest
        {
            return Tried::Settled(vec![self.propose(order).await]);
        }
        // What cannot be merged everywhere is begun nowhere.
        let beside = match self.beside(&batch[0], &orders[0]).await {
            Ok(beside) => beside,
            Err(outcome) => return apart(batch, outcome),
        };
        let prepared = match self.shared.workspace.prepare_merges(&orders).await {
            Ok(prepared) if prepared.stacked.len() < batch.len() => {
                self.forget(&orders, prepared.candidate().as_ref()).await;
                return Tried::Split(prepared.stacked.len());
            }
            Ok(prepared) => prepared,
            Err(error) => return apart(batch, Outcome::of(&error)),
        };
        let Some(candidate) = prepared.candidate() else {
            return Tried::Settled(prepared.stacked.iter().map(|one| without_push(one, &prepared)).collect());
        };
        match self.check(batch, &orders, &candidate, &beside).await {
            Checked::Passed => {}
            Checked::Failed(_) if batch.len() > 1 => {
                self.forget(&orders, Some(&candidate)).await;
                return Tried::Split(batch.len() / 2);
            }
            Checked::Failed(outcome) => {
                self.forget(&orders, Some(&candidate)).await;
                return Tried::Settled(vec![outcome]);
            }
            Checked::Lost => return Tried::Lost,
        }
        match self.announce(batch, &prepared, &candidate).await {
            Ok(()) => {}
            Err(error) if error.is_passing() => {
                let outcome = Outcome::Not(wire::MergeOutcome::Unreachable, error.to_string());
                return Tried::Settled(vec![outcome; batch.len()]);
            }
            Err(_) => return Tried::Lost,
        }
        let pushed = self.push(&orders, &candidate).await;
        let outcome = |one: &Stacked| match (one, &pushed) {
            (Stacked::On(commit), Outcome::Merged { into, .. }) => {
                Outcome::Merged { commit: commit.to_string(), into: into.clone() }
            }
            (Stacked::On(_), other) => other.clone(),
            _ => without_push(one, &prepared),
        };
        Tried::Settled(prepared.stacked.iter().map(outcome).collect())
    }

    /// The other repositories of a job that has several, as they will be when it is in: what is merged into them after
    /// this one is in them here.
    async fn beside(&self, order: &Order, first: &MergeOrder) -> Result<Vec<Beside>, Outcome> {
        let workspace = &self.shared.workspace;
        let mut beside = Vec::with_capacity(order.beside.len());
        for BesideRepo { repo, commit, base } in &order.beside {
            let looked = async {
                let source = workspace.resolve(repo).await?;
                let commit_or_own = commit.as_deref().unwrap_or(first.commit.as_str()).parse()?;
                let base = base.as_deref().map(str::parse).transpose()?;
                let own = MergeOrder { repo: source.clone(), commit: commit_or_own, base, ..first.clone() };
                Ok((source, workspace.look_ahead(&own, commit.is_some()).await?))
            };
            match looked.await.map_err(|error| Outcome::of(&error))? {
                (source, Ahead::At(commit)) => {
                    let folder = folder_name(repo).to_owned();
                    beside.push(Beside { folder, repo: source, commit });
                }
                (_, Ahead::Conflict(conflict)) => return Err(conflict_in(Some(repo), &conflict)),
            }
        }
        Ok(beside)
    }

    async fn propose(&self, order: &MergeOrder) -> Outcome {
        match self.shared.workspace.propose(order).await {
            Ok(Proposed::On { branch, into }) => Outcome::Proposed {
                commit: order.commit.to_string(),
                into,
                branch,
                origin: order.repo.url.host_and_path().map(|(host, path)| format!("{host}/{path}")),
            },
            Ok(Proposed::AlreadyIn { commit, into }) => Outcome::Merged { commit: commit.to_string(), into },
            Err(error) => Outcome::of(&error),
        }
    }

    /// What somebody else has announced: all of it was, so all of it is settled by one push.
    async fn finish(
        &self,
        batch: &[Order],
        orders: &[MergeOrder],
        announced: &wire::MergeCandidate,
    ) -> Tried {
        let candidate = match candidate(announced) {
            Ok(candidate) => candidate,
            Err(error) => return apart(batch, Outcome::of(&error)),
        };
        let pushed = self.push(orders, &candidate).await;
        let outcome = |order: &Order| match (&pushed, &order.candidate) {
            (Outcome::Merged { into, .. }, Some(own)) => {
                Outcome::Merged { commit: own.commit.clone(), into: into.clone() }
            }
            (other, _) => other.clone(),
        };
        Tried::Settled(batch.iter().map(outcome).collect())
    }

    async fn announce(
        &self,
        batch: &[Order],
        prepared: &Prepared,
        candidate: &Candidate,
    ) -> Result<(), ClientError> {
        let head = candidate.commit.to_string();
        let made = batch.iter().zip(&prepared.stacked).filter_map(|(order, stacked)| match stacked {
            Stacked::On(commit) => Some((order, commit.to_string())),
            _ => None,
        });
        let merges = made.map(|(order, commit)| PushMerge {
            job_id: order.job_id.clone(),
            attempt: order.attempt,
            candidate: wire::MergeCandidate {
                head: (commit != head).then(|| head.clone()),
                commit,
                tip: candidate.tip.as_ref().map(ToString::to_string),
                into: candidate.into.clone(),
            },
        });
        let request = PushMergesRequest { factory_id: self.shared.id.to_string(), merges: merges.collect() };
        self.shared.client.push_merges(&request).await
    }

    async fn push(&self, orders: &[MergeOrder], candidate: &Candidate) -> Outcome {
        match self.shared.workspace.push_candidate(&orders[0], candidate).await {
            // Its branch goes with those of its jobs, when the coordinator knows that they are in.
            Ok(Pushed::Merged { into }) => Outcome::Merged { commit: candidate.commit.to_string(), into },
            Ok(Pushed::Outrun) => {
                self.forget(orders, Some(candidate)).await;
                Outcome::Outrun
            }
            Err(error) => Outcome::of(&error),
        }
    }

    async fn forget(&self, orders: &[MergeOrder], candidate: Option<&Candidate>) {
        let Some(candidate) = candidate else { return };
        if let Err(error) = self.shared.workspace.forget_candidate(&orders[0], candidate).await {
            // The next clean-up finds it.
            tracing::debug!(job = %orders[0].job, %error, "the candidate's branch stays for now");
        }
    }

    /// What is in leaves nothing on the origin.
    async fn clean_up(&self, merged: &[&Order]) {
        let cleaned = async {
            let mut orders = Vec::with_capacity(merged.len());
            for order in merged {
                orders.push(read(self.shared, order).await?);
            }
            self.shared.workspace.forget_merged(&orders).await
        };
        if let Err(error) = cleaned.await {
            // The next sweep finds it.
            tracing::debug!(%error, "branches of merged jobs stay for now");
        }
    }

    /// Whether it is merged, and the coordinator knows it.
    async fn settle(&self, order: &Order, outcome: Outcome) -> Result<bool, ClientError> {
        let mut settled = SettleMergeRequest {
            factory_id: self.shared.id.to_string(),
            attempt: order.attempt,
            outcome: wire::MergeOutcome::Outrun,
            commit: None,
            into: None,
            note: None,
            branch: None,
            origin: None,
            detail: None,
        };
        match outcome {
            Outcome::Merged { commit, into } => {
                settled.outcome = wire::MergeOutcome::Merged;
                settled.note = self.note(order, &commit, &into).await;
                (settled.commit, settled.into) = (Some(commit), Some(into));
            }
            Outcome::Proposed { commit, into, branch, origin } => {
                settled.outcome = wire::MergeOutcome::Proposed;
                (settled.commit, settled.into) = (Some(commit), Some(into));
                (settled.branch, settled.origin) = (Some(branch), origin);
            }
            Outcome::Outrun => {}
            Outcome::Not(word, detail) => {
                settled.outcome = word;
                settled.detail = Some(last(&detail, MOST_DETAIL));
            }
        }
        let SettleMergeRequest { outcome: word, commit, into, note, detail, .. } = &settled;
        if let Some(commit) = commit {
            let said = note.as_deref().unwrap_or(word.as_str());
            tracing::info!(job = order.job_id, commit, into, "{said}");
        } else {
            tracing::warn!(job = order.job_id, outcome = %word, detail, "not merged");
        }
        self.held.forget(&order.job_id);
        match self.shared.client.settle_merge(&order.job_id, &settled).await {
            // It took so long that somebody else was sent; they will find it as it is.
            Err(error) if !error.is_passing() => {
                tracing::warn!(job = order.job_id, %error, "the merge report was refused");
                Ok(false)
            }
            answered => answered.map(|_| settled.commit.is_some()),
        }
    }

    /// What the owner of a checkout should know.
    async fn note(&self, order: &Order, commit: &str, into: &str) -> Option<String> {
        let repo = self.shared.workspace.resolve(&order.repo).await.ok()?;
        let note = self.shared.workspace.merge_note(&repo, &commit.parse().ok()?, into).await?;
        Some(note.chars().filter(|c| !c.is_control()).take(limits::NOTE_CHARS).collect())
    }

    /// Every job's own checks and its product's, each once, on the merged tree.
    async fn check(
        &self,
        batch: &[Order],
        orders: &[MergeOrder],
        candidate: &Candidate,
        beside: &[Beside],
    ) -> Checked {
        let mut commands: Vec<&String> = Vec::new();
        for command in batch.iter().flat_map(|order| &order.verify) {
            if !commands.contains(&command) {
                commands.push(command);
            }
        }
        if commands.is_empty() {
            return Checked::Passed;
        }
        let Some(shell) = self.shared.engines.iter().find(|engine| engine.name() == plan::SHELL) else {
            let detail = "the merged tree has to be checked, and this factory runs no commands";
            // Another factory may.
            return Checked::Failed(Outcome::Not(wire::MergeOutcome::Unreachable, detail.to_owned()));
        };
        let folder = Some(folder_name(&batch[0].repo)).filter(|_| !beside.is_empty());
        let tree = match self.shared.workspace.candidate_tree(&orders[0], candidate, folder, beside).await {
            Ok(tree) => tree,
            Err(error) => return Checked::Failed(Outcome::of(&error)),
        };
        for command in commands {
            match self.run(shell.as_ref(), &batch[0], &tree, command).await {
                Checked::Passed => {}
                other => return other,
            }
        }
        Checked::Passed
    }

    async fn run(&self, shell: &dyn Engine, order: &Order, tree: &CandidateTree, command: &str) -> Checked {
        let mut request = EngineRequest::new(tree.path(), String::new());
        request.shown = tree.objects().to_vec();
        request.script = Some(command.to_owned());
        request.watchdog = self.shared.watchdog;
        request.env = vec![(RUN_MARKER.to_owned(), format!("merge-{}", order.job_id))];
        request.redact.clone_from(&self.shared.secrets);
        let (sender, mut events) = tokio::sync::mpsc::channel(256);
        let mut tail = Tail::default();
        let listen = async {
            while let Some(event) = events.recv().await {
                if let EngineEvent::Output { line, .. } = event {
                    tail.line(&line);
                }
            }
        };
        let (report, ()) =
            tokio::join!(shell.run(request, sender, Inbox::closed(), self.over.clone()), listen);
        match report.outcome {
            EngineOutcome::Succeeded => Checked::Passed,
            EngineOutcome::Stopped => Checked::Lost,
            EngineOutcome::Failed(failure) => {
                let detail = format!("`{command}`: {}\n{}", failure.detail, tail.take());
                Checked::Failed(Outcome::Not(wire::MergeOutcome::ChecksFailed, detail))
            }
        }
    }
}

enum Checked {
    Passed,
    Failed(Outcome),
    Lost,
}

/// Trouble with one of them must not be the others': each is tried alone. Nobody gets through to an origin that is away.
fn apart(batch: &[Order], outcome: Outcome) -> Tried {
    match outcome {
        Outcome::Not(wire::MergeOutcome::Unreachable, _) => Tried::Settled(vec![outcome; batch.len()]),
        _ if batch.len() > 1 => Tried::Split(1),
        _ => Tried::Settled(vec![outcome]),
    }
}

fn without_push(stacked: &Stacked, prepared: &Prepared) -> Outcome {
    match stacked {
        Stacked::On(commit) => Outcome::Merged { commit: commit.to_string(), into: prepared.into.clone() },
        Stacked::AlreadyIn(commit) => {
            Outcome::Merged { commit: commit.to_string(), into: prepared.from.clone() }
        }
        conflict @ Stacked::Conflict { .. } => conflict_in(None, conflict),
    }
}

/// In another repository than the one that is being merged, where that is named.
fn conflict_in(repo: Option<&str>, stacked: &Stacked) -> Outcome {
    let Stacked::Conflict { files, detail } = stacked else { return Outcome::Outrun };
    let place = repo.map(|repo| format!("{repo}, which is next, ")).unwrap_or_default();
    let detail = match files.as_slice() {
        [] => format!("{place}{detail}"),
        files => format!("{place}conflicts in {}: {detail}", files.join(", ")),
    };
    Outcome::Not(wire::MergeOutcome::Conflict, detail)
}

/// The order as the workspace takes it, every word of it checked.
async fn read(shared: &Shared, order: &Order) -> Result<MergeOrder, WorkspaceError> {
    let malformed = |what: &'static str, given: &str| WorkspaceError::Refused {
        what,
        given: given.to_owned(),
        rule: "the order is malformed".to_owned(),
    };
    let author = order.author.as_deref();
    let author =
        author.map(|text| Author::parse(text).ok_or_else(|| malformed("author", text))).transpose()?;
    Ok(MergeOrder {
        job: order.job_id.parse().map_err(|_| malformed("job", &order.job_id))?,
        epoch: Epoch(order.lease_epoch),
        repo: shared.workspace.resolve(&order.repo).await?,
        branch: order.branch.clone(),
        commit: order.commit.parse()?,
        base: order.base.as_deref().map(str::parse).transpose()?,
        into: order.target.clone(),
        strategy: order.strategy.into(),
        message: order.message.clone(),
        author,
        reviewers: order.reviewers.clone(),
    })
}

/// What is pushed: for one of a batch, the batch.
fn candidate(announced: &wire::MergeCandidate) -> Result<Candidate, WorkspaceError> {
    Ok(Candidate {
        commit: announced.head.as_ref().unwrap_or(&announced.commit).parse()?,
        tip: announced.tip.as_deref().map(str::parse).transpose()?,
        into: announced.into.clone(),
    })
}

fn last(text: &str, most: usize) -> String {
    let skip = text.chars().count().saturating_sub(most);
    text.chars().skip(skip).collect()
}

/// Unique on this machine and beyond: a repeated request is the same one only when it is sent again as it is.
pub(super) fn request_id() -> String {
    let mut bytes = [0u8; 16];
    if getrandom::fill(&mut bytes).is_err() {
        // Without randomness, the time in nanoseconds and the process tell requests apart.
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        bytes = (now.as_nanos() ^ (u128::from(std::process::id()) << 96)).to_be_bytes();
    }
    format!("r{}", const_hex::encode(bytes))
}
