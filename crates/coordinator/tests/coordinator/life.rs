//! The life of a job through the use cases: recovery, retries, deps, retention, reviews, explanations.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::common::{Fleet, operator};
use giga_coordinator::{Coordinator, Error, NewArtifact, Options, Ports};
use giga_domain::factory::FactoryScope;
use giga_domain::manifest::parse_markdown;
use giga_domain::{
    Actor, AlertKind, Checkpoint, Epoch, EventKind, EventSeq, FailReason, Failure, Holder, HolderAction,
    JobId, Judgement, OperatorAction, RunOutcome, RunReport, Stage, Verdict,
};
use giga_ports::blobs::{FileLabels, LogSlice, in_one_piece};
use giga_ports::{BlobError, Logs};
use giga_testkit::ManualClock;
use serde_json::json;

fn crash() -> HolderAction {
    HolderAction::Fail { failure: Failure { reason: FailReason::Crash, detail: None }, retryable: true }
}

#[tokio::test]
async fn a_silent_holder_loses_the_job_and_its_checkpoint_goes_on() {
    let fleet = Fleet::start().await;
    let (a, b) = (fleet.factory("a", &[], 1).await, fleet.factory("b", &[], 1).await);
    fleet.submit("name: one\nretry: {max: 3, backoff: 1s}").await;
    let held = fleet.claim(&a, "r1").await.unwrap();
    let checkpoint = Checkpoint { wip_ref: Some("giga/wip/one".into()), ..Checkpoint::default() };
    let started = vec![HolderAction::Start, HolderAction::Checkpoint(checkpoint.clone())];
    fleet.hold(&held, started).await.unwrap();

    fleet.clock.advance(Duration::from_secs(59));
    fleet.coordinator.reap_once().await.unwrap();
    assert_eq!(fleet.job(held.id).await.stage(), Stage::Building, "its lease has not ended");

    fleet.clock.advance(Duration::from_secs(1));
    fleet.coordinator.reap_once().await.unwrap();
    let back = fleet.job(held.id).await;
    assert_eq!((back.stage(), back.epoch.0, back.attempts), (Stage::Queued, held.epoch.0 + 1, 1));

    let resumed = fleet.claim(&b, "r2").await.expect("at once: the job has done nothing wrong");
    assert_eq!((resumed.id, resumed.checkpoint.clone()), (held.id, Some(checkpoint)));
    let zombie = fleet.hold(&held, vec![HolderAction::Report(RunReport::default())]).await.unwrap_err();
    assert!(zombie.to_string().starts_with("fenced"), "{zombie}");
    let runs = fleet.store.read().runs(held.id).await.unwrap();
    assert_eq!(
        runs.iter().map(|run| run.outcome.clone()).collect::<Vec<_>>(),
        [RunOutcome::Expired, RunOutcome::Running]
    );
}

#[tokio::test]
async fn retries_back_off_and_end_in_dead_letters_with_an_alert() {
    let fleet = Fleet::start().await;
    let mac = fleet.factory("mac-1", &[], 1).await;
    let job = fleet.submit("name: doomed\nretry: {max: 2, backoff: 10s}").await;
    for (attempt, wait) in [(1, 10), (2, 20)] {
        let held = fleet.claim(&mac, &format!("r{attempt}")).await.expect("ready after its back-off");
        let failed = fleet.hold(&held, vec![crash()]).await.unwrap();
        assert_eq!((failed.stage(), failed.attempts), (Stage::Queued, attempt));
        fleet.clock.advance(Duration::from_secs(wait - 1));
        assert_eq!(fleet.claim(&mac, &format!("early{attempt}")).await, None);
        fleet.clock.advance(Duration::from_secs(1));
    }
    let held = fleet.claim(&mac, "last").await.unwrap();
    let dead = fleet.hold(&held, vec![crash()]).await.unwrap();
    assert_eq!((dead.id, dead.stage()), (job.id, Stage::DeadLetter));
    let alerts = fleet.coordinator.alerts().await.unwrap();
    assert!(alerts.iter().any(|alert| alert.kind == AlertKind::DeadLetters), "{alerts:?}");
}

