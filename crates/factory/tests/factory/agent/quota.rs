//! Accounts that run out of quota while a fleet works: what can go on with another engine does, and what cannot waits.

use std::collections::BTreeMap;
use std::path::PathBuf;

use giga_api::wire::{AccountState, FailReason, RunOutcome, SetProductRequest, Stage, Weights};
use giga_domain::{ScoreTerm, Usd};
use giga_factory::agent::AgentConfig;
use giga_factory::engines::{CommandConfig, EventFormat, Program};

use super::world::{Factory, LOOK_AGAIN, PATIENCE, World};

const CLAUDE_USD: &str = "0.0123";
const CODEX_USD: &str = "0.0456";

/// Both speak as Claude Code does. `claude` answers as long as the file of its factory says, and then its window is used
/// up; what each of them was paid for is written down as a provider would.
fn engines(world: &World, factory: &str, seats: u32) -> AgentConfig {
    let mut config = world.config(factory);
    config.seats = seats;
    config.engines.disabled.retain(|name| !["claude", "codex"].contains(&name.as_str()));
    for (name, usd) in [("claude", CLAUDE_USD), ("codex", CODEX_USD)] {
        let script = world.path().join(format!("{factory}-{name}.sh"));
        std::fs::write(&script, engine(world, factory, name, usd)).unwrap();
        let argv = vec!["sh".to_owned(), "-eu".to_owned(), script.display().to_string()];
        let command = CommandConfig {
            argv,
            resume_argv: None,
            check_argv: None,
            pass_env: Vec::new(),
            events: EventFormat::Program(Program::Claude),
            hosts: Vec::new(),
        };
        config.engines.commands.insert(name.to_owned(), command);
    }
    config
}

