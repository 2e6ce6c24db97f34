//! What points to the files of runs: written by the holder alone, one per name and run, gone with the job.

use std::time::Duration;

use giga_domain::{
    Actor, Artifact, ArtifactId, Epoch, EventKind, Holder, Job, JobId, OperatorAction, Refusal, Stage,
    Timestamp,
};
use giga_ports::StoreError;
use giga_ports::store::{ArtifactPut, DeleteArtifact, ExpireLeases, PutArtifact, Retire};
use serde_json::json;

use super::World;
use super::world::{LEASE, holder, user};

fn id(number: u128) -> ArtifactId {
    ArtifactId::from_parts(Timestamp::from_millis(1), number)
}

fn put(job: JobId, holder: &Holder, number: u128, name: &str) -> PutArtifact {
    PutArtifact {
        id: id(number),
        job,
        holder: holder.clone(),
        actor: Actor::Factory(holder.factory.clone()),
        name: name.parse().unwrap(),
        media_type: "text/plain".to_owned(),
        size: 7,
    }
}

async fn ids(world: &World, job: &Job) -> Vec<ArtifactId> {
    world.store.read().artifacts(job.id).await.unwrap().iter().map(|artifact| artifact.id).collect()
}

async fn assert_refused(world: &World, job: &Job, holder: &Holder) {
    let before = (world.snapshot(job.id).await, ids(world, job).await);
    let error = world.store.put_artifact(put(job.id, holder, 99, "report.txt")).await.unwrap_err();
    assert!(matches!(error, StoreError::Refused(Refusal::Fenced { .. })), "{error:?}");
    assert_eq!((world.snapshot(job.id).await, ids(world, job).await), before);
    assert_eq!(world.store.read().artifact(id(99)).await.unwrap(), None);
}

pub async fn a_file_is_kept_and_told(world: &World) {
    let mac = world.factory("mac-1").await;
    let (job, holder) = world.building(&mac, |_| ()).await;
    let ArtifactPut { artifact, replaced } =
        world.store.put_artifact(put(job.id, &holder, 1, "logs/größe.txt")).await.unwrap();
    let expected = Artifact {
        id: id(1),
        job: job.id,
        product: job.product.clone(),
        epoch: job.epoch,
        name: "logs/größe.txt".parse().unwrap(),
        media_type: "text/plain".to_owned(),
        size: 7,
        created_at: world.now(),
    };
    assert_eq!((&artifact, replaced), (&expected, None));
    let read = world.store.read();
    assert_eq!(read.artifact(id(1)).await.unwrap(), Some(expected.clone()));
    assert_eq!(read.artifacts(job.id).await.unwrap(), [expected]);
    assert_eq!(read.artifact(id(2)).await.unwrap(), None);
    let after = world.job(job.id).await;
    assert_eq!((after.stage(), after.rev), (Stage::Building, job.rev.next()));
    let event = world.events(job.id).await.pop().unwrap();
    assert_eq!((event.kind, event.from, event.to), (EventKind::ArtifactAdded, None, None));
    let reported = json!({"artifactId": id(1).to_string(), "name": "logs/größe.txt", "size": 7});
    assert_eq!(serde_json::Value::from(event.data), reported);
}

pub async fn files_come_by_run_and_name(world: &World) {
    let (mac, linux) = (world.factory("mac-1").await, world.factory("linux-1").await);
    let (job, first) = world.building(&mac, |spec| spec.retry.backoff_ms = 0).await;
    for (number, name) in [(1, "b"), (2, "a"), (3, "Z")] {
        world.store.put_artifact(put(job.id, &first, number, name)).await.unwrap();
    }
    world.advance(LEASE);
    world.store.expire_leases(ExpireLeases { limit: 10 }).await.unwrap();
    let second = holder(&world.granted(job.id, &linux).await);
    world.store.put_artifact(put(job.id, &second, 4, "a")).await.unwrap();
    assert_eq!(ids(world, &job).await, [3, 2, 1, 4].map(id), "each run has its own");
}

