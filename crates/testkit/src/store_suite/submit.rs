//! Making jobs: once, whole, and in the right stage.

use std::time::Duration;

use giga_domain::job::DepsMode;
use giga_domain::{EventKind, EventSeq, JobId, Rev, Stage, State};
use giga_ports::StoreError;
use giga_ports::store::{JobFilter, NewJob, Submit, Submitted};

use super::World;
use super::world::{product, user};

async fn made(world: &World) -> usize {
    world.store.read().list_jobs(&JobFilter::default(), None, 10_000).await.unwrap().len()
}

fn keyed(world: &World, key: &str) -> NewJob {
    world.new_job(|spec| spec.idempotency_key = Some(key.to_owned()))
}

/// Another attempt at the same: new id, same key and content.
fn again(world: &World, first: &NewJob) -> NewJob {
    NewJob { id: world.new_job(|_| ()).id, ..first.clone() }
}

pub async fn created_and_readable(world: &World) {
    let new = world.new_job(|_| ());
    let answers = world.store.submit(Submit { jobs: vec![new.clone()], actor: user() }).await.unwrap();
    let [Submitted::Created(job)] = answers.as_slice() else { panic!("{answers:?}") };
    let now = world.now();
    assert_eq!((job.id, &job.product, &job.spec), (new.id, &new.product, &new.spec));
    assert_eq!(job.state, State::Queued { since: now, ready_at: now, target: None });
    assert_eq!((job.rev, job.last_event, job.attempts), (Rev(1), EventSeq(1), 0));
    assert_eq!((job.created_at, job.updated_at, job.enqueued_at), (now, now, now));
    assert_eq!(world.job(new.id).await, *job);
    let events = world.events(new.id).await;
    assert_eq!(events.len(), 1);
    assert_eq!(
        (events[0].kind, events[0].from, events[0].to),
        (EventKind::Submitted, None, Some(Stage::Queued))
    );
    assert_eq!(world.count(Stage::Queued).await, 1);
}

pub async fn a_key_makes_one_job(world: &World) {
    let first = keyed(world, "ticket-812");
    let job = world.submit(first.clone()).await;
    let before = world.snapshot(job.id).await;
    let second = again(world, &first);
    let answers = world.store.submit(Submit { jobs: vec![second], actor: user() }).await.unwrap();
    assert_eq!(answers, [Submitted::Existing(job.clone())]);
    let reads = world.store.read();
    assert_eq!(reads.job_by_key(&job.product, "ticket-812").await.unwrap(), Some(job.clone()));
    assert_eq!(reads.job_by_key(&job.product, "ticket-81").await.unwrap(), None);
    assert_eq!(reads.job_by_key(&product("elsewhere"), "ticket-812").await.unwrap(), None);
    assert_eq!(world.snapshot(job.id).await, before);
    assert_eq!(made(world).await, 1);
}

pub async fn a_key_with_another_body_is_refused(world: &World) {
    let first = keyed(world, "ticket-812");
    let job = world.submit(first.clone()).await;
    let other = NewJob { fingerprint: "another".to_owned(), ..again(world, &first) };
    let error = world.store.submit(Submit { jobs: vec![other], actor: user() }).await.unwrap_err();
    assert!(
        matches!(&error, StoreError::KeyReused { key, job: id } if key == "ticket-812" && *id == job.id),
        "{error:?}"
    );
    assert_eq!(made(world).await, 1);
}

pub async fn a_key_belongs_to_its_product(world: &World) {
    let first = keyed(world, "ticket-812");
    world.submit(first.clone()).await;
    let elsewhere = NewJob { product: product("other"), ..again(world, &first) };
    let answers = world.store.submit(Submit { jobs: vec![elsewhere], actor: user() }).await.unwrap();
    assert!(matches!(&answers[0], Submitted::Created(_)), "{answers:?}");
    assert_eq!(made(world).await, 2);
}

