//! Orders to merge what has shipped: given to one factory at a time, settled once, taken over when they are not.

use std::time::Duration;

use giga_domain::factory::Advertised;
use giga_domain::{
    EventKind, FactoryId, HolderAction, Job, Merge, MergeOutcome, OperatorAction, RunReport, Stage,
};
use giga_ports::StoreError;
use giga_ports::store::{Advertise, SettleMerge, TakeMerge};

use super::World;

const PATIENCE: Duration = Duration::from_mins(5);

/// One that can get any repository.
async fn factory(world: &World, name: &str) -> FactoryId {
    let id = world.factory(name).await;
    let known = world.store.read().factory(&id).await.unwrap().unwrap();
    let advertised = Advertised { can_clone: true, ..known.advertised };
    world.store.advertise(Advertise { factory: id.clone(), advertised }).await.unwrap();
    id
}

fn report() -> RunReport {
    RunReport {
        branch: Some("aq/job/x/1".to_owned()),
        commit: Some("c0ffee".to_owned()),
        ..RunReport::default()
    }
}

/// A job that ran on the factory, handed a branch over, and was shipped.
async fn shipped(world: &World, factory: &FactoryId, repo: Option<&str>) -> Job {
    let repo = repo.map(str::to_owned);
    let (job, holder) = world.building(factory, |spec| spec.repo = repo).await;
    world.hold(job.id, &holder, [HolderAction::Report(report())]).await.unwrap();
    world.operate(job.id, OperatorAction::Ship).await.unwrap()
}

async fn settle(
    world: &World,
    job: &Job,
    factory: &FactoryId,
    outcome: MergeOutcome,
) -> Result<Job, StoreError> {
    let attempt = match &world.job(job.id).await.merge {
        Some(Merge::Taken { attempt, .. }) => *attempt,
        _ => 1,
    };
    let settled = SettleMerge { job: job.id, factory: factory.clone(), attempt, outcome };
    world.store.settle_merge(settled).await
}

fn merged() -> MergeOutcome {
    MergeOutcome::Merged { commit: "abc123".to_owned() }
}

pub async fn an_order_is_for_one_factory_at_a_time(world: &World) {
    let mac = factory(world, "mac-1").await;
    let job = shipped(world, &mac, Some("hello")).await;
    assert!(matches!(job.merge, Some(Merge::Waiting { attempt: 1, .. })), "{:?}", job.merge);
    let taken = world
        .store
        .take_merge(TakeMerge { factory: mac.clone(), lease: PATIENCE })
        .await
        .unwrap()
        .expect("the order");
    assert_eq!((taken.id, taken.stage()), (job.id, Stage::Shipped));
    assert_eq!(taken.result.as_ref().unwrap().commit, "c0ffee");
    assert_eq!(
        world.store.take_merge(TakeMerge { factory: mac.clone(), lease: PATIENCE }).await.unwrap(),
        None
    );
    let done = settle(world, &job, &mac, merged()).await.unwrap();
    assert_eq!(done.merge, Some(Merge::Done { commit: "abc123".to_owned() }));
    assert_eq!(world.job(job.id).await, done);
    assert_eq!(
        world.store.take_merge(TakeMerge { factory: mac, lease: PATIENCE }).await.unwrap(),
        None,
        "once is enough"
    );
}

pub async fn a_repeated_settlement_changes_nothing(world: &World) {
    let mac = factory(world, "mac-1").await;
    let job = shipped(world, &mac, Some("hello")).await;
    world.store.take_merge(TakeMerge { factory: mac.clone(), lease: PATIENCE }).await.unwrap().unwrap();
    let done = settle(world, &job, &mac, merged()).await.unwrap();
    let before = world.snapshot(job.id).await;
    assert_eq!(settle(world, &job, &mac, merged()).await.unwrap(), done);
    assert_eq!(world.snapshot(job.id).await, before);
}