#[tokio::test]
async fn deps_hold_a_job_back_until_the_last_needed_one_ships() {
    let fleet = Fleet::start().await;
    let mac = fleet.factory("mac-1", &[], 4).await;
    let first = fleet.submit("name: first\nship: auto\npriority: critical").await;
    fleet.clock.advance(Duration::from_secs(1));
    let second = fleet.submit("name: second\npriority: high").await;
    let deps = format!("deps: [{}, {}]", first.id, second.id);
    let all = fleet.submit(&format!("name: all\n{deps}")).await;
    let any = fleet.submit(&format!("name: any\n{deps}\ndepsMode: any")).await;
    assert_eq!((all.stage(), any.stage()), (Stage::Blocked, Stage::Blocked));
    let (_, why) = fleet.coordinator.explain(all.id).await.unwrap();
    assert_eq!(why.summary, "waiting for all of 2 jobs to ship: 2 not shipped yet");

    let held = fleet.claim(&mac, "r1").await.unwrap();
    assert_eq!(fleet.finish(&held).await.stage(), Stage::Shipped, "ship: auto");
    fleet.until_stage(any.id, Stage::Queued).await;
    assert_eq!(fleet.job(all.id).await.stage(), Stage::Blocked);

    let held = fleet.claim(&mac, "r2").await.unwrap();
    assert_eq!(held.id, second.id);
    assert_eq!(fleet.finish(&held).await.stage(), Stage::Testing, "ship: manual");
    fleet.coordinator.operate(second.id, OperatorAction::Ship, None, None, operator()).await.unwrap();
    fleet.until_stage(all.id, Stage::Queued).await;
}

#[tokio::test]
async fn a_review_takes_its_quorum_of_named_reviewers() {
    let fleet = Fleet::start().await;
    let mac = fleet.factory("mac-1", &[], 1).await;
    fleet.submit("name: one\nreview: {quorum: 2, reviewers: [ana, bo]}").await;
    let held = fleet.claim(&mac, "r1").await.unwrap();
    let id = fleet.finish(&held).await.id;
    let review = |who: &str, verdict| {
        let judgement = Judgement {
            verdict,
            reviewer: who.to_owned(),
            comment: None,
            epoch: None,
            commit: None,
            acknowledge_unseen: false,
        };
        fleet.coordinator.review(id, judgement, None, operator())
    };
    let stranger = review("eve", Verdict::Approve).await.unwrap_err();
    assert_eq!(stranger.to_string(), "eve may not review this job; its reviewers are ana, bo");
    assert_eq!(review("ana", Verdict::Approve).await.unwrap().stage(), Stage::Review);
    assert_eq!(review("ana", Verdict::Approve).await.unwrap().stage(), Stage::Review, "twice is once");
    assert_eq!(review("bo", Verdict::Approve).await.unwrap().stage(), Stage::Testing);
}

#[tokio::test]
async fn under_strict_a_job_that_nobody_could_run_is_refused_and_otherwise_warned_of() {
    let fleet = Fleet::start().await;
    fleet.factory("mac-1", &["os:linux", "engine:shell"], 1).await;
    let warned = fleet.try_submit("name: one\ncapabilities: [build]").await.unwrap();
    let unroutable = warned.routable.unwrap_err().to_string();
    assert!(unroutable.contains("`build`"), "{unroutable}");
    let alerts = fleet.coordinator.alerts().await.unwrap();
    assert!(alerts.iter().any(|alert| alert.kind == AlertKind::NoEligibleFactory), "{alerts:?}");

    fleet.coordinator.set_flag("strict", json!(true), operator()).await.unwrap();
    let before = fleet.store.read().feed_head().await.unwrap();
    let refused = fleet.try_submit("name: two\ncapabilities: [build]").await.unwrap_err();
    assert!(matches!(refused, Error::Unroutable(_)), "{refused}");
    assert_eq!(fleet.store.read().feed_head().await.unwrap(), before, "nothing was written");
    let refused = fleet.try_submit("name: prompt\ncapabilities: [os:linux]").await.unwrap_err();
    assert!(refused.to_string().contains("no factory has an engine that reads prompts"), "{refused}");
    let script = "engine: shell\nscript: 'true'";
    assert!(fleet.try_submit(&format!("name: three\ncapabilities: [os:linux]\n{script}")).await.is_ok());
}