pub async fn a_repeated_command_makes_one_job(world: &World) {
    for new in [world.new_job(|_| ()), keyed(world, "ticket-812")] {
        let first = world.store.submit(Submit { jobs: vec![new.clone()], actor: user() }).await.unwrap();
        let before = world.snapshot(new.id).await;
        let second = world.store.submit(Submit { jobs: vec![new.clone()], actor: user() }).await.unwrap();
        assert_eq!(first, second, "a repetition is answered as the first time");
        assert_eq!(world.snapshot(new.id).await, before);
    }
    assert_eq!(made(world).await, 2);
}

pub async fn a_repeated_command_of_many_makes_each_once(world: &World) {
    let parent = world.new_job(|_| ());
    let child = world.new_job(|spec| spec.deps = vec![parent.id]);
    let jobs = vec![parent, keyed(world, "k"), child];
    let first = world.store.submit(Submit { jobs: jobs.clone(), actor: user() }).await.unwrap();
    assert_eq!(world.store.submit(Submit { jobs, actor: user() }).await.unwrap(), first);
    assert_eq!((made(world).await, world.feed().await.len()), (3, 3));
}

pub async fn an_unknown_dep_is_refused(world: &World) {
    let missing = JobId::MIN;
    let new = world.new_job(|spec| spec.deps = vec![missing]);
    let error = world.store.submit(Submit { jobs: vec![new.clone()], actor: user() }).await.unwrap_err();
    assert!(matches!(error, StoreError::UnknownDep(dep) if dep == missing), "{error:?}");
    assert_eq!(world.store.read().job(new.id).await.unwrap(), None);
}

pub async fn a_dep_of_another_product_is_refused(world: &World) {
    let foreign = NewJob { product: product("other"), ..world.new_job(|_| ()) };
    let child = world.new_job(|spec| spec.deps = vec![foreign.id]);
    // Inside one submit, and when the foreign job was there before.
    for jobs in [vec![foreign.clone(), child.clone()], vec![foreign.clone()], vec![child.clone()]] {
        let names_it = jobs.iter().any(|new| new.id == child.id);
        let answer = world.store.submit(Submit { jobs, actor: user() }).await;
        if names_it {
            assert!(matches!(answer, Err(StoreError::UnknownDep(dep)) if dep == foreign.id), "{answer:?}");
        } else {
            answer.unwrap();
        }
    }
}

pub async fn unmet_deps_block(world: &World) {
    let dep = world.submitted(|_| ()).await;
    let job = world.submitted(|spec| spec.deps = vec![dep.id]).await;
    assert_eq!(job.state, State::Blocked);
    assert_eq!(world.job(job.id).await, job);
    assert_eq!((world.count(Stage::Queued).await, world.count(Stage::Blocked).await), (1, 1));
}

pub async fn shipped_deps_do_not_block(world: &World) {
    let builder = world.factory("mac-1").await;
    let shipped = world.in_stage(Stage::Shipped, &builder).await;
    let failed = world.in_stage(Stage::Failed, &builder).await;
    let free = world.submitted(|spec| spec.deps = vec![shipped.id]).await;
    assert_eq!(free.stage(), Stage::Queued);
    let waits = world.submitted(|spec| spec.deps = vec![shipped.id, failed.id]).await;
    assert_eq!(waits.stage(), Stage::Blocked);
}

pub async fn any_needs_one_dep(world: &World) {
    let builder = world.factory("mac-1").await;
    let shipped = world.in_stage(Stage::Shipped, &builder).await.id;
    let (one, two) = (world.submitted(|_| ()).await.id, world.submitted(|_| ()).await.id);
    let any_of = |deps: Vec<JobId>| {
        world.submitted(|spec| {
            spec.deps = deps;
            spec.deps_mode = DepsMode::Any;
        })
    };
    assert_eq!(any_of(vec![one, two]).await.stage(), Stage::Blocked);
    assert_eq!(any_of(vec![one, shipped]).await.stage(), Stage::Queued);
    assert_eq!(any_of(vec![]).await.stage(), Stage::Queued, "nothing to wait for");
}

pub async fn deps_inside_one_submit(world: &World) {
    let parent = world.new_job(|_| ());
    let child = world.new_job(|spec| spec.deps = vec![parent.id]);
    // Whichever comes first.
    for jobs in [vec![parent.clone(), child.clone()], {
        let parent = world.new_job(|_| ());
        vec![world.new_job(|spec| spec.deps = vec![parent.id]), parent]
    }] {
        let answers = world.store.submit(Submit { jobs, actor: user() }).await.unwrap();
        let mut stages: Vec<_> = answers.iter().map(|answer| answer.job().stage()).collect();
        stages.sort_unstable();
        assert_eq!(stages, [Stage::Queued, Stage::Blocked]);
    }
}

