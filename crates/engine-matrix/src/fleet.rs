//! What only the whole system can show: a coordinator and a factory as processes of their own, a repository, and the real
//! engine in a job.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use giga_api::client::{Client, ClientOptions, Idempotency};
use giga_api::wire::{Ceilings, Job, Period, ReviewRequest, ReviewVerdict, SetBudgetRequest, Stage};
use giga_domain::Usd;
use giga_scripted_model::{Asked, Script, Trouble, TroubleKind, Turn, Usage};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::bench::{Bench, Trial, beside, git, put, tokens};
use crate::conversation::cost;
use crate::subject;

const PRODUCT: &str = "matrix";
const PATIENCE: Duration = Duration::from_mins(2);
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// More than any run here uses.
const CAP: &str = "budget: {usd: 5}";

struct Fleet<'a> {
    bench: &'a Bench,
    trial: &'a Trial,
    coordinator: Child,
    url: String,
    token: String,
    client: Client,
    factory: Option<Child>,
}

impl<'a> Fleet<'a> {
    async fn start(bench: &'a Bench, trial: &'a Trial) -> Result<Self> {
        let seed = trial.path("seed");
        put(&seed.join("README.md"), "A repository.\n")?;
        git(&seed, &["init", "--quiet", "--initial-branch=main"])?;
        git(&seed, &["add", "--all"])?;
        git(&seed, &["commit", "--quiet", "--message", "first"])?;
        let (origin, checkout) = (trial.path("origin.git"), trial.path("repos/hello"));
        let text = |path: &std::path::Path| path.display().to_string();
        git(&seed, &["clone", "--quiet", "--bare", &text(&seed), &text(&origin)])?;
        git(&seed, &["clone", "--quiet", &text(&origin), &text(&checkout)])?;
        put(&trial.home().join(".config/gigafactory/giga.toml"), &settings(bench))?;

        let mut command = giga()?;
        command.args(["serve", "--listen", "127.0.0.1:0", "--log", "warn", "--data"]).arg(trial.path("data"));
        command.stderr(std::fs::File::create(trial.path("coordinator.log"))?);
        let (coordinator, url) = start(command).await?;
        let token = std::fs::read_to_string(trial.path("data/admin.token"))?.trim().to_owned();
        let client = Client::new(ClientOptions {
            url: url.clone(),
            token: Some(token.clone()),
            product: Some(PRODUCT.to_owned()),
            ..ClientOptions::default()
        })?;
        let ceilings = Ceilings { total: Some(Usd::from_dollars(100)), ..Ceilings::default() };
        let budget = SetBudgetRequest { ceilings, ..SetBudgetRequest::default() };
        client.set_budget(PRODUCT, &budget, None).await?;
        let mut fleet = Self { bench, trial, coordinator, url, token, client, factory: None };
        fleet.start_factory().await?;
        Ok(fleet)
    }

    async fn start_factory(&mut self) -> Result<()> {
        let mut command = giga()?;
        command.args(["factory", "run", "--log", "info", "--id", "matrix", "--seats", "1"]);
        command.args(["--sandbox", "require", "--repos"]).arg(self.trial.path("repos"));
        command.arg("--base").arg(self.trial.path("factory")).current_dir(self.trial.path("repos"));
        command.envs(self.trial.environment(self.bench));
        command.env("GIGA_URL", &self.url).env("GIGA_TOKEN", &self.token);
        let log = std::fs::File::options().create(true).append(true).open(self.trial.path("factory.log"))?;
        command.stderr(log);
        let (factory, _) = start(command).await?;
        self.factory = Some(factory);
        Ok(())
    }

    /// As a machine that loses its power.
    async fn kill_factory(&mut self) -> Result<()> {
        let mut factory = self.factory.take().context("no factory runs")?;
        // SIGKILL, and then it is gone.
        factory.kill().await?;
        Ok(())
    }

