//! The fence: whoever does not hold the job writes nothing, whatever it tries.
//!
//! Every case runs every action that a holder has, and compares everything that one could have changed.

use std::time::Duration;

use giga_domain::job::ReviewGate;
use giga_domain::transition::was_cancelled;
use giga_domain::{
    Ask, Checkpoint, Epoch, Holder, HolderAction, Job, JobId, OperatorAction, Refusal, RunReport, Stage,
};
use giga_ports::StoreError;
use giga_ports::store::{ExpireLeases, Hold};

use super::World;
use super::world::{LEASE, fail, holder};

fn checkpoint(note: &str) -> Checkpoint {
    Checkpoint { note: Some(note.to_owned()), ..Checkpoint::default() }
}

fn every_action() -> Vec<HolderAction> {
    vec![
        HolderAction::Start,
        HolderAction::Renew { lease: Duration::from_hours(9) },
        HolderAction::Checkpoint(checkpoint("by a zombie")),
        HolderAction::Report(RunReport { summary: Some("by a zombie".to_owned()), ..RunReport::default() }),
        fail(true),
        fail(false),
        HolderAction::Release { checkpoint: Some(checkpoint("by a zombie")) },
        HolderAction::Ask(Ask { text: "by a zombie?".to_owned(), ..Ask::default() }),
        HolderAction::Delivered(vec![1]),
    ]
}

/// The actions that end a lease.
fn final_reports() -> Vec<HolderAction> {
    let release = HolderAction::Release { checkpoint: None };
    vec![HolderAction::Report(RunReport::default()), fail(true), fail(false), release]
}

async fn assert_fenced(world: &World, job: &Job, holder: &Holder, actions: Vec<HolderAction>) {
    let before = world.snapshot(job.id).await;
    let error = world.hold(job.id, holder, actions.clone()).await.unwrap_err();
    let StoreError::Refused(Refusal::Fenced { given, current, stage }) = error else {
        panic!("{actions:?} by {holder:?}: {error:?}")
    };
    let now = world.job(job.id).await;
    assert_eq!((given, current, stage), (holder.epoch, now.epoch, now.stage()));
    assert_eq!(world.snapshot(job.id).await, before, "{actions:?} by {holder:?} changed something");
}

async fn every_action_is_fenced(world: &World, job: &Job, holder: &Holder) {
    for action in every_action() {
        assert_fenced(world, job, holder, vec![action]).await;
    }
    assert_fenced(world, job, holder, every_action()).await;
}

pub async fn a_stale_epoch_changes_nothing(world: &World) {
    let mac = world.factory("mac-1").await;
    let (job, first) = world.assigned(&mac, |_| ()).await;
    let zero = Holder { epoch: Epoch::ZERO, ..first.clone() };
    every_action_is_fenced(world, &job, &zero).await;
    // The same factory, after it gave the job back and won it again.
    world.hold(job.id, &first, [HolderAction::Release { checkpoint: None }]).await.unwrap();
    let job = world.granted(job.id, &mac).await;
    assert!(job.epoch > first.epoch);
    every_action_is_fenced(world, &job, &first).await;
    let building = world.hold(job.id, &holder(&job), [HolderAction::Start]).await.unwrap();
    every_action_is_fenced(world, &building, &first).await;
}

pub async fn an_epoch_of_the_future_changes_nothing(world: &World) {
    let mac = world.factory("mac-1").await;
    let (job, holder) = world.building(&mac, |_| ()).await;
    for epoch in [holder.epoch.next(), Epoch(1_000_000)] {
        every_action_is_fenced(world, &job, &Holder { epoch, ..holder.clone() }).await;
    }
}

pub async fn another_factory_changes_nothing(world: &World) {
    let (mac, linux) = (world.factory("mac-1").await, world.factory("linux-1").await);
    let (job, holder) = world.building(&mac, |_| ()).await;
    every_action_is_fenced(world, &job, &Holder { factory: linux, ..holder }).await;
}

pub async fn an_expired_holder_changes_nothing(world: &World) {
    let mac = world.factory("mac-1").await;
    let (job, holder) = world.building(&mac, |_| ()).await;
    world.advance(LEASE);
    assert_eq!(world.store.expire_leases(ExpireLeases { limit: 10 }).await.unwrap().jobs, [job.id]);
    every_action_is_fenced(world, &job, &holder).await;
}

pub async fn an_expired_holder_changes_nothing_after_a_reclaim(world: &World) {
    let (mac, linux) = (world.factory("mac-1").await, world.factory("linux-1").await);
    for claimer in [&linux, &mac] {
        let (job, zombie) = world.building(&mac, |spec| spec.retry.backoff_ms = 0).await;
        world.advance(LEASE);
        world.store.expire_leases(ExpireLeases { limit: 10 }).await.unwrap();
        let job = world.granted(job.id, claimer).await;
        every_action_is_fenced(world, &job, &zombie).await;
        let job = world.hold(job.id, &holder(&job), [HolderAction::Start]).await.unwrap();
        every_action_is_fenced(world, &job, &zombie).await;
    }
}

pub async fn a_job_never_claimed_has_no_holder(world: &World) {
    let mac = world.factory("mac-1").await;
    let job = world.submitted(|_| ()).await;
    for epoch in [Epoch::ZERO, Epoch(1)] {
        every_action_is_fenced(world, &job, &Holder { factory: mac.clone(), epoch }).await;
    }
}

