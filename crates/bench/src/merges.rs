//! Results of one repository into its branch: by the merge queue in batches of several sizes, and by hand.
//!
//! The coordinator, its factory, git and the checks are real. Each way gets the same changes on an origin of its own, and
//! a run counts only if every change is in exactly once.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use futures::StreamExt;
use giga_api::client::{Idempotency, Signal};
use giga_api::wire::{OperatorAction, SetProductRequest, Stage};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::MergesArgs;
use crate::repository::{CHECK, Change, NAME, Repository};
use crate::server::{Coordinator, PRODUCT, giga};
use crate::table::{Row, Series, Table};

/// As products have them by default, first.
const BATCHES: [u32; 3] = [4, 1, 20];
const FACTORY: &str = "bench";
const SEATS: &str = "4";
const PATIENCE: Duration = Duration::from_mins(5);

/// Runs of one way of merging.
#[derive(Default)]
struct Runs {
    rates: Series,
    checks: Series,
    transactions: Series,
    /// To the rate by hand in the same round.
    ratios: Series,
}

struct Run {
    rate: f64,
    checks: usize,
    transactions: f64,
}

pub(crate) async fn measure(args: &MergesArgs, table: &mut Table) -> Result<()> {
    let (jobs, runs) = if args.quick { (4, 1) } else { (usize::from(args.jobs), 3) };
    let mut memory = Series::default();
    for seconds in &args.check {
        let mut by_hand = Runs::default();
        let mut ways = BATCHES.map(|batch| (batch, Runs::default()));
        for _ in 0..runs {
            let mut hand = None;
            for (batch, runs) in &mut ways {
                let round = Round::prepare(jobs, *batch).await?;
                // The same changes, on a copy of the same origin.
                let copy = if hand.is_none() { Some(round.repository.copy().await?) } else { None };
                let run = round.ship(*seconds).await?;
                memory.add(round.coordinator.peak_memory_kib().unwrap_or_default() / 1024.0);
                let Round { coordinator, mut factory, repository, changes } = round;
                factory.kill().await?;
                coordinator.stop().await?;
                if let Some(copy) = copy {
                    repository.count_anew()?;
                    let took = repository.merge_by_hand(&copy, &changes).await?;
                    repository.expect_each_once(&copy, &changes).await?;
                    by_hand.rates.add(per_minute(jobs, took));
                    by_hand.checks.add(repository.checks()? as f64);
                    hand = Some(per_minute(jobs, took));
                }
                runs.ratios.add(run.rate / hand.context("merged by hand in every round")?);
                runs.add(&run);
            }
        }
        add_rows(table, "by hand", "git", jobs, *seconds, by_hand);
        for (batch, runs) in ways {
            add_rows(table, &format!("batches of {batch}"), "giga", jobs, *seconds, runs);
        }
    }
    table.add(Row {
        who: "giga",
        what: "coordinator memory, peak".to_owned(),
        unit: "MiB",
        figures: memory,
        target: "60",
        ..Row::default()
    });
    Ok(())
}

impl Runs {
    fn add(&mut self, run: &Run) {
        self.rates.add(run.rate);
        self.checks.add(run.checks as f64);
        self.transactions.add(run.transactions);
    }
}

fn per_minute(jobs: usize, took: Duration) -> f64 {
    jobs as f64 * 60.0 / took.as_secs_f64()
}

fn add_rows(table: &mut Table, how: &str, who: &'static str, jobs: usize, seconds: f64, runs: Runs) {
    let row = |what: &str, unit, figures| Row {
        who,
        what: format!("check of {seconds} s, {how}: {what}"),
        unit,
        figures,
        target: "-",
        ..Row::default()
    };
    let is_giga = who == "giga";
    table.add(Row {
        transactions: is_giga.then(|| runs.transactions.median()),
        ..row(&format!("{jobs} jobs merged"), "merges/min", runs.rates)
    });
    table.add(row("checks run", "checks", runs.checks));
    if is_giga {
        table.add(row("times the rate by hand", "x", runs.ratios));
    }
}

/// Everything up to the word to ship.
struct Round {
    coordinator: Coordinator,
    factory: Child,
    repository: Repository,
    changes: Vec<Change>,
}

impl Round {
    async fn prepare(jobs: usize, batch: u32) -> Result<Self> {
        let repository = Repository::make().await?;
        let coordinator = Coordinator::start(None).await?;
        let settings = SetProductRequest { merge_batch: Some(batch), ..SetProductRequest::default() };
        coordinator.client.set_product(PRODUCT, &settings, None).await?;
        let factory = start_factory(&coordinator, &repository).await?;
        let mut round = Self { coordinator, factory, repository, changes: Vec::new() };
        round.changes = round.run(jobs).await?;
        Ok(round)
    }