#[tokio::test]
async fn a_dry_run_says_where_and_why_and_leaves_nothing_behind() {
    let fleet = Fleet::start().await;
    fleet.factory("mac-1", &["os:macos"], 1).await;
    let before = fleet.store.stats();
    let text = "---\nname: maybe\nbudget: {usd: 2.5}\nretry: {max: 1}\n---\n";
    let (manifest, _) = parse_markdown(text.as_bytes()).unwrap();
    let plan = fleet.coordinator.dry_run("demo".parse().unwrap(), &manifest).await.unwrap();
    assert!(plan.routable.is_ok() && plan.explanation.summary.contains("mac-1"), "{:?}", plan.explanation);
    assert_eq!(plan.worst_case, Some(giga_domain::Usd::from_dollars(5)), "two attempts at most");
    assert_eq!(fleet.store.stats(), before);
}

#[tokio::test]
async fn old_jobs_are_removed_after_their_time_and_not_before() {
    let fleet = Fleet::start().await;
    let job = fleet.submit("name: one").await;
    fleet.coordinator.operate(job.id, OperatorAction::Cancel, None, None, operator()).await.unwrap();
    fleet.coordinator.set_flag("retention_hours", json!(2), operator()).await.unwrap();
    fleet.clock.advance(Duration::from_hours(2));
    assert_eq!(fleet.coordinator.retire_old().await.unwrap(), 0);
    fleet.clock.advance(Duration::from_secs(1));
    assert_eq!(fleet.coordinator.retire_old().await.unwrap(), 1);
    assert_eq!(fleet.store.read().job(job.id).await.unwrap(), None);
    assert!(fleet.store.read().job_events(job.id, EventSeq::ZERO, 10).await.unwrap().is_empty());
}

/// Bytes go before rows: whatever is left of a sweep that was cut off is found by the next one.
#[tokio::test]
async fn logs_and_artifacts_go_with_their_job() {
    let fleet = Fleet::start().await;
    let mac = fleet.factory("mac-1", &["os:macos"], 2).await;
    fleet.submit("name: one").await;
    let job = fleet.claim(&mac, "r-1").await.unwrap();
    let holder = Holder { factory: mac, epoch: job.epoch };
    fleet.coordinator.append_log(job.id, &holder, 0, b"hello").await.unwrap();
    let put = |name: &str| fleet.coordinator.put_artifact(file(job.id, &holder, name), in_one_piece("x"));
    let kept = put("a.txt").await.unwrap();
    // Bytes that nothing points to, as a crash between the two writes leaves them.
    let orphan = format!("{}/1/orphan", job.id);
    let labels = FileLabels { content_type: String::new(), content_disposition: String::new() };
    fleet.ports.artifacts.put(&orphan, &labels, in_one_piece("x")).await.unwrap();
    fleet.coordinator.operate(job.id, OperatorAction::Cancel, None, None, operator()).await.unwrap();
    assert!(put("late.txt").await.is_err());
    fleet.coordinator.set_flag("retention_hours", json!(2), operator()).await.unwrap();
    fleet.clock.advance(Duration::from_hours(3));
    // A sweep that was cut off after the bytes.
    fleet.ports.logs.remove(job.id).await.unwrap();
    assert_eq!(fleet.coordinator.retire_old().await.unwrap(), 1);
    assert_eq!(fleet.ports.logs.read(job.id, job.epoch, 0, 9).await.unwrap().total, 0);
    assert!(fleet.ports.artifacts.get(&orphan, 0..1).await.is_err());
    assert!(fleet.coordinator.artifact_stream(&kept, 0..1).await.is_err());
    assert_eq!(fleet.store.read().artifacts(job.id).await.unwrap(), []);
}

fn file(job: JobId, holder: &Holder, name: &str) -> NewArtifact {
    let name = name.parse().expect("a name");
    let actor = Actor::Factory(holder.factory.clone());
    NewArtifact { job, holder: holder.clone(), actor, name, media_type: "text/plain".to_owned() }
}

