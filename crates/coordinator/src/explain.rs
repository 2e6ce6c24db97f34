//! Why a job is where it is, and what would move it.
//!
//! Queued jobs are the scheduler's to explain, on the same view of the job that plans are made on, so that the explanation
//! and what is planned never differ. All other stages are explained here. Nothing is decided or written.

use giga_domain::job::{DepsMode, Merging};
use giga_domain::manifest::Manifest;
use giga_domain::transition::Tally;
use giga_domain::{
    FactoryId, FailReason, Failure, Job, JobId, JobKind, MergeState, Priority, ProductId, Question, Stage,
    Timestamp, Usd, limits,
};
use giga_ports::StoreError;
use giga_ports::store::JobFilter;
use giga_scheduler::{
    Blocker, BlockerCode, Explanation, FactoryVerdict, Fix, JobView, Policy, Remedy, Snapshot, Unroutable,
    explain, preemption_victim, routable,
};

use crate::alerts::{first_line, jobs};
use crate::pools::Awaited;
use crate::view::{Running, ViewState, Whom, job_view, parents_of};
use crate::{Coordinator, Error, ForeignRepo, Sight};

/// Of many children, so many are named.
const MOST_NAMED: usize = 20;

/// What a submit would do, without doing it.
#[derive(Debug)]
pub struct DryRun {
    pub explanation: Explanation,
    pub routable: Result<(), Unroutable>,
    /// Nobody could run it, and `strict` takes no such jobs.
    pub refused: bool,
    /// It is for a repository that another product owns, and would go there all the same.
    pub foreign_repo: Option<ForeignRepo>,
    /// Where its result would be merged, in the words of the factory that would get it.
    pub merges_into: Option<(FactoryId, String)>,
    /// The job's own cap, for each attempt that its retry policy allows.
    pub worst_case: Option<Usd>,
    /// How often it is tried at most, and what is retried because its manifest asks for it. None of a composite.
    pub retries: Option<(u32, Vec<FailReason>)>,
}

/// What is missing is on its way, or somebody can let it come: what stands in the way on the factories that there are
/// does not matter then.
fn waiting_for(awaited: Awaited, explanation: Explanation) -> Explanation {
    let Awaited { pool, sentence, fix, .. } = awaited;
    let blocker = Blocker::new(BlockerCode::Pool, sentence.clone());
    let remedy = match fix {
        Some(command) => Remedy::command("let the pool start one", command),
        None => Remedy::command("see what its pool is doing", format!("giga pool show {pool}")),
    };
    let factories = explanation.factories;
    Explanation { summary: sentence, blockers: vec![blocker], remedies: vec![remedy], factories }
}

/// An explanation without factories, which only queued jobs have.
fn standing(summary: impl Into<String>, blockers: Vec<Blocker>, remedies: Vec<Remedy>) -> Explanation {
    Explanation { summary: summary.into(), blockers, remedies, factories: Vec::new() }
}

impl Coordinator {
    /// Where the job would run and why, or why it would wait.
    pub async fn dry_run(&self, product: ProductId, manifest: &Manifest) -> Result<DryRun, Error> {
        self.dry_run_for(&Sight::Everything, product, manifest).await
    }

    /// The same from what a caller may see.
    pub async fn dry_run_for(
        &self,
        sight: &Sight,
        product: ProductId,
        manifest: &Manifest,
    ) -> Result<DryRun, Error> {
        let foreign_repo = self.foreign_repo(&product, manifest.repos())?;
        let new = self.new_job(product, manifest, String::new()).await?;
        self.fleet.refresh().await?;
        let now = self.core.store_now();
        if new.spec.kind == JobKind::Composite {
            return Ok(DryRun {
                routable: Ok(()),
                refused: false,
                explanation: composite_plan(),
                foreign_repo,
                merges_into: None,
                worst_case: None,
                retries: None,
            });
        }
        let view = crate::jobs::preview(&new, now);
        let routable = {
            let state = self.fleet.view.lock();
            let mut snapshot = self.fleet.snapshot(&state, now, Whom::Everyone);
            sight.cut(&mut snapshot, &state.tenants, Some(&view));
            if crate::pools::could_run(&state, &view, now) { Ok(()) } else { routable(&view, &snapshot) }
        };
        let explanation = self.explain_queued(&view, now, sight);
        let attempts = new.spec.retry.attempts();
        Ok(DryRun {
            refused: routable.is_err() && self.fleet.flag("strict") == true,
            routable,
            merges_into: self.merges_into(&view, &explanation),
            explanation,
            foreign_repo,
            worst_case: new.spec.budget.usd.map(|cap| i64::from(attempts) * cap),
            retries: Some((attempts, new.spec.retry_on.clone())),
        })
    }

