//! Two factories with the real Claude Code and Codex, and an account that runs out in the middle of the work.
//!
//! Every job ends well, nothing counts as its failure, and what the product was charged is what the two models sent: in tokens,
//! and in dollars, in Claude Code's own figures and in those of the listed prices for Codex. No run is left out: one that had
//! its first answer when the account was closed pays for that answer.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use giga_api::client::{Client, ClientOptions, Idempotency};
use giga_api::wire::{Ceilings, FailReason, Period, Run, RunOutcome, SetBudgetRequest, Stage};
use giga_domain::Usd;
use giga_factory::engines::{Price, Program};
use giga_scripted_model::{Asked, Script, ScriptedModel, Trouble, TroubleKind, Usage};
use tempfile::TempDir;
use tokio::process::Child;

use crate::bench::{put, tokens};
use crate::fleet::{giga, start};
use crate::subject;

const PRODUCT: &str = "matrix";
const ENGINES: [Program; 2] = [Program::Claude, Program::Codex];
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// For each of the jobs; four run at a time.
const PATIENCE_PER_JOB: Duration = Duration::from_secs(20);

/// One that the factory knows and no setting prices.
const fn model(engine: Program) -> &'static str {
    match engine {
        Program::Codex => "gpt-5",
        other => subject::model(other),
    }
}

/// As the vendors list them.
const fn price(engine: Program) -> Price {
    match engine {
        Program::Codex => Price { input: 1.25, cached_input: 0.125, output: 10.0 },
        _ => subject::PRICE,
    }
}

/// In millionths of a dollar.
fn micros(engine: Program, asked: &[Asked]) -> f64 {
    let price = price(engine);
    let of = |usage: Usage| {
        usage.input as f64 * price.input
            + usage.cache_read as f64 * price.cached_input
            + usage.output as f64 * price.output
    };
    asked.iter().filter_map(|asked| asked.usage).map(of).sum()
}

fn script() -> Script {
    let mut script = Script::writes("hello.txt", "hello\n");
    script.turns[0].usage = Usage { input: 12_345, cache_read: 5_678, output: 912 };
    script.turns[1].usage = Usage { input: 2_345, cache_read: 16_789, output: 11 };
    script
}

struct Fleet {
    claude: ScriptedModel,
    codex: ScriptedModel,
    client: Client,
    /// They end with their handles.
    _processes: Vec<Child>,
    folder: TempDir,
}

impl Fleet {
    async fn start(programs: &Path, scratch: &Path) -> Result<Self> {
        let programs = programs.canonicalize().context("the folder of the programs")?;
        let folder = tempfile::Builder::new().prefix("quota").tempdir_in(scratch.canonicalize()?)?;
        let (claude, codex) = (ScriptedModel::start(script()).await?, ScriptedModel::start(script()).await?);
        let home = folder.path().join("operator");
        let mut path = vec![programs];
        path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
        let path = std::env::join_paths(path)?.to_string_lossy().into_owned();
        let mut environment = vec![("PATH", path), ("HOME", home.display().to_string())];
        let mut settings = String::new();
        for (engine, served) in [(Program::Claude, &claude), (Program::Codex, &codex)] {
            environment.extend(subject::variables(engine, &served.url(), false));
            for (name, text) in subject::home_files(engine, &served.url()) {
                put(&home.join(name), &text)?;
            }
            let (model, passed) = (model(engine), subject::pass_env(engine));
            // Into a string it cannot fail.
            let _ = writeln!(settings, "[engines.{engine}]\nmodel = \"{model}\"\npass-env = {passed:?}");
        }
        put(&home.join(".config/gigafactory/giga.toml"), &settings)?;

        let mut command = giga()?;
        let data = folder.path().join("data");
        command.args(["serve", "--listen", "127.0.0.1:0", "--log", "warn", "--data"]).arg(&data);
        command.stderr(std::fs::File::create(folder.path().join("coordinator.log"))?);
        let (coordinator, url) = start(command).await?;
        let token = std::fs::read_to_string(data.join("admin.token"))?.trim().to_owned();
        let client = Client::new(ClientOptions {
            url: url.clone(),
            token: Some(token.clone()),
            product: Some(PRODUCT.to_owned()),
            ..ClientOptions::default()
        })?;
        let ceilings = Ceilings { total: Some(Usd::from_dollars(1_000)), ..Ceilings::default() };
        let budget = SetBudgetRequest { ceilings, ..SetBudgetRequest::default() };
        client.set_budget(PRODUCT, &budget, None).await?;
        let mut processes = vec![coordinator];
        for id in ["a", "b"] {
            let mut command = giga()?;
            command.args(["factory", "run", "--log", "info", "--id", id, "--seats", "2"]);
            command.args(["--sandbox", "require", "--base"]).arg(folder.path().join(id));
            command.current_dir(folder.path()).envs(environment.clone());
            command.env("GIGA_URL", &url).env("GIGA_TOKEN", &token);
            command.stderr(std::fs::File::create(folder.path().join(format!("factory-{id}.log")))?);
            processes.push(start(command).await?.0);
        }
        Ok(Self { claude, codex, client, _processes: processes, folder })
    }