/// A chain is submitted again, its first link under a key: the second link waits for the job that exists, not
/// for an id that was never made.
pub async fn a_dep_inside_the_submit_that_existed_before_is_followed(world: &World) {
    let first = keyed(world, "ticket-812");
    world.submit(first.clone()).await;
    let second = again(world, &first);
    let child = world.new_job(|spec| spec.deps = vec![second.id]);
    let answers = world.store.submit(Submit { jobs: vec![second, child], actor: user() }).await.unwrap();
    assert_eq!(answers[0].job().id, first.id);
    assert_eq!(answers[1].job().spec.deps, [first.id]);
    assert_eq!(world.job(answers[1].job().id).await.spec.deps, [first.id]);
}

pub async fn a_later_run_at_delays(world: &World) {
    let later = world.now().plus(Duration::from_hours(1));
    let job = world.submitted(|spec| spec.run_at = Some(later)).await;
    assert_eq!(job.state, State::Queued { since: world.now(), ready_at: later, target: None });
    assert_eq!((job.enqueued_at, job.created_at), (later, world.now()));
    assert_eq!(world.job(job.id).await, job);
}

pub async fn an_earlier_run_at_does_not(world: &World) {
    let earlier = world.now().minus(Duration::from_hours(1));
    let job = world.submitted(|spec| spec.run_at = Some(earlier)).await;
    assert_eq!(job.state, State::Queued { since: world.now(), ready_at: world.now(), target: None });
}

pub async fn one_bad_job_makes_none(world: &World) {
    let taken = keyed(world, "taken");
    world.submit(taken.clone()).await;
    let bad_dep = world.new_job(|spec| spec.deps = vec![JobId::MAX]);
    let bad_key = NewJob { fingerprint: "another".to_owned(), ..again(world, &taken) };
    for bad in [bad_dep, bad_key] {
        let head = world.store.read().feed_head().await.unwrap();
        let good = [keyed(world, "free"), world.new_job(|_| ())];
        let jobs = vec![good[0].clone(), bad, good[1].clone()];
        assert!(world.store.submit(Submit { jobs, actor: user() }).await.is_err());
        assert_eq!(made(world).await, 1);
        assert_eq!((world.count(Stage::Queued).await, world.count(Stage::Blocked).await), (1, 0));
        assert_eq!(world.store.read().feed_head().await.unwrap(), head);
    }
    // The key of a job that was not made is not taken.
    let answers =
        world.store.submit(Submit { jobs: vec![keyed(world, "free")], actor: user() }).await.unwrap();
    assert!(matches!(answers[0], Submitted::Created(_)));
}

pub async fn one_key_twice_in_one_submit_makes_one_job(world: &World) {
    let first = keyed(world, "ticket-812");
    let second = again(world, &first);
    let answers =
        world.store.submit(Submit { jobs: vec![first.clone(), second], actor: user() }).await.unwrap();
    assert_eq!(answers[0].job().id, first.id);
    assert_eq!(answers[1], Submitted::Existing(answers[0].job().clone()));
    assert_eq!((made(world).await, world.count(Stage::Queued).await), (1, 1));
    // And with another body it is refused, with nothing made.
    let third = keyed(world, "ticket-813");
    let fourth = NewJob { fingerprint: "another".to_owned(), ..again(world, &third) };
    let error = world.store.submit(Submit { jobs: vec![third, fourth], actor: user() }).await.unwrap_err();
    assert!(matches!(error, StoreError::KeyReused { .. }), "{error:?}");
    assert_eq!(made(world).await, 1);
}

pub async fn nothing_submitted_is_nothing_made(world: &World) {
    assert_eq!(world.store.submit(Submit { jobs: Vec::new(), actor: user() }).await.unwrap(), []);
    assert_eq!((made(world).await, world.feed().await.len()), (0, 0));
}
