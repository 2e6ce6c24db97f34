//! Merges of what is shipping: one factory at a time at a repository, announced before they are pushed, taken over from
//! whoever goes silent.

use std::time::Duration;

use giga_domain::factory::Advertised;
use giga_domain::job::{MergeBy, MergeCandidate};
use giga_domain::{
    EventKind, FactoryId, HolderAction, Job, MergeAction, MergeOutcome, MergeState, OperatorAction, Refusal,
    RequestChange, RequestNews, RunReport, Stage,
};
use giga_ports::StoreError;
use giga_ports::store::{Advertise, HoldMerge, HoldMerges, Reconsider, TakeMerges, TakeRequestNews};

use super::World;
use super::world::product;

const LEASE: Duration = Duration::from_secs(45);

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
        branch: Some("giga/job/x/1".to_owned()),
        commit: Some("c0ffee".to_owned()),
        ..RunReport::default()
    }
}

/// A job that ran on the factory, handed a branch over, and is to be shipped.
async fn shipping(world: &World, factory: &FactoryId, repo: Option<&str>) -> Job {
    let repo = repo.map(str::to_owned);
    let (job, holder) = world.building(factory, |spec| spec.repo = repo).await;
    world.hold(job.id, &holder, [HolderAction::Report(report())]).await.unwrap();
    world.operate(job.id, OperatorAction::Ship).await.unwrap()
}

/// One at a time.
async fn take(world: &World, factory: &FactoryId) -> Option<Job> {
    let mut taken = take_batch(world, factory, 1).await;
    assert!(taken.len() <= 1, "{taken:?}");
    taken.pop()
}

async fn take_batch(world: &World, factory: &FactoryId, most: u32) -> Vec<Job> {
    let batches = [(product("demo"), most)].into();
    let take = TakeMerges { factory: factory.clone(), lease: LEASE, batches };
    world.store.take_merges(take).await.unwrap()
}

async fn hold(
    world: &World,
    job: &Job,
    (factory, attempt): (&FactoryId, u32),
    action: MergeAction,
) -> Result<Job, StoreError> {
    let holds = vec![HoldMerge { job: job.id, attempt, action }];
    let held = world.store.hold_merges(HoldMerges { factory: factory.clone(), holds }).await?;
    Ok(held.into_iter().next().expect("one for one"))
}

fn push() -> MergeAction {
    let candidate = MergeCandidate {
        commit: "abc123".to_owned(),
        tip: Some("old".to_owned()),
        into: "main".to_owned(),
        head: None,
    };
    MergeAction::Push { candidate, lease: LEASE }
}

/// One of a batch whose last commit is pushed.
fn push_with(commit: &str, head: &str) -> MergeAction {
    let candidate = MergeCandidate {
        commit: commit.to_owned(),
        tip: Some("old".to_owned()),
        into: "main".to_owned(),
        head: Some(head.to_owned()),
    };
    MergeAction::Push { candidate, lease: LEASE }
}

fn merged() -> MergeAction {
    MergeAction::Settle(MergeOutcome::Merged {
        commit: "abc123".to_owned(),
        into: "main".to_owned(),
        note: Some("merged into origin/main as abc123".to_owned()),
    })
}

pub async fn a_job_is_shipped_once_it_is_in(world: &World) {
    let mac = factory(world, "mac-1").await;
    let job = shipping(world, &mac, Some("hello")).await;
    assert_eq!(job.stage(), Stage::Shipping);
    let taken = take(world, &mac).await.expect("a merge");
    assert_eq!((taken.id, taken.stage()), (job.id, Stage::Shipping));
    assert_eq!(taken.result.as_ref().unwrap().commit, "c0ffee");
    let pushing = hold(world, &job, (&mac, 1), push()).await.unwrap();
    assert!(pushing.merge.as_ref().unwrap().is_pushing());
    assert_eq!(world.job(job.id).await, pushing);
    let done = hold(world, &job, (&mac, 1), merged()).await.unwrap();
    assert_eq!(done.stage(), Stage::Shipped);
    let state = MergeState::Done {
        commit: "abc123".to_owned(),
        into: Some("main".to_owned()),
        note: Some("merged into origin/main as abc123".to_owned()),
    };
    assert_eq!(done.merge.as_ref().unwrap().state, state);
    assert_eq!(world.job(job.id).await, done);
    assert_eq!(take(world, &mac).await, None, "once is enough");
}