#[tokio::test]
async fn files_of_ended_jobs_go_before_their_jobs_where_a_flag_says_so() {
    let fleet = Fleet::start().await;
    let mac = fleet.factory("mac-1", &["os:macos"], 2).await;
    let mut jobs = Vec::new();
    for name in ["ended", "open"] {
        fleet.submit(&format!("name: {name}")).await;
        let job = fleet.claim(&mac, name).await.unwrap();
        let holder = Holder { factory: mac.clone(), epoch: job.epoch };
        let put = fleet.coordinator.put_artifact(file(job.id, &holder, "a.txt"), in_one_piece("x"));
        jobs.push((job.id, put.await.unwrap()));
    }
    let [(ended, old), (_, kept)] = jobs.as_slice() else { panic!("two jobs") };
    fleet.coordinator.operate(*ended, OperatorAction::Cancel, None, None, operator()).await.unwrap();
    fleet.clock.advance(Duration::from_hours(3));
    assert_eq!(fleet.coordinator.remove_expired_artifacts().await.unwrap(), 0, "they go with their job");
    fleet.coordinator.set_flag("artifact_retention_hours", json!(3), operator()).await.unwrap();
    assert_eq!(fleet.coordinator.remove_expired_artifacts().await.unwrap(), 0, "not yet");
    fleet.clock.advance(Duration::from_secs(1));
    assert_eq!(fleet.coordinator.remove_expired_artifacts().await.unwrap(), 1);
    assert_eq!(fleet.coordinator.remove_expired_artifacts().await.unwrap(), 0);
    assert!(fleet.coordinator.artifact_stream(old, 0..1).await.is_err(), "its bytes are gone");
    assert!(fleet.coordinator.artifact_stream(kept, 0..1).await.is_ok());
    let event = fleet.store.read().job_events(*ended, EventSeq::ZERO, 100).await.unwrap().pop().unwrap();
    assert_eq!((event.kind, event.actor), (EventKind::ArtifactRemoved, Actor::system("retention")));
    assert!(fleet.store.read().job(*ended).await.unwrap().is_some(), "the job stays");
}

#[tokio::test]
async fn bad_deps_and_flags_name_the_field_and_change_nothing() {
    let fleet = Fleet::start().await;
    // Which is an event.
    fleet.until_it_leads().await;
    let before = fleet.store.read().feed_head().await.unwrap();
    let unknown = fleet.try_submit(&format!("name: one\ndeps: [{}]", JobId::MAX)).await.unwrap_err();
    assert_eq!(unknown.to_string(), format!("deps: there is no job {} in this product", JobId::MAX));
    let named = fleet.try_submit("name: one\ndeps: [two]").await.unwrap_err();
    assert!(named.to_string().starts_with("deps[0]: `two` is not a job id"), "{named}");
    let flag = fleet.coordinator.set_flag("lease_ms", json!(5), operator()).await.unwrap_err();
    assert!(flag.to_string().contains("a whole number from 1000"), "{flag}");
    assert_eq!(fleet.store.read().feed_head().await.unwrap(), before);
}

#[tokio::test]
async fn a_revoked_token_is_dead_at_once_and_a_rotated_one_lives_through_the_grace() {
    let fleet = Fleet::start().await;
    let (token, secret) = fleet
        .coordinator
        .issue_token(giga_domain::token::Role::Viewer, Vec::new(), "v".into(), operator())
        .await
        .unwrap();
    assert!(fleet.coordinator.authenticate(&secret).await.unwrap().is_some());
    fleet.coordinator.revoke_token(token.id, operator()).await.unwrap();
    assert!(fleet.coordinator.authenticate(&secret).await.unwrap().is_none());

    let id = crate::common::factory_id("mac-1");
    let (_, old) = fleet.coordinator.enroll(id.clone(), FactoryScope::default(), operator()).await.unwrap();
    let new = fleet.coordinator.rotate_factory_token(id.clone(), operator()).await.unwrap();
    assert!(fleet.coordinator.authenticate(&old).await.unwrap().is_some(), "the overlap");
    fleet.clock.advance(Duration::from_mins(15));
    assert!(fleet.coordinator.authenticate(&old).await.unwrap().is_none());
    assert!(fleet.coordinator.authenticate(&new).await.unwrap().is_some());
    fleet.coordinator.revoke_factory_tokens(id, operator()).await.unwrap();
    assert!(fleet.coordinator.authenticate(&new).await.unwrap().is_none());
}

