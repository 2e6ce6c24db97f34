//! The queued jobs, grouped by shape and kept in order as jobs come and go.
//!
//! A plan reads this as it stands and builds nothing per job, so that planning one placement costs the same over ten
//! jobs and over a hundred thousand. The queue never reads a clock and never judges a job; jobs that must wait are
//! set aside by the time until which they wait, and a plan looks only at those whose time has come.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap, btree_map};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use giga_domain::{FactoryId, JobId, Priority, ProductId, Timestamp};

use crate::JobView;

/// Oldest first; the id makes it total.
pub(crate) type AgeKey = (Timestamp, JobId);
/// Never reused, so that nothing can point at another shape by mistake.
pub(crate) type ShapeId = u64;
/// Names the jobs that the same factories can run and that score alike on them.
pub(crate) type FitId = u64;
/// Jobs of one fit and one priority: when no factory is left for one of them, none is left for all.
pub(crate) type LaneId = (FitId, Priority);

/// Jobs in shapes, shapes in lanes, lanes in products, each level ordered by the oldest ready job in it.
#[derive(Debug, Default)]
pub struct ReadyQueue {
    jobs: BTreeMap<JobId, (Arc<JobView>, ShapeId)>,
    shapes: BTreeMap<ShapeId, Shape>,
    shape_ids: HashMap<SameShape, ShapeId>,
    fits: HashMap<SameFit, Fit>,
    next_id: u64,
    lanes: BTreeMap<LaneId, Lane>,
    products: BTreeMap<ProductId, Lanes>,
    /// Not ready, or on offer, until then.
    parked: BTreeSet<(Timestamp, JobId)>,
    /// Parked jobs that one factory may take before their time.
    offers: BTreeMap<FactoryId, BTreeSet<JobId>>,
    /// Parked jobs up to here have joined their shapes.
    settled_to: Timestamp,
}

#[derive(Debug)]
pub(crate) struct Shape {
    pub(crate) lane: LaneId,
    pub(crate) ready: BTreeMap<AgeKey, Arc<JobView>>,
    /// Any job that was of this shape; the key in `shape_ids`.
    like: Arc<JobView>,
    /// Ready and parked.
    jobs: usize,
}

/// Only lanes with a ready job exist.
#[derive(Debug, Default)]
pub(crate) struct Lane {
    pub(crate) shapes: BTreeMap<AgeKey, ShapeId>,
    /// Ready jobs in all of them.
    pub(crate) ready: usize,
}

#[derive(Debug)]
struct Fit {
    id: FitId,
    shapes: usize,
}

/// The lanes of a product, per priority.
#[derive(Debug, Default)]
pub(crate) struct Lanes([BTreeMap<AgeKey, LaneId>; Priority::ALL.len()]);

impl Lanes {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Priority, btree_map::Iter<'_, AgeKey, LaneId>)> {
        Priority::ALL.into_iter().zip(self.0.iter().map(BTreeMap::iter))
    }
}

impl ReadyQueue {
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the job or replaces what was known of it.
    pub fn upsert(&mut self, job: JobView) {
        self.remove(job.id);
        let job = Arc::new(job);
        let shape_id = self.shape_of(&job);
        self.jobs.insert(job.id, (Arc::clone(&job), shape_id));
        let until = parked_until(&job);
        if until > self.settled_to.max(job.enqueued_at) {
            self.parked.insert((until, job.id));
            if let Some((to, _)) = &job.offered_to {
                self.offers.entry(to.clone()).or_default().insert(job.id);
            }
        } else {
            self.change_ready(shape_id, |ready| ready.insert((job.enqueued_at, job.id), Arc::clone(&job)));
        }
    }

    pub fn remove(&mut self, id: JobId) -> Option<JobView> {
        let (job, shape_id) = self.jobs.remove(&id)?;
        if !self.unpark(&job) {
            self.change_ready(shape_id, |ready| ready.remove(&(job.enqueued_at, id)));
        }
        self.leave_shape(shape_id);
        Some(Arc::unwrap_or_clone(job))
    }

    pub fn get(&self, id: JobId) -> Option<&JobView> {
        self.jobs.get(&id).map(|(job, _)| &**job)
    }

    pub fn len(&self) -> usize {
        self.jobs.len()
    }

    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// By id.
    pub fn iter(&self) -> impl Iterator<Item = &JobView> {
        self.jobs.values().map(|(job, _)| &**job)
    }

    /// How many different shapes the queued jobs have: what the cost of a plan grows with.
    pub fn shapes(&self) -> usize {
        self.shapes.len()
    }