    /// As the best factory says, else one that could run it later.
    fn merges_into(&self, job: &JobView, explanation: &Explanation) -> Option<(FactoryId, String)> {
        let state = self.fleet.view.lock();
        let said = |verdict: &FactoryVerdict| {
            let advertised = &state.factories.get(&verdict.factory_id)?.advertised;
            let of_repo = |repo: &String| advertised.repo(repo)?.merges_into.clone();
            let into = match job.more_repos.as_slice() {
                [] => of_repo(job.repo.as_ref()?)?,
                more => {
                    let repos = job.repo.iter().chain(more);
                    let said = repos.filter_map(|repo| Some(format!("{repo}: {}", of_repo(repo)?)));
                    said.collect::<Vec<_>>().join("; ")
                }
            };
            Some((verdict.factory_id.clone(), into))
        };
        let mut verdicts: Vec<&FactoryVerdict> = explanation.factories.iter().collect();
        let score = |verdict: &FactoryVerdict| verdict.score.unwrap_or(f64::NEG_INFINITY);
        verdicts.sort_by(|a, b| b.feasible.cmp(&a.feasible).then(score(b).total_cmp(&score(a))));
        verdicts.into_iter().find_map(said)
    }

    /// Why the job is where it is, and what would move it.
    pub async fn explain(&self, id: JobId) -> Result<(Job, Explanation), Error> {
        self.explain_for(&Sight::Everything, id).await
    }

    /// The same from what a caller may see.
    pub async fn explain_for(&self, sight: &Sight, id: JobId) -> Result<(Job, Explanation), Error> {
        self.fleet.refresh().await?;
        self.fleet.refresh_stale_heartbeats().await?;
        let job = self.core.store.read().job(id).await?.ok_or(StoreError::NoSuchJob(id))?;
        let explanation = match (job.stage(), job.spec.kind) {
            (Stage::Queued, _) if job.needs_input() => {
                self.explain_asking(&job, "", "waiting for an answer to")
            }
            (Stage::Queued, _) => {
                self.explain_queued(&self.planned_view(&job).await?, self.core.store_now(), sight)
            }
            (Stage::Blocked | Stage::Failed, JobKind::Composite) => {
                self.explain_composite(&job, sight).await?
            }
            (Stage::Blocked, JobKind::Agent) => self.explain_blocked(&job, sight).await?,
            (Stage::Assigned | Stage::Building, _) if job.needs_input() => {
                let holder = job.lease().map(|lease| format!("running on {}; ", lease.factory));
                self.explain_asking(&job, &holder.unwrap_or_default(), "asks")
            }
            _ => explain_unqueued(&job, |other| self.is_seen(sight, other)),
        };
        Ok((job, explanation))
    }

    /// What people have to answer before it goes on.
    fn explain_asking(&self, job: &Job, running: &str, verb: &str) -> Explanation {
        let now = self.core.store_now();
        let sentence = |question: &Question| {
            let Question { text, default, asked_at, deadline, .. } = question;
            let minutes = now.since(*asked_at).as_secs() / 60;
            let ago = if minutes == 0 { "just now".to_owned() } else { format!("{minutes} min ago") };
            let then = match default {
                Some(default) => format!("default `{}` at {deadline}", first_line(default)),
                None => format!("it fails at {deadline} without an answer"),
            };
            format!("{}, asked {ago}, {then}", first_line(text))
        };
        let open: Vec<&Question> = job.open_questions().collect();
        let summary =
            format!("{running}{verb}: {}", open.first().map(|first| sentence(first)).unwrap_or_default());
        let blockers = open.iter().map(|question| Blocker::new(BlockerCode::Question, sentence(question)));
        let remedies = open.iter().map(|question| {
            let answer = match question.options.as_slice() {
                [] => "TEXT".to_owned(),
                options => options.iter().map(|option| shell_word(option)).collect::<Vec<_>>().join("|"),
            };
            let command = format!("giga job answer {} --question {} {answer}", job.id, question.number);
            Remedy::command(format!("answer question {}", question.number), command)
        });
        standing(summary, blockers.collect(), remedies.collect())
    }

