//! Pull requests, end to end: pushed by a factory, opened by the coordinator, decided by people on a forge.

use std::time::Duration;

use giga_api::client::Idempotency;
use giga_api::wire::{EventType, FailReason, Job, MergeState, OperatorAction, Stage};
use giga_broker::Embedded;
use giga_coordinator::Options;

use super::forge::{Forge, REPO, SECRET, post};
use super::world::{Factory, LOOK_AGAIN, Origin, PATIENCE, World};

/// As often as a test has patience for. Where it does not matter: never.
fn looking_every(every: Duration) -> Options {
    Options { requests_every: every, ..Options::default() }
}

const NEVER: Duration = Duration::from_hours(24);

struct Scene {
    world: World,
    forge: Forge,
    origin: Origin,
    factory: Option<Factory>,
}

impl Scene {
    async fn start(kind: &str, every: Duration) -> Self {
        let forge = Forge::start().await;
        let effects = forge.reached_as(kind);
        let world =
            World::start_with(std::sync::Arc::new(Embedded::new()), effects, looking_every(every)).await;
        let origin = world.origin(REPO);
        forge.has(origin.path());
        let mut config = world.config("a");
        // It is named by its path, which is not among what the folder lists.
        config.can_clone = true;
        let factory = Some(Factory::start(config));
        Self { world, forge, origin, factory }
    }

    /// Made, shipped and shown.
    async fn propose(&self, more: &str, script: &str) -> String {
        let more = format!("repo: {REPO}\nship: auto\n{more}");
        let job = self.world.submit("greet", &more, script).await;
        self.until_shown(&job).await;
        job
    }

    async fn until_shown(&self, job: &str) -> Job {
        self.world
            .until(job, |job| {
                job.merge
                    .as_ref()
                    .is_some_and(|merge| merge.state == MergeState::Proposed && merge.request.is_some())
            })
            .await
    }