    /// Files the jobs whose time has come with the ready ones. A plan finds them without it, but looks at each of
    /// them anew every time; so whoever plans often calls this first.
    pub fn settle(&mut self, now: Timestamp) {
        self.settled_to = self.settled_to.max(now);
        while let Some(&(until, id)) = self.parked.first()
            && until <= now
        {
            let (job, shape_id) = self.jobs.get(&id).expect("a parked job is a queued job");
            let (job, shape_id) = (Arc::clone(job), *shape_id);
            self.unpark(&job);
            self.change_ready(shape_id, |ready| ready.insert((job.enqueued_at, id), job));
        }
    }

    /// Whether a job is there to be placed, as far as the queue was settled.
    pub fn has_ready(&self) -> bool {
        !self.products.is_empty()
    }

    /// When the next job joins the ready ones by the clock alone: its time comes, or its offer ends.
    pub fn next_change(&self) -> Option<Timestamp> {
        self.parked.first().map(|(until, _)| *until)
    }

    /// Jobs on offer, as far as the queue was settled, with the factory that each is on offer to.
    pub fn on_offer(&self) -> impl Iterator<Item = (&FactoryId, &JobView)> {
        self.offers
            .iter()
            .flat_map(|(to, ids)| ids.iter().filter_map(|id| self.get(*id)).map(move |job| (to, job)))
    }

    /// Those of them that are on offer to this factory.
    pub fn offered_to(&self, factory: &FactoryId) -> impl Iterator<Item = &JobView> {
        self.offers.get(factory).into_iter().flatten().filter_map(|id| self.get(*id))
    }

    /// Ready jobs by priority and age, of those shapes that `suits` says yes to. It is asked once per shape, so it may
    /// look at what a shape has in common: product, priority, capabilities, repo, concurrency key and cost cap.
    pub fn ready_in_order(&self, suits: impl Fn(&JobView) -> bool) -> impl Iterator<Item = &JobView> {
        self.ready_heads(suits, usize::MAX).map(|(_, job)| job)
    }

    /// The same, at most so many of each shape, with the fit of each.
    pub(crate) fn ready_heads(
        &self,
        suits: impl Fn(&JobView) -> bool,
        of_each: usize,
    ) -> impl Iterator<Item = (FitId, &JobView)> {
        let shapes = self.shapes.values().filter(|shape| !shape.ready.is_empty() && suits(&shape.like));
        let mut rows: Vec<_> = shapes.map(|shape| (shape.lane.0, shape.ready.iter().take(of_each))).collect();
        let key = |(age, job): (&AgeKey, &Arc<JobView>)| (job.priority.rank(), *age);
        let mut next: BinaryHeap<_> = rows
            .iter()
            .enumerate()
            .filter_map(|(row, (_, jobs))| Some(Reverse((key(jobs.clone().next()?), row))))
            .collect();
        std::iter::from_fn(move || {
            let Reverse((_, row)) = next.pop()?;
            let (fit, jobs) = &mut rows[row];
            let (_, job) = jobs.next()?;
            next.extend(jobs.clone().next().map(|first| Reverse((key(first), row))));
            Some((*fit, &**job))
        })
    }

    pub(crate) fn products(&self) -> impl Iterator<Item = (&ProductId, &Lanes)> {
        self.products.iter()
    }

    pub(crate) fn lane(&self, id: LaneId) -> &Lane {
        self.lanes.get(&id).expect("a product names only lanes that exist")
    }

    pub(crate) fn shape(&self, id: ShapeId) -> &Shape {
        self.shapes.get(&id).expect("lanes and jobs name only shapes that exist")
    }

