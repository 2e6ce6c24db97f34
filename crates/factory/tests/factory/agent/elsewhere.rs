//! Jobs for engines on other machines: given a branch, they push to it with a git of their own, and what they pushed goes
//! the way of every result.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use giga_api::wire::{Checkpoint, FailReason, Job, OperatorAction, ReviewVerdict, Stage};
use giga_domain::{Timestamp, Usd};
use giga_factory::agent::AgentConfig;
use giga_factory::engines::{RemoteConfig, UrlPrefix};
use giga_factory::workspace::GcOptions;

use super::child::ChildFactory;
use super::service::{Dialect, Service, Task, Turn};
use super::world::{Factory, LEASE_MS, Origin, PATIENCE, World, git};

/// A variable is needed that is there, and whose value is known.
const KEY_VARIABLE: &str = "PATH";

fn all_folders() -> Vec<UrlPrefix> {
    vec![UrlPrefix::try_from("file:///".to_owned()).unwrap()]
}

fn config(world: &World, factory: &str, service: &Service) -> AgentConfig {
    let mut config = world.config(factory);
    match service.dialect {
        Dialect::Contract => {
            config.engines.remote = [(
                "robot".to_owned(),
                RemoteConfig {
                    base_url: service.url.clone(),
                    key_variable: Some(KEY_VARIABLE.to_owned()),
                    poll_interval_ms: 20,
                    repositories: all_folders(),
                },
            )]
            .into();
        }
        dialect => {
            config.engines.disabled.retain(|name| name != "devin");
            let devin = &mut config.engines.devin;
            devin.organization = (dialect == Dialect::Devin3).then(|| "org-1".to_owned());
            devin.base_url = Some(service.url.clone());
            KEY_VARIABLE.clone_into(&mut devin.key_variable);
            devin.poll_interval_ms = 20;
            devin.usd_per_acu = Some(Usd::from_dollars(2));
            devin.repositories = all_folders();
        }
    }
    config
}

async fn service(dialect: Dialect, behave: impl Fn(&Task) -> Turn + Send + Sync + 'static) -> Arc<Service> {
    Service::start(dialect, std::env::var(KEY_VARIABLE).unwrap(), behave).await
}

/// A clone as the agent elsewhere has it, on the branch that it was given.
fn clone(task: &Task) -> PathBuf {
    let dir = task.scratch.join("clone");
    let _ = std::fs::remove_dir_all(&dir);
    git(&task.scratch, &["clone", "-q", "-b", &task.branch, &task.repository, dir.to_str().unwrap()]);
    dir
}

fn commit(dir: &Path, file: &str, text: &str) {
    std::fs::write(dir.join(file), text).unwrap();
    git(dir, &["add", "."]);
    git(dir, &["commit", "-qm", &format!("elsewhere: {file}")]);
}

/// What a well-behaved one does.
fn push(task: &Task, file: &str, text: &str) {
    let dir = clone(task);
    commit(&dir, file, text);
    git(&dir, &["push", "-q", "origin", &format!("HEAD:{}", task.branch)]);
}

fn remote_branches(origin: &Origin) -> Vec<String> {
    origin.branches().into_iter().filter(|name| name.starts_with("giga/remote/")).collect()
}

async fn shipped(world: &World, job: &str) -> Job {
    world.until_stage(job, Stage::Testing).await;
    world.client.act(job, OperatorAction::Ship, None, None).await.unwrap();
    world.until_stage(job, Stage::Shipped).await
}

