//! Use cases about graphs of jobs: many in one submit, children of a job, and how a whole tree stands.
//!
//! A problem is named by the job and the field that has it, such as `children[3].deps[0]`.

use std::collections::{BTreeMap, HashMap, HashSet};

use giga_domain::job::{DepsMode, JobKind};
use giga_domain::manifest::{Dep, Manifest};
use giga_domain::stage::PerStage;
use giga_domain::{Actor, Holder, Job, JobId, ProductId, Stage, Usd, graph, limits};
use giga_ports::StoreError;
use giga_ports::store::{NewJob, Submit, Submitted};
use giga_scheduler::{JobView, Snapshot, Unroutable, routable};

use crate::jobs::{Origin, preview};
use crate::view::{ViewState, Whom};
use crate::{Coordinator, Error, FieldProblem, Sight, SubmitAnswer};

/// One job of many.
#[derive(Debug, Clone)]
pub struct NewItem {
    pub product: ProductId,
    pub manifest: Manifest,
    pub body: String,
}

/// Many jobs that come together: `jobs`, or the `children` of one.
#[derive(Debug, Clone, Copy)]
struct Listed<'a> {
    items: &'a [NewItem],
    /// What the list is called in messages.
    name: &'static str,
}

impl Listed<'_> {
    fn problem(&self, place: usize, field: &str, message: impl Into<String>) -> Error {
        FieldProblem::new(self.field(place, field), message).into()
    }

    /// What a job that comes alone would be refused for.
    fn refusal(&self, place: usize, field: &str, error: Error) -> Error {
        Error::At { field: self.field(place, field), error: Box::new(error) }
    }

    /// What making one of them was refused for.
    fn about(&self, place: usize, error: Error) -> Error {
        match error {
            Error::Invalid(FieldProblem { field, message }) => self.problem(place, &field, message),
            error => error,
        }
    }

    fn field(&self, place: usize, field: &str) -> String {
        format!("{}[{place}].{field}", self.name)
    }

    fn job_name(&self, place: usize) -> &str {
        &self.items[place].manifest.name
    }
}

/// A job and all below it.
#[derive(Debug)]
pub struct Dag {
    /// Parents before their children; the job that was asked about first.
    pub jobs: Vec<DagJob>,
    /// What jobs of the tree wait for outside of it.
    pub outside: Vec<Job>,
    /// There are more than a look shows.
    pub truncated: bool,
}

#[derive(Debug)]
pub struct DagJob {
    pub job: Job,
    pub depth: usize,
    /// Of it and all below it; `None` where not all of them are shown.
    pub progress: Option<Progress>,
}

/// How the jobs that do the work stand; composites only stand for them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Progress {
    pub by_stage: PerStage<u64>,
    /// What runs have cost so far, those that are under way included.
    pub spent: Usd,
}

impl Progress {
    fn count(&mut self, stage: Stage) {
        self.by_stage[stage] += 1;
    }

    fn add(&mut self, other: &Self) {
        for (stage, more) in other.by_stage.iter() {
            self.by_stage[stage] += more;
        }
        self.spent += other.spent;
    }

    pub fn total(&self) -> u64 {
        self.by_stage.iter().map(|(_, count)| count).sum()
    }

    pub fn shipped(&self) -> u64 {
        self.by_stage[Stage::Shipped]
    }

    /// Of a hundred, rounded down: a hundred means all. Nothing to do is nothing done.
    pub fn percent(&self) -> u64 {
        (self.shipped() * 100).checked_div(self.total()).unwrap_or(0)
    }
}

impl Coordinator {
    /// All or none, durable when it returns. Names in `deps` are those of jobs beside it.
    pub async fn submit_many(&self, items: Vec<NewItem>, actor: Actor) -> Result<Vec<SubmitAnswer>, Error> {
        self.submit_listed(Listed { items: &items, name: "jobs" }, None, None, actor).await
    }

    /// The same, as children of a job, in its product.
    pub async fn submit_children(
        &self,
        parent: JobId,
        items: Vec<NewItem>,
        actor: Actor,
    ) -> Result<Vec<SubmitAnswer>, Error> {
        self.submit_below(parent, None, &items, actor).await
    }

    /// The same by what runs inside the parent, under the lease that holds it. Nobody hands out more than it has.
    pub async fn submit_from_inside(
        &self,
        parent: JobId,
        holder: Holder,
        items: Vec<NewItem>,
        actor: Actor,
    ) -> Result<Vec<SubmitAnswer>, Error> {
        self.submit_below(parent, Some(holder), &items, actor).await
    }