    /// Parked jobs that may be placed after all: their time has come, or they are on offer to one of `factories`.
    pub(crate) fn parked_candidates<'a>(
        &'a self,
        now: Timestamp,
        factories: impl Iterator<Item = &'a FactoryId>,
    ) -> impl Iterator<Item = (&'a JobView, ShapeId)> {
        let due = self.parked.range(..=(now, JobId::MAX)).map(|(_, id)| id);
        let offered = factories.filter_map(|factory| self.offers.get(factory)).flatten();
        let all = due.chain(offered).filter_map(|id| self.jobs.get(id));
        // A job that is both due and still listed as offered would come twice.
        let mut seen = BTreeSet::new();
        all.filter(move |(job, _)| job.ready_at <= now && seen.insert(job.id))
            .map(|(job, shape)| (&**job, *shape))
    }

    fn shape_of(&mut self, job: &Arc<JobView>) -> ShapeId {
        if let Some(&id) = self.shape_ids.get(&SameShape(Arc::clone(job))) {
            self.shapes.get_mut(&id).expect("a named shape exists").jobs += 1;
            return id;
        }
        self.next_id += 2;
        let (id, new_fit) = (self.next_id, self.next_id + 1);
        let fit = self.fits.entry(SameFit(Arc::clone(job))).or_insert(Fit { id: new_fit, shapes: 0 });
        fit.shapes += 1;
        let shape =
            Shape { lane: (fit.id, job.priority), ready: BTreeMap::new(), like: Arc::clone(job), jobs: 1 };
        self.shapes.insert(id, shape);
        self.shape_ids.insert(SameShape(Arc::clone(job)), id);
        id
    }

    fn leave_shape(&mut self, id: ShapeId) {
        let shape = self.shapes.get_mut(&id).expect("a job's shape exists");
        shape.jobs -= 1;
        if shape.jobs > 0 {
            return;
        }
        let like = self.shapes.remove(&id).expect("it was there above").like;
        self.shape_ids.remove(&SameShape(Arc::clone(&like)));
        let key = SameFit(like);
        let fit = self.fits.get_mut(&key).expect("a shape's fit exists");
        fit.shapes -= 1;
        if fit.shapes == 0 {
            self.fits.remove(&key);
        }
    }

    fn unpark(&mut self, job: &JobView) -> bool {
        let was_parked = self.parked.remove(&(parked_until(job), job.id));
        if was_parked
            && let Some((to, _)) = &job.offered_to
            && let Some(offered) = self.offers.get_mut(to)
        {
            offered.remove(&job.id);
            if offered.is_empty() {
                self.offers.remove(to);
            }
        }
        was_parked
    }

    /// Changes a shape's ready jobs and keeps its lane and its product pointing at the oldest of them.
    fn change_ready<T>(
        &mut self,
        id: ShapeId,
        change: impl FnOnce(&mut BTreeMap<AgeKey, Arc<JobView>>) -> T,
    ) {
        let shape = self.shapes.get_mut(&id).expect("a job's shape exists");
        let (oldest_before, count_before) = (oldest(&shape.ready), shape.ready.len());
        change(&mut shape.ready);
        let (lane_id, product) = (shape.lane, &shape.like.product);
        let lane = self.lanes.entry(lane_id).or_default();
        lane.ready = lane.ready + shape.ready.len() - count_before;

        let lane_oldest_before = oldest(&lane.shapes);
        move_up(&mut lane.shapes, oldest_before, oldest(&shape.ready), id);
        let lane_oldest = oldest(&lane.shapes);
        if lane_oldest.is_none() {
            self.lanes.remove(&lane_id);
        }
        if lane_oldest != lane_oldest_before {
            let lanes = self.products.entry(product.clone()).or_default();
            let (_, priority) = lane_id;
            move_up(&mut lanes.0[usize::from(priority.rank())], lane_oldest_before, lane_oldest, lane_id);
            if lanes.0.iter().all(BTreeMap::is_empty) {
                self.products.remove(product);
            }
        }
    }
}

fn oldest<T>(ordered: &BTreeMap<AgeKey, T>) -> Option<AgeKey> {
    ordered.first_key_value().map(|(key, _)| *key)
}

/// Files `id` under its new oldest job.
fn move_up<T>(ordered: &mut BTreeMap<AgeKey, T>, before: Option<AgeKey>, after: Option<AgeKey>, id: T) {
    if before == after {
        return;
    }
    if let Some(before) = before {
        ordered.remove(&before);
    }
    if let Some(after) = after {
        ordered.insert(after, id);
    }
}

/// A job is out of everybody's reach until it is ready, and out of reach of all but one until its offer ends.
fn parked_until(job: &JobView) -> Timestamp {
    job.offered_to.as_ref().map_or(job.ready_at, |(_, deadline)| job.ready_at.max(*deadline))
}

/// Compares jobs by what decides where they can run and how well.
#[derive(Debug)]
struct SameFit(Arc<JobView>);

impl Hash for SameFit {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.0.product, &self.0.capabilities, &self.0.engine, &self.0.repo, &self.0.more_repos).hash(state);
    }
}

impl PartialEq for SameFit {
    fn eq(&self, other: &Self) -> bool {
        let (a, b) = (&self.0, &other.0);
        a.product == b.product
            && (&a.capabilities, &a.engine) == (&b.capabilities, &b.engine)
            && (&a.repo, &a.more_repos) == (&b.repo, &b.more_repos)
    }
}

impl Eq for SameFit {}

/// Compares jobs by all that decides whether and when they are placed, their age and their past aside.
#[derive(Debug)]
struct SameShape(Arc<JobView>);

impl Hash for SameShape {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let job = &self.0;
        (&job.product, job.priority, &job.capabilities, &job.repo, &job.more_repos).hash(state);
        (&job.engine, &job.concurrency, job.cost_cap).hash(state);
    }
}

impl PartialEq for SameShape {
    fn eq(&self, other: &Self) -> bool {
        let (a, b) = (&self.0, &other.0);
        a.priority == b.priority
            && a.cost_cap == b.cost_cap
            && a.concurrency == b.concurrency
            && a.product == b.product
            && (&a.capabilities, &a.engine) == (&b.capabilities, &b.engine)
            && (&a.repo, &a.more_repos) == (&b.repo, &b.more_repos)
    }
}

impl Eq for SameShape {}