    /// The queued job as plans see it, where the view is as new as the job.
    async fn planned_view(&self, job: &Job) -> Result<JobView, Error> {
        let known = self.fleet.view.lock().queue.get(job.id).filter(|view| view.rev == job.rev).cloned();
        if let Some(view) = known {
            return Ok(view);
        }
        let parents = parents_of(self.core.store.read(), std::slice::from_ref(job)).await?;
        let view = job_view(job, &parents, self.fleet.flag_millis("pickup_ms"));
        view.ok_or_else(|| StoreError::broken_because("a queued job has no place in the queue").into())
    }

    fn explain_queued(&self, view: &JobView, now: Timestamp, sight: &Sight) -> Explanation {
        let mut state = self.fleet.view.lock();
        let policy = state.policy(now, Whom::Everyone);
        let mut snapshot = self.fleet.snapshot(&state, now, Whom::Everyone);
        sight.cut(&mut snapshot, &state.tenants, Some(view));
        let explanation = explain(view, &state.queue, &snapshot, now, &policy);
        let explanation = with_preemption(explanation, &state, view, &snapshot, now, &policy, sight);
        if explanation.blockers.is_empty() {
            return explanation;
        }
        match self.pools.awaited(&mut state, view, now) {
            Some(awaited) if sight.meets(&awaited.products) => waiting_for(awaited, explanation),
            _ => explanation,
        }
    }

    /// May the caller know of this job, as far as it is known here?
    fn is_seen(&self, sight: &Sight, job: JobId) -> bool {
        if *sight == Sight::Everything {
            return true;
        }
        let state = self.fleet.view.lock();
        let product = state.queue.get(job).map(|view| &view.product);
        let product = product.or_else(|| state.running.get(&job).map(|running| &running.product));
        product.is_some_and(|product| sight.allows(product))
    }

    async fn explain_blocked(&self, job: &Job, sight: &Sight) -> Result<Explanation, Error> {
        let deps = self.core.store.read().jobs_by_id(&job.spec.deps).await?;
        let mut open: Vec<&Job> = deps.iter().filter(|dep| dep.stage() != Stage::Shipped).collect();
        open.sort_by_key(|dep| dep.id);
        let mode = match job.spec.deps_mode {
            DepsMode::All => "all",
            DepsMode::Any => "one",
        };
        let summary = format!(
            "waiting for {mode} of {} to ship: {} not shipped yet",
            jobs(job.spec.deps.len()),
            open.len()
        );
        let blocker = |dep: &&Job| {
            if sight.allows(&dep.product) {
                return named(BlockerCode::Dependency, dep);
            }
            let message = format!("{}: {}, a job of another product", dep.id, dep.stage().label());
            Blocker::new(BlockerCode::Dependency, message)
        };
        let blockers = open.iter().map(blocker).collect();
        let seen = open.iter().filter(|dep| sight.allows(&dep.product));
        let remedies = seen.filter_map(|dep| remedy_for_dep(dep)).collect();
        Ok(standing(summary, blockers, remedies))
    }