pub async fn an_order_that_nobody_settled_goes_to_the_next_and_the_first_is_not_heard_again(world: &World) {
    let (mac, linux) = (factory(world, "mac-1").await, factory(world, "linux-1").await);
    let job = shipped(world, &mac, Some("hello")).await;
    world.store.take_merge(TakeMerge { factory: mac.clone(), lease: PATIENCE }).await.unwrap().unwrap();
    assert_eq!(
        world.store.take_merge(TakeMerge { factory: linux.clone(), lease: PATIENCE }).await.unwrap(),
        None
    );
    world.advance(PATIENCE);
    let taken = world
        .store
        .take_merge(TakeMerge { factory: linux.clone(), lease: PATIENCE })
        .await
        .unwrap()
        .expect("taken over");
    assert!(matches!(&taken.merge, Some(Merge::Taken { attempt: 2, factory, .. }) if *factory == linux));
    let before = world.snapshot(job.id).await;
    let late = SettleMerge { job: job.id, factory: mac, attempt: 1, outcome: merged() };
    assert!(matches!(world.store.settle_merge(late).await, Err(StoreError::Refused(_))));
    assert_eq!(world.snapshot(job.id).await, before);
    settle(world, &job, &linux, merged()).await.unwrap();
}

pub async fn whoever_ran_the_job_goes_first(world: &World) {
    let (mac, linux) = (factory(world, "mac-1").await, factory(world, "linux-1").await);
    shipped(world, &mac, Some("hello")).await;
    assert_eq!(
        world.store.take_merge(TakeMerge { factory: linux.clone(), lease: PATIENCE }).await.unwrap(),
        None
    );
    world.advance(Duration::from_mins(1));
    assert!(
        world.store.take_merge(TakeMerge { factory: linux, lease: PATIENCE }).await.unwrap().is_some(),
        "but not for ever"
    );
}

pub async fn a_conflict_waits_for_people_and_a_failure_is_tried_again(world: &World) {
    let mac = factory(world, "mac-1").await;
    let job = shipped(world, &mac, Some("hello")).await;
    world.store.take_merge(TakeMerge { factory: mac.clone(), lease: PATIENCE }).await.unwrap().unwrap();
    let failed = MergeOutcome::Failed { detail: "origin is away".to_owned() };
    settle(world, &job, &mac, failed).await.unwrap();
    assert_eq!(
        world.store.take_merge(TakeMerge { factory: mac.clone(), lease: PATIENCE }).await.unwrap(),
        None,
        "after a pause"
    );
    world.advance(Duration::from_mins(10));
    world
        .store
        .take_merge(TakeMerge { factory: mac.clone(), lease: PATIENCE })
        .await
        .unwrap()
        .expect("another attempt");
    let conflict = MergeOutcome::Conflict { detail: "src/lib.rs".to_owned() };
    let stuck = settle(world, &job, &mac, conflict).await.unwrap();
    assert_eq!(stuck.merge, Some(Merge::Conflict { detail: "src/lib.rs".to_owned() }));
    world.advance(Duration::from_hours(24));
    assert_eq!(world.store.take_merge(TakeMerge { factory: mac, lease: PATIENCE }).await.unwrap(), None);
    let kinds: Vec<_> = world.feed().await.iter().map(|event| event.kind).collect();
    assert!(
        kinds.contains(&EventKind::MergeFailed) && kinds.contains(&EventKind::MergeConflict),
        "{kinds:?}"
    );
}

pub async fn nothing_to_merge_is_no_order(world: &World) {
    let mac = factory(world, "mac-1").await;
    assert_eq!(shipped(world, &mac, None).await.merge, None, "no repository");
    let (job, holder) = world.building(&mac, |spec| spec.repo = Some("hello".to_owned())).await;
    world.hold(job.id, &holder, [HolderAction::Report(RunReport::default())]).await.unwrap();
    assert_eq!(world.operate(job.id, OperatorAction::Ship).await.unwrap().merge, None, "no branch");
    assert_eq!(world.store.take_merge(TakeMerge { factory: mac, lease: PATIENCE }).await.unwrap(), None);
}