    async fn run(&self, jobs: usize) -> Result<Vec<Change>> {
        let client = &self.coordinator.client;
        let position = client.metrics().await?.value.feed_head;
        let mut ids = Vec::with_capacity(jobs);
        for n in 0..jobs {
            ids.push(client.submit(manifest(n), &Idempotency::Nothing).await?.value.job.id);
        }
        self.until(position, &ids, Stage::Testing).await?;
        let mut changes = Vec::with_capacity(jobs);
        for (n, id) in ids.into_iter().enumerate() {
            let result = client.job(&id).await?.value.result.context("a job in testing has a result")?;
            let (branch, commit) = (result.branch, result.commit);
            changes.push(Change { job: id, branch, commit, file: file(n) });
        }
        Ok(changes)
    }

    /// All at once, and then until the last of them is in.
    async fn ship(&self, seconds: f64) -> Result<Run> {
        self.repository.take(seconds)?;
        self.repository.count_anew()?;
        let client = &self.coordinator.client;
        let ids: Vec<String> = self.changes.iter().map(|change| change.job.clone()).collect();
        let before = client.metrics().await?.value;
        let start = Instant::now();
        let ships = async {
            let calls = ids.iter().map(|id| client.act(id, OperatorAction::Ship, None, None));
            let mut calls = futures::stream::iter(calls).buffered(ids.len());
            while let Some(shipped) = calls.next().await {
                shipped?;
            }
            anyhow::Ok(())
        };
        let ((), took) = tokio::try_join!(ships, async {
            self.until(before.feed_head, &ids, Stage::Shipped).await?;
            Ok(start.elapsed())
        })?;
        let commits = client.metrics().await?.value.store.commits - before.store.commits;
        let checks = self.repository.checks()?;
        self.repository.expect_each_once(&self.repository.origin(), &self.changes).await?;
        let jobs = ids.len();
        Ok(Run { rate: per_minute(jobs, took), checks, transactions: commits as f64 / jobs as f64 })
    }

    /// Comes back when every one of them has reached the stage, as the feed tells it.
    async fn until(&self, position: u64, ids: &[String], stage: Stage) -> Result<()> {
        let mut left: BTreeSet<&str> = ids.iter().map(String::as_str).collect();
        let mut feed = self.coordinator.client.follow_fleet(Some(position));
        let follow = async {
            while !left.is_empty() {
                let Signal::Event(event) = feed.next().await? else { continue };
                let (Some(id), Some(to)) = (&event.value.job_id, event.value.to) else { continue };
                if matches!(to, Stage::Failed | Stage::Cancelled)
                    || (stage == Stage::Shipped && to == Stage::Queued)
                {
                    bail!("job {id} became {to}: {}", event.value.cause);
                }
                if to == stage {
                    left.remove(id.as_str());
                }
            }
            Ok(())
        };
        match tokio::time::timeout(PATIENCE, follow).await {
            Ok(followed) => followed,
            Err(_) => bail!("{} of {} jobs never became {stage}", left.len(), ids.len()),
        }
    }
}

/// As on a machine of its own: a process that was started by an operator and keeps its mirror in its folder.
async fn start_factory(coordinator: &Coordinator, repository: &Repository) -> Result<Child> {
    let mut command = Command::new(giga()?);
    command.args(["factory", "run", "--log", "warn", "--id", FACTORY, "--seats", SEATS]);
    command.arg("--repos").arg(repository.repos()).arg("--base").arg(repository.path("factory"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    command
        .env_clear()
        .env("PATH", path)
        .env("HOME", repository.path("home"))
        .current_dir(repository.path(""));
    command.env("GIGA_URL", &coordinator.url).env("GIGA_TOKEN", &coordinator.token);
    let log = repository.path("factory.log");
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(std::fs::File::create(&log)?)
        .kill_on_drop(true);
    let mut process = command.spawn()?;
    let stdout = process.stdout.take().expect("stdout was asked for");
    let mut lines = BufReader::new(stdout).lines();
    while let Some(line) = lines.next_line().await? {
        if line == format!("ready factory {FACTORY}") {
            return Ok(process);
        }
    }
    bail!("the factory ended before it was ready: {}", std::fs::read_to_string(log)?.trim())
}

fn file(n: usize) -> String {
    format!("src/module-{n}/feature.txt")
}

fn manifest(n: usize) -> Vec<u8> {
    let file = file(n);
    format!(
        "---\nname: feature-{n}\nproduct: {PRODUCT}\nrepo: {NAME}\nengine: shell\nscript: echo feature {n} > {file}\n\
         verify: [{CHECK}]\n---\nAdd feature {n}.\n"
    )
    .into_bytes()
}
