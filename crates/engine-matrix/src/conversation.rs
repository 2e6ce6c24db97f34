//! What an engine does when nothing goes wrong: edits, counts, resumes, stays within its caps, and ends.

use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use giga_domain::{FailReason, Usd};
use giga_factory::engines::{EngineOutcome, Preflight, RUN_MARKER};
use giga_scripted_model::{Act, Asked, Script, Trouble, TroubleKind, Turn, Usage};

use crate::bench::{Bench, PROMPT, Ran, tokens};
use crate::record::Recorder;
use crate::subject;

const FILE: &str = "hello.txt";
const CONTENT: &str = "hello\n";

fn writes() -> Script {
    Script::writes(FILE, CONTENT)
}

pub(crate) async fn ready(bench: &Bench) -> Result<()> {
    let trial = bench.trial(Script::default()).await?;
    match trial.engine(bench).await?.preflight().await {
        Preflight::Ready { version: Some(_) } => {}
        other => bail!("with its account it is {other:?}"),
    }
    let mut without = trial.environment(bench);
    without.retain(|(name, _)| name == "PATH");
    without.push(("HOME".to_owned(), trial.path("nobody").display().to_string()));
    match trial.engine_in(without).await?.preflight().await {
        Preflight::NotSignedIn { .. } => Ok(()),
        other => bail!("without an account it is {other:?}"),
    }
}

pub(crate) async fn edit(bench: &Bench, seen: &Recorder) -> Result<()> {
    let trial = bench.trial(writes()).await?;
    let ran = trial.run(bench, trial.request()).await?;
    seen.keep(&trial, &ran)?;
    ran.succeeded()?;
    let written = std::fs::read_to_string(trial.tree().join(FILE)).context("the file was not written")?;
    ensure!(written == CONTENT, "the file has {written:?}");
    ensure!(has_prompt(&ran.asked), "the model was not asked the prompt as it is");
    for asked in &ran.asked {
        ensure!(asked.key == subject::KEY, "a request carried another key");
    }
    Ok(())
}

/// Somewhere in the request, as a whole text or the end of one.
fn has_prompt(asked: &[Asked]) -> bool {
    fn find(value: &serde_json::Value) -> bool {
        match value {
            serde_json::Value::String(text) => text.contains(PROMPT.trim_end()),
            serde_json::Value::Array(all) => all.iter().any(find),
            serde_json::Value::Object(all) => all.values().any(find),
            _ => false,
        }
    }
    asked.iter().any(|asked| asked.turn == Some(0) && find(&asked.body))
}

/// Uneven numbers, so that no sum is right by chance.
fn counted() -> Script {
    let mut script = writes();
    script.turns[0].usage = Usage { input: 1_234, cache_read: 567, output: 89 };
    script.turns[1].usage = Usage { input: 2_345, cache_read: 6_789, output: 11 };
    script
}

pub(crate) fn cost(asked: &[Asked]) -> Usd {
    let price = subject::PRICE;
    let micros = asked.iter().filter_map(|asked| asked.usage).map(|usage| {
        usage.input as f64 * price.input
            + usage.cache_read as f64 * price.cached_input
            + usage.output as f64 * price.output
    });
    Usd::from_micros(micros.sum::<f64>().ceil() as i64)
}

/// To a cent of a cent: engines round.
fn costs(ran: &Ran, expected: Usd) -> Result<()> {
    let told = ran.report.usage.cost.context("the cost is not known")?;
    let off = (told - expected).micros().abs();
    ensure!(off <= 2, "it reports {told}, the model sent {expected}");
    Ok(())
}

pub(crate) async fn usage(bench: &Bench, seen: &Recorder) -> Result<()> {
    let trial = bench.trial(counted()).await?;
    let ran = trial.run(bench, trial.request()).await?;
    seen.keep(&trial, &ran)?;
    ran.succeeded()?;
    let (told, sent) = (ran.report.usage.tokens, ran.sent_tokens());
    ensure!(told == sent, "it reports {told} tokens, the model sent {sent}");
    costs(&ran, cost(&ran.asked))?;
    ensure!(ran.report.metered, "the usage counts as unknown");
    ensure!(ran.report.session_id.is_some(), "no session id");
    let model = subject::asked_as(subject::model(bench.engine));
    for asked in &ran.asked {
        ensure!(asked.model == model, "the model {} was asked instead of {model}", asked.model);
    }
    Ok(())
}

pub(crate) async fn model(bench: &Bench) -> Result<()> {
    let trial = bench.trial(writes()).await?;
    let mut request = trial.request();
    request.model = Some(subject::other_model(bench.engine).to_owned());
    let ran = trial.run(bench, request).await?;
    ran.succeeded()?;
    let wanted = subject::asked_as(subject::other_model(bench.engine));
    for asked in ran.asked.iter().filter(|asked| asked.turn.is_some()) {
        ensure!(asked.model == wanted, "the model {} was asked instead of {wanted}", asked.model);
    }
    Ok(())
}