    async fn submit_below(
        &self,
        parent: JobId,
        holder: Option<Holder>,
        items: &[NewItem],
        actor: Actor,
    ) -> Result<Vec<SubmitAnswer>, Error> {
        let parent = self.core.store.read().job(parent).await?.ok_or(StoreError::NoSuchJob(parent))?;
        let listed = Listed { items, name: "children" };
        for (place, item) in items.iter().enumerate() {
            if item.product != parent.product {
                let message = format!("must be {}, like its parent's; leave it out", parent.product);
                return Err(listed.problem(place, "product", message));
            }
            let any = item.manifest.deps_mode == DepsMode::Any;
            if any && parent.spec.kind == JobKind::Composite && !parent.spec.deps.is_empty() {
                let message = "cannot be any: the parent has deps, and its children wait for all of these";
                return Err(listed.problem(place, "depsMode", message));
            }
        }
        if holder.is_some() {
            self.check_inherited_secrets(&parent, items).await?;
        }
        self.submit_listed(listed, Some(&parent), holder, actor).await
    }

    async fn submit_listed(
        &self,
        listed: Listed<'_>,
        parent: Option<&Job>,
        under: Option<Holder>,
        actor: Actor,
    ) -> Result<Vec<SubmitAnswer>, Error> {
        check_size(listed)?;
        // Sorted, so that they are listed in the order in which they were given.
        let mut ids: Vec<JobId> =
            listed.items.iter().map(|_| self.core.random.job_id(self.core.clock.now())).collect();
        ids.sort_unstable();
        let deps = resolve_deps(listed, &ids)?;
        let inherited = parent.filter(|parent| parent.spec.kind == JobKind::Composite);
        let mut jobs = Vec::with_capacity(ids.len());
        let mut foreign_repos = Vec::with_capacity(ids.len());
        for (place, (item, mut deps)) in listed.items.iter().zip(deps).enumerate() {
            let named = self.check_secrets(&item.product, &item.manifest).await;
            named.map_err(|error| listed.about(place, error))?;
            foreign_repos.push(self.foreign_repo(&item.product, item.manifest.repos()));
            // What a composite waits for, its children wait for too.
            let more = inherited.map(|parent| parent.spec.deps.as_slice()).unwrap_or_default();
            let own: HashSet<JobId> = deps.iter().copied().collect();
            deps.extend(more.iter().filter(|dep| !own.contains(dep)));
            let body = item.body.clone();
            let origin = Origin { parent, under: under.clone() };
            let new =
                self.make_job(ids[place], item.product.clone(), &item.manifest, body, deps, origin).await;
            jobs.push(new.map_err(|error| listed.about(place, error))?);
        }
        let routable = self.all_routable(&jobs).await?;
        let is_strict = self.fleet.flag("strict") == true;
        for (place, new) in jobs.iter().enumerate() {
            let refusal = match (&mut foreign_repos[place], &routable[place]) {
                (foreign @ Err(_), _) => {
                    let Err(refused) = std::mem::replace(foreign, Ok(None)) else { continue };
                    listed.refusal(place, "repo", refused)
                }
                (_, Err(unroutable)) if is_strict => {
                    listed.refusal(place, "capabilities", Error::Unroutable(unroutable.clone()))
                }
                _ => continue,
            };
            self.unless_made_before(new, refusal).await?;
        }
        self.admit(&jobs).await?;
        let stored = self.core.store.submit(Submit { jobs: jobs.clone(), actor }).await;
        let stored = stored.map_err(|error| explain_refusal(listed, &jobs, error))?;
        let answers = stored.into_iter().zip(routable).zip(foreign_repos);
        Ok(answers
            .map(|((answer, routable), foreign_repo)| {
                let (job, created) = match answer {
                    Submitted::Created(job) => (job, true),
                    Submitted::Existing(job) => (job, false),
                };
                if created {
                    self.core.metrics.submitted(&job);
                }
                SubmitAnswer { job, created, routable, foreign_repo: foreign_repo.unwrap_or_default() }
            })
            .collect())
    }

