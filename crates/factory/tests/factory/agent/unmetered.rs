//! Runs that end before their engines said what they used, and runs that nobody wants any more.

use std::time::Duration;

use giga_api::wire::{OperatorAction, RunOutcome, Stage};
use giga_domain::ChargeHow;
use giga_factory::agent::AgentConfig;
use giga_factory::engines::{EventFormat, Program};
use serde_json::json;

use super::proxy::Proxy;
use super::spend::{BEGIN, charges, message, metered, speaking};
use super::world::{Factory, LOOK_AGAIN, Origin, PATIENCE, World, processes_of, work_folders};

const RELEASE: &str = "/api/fleet/jobs/{id}/lease/release";
const CAP: &str = "engine: metered\nbudget: {usd: 2}";

/// An engine that names its sum at its end, as Codex does, and does not get there.
fn unmetered(world: &World, factory: &str, then: &str) -> AgentConfig {
    let answer = r#"{"type":"item.completed","item":{"type":"command_execution"}}"#;
    let begin = format!(r#"echo '{{"type":"turn.started"}}'; echo '{answer}'; echo waiting >&2"#);
    speaking(world, factory, EventFormat::Program(Program::Codex), &format!("{begin}\n{then}"))
}

fn waits(world: &World) -> String {
    waits_at(world, "gate")
}

fn waits_at(world: &World, gate: &str) -> String {
    format!("read _ < {}", world.gate(gate).display())
}

async fn assumed(world: &World, job: &str) {
    assert_eq!(charges(world, job).await, [(2_000_000, 0, ChargeHow::Assumed)], "and the ledger says so");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_drained_before_it_reports_its_usage_pays_what_was_reserved() {
    let world = World::start().await;
    let factory = Factory::start(unmetered(&world, "a", &waits(&world)));
    let job = world.ask("left", CAP).await;
    world.until_logged(&job, "waiting\n").await;
    factory.drain().await;
    assert_eq!(world.job(&job).await.stage, Stage::Queued);
    assumed(&world, &job).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_gives_its_seat_up_before_it_reports_its_usage_pays_what_was_reserved() {
    let world = World::start().await;
    let factory = Factory::start(unmetered(&world, "a", &waits(&world)));
    let job = world.ask("victim", CAP).await;
    world.until_logged(&job, "waiting\n").await;
    let urgent = world.submit("urgent", "priority: critical", &waits_at(&world, "busy")).await;
    world.evict(&job, &urgent).await;
    world.until(&job, |job| job.evictions == 1).await;
    assumed(&world, &job).await;
    factory.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_dies_before_it_reports_its_usage_pays_what_was_reserved() {
    let world = World::start().await;
    let factory = Factory::start(unmetered(&world, "a", "exit 3"));
    let job = world.ask("dies", &format!("{CAP}\nretry: {{max: 0}}")).await;
    world.until(&job, |job| job.failure.is_some()).await;
    assumed(&world, &job).await;
    factory.drain().await;
}

/// Nothing is known to be used, and nothing is charged at each retry.
#[tokio::test(flavor = "multi_thread")]
async fn a_model_that_never_answers_costs_nothing() {
    let world = World::start().await;
    let silent = speaking(
        &world,
        "a",
        EventFormat::Program(Program::Codex),
        r#"echo '{"type":"turn.started"}'; exit 3"#,
    );
    let factory = Factory::start(silent);
    let job = world.ask("silent", &format!("{CAP}\nretry: {{max: 0}}")).await;
    world.until(&job, |job| job.failure.is_some()).await;
    let paid: i64 = charges(&world, &job).await.iter().map(|(usd, ..)| usd).sum();
    assert_eq!(paid, 0);
    factory.drain().await;
}

/// It has no account.
#[tokio::test(flavor = "multi_thread")]
async fn a_script_pays_nothing_however_it_ends() {
    let world = World::start().await;
    let factory = world.factory("a");
    let job = world.submit("script", "budget: {usd: 2}\nretry: {max: 0}", "exit 3").await;
    world.until(&job, |job| job.failure.is_some()).await;
    let paid: i64 = charges(&world, &job).await.iter().map(|(usd, ..)| usd).sum();
    assert_eq!(paid, 0);
    factory.drain().await;
}

/// A drain that nobody hears of knows what its run used; so does the restart.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_drained_run_used_is_told_by_the_next_start() {
    let world = World::start().await;
    world.origin("hello");
    world.set_flag("lease_ms", json!(3_600_000)).await;
    let proxy = Proxy::of(&world.url).await;
    let script = [BEGIN, &message(1_000), "echo waiting >&2", &waits(&world)].join("\n");
    let mut config = metered(&world, "a", &script);
    config.url.clone_from(&proxy.url);
    let factory = Factory::start(config.clone());
    let job = world.ask("left", &format!("{CAP}\nrepo: hello")).await;
    world.until_logged(&job, "waiting\n").await;
    proxy.gone();
    factory.drain().await;
    assert_eq!(world.job(&job).await.stage, Stage::Building, "nobody heard of it");
    assert_eq!(processes_of(&job), Vec::<u32>::new());

    // One that takes nothing new: it only settles what was left.
    proxy.everything_through();
    config.engines.commands.clear();
    let again = Factory::start(config);
    world.until_stage(&job, Stage::Queued).await;
    assert_eq!(charges(&world, &job).await, [(3_000, 1_000, ChargeHow::Measured)]);
    again.drain().await;
}

/// Before the next renewal is due, so that the holder learns of it when it asks by itself: its engine is done, its checks
/// are under way, and what it has is about to leave the machine.
struct AboutToHandOver {
    world: World,
    origin: Origin,
    factory: Factory,
    job: String,
    gate: std::path::PathBuf,
}

impl AboutToHandOver {
    async fn start() -> Self {
        let world = World::start().await;
        let origin = world.origin("hello");
        world.set_flag("lease_ms", json!(3_600_000)).await;
        world.set_flag("delivery", json!("poll")).await;
        let mut config = world.config("a");
        config.checkpoint_every = Duration::from_hours(1);
        let factory = Factory::start(config);
        let gate = world.gate("gate");
        let verify = format!("verify: ['echo checking; read _ < {}']", gate.display());
        let job = world.submit("late", &format!("repo: hello\n{verify}"), "echo x > x.txt").await;
        world.until_logged(&job, "checking\n").await;
        Self { world, origin, factory, job, gate }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_job_leaves_the_machine_that_was_cancelled_a_moment_ago() {
    let AboutToHandOver { world, origin, factory, job, gate } = AboutToHandOver::start().await;
    world.client.act(&job, OperatorAction::Cancel, None, None).await.unwrap();
    std::fs::write(gate, "go\n").unwrap();
    // The seat is free again only when everything of the first one is gone.
    let next = world.submit("next", "", "true").await;
    world.until_stage(&next, Stage::Testing).await;
    assert_eq!(origin.branches(), ["main"]);
    assert_eq!(world.client.artifacts(&job).await.unwrap().value.artifacts, []);
    assert_eq!(world.job(&job).await.stage, Stage::Cancelled);
    factory.drain().await;
    assert_eq!(work_folders(&world.base("a")), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_seat_that_was_asked_for_a_moment_ago_is_given_up_before_anything_is_handed_over() {
    let AboutToHandOver { world, origin, factory, job, gate } = AboutToHandOver::start().await;
    let urgent = world.submit("urgent", "priority: critical", &waits_at(&world, "busy")).await;
    world.evict(&job, &urgent).await;
    std::fs::write(gate, "go\n").unwrap();
    world.until(&job, |job| job.evictions == 1 || job.stage == Stage::Testing).await;
    assert_eq!(world.runs(&job).await[0].outcome, RunOutcome::Preempted);
    let branches = origin.branches();
    assert!(!branches.contains(&format!("giga/job/{job}/1")), "{branches:?}");
    factory.drain().await;
}

/// Nothing was told before it: the cancelled run was charged all that it was allowed to, and gets the rest back.
#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_run_tells_what_it_really_cost() {
    let world = World::start().await;
    world.set_flag("lease_ms", json!(6_000)).await;
    world.set_flag("delivery", json!("poll")).await;
    let script = [BEGIN, &message(1_000), "echo waiting >&2", &waits(&world)].join("\n");
    let factory = Factory::start(metered(&world, "a", &script));
    let job = world.ask("unwanted", CAP).await;
    world.until_logged(&job, "waiting\n").await;
    world.client.act(&job, OperatorAction::Cancel, None, None).await.unwrap();
    world.until_answered(RELEASE, 1).await;
    assert_eq!(processes_of(&job), Vec::<u32>::new(), "it was stopped first");
    let paid = async || charges(&world, &job).await.iter().map(|(usd, ..)| usd).sum::<i64>();
    let settled = tokio::time::timeout(PATIENCE, async {
        while paid().await != 3_000 {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    });
    assert!(settled.await.is_ok(), "{:?}", charges(&world, &job).await);
    factory.drain().await;
    assert_eq!(world.answered(RELEASE).await, 1, "said once");
}
