//! Rank and select: job by job in turn, each to the best factory that is left.
//!
//! The next job is found through two small heaps, products by turn and each product's lanes, shapes and jobs by age; what
//! stands behind the first of its shape is never looked at. Nothing here gives back what a placement used up, which is
//! why whatever found no place once is done for the plan, and with it all that would fail alike.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashMap, btree_map};
use std::sync::Arc;

use giga_domain::{JobId, Priority, ProductId, ScoreTerm, Timestamp, Usd};

use crate::feasible::{self, Filter};
use crate::fits::Fits;
use crate::fleet::{Fleet, Seats};
use crate::order::{Turn, class, share_held};
use crate::plan::{Placement, Plan, Unplaced};
use crate::queue::{AgeKey, LaneId, Lanes, ShapeId};
use crate::score::{self, Score, Terms};
use crate::{FactoryView, JobView, Policy, ProductPolicy, ReadyQueue, Snapshot, Weights};

/// A plan in the making.
pub(crate) struct Planner<'a> {
    pub(crate) plan: Plan,
    pub(crate) fleet: Fleet<'a>,
    queue: &'a ReadyQueue,
    snapshot: &'a Snapshot,
    policy: &'a Policy,
    now: Timestamp,
    /// Left out, because the caller asks about them or they had their turn before everybody.
    skip: Vec<JobId>,
    contenders: Vec<Contender<'a>>,
    contender_of: HashMap<&'a ProductId, usize>,
    turns: BinaryHeap<Reverse<(Turn, usize)>>,
    lanes: Vec<OpenLane<'a>>,
    shapes: Vec<OpenShape<'a>>,
    fits: Fits,
    placed_by_key: HashMap<(&'a ProductId, &'a str), u32>,
    unplaced_at: HashMap<(LaneId, Filter), usize>,
}

/// What a plan does with jobs that are on offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Offered {
    /// Their factory may take them.
    ToBeTaken,
    LeftAlone,
}

/// A product that has jobs in the queue.
struct Contender<'a> {
    policy: ProductPolicy,
    budget_left: Option<Usd>,
    held: u32,
    /// Per priority, the lanes whose turn has not come yet.
    lanes: Vec<(Priority, btree_map::Iter<'a, AgeKey, LaneId>)>,
    upcoming: BinaryHeap<Reverse<Upcoming<'a>>>,
}

/// The next job of a lane, of a shape, or one that stands for itself.
struct Upcoming<'a> {
    class: u8,
    age: AgeKey,
    from: Source<'a>,
}

/// Where the job comes from, which says what comes after it.
#[derive(Clone, Copy)]
enum Source<'a> {
    /// An index into the contender's lanes, and the lane that comes next there.
    Lane(usize, LaneId),
    /// An index into the planner's lanes, and the shape that comes next there.
    Shape(usize, ShapeId),
    /// An index into the planner's shapes, and the job that comes next there.
    Job(usize, &'a JobView),
    Single(LaneId, &'a JobView),
}

/// A lane whose turn has come at least once.
struct OpenLane<'a> {
    id: LaneId,
    fit: usize,
    rest: btree_map::Iter<'a, AgeKey, ShapeId>,
    /// Ready jobs that had no turn yet.
    left: usize,
    closed: bool,
}

/// A shape whose turn has come at least once.
struct OpenShape<'a> {
    lane: usize,
    rest: btree_map::Iter<'a, AgeKey, Arc<JobView>>,
}

/// What becomes of a job in its turn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Outcome {
    /// On the factory with this index.
    Place(usize, Terms),
    Not(Reach, Filter),
}

/// Who else fails for the same reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    Job,
    Shape,
    Lane,
}

