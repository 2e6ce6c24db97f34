//! Jobs that hang on others: deps, children, parents. Whoever ends leaves a word for those that hang on it, and a sweep
//! looks at these again; nothing is ever looked for among all jobs that wait.

use std::time::Duration;

use giga_domain::job::{DepsMode, FailurePolicy, JobKind, ShipMode};
use giga_domain::{
    Actor, EventKind, FactoryId, FailReason, Holder, HolderAction, Job, JobId, JobSpec, OperatorAction,
    Refusal, RunReport, Stage, TreeLimits, Usd, limits, transition,
};
use giga_ports::StoreError;
use giga_ports::store::{NewJob, Reconsider, Reconsidered, Submit, Submitted, SubtreeTotals};
use tokio::task::JoinSet;

use super::World;
use super::world::{fail, holder, product, user};

impl World {
    async fn composite(&self, change: impl FnOnce(&mut JobSpec)) -> Job {
        self.submitted(|spec| {
            spec.kind = JobKind::Composite;
            spec.ship = ShipMode::Auto;
            change(spec);
        })
        .await
    }

    fn new_child(&self, parent: JobId, change: impl FnOnce(&mut JobSpec)) -> NewJob {
        self.new_job(|spec| {
            spec.parent = Some(parent);
            spec.ship = ShipMode::Auto;
            change(spec);
        })
    }

    async fn child(&self, parent: JobId) -> Job {
        self.submit(self.new_child(parent, |_| ())).await
    }

    async fn claimed_and_ended(&self, job: JobId, by: &FactoryId, last: HolderAction) -> Job {
        let held = self.granted(job, by).await;
        self.hold(job, &holder(&held), [HolderAction::Start, last]).await.unwrap()
    }

    async fn ships(&self, job: JobId, by: &FactoryId) {
        let shipped = self.claimed_and_ended(job, by, HolderAction::Report(RunReport::default())).await;
        assert_eq!(shipped.stage(), Stage::Shipped);
    }

    async fn fails(&self, job: JobId, by: &FactoryId) {
        assert_eq!(self.claimed_and_ended(job, by, fail(false)).await.stage(), Stage::Failed);
    }

    /// Sweeps until nothing is left to look at; who moved, each once per move.
    async fn settle(&self) -> Vec<JobId> {
        let mut moved = Vec::new();
        loop {
            let swept = self.store.reconsider(Reconsider { limit: 100 }).await.unwrap();
            moved.extend(swept.moved);
            if swept.looked_at == 0 {
                return moved;
            }
        }
    }

    async fn stage(&self, id: JobId) -> Stage {
        self.job(id).await.stage()
    }

    async fn refused(&self, new: NewJob) -> StoreError {
        self.store.submit(Submit { jobs: vec![new], actor: user() }).await.unwrap_err()
    }
}

/// A thousand jobs wait for one: two sweeps of five hundred, one transaction each, and then not even a transaction.
pub async fn a_thousand_waiting_jobs_are_two_transactions(world: &World) {
    let mac = world.factory("mac-1").await;
    let parent = world.composite(|_| ()).await.id;
    let dep = world.submitted(|spec| spec.ship = ShipMode::Auto).await.id;
    let waiting: Vec<NewJob> =
        (0..1_000).map(|_| world.new_child(parent, |spec| spec.deps = vec![dep])).collect();
    let ids: Vec<JobId> = waiting.iter().map(|new| new.id).collect();
    world.store.submit(Submit { jobs: waiting, actor: user() }).await.unwrap();
    assert_eq!(world.store.reconsider(Reconsider { limit: 500 }).await.unwrap(), Reconsidered::default());
    world.ships(dep, &mac).await;
    let commits = world.store.stats().commits;
    let mut moved = Vec::new();
    for sweep in 1..=2 {
        let swept = world.store.reconsider(Reconsider { limit: 500 }).await.unwrap();
        assert_eq!((swept.moved.len(), swept.looked_at, swept.more), (500, 500, true), "sweep {sweep}");
        moved.extend(swept.moved);
    }
    assert_eq!(world.store.stats().commits - commits, 2);
    assert_eq!(world.store.reconsider(Reconsider { limit: 500 }).await.unwrap(), Reconsidered::default());
    assert_eq!(world.store.stats().commits - commits, 2, "where there is nothing to do nobody writes");
    moved.sort_unstable();
    assert_eq!(moved, ids);
    assert_eq!((world.count(Stage::Queued).await, world.count(Stage::Blocked).await), (1_000, 1));
}

/// What ends without anybody hanging on it leaves nothing behind.
pub async fn a_plain_job_leaves_nothing_to_look_at(world: &World) {
    let mac = world.factory("mac-1").await;
    for stage in [Stage::Shipped, Stage::Failed, Stage::DeadLetter, Stage::Cancelled] {
        world.in_stage(stage, &mac).await;
    }
    let commits = world.store.stats().commits;
    assert_eq!(world.store.reconsider(Reconsider { limit: 10 }).await.unwrap(), Reconsidered::default());
    assert_eq!(world.store.stats().commits, commits);
}

