//! Pull requests: opened and closed through the outbox, and looked at to learn what people made of them.
//!
//! A message of a forge that comes in says only where to look; what is true is asked of the forge itself. So a message that
//! comes twice, late or never changes nothing but when the look is taken, and every job that waits is looked at now and
//! then without one. What is done to a request is decided by the job as it is then, not as it was when it was planned.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use giga_domain::job::{MergeBy, Merging, PullRequest};
use giga_domain::{
    Effect, EffectOutcome, EffectTarget, Event, EventKind, Job, JobId, MergeState, NewEffect, Refusal,
    RequestChange, RequestNews, Stage, Timestamp,
};
use giga_ports::StoreError;
use giga_ports::effects::{
    ForgeRepo, ForgeTrouble, HookError, HookMessage, HookSubject, Proposal, RepoPlace, RequestState, Standing,
};
use giga_ports::store::TakeRequestNews;
use serde_json::json;

use super::Effects;
use crate::{Error, FieldProblem};

/// How many requests are looked at in one round: a look takes several calls, and forges count them.
const LOOKS: usize = 10;
/// How much of a job's text its request shows.
const BODY_CHARS: usize = 20_000;
/// What opens a request is planned again where nothing has come of it for so long.
const PLAN_AGAIN: std::time::Duration = std::time::Duration::from_mins(10);

/// The branches of requests, each of one job; the factories push them.
const BRANCHES: &str = "giga/request/";

/// Jobs whose requests are open, as far as the feed has shown.
#[derive(Default)]
pub(super) struct OpenRequests {
    open: BTreeMap<JobId, Open>,
    /// Something happened to these.
    hinted: BTreeSet<JobId>,
}

struct Open {
    at: ForgeRepo,
    number: Option<u64>,
    looked_at: Timestamp,
}

impl OpenRequests {
    pub(super) fn see(&mut self, job: &Job) {
        let Some(request) = waiting_request(job) else {
            self.open.remove(&job.id);
            return;
        };
        let looked_at = self.open.get(&job.id).map_or(Timestamp::ZERO, |known| known.looked_at);
        let number = request.opened.as_ref().map(|opened| opened.number);
        self.open.insert(job.id, Open { at: forge_repo(request), number, looked_at });
    }

    /// By its branch, which names it, or by its number.
    fn meant_by(&self, forge: &str, subject: &HookSubject) -> Option<JobId> {
        if let Some(branch) = &subject.branch {
            return branch.strip_prefix(BRANCHES)?.parse().ok();
        }
        let is_it = |open: &Open| {
            open.at.forge == forge
                && open.at.repo.eq_ignore_ascii_case(&subject.repo)
                && open.number.is_some()
                && open.number == subject.number
        };
        self.open.iter().find(|(_, open)| is_it(open)).map(|(id, _)| *id)
    }

    /// Those that were looked at least recently.
    fn longest_unseen(&mut self, now: Timestamp) -> Vec<JobId> {
        let mut all: Vec<(Timestamp, JobId)> =
            self.open.iter().map(|(id, open)| (open.looked_at, *id)).collect();
        all.sort_unstable();
        all.truncate(LOOKS);
        for (_, id) in &all {
            if let Some(open) = self.open.get_mut(id) {
                open.looked_at = now;
            }
        }
        all.into_iter().map(|(_, id)| id).collect()
    }
}

fn forge_repo(request: &PullRequest) -> ForgeRepo {
    ForgeRepo { forge: request.forge.clone(), repo: request.repo.clone() }
}

/// The request that the job waits for.
fn waiting_request(job: &Job) -> Option<&PullRequest> {
    let merge = job.merge.as_ref().filter(|merge| matches!(merge.state, MergeState::Proposed { .. }))?;
    merge.request.as_ref().filter(|_| job.stage() == Stage::Shipping)
}

/// The job is over, or waits for somebody, and is not merged: nobody is to merge it by accident.
fn is_given_up(job: &Job) -> bool {
    matches!(job.stage(), Stage::Failed | Stage::DeadLetter | Stage::Cancelled)
}