fn proposed() -> MergeAction {
    let text = str::to_owned;
    MergeAction::Settle(MergeOutcome::Proposed {
        commit: text("c0ffee"),
        into: text("main"),
        forge: text("github"),
        repo: text("acme/app"),
        branch: text("giga/request/x"),
    })
}

fn news(job: &Job, about: &str, change: RequestChange) -> TakeRequestNews {
    TakeRequestNews { job: job.id, news: RequestNews { about: about.to_owned(), change } }
}

pub async fn what_is_proposed_waits_for_people_and_holds_nobody_up(world: &World) {
    let mac = factory(world, "mac-1").await;
    let by_request = |spec: &mut giga_domain::JobSpec| {
        spec.repo = Some("hello".to_owned());
        spec.merge.by = Some(MergeBy::PullRequest);
    };
    let (job, holder) = world.building(&mac, by_request).await;
    world.hold(job.id, &holder, [HolderAction::Report(report())]).await.unwrap();
    world.operate(job.id, OperatorAction::Ship).await.unwrap();
    let next = shipping(world, &mac, Some("hello")).await;
    let taken = take_batch(world, &mac, 8).await;
    assert_eq!(taken.iter().map(|job| job.id).collect::<Vec<_>>(), [job.id], "it is shown alone");
    hold(world, &job, (&mac, 1), proposed()).await.unwrap();
    assert_eq!(take(world, &mac).await.expect("the next of the queue").id, next.id);
    world.advance(LEASE);
    assert_eq!(take(world, &mac).await.expect("nobody settled it").id, next.id, "the other waits for people");

    let opened = RequestChange::Opened { number: 7, url: "https://forge/7".to_owned() };
    let told = world.store.request_news(news(&job, "c0ffee", opened.clone())).await.unwrap();
    assert_eq!(told.merge.as_ref().unwrap().request.as_ref().unwrap().opened.as_ref().unwrap().number, 7);
    assert_eq!(world.job(job.id).await, told);
    let again = world.store.request_news(news(&job, "c0ffee", opened)).await.unwrap();
    assert_eq!(again.rev, told.rev, "heard before");
    let merged = RequestChange::Merged { commit: "abc123".to_owned(), into: "main".to_owned() };
    let old = world.store.request_news(news(&job, "older", merged.clone())).await.unwrap_err();
    assert!(matches!(old, StoreError::Refused(Refusal::NotClaimable(_))), "{old}");
    assert_eq!(world.job(job.id).await, told);
    let done = world.store.request_news(news(&job, "c0ffee", merged)).await.unwrap();
    assert_eq!(done.stage(), Stage::Shipped);
    assert_eq!(world.job(job.id).await, done);
}

pub async fn dependents_wait_until_it_is_in(world: &World) {
    let mac = factory(world, "mac-1").await;
    let job = shipping(world, &mac, Some("hello")).await;
    let dependent = world.submitted(|spec| spec.deps = vec![job.id]).await;
    assert_eq!(dependent.stage(), Stage::Blocked);
    take(world, &mac).await.expect("a merge");
    hold(world, &job, (&mac, 1), push()).await.unwrap();
    world.store.reconsider(Reconsider { limit: 10 }).await.unwrap();
    assert_eq!(world.job(dependent.id).await.stage(), Stage::Blocked);
    hold(world, &job, (&mac, 1), merged()).await.unwrap();
    world.store.reconsider(Reconsider { limit: 10 }).await.unwrap();
    assert_eq!(world.job(dependent.id).await.stage(), Stage::Queued);
}

pub async fn a_repository_is_merged_into_by_one_factory_at_a_time(world: &World) {
    let (mac, linux) = (factory(world, "mac-1").await, factory(world, "linux-1").await);
    let first = shipping(world, &mac, Some("hello")).await;
    let second = shipping(world, &linux, Some("hello")).await;
    let elsewhere = shipping(world, &linux, Some("other")).await;
    assert_eq!(take(world, &mac).await.map(|job| job.id), Some(first.id), "in the order of shipping");
    assert_eq!(take(world, &linux).await.map(|job| job.id), Some(elsewhere.id), "another repository");
    hold(world, &elsewhere, (&linux, 1), merged()).await.unwrap();
    assert_eq!(take(world, &linux).await, None, "somebody is at it");
    hold(world, &first, (&mac, 1), merged()).await.unwrap();
    assert_eq!(take(world, &linux).await.map(|job| job.id), Some(second.id));
}