pub(crate) async fn resume(bench: &Bench, seen: &Recorder) -> Result<()> {
    let mut script = counted();
    let more = Turn { usage: Usage { input: 3_456, cache_read: 78, output: 9 }, ..script.turns[1].clone() };
    script.turns.push(more);
    let trial = bench.trial(script).await?;
    let first = trial.run(bench, trial.request()).await?;
    first.succeeded()?;
    let mut request = trial.request();
    "Now say it again.".clone_into(&mut request.prompt);
    request.resume.clone_from(&first.report.session_id);
    request.usage_before = first.report.usage;
    let second = trial.run(bench, request).await?;
    seen.keep(&trial, &second)?;
    second.succeeded()?;
    ensure!(second.turns() == [2], "the model was asked for turns {:?} instead of the third", second.turns());
    let asked = second.asked.iter().find(|asked| asked.turn.is_some()).context("nothing was asked")?;
    let text = asked.body.to_string();
    ensure!(text.contains("Now say it again."), "the second prompt is missing");
    ensure!(text.contains("ünïcode") || text.contains("\\u00fc"), "the first prompt is missing");
    ensure!(second.report.session_id == first.report.session_id, "the session has another id");
    let (told, sent) = (second.report.usage.tokens, tokens(&second.asked));
    ensure!(told == sent, "the second run reports {told} tokens, the model sent {sent}");
    costs(&second, cost(&second.asked))
}

/// Many turns, each of which costs 63,000 micro-dollars and 17,000 tokens.
fn long() -> Script {
    let turn = Turn {
        say: "Once more.".to_owned(),
        acts: vec![Act::Read { path: "README.md".to_owned() }],
        usage: Usage { input: 16_000, cache_read: 0, output: 1_000 },
    };
    let mut turns = vec![turn; 25];
    // Engines notice who does the same again and again.
    for (number, turn) in turns.iter_mut().enumerate() {
        turn.acts = vec![Act::Write { path: format!("file-{number}.txt"), content: format!("{number}\n") }];
    }
    Script { turns, troubles: Vec::new() }
}

const MOST_TURNS: usize = 8;

fn stopped_early(ran: &Ran) -> Result<()> {
    ran.failed(FailReason::BudgetExceeded, false)?;
    let turns = ran.turns().len();
    ensure!(turns <= MOST_TURNS, "it was stopped after {turns} turns, the cap was two and a half");
    let (told, sent) = (ran.report.usage.tokens, ran.sent_tokens());
    // The last answer may have been on its way.
    ensure!(told + 17_000 >= sent && told <= sent, "it reports {told} tokens, the model sent {sent}");
    Ok(())
}

pub(crate) async fn cap_dollars(bench: &Bench) -> Result<()> {
    let trial = bench.trial(long()).await?;
    let mut request = trial.request();
    request.budget.usd = Some(Usd::from_micros(157_000));
    stopped_early(&trial.run(bench, request).await?)
}

pub(crate) async fn cap_tokens(bench: &Bench) -> Result<()> {
    let trial = bench.trial(long()).await?;
    let mut request = trial.request();
    request.budget.tokens = Some(42_500);
    stopped_early(&trial.run(bench, request).await?)
}

fn silent() -> Script {
    Script { troubles: vec![Trouble { turn: 0, times: u32::MAX, kind: TroubleKind::Silence }], ..writes() }
}

pub(crate) async fn cap_wall(bench: &Bench) -> Result<()> {
    let trial = bench.trial(silent()).await?;
    let mut request = trial.request();
    request.budget.wall_ms = Some(5_000);
    let ran = trial.run(bench, request).await?;
    let failure = ran.failed(FailReason::BudgetExceeded, false)?;
    ensure!(failure.detail.contains("5s"), "{}", failure.detail);
    Ok(())
}

pub(crate) async fn children_gone(bench: &Bench) -> Result<()> {
    let trial = bench.trial(silent()).await?;
    let request = trial.request();
    let marker = request.env[0].1.clone();
    let seen = std::sync::atomic::AtomicUsize::new(0);
    let ran = trial
        .run_until(bench, request, |asked| {
            let asked = asked.iter().any(|asked| asked.turn.is_some());
            if asked {
                seen.store(marked(&marker), std::sync::atomic::Ordering::Relaxed);
            }
            asked
        })
        .await?;
    let EngineOutcome::Stopped = ran.report.outcome else {
        bail!("it was not stopped: {:?}", ran.report.outcome)
    };
    ensure!(seen.into_inner() > 0, "no process of the run was seen while it ran");
    // A process that was just killed may need a moment to be gone.
    for _ in 0..50 {
        if marked(&ran.marker) == 0 {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    bail!("{} processes of the run are left", marked(&ran.marker))
}

/// Living processes whose environment names the run.
fn marked(marker: &str) -> usize {
    let entry = format!("{RUN_MARKER}={marker}");
    let has = |id: &u32| {
        std::fs::read(format!("/proc/{id}/environ"))
            .is_ok_and(|bytes| bytes.split(|byte| *byte == 0).any(|pair| pair == entry.as_bytes()))
    };
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(has).count()
}