/// Whether an event may lead to a message to a forge.
pub(super) fn concerns_requests(event: &Event) -> bool {
    event.kind == EventKind::MergeProposed
        || matches!(event.to, Some(Stage::Failed | Stage::DeadLetter | Stage::Cancelled))
}

pub(super) fn to_forge(event: &Event, job: &Job) -> Option<NewEffect> {
    let (_, seq) = event.job.filter(|_| concerns_requests(event))?;
    let request = job.merge.as_ref()?.request.as_ref()?;
    // Whoever closed it knows.
    if event.kind == EventKind::RequestClosed {
        return None;
    }
    Some(request_effect(job, request, seq))
}

fn request_effect(job: &Job, request: &PullRequest, seq: impl std::fmt::Display) -> NewEffect {
    NewEffect {
        id: format!("request:{}:{seq}", job.id)
            .parse()
            .expect("ids and numbers between colons are an effect id"),
        product: Some(job.product.clone()),
        target: EffectTarget::Forge { forge: request.forge.clone(), repo: request.repo.clone() },
        job: Some(job.id),
        payload: json!({ "jobId": job.id, "name": job.spec.name, "branch": request.branch }),
    }
}

impl Effects {
    /// Refuses what nobody here could ever open a request for.
    pub(crate) fn check_merge_by(&self, by: Option<MergeBy>) -> Result<(), FieldProblem> {
        if by != Some(MergeBy::PullRequest) || !self.port.forges().is_empty() {
            return Ok(());
        }
        let message = "pull requests need a forge, and this coordinator has none; give it a token for one \
                       (--github-token-file or --gitlab-token-file), or let the merge queue push: `by: push`";
        Err(FieldProblem::new("merge.by", message))
    }

    /// The forge for a job's repository, where its product may use it.
    pub(crate) fn forge_of(&self, job: &Job, origin: Option<&str>) -> Result<ForgeRepo, String> {
        let repo = job.merging().map(|merging| merging.repo.to_owned()).unwrap_or_default();
        let place = RepoPlace { repo, origin: origin.map(str::to_owned) };
        let at = self.port.forge_of(&place).map_err(|error| error.to_string())?;
        if self.port.allows(&at.forge, &at.repo, &job.product) == Some(false) {
            return Err(format!(
                "product {} may not use {} with the coordinator's token; list it in the setting {}-repos",
                job.product, at.repo, at.forge
            ));
        }
        Ok(at)
    }

    pub(super) fn see_requests(&self, jobs: &[Job]) {
        let mut requests = self.requests.lock();
        let before = requests.open.len();
        for job in jobs {
            requests.see(job);
        }
        if requests.open.len() > before {
            // The next look is due in time for it.
            self.look.notify_one();
        }
    }

    /// Does to the request what the job as it is now wants.
    pub(super) async fn deliver_request(&self, effect: &Effect) -> EffectOutcome {
        let delivered = |detail: String| EffectOutcome::Delivered { detail };
        let EffectTarget::Forge { forge, repo } = &effect.target else {
            return EffectOutcome::Refused { detail: "it is not for a forge".to_owned() };
        };
        let at = ForgeRepo { forge: forge.clone(), repo: repo.clone() };
        let job = match self.job_of(effect).await {
            Ok(job) => job,
            Err(error) => return EffectOutcome::Failed { detail: error.to_string(), after: None },
        };
        match &job {
            Some(job) if waiting_request(job).is_some() => match self.open(job, &at).await {
                Ok(Some(detail)) => delivered(detail),
                // It was given up in the meantime.
                Ok(None) => self.close(effect, &at).await,
                Err(outcome) => outcome,
            },
            Some(job) if !is_given_up(job) => delivered("nothing to do any more".to_owned()),
            _ => self.close(effect, &at).await,
        }
    }

    async fn job_of(&self, effect: &Effect) -> Result<Option<Job>, StoreError> {
        match effect.job {
            Some(id) => self.core.store.read().job(id).await,
            None => Ok(None),
        }
    }