    /// Could any factory of today's fleet ever run each of them?
    pub(crate) async fn all_routable(&self, jobs: &[NewJob]) -> Result<Vec<Result<(), Unroutable>>, Error> {
        // One picture of the fleet for all of them.
        let judge = || {
            let now = self.core.store_now();
            let state = self.fleet.view.lock();
            let snapshot = self.fleet.snapshot(&state, now, Whom::Everyone);
            let each = jobs.iter().map(|new| match new.spec.kind {
                // Never placed anywhere.
                JobKind::Composite => Ok(()),
                JobKind::Agent => {
                    let view = preview(new, now);
                    match routable(&view, &snapshot) {
                        Err(_) if !crate::pools::could_run(&state, &view, now) => {
                            Err(told_to_its_product(&view, &snapshot, &state))
                        }
                        _ => Ok(()),
                    }
                }
            });
            each.collect::<Vec<_>>()
        };
        let first = judge();
        if first.iter().all(Result::is_ok) {
            return Ok(first);
        }
        // Before anyone is warned: the view may be older than a factory that has just joined.
        self.fleet.refresh().await?;
        Ok(judge())
    }

    /// The job and all below it, and how they stand.
    pub async fn dag(&self, root: JobId) -> Result<Dag, Error> {
        let reads = self.core.store.read();
        let mut jobs = reads.subtree(root, limits::DAG_JOBS + 1).await?;
        if jobs.is_empty() {
            return Err(StoreError::NoSuchJob(root).into());
        }
        let truncated = jobs.len() > limits::DAG_JOBS;
        jobs.truncate(limits::DAG_JOBS);
        let inside: HashSet<JobId> = jobs.iter().map(|job| job.id).collect();
        let mut awaited: Vec<JobId> = jobs.iter().flat_map(|job| job.spec.deps.iter().copied()).collect();
        awaited.retain(|dep| !inside.contains(dep));
        awaited.sort_unstable();
        awaited.dedup();
        awaited.truncate(limits::DAG_JOBS);
        let mut outside = reads.jobs_by_id(&awaited).await?;
        outside.sort_by_key(|job| job.id);
        let ids: Vec<JobId> = jobs.iter().map(|job| job.id).collect();
        let charged = reads.charged_to(&ids).await?.into_iter().collect();
        let mut jobs = rolled_up(jobs, &charged);
        if truncated {
            leave_out_what_is_cut(&mut jobs);
            let whole = reads.subtree_totals(root).await?;
            jobs[0].progress = Some(Progress { by_stage: whole.by_stage, spent: whole.spent });
        }
        Ok(Dag { jobs, outside, truncated })
    }
}

/// Why nobody could run it, from what the people of its own product may see.
fn told_to_its_product(job: &JobView, snapshot: &Snapshot, state: &ViewState) -> Unroutable {
    if snapshot.factories.is_empty() {
        return Unroutable::NoFactories;
    }
    let mut cut = snapshot.clone();
    Sight::Products(vec![job.product.clone()]).cut(&mut cut, &state.tenants, Some(job));
    match routable(job, &cut) {
        Err(Unroutable::NoFactories) | Ok(()) => Unroutable::Product(job.product.clone()),
        Err(other) => other,
    }
}

fn check_size(listed: Listed<'_>) -> Result<(), Error> {
    let (name, count) = (listed.name, listed.items.len());
    let message = match count {
        0 => "must have at least one job".to_owned(),
        _ if count > limits::SUBMIT_JOBS => {
            format!("has {count} jobs; at most {} go into one call", limits::SUBMIT_JOBS)
        }
        _ => return Ok(()),
    };
    Err(FieldProblem::new(name, message).into())
}

/// From names to the ids of jobs beside it. Nothing may come to wait for itself.
fn resolve_deps(listed: Listed<'_>, ids: &[JobId]) -> Result<Vec<Vec<JobId>>, Error> {
    let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
    for (place, item) in listed.items.iter().enumerate() {
        places.entry(&item.manifest.name).or_default().push(place);
    }
    let mut resolved = Vec::with_capacity(ids.len());
    let mut waits_for = Vec::with_capacity(ids.len());
    for (place, item) in listed.items.iter().enumerate() {
        let mut deps = Vec::new();
        let mut beside = Vec::new();
        for (index, dep) in item.manifest.deps.iter().enumerate() {
            let name = match dep {
                Dep::Id(id) => {
                    deps.push(*id);
                    continue;
                }
                Dep::Name(name) => name,
            };
            let field = format!("deps[{index}]");
            match places.get(name.as_str()).map(Vec::as_slice) {
                Some([awaited]) => {
                    deps.push(ids[*awaited]);
                    beside.push(*awaited);
                }
                Some(several) => {
                    let message = format!(
                        "{} jobs of this submit are called `{name}`; give each a name of its own",
                        several.len()
                    );
                    return Err(listed.problem(place, &field, message));
                }
                None => return Err(listed.problem(place, &field, unknown_name(name, &places))),
            }
        }
        resolved.push(deps);
        waits_for.push(beside);
    }
    match graph::cycle(0..ids.len(), |place| waits_for[place].clone()) {
        Some(round) => {
            let drawn = graph::drawn(round.iter().map(|place| listed.job_name(*place)));
            Err(listed.problem(round[0], "deps", waits_for_itself(&drawn)))
        }
        None => Ok(resolved),
    }
}