    fn asked(&self, engine: Program) -> Vec<Asked> {
        if engine == Program::Claude { self.claude.asked() } else { self.codex.asked() }
    }

    async fn until_both_offer_both(&self) -> Result<()> {
        loop {
            let accounts = self.client.accounts().await?.value.accounts;
            let offered = |engine: Program| {
                accounts.iter().any(|account| {
                    account.engines.iter().any(|name| name == engine.as_str()) && account.factories.len() == 2
                })
            };
            if ENGINES.into_iter().all(offered) {
                return Ok(());
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    async fn submit(&self, number: usize) -> Result<String> {
        let manifest = format!(
            "---\nname: job-{number}\nengine: [claude, codex]\nship: auto\nbudget: {{usd: 1}}\n---\nWrite \"hello.txt\".\n"
        );
        Ok(self.client.submit(manifest.into_bytes(), &Idempotency::Nothing).await?.value.job.id)
    }

    /// Until so many of them are shipped; a job that ends in any other way fails this.
    async fn until_shipped(&self, jobs: &[String], enough: usize) -> Result<()> {
        let mut left: Vec<&String> = jobs.iter().collect();
        while jobs.len() - left.len() < enough {
            let mut waits = Vec::new();
            for id in left {
                let job = self.client.job(id).await?.value;
                match job.stage {
                    Stage::Shipped => ensure!(job.attempts == 0, "{id} has {} failed attempts", job.attempts),
                    Stage::Failed | Stage::DeadLetter | Stage::Cancelled => {
                        bail!(
                            "{id} became {}: {:?}",
                            job.stage,
                            self.client.runs(id).await?.value.runs.last()
                        );
                    }
                    _ => waits.push(id),
                }
            }
            left = waits;
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        Ok(())
    }

    async fn runs(&self, jobs: &[String]) -> Result<Vec<Run>> {
        let mut all = Vec::new();
        for id in jobs {
            all.extend(self.client.runs(id).await?.value.runs);
        }
        Ok(all)
    }
}

/// Prints what was seen, and fails where it is not what was promised.
pub(crate) async fn show(programs: &Path, scratch: &Path, keep: bool, jobs: usize) -> Result<()> {
    ensure!(jobs >= 10, "at least 10 jobs: the account runs out after a third of them");
    let mut fleet = Fleet::start(programs, scratch).await?;
    if keep {
        fleet.folder.disable_cleanup(true);
        eprintln!("kept: {}", fleet.folder.path().display());
    }
    let patience = PATIENCE_PER_JOB * u32::try_from(jobs)?;
    let seen = tokio::time::timeout(patience, run(&fleet, jobs)).await;
    seen.with_context(|| format!("it took longer than {patience:?}"))?
}

async fn run(fleet: &Fleet, count: usize) -> Result<()> {
    fleet.until_both_offer_both().await?;
    let mut jobs = Vec::with_capacity(count);
    for number in 1..=count {
        jobs.push(fleet.submit(number).await?);
    }
    fleet.until_shipped(&jobs, count / 3).await?;
    // In the middle of the runs that are under way, too.
    for turn in [0, 1] {
        let kind = TroubleKind::QuotaExhausted { reset_secs: Some(3_600) };
        fleet.claude.begins(Trouble { turn, times: u32::MAX, kind });
    }
    fleet.until_shipped(&jobs, count).await?;

    let runs = fleet.runs(&jobs).await?;
    let mut kinds: BTreeMap<_, usize> = BTreeMap::new();
    for run in &runs {
        let reason = run.failure.as_ref().map(|failure| failure.reason);
        let engine = run.engine.clone().unwrap_or_default();
        ensure!(
            run.outcome == RunOutcome::Succeeded || reason == Some(FailReason::OutOfQuota),
            "a run of {engine} ended {:?}: {:?}",
            run.outcome,
            run.failure
        );
        let how = reason.map_or_else(|| "succeeded".to_owned(), |reason| reason.to_string());
        *kinds.entry((engine, how)).or_default() += 1;
    }
    for ((engine, how), runs) in &kinds {
        println!("{runs:4} runs of {engine}: {how}");
    }
    let many = |engine: Program, how: &str| {
        kinds.get(&(engine.to_string(), how.to_owned())).copied().unwrap_or_default()
    };
    ensure!(many(Program::Claude, "succeeded") > 0 && many(Program::Codex, "succeeded") > 0, "{kinds:?}");
    // Whoever was at work may find it closed; nobody else is sent there.
    let closed = many(Program::Claude, "out_of_quota");
    ensure!((1..=4).contains(&closed), "{closed} runs found the account closed, on four seats");

    let mut sent = (0, 0.0);
    for engine in ENGINES {
        let asked = fleet.asked(engine);
        let (of_tokens, of_micros) = (tokens(&asked), micros(engine, &asked));
        let of_engine = runs.iter().filter(|run| run.engine.as_deref() == Some(engine.as_str()));
        let of_engine: Vec<_> = of_engine.map(|run| &run.report).collect();
        let reported: u64 = of_engine.iter().filter_map(|report| report.tokens).sum();
        let cost: Usd = of_engine.iter().filter_map(|report| report.cost_usd).sum();
        println!(
            "{engine}: {of_tokens} tokens sent, {reported} reported; ${:.6} sent, ${:.6} reported",
            of_micros / 1e6,
            cost.micros() as f64 / 1e6
        );
        ensure!(reported == of_tokens, "{engine}: {reported} tokens are reported, {of_tokens} were sent");
        is_the_same(engine.as_str(), cost, of_micros, of_engine.len())?;
        sent = (sent.0 + of_tokens, sent.1 + of_micros);
    }
    let budget = fleet.client.budget(PRODUCT).await?.value;
    let total = budget.periods.iter().find(|period| period.period == Period::Total).context("no total")?;
    println!(
        "charged: {} tokens, ${:.6}; sent: {}, ${:.6}",
        total.tokens,
        total.spent_usd.micros() as f64 / 1e6,
        sent.0,
        sent.1 / 1e6
    );
    ensure!(total.tokens == sent.0, "{} tokens are charged, {} were sent", total.tokens, sent.0);
    is_the_same("the product", total.spent_usd, sent.1, runs.len())
}

/// Far below a cent: what each run costs is rounded to a millionth of a dollar, by the engine and here.
fn is_the_same(what: &str, cost: Usd, micros: f64, runs: usize) -> Result<()> {
    let off = (cost.micros() as f64 - micros).abs();
    ensure!(
        off <= 2.0 * runs as f64,
        "{what}: ${} are charged, ${} were sent",
        cost.micros() as f64 / 1e6,
        micros / 1e6
    );
    Ok(())
}