pub async fn deps_that_never_ship_fail_who_waits(world: &World) {
    let mac = world.factory("mac-1").await;
    let dep = world.submitted(|_| ()).await.id;
    let other = world.submitted(|spec| spec.ship = ShipMode::Auto).await.id;
    let all = world.submitted(|spec| spec.deps = vec![dep, other]).await.id;
    let any = world
        .submitted(|spec| {
            spec.deps = vec![dep, other];
            spec.deps_mode = DepsMode::Any;
        })
        .await
        .id;
    let behind = world.submitted(|spec| spec.deps = vec![all]).await.id;
    world.fails(dep, &mac).await;
    assert_eq!(world.settle().await, [], "a failed dep may yet be tried again");
    world.operate(dep, OperatorAction::Cancel).await.unwrap();
    assert_eq!(world.settle().await, [all]);
    let failed = world.job(all).await;
    assert_eq!(failed.failure().unwrap().reason, FailReason::DependencyFailed);
    assert_eq!(world.stage(any).await, Stage::Blocked, "the other one may yet ship");
    assert_eq!(world.stage(behind).await, Stage::Blocked, "a failed job may yet be tried again");
    world.ships(other, &mac).await;
    assert_eq!(world.settle().await, [any]);
    assert_eq!(world.stage(any).await, Stage::Queued);
    world.operate(all, OperatorAction::Cancel).await.unwrap();
    assert_eq!(world.settle().await, [behind]);
}

/// Nobody who ends later points to it: it is looked at on its own account.
pub async fn a_job_for_a_dep_that_is_lost_already_fails(world: &World) {
    let mac = world.factory("mac-1").await;
    for stage in [Stage::Cancelled, Stage::DeadLetter] {
        let lost = world.in_stage(stage, &mac).await.id;
        let job = world.submitted(|spec| spec.deps = vec![lost]).await;
        assert_eq!(job.stage(), Stage::Blocked);
        assert_eq!(world.settle().await, [job.id]);
        assert_eq!(world.stage(job.id).await, Stage::Failed);
    }
}

pub async fn a_composite_ships_when_its_children_have(world: &World) {
    let mac = world.factory("mac-1").await;
    let parent = world.composite(|_| ()).await;
    assert_eq!(parent.stage(), Stage::Blocked);
    assert_eq!(world.settle().await, [], "without children it waits for some");
    let (one, two) = (world.child(parent.id).await, world.child(parent.id).await);
    assert_eq!((one.stage(), one.spec.parent), (Stage::Queued, Some(parent.id)));
    world.ships(one.id, &mac).await;
    assert_eq!(world.settle().await, []);
    world.ships(two.id, &mac).await;
    assert_eq!(world.settle().await, [parent.id]);
    let events = world.events(parent.id).await;
    let last = events.last().unwrap();
    assert_eq!((last.kind, last.to), (EventKind::Shipped, Some(Stage::Shipped)));
    assert_eq!(last.actor, Actor::system("reconsider"));
    assert_eq!(world.settle().await, []);
}

pub async fn a_composite_is_never_claimed(world: &World) {
    let mac = world.factory("mac-1").await;
    let parent = world.composite(|_| ()).await;
    let claimed = world.claim(parent.id, &mac).await;
    assert!(matches!(claimed, giga_ports::store::Claimed::Lost(_)), "{claimed:?}");
}

pub async fn failing_fast_cancels_the_others(world: &World) {
    let mac = world.factory("mac-1").await;
    let parent = world.composite(|_| ()).await.id;
    let (bad, waiting, done) =
        (world.child(parent).await.id, world.child(parent).await.id, world.child(parent).await.id);
    let held = world.child(parent).await.id;
    let behind = world.submit(world.new_child(parent, |spec| spec.deps = vec![waiting])).await.id;
    world.ships(done, &mac).await;
    let held_job = world.granted(held, &mac).await;
    world.hold(held, &holder(&held_job), [HolderAction::Start]).await.unwrap();
    world.fails(bad, &mac).await;
    let moved = world.settle().await;
    assert_eq!(moved.len(), 4, "the composite and the three that had not ended: {moved:?}");
    let failed = world.job(parent).await;
    assert_eq!(failed.failure().unwrap().reason, FailReason::ChildFailed);
    for id in [waiting, held, behind] {
        assert_eq!(world.stage(id).await, Stage::Cancelled);
    }
    // The one that failed says why, and can be tried again.
    assert_eq!((world.stage(bad).await, world.stage(done).await), (Stage::Failed, Stage::Shipped));
    let cancelled = world.job(held).await;
    assert!(transition::was_cancelled(&cancelled, held_job.epoch), "its holder learns of it");
    assert_eq!(world.store.read().runs(held).await.unwrap().len(), 1);
    assert!(world.hold(held, &holder(&held_job), [fail(false)]).await.is_err());
}