pub async fn an_unknown_job_is_not_found(world: &World) {
    let holder = Holder { factory: world.factory("mac-1").await, epoch: Epoch(1) };
    for action in every_action() {
        let error = world.hold(JobId::MAX, &holder, [action]).await.unwrap_err();
        assert!(matches!(error, StoreError::NoSuchJob(id) if id == JobId::MAX), "{error:?}");
    }
}

pub async fn a_last_word_ends_the_right_to_write(world: &World) {
    let mac = world.factory("mac-1").await;
    for final_report in final_reports() {
        let (job, holder) = world.building(&mac, |_| ()).await;
        let job = world.hold(job.id, &holder, [final_report.clone()]).await.unwrap();
        let kind = std::mem::discriminant(&final_report);
        for action in every_action().into_iter().filter(|action| std::mem::discriminant(action) != kind) {
            assert_fenced(world, &job, &holder, vec![action]).await;
        }
    }
}

pub async fn a_last_word_can_be_repeated(world: &World) {
    let mac = world.factory("mac-1").await;
    let gate = ReviewGate { quorum: 1, reviewers: Vec::new() };
    for final_report in final_reports() {
        let (job, holder) = world.building(&mac, |spec| spec.review = gate.clone()).await;
        let write = Hold { job: job.id, holder, actions: vec![final_report.clone()] };
        let first = world.store.hold(write.clone()).await.unwrap();
        let before = world.snapshot(job.id).await;
        world.advance(Duration::from_secs(1));
        assert_eq!(world.store.hold(write).await.unwrap(), first, "{final_report:?}");
        assert_eq!(world.snapshot(job.id).await, before, "{final_report:?}");
    }
}

/// A factory may send its start, a checkpoint and its final report in one write; that write can be repeated too.
pub async fn a_last_word_with_company_can_be_repeated(world: &World) {
    let mac = world.factory("mac-1").await;
    for final_report in final_reports() {
        let (job, holder) = world.assigned(&mac, |_| ()).await;
        let company = [
            HolderAction::Start,
            HolderAction::Renew { lease: LEASE },
            HolderAction::Checkpoint(checkpoint("done")),
            final_report,
        ];
        let first = world.hold(job.id, &holder, company.clone()).await.unwrap();
        let before = world.snapshot(job.id).await;
        assert_eq!(world.hold(job.id, &holder, company).await.unwrap(), first);
        assert_eq!(world.snapshot(job.id).await, before);
    }
}

pub async fn a_repeated_last_word_is_fenced_after_a_reclaim(world: &World) {
    let (mac, linux) = (world.factory("mac-1").await, world.factory("linux-1").await);
    for final_report in [fail(true), HolderAction::Release { checkpoint: None }] {
        let (job, zombie) = world.building(&mac, |spec| spec.retry.backoff_ms = 0).await;
        world.hold(job.id, &zombie, [final_report.clone()]).await.unwrap();
        let job = world.granted(job.id, &linux).await;
        assert_fenced(world, &job, &zombie, vec![final_report]).await;
    }
}

pub async fn a_cancelled_holder_is_told_and_fenced(world: &World) {
    let mac = world.factory("mac-1").await;
    let (job, holder) = world.building(&mac, |_| ()).await;
    let cancelled = world.operate(job.id, OperatorAction::Cancel).await.unwrap();
    let before = world.snapshot(job.id).await;
    let reported = world.hold(job.id, &holder, [HolderAction::Renew { lease: LEASE }]).await.unwrap();
    assert!(was_cancelled(&reported, holder.epoch));
    assert_eq!(reported, cancelled);
    assert_eq!(world.snapshot(job.id).await, before);
    for action in every_action().into_iter().filter(|action| !matches!(action, HolderAction::Renew { .. })) {
        assert_fenced(world, &job, &holder, vec![action]).await;
    }
}

pub async fn actions_are_all_or_nothing(world: &World) {
    let mac = world.factory("mac-1").await;
    let (job, holder) = world.assigned(&mac, |_| ()).await;
    let before = world.snapshot(job.id).await;
    // The report is illegal because the job was not started; what stands before it must not stay.
    let saved = HolderAction::Checkpoint(checkpoint("half-written"));
    let renewed = HolderAction::Renew { lease: Duration::from_hours(1) };
    let report = HolderAction::Report(RunReport::default());
    let error = world.hold(job.id, &holder, [renewed, saved.clone(), report.clone()]).await.unwrap_err();
    assert!(
        matches!(error, StoreError::Refused(Refusal::Illegal { from: Stage::Assigned, .. })),
        "{error:?}"
    );
    assert_eq!(world.snapshot(job.id).await, before);
    // After its final report it is no holder any more.
    let error = world.hold(job.id, &holder, [HolderAction::Start, report, saved]).await.unwrap_err();
    assert!(matches!(error, StoreError::Refused(Refusal::Fenced { .. })), "{error:?}");
    assert_eq!(world.snapshot(job.id).await, before);
}

pub async fn an_empty_write_is_fenced_too(world: &World) {
    let mac = world.factory("mac-1").await;
    let (job, holder) = world.assigned(&mac, |_| ()).await;
    assert_eq!(world.hold(job.id, &holder, []).await.unwrap(), job);
    let zombie = Holder { epoch: Epoch::ZERO, ..holder };
    assert_fenced(world, &job, &zombie, Vec::new()).await;
}