    async fn close(&self, effect: &Effect, at: &ForgeRepo) -> EffectOutcome {
        let Some(branch) = effect.payload["branch"].as_str() else {
            return EffectOutcome::Refused { detail: "its payload names no branch".to_owned() };
        };
        match self.port.close_request(at, branch).await {
            Ok(detail) => EffectOutcome::Delivered { detail },
            Err(trouble) => trouble.into(),
        }
    }

    /// Opens the request, or shows the newest result in it, and notes on the job what it is called. `None` where the job no
    /// longer wants it.
    async fn open(&self, job: &Job, at: &ForgeRepo) -> Result<Option<String>, EffectOutcome> {
        let failed = |error: Error| EffectOutcome::Failed { detail: error.to_string(), after: None };
        let Some(proposal) = self.proposal(job).await.map_err(failed)? else { return Ok(None) };
        let opened = self.port.open_request(at, &proposal).await.map_err(EffectOutcome::from)?;
        let url = opened.url.clone();
        let change = RequestChange::Opened { number: opened.number, url: opened.url };
        if self.tell_job(job.id, &proposal.commit, change).await.map_err(failed)?.is_some() {
            return Ok(Some(url));
        }
        let now = self.core.store.read().job(job.id).await.map_err(|error| failed(error.into()))?;
        let is_wanted = now.is_some_and(|job| !is_given_up(&job));
        Ok(is_wanted.then_some(url))
    }

    async fn proposal(&self, job: &Job) -> Result<Option<Proposal>, Error> {
        let waiting = job.merge.as_ref().map(|merge| &merge.state);
        let (Some(MergeState::Proposed { commit, into }), Some(request)) = (waiting, waiting_request(job))
        else {
            return Ok(None);
        };
        let text = self.core.store.read().job_text(job.id).await?;
        let body: String = text.map(|text| text.body).unwrap_or_default().chars().take(BODY_CHARS).collect();
        let body = body.trim_end();
        let gap = if body.is_empty() { "" } else { "\n\n" };
        Ok(Some(Proposal {
            branch: request.branch.clone(),
            into: into.clone(),
            commit: commit.clone(),
            title: job.spec.name.clone(),
            body: format!("{body}{gap}Gigafactory-Job: {}\n", job.id),
        }))
    }

    /// A message that was given up: a job that waits for its request to be opened waits for nothing.
    pub(super) async fn request_given_up(&self, effect: &Effect, detail: &str) {
        let Ok(Some(job)) = self.job_of(effect).await else { return };
        let never_opened = waiting_request(&job).is_some_and(|request| request.opened.is_none());
        let Some(Merging { commit, .. }) = job.merging().filter(|_| never_opened) else { return };
        let detail = format!("the pull request cannot be opened: {detail}");
        if let Err(error) = self.tell_job(job.id, commit, RequestChange::NotOpened { detail }).await {
            tracing::warn!(job = %job.id, %error, "a pull request that cannot be opened could not be noted");
        }
    }