impl<'a> Planner<'a> {
    pub(crate) fn new(
        queue: &'a ReadyQueue,
        snapshot: &'a Snapshot,
        now: Timestamp,
        policy: &'a Policy,
        seats: Seats,
        offered: Offered,
        skip: Option<JobId>,
    ) -> Self {
        let fleet = Fleet::new(snapshot, now, seats);
        let mut planner = Self {
            plan: Plan::default(),
            fits: Fits::new(fleet.factories.len()),
            fleet,
            queue,
            snapshot,
            policy,
            now,
            skip: skip.into_iter().collect(),
            contenders: Vec::new(),
            contender_of: HashMap::new(),
            turns: BinaryHeap::new(),
            lanes: Vec::new(),
            shapes: Vec::new(),
            placed_by_key: HashMap::new(),
            unplaced_at: HashMap::new(),
        };
        for (product, lanes) in queue.products() {
            planner.join(product, Some(lanes));
        }
        let takers: &[FactoryView] = match offered {
            Offered::ToBeTaken => &snapshot.factories,
            Offered::LeftAlone => &[],
        };
        let ids = takers.iter().map(|f| &f.id);
        for (job, shape) in queue.parked_candidates(now, ids) {
            let at = planner.contender(&job.product);
            let source = Source::Single(queue.shape(shape).lane, job);
            planner.expect(at, (job.enqueued_at, job.id), job.priority, source);
        }
        planner.keep_promises();
        for at in 0..planner.contenders.len() {
            planner.line_up(at);
        }
        planner
    }

    fn join(&mut self, product: &'a ProductId, lanes: Option<&'a Lanes>) -> usize {
        let policy = self.policy.products.get(product).cloned().unwrap_or_default();
        let held = self.snapshot.running_by_product.get(product).copied().unwrap_or(0);
        let at = self.contenders.len();
        self.contender_of.insert(product, at);
        self.contenders.push(Contender {
            budget_left: policy.budget_left,
            policy,
            held,
            lanes: lanes.into_iter().flat_map(Lanes::iter).collect(),
            upcoming: BinaryHeap::new(),
        });
        for lane in 0..self.contenders[at].lanes.len() {
            self.expect_next_lane(at, lane);
        }
        at
    }

    /// The contender of a product, also where none of its jobs is ready.
    pub(crate) fn contender(&mut self, product: &'a ProductId) -> usize {
        let known = self.contender_of.get(product).copied();
        known.unwrap_or_else(|| self.join(product, None))
    }

    fn expect(&mut self, contender: usize, age: AgeKey, priority: Priority, from: Source<'a>) {
        let class = class(priority, age.0, self.now, self.policy.starvation_after);
        self.contenders[contender].upcoming.push(Reverse(Upcoming { class, age, from }));
    }

    fn expect_next_lane(&mut self, contender: usize, at: usize) {
        let (priority, lanes) = &mut self.contenders[contender].lanes[at];
        let priority = *priority;
        if let Some((&age, &lane)) = lanes.next() {
            self.expect(contender, age, priority, Source::Lane(at, lane));
        }
    }

    fn expect_next_shape(&mut self, contender: usize, lane: usize) {
        let (_, priority) = self.lanes[lane].id;
        if let Some((&age, &shape)) = self.lanes[lane].rest.next() {
            self.expect(contender, age, priority, Source::Shape(lane, shape));
        }
    }

    fn expect_next_job(&mut self, contender: usize, shape: usize) {
        if let Some((&age, job)) = self.shapes[shape].rest.next() {
            self.expect(contender, age, job.priority, Source::Job(shape, job));
        }
    }

    /// Enters the contender's next job into the line of all products.
    fn line_up(&mut self, at: usize) {
        let contender = &self.contenders[at];
        if let Some(Reverse(next)) = contender.upcoming.peek() {
            let turn = self.turn(at, next.class, next.age);
            self.turns.push(Reverse((turn, at)));
        }
    }

    fn turn(&self, contender: usize, class: u8, (enqueued_at, job): AgeKey) -> Turn {
        let contender = &self.contenders[contender];
        Turn { class, share_held: share_held(contender.held, contender.policy.share), enqueued_at, job }
    }

    /// Those that a seat was given up for have their turn before everybody; one that finds none waits for its own.
    fn keep_promises(&mut self) {
        let (queue, snapshot) = (self.queue, self.snapshot);
        for job in snapshot.promised.iter().filter_map(|id| queue.get(*id)) {
            let is_on_offer = feasible::live_offer(job, self.now).is_some();
            if is_on_offer || self.skip.contains(&job.id) {
                continue;
            }
            let (contender, fit) = (self.contender(&job.product), self.fits.add());
            if let Outcome::Place(factory, terms) = self.judge(contender, fit, job) {
                self.place(contender, job, factory, terms);
                self.skip.push(job.id);
            }
        }
    }