pub async fn going_on_waits_for_all(world: &World) {
    let mac = world.factory("mac-1").await;
    let parent = world.composite(|spec| spec.on_failure = FailurePolicy::Continue).await.id;
    let (bad, good) = (world.child(parent).await.id, world.child(parent).await.id);
    world.fails(bad, &mac).await;
    assert_eq!(world.settle().await, []);
    assert_eq!((world.stage(parent).await, world.stage(good).await), (Stage::Blocked, Stage::Queued));
    world.ships(good, &mac).await;
    assert_eq!(world.settle().await, [parent]);
    assert_eq!(world.stage(parent).await, Stage::Failed);
}

pub async fn a_composite_recovers_with_its_child(world: &World) {
    let mac = world.factory("mac-1").await;
    let top = world.composite(|spec| spec.on_failure = FailurePolicy::Continue).await.id;
    let goes_on = |spec: &mut JobSpec| {
        spec.kind = JobKind::Composite;
        spec.on_failure = FailurePolicy::Continue;
    };
    let parent = world.submit(world.new_child(top, goes_on)).await.id;
    let bad = world.child(parent).await.id;
    world.fails(bad, &mac).await;
    assert_eq!(world.settle().await, [parent, top]);
    assert_eq!(world.stage(top).await, Stage::Failed);
    // Whoever retries the child says nothing to those above it.
    world.operate(bad, OperatorAction::Requeue).await.unwrap();
    assert_eq!(world.settle().await, [parent, top], "they wait for it again");
    assert_eq!((world.stage(parent).await, world.stage(top).await), (Stage::Blocked, Stage::Blocked));
    world.ships(bad, &mac).await;
    assert_eq!(world.settle().await, [parent, top]);
    assert_eq!((world.stage(parent).await, world.stage(top).await), (Stage::Shipped, Stage::Shipped));
    let kinds: Vec<EventKind> = world.events(parent).await.iter().map(|event| event.kind).collect();
    assert!(kinds.contains(&EventKind::ChildrenRetried), "{kinds:?}");
}

pub async fn a_composite_that_cancelled_children_stays_failed(world: &World) {
    let mac = world.factory("mac-1").await;
    let parent = world.composite(|_| ()).await.id;
    let (bad, other) = (world.child(parent).await.id, world.child(parent).await.id);
    world.fails(bad, &mac).await;
    world.settle().await;
    assert_eq!((world.stage(parent).await, world.stage(other).await), (Stage::Failed, Stage::Cancelled));
    world.operate(bad, OperatorAction::Requeue).await.unwrap();
    world.settle().await;
    world.ships(bad, &mac).await;
    world.settle().await;
    assert_eq!(world.stage(parent).await, Stage::Failed, "one of its children never ships");
    assert_eq!((world.stage(bad).await, world.stage(other).await), (Stage::Shipped, Stage::Cancelled));
}

pub async fn composites_in_composites(world: &World) {
    let mac = world.factory("mac-1").await;
    let top = world.composite(|_| ()).await.id;
    let middle = world.new_child(top, |spec| spec.kind = JobKind::Composite);
    let middle = world.submit(middle).await.id;
    let (one, two) = (world.child(middle).await.id, world.child(middle).await.id);
    let after = world.submitted(|spec| spec.deps = vec![top]).await.id;
    world.ships(one, &mac).await;
    world.ships(two, &mac).await;
    assert_eq!(world.settle().await, [middle, top, after]);
    assert_eq!(world.stage(after).await, Stage::Queued);
    // And downwards: what the top loses, everybody below loses.
    let top = world.composite(|_| ()).await.id;
    let middle = world.submit(world.new_child(top, |spec| spec.kind = JobKind::Composite)).await.id;
    let (deep, bad) = (world.child(middle).await.id, world.child(top).await.id);
    world.fails(bad, &mac).await;
    assert_eq!(world.settle().await, [top, middle, deep]);
    assert_eq!((world.stage(middle).await, world.stage(deep).await), (Stage::Cancelled, Stage::Cancelled));
}

pub async fn cancelling_takes_everything_below_along(world: &World) {
    let mac = world.factory("mac-1").await;
    let top = world.composite(|_| ()).await.id;
    let middle = world.submit(world.new_child(top, |spec| spec.kind = JobKind::Composite)).await.id;
    let (done, failed, queued) =
        (world.child(middle).await.id, world.child(middle).await.id, world.child(top).await.id);
    world.ships(done, &mac).await;
    let held = world.granted(world.child(middle).await.id, &mac).await;
    world.operate(top, OperatorAction::Cancel).await.unwrap();
    world.fails(failed, &mac).await;
    world.settle().await;
    for id in [middle, failed, queued, held.id] {
        assert_eq!(world.stage(id).await, Stage::Cancelled);
    }
    assert_eq!(world.stage(done).await, Stage::Shipped, "what is over stays as it is");
    // An agent's children go with it too.
    let agent = world.submitted(|_| ()).await.id;
    let child = world.child(agent).await.id;
    world.operate(agent, OperatorAction::Cancel).await.unwrap();
    assert_eq!(world.settle().await, [child]);
}

