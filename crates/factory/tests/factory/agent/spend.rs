//! What runs use up: known while they run, stopped at their cap, counted once.

use std::path::PathBuf;
use std::time::Duration;

use giga_api::wire::{FailReason, ReviewVerdict, Stage};
use giga_domain::{Actor, BudgetChange, BudgetSettings, ChargeHow, Usd};
use giga_factory::agent::AgentConfig;
use giga_factory::engines::{CommandConfig, EventFormat, Program};
use giga_ports::store::ChangeBudget;

use super::world::{Factory, LOOK_AGAIN, PATIENCE, World, processes_of};

/// An engine that speaks as Claude Code does; what it does stands in a script. `$1` is the session to resume.
pub(super) fn metered(world: &World, factory: &str, script: &str) -> AgentConfig {
    speaking(world, factory, EventFormat::Program(Program::Claude), script)
}

pub(crate) fn speaking(world: &World, factory: &str, events: EventFormat, script: &str) -> AgentConfig {
    let path: PathBuf = world.path().join("metered.sh");
    std::fs::write(&path, script).unwrap();
    let argv = vec!["sh".to_owned(), "-eu".to_owned(), path.display().to_string()];
    let resume = argv.iter().cloned().chain(["{session}".to_owned()]).collect();
    let command = CommandConfig {
        argv,
        resume_argv: Some(resume),
        check_argv: None,
        pass_env: Vec::new(),
        events,
        hosts: Vec::new(),
    };
    let mut config = world.config(factory);
    config.engines.commands.insert("metered".to_owned(), command);
    config
}

pub(super) const BEGIN: &str =
    r#"echo '{"type":"system","subtype":"init","session_id":"s-1","model":"claude-sonnet-4-6"}'"#;

pub(super) fn message(tokens: u64) -> String {
    format!(
        r#"echo '{{"type":"assistant","message":{{"id":"m{tokens}","usage":{{"input_tokens":{tokens}}}}}}}'"#
    )
}

/// Of the session since it began.
fn end(usd: &str, tokens: u64) -> String {
    format!(
        r#"echo '{{"type":"result","subtype":"success","result":"done","session_id":"s-1","total_cost_usd":{usd},"usage":{{"input_tokens":{tokens}}}}}'"#
    )
}