    /// Places what comes before `job`, up to `limit` placements, and then judges `job` by what is left for it.
    /// `None`: the limit was reached before its turn.
    pub(crate) fn judge_in_turn(&mut self, job: &'a JobView, limit: usize) -> Option<Outcome> {
        let contender = self.contender(&job.product);
        let class = class(job.priority, job.enqueued_at, self.now, self.policy.starvation_after);
        let goes_first = self.snapshot.promised.contains(&job.id);
        while let Some(Reverse((next, _))) = self.turns.peek()
            && !goes_first
            && *next < self.turn(contender, class, (job.enqueued_at, job.id))
        {
            if self.plan.placements.len() >= limit {
                return None;
            }
            self.step();
        }
        let fit = self.fits.add();
        Some(self.judge(contender, fit, job))
    }

    /// Lets the next job have its turn; false when there is none.
    pub(crate) fn step(&mut self) -> bool {
        let Some(Reverse((_, at))) = self.turns.pop() else { return false };
        let Some(Reverse(next)) = self.contenders[at].upcoming.pop() else { return false };
        match next.from {
            Source::Lane(rest, id) => {
                self.expect_next_lane(at, rest);
                let lane = self.open_lane(id);
                if let Some((_, &shape)) = self.lanes[lane].rest.next() {
                    self.start_shape(at, lane, shape);
                }
            }
            Source::Shape(lane, shape) => self.start_shape(at, lane, shape),
            Source::Job(shape, job) => self.take_turn(at, shape, job),
            Source::Single(lane, job) => {
                let fit = self.fits.slot_of(lane.0);
                if let Some(Outcome::Not(_, reason)) = self.judge_and_place(at, fit, job) {
                    self.unplaced(lane, reason, job, 1);
                }
            }
        }
        self.line_up(at);
        true
    }

    fn open_lane(&mut self, id: LaneId) -> usize {
        let (lane, fit) = (self.queue.lane(id), self.fits.slot_of(id.0));
        self.lanes.push(OpenLane { id, fit, rest: lane.shapes.iter(), left: lane.ready, closed: false });
        self.lanes.len() - 1
    }

    fn start_shape(&mut self, contender: usize, lane: usize, id: ShapeId) {
        if self.lanes[lane].closed {
            return;
        }
        let mut rest = self.queue.shape(id).ready.iter();
        let first = rest.next();
        self.shapes.push(OpenShape { lane, rest });
        if let Some((_, job)) = first {
            self.take_turn(contender, self.shapes.len() - 1, job);
        }
        if !self.lanes[lane].closed {
            self.expect_next_shape(contender, lane);
        }
    }

    /// Gives a job its turn and lines up the next of its shape, unless that would fail alike.
    fn take_turn(&mut self, contender: usize, shape: usize, job: &'a JobView) {
        let at = self.shapes[shape].lane;
        let lane = &mut self.lanes[at];
        if lane.closed {
            return;
        }
        let (id, fit) = (lane.id, lane.fit);
        lane.left -= 1;
        match self.judge_and_place(contender, fit, job) {
            Some(Outcome::Not(Reach::Shape, reason)) => {
                let rest = self.shapes[shape].rest.len();
                self.lanes[at].left -= rest;
                self.unplaced(id, reason, job, 1 + rest);
                return;
            }
            Some(Outcome::Not(Reach::Lane, reason)) => {
                let lane = &mut self.lanes[at];
                lane.closed = true;
                let left = lane.left;
                self.unplaced(id, reason, job, 1 + left);
                return;
            }
            Some(Outcome::Not(Reach::Job, reason)) => self.unplaced(id, reason, job, 1),
            Some(Outcome::Place(..)) | None => {}
        }
        self.expect_next_job(contender, shape);
    }

    fn judge_and_place(&mut self, contender: usize, fit: usize, job: &'a JobView) -> Option<Outcome> {
        if self.skip.contains(&job.id) {
            return None;
        }
        let outcome = self.judge(contender, fit, job);
        if let Outcome::Place(factory, terms) = outcome {
            self.place(contender, job, factory, terms);
        }
        Some(outcome)
    }