pub async fn an_agents_children_are_its_own_business(world: &World) {
    let mac = world.factory("mac-1").await;
    let agent = world.submitted(|spec| spec.ship = ShipMode::Auto).await.id;
    let held = world.granted(agent, &mac).await;
    let (failed, open) = (world.child(agent).await.id, world.child(agent).await.id);
    world.fails(failed, &mac).await;
    assert_eq!(world.settle().await, []);
    let done = [HolderAction::Start, HolderAction::Report(RunReport::default())];
    world.hold(agent, &holder(&held), done).await.unwrap();
    assert_eq!(world.settle().await, []);
    assert_eq!((world.stage(agent).await, world.stage(open).await), (Stage::Shipped, Stage::Queued));
}

pub async fn a_requeued_composite_looks_again(world: &World) {
    let mac = world.factory("mac-1").await;
    let parent = world.composite(|_| ()).await.id;
    let (bad, good) = (world.child(parent).await.id, world.child(parent).await.id);
    world.ships(good, &mac).await;
    world.fails(bad, &mac).await;
    assert_eq!(world.settle().await, [parent]);
    // As long as its child has failed, so has it.
    world.operate(parent, OperatorAction::Requeue).await.unwrap();
    assert_eq!(world.settle().await, [parent]);
    assert_eq!(world.stage(parent).await, Stage::Failed);
    world.operate(bad, OperatorAction::Requeue).await.unwrap();
    world.operate(parent, OperatorAction::Requeue).await.unwrap();
    assert_eq!(world.settle().await, []);
    world.ships(bad, &mac).await;
    assert_eq!(world.settle().await, [parent]);
    assert_eq!(world.stage(parent).await, Stage::Shipped);
    // And where nobody says anything to it.
    let parent = world.composite(|_| ()).await.id;
    let child = world.child(parent).await.id;
    world.fails(child, &mac).await;
    world.settle().await;
    world.operate(child, OperatorAction::Requeue).await.unwrap();
    assert_eq!(world.settle().await, [], "it failed fast, and waits for what comes of it");
    world.ships(child, &mac).await;
    assert_eq!(world.settle().await, [parent]);
    assert_eq!(world.stage(parent).await, Stage::Shipped);
}

/// A composite that failed fast has ended those that had not failed by then. Whoever is requeued later goes on, whatever
/// else it is looked at for.
pub async fn a_requeued_child_of_a_failed_composite_goes_on(world: &World) {
    let mac = world.factory("mac-1").await;
    let first = world.submitted(|spec| spec.ship = ShipMode::Auto).await.id;
    let second = world.submitted(|spec| spec.ship = ShipMode::Auto).await.id;
    let parent = world.composite(|_| ()).await.id;
    let any_of_both = |spec: &mut JobSpec| {
        spec.deps = vec![first, second];
        spec.deps_mode = DepsMode::Any;
    };
    let bad = world.submit(world.new_child(parent, any_of_both)).await.id;
    let other = world.child(parent).await.id;
    world.ships(first, &mac).await;
    assert_eq!(world.settle().await, [bad]);
    world.fails(bad, &mac).await;
    assert_eq!(world.store.reconsider(Reconsider { limit: 10 }).await.unwrap().moved, [parent]);
    // Faster than the sweep that brings its parent's end to the children.
    world.operate(bad, OperatorAction::Requeue).await.unwrap();
    assert_eq!(world.settle().await, [other]);
    // And long after it.
    world.ships(second, &mac).await;
    assert_eq!(world.settle().await, []);
    assert_eq!((world.stage(bad).await, world.stage(other).await), (Stage::Queued, Stage::Cancelled));
    // Who is cancelled stays cancelled, and takes everybody along.
    world.operate(parent, OperatorAction::Cancel).await.unwrap();
    assert_eq!(world.settle().await, [bad]);
    assert_eq!(world.stage(bad).await, Stage::Cancelled);
}

/// The dep of a composite is lost, and an operator lets the child run without it: nothing holds the composite back.
pub async fn a_composite_ships_without_a_dep_that_its_children_did_without(world: &World) {
    let mac = world.factory("mac-1").await;
    let dep = world.submitted(|_| ()).await.id;
    let parent = world.composite(|spec| spec.deps = vec![dep]).await.id;
    let child = world.submit(world.new_child(parent, |spec| spec.deps = vec![dep])).await.id;
    world.operate(dep, OperatorAction::Cancel).await.unwrap();
    world.settle().await;
    assert_eq!((world.stage(child).await, world.stage(parent).await), (Stage::Failed, Stage::Failed));
    world.operate(child, OperatorAction::Requeue).await.unwrap();
    world.operate(parent, OperatorAction::Requeue).await.unwrap();
    assert_eq!(world.settle().await, []);
    world.ships(child, &mac).await;
    assert_eq!(world.settle().await, [parent]);
    assert_eq!(world.stage(parent).await, Stage::Shipped);
}