    /// Why a composite that waits, or that failed, is where it is.
    async fn explain_composite(&self, job: &Job, sight: &Sight) -> Result<Explanation, Error> {
        let filter = JobFilter { parent: Some(job.id), ..JobFilter::default() };
        let mut children = self.core.store.read().list_jobs(&filter, None, limits::DAG_JOBS).await?;
        children.sort_by_key(|child| child.id);
        let mut tally = Tally::default();
        for child in &children {
            tally.add(child.stage(), 1);
        }
        let summary = match job.failure() {
            Some(failure) => {
                format!("failed: {}", failure.detail.as_deref().unwrap_or(failure.reason.as_str()))
            }
            None if children.is_empty() => "waiting for its children, and has none yet".to_owned(),
            None => format!(
                "waiting for its children: {} of {} shipped, {} failed, {} to go",
                tally.shipped,
                children.len(),
                tally.failed,
                tally.open
            ),
        };
        // Once there are children, its deps are theirs.
        let mut why = if children.is_empty() {
            Explanation { summary, ..self.explain_blocked(job, sight).await? }
        } else {
            standing(summary, Vec::new(), Vec::new())
        };
        if children.is_empty() && job.stage() == Stage::Blocked {
            let command = format!("giga job submit FILE... --parent {}", job.id);
            why.remedies.push(Remedy::command("give it children", command));
        }
        let open = children.iter().filter(|child| child.stage() != Stage::Shipped);
        why.blockers.extend(open.take(MOST_NAMED).map(|child| named(BlockerCode::Child, child)));
        why.remedies.extend(retries(job, &children));
        Ok(why)
    }
}

/// What preemption does for the job, or would do.
fn with_preemption(
    mut explanation: Explanation,
    state: &ViewState,
    job: &JobView,
    snapshot: &Snapshot,
    now: Timestamp,
    policy: &Policy,
    sight: &Sight,
) -> Explanation {
    let for_it = |running: &Running| running.evict.filter(|evict| evict.for_job == Some(job.id));
    let asked = state.running.iter().find_map(|(id, running)| Some((id, running, for_it(running)?)));
    if let Some((victim, running, evict)) = asked {
        let victim = if sight.allows(&running.product) {
            format!("job {victim}")
        } else {
            "a job of another product".to_owned()
        };
        let message = format!(
            "{victim} was asked to give up its seat on {} for it, by {} at the latest",
            running.factory, evict.deadline
        );
        explanation.summary = format!("waiting for a seat: {message}");
        explanation.blockers.insert(0, Blocker::new(BlockerCode::Preemption, message));
        return explanation;
    }
    if job.priority != Priority::Critical || state.flag("preemption") == true {
        return explanation;
    }
    if let Some(victim) = preemption_victim(job, &state.running_jobs(), snapshot, now, policy) {
        let seen = state.running.get(&victim).is_some_and(|running| sight.allows(&running.product));
        let victim = if seen { format!("job {victim}") } else { "a job of another product".to_owned() };
        let message =
            format!("let critical jobs take the seats of less urgent ones: {victim} would be preempted");
        explanation.remedies.insert(0, Remedy::fix(message, Fix::SwitchOn("preemption")));
    }
    explanation
}

/// As somebody would type it.
fn shell_word(text: &str) -> String {
    let plain = !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || "-_./:@".contains(c));
    if plain { text.to_owned() } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// What a submit of a composite would do.
fn composite_plan() -> Explanation {
    let children = "giga job submit FILE... --parent JOB";
    standing(
        "would wait for its children; it runs nowhere itself",
        Vec::new(),
        vec![Remedy::command("give it children after it is submitted", children)],
    )
}

fn named(code: BlockerCode, job: &Job) -> Blocker {
    Blocker::new(code, format!("{} ({}): {}", job.id, job.spec.name, job.stage().label()))
}

fn remedy_for_dep(dep: &Job) -> Option<Remedy> {
    match dep.stage() {
        Stage::Failed => Some(Remedy::fix("requeue the failed dependency", Fix::Requeue(dep.id))),
        Stage::Testing => Some(Remedy::fix("ship the dependency", Fix::Ship(dep.id))),
        Stage::Review => Some(look("review the dependency", dep.id)),
        Stage::DeadLetter | Stage::Cancelled => {
            let again = "the dependency will never ship; submit it again and then this job, without it";
            Some(Remedy::advice(again))
        }
        _ => None,
    }
}

/// No step that can be taken at once: whoever approves has looked at the result first, and this shows it.
fn look(message: &str, job: JobId) -> Remedy {
    Remedy::command(message, format!("giga review {job}"))
}