    /// `None` where it is not about what the job waits for.
    async fn tell_job(&self, job: JobId, about: &str, change: RequestChange) -> Result<Option<Job>, Error> {
        let news = RequestNews { about: about.to_owned(), change };
        match self.core.store.request_news(TakeRequestNews { job, news }).await {
            Ok(job) => Ok(Some(job)),
            Err(StoreError::Refused(Refusal::NotClaimable(_)) | StoreError::NoSuchJob(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Takes a message of a forge for a reason to look, where it is signed. What it says is not believed.
    pub fn receive_hook(&self, forge: &str, message: &HookMessage<'_>) -> Result<(), HookError> {
        let Some(subject) = self.port.read_hook(forge, message)? else { return Ok(()) };
        let mut requests = self.requests.lock();
        if let Some(job) = requests.meant_by(forge, &subject) {
            requests.hinted.insert(job);
            self.look.notify_one();
        }
        Ok(())
    }

    pub(super) async fn keep_looking(self: Arc<Self>) {
        // The first round comes at once: what was said while nobody looked is not lost.
        let mut last_round = Timestamp::ZERO;
        loop {
            let every = self.core.options.requests_every;
            let is_idle = self.requests.lock().open.is_empty() || self.lead.leading().is_none();
            let pause = every.saturating_sub(self.core.clock.now().since(last_round));
            tokio::select! {
                () = self.core.stop.cancelled() => return,
                () = self.look.notified() => {}
                () = tokio::time::sleep(if is_idle { every } else { pause }) => {}
            }
            let hinted = std::mem::take(&mut self.requests.lock().hinted);
            self.look_at_all(hinted).await;
            if self.core.clock.now().since(last_round) >= every && self.lead.leading().is_some() {
                last_round = self.core.clock.now();
                self.look_round_once().await;
            }
        }
    }

    /// Looks at those that were not looked at for longest, for what nobody said.
    pub async fn look_round_once(&self) {
        let now = self.core.store_now();
        let unseen = self.requests.lock().longest_unseen(now);
        self.look_at_all(unseen).await;
    }

    async fn look_at_all(&self, jobs: impl IntoIterator<Item = JobId>) {
        for job in jobs {
            if self.core.stop.is_cancelled() {
                return;
            }
            if let Err(error) = self.look_at(job).await {
                tracing::warn!(%job, %error, "its pull request could not be looked at");
            }
        }
    }

    async fn look_at(&self, id: JobId) -> Result<(), Error> {
        let Some(job) = self.core.store.read().job(id).await? else { return Ok(()) };
        let waits = waiting_request(&job).is_some();
        let request = job.merge.as_ref().and_then(|merge| merge.request.as_ref());
        let (Some(request), Some(Merging { commit, .. })) = (request, job.merging()) else { return Ok(()) };
        // What was closed may be opened and merged by somebody all the same.
        if !waits && job.stage() != Stage::Failed {
            return Ok(());
        }
        let looked = self.port.look_at_request(&forge_repo(request), &request.branch, commit).await;
        match looked {
            Ok(Some(state)) => self.take_state(id, commit, state).await,
            Ok(None) if waits => self.plan_again(&job, request).await,
            Ok(None) => Ok(()),
            Err(ForgeTrouble::Refused(detail) | ForgeTrouble::Later { detail, .. }) => {
                tracing::warn!(job = %id, detail, "its pull request could not be looked at");
                Ok(())
            }
        }
    }

    /// Whatever became of what was planned, nothing came of it.
    async fn plan_again(&self, job: &Job, request: &PullRequest) -> Result<(), Error> {
        if self.core.store_now().since(job.updated_at) >= PLAN_AGAIN {
            self.put_into_outbox(request_effect(job, request, job.last_event)).await?;
        }
        Ok(())
    }

    async fn take_state(&self, id: JobId, commit: &str, state: RequestState) -> Result<(), Error> {
        if !state.shows_commit {
            return Ok(());
        }
        for change in changes(state) {
            if self.tell_job(id, commit, change).await?.is_none_or(|job| waiting_request(&job).is_none()) {
                break;
            }
        }
        Ok(())
    }
}

fn changes(state: RequestState) -> Vec<RequestChange> {
    let RequestState { opened, into, standing, said, checks, .. } = state;
    let said = said.into_iter().map(|said| RequestChange::Said {
        id: said.id,
        by: said.by,
        verdict: said.verdict,
        words: said.words,
    });
    match standing {
        Standing::Merged { commit } => vec![RequestChange::Merged { commit, into }],
        Standing::Closed { by } => said.chain([RequestChange::Closed { by }]).collect(),
        Standing::Open => {
            let opened = RequestChange::Opened { number: opened.number, url: opened.url };
            let checks = checks.map(|checks| RequestChange::Checks {
                id: checks.id,
                passed: checks.passed,
                detail: checks.detail,
            });
            std::iter::once(opened).chain(said).chain(checks).collect()
        }
    }
}