    fn judge(&mut self, contender: usize, fit: usize, job: &'a JobView) -> Outcome {
        if job.ready_at > self.now {
            return Outcome::Not(Reach::Job, Filter::NotReady);
        }
        let product = &self.contenders[contender];
        if product.policy.paused {
            return Outcome::Not(Reach::Lane, Filter::Paused);
        }
        if !product.policy.affords(job, product.budget_left) {
            // With nothing left no cap is low enough; with a little left another shape's may be.
            let reach = if product.budget_left == Some(Usd::ZERO) { Reach::Lane } else { Reach::Shape };
            return Outcome::Not(reach, Filter::Budget);
        }
        if let Some(limit) = job.concurrency.as_ref().map(|c| c.limit)
            && self.held_with_key(job) >= limit
        {
            return Outcome::Not(Reach::Shape, Filter::Concurrency);
        }
        let candidates = match self.fits.candidates(fit, &self.fleet, job, &self.contenders[contender].policy)
        {
            Ok(candidates) => candidates,
            Err(filter) => return Outcome::Not(Reach::Lane, filter),
        };
        let (fleet, now) = (&self.fleet, self.now);
        let place = |at: usize| Outcome::Place(at, candidates.terms_for(fleet, at, job));
        let excluded = |at: usize| {
            let factory = fleet.factories[at];
            feasible::is_unfit(job, factory) || feasible::is_excluded(job, factory, now)
        };
        let open = |at: &usize| candidates.rank(fleet, *at).is_some() && !excluded(*at);
        if let Some(to) = feasible::live_offer(job, now) {
            return fleet.index_of(to).filter(open).map_or(Outcome::Not(Reach::Job, Filter::Offered), place);
        }
        let Some(mut best) = candidates.best(fleet) else {
            let obstacle = candidates.obstacle(fleet);
            self.fits.exhaust(fit, obstacle);
            return Outcome::Not(Reach::Lane, obstacle);
        };
        if excluded(best) {
            match candidates.best_of(fleet, |at| !excluded(at)) {
                Some(next_best) => best = next_best,
                None => return Outcome::Not(Reach::Job, Filter::Excluded),
            }
        }
        // The row of candidates knows nothing of the job's own past, which can lift one factory only.
        let home = job.last_factory.as_ref().and_then(|last| fleet.index_of(last)).filter(open);
        if let Some(home) = home
            && home != best
        {
            let rank = |at| score::rank(&candidates.terms_for(fleet, at, job));
            if rank(home).total_cmp(&rank(best)).then(best.cmp(&home)).is_gt() {
                return place(home);
            }
        }
        place(best)
    }

    fn place(&mut self, contender: usize, job: &'a JobView, factory: usize, terms: Terms) {
        let product = &mut self.contenders[contender];
        product.held = product.held.saturating_add(1);
        if let Some(left) = &mut product.budget_left {
            *left = left.less(product.policy.reserve_for(job));
        }
        let weights = product.policy.weights;
        let score = aged(terms, job, weights, self.now, self.policy);
        self.plan.placements.push(Placement {
            job: job.id,
            rev: job.rev,
            factory: self.fleet.factories[factory].id.clone(),
            score,
        });
        self.fleet.take_seat(factory, job);
        if let Some(concurrency) = &job.concurrency {
            *self.placed_by_key.entry((&job.product, &concurrency.key)).or_insert(0) += 1;
        }
    }

    fn held_with_key(&mut self, job: &'a JobView) -> u32 {
        let Some(concurrency) = &job.concurrency else { return 0 };
        // Looked up once per key: what runs already counts like what was placed here.
        let key = (&job.product, concurrency.key.as_str());
        let snapshot = self.snapshot;
        *self.placed_by_key.entry(key).or_insert_with(|| feasible::running_with_key(job, snapshot))
    }

    fn unplaced(&mut self, lane: LaneId, reason: Filter, job: &JobView, count: usize) {
        let next = self.plan.unplaced.len();
        let at = *self.unplaced_at.entry((lane, reason)).or_insert(next);
        match self.plan.unplaced.get_mut(at) {
            Some(known) => known.count += count,
            None => self.plan.unplaced.push(Unplaced { job: job.id, count, reason }),
        }
    }
}

/// The score of a placement: the terms of the factory, and how long the job has waited.
pub(crate) fn aged(
    mut terms: Terms,
    job: &JobView,
    weights: Weights,
    now: Timestamp,
    policy: &Policy,
) -> Score {
    let starvation = score::starvation(now.since(job.enqueued_at), policy.starvation_after);
    terms[ScoreTerm::Starvation] = -score::sane(weights)[ScoreTerm::Starvation] * starvation;
    terms.into()
}

impl PartialEq for Upcoming<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Upcoming<'_> {}

impl PartialOrd for Upcoming<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Upcoming<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.class, self.age).cmp(&(other.class, other.age))
    }
}