/// What brings a composite on whose children failed. Never what would only make it fail once more.
fn retries(job: &Job, children: &[Job]) -> Vec<Remedy> {
    let for_its_deps = job.failure().is_some_and(|why| why.reason == FailReason::DependencyFailed);
    if children.is_empty() && for_its_deps {
        return vec![Remedy::advice("some of its deps will never ship; submit it again without them")];
    }
    if children.iter().any(|child| matches!(child.stage(), Stage::Cancelled | Stage::DeadLetter)) {
        return vec![Remedy::advice(
            "some of its children are over without having shipped, so it cannot recover; submit it again",
        )];
    }
    let failed = children.iter().filter(|child| child.stage() == Stage::Failed).take(MOST_NAMED);
    let mut remedies: Vec<Remedy> = failed
        .map(|child| {
            let message = format!("see why {} failed, and retry it; this job follows", child.spec.name);
            Remedy::fix(message, Fix::Requeue(child.id))
        })
        .collect();
    let follows = job.failure().is_some_and(|why| why.reason == FailReason::ChildFailed);
    if job.stage() == Stage::Failed && !follows {
        remedies.push(Remedy::fix("then let it look at its children again", Fix::Requeue(job.id)));
    }
    remedies
}

/// What the manifest could have asked for, where that is why the job was not tried again.
fn why_no_retry(job: &Job) -> String {
    let asked_for = |reason: &FailReason| FailReason::RETRIED_ON_REQUEST.contains(reason);
    match job.failure().map(|failure| failure.reason).filter(asked_for) {
        Some(reason) if !job.spec.retry_on.contains(&reason) => {
            format!("; not retried, because the manifest does not say `retry: {{on: [{}]}}`", reason.as_str())
        }
        _ => String::new(),
    }
}

/// Why a job that waits for no factory and for no other job is where it is.
fn explain_unqueued(job: &Job, is_seen: impl Fn(JobId) -> bool) -> Explanation {
    let id = job.id;
    match job.stage() {
        stage @ (Stage::Assigned | Stage::Building) => {
            let verb = if stage == Stage::Assigned { "starting" } else { "running" };
            let on = job.lease().map(|lease| {
                format!(" on {}; its lease ends at {} unless renewed", lease.factory, lease.expires_at)
            });
            let asked = job.lease().and_then(|lease| lease.evict).map(|evict| {
                let why = match evict.for_job {
                    Some(job) if is_seen(job) => format!("job {job} needs the seat"),
                    Some(_) => "a job of another product needs the seat".to_owned(),
                    None => "its product's budget is paused".to_owned(),
                };
                format!(", and it was asked to stop by {}: {why}", evict.deadline)
            });
            let again = job.setback.as_ref().map(|setback| {
                let (next, of) = (job.attempts.saturating_add(1), job.spec.retry.attempts());
                format!("; attempt {next} of {of}, the last one failed: {}", setback.failure.words())
            });
            let summary = format!(
                "{verb}{}{}{}",
                on.unwrap_or_default(),
                asked.unwrap_or_default(),
                again.unwrap_or_default()
            );
            standing(summary, Vec::new(), Vec::new())
        }
        Stage::Review => {
            let gate = job.gate();
            let who = if gate.reviewers.is_empty() { "anyone".to_owned() } else { gate.reviewers.join(", ") };
            let needed = format!("needs {} approval(s) from {who}", gate.quorum);
            let blocker = Blocker::new(BlockerCode::Review, needed);
            standing("waiting for review", vec![blocker], vec![look("review it", id)])
        }
        Stage::Testing => {
            let blocker = Blocker::new(BlockerCode::Ship, "the manifest says `ship: manual`");
            standing("ready to ship", vec![blocker], vec![Remedy::fix("ship it", Fix::Ship(id))])
        }
        Stage::Shipping => explain_shipping(job),
        Stage::Failed => {
            let failure = job.failure();
            let reason = failure.map_or("for an unknown reason", Failure::headline);
            let words = failure.map_or_else(|| reason.to_owned(), Failure::words);
            let blocker = Blocker::new(BlockerCode::Failed, format!("{words}{}", why_no_retry(job)));
            let mut remedies =
                vec![Remedy::fix("retry it", Fix::Requeue(id)), Remedy::fix("give it up", Fix::Cancel(id))];
            if failure.is_some_and(|f| f.reason.is_of_a_merge()) {
                remedies.insert(0, Remedy::fix("merge it again as it is", Fix::Ship(id)));
                let branch = job.result.as_ref().map_or("", |result| &result.branch);
                remedies.push(Remedy::command("take it as a branch", format!("git fetch origin {branch}")));
            }
            standing(format!("failed: {reason}; waiting for an operator"), vec![blocker], remedies)
        }
        Stage::DeadLetter => {
            let reason = job.failure().map_or("for an unknown reason", Failure::headline);
            let remedy = Remedy::advice("final: submit it again once the cause is fixed");
            let summary = format!("dead letter: failed for good after {} attempts ({reason})", job.attempts);
            standing(summary, Vec::new(), vec![remedy])
        }
        Stage::Shipped => standing(shipped(job), Vec::new(), Vec::new()),
        stage @ (Stage::Cancelled | Stage::Queued | Stage::Blocked) => {
            standing(stage.label(), Vec::new(), Vec::new())
        }
    }
}