pub async fn a_repeated_put_is_one_file(world: &World) {
    let mac = world.factory("mac-1").await;
    let (job, holder) = world.building(&mac, |_| ()).await;
    let first = world.store.put_artifact(put(job.id, &holder, 1, "report.txt")).await.unwrap();
    let before = world.snapshot(job.id).await;
    world.advance(Duration::from_secs(1));
    let again = world.store.put_artifact(put(job.id, &holder, 1, "report.txt")).await.unwrap();
    assert_eq!(again, first);
    assert_eq!(world.snapshot(job.id).await, before);
}

pub async fn a_name_that_is_used_again_gets_the_new_file(world: &World) {
    let mac = world.factory("mac-1").await;
    let (job, holder) = world.building(&mac, |_| ()).await;
    let first = world.store.put_artifact(put(job.id, &holder, 1, "report.txt")).await.unwrap().artifact;
    let second = world.store.put_artifact(put(job.id, &holder, 2, "report.txt")).await.unwrap();
    assert_eq!(second.replaced, Some(first), "whoever keeps the bytes learns what can go");
    assert_eq!(ids(world, &job).await, [id(2)]);
    assert_eq!(world.store.read().artifact(id(1)).await.unwrap(), None);
    let store = &world.store;
    let (one, two) = tokio::join!(
        store.put_artifact(put(job.id, &holder, 3, "report.txt")),
        store.put_artifact(put(job.id, &holder, 4, "report.txt")),
    );
    let replaced: Vec<_> = [one.unwrap(), two.unwrap()].into_iter().filter_map(|put| put.replaced).collect();
    let left = ids(world, &job).await;
    assert_eq!((replaced.len(), left.len()), (2, 1), "also when two come at once");
    assert!(replaced.iter().all(|old| old.id != left[0]));
}

pub async fn a_stale_epoch_changes_nothing(world: &World) {
    let (mac, linux) = (world.factory("mac-1").await, world.factory("linux-1").await);
    let (job, zombie) = world.building(&mac, |spec| spec.retry.backoff_ms = 0).await;
    world.store.put_artifact(put(job.id, &zombie, 1, "report.txt")).await.unwrap();
    world.advance(LEASE);
    world.store.expire_leases(ExpireLeases { limit: 10 }).await.unwrap();
    assert_refused(world, &job, &zombie).await;
    let held = world.granted(job.id, &linux).await;
    assert_refused(world, &held, &zombie).await;
    assert_refused(world, &held, &Holder { epoch: held.epoch, ..zombie.clone() }).await;
    assert_refused(world, &held, &Holder { epoch: Epoch(held.epoch.0 + 1), ..holder(&held) }).await;
    world.operate(job.id, OperatorAction::Cancel).await.unwrap();
    assert_refused(world, &held, &holder(&held)).await;
    let missing = world.store.put_artifact(put(JobId::MAX, &zombie, 9, "report.txt")).await;
    assert!(matches!(missing, Err(StoreError::NoSuchJob(_))));
}

pub async fn another_factory_changes_nothing(world: &World) {
    let (mac, linux) = (world.factory("mac-1").await, world.factory("linux-1").await);
    let (job, holder) = world.building(&mac, |_| ()).await;
    assert_refused(world, &job, &Holder { factory: linux, ..holder }).await;
}