pub(super) async fn charges(world: &World, job: &str) -> Vec<(i64, u64, ChargeHow)> {
    let charges = world.store.read().charges(job.parse().unwrap()).await.unwrap();
    charges.into_iter().map(|charge| (charge.usd.micros(), charge.tokens, charge.how)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_run_uses_up_is_known_while_it_runs_and_charged_at_its_end() {
    let world = World::start().await;
    let gate = world.gate("gate");
    let script = [BEGIN, &message(1_000), &format!("read _ < {}", gate.display()), &end("0.5", 1_500)];
    let factory = Factory::start(metered(&world, "a", &script.join("\n")));
    let job = world.ask("dear", "engine: metered\nbudget: {usd: 2}").await;

    let mut lease = None;
    let reported = tokio::time::timeout(PATIENCE, async {
        while lease.as_ref().is_none_or(|lease: &giga_api::wire::Lease| lease.spent_tokens == 0) {
            tokio::time::sleep(LOOK_AGAIN).await;
            lease = world.job(&job).await.lease;
        }
    });
    assert!(reported.await.is_ok(), "{}", world.log(&job, None).await);
    let lease = lease.unwrap();
    // A thousand tokens at three dollars a million.
    assert_eq!(
        (lease.spent_tokens, lease.spent_usd, lease.reserved_usd),
        (1_000, Usd::from_micros(3_000), Usd::from_dollars(2))
    );
    std::fs::write(gate, "go\n").unwrap();
    world.until_stage(&job, Stage::Testing).await;

    let report = world.runs(&job).await[0].report.clone();
    assert_eq!((report.cost_usd, report.tokens), (Some(Usd::from_micros(500_000)), Some(1_500)));
    assert_eq!(charges(&world, &job).await, [(500_000, 1_500, ChargeHow::Measured)]);
    factory.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_stopped_at_the_cap_that_its_product_sets_and_pays_what_it_used() {
    let world = World::start().await;
    let settings = BudgetSettings { job_cap: Some(Usd::from_dollars(1)), ..BudgetSettings::default() };
    let write = ChangeBudget {
        product: "demo".parse().unwrap(),
        change: BudgetChange::Set(settings),
        if_rev: None,
        request: "set".parse().unwrap(),
        actor: Actor::system("test"),
    };
    world.store.change_budget(write).await.unwrap();
    let gate = world.gate("gate");
    let script = [BEGIN, &message(400_000), &format!("read _ < {}", gate.display()), &end("1.2", 400_000)];
    let factory = Factory::start(metered(&world, "a", &script.join("\n")));
    let job = world.ask("too-dear", "engine: metered").await;

    let failed = world.until_stage(&job, Stage::Failed).await.failure.unwrap();
    assert_eq!(failed.reason, FailReason::BudgetExceeded);
    assert!(failed.detail.unwrap().contains("$1.20 are spent, the job's cap is $1.00"));
    let report = world.runs(&job).await[0].report.clone();
    assert_eq!((report.cost_usd, report.tokens), (Some(Usd::from_micros(1_200_000)), Some(400_000)));
    assert_eq!(charges(&world, &job).await, [(1_200_000, 400_000, ChargeHow::Measured)]);
    assert_eq!(processes_of(&job), Vec::<u32>::new());
    factory.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_is_gone_on_with_is_not_charged_twice() {
    let world = World::start().await;
    let (first, second) = (end("0.5", 1_000), end("0.8", 1_600));
    let script = format!(
        "{BEGIN}\nif [ -n \"${{1:-}}\" ]; then echo resumed $1; {}; {second}; else {}; {first}; fi",
        message(600),
        message(1_000)
    );
    let factory = Factory::start(metered(&world, "a", &script));
    let job = world.ask("talker", "engine: metered\nreview: {quorum: 1}").await;
    let reviewed = world.until_stage(&job, Stage::Review).await;
    assert_eq!(reviewed.checkpoint.unwrap().session_id.as_deref(), Some("s-1"));
    world.review(&job, ReviewVerdict::RequestChanges, Some("more")).await;
    let again = world.until(&job, |job| job.stage == Stage::Review && job.lease_epoch == 2).await;

    let log = world.log(&job, Some(2)).await;
    assert!(log.contains("resumed s-1"), "{log}");
    let paid = [(500_000, 1_000, ChargeHow::Measured), (300_000, 600, ChargeHow::Measured)];
    assert_eq!(charges(&world, &job).await, paid);
    let session = again.checkpoint.unwrap().session_spend.unwrap();
    assert_eq!((session.usd, session.tokens), (Usd::from_micros(800_000), 1_600));
    factory.drain().await;
}

/// Without a renewal in between: the final report carries the whole.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_is_handed_back_pays_what_it_used() {
    let world = World::start().await;
    world.set_flag("lease_ms", serde_json::json!(60_000)).await;
    let gate = world.gate("gate");
    let script = [BEGIN, &message(1_000), "echo waiting >&2", &format!("read _ < {}", gate.display())];
    let factory = Factory::start(metered(&world, "a", &script.join("\n")));
    let job = world.ask("left", "engine: metered").await;
    world.until_logged(&job, "waiting\n").await;
    let began = std::time::Instant::now();
    factory.drain().await;
    assert!(began.elapsed() < Duration::from_secs(15));
    assert_eq!(world.job(&job).await.stage, Stage::Queued);
    assert_eq!(charges(&world, &job).await, [(3_000, 1_000, ChargeHow::Measured)]);
}