    async fn submit(&self, more: &str) -> Result<String> {
        let engine = self.bench.engine;
        let manifest = format!(
            "---\nname: trial\nrepo: hello\nengine: {engine}\n{CAP}\n{more}\n---\nWrite \"hello.txt\".\n"
        );
        Ok(self.client.submit(manifest.into_bytes(), &Idempotency::Nothing).await?.value.job.id)
    }

    async fn until(&self, id: &str, what: &str, is_so: impl Fn(&Job) -> bool) -> Result<Job> {
        let look = async {
            loop {
                let job = self.client.job(id).await?.value;
                if is_so(&job) {
                    return anyhow::Ok(job);
                }
                if matches!(job.stage, Stage::Failed | Stage::DeadLetter | Stage::Cancelled) {
                    bail!("the job became {}: {}", job.stage, self.last_failure(id).await);
                }
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        };
        match tokio::time::timeout(PATIENCE, look).await {
            Ok(job) => job,
            Err(_) => bail!("the job was never {what}"),
        }
    }

    async fn last_failure(&self, id: &str) -> String {
        let Ok(runs) = self.client.runs(id).await else { return String::new() };
        let failures = runs.value.runs.into_iter().filter_map(|run| run.failure);
        failures.map(|failure| format!("{failure:?}")).next_back().unwrap_or_default()
    }

    async fn until_asked(&self, what: &str, is_so: impl Fn(&[Asked]) -> bool) -> Result<()> {
        let look = async {
            while !is_so(&self.trial.model.asked()) {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
        };
        tokio::time::timeout(PATIENCE, look)
            .await
            .with_context(|| format!("the model was never asked {what}"))
    }

    /// What the product was charged is what the model sent.
    async fn expect_charged(&self, asked: &[Asked]) -> Result<()> {
        let budget = self.client.budget(PRODUCT).await?.value;
        let total =
            budget.periods.iter().find(|period| period.period == Period::Total).context("no total")?;
        let (told, sent) = (total.tokens, tokens(asked));
        ensure!(told == sent, "{told} tokens are charged, the model sent {sent}");
        let (told, sent) = (total.spent_usd, cost(asked));
        ensure!((told - sent).micros().abs() <= 4, "{told} are charged, the model sent {sent}");
        Ok(())
    }
}

impl Drop for Fleet<'_> {
    fn drop(&mut self) {
        // Both end with their handles; a job's processes end with the factory.
        let _ = self.coordinator.start_kill();
        if let Some(factory) = &mut self.factory {
            let _ = factory.start_kill();
        }
    }
}

/// Of the operator: the model, and what it costs.
fn settings(bench: &Bench) -> String {
    let (engine, model, price) = (bench.engine, subject::model(bench.engine), subject::PRICE);
    let passed = subject::pass_env(engine);
    format!(
        "[engines.{engine}]\nmodel = \"{model}\"\npass-env = {passed:?}\n[engines.prices.\"{}\"]\ninput = {:?}\n\
         cached-input = {:?}\noutput = {:?}\n",
        subject::asked_as(model),
        price.input,
        price.cached_input,
        price.output
    )
}

pub(crate) fn giga() -> Result<Command> {
    let mut command = Command::new(beside("giga")?);
    // Nothing of the caller's settings may slip in.
    command.env_clear().stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
    Ok(command)
}

/// Until it is ready, and where it is.
pub(crate) async fn start(mut command: Command) -> Result<(Child, String)> {
    let mut process = command.spawn()?;
    let stdout = process.stdout.take().context("stdout was asked for")?;
    let mut lines = BufReader::new(stdout).lines();
    let ready = async {
        while let Some(line) = lines.next_line().await? {
            if let Some(where_it_is) = line.strip_prefix("ready ") {
                return Ok(where_it_is.to_owned());
            }
        }
        bail!("it ended before it was ready: {command:?}")
    };
    let url = tokio::time::timeout(PATIENCE, ready).await.context("it was never ready")??;
    // Whatever else it prints is nobody's: the pipe stays open until it ends.
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    Ok((process, url))
}

fn script() -> Script {
    let mut script = Script::writes("hello.txt", "hello\n");
    script.turns[0].usage = Usage { input: 1_234, cache_read: 567, output: 89 };
    script.turns[1].usage = Usage { input: 2_345, cache_read: 6_789, output: 11 };
    let third = Usage { input: 3_456, cache_read: 78, output: 9 };
    script.turns.push(Turn { say: "Done again.".to_owned(), acts: Vec::new(), usage: third });
    script
}

pub(crate) async fn commit_and_verify(bench: &Bench) -> Result<()> {
    let trial = bench.trial(script()).await?;
    let fleet = Fleet::start(bench, &trial).await?;
    let job = fleet.submit("verify: ['grep -q hello hello.txt']\nship: auto").await?;
    fleet.until(&job, "shipped", |job| job.stage == Stage::Shipped).await?;
    let merged = git(&trial.path("origin.git"), &["show", "main:hello.txt"])?;
    ensure!(merged == "hello", "the branch has {merged:?}");
    let files = git(&trial.path("origin.git"), &["diff", "--name-only", "main^1", "main"])?;
    ensure!(files == "hello.txt", "more was committed: {files}");
    fleet.expect_charged(&trial.model.asked()).await
}

pub(crate) async fn changes_requested(bench: &Bench) -> Result<()> {
    let trial = bench.trial(script()).await?;
    let fleet = Fleet::start(bench, &trial).await?;
    let job = fleet.submit("review: {quorum: 1}").await?;
    fleet.until(&job, "to be reviewed", |job| job.stage == Stage::Review).await?;
    let first = trial.model.asked().len();
    let request = ReviewRequest {
        verdict: ReviewVerdict::RequestChanges,
        reviewer: Some("ana".to_owned()),
        comment: Some("Say it again, please.".to_owned()),
        lease_epoch: None,
        commit: None,
        acknowledge_unseen: false,
    };
    fleet.client.review(&job, &request).await?;
    let is_second = |job: &Job| job.stage == Stage::Review && job.lease_epoch == 2;
    fleet.until(&job, "to be reviewed again", is_second).await?;
    let asked = trial.model.asked();
    resumed(&asked[first..], 2, "Say it again, please.")?;
    fleet.expect_charged(&asked).await
}

pub(crate) async fn resume_after_kill(bench: &Bench) -> Result<()> {
    let mut script = script();
    // The first that asks for it waits until its factory is dead.
    script.troubles.push(Trouble { turn: 1, times: 1, kind: TroubleKind::Silence });
    let trial = bench.trial(script).await?;
    let mut fleet = Fleet::start(bench, &trial).await?;
    let job = fleet.submit("ship: manual").await?;
    fleet.until_asked("for its second turn", |asked| asked.iter().any(|asked| asked.turn == Some(1))).await?;
    let first = trial.model.asked().len();
    fleet.kill_factory().await?;
    fleet.start_factory().await?;
    fleet.until(&job, "done", |job| job.stage == Stage::Testing).await?;
    let runs = fleet.client.runs(&job).await?.value.runs.len();
    ensure!(runs == 2, "it took {runs} runs");
    let asked = trial.model.asked();
    resumed(&asked[first..], 1, "hello.txt")?;
    fleet.expect_charged(&asked).await
}

/// The second run went on with the conversation of the first: its first question is for this turn, or for a later one where
/// the engine notes in the conversation that it was interrupted.
fn resumed(asked: &[Asked], turn: usize, words: &str) -> Result<()> {
    let turns: Vec<usize> = asked.iter().filter_map(|asked| asked.turn).collect();
    ensure!(
        turns.first().is_some_and(|first| *first >= turn),
        "the second run asked for turns {turns:?}, not from {turn} on"
    );
    let first = asked.iter().find(|asked| asked.turn.is_some()).context("nothing was asked")?;
    let text = first.body.to_string();
    ensure!(text.contains("I will write it."), "what the model said before is missing");
    ensure!(text.contains(words), "`{words}` is missing");
    Ok(())
}