/// What runs inside a job makes children for as long as it holds the job, and is answered again for those it has made.
pub async fn children_from_inside_are_fenced(world: &World) {
    let mac = world.factory("mac-1").await;
    let parent = world.submitted(|_| ()).await.id;
    let held = world.granted(parent, &mac).await;
    let under = |holder: &Holder| {
        let new = world.new_child(parent, |_| ());
        NewJob { under: Some(holder.clone()), ..new }
    };
    let own = holder(&held);
    let made = under(&own);
    world.store.submit(Submit { jobs: vec![made.clone()], actor: user() }).await.unwrap();
    let later = Holder { epoch: own.epoch.next(), ..own.clone() };
    let thief = Holder { factory: "mac-2".parse().unwrap(), ..own.clone() };
    for wrong in [later, thief] {
        let refused = world.refused(under(&wrong)).await;
        assert!(matches!(refused, StoreError::Refused(Refusal::Fenced { .. })), "{refused}");
    }
    world.hold(parent, &own, [HolderAction::Release { checkpoint: None }]).await.unwrap();
    let refused = world.refused(under(&own)).await;
    assert!(matches!(refused, StoreError::Refused(Refusal::Fenced { .. })), "{refused}");
    let again = world.store.submit(Submit { jobs: vec![made.clone()], actor: user() }).await.unwrap();
    assert!(matches!(&again[0], Submitted::Created(job) if job.id == made.id), "{again:?}");
}

pub async fn children_come_while_a_parent_takes_them(world: &World) {
    let mac = world.factory("mac-1").await;
    let parent = world.composite(|_| ()).await.id;
    let first = world.new_child(parent, |spec| spec.idempotency_key = Some("first".to_owned()));
    world.submit(first.clone()).await;
    world.ships(first.id, &mac).await;
    // A late child is waited for, where it comes before anybody looked.
    let late = world.child(parent).await.id;
    assert_eq!(world.settle().await, []);
    world.ships(late, &mac).await;
    assert_eq!(world.settle().await, [parent]);
    let refused = world.refused(world.new_child(parent, |_| ())).await;
    assert!(matches!(refused, StoreError::ParentClosed(id, _) if id == parent), "{refused}");
    // The same child again is no late one.
    let again = NewJob { id: world.new_job(|_| ()).id, ..first.clone() };
    let answer = world.store.submit(Submit { jobs: vec![again], actor: user() }).await.unwrap();
    assert!(matches!(&answer[0], Submitted::Existing(job) if job.id == first.id), "{answer:?}");
    // An agent takes some until it is over.
    for stage in Stage::ALL {
        let agent = world.in_stage(stage, &mac).await.id;
        let answer =
            world.store.submit(Submit { jobs: vec![world.new_child(agent, |_| ())], actor: user() }).await;
        assert_eq!(answer.is_ok(), !stage.is_terminal(), "{stage}: {answer:?}");
    }
    let unknown = world.refused(world.new_child(JobId::MIN, |_| ())).await;
    assert!(matches!(unknown, StoreError::UnknownParent(id) if id == JobId::MIN), "{unknown}");
    let elsewhere =
        NewJob { product: product("other"), ..world.new_child(world.composite(|_| ()).await.id, |_| ()) };
    let foreign = world.refused(elsewhere).await;
    assert!(matches!(foreign, StoreError::UnknownParent(_)), "{foreign}");
}

pub async fn children_go_so_deep(world: &World) {
    let mut parent = world.composite(|_| ()).await.id;
    for _ in 0..limits::DAG_DEPTH {
        parent = world.submit(world.new_child(parent, |spec| spec.kind = JobKind::Composite)).await.id;
    }
    let refused = world.refused(world.new_child(parent, |_| ())).await;
    assert!(matches!(refused, StoreError::TooDeep(limits::DAG_DEPTH)), "{refused}");
}

/// Also where several come at once: the parent is locked while its children are counted.
pub async fn children_are_so_many_and_so_deep_as_their_tree_may_grow(world: &World) {
    let parent = world.composite(|_| ()).await.id;
    let bounded = |parent: JobId, tree: TreeLimits| NewJob {
        tree,
        ..world.new_child(parent, |spec| spec.kind = JobKind::Composite)
    };
    let three = TreeLimits { children: 3, depth: 2 };
    let submit = |jobs: Vec<NewJob>| world.store.submit(Submit { jobs, actor: user() });
    let refused = submit((0..4).map(|_| bounded(parent, three)).collect()).await.unwrap_err();
    assert!(matches!(refused, StoreError::TooManyChildren { most: 3, .. }), "{refused}");
    let racing = (0..6).map(|_| submit(vec![bounded(parent, three)]));
    let answers = futures::future::join_all(racing).await;
    let made: Vec<_> = answers.iter().flatten().flatten().map(|made| made.job().id).collect();
    assert_eq!(made.len(), 3, "{answers:?}");
    let one_more = bounded(parent, TreeLimits { children: 4, depth: 2 });
    let again = submit(vec![one_more.clone()]).await.unwrap();
    assert_eq!(submit(vec![one_more]).await.unwrap(), again, "the same again is no fifth");

    let deep = submit(vec![bounded(made[0], three)]).await.unwrap()[0].job().id;
    let refused = submit(vec![bounded(deep, three)]).await.unwrap_err();
    assert!(matches!(refused, StoreError::TooDeep(2)), "{refused}");
}