async fn whole_way(dialect: Dialect) {
    let world = World::start().await;
    let origin = world.origin_elsewhere("hello");
    let service = service(dialect, |task| {
        push(task, "fix.txt", "fixed\n");
        Turn::finished("It is fixed.").acus(1.5)
    })
    .await;
    let factory = Factory::start(config(&world, "a", &service));
    let engine = if dialect == Dialect::Contract { "robot" } else { "devin" };
    let more = format!(
        "engine: {engine}\nrepo: hello\nverify: [\"test $(cat fix.txt) = fixed\"]\nbudget: {{usd: 9}}"
    );
    let job = world.ask("fix", &more).await;
    let ready = world.until_stage(&job, Stage::Testing).await;
    let result = ready.result.unwrap();
    assert_eq!(result.branch, format!("giga/job/{job}/1"));
    assert_eq!(remote_branches(&origin), Vec::<String>::new(), "it is not left lying about");
    assert_eq!(shipped(&world, &job).await.lease_epoch, 1);
    assert_eq!(origin.file("main", "fix.txt"), "fixed");
    let history = origin.git(&["log", "--format=%s", "main"]);
    assert!(history.lines().any(|line| line == "elsewhere: fix.txt"), "its own commit: {history}");
    let run = &world.runs(&job).await[0];
    assert_eq!(run.report.cost_usd, Some(Usd::from_dollars(3)));
    assert_eq!(run.report.summary.as_deref(), Some("It is fixed."));
    let prompt = service.prompts()[0].clone();
    assert!(prompt.starts_with("Do it."), "{prompt}");
    let url = format!("file://{}", origin.path().display());
    assert!(prompt.contains(&url) && prompt.contains(&format!("giga/remote/{job}/1")), "{prompt}");
    assert!(!prompt.contains("GIGA_TOKEN"), "{prompt}");
    factory.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn devin_is_given_a_branch_and_what_it_pushed_is_verified_and_shipped() {
    whole_way(Dialect::Devin3).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn so_is_devin_with_an_older_key() {
    whole_way(Dialect::Devin1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn so_is_any_agent_that_speaks_the_contract() {
    whole_way(Dialect::Contract).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_that_are_asked_for_reach_the_same_session() {
    let world = World::start().await;
    let origin = world.origin("hello");
    let service = service(Dialect::Devin3, |task| {
        let text = if task.message.contains("in capitals") { "LOUD\n" } else { "quiet\n" };
        push(task, "fix.txt", text);
        Turn::finished("Done.").acus(f64::from(task.turn))
    })
    .await;
    let factory = Factory::start(config(&world, "a", &service));
    let more = "engine: devin\nrepo: hello\nreview: {reviewers: [ana]}\nbudget: {usd: 9}";
    let job = world.ask("fix", more).await;
    world.until_stage(&job, Stage::Review).await;
    world.review(&job, ReviewVerdict::RequestChanges, Some("in capitals, please")).await;
    world.until(&job, |job| job.stage == Stage::Review && job.lease_epoch == 2).await;
    world.review(&job, ReviewVerdict::Approve, None).await;
    shipped(&world, &job).await;
    assert_eq!(origin.file("main", "fix.txt"), "LOUD");
    assert_eq!(service.sessions(), 1, "one conversation");
    assert!(service.prompts()[1].contains(&format!("giga/remote/{job}/2")), "{:?}", service.prompts());
    let costs: Vec<_> = world.runs(&job).await.iter().map(|run| run.report.cost_usd).collect();
    assert_eq!(costs, [Some(Usd::from_dollars(2)); 2], "each run pays its own part");
    factory.drain().await;
}

async fn failed(behave: impl Fn(&Task) -> Turn + Send + Sync + 'static) -> (FailReason, String) {
    let world = World::start().await;
    let origin = world.origin("hello");
    let service = service(Dialect::Devin3, behave).await;
    let factory = Factory::start(config(&world, "a", &service));
    let job = world.ask("fix", "engine: devin\nrepo: hello\nverify: [\"true\"]\nretry: {max: 0}").await;
    let failed = world.until(&job, |job| matches!(job.stage, Stage::Failed | Stage::DeadLetter)).await;
    assert_eq!(remote_branches(&origin), Vec::<String>::new());
    assert_eq!(origin.git(&["ls-tree", "--name-only", "main"]), "greeting.txt");
    factory.drain().await;
    let failure = failed.failure.unwrap();
    (failure.reason, failure.detail.unwrap_or_default())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_pushed_nothing_has_failed() {
    let (reason, detail) = failed(|_| Turn::finished("I only looked.")).await;
    assert_eq!(reason, FailReason::Crash);
    assert!(detail.contains("pushed nothing") && detail.contains("I only looked."), "{detail}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_branch_that_was_made_anew_is_not_taken() {
    let (_, detail) = failed(|task| {
        let dir = clone(task);
        git(&dir, &["checkout", "-q", "--orphan", "other"]);
        commit(&dir, "evil.txt", "evil\n");
        git(&dir, &["push", "-qf", "origin", &format!("HEAD:{}", task.branch)]);
        Turn::finished("Done.")
    })
    .await;
    assert!(detail.contains("does not contain"), "{detail}");
    let (_, detail) = failed(|task| {
        let dir = clone(task);
        git(&dir, &["push", "-q", "origin", &format!(":{}", task.branch)]);
        Turn::finished("Done.")
    })
    .await;
    assert!(detail.contains("is gone from the origin"), "{detail}");
}

/// A tree with a `.git` in it, as no git makes one.
#[tokio::test(flavor = "multi_thread")]
async fn a_poisoned_tree_is_not_taken() {
    let (_, detail) = failed(|task| {
        let dir = clone(task);
        std::fs::write(dir.join("config"), "[core]\n\tfsmonitor = touch /tmp/evil\n").unwrap();
        let blob = git(&dir, &["hash-object", "-w", "config"]);
        std::fs::write(dir.join("inner"), format!("100644 blob {blob}\tconfig\n")).unwrap();
        let mktree = |file: &str| git(&dir, &["-c", &format!("alias.make=!git mktree < {file}"), "make"]);
        let inner = mktree("inner");
        std::fs::write(dir.join("outer"), format!("040000 tree {inner}\t.GIT\n")).unwrap();
        let tree = mktree("outer");
        let commit = git(&dir, &["commit-tree", "-p", "HEAD", "-m", "evil", &tree]);
        git(&dir, &["push", "-q", "origin", &format!("{commit}:refs/heads/{}", task.branch)]);
        Turn::finished("Done.")
    })
    .await;
    assert!(detail.contains("hasDotgit") || detail.contains(".git"), "{detail}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_job_ends_its_session_and_leaves_no_branch() {
    let world = World::start().await;
    let origin = world.origin("hello");
    let service = service(Dialect::Devin3, |task| {
        push(task, "half.txt", "half\n");
        Turn::working("at it")
    })
    .await;
    let factory = Factory::start(config(&world, "a", &service));
    let job = world.ask("fix", "engine: devin\nrepo: hello").await;
    world.until_logged(&job, "devin: at it").await;
    world.client.act(&job, OperatorAction::Cancel, None, None).await.unwrap();
    service.until(|heard| heard.iter().any(|what| what == "stop")).await;
    factory.drain().await;
    assert_eq!(remote_branches(&origin), Vec::<String>::new());
}

/// What was pushed before the factory left is there for the next one, which begins another session: an ended one cannot be
/// gone on with. The first agent does not know that it was ended.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_nobody_waits_for_any_more_changes_nothing() {
    let world = World::start().await;
    let origin = world.origin("hello");
    let service = service(Dialect::Devin3, |task| {
        if task.turn == 1 {
            push(task, "half.txt", "half\n");
            return Turn::working("half way");
        }
        let dir = clone(task);
        assert!(dir.join("half.txt").exists(), "the second starts from the first's work");
        commit(&dir, "whole.txt", "whole\n");
        // The ghost: it still pushes where it was told to.
        let ghost = format!("{}/1", task.branch.rsplit_once('/').unwrap().0);
        git(&dir, &["checkout", "-q", "-b", "ghost", "HEAD^"]);
        commit(&dir, "ghost.txt", "boo\n");
        git(&dir, &["push", "-q", "origin", &format!("ghost:refs/heads/{ghost}")]);
        git(&dir, &["push", "-q", "origin", &format!("{}:{}", task.branch, task.branch)]);
        Turn::finished("Done.")
    })
    .await;
    let first = Factory::start(config(&world, "a", &service));
    let job = world.ask("fix", "engine: devin\nrepo: hello").await;
    world.until_logged(&job, "devin: half way").await;
    first.drain().await;
    assert_eq!(service.heard().last().unwrap(), "stop");
    assert_eq!(world.job(&job).await.stage, Stage::Queued);
    let second = Factory::start(config(&world, "b", &service));
    let ready = world.until_stage(&job, Stage::Testing).await;
    assert!(ready.lease_epoch > 1 && service.sessions() == 2, "{ready:#?}");
    assert_eq!(remote_branches(&origin), Vec::<String>::new(), "the ghost's went with its successor's");
    // And it comes back once more.
    origin.git(&["branch", &format!("giga/remote/{job}/1"), "main"]);
    shipped(&world, &job).await;
    let files = origin.git(&["ls-tree", "--name-only", "main"]);
    assert_eq!(files.lines().collect::<Vec<_>>(), ["greeting.txt", "half.txt", "whole.txt"]);
    second.drain().await;
    assert_eq!(remote_branches(&origin), Vec::<String>::new(), "gone with the job");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_that_it_cannot_reach_is_refused_before_anything_costs() {
    let world = World::start().await;
    world.origin("hello");
    let service = service(Dialect::Devin3, |_| Turn::finished("Done.")).await;
    let mut config = config(&world, "a", &service);
    config.engines.devin.repositories = Vec::new();
    let factory = Factory::start(config);
    let job = world.ask("fix", "engine: devin\nrepo: hello").await;
    let failure = world.until_stage(&job, Stage::Failed).await.failure.unwrap();
    assert_eq!(failure.reason, FailReason::CapabilityMismatch);
    let detail = failure.detail.unwrap();
    assert!(detail.contains("cannot reach the repository hello: it is a folder of this machine"), "{detail}");
    assert_eq!(service.sessions(), 0);
    factory.drain().await;
}

/// Killed with its session at work: the next one goes on with the same session, from what was pushed.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_factory_leaves_a_session_that_the_next_one_resumes() {
    let world = World::start().await;
    let origin = world.origin("hello");
    let (began, mut tasks) = tokio::sync::mpsc::unbounded_channel();
    let service = service(Dialect::Devin3, move |task| {
        if task.turn == 1 {
            let _ = began.send(task.clone());
            return Turn::working("half way");
        }
        push(task, "turn-2.txt", "x\n");
        Turn::finished("Done.")
    })
    .await;
    service.write_settings(world.path());
    let first = ChildFactory::that_saves_seldom(&world, "a");
    let job = world.ask("fix", "engine: devin\nrepo: hello\nretry: {max: 3, backoff: 0s}").await;
    // The session's name is saved as soon as it is known. What it pushes after that is not.
    let is_known = |c: &Checkpoint| c.session_id.is_some();
    world.until(&job, |job| job.checkpoint.as_ref().is_some_and(is_known)).await;
    let task = tasks.recv().await.unwrap();
    push(&task, "turn-1.txt", "x\n");
    first.kill9();
    assert_eq!(world.job(&job).await.checkpoint.and_then(|checkpoint| checkpoint.commit), None);
    assert_eq!(remote_branches(&origin), [format!("giga/remote/{job}/1")]);
    let second = Factory::start(config(&world, "b", &service));
    tokio::time::timeout(PATIENCE, world.until(&job, |job| job.lease_epoch == 2)).await.unwrap();
    shipped(&world, &job).await;
    assert_eq!(service.sessions(), 1, "resumed, after a lease of {LEASE_MS} ms");
    let files = origin.git(&["ls-tree", "--name-only", "main"]);
    assert_eq!(files.lines().collect::<Vec<_>>(), ["greeting.txt", "turn-1.txt", "turn-2.txt"]);
    assert_eq!(remote_branches(&origin), Vec::<String>::new());
    second.drain().await;
}

/// It had pushed everything when its factory was killed, and says so to the next one.
#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_has_nothing_to_add_after_a_kill_is_done() {
    let world = World::start().await;
    let origin = world.origin("hello");
    let (began, mut tasks) = tokio::sync::mpsc::unbounded_channel();
    let service = service(Dialect::Devin3, move |task| {
        if task.turn == 1 {
            let _ = began.send(task.clone());
            return Turn::working("half way");
        }
        Turn::finished("It was done already.")
    })
    .await;
    service.write_settings(world.path());
    let first = ChildFactory::that_saves_seldom(&world, "a");
    let job = world.ask("fix", "engine: devin\nrepo: hello\nretry: {max: 3, backoff: 0s}").await;
    world.until(&job, |job| job.checkpoint.as_ref().is_some_and(|c| c.session_id.is_some())).await;
    push(&tasks.recv().await.unwrap(), "all.txt", "x\n");
    first.kill9();
    let second = Factory::start(config(&world, "b", &service));
    shipped(&world, &job).await;
    let files = origin.git(&["ls-tree", "--name-only", "main"]);
    assert_eq!(files.lines().collect::<Vec<_>>(), ["all.txt", "greeting.txt"]);
    second.drain().await;
}

/// A branch that outlived everybody who knew of it.
#[tokio::test(flavor = "multi_thread")]
async fn the_clean_up_finds_branches_of_jobs_that_are_over() {
    let world = World::start().await;
    let origin = world.origin("hello");
    let factory = world.factory("a");
    let over = world.submit("over", "repo: hello", "echo 1 > one.txt").await;
    let open = world.submit("open", "repo: hello", "echo 2 > two.txt").await;
    for job in [&over, &open] {
        world.until_stage(job, Stage::Testing).await;
        origin.git(&["branch", &format!("giga/remote/{job}/1"), "main"]);
    }
    world.client.act(&over, OperatorAction::Cancel, None, None).await.unwrap();
    factory.drain().await;
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let options = GcOptions::at(Timestamp::ZERO.plus(now));
    world.workspace("a").gc(&world.states_for("a"), options).await.unwrap();
    assert_eq!(remote_branches(&origin), [format!("giga/remote/{open}/1")]);
}