fn shipped(job: &Job) -> String {
    let Some(merge) = &job.merge else { return Stage::Shipped.label().to_owned() };
    if !merge.merged.is_empty() {
        let each =
            merge.merged.iter().map(|one| format!("{} is in {} of {}", one.commit, one.into, one.repo));
        return format!("shipped: {}", each.collect::<Vec<_>>().join(", "));
    }
    match &merge.state {
        MergeState::Done { note: Some(note), .. } => format!("shipped: {note}"),
        MergeState::Done { commit, into: Some(into), .. } => format!("shipped: {commit} is in {into}"),
        _ => Stage::Shipped.label().to_owned(),
    }
}

/// How far its result is on the way into its branch.
fn explain_shipping(job: &Job) -> Explanation {
    let Some(merge) = &job.merge else { return standing(Stage::Shipping.label(), Vec::new(), Vec::new()) };
    let (summary, blocker) = match &merge.state {
        MergeState::Waiting { due, detail: Some(detail) } => (
            format!("shipping: the merge failed {} time(s); trying again at {due}", merge.failures),
            Some(detail.clone()),
        ),
        MergeState::Taken { factory, .. } => {
            (format!("shipping: {factory} merges it and checks the merged tree"), None)
        }
        MergeState::Pushing { factory: Some(factory), candidate, .. } => {
            (format!("shipping: the merged tree passed; {factory} pushes it to {}", candidate.into), None)
        }
        MergeState::Pushing { factory: None, until, candidate } => (
            format!("shipping: the merged tree passed; pushing it to {} again at {until}", candidate.into),
            Some(format!("the repository could not be reached ({} time(s))", merge.failures)),
        ),
        MergeState::Proposed { into, .. } => {
            let request = merge.request.as_ref();
            match request.and_then(|request| request.opened.as_ref()) {
                Some(opened) => {
                    let why = format!("somebody merges it into {into}, or closes it");
                    (format!("shipping: waits for its pull request {} to be merged", opened.url), Some(why))
                }
                None => (format!("shipping: its pull request into {into} is being opened"), None),
            }
        }
        _ => {
            let turn = "one result of a repository is merged at a time, in the order of shipping";
            ("shipping: waiting for its turn to be merged".to_owned(), Some(turn.to_owned()))
        }
    };
    let summary = match job.merging() {
        Some(Merging { repo, .. }) if !job.spec.more_repos.is_empty() => {
            let merged: Vec<&str> = merge.merged.iter().map(|one| one.repo.as_str()).collect();
            let already = if merged.is_empty() {
                String::new()
            } else {
                format!("; already in: {}", merged.join(", "))
            };
            format!("{summary} ({repo}{already})")
        }
        _ => summary,
    };
    let blockers = blocker.map(|why| Blocker::new(BlockerCode::Merge, why)).into_iter().collect();
    standing(summary, blockers, Vec::new())
}