pub async fn children_wait_for_what_their_composite_waits_for(world: &World) {
    let mac = world.factory("mac-1").await;
    let (dep, own) = (
        world.submitted(|spec| spec.ship = ShipMode::Auto).await.id,
        world.submitted(|spec| spec.ship = ShipMode::Auto).await.id,
    );
    let parent = world.composite(|spec| spec.deps = vec![dep]).await.id;
    for (deps, mode) in [(vec![], DepsMode::All), (vec![own], DepsMode::All), (vec![dep, own], DepsMode::Any)]
    {
        let refused = world
            .refused(world.new_child(parent, |spec| {
                spec.deps = deps;
                spec.deps_mode = mode;
            }))
            .await;
        assert!(matches!(refused, StoreError::ParentClosed(id, _) if id == parent), "{refused}");
    }
    let child = world.submit(world.new_child(parent, |spec| spec.deps = vec![own, dep])).await;
    assert_eq!(child.stage(), Stage::Blocked);
    world.ships(own, &mac).await;
    assert_eq!(world.settle().await, []);
    world.ships(dep, &mac).await;
    assert_eq!(world.settle().await, [child.id]);
    world.ships(child.id, &mac).await;
    assert_eq!(world.settle().await, [parent]);
}

fn round(error: &StoreError) -> Vec<JobId> {
    match error {
        StoreError::Cycle(round) => round.clone(),
        other => panic!("not a circle: {other}"),
    }
}

pub async fn a_circle_inside_a_submit_is_refused(world: &World) {
    let (mut one, mut two, mut three) = (world.new_job(|_| ()), world.new_job(|_| ()), world.new_job(|_| ()));
    one.spec.deps = vec![two.id];
    two.spec.deps = vec![three.id];
    three.spec.deps = vec![two.id];
    let (second, third) = (two.id, three.id);
    let before = world.snapshot(one.id).await;
    let error =
        world.store.submit(Submit { jobs: vec![one.clone(), two, three], actor: user() }).await.unwrap_err();
    assert_eq!(round(&error), [second, third, second]);
    assert_eq!(world.snapshot(one.id).await, before, "none was made");
    let own = world.new_job(|_| ());
    let own = NewJob { spec: JobSpec { deps: vec![own.id], ..own.spec.clone() }, ..own };
    let id = own.id;
    assert_eq!(round(&world.refused(own).await), [id, id]);
}

/// A composite waits for its children, so none of these may wait for it, however far the way round.
pub async fn a_circle_through_a_parent_is_refused(world: &World) {
    let top = world.composite(|_| ()).await.id;
    let parent = world.submit(world.new_child(top, |spec| spec.kind = JobKind::Composite)).await.id;
    let after = world.submitted(|spec| spec.deps = vec![top]).await.id;
    let later = world.submitted(|spec| spec.deps = vec![after]).await.id;
    for (dep, way) in [
        (parent, vec![parent]),
        (top, vec![top, parent]),
        (after, vec![after, top, parent]),
        (later, vec![later, after, top, parent]),
    ] {
        let child = world.new_child(parent, |spec| spec.deps = vec![dep]);
        let mut expected = vec![child.id];
        expected.extend(way);
        expected.push(child.id);
        assert_eq!(round(&world.refused(child).await), expected);
    }
    // Beside it, too: the first child waits for the second, and that one for the parent.
    let second = world.new_child(parent, |spec| spec.deps = vec![later]);
    let first = world.new_child(parent, |spec| spec.deps = vec![second.id]);
    let error = world.store.submit(Submit { jobs: vec![first, second], actor: user() }).await.unwrap_err();
    assert!(round(&error).contains(&top), "{error}");
    // Waiting for a sister is fine, and so is waiting for the agent whose child one is.
    let sister = world.child(parent).await.id;
    world.submit(world.new_child(parent, |spec| spec.deps = vec![sister])).await;
    let agent = world.submitted(|_| ()).await.id;
    world.submit(world.new_child(agent, |spec| spec.deps = vec![agent])).await;
}