pub async fn a_deleted_file_is_gone_and_told_once(world: &World) {
    let mac = world.factory("mac-1").await;
    let (job, holder) = world.building(&mac, |_| ()).await;
    let first = world.store.put_artifact(put(job.id, &holder, 1, "report.txt")).await.unwrap().artifact;
    world.store.put_artifact(put(job.id, &holder, 2, "other.txt")).await.unwrap();
    world.store.delete_artifact(DeleteArtifact { artifact: first.clone(), actor: user() }).await.unwrap();
    assert_eq!(ids(world, &job).await, [id(2)]);
    let event = world.events(job.id).await.pop().unwrap();
    assert_eq!((event.kind, event.actor), (EventKind::ArtifactRemoved, user()));
    let before = world.snapshot(job.id).await;
    world.store.delete_artifact(DeleteArtifact { artifact: first.clone(), actor: user() }).await.unwrap();
    assert_eq!(world.snapshot(job.id).await, before, "the same call again");
    // A newer file under the old one's name is not what the operator meant.
    world.store.put_artifact(put(job.id, &holder, 3, "report.txt")).await.unwrap();
    world.store.delete_artifact(DeleteArtifact { artifact: first, actor: user() }).await.unwrap();
    assert_eq!(ids(world, &job).await, [id(2), id(3)]);
}

pub async fn files_are_retired_with_their_job(world: &World) {
    let mac = world.factory("mac-1").await;
    let (job, holder) = world.building(&mac, |_| ()).await;
    let (other, its_holder) = world.building(&mac, |_| ()).await;
    let file = world.store.put_artifact(put(job.id, &holder, 1, "report.txt")).await.unwrap().artifact;
    world.store.put_artifact(put(other.id, &its_holder, 2, "report.txt")).await.unwrap();
    world.operate(job.id, OperatorAction::Cancel).await.unwrap();
    world.advance(Duration::from_hours(1));
    let now = world.now();
    assert_eq!(
        world.store.retire(Retire { before: now, jobs: vec![other.id] }).await.unwrap(),
        [],
        "only what is named and old"
    );
    assert_eq!(ids(world, &job).await, [id(1)]);
    assert_eq!(world.retire(now, 10).await, 1);
    assert_eq!(world.store.read().artifact(id(1)).await.unwrap(), None);
    assert_eq!(ids(world, &job).await, []);
    assert_eq!(ids(world, &other).await, [id(2)]);
    world.store.delete_artifact(DeleteArtifact { artifact: file, actor: user() }).await.unwrap();
}

pub async fn files_of_ended_jobs_are_found_until_they_are_deleted(world: &World) {
    let mac = world.factory("mac-1").await;
    let (ended, holder) = world.building(&mac, |_| ()).await;
    let (open, its_holder) = world.building(&mac, |_| ()).await;
    for number in 1..=3 {
        let name = format!("{number}.txt");
        world.store.put_artifact(put(ended.id, &holder, number, &name)).await.unwrap();
        world.store.put_artifact(put(open.id, &its_holder, 10 + number, &name)).await.unwrap();
    }
    let read = world.store.read();
    let (of_ended, of_open) =
        (read.artifacts(ended.id).await.unwrap(), read.artifacts(open.id).await.unwrap());
    let sizes = of_ended.iter().chain(&of_open).map(|artifact| artifact.size).sum::<u64>();
    assert_eq!(read.artifact_bytes(&ended.product).await.unwrap(), sizes);
    assert_eq!(read.artifact_bytes(&"nobody".parse().unwrap()).await.unwrap(), 0);
    world.operate(ended.id, OperatorAction::Cancel).await.unwrap();
    let ended_at = world.now();
    world.advance(Duration::from_hours(1));
    let expired = |before, limit| async move {
        let found = world.store.read().expired_artifacts(before, limit).await.unwrap();
        found.iter().map(|artifact| artifact.id).collect::<Vec<_>>()
    };
    assert_eq!(expired(ended_at, 10).await, [], "it did not end before that");
    let before = world.now();
    assert_eq!(expired(before, 2).await, [id(1), id(2)]);
    let first = world.store.read().artifact(id(1)).await.unwrap().unwrap();
    world
        .store
        .delete_artifact(DeleteArtifact { artifact: first, actor: Actor::system("retention") })
        .await
        .unwrap();
    assert_eq!(expired(before, 10).await, [id(2), id(3)], "the job ended when it ended");
}