fn engine(world: &World, factory: &str, name: &str, usd: &str) -> String {
    let (ledger, left) = (ledger(world), left(world, factory, name));
    let init =
        format!(r#"{{"type":"system","subtype":"init","session_id":"{name}-$$","model":"{name}-large"}}"#);
    let done = format!(
        r#"{{"type":"result","subtype":"success","result":"done","session_id":"{name}-$$","total_cost_usd":{usd},"usage":{{"input_tokens":7}}}}"#
    );
    let out = format!(
        r#"{{"type":"result","subtype":"success","is_error":true,"result":"You have hit your usage limit","session_id":"{name}-$$","total_cost_usd":0,"usage":{{}}}}"#
    );
    // `$$` is the shell's own number, so each run is a session of its own.
    let say = |line: &str| format!("echo '{}'", line.replace("$$", "'$$'"));
    format!(
        "{}\nif [ -e {left} ]; then\n  n=$(cat {left})\n  if [ \"$n\" -le 0 ]; then {}; exit 1; fi\n  echo $((n - 1)) > {left}\nfi\necho '{name} {usd}' >> {ledger}\n{}\n",
        say(&init),
        say(&out),
        say(&done),
        left = left.display(),
        ledger = ledger.display(),
    )
}

fn ledger(world: &World) -> PathBuf {
    world.path().join("ledger")
}

/// How many more runs the account pays for; no file: as many as you like.
fn left(world: &World, factory: &str, engine: &str) -> PathBuf {
    world.path().join(format!("{factory}-{engine}.left"))
}

/// How often each engine was paid, and how much in all.
fn paid(world: &World) -> (BTreeMap<String, usize>, Usd) {
    let text = std::fs::read_to_string(ledger(world)).unwrap_or_default();
    let (mut times, mut sum) = (BTreeMap::new(), Usd::ZERO);
    for (engine, usd) in text.lines().filter_map(|line| line.split_once(' ')) {
        *times.entry(engine.to_owned()).or_default() += 1;
        sum += Usd::from_f64(usd.parse().unwrap()).unwrap();
    }
    (times, sum)
}

#[tokio::test(flavor = "multi_thread")]
async fn fifty_jobs_are_done_although_an_account_runs_out_in_the_middle() {
    let world = World::start().await;
    std::fs::write(left(&world, "a", "claude"), "6\n").unwrap();
    std::fs::write(left(&world, "b", "claude"), "9\n").unwrap();
    let factories = ["a", "b"].map(|name| Factory::start(engines(&world, name, 1)));
    let mut jobs = Vec::new();
    for number in 0..50 {
        jobs.push(
            world
                .ask(&format!("job-{number}"), "engine: [claude, codex]\nship: auto\nbudget: {usd: 1}")
                .await,
        );
    }
    let (mut charged, mut bounced, mut moved) = (Usd::ZERO, 0, 0);
    for job in &jobs {
        let done = world.until_stage(job, Stage::Shipped).await;
        assert_eq!(done.attempts, 0, "{done:#?}");
        for charge in world.store.read().charges(job.parse().unwrap()).await.unwrap() {
            charged += charge.usd;
        }
        for run in world.runs(job).await {
            let engine = run.engine.as_deref().expect("every run says what ran it");
            match run.outcome {
                RunOutcome::Succeeded => {
                    assert_eq!(run.model.as_deref(), Some(format!("{engine}-large").as_str()));
                    moved += usize::from(engine == "codex");
                }
                RunOutcome::Failed => {
                    assert_eq!((run.failure.unwrap().reason, engine), (FailReason::OutOfQuota, "claude"));
                    bounced += 1;
                }
                other => panic!("{other:?}"),
            }
        }
    }
    let (times, sum) = paid(&world);
    assert_eq!((times["claude"], times["codex"]), (15, 35));
    assert_eq!(moved, 35);
    assert_eq!(charged, sum, "what the provider was paid is what the fleet has charged");
    // Each account was found to be used up once: nobody is sent there again before its time.
    assert_eq!(bounced, 2);
    let events = world.client.job_events(jobs.last().unwrap(), None).await.unwrap().value.events;
    let said = events.iter().find(|event| event.kind.to_string() == "job.engine_passed_over").unwrap();
    assert!(
        said.cause.contains("with codex on") && said.cause.contains("claude is out of quota until"),
        "{}",
        said.cause
    );
    for factory in factories {
        factory.drain().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_only_a_closed_account_can_run_waits_with_the_reason_and_the_time() {
    let world = World::start().await;
    std::fs::write(left(&world, "a", "claude"), "0\n").unwrap();
    let factory = Factory::start(engines(&world, "a", 1));
    let job = world.ask("only-claude", "engine: claude\nship: auto\nretry: {max: 0}").await;
    let waits = world.until(&job, |job| job.last_failure.is_some() && job.stage == Stage::Queued).await;
    assert_eq!((waits.attempts, waits.last_failure.unwrap().reason), (0, FailReason::OutOfQuota));
    let explained = world.client.explain(&job).await.unwrap().value;
    assert!(
        explained.summary.contains("claude on a is out of quota until")
            && explained.summary.contains("codex there is free"),
        "{}",
        explained.summary
    );
    let accounts = world.client.accounts().await.unwrap().value.accounts;
    let claude = accounts.iter().find(|account| account.engines == ["claude"]).unwrap();
    assert_eq!(
        (claude.state, claude.waiting, &claude.waiting_jobs),
        (AccountState::OutOfQuota, 1, &vec![job.clone()])
    );
    assert_eq!(claude.factories, ["a"]);
    let codex = accounts.iter().find(|account| account.engines == ["codex"]).unwrap();
    assert_eq!((codex.state, codex.waiting), (AccountState::Open, 0));
    // Others go on meanwhile.
    let other = world.ask("either", "engine: [claude, codex]\nship: auto").await;
    world.until_stage(&other, Stage::Shipped).await;
    assert_eq!(world.runs(&job).await.len(), 1, "nobody tried again before its time");
    factory.drain().await;
}

/// The login is the machine's own, so the other factory goes on with its claude.
#[tokio::test(flavor = "multi_thread")]
async fn a_factory_whose_preferred_engine_is_open_is_chosen() {
    let world = World::start().await;
    // How busy this machine was at the moment of each heartbeat is another matter.
    let weights = giga_domain::Weights::default().with(ScoreTerm::Load, 0.0);
    let product = SetProductRequest { weights: Some(Weights(weights)), ..SetProductRequest::default() };
    world.client.set_product("demo", &product, None).await.unwrap();
    std::fs::write(left(&world, "a", "claude"), "0\n").unwrap();
    let first = Factory::start(engines(&world, "a", 1));
    let warm = world.ask("warm", "engine: [claude, codex]\nship: auto").await;
    world.until_stage(&warm, Stage::Shipped).await;
    let second = Factory::start(engines(&world, "b", 1));
    let known = tokio::time::timeout(PATIENCE, async {
        while world.client.accounts().await.unwrap().value.accounts.len() < 4 {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    });
    assert!(known.await.is_ok());
    let job = world.ask("one", "engine: [claude, codex]\nship: auto").await;
    world.until_stage(&job, Stage::Shipped).await;
    let run = world.runs(&job).await.pop().unwrap();
    assert_eq!((run.factory_id.as_str(), run.engine.as_deref()), ("b", Some("claude")));
    first.drain().await;
    second.drain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_factory_that_restarts_remembers_which_account_is_closed() {
    let world = World::start().await;
    std::fs::write(left(&world, "a", "claude"), "0\n").unwrap();
    let before = Factory::start(engines(&world, "a", 1));
    let first = world.ask("first", "engine: [claude, codex]\nship: auto").await;
    world.until_stage(&first, Stage::Shipped).await;
    before.drain().await;
    let after = Factory::start(engines(&world, "a", 1));
    let second = world.ask("second", "engine: [claude, codex]\nship: auto").await;
    world.until_stage(&second, Stage::Shipped).await;
    let engines = |runs: Vec<giga_api::wire::Run>| -> Vec<String> {
        runs.into_iter().filter_map(|run| run.engine).collect()
    };
    assert_eq!(engines(world.runs(&first).await), ["claude", "codex"]);
    assert_eq!(engines(world.runs(&second).await), ["codex"], "nobody tried claude again");
    after.drain().await;
}