/// Two submits that are each fine alone and a circle together: one of them is refused, whoever comes first, also where
/// they have no job in common.
pub async fn of_two_racing_halves_of_a_circle_one_is_refused(world: &World) {
    let handles = world.handles().await;
    for _ in 0..20 {
        let (left, right) = (world.composite(|_| ()).await.id, world.composite(|_| ()).await.id);
        let after_left = world.submitted(|spec| spec.deps = vec![left]).await.id;
        let after_right = world.submitted(|spec| spec.deps = vec![right]).await.id;
        let halves = [
            world.new_child(left, |spec| spec.deps = vec![after_right]),
            world.new_child(right, |spec| spec.deps = vec![after_left]),
        ];
        let mut racing = JoinSet::new();
        for (number, half) in halves.into_iter().enumerate() {
            let store = handles[number % handles.len()].clone();
            racing.spawn(async move { store.submit(Submit { jobs: vec![half], actor: user() }).await });
        }
        let answers = racing.join_all().await;
        let refused: Vec<_> = answers.iter().filter_map(|answer| answer.as_ref().err()).collect();
        assert_eq!(refused.len(), 1, "{answers:?}");
        assert_eq!(round(refused[0]).len(), 7);
    }
}

/// Waiters come, deps end and sweeps run, all at once and from two processes: in the end nobody has been forgotten.
pub async fn nobody_is_forgotten_in_a_race(world: &World) {
    let mac = world.factory("mac-1").await;
    let handles = world.handles().await;
    for round in 0..10 {
        let parent = world.composite(|_| ()).await.id;
        let dep = world.submitted(|spec| spec.ship = ShipMode::Auto).await.id;
        let key = format!("dep-{round}");
        let keyed = world.new_job(|spec| {
            spec.ship = ShipMode::Auto;
            spec.idempotency_key = Some(key.clone());
        });
        let keyed_id = world.submit(keyed.clone()).await.id;
        let (held, held_keyed) = (world.granted(dep, &mac).await, world.granted(keyed_id, &mac).await);
        let mut racing = JoinSet::new();
        let mut waiting = Vec::new();
        for number in 0..8 {
            // Every other one names the keyed job by a new id beside it, as a repeated submit does.
            let again = NewJob { id: world.new_job(|_| ()).id, ..keyed.clone() };
            let awaited = if number % 2 == 0 { dep } else { again.id };
            let child = world.new_child(parent, |spec| spec.deps = vec![awaited]);
            waiting.push(child.id);
            let jobs = if number % 2 == 0 { vec![child] } else { vec![again, child] };
            let store = handles[number % handles.len()].clone();
            racing.spawn(async move {
                store.submit(Submit { jobs, actor: user() }).await.unwrap();
            });
        }
        for (number, held) in [held, held_keyed].into_iter().enumerate() {
            let store = handles[(number + 1) % handles.len()].clone();
            racing.spawn(async move {
                let actions = vec![HolderAction::Start, HolderAction::Report(RunReport::default())];
                let write = giga_ports::store::Hold { job: held.id, holder: holder(&held), actions };
                store.hold(write).await.unwrap();
            });
        }
        for number in 0..4 {
            let store = handles[number % handles.len()].clone();
            racing.spawn(async move {
                store.reconsider(Reconsider { limit: 3 }).await.unwrap();
            });
        }
        racing.join_all().await;
        world.settle().await;
        for id in waiting {
            assert_eq!(world.stage(id).await, Stage::Queued, "{id} was forgotten in round {round}");
        }
    }
}

pub async fn a_tree_is_retired_when_all_of_it_is_over(world: &World) {
    let mac = world.factory("mac-1").await;
    let later = || world.advance(Duration::from_hours(1_000));
    let parent = world.composite(|_| ()).await.id;
    let (one, two) = (world.child(parent).await.id, world.child(parent).await.id);
    world.ships(one, &mac).await;
    later();
    assert_eq!(world.retire(world.now(), 10).await, 0, "its parent still counts on it");
    world.operate(parent, OperatorAction::Cancel).await.unwrap();
    later();
    assert_eq!(world.retire(world.now(), 10).await, 1, "the parent stays for the child that is open");
    assert!(world.store.read().job(one).await.unwrap().is_none());
    assert_eq!(world.settle().await, [two]);
    later();
    assert_eq!(world.retire(world.now(), 10).await, 2);
    // A word left for a job that is gone harms nobody.
    let agent = world.submitted(|_| ()).await.id;
    let child = world.child(agent).await.id;
    world.operate(child, OperatorAction::Cancel).await.unwrap();
    world.operate(agent, OperatorAction::Cancel).await.unwrap();
    later();
    assert_eq!(world.retire(world.now(), 10).await, 2);
    assert_eq!(world.settle().await, []);
    assert_eq!(world.store.reconsider(Reconsider { limit: 10 }).await.unwrap(), Reconsidered::default());
}