pub async fn a_repeated_settlement_changes_nothing(world: &World) {
    let mac = factory(world, "mac-1").await;
    let job = shipping(world, &mac, Some("hello")).await;
    take(world, &mac).await.expect("a merge");
    let done = hold(world, &job, (&mac, 1), merged()).await.unwrap();
    let before = world.snapshot(job.id).await;
    assert_eq!(hold(world, &job, (&mac, 1), merged()).await.unwrap(), done);
    assert_eq!(world.snapshot(job.id).await, before);
}

pub async fn a_silent_holder_is_replaced_and_what_it_announced_is_finished(world: &World) {
    let (mac, linux) = (factory(world, "mac-1").await, factory(world, "linux-1").await);
    let job = shipping(world, &mac, Some("hello")).await;
    take(world, &mac).await.expect("a merge");
    world.advance(Duration::from_secs(40));
    hold(world, &job, (&mac, 1), MergeAction::Renew { lease: LEASE }).await.unwrap();
    world.advance(Duration::from_secs(40));
    assert_eq!(take(world, &linux).await, None, "it was renewed");
    hold(world, &job, (&mac, 1), push()).await.unwrap();
    world.advance(LEASE);
    let taken = take(world, &linux).await.expect("taken over");
    assert!(taken.merge.as_ref().unwrap().is_pushing(), "{:?}", taken.merge);
    let before = world.snapshot(job.id).await;
    assert!(matches!(hold(world, &job, (&mac, 1), merged()).await, Err(StoreError::Refused(_))));
    assert_eq!(world.snapshot(job.id).await, before);
    hold(world, &job, (&linux, 2), merged()).await.unwrap();
}

pub async fn whoever_ran_the_job_goes_first(world: &World) {
    let (mac, linux) = (factory(world, "mac-1").await, factory(world, "linux-1").await);
    shipping(world, &mac, Some("hello")).await;
    assert_eq!(take(world, &linux).await, None);
    world.advance(Duration::from_mins(1));
    assert!(take(world, &linux).await.is_some(), "but not for ever");
}

pub async fn an_outage_is_waited_for_and_a_conflict_is_done_again(world: &World) {
    let mac = factory(world, "mac-1").await;
    let job = shipping(world, &mac, Some("hello")).await;
    take(world, &mac).await.expect("a merge");
    let away = MergeOutcome::Unreachable { detail: "origin is away".to_owned() };
    hold(world, &job, (&mac, 1), MergeAction::Settle(away)).await.unwrap();
    assert_eq!(take(world, &mac).await, None, "after a pause");
    world.advance(Duration::from_mins(10));
    take(world, &mac).await.expect("another attempt");
    let conflict = MergeOutcome::Conflict { detail: "src/lib.rs".to_owned() };
    let back = hold(world, &job, (&mac, 2), MergeAction::Settle(conflict)).await.unwrap();
    assert_eq!(back.stage(), Stage::Queued);
    assert_eq!(world.job(job.id).await, back);
    assert_eq!(take(world, &mac).await, None);
    let kinds: Vec<_> = world.feed().await.iter().map(|event| event.kind).collect();
    assert!(
        kinds.contains(&EventKind::MergeFailed) && kinds.contains(&EventKind::MergeSentBack),
        "{kinds:?}"
    );
}

pub async fn what_has_nothing_to_merge_is_shipped_at_once(world: &World) {
    let mac = factory(world, "mac-1").await;
    assert_eq!(shipping(world, &mac, None).await.stage(), Stage::Shipped, "no repository");
    let (job, holder) = world.building(&mac, |spec| spec.repo = Some("hello".to_owned())).await;
    world.hold(job.id, &holder, [HolderAction::Report(RunReport::default())]).await.unwrap();
    assert_eq!(
        world.operate(job.id, OperatorAction::Ship).await.unwrap().stage(),
        Stage::Shipped,
        "no branch"
    );
    assert_eq!(take(world, &mac).await, None);
}