    /// Until the request shows this commit and no other.
    async fn until_updated(&self, number: u64, commit: &str) {
        let waited = tokio::time::timeout(PATIENCE, async {
            while self.forge.head(number) != commit {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        });
        assert!(waited.await.is_ok(), "{} is shown", self.forge.head(number));
    }

    /// Until everything that was to be told to the forge is told.
    async fn until_told(&self) {
        let waited = tokio::time::timeout(PATIENCE, async {
            while self.world.store.read().effect_counts().await.unwrap().pending > 0 {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        });
        assert!(waited.await.is_ok(), "something is still to be told");
    }

    async fn until_closed(&self, number: u64) {
        let waited = tokio::time::timeout(PATIENCE, async {
            while self.forge.pulls().iter().any(|pull| pull.number == number && pull.is_open) {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        });
        assert!(waited.await.is_ok(), "request {number} is still open");
    }

    async fn hook(&self, number: u64) {
        assert_eq!(self.forge.github_hook(&self.world.url, number, SECRET).await.as_u16(), 204);
    }

    async fn has_event(&self, job: &str, kind: EventType, words: &str) {
        let waited = tokio::time::timeout(PATIENCE, async {
            loop {
                let events = self.world.client.job_events(job, None).await.unwrap().value.events;
                if events.iter().any(|event| event.kind == kind && event.cause.contains(words)) {
                    return;
                }
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        });
        assert!(waited.await.is_ok(), "no {kind} with {words:?}");
    }

    async fn end(mut self) {
        if let Some(factory) = self.factory.take() {
            factory.drain().await;
        }
    }
}

const BY_REQUEST: &str = "merge: {by: pull_request}";
const WITH_CHANGES: &str = "merge: {by: pull_request, feedback: changes}";

#[tokio::test(flavor = "multi_thread")]
async fn a_result_is_shown_and_shipped_when_somebody_merges_it() {
    let scene = Scene::start("github", NEVER).await;
    let job = scene.propose(BY_REQUEST, "echo hello > greeting.txt").await;

    let shown = scene.world.job(&job).await;
    let pulls = scene.forge.pulls();
    assert_eq!(pulls.len(), 1, "{pulls:?}");
    assert_eq!((pulls[0].branch.clone(), pulls[0].base.as_str()), (format!("giga/request/{job}"), "main"));
    assert_eq!(pulls[0].title, "greet");
    assert!(pulls[0].body.contains("Do it.") && pulls[0].body.contains(&job), "{}", pulls[0].body);
    assert_eq!(shown.result.as_ref().unwrap().commit, scene.forge.head(1));
    let url = shown.merge.unwrap().request.unwrap().url;
    let why = scene.world.client.explain(&job).await.unwrap().value;
    assert!(why.summary.contains(&url), "{}", why.summary);
    assert_eq!(scene.origin.file("main", "greeting.txt"), "helo", "nobody merged it yet");

    let commit = scene.forge.merge(1);
    scene.hook(1).await;
    let shipped = scene.world.until_stage(&job, Stage::Shipped).await;
    let merge = shipped.merge.unwrap();
    assert_eq!((merge.commit, merge.into.as_deref()), (Some(commit), Some("main")));
    // Heard again, it changes nothing.
    let rev = scene.world.job(&job).await.rev;
    scene.hook(1).await;
    scene.hook(1).await;
    assert_eq!(scene.world.job(&job).await.rev, rev);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_is_opened_once_though_the_coordinator_dies_before_it_learns_of_it() {
    let mut scene = Scene::start("github", NEVER).await;
    scene.forge.mute(true);
    let more = format!("repo: {REPO}\nship: auto\n{BY_REQUEST}");
    let job = scene.world.submit("greet", &more, "echo hello > greeting.txt").await;
    tokio::time::timeout(PATIENCE, scene.forge.until_created(1)).await.unwrap();
    assert_eq!(scene.world.job(&job).await.merge.unwrap().request, None, "nobody knows of it");

    let effects = scene.forge.reached_as("github");
    scene.world.restart(effects, looking_every(NEVER)).await;
    scene.forge.mute(false);
    scene.until_shown(&job).await;
    assert_eq!(scene.forge.pulls().len(), 1);
    scene.forge.merge(1);
    scene.hook(1).await;
    scene.world.until_stage(&job, Stage::Shipped).await;
    assert_eq!(scene.forge.pulls().len(), 1);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_requested_there_are_the_next_run_and_the_same_request_shows_it() {
    let scene = Scene::start("github", NEVER).await;
    let script =
        "echo \"${GIGA_REVIEW_NOTES:-none}\" > notes.txt\necho \"run $GIGA_LEASE_EPOCH\" >> greeting.txt";
    let job = scene.propose(WITH_CHANGES, script).await;
    let first = scene.forge.head(1);
    scene.forge.review(1, "ana", "CHANGES_REQUESTED", "say hello", Some("not helo"));
    scene.hook(1).await;

    let again = scene.world.until(&job, |job| job.lease_epoch > 1).await;
    let note = again.reviews.last().unwrap();
    assert_eq!(note.reviewer, "ana");
    assert_eq!(note.comment.as_deref(), Some("say hello\n\ngreeting.txt:1: not helo"));
    let shown = scene
        .world
        .until(&job, |job| {
            let second = job.result.as_ref().is_some_and(|result| result.commit != first);
            second && job.merge.as_ref().is_some_and(|merge| merge.state == MergeState::Proposed)
        })
        .await;
    scene.until_updated(1, &shown.result.unwrap().commit).await;
    assert_eq!(scene.forge.pulls().len(), 1, "it is the same one");
    // What was said about the first result is not asked for again of the second.
    scene.hook(1).await;
    let commit = scene.forge.merge(1);
    scene.hook(1).await;
    let shipped = scene.world.until_stage(&job, Stage::Shipped).await;
    assert_eq!(shipped.merge.unwrap().commit, Some(commit));
    assert_eq!(scene.world.runs(&job).await.len(), 2);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_said_there_is_an_event_and_nothing_more_by_default() {
    let scene = Scene::start("github", NEVER).await;
    let job = scene.propose(BY_REQUEST, "echo hello > greeting.txt").await;
    scene.forge.comment(1, "bo", "who asked for this?");
    scene.forge.review(1, "ana", "CHANGES_REQUESTED", "say hello", None);
    scene.forge.checks(1, false);
    scene.hook(1).await;
    scene.has_event(&job, EventType::RequestComment, "by bo: who asked for this?").await;
    scene.has_event(&job, EventType::RequestComment, "request for changes on its pull request by ana").await;
    scene.has_event(&job, EventType::RequestChecks, "failed: ci: failure").await;
    assert_eq!(scene.world.job(&job).await.stage, Stage::Shipping);
    assert_eq!(scene.world.runs(&job).await.len(), 1);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_checks_there_are_the_next_run_where_the_manifest_says_so() {
    let scene = Scene::start("github", NEVER).await;
    let job = scene.propose(WITH_CHANGES, "echo \"$GIGA_LEASE_EPOCH\" > greeting.txt").await;
    scene.forge.checks(1, false);
    scene.hook(1).await;
    let again = scene.world.until(&job, |job| job.lease_epoch > 1).await;
    let note = again.reviews.last().unwrap();
    assert_eq!(note.reviewer, "checks");
    assert!(note.comment.as_deref().unwrap().contains("ci: failure https://ci/1"), "{note:?}");
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_request_fails_the_job_and_shipping_it_again_opens_it_again() {
    let scene = Scene::start("github", NEVER).await;
    let job = scene.propose(BY_REQUEST, "echo hello > greeting.txt").await;
    scene.forge.close(1, "ana");
    scene.hook(1).await;
    let failed = scene.world.until_stage(&job, Stage::Failed).await;
    let failure = failed.failure.unwrap();
    assert_eq!(failure.reason, FailReason::RequestClosed);
    assert!(failure.detail.unwrap().contains("closed by ana"));
    let alerts = scene.world.client.alerts().await.unwrap().value.alerts;
    assert!(alerts.iter().any(|alert| alert.message.contains(&job)), "{alerts:?}");

    scene.world.client.act(&job, OperatorAction::Ship, None, None).await.unwrap();
    scene.until_shown(&job).await;
    let waited = tokio::time::timeout(PATIENCE, async {
        while !scene.forge.pulls()[0].is_open {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    });
    assert!(waited.await.is_ok(), "it is opened again");
    assert_eq!(scene.forge.pulls().len(), 1);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_job_closes_its_request() {
    let scene = Scene::start("github", NEVER).await;
    let job = scene.propose(BY_REQUEST, "echo hello > greeting.txt").await;
    scene.until_told().await;
    scene.world.client.act(&job, OperatorAction::Cancel, None, None).await.unwrap();
    scene.until_closed(1).await;
    assert_eq!(scene.forge.pulls()[0].merged, None);
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_signed_is_refused_and_changes_nothing() {
    let scene = Scene::start("github", NEVER).await;
    let job = scene.propose(BY_REQUEST, "echo hello > greeting.txt").await;
    let before = scene.world.job(&job).await;
    scene.forge.close(1, "ana");
    let at = format!("{}/api/hooks/github", scene.world.url);
    assert_eq!(scene.forge.github_hook(&scene.world.url, 1, "guessed").await.as_u16(), 401);
    for headers in [&[][..], &[("x-hub-signature-256", "sha256=00")], &[("x-hub-signature-256", "junk")]] {
        assert_eq!(post(&at, headers, "{}".to_owned()).await.as_u16(), 401);
    }
    assert_eq!(scene.forge.gitlab_hook(&scene.world.url, 1, SECRET).await.as_u16(), 404, "it is not set up");
    let too_large = "x".repeat(5 * 1024 * 1024);
    assert_eq!(post(&at, &[], too_large).await.as_u16(), 413);
    // One that is signed comes behind all of these, and is the first to be heard.
    assert_eq!(scene.world.job(&job).await, before);
    scene.hook(1).await;
    scene.world.until_stage(&job, Stage::Failed).await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_look_finds_what_no_message_told_of() {
    let scene = Scene::start("github", Duration::from_millis(200)).await;
    let job = scene.propose(BY_REQUEST, "echo hello > greeting.txt").await;
    scene.forge.merge(1);
    scene.world.until_stage(&job, Stage::Shipped).await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn gitlab_has_the_same() {
    let scene = Scene::start("gitlab", NEVER).await;
    let job = scene.propose(WITH_CHANGES, "echo \"$GIGA_LEASE_EPOCH\" > greeting.txt").await;
    let url = scene.world.job(&job).await.merge.unwrap().request.unwrap().url;
    assert!(url.ends_with("/acme/hello/-/merge_requests/1"), "{url}");
    let hook = async |secret: &str| scene.forge.gitlab_hook(&scene.world.url, 1, secret).await.as_u16();
    assert_eq!(hook("guessed").await, 401);
    scene.forge.comment(1, "ana", "say hello");
    scene.forge.review(1, "ana", "CHANGES_REQUESTED", "", None);
    let first = scene.forge.head(1);
    assert_eq!(hook(SECRET).await, 204);
    let again = scene.world.until(&job, |job| job.lease_epoch > 1).await;
    assert_eq!(again.reviews.last().unwrap().comment.as_deref(), Some("say hello"));
    scene
        .world
        .until(&job, |job| {
            let second = job.result.as_ref().is_some_and(|result| result.commit != first);
            second && job.merge.as_ref().is_some_and(|merge| merge.state == MergeState::Proposed)
        })
        .await;
    let commit = scene.forge.merge(1);
    assert_eq!(hook(SECRET).await, 204);
    let shipped = scene.world.until_stage(&job, Stage::Shipped).await;
    assert_eq!(shipped.merge.unwrap().commit, Some(commit));
    assert_eq!(scene.forge.pulls().len(), 1);

    let other = scene.propose(BY_REQUEST, "echo other > other.txt").await;
    scene.world.client.act(&other, OperatorAction::Cancel, None, None).await.unwrap();
    scene.until_closed(2).await;
    scene.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_that_no_forge_has_fails_with_the_words_and_none_at_all_is_said_at_once() {
    let scene = Scene::start("github", NEVER).await;
    scene.world.origin("hello");
    let job = scene
        .world
        .submit("greet", &format!("repo: hello\nship: auto\n{BY_REQUEST}"), "echo hello > x")
        .await;
    let waiting =
        scene.world.until(&job, |job| job.merge.as_ref().is_some_and(|merge| merge.detail.is_some())).await;
    let detail = waiting.merge.unwrap().detail.unwrap();
    assert!(detail.contains("no forge of this coordinator has `hello`"), "{detail}");
    scene.end().await;

    let world = World::start().await;
    let manifest = format!("---\nname: x\nrepo: hello\n{BY_REQUEST}\n---\nDo it.\n").into_bytes();
    let refused = world.client.submit(manifest, &Idempotency::Nothing).await.unwrap_err().to_string();
    assert!(refused.contains("merge.by") && refused.contains("--github-token-file"), "{refused}");
}