#[tokio::test]
async fn a_coordinator_that_starts_again_knows_what_is_queued_and_held() {
    let fleet = Fleet::start().await;
    let mac = fleet.factory("mac-1", &[], 2).await;
    fleet.submit("name: one").await;
    fleet.submit("name: two").await;
    let held = fleet.claim(&mac, "r1").await.unwrap();
    fleet.coordinator.stop().await;
    let random = Arc::new(giga_testkit::SeededRandomness::new(8));
    let ports = Ports { random, ..fleet.ports.clone() };
    let next = Coordinator::start(ports, Options::default()).await.unwrap();
    let again = next.claims().claim(mac.clone(), crate::common::request("r1")).await.unwrap().unwrap();
    assert_eq!((again.id, again.epoch), (held.id, held.epoch), "a lost reply survives the restart");
    let other = next.claims().claim(mac.clone(), crate::common::request("r2")).await.unwrap().unwrap();
    assert_ne!(other.id, held.id);
    assert_eq!(
        next.claims().claim(mac, crate::common::request("r3")).await.unwrap(),
        None,
        "both seats are taken"
    );
}

/// Logs where the holder loses its lease between the look at it and the write.
struct LateLogs {
    inner: Arc<dyn Logs>,
    clock: Arc<ManualClock>,
    coordinator: OnceLock<Arc<Coordinator>>,
}

#[async_trait::async_trait]
impl Logs for LateLogs {
    async fn append(&self, job: JobId, epoch: Epoch, offset: u64, bytes: &[u8]) -> Result<u64, BlobError> {
        if let Some(coordinator) = self.coordinator.get() {
            self.clock.advance(Duration::from_mins(5));
            coordinator.reap_once().await.unwrap();
        }
        self.inner.append(job, epoch, offset, bytes).await
    }

    async fn read(&self, job: JobId, epoch: Epoch, offset: u64, limit: usize) -> Result<LogSlice, BlobError> {
        self.inner.read(job, epoch, offset, limit).await
    }

    async fn cut(&self, job: JobId, epoch: Epoch, from: u64) -> Result<(), BlobError> {
        self.inner.cut(job, epoch, from).await
    }

    async fn remove(&self, job: JobId) -> Result<(), BlobError> {
        self.inner.remove(job).await
    }
}

#[tokio::test]
async fn what_a_holder_writes_to_its_log_while_it_loses_the_lease_is_not_kept() {
    let fleet = Fleet::by_hand().await;
    let late = Arc::new(LateLogs {
        inner: fleet.ports.logs.clone(),
        clock: fleet.clock.clone(),
        coordinator: OnceLock::new(),
    });
    let ports = Ports { logs: late.clone(), ..fleet.ports.clone() };
    let coordinator = Coordinator::by_hand(ports, Options::default()).await.unwrap();
    let mac = fleet.factory("mac-1", &[], 1).await;
    fleet.submit("name: one\nretry: {max: 3, backoff: 1s}").await;
    let held = fleet.claim(&mac, "r1").await.unwrap();
    fleet.hold(&held, vec![HolderAction::Start]).await.unwrap();
    let holder = Holder { factory: mac, epoch: held.epoch };
    assert_eq!(coordinator.append_log(held.id, &holder, 0, b"in time\n").await.unwrap(), 8);
    late.coordinator.set(fleet.coordinator.clone()).ok().unwrap();
    let fenced = coordinator.append_log(held.id, &holder, 8, b"too late\n").await.unwrap_err();
    assert!(fenced.to_string().starts_with("fenced"), "{fenced}");
    let log = fleet.ports.logs.read(held.id, held.epoch, 0, 100).await.unwrap();
    assert_eq!(log.bytes, b"in time\n");
}