pub async fn a_batch_is_of_one_branch_and_in_order(world: &World) {
    let (mac, linux) = (factory(world, "mac-1").await, factory(world, "linux-1").await);
    let first = shipping(world, &mac, Some("hello")).await;
    let elsewhere = shipping(world, &mac, Some("other")).await;
    // Made by another factory, which would go first alone.
    let second = shipping(world, &linux, Some("hello")).await;
    let third = shipping(world, &mac, Some("hello")).await;
    let fourth = shipping(world, &mac, Some("hello")).await;
    let ids = |jobs: Vec<Job>| jobs.into_iter().map(|job| job.id).collect::<Vec<_>>();
    assert_eq!(ids(take_batch(world, &mac, 3).await), [first.id, second.id, third.id]);
    assert_eq!(ids(take_batch(world, &linux, 3).await), [], "somebody is at it");
    assert_eq!(ids(take_batch(world, &mac, 3).await), [elsewhere.id]);
    for job in [&first, &second, &third] {
        hold(world, job, (&mac, 1), merged()).await.unwrap();
    }
    assert_eq!(ids(take_batch(world, &mac, 3).await), [fourth.id]);
}

pub async fn branches_of_one_repository_are_queues_of_their_own(world: &World) {
    let (mac, linux) = (factory(world, "mac-1").await, factory(world, "linux-1").await);
    let into_main = shipping(world, &mac, Some("hello")).await;
    let (job, holder) = world
        .building(&linux, |spec| {
            spec.repo = Some("hello".to_owned());
            spec.target = Some("release".to_owned());
        })
        .await;
    world.hold(job.id, &holder, [HolderAction::Report(report())]).await.unwrap();
    world.operate(job.id, OperatorAction::Ship).await.unwrap();
    let taken = take_batch(world, &mac, 5).await;
    assert_eq!(taken.iter().map(|job| job.id).collect::<Vec<_>>(), [into_main.id]);
    assert_eq!(take(world, &linux).await.map(|job| job.id), Some(job.id));
}

pub async fn a_batch_is_announced_whole_or_not_at_all(world: &World) {
    let mac = factory(world, "mac-1").await;
    let first = shipping(world, &mac, Some("hello")).await;
    let second = shipping(world, &mac, Some("hello")).await;
    assert_eq!(take_batch(world, &mac, 2).await.len(), 2);
    world.operate(second.id, OperatorAction::Cancel).await.unwrap();
    let before = (world.snapshot(first.id).await, world.snapshot(second.id).await);
    let announce = |attempt: u32| HoldMerges {
        factory: mac.clone(),
        holds: vec![
            HoldMerge { job: first.id, attempt: 1, action: push_with("m1", "m2") },
            HoldMerge { job: second.id, attempt, action: push_with("m2", "m2") },
        ],
    };
    assert!(matches!(world.store.hold_merges(announce(1)).await, Err(StoreError::Refused(_))));
    assert_eq!((world.snapshot(first.id).await, world.snapshot(second.id).await), before);
}

pub async fn what_was_announced_together_is_taken_over_together(world: &World) {
    let (mac, linux) = (factory(world, "mac-1").await, factory(world, "linux-1").await);
    let first = shipping(world, &mac, Some("hello")).await;
    let second = shipping(world, &mac, Some("hello")).await;
    let later = shipping(world, &mac, Some("hello")).await;
    assert_eq!(take_batch(world, &mac, 2).await.len(), 2);
    let holds = vec![
        HoldMerge { job: first.id, attempt: 1, action: push_with("m1", "m2") },
        HoldMerge { job: second.id, attempt: 1, action: push_with("m2", "m2") },
    ];
    world.store.hold_merges(HoldMerges { factory: mac.clone(), holds }).await.unwrap();
    world.advance(LEASE);
    let taken = take_batch(world, &linux, 5).await;
    assert_eq!(taken.iter().map(|job| job.id).collect::<Vec<_>>(), [first.id, second.id], "not {}", later.id);
    for job in &taken {
        let merge = job.merge.as_ref().unwrap();
        assert_eq!((merge.attempt, merge.candidate().unwrap().pushed()), (2, "m2"));
    }
}