fn unknown_name(name: &str, places: &HashMap<&str, Vec<usize>>) -> String {
    let mut known: Vec<&str> = places.keys().copied().collect();
    known.sort_unstable();
    let hint = match giga_domain::manifest::suggest(name, known) {
        Some(near) => format!("did you mean `{near}`?"),
        None => "names are those of jobs in the same submit, and others go by their ids".to_owned(),
    };
    format!("`{name}` is neither a job id nor a job of this submit; {hint}")
}

fn waits_for_itself(drawn: &str) -> String {
    format!("{drawn} would wait for itself; take one of these deps out")
}

/// The store speaks of ids that nobody has seen yet.
fn explain_refusal(listed: Listed<'_>, jobs: &[NewJob], error: StoreError) -> Error {
    let place_of = |id: JobId| jobs.iter().position(|new| new.id == id);
    match error {
        StoreError::UnknownDep(id) => {
            let who = jobs.iter().position(|new| new.spec.deps.contains(&id));
            let Some(place) = who else { return StoreError::UnknownDep(id).into() };
            let named = listed.items[place].manifest.deps.iter().position(|dep| *dep == Dep::Id(id));
            let field = named.map_or_else(|| "deps".to_owned(), |index| format!("deps[{index}]"));
            listed.problem(place, &field, format!("there is no job {id} in this product"))
        }
        StoreError::Cycle(round) => {
            let named = round.iter().map(|id| {
                place_of(*id).map_or_else(|| id.to_string(), |place| listed.job_name(place).to_owned())
            });
            let drawn = graph::drawn(named);
            match round.iter().find_map(|id| place_of(*id)) {
                Some(place) => listed.problem(place, "deps", waits_for_itself(&drawn)),
                None => StoreError::Cycle(round).into(),
            }
        }
        error => error.into(),
    }
}

/// Counts from the leaves up. Parents stand before their children, so the way back meets children first.
fn rolled_up(jobs: Vec<Job>, charged: &HashMap<JobId, Usd>) -> Vec<DagJob> {
    let mut depths: HashMap<JobId, usize> = HashMap::new();
    for (place, job) in jobs.iter().enumerate() {
        let above = job.spec.parent.filter(|_| place > 0).and_then(|parent| depths.get(&parent));
        let depth = above.map_or(0, |above| above + 1);
        depths.insert(job.id, depth);
    }
    let mut below: BTreeMap<JobId, Progress> = BTreeMap::new();
    for job in jobs.iter().rev() {
        let mut own = below.get(&job.id).copied().unwrap_or_default();
        if job.spec.kind == JobKind::Agent {
            own.count(job.stage());
            let running = job.lease().map_or(Usd::ZERO, |lease| lease.spent.usd);
            own.spent += charged.get(&job.id).copied().unwrap_or_default() + running;
        }
        below.insert(job.id, own);
        if let Some(parent) = job.spec.parent {
            let sum = below.entry(parent).or_default();
            sum.add(&own);
        }
    }
    jobs.into_iter()
        .map(|job| DagJob { depth: depths[&job.id], progress: Some(below[&job.id]), job })
        .collect()
}

/// Generation by generation, so the cut goes through the last one shown, or lies right below it: whoever stands there may
/// have children that are not shown, and so may those in the generation above it.
fn leave_out_what_is_cut(jobs: &mut [DagJob]) {
    let mut known: HashMap<JobId, usize> = HashMap::new();
    let last = jobs.last().map_or(0, |node| node.depth);
    let mut cut: HashSet<JobId> = HashSet::new();
    for (place, node) in jobs.iter().enumerate() {
        known.insert(node.job.id, place);
        if node.depth + 1 >= last {
            cut.insert(node.job.id);
            let mut above = node.job.spec.parent;
            while let Some(id) = above.filter(|id| known.contains_key(id)) {
                if !cut.insert(id) {
                    break;
                }
                above = jobs[known[&id]].job.spec.parent;
            }
        }
    }
    for node in jobs.iter_mut().filter(|node| cut.contains(&node.job.id)) {
        node.progress = None;
    }
}