/// A composite that failed may be requeued, and then counts its deps again.
pub async fn deps_of_a_failed_composite_stay(world: &World) {
    let mac = world.factory("mac-1").await;
    let dep = world.submitted(|spec| spec.ship = ShipMode::Auto).await.id;
    let parent = world.composite(|spec| spec.deps = vec![dep]).await.id;
    let child = world.submit(world.new_child(parent, |spec| spec.deps = vec![dep])).await.id;
    world.ships(dep, &mac).await;
    world.settle().await;
    world.fails(child, &mac).await;
    assert_eq!(world.settle().await, [parent]);
    world.advance(Duration::from_hours(1_000));
    assert_eq!(world.retire(world.now(), 10).await, 0);
    world.operate(child, OperatorAction::Requeue).await.unwrap();
    world.operate(parent, OperatorAction::Requeue).await.unwrap();
    world.ships(child, &mac).await;
    assert_eq!(world.settle().await, [parent]);
    assert_eq!(world.stage(parent).await, Stage::Shipped);
}

pub async fn a_subtree_is_read_from_the_top(world: &World) {
    let top = world.composite(|_| ()).await.id;
    let left = world.submit(world.new_child(top, |spec| spec.kind = JobKind::Composite)).await.id;
    let right = world.submit(world.new_child(top, |spec| spec.kind = JobKind::Composite)).await.id;
    let deep = [world.child(right).await.id, world.child(left).await.id];
    world.submitted(|_| ()).await;
    let read = async |root, limit| {
        let found = world.store.read().subtree(root, limit).await.unwrap();
        found.into_iter().map(|job| job.id).collect::<Vec<_>>()
    };
    assert_eq!(read(top, 100).await, [top, left, right, deep[0], deep[1]]);
    assert_eq!(read(top, 3).await, [top, left, right]);
    assert_eq!(read(right, 100).await, [right, deep[0]]);
    assert_eq!(read(deep[0], 100).await, [deep[0]]);
    assert_eq!(read(JobId::MIN, 100).await, []);
    // Whole, with their leases.
    let mac = world.factory("mac-1").await;
    let held = world.granted(deep[0], &mac).await;
    assert_eq!(world.store.read().subtree(right, 100).await.unwrap()[1], held);
}

pub async fn a_persona_is_kept_with_the_text(world: &World) {
    let persona = Some("You are careful.\n".to_owned());
    let new = NewJob { persona: persona.clone(), ..world.new_job(|_| ()) };
    world.submit(new.clone()).await;
    assert_eq!(world.store.read().job_text(new.id).await.unwrap().unwrap().persona, persona);
    let plain = world.submitted(|_| ()).await.id;
    assert_eq!(world.store.read().job_text(plain).await.unwrap().unwrap().persona, None);
}

pub async fn what_a_tree_has_cost_is_one_look(world: &World) {
    let mac = world.factory("mac-1").await;
    let parent = world.composite(|_| ()).await.id;
    let mut ids = vec![parent];
    for cost in [0, 250_000, 1_000_000].map(Usd::from_micros) {
        let child = world.child(parent).await.id;
        let held = world.granted(child, &mac).await;
        let spend = |usd| HolderAction::Spend(giga_domain::Spend { usd, tokens: 1 });
        let release = HolderAction::Release { checkpoint: None };
        world.hold(child, &holder(&held), [HolderAction::Start, spend(cost), release]).await.unwrap();
        // A second run of the same job costs the same once more.
        let held = world.granted(child, &mac).await;
        let report = RunReport { cost: Some(cost), ..RunReport::default() };
        let actions = [HolderAction::Start, HolderAction::Report(report)];
        world.hold(child, &holder(&held), actions).await.unwrap();
        ids.push(child);
    }
    let mut charged = world.store.read().charged_to(&ids).await.unwrap();
    charged.retain(|(_, sum)| !sum.is_zero());
    charged.sort_unstable();
    assert_eq!(charged, [(ids[2], Usd::from_micros(500_000)), (ids[3], Usd::from_dollars(2))]);
    assert_eq!(world.store.read().charged_to(&[]).await.unwrap(), []);
    // The whole tree in one sum, with what is under way, and for composites nothing.
    let deeper = world.submit(world.new_child(parent, |spec| spec.kind = JobKind::Composite)).await.id;
    let running = world.child(deeper).await.id;
    let held = world.granted(running, &mac).await;
    let spend = HolderAction::Spend(giga_domain::Spend { usd: Usd::from_micros(7), tokens: 1 });
    world.hold(running, &holder(&held), [HolderAction::Start, spend]).await.unwrap();
    world.submitted(|_| ()).await;
    let totals = world.store.read().subtree_totals(parent).await.unwrap();
    assert_eq!(totals.by_stage[Stage::Shipped], 3);
    assert_eq!(totals.by_stage[Stage::Building], 1);
    assert_eq!(totals.by_stage.iter().map(|(_, count)| count).sum::<u64>(), 4, "{totals:?}");
    assert_eq!(totals.spent, Usd::from_micros(2_500_007));
    let totals = world.store.read().subtree_totals(running).await.unwrap();
    assert_eq!(
        (totals.by_stage.iter().map(|(_, count)| count).sum::<u64>(), totals.spent),
        (1, Usd::from_micros(7))
    );
    assert_eq!(world.store.read().subtree_totals(JobId::MIN).await.unwrap(), SubtreeTotals::default());
}
