//! What an engine makes of a provider that refuses, fails or says nothing, and what the factory is told.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use giga_domain::{FailReason, Usd};
use giga_factory::engines::{EngineFailure, EngineOutcome};
use giga_scripted_model::{Script, Trouble, TroubleKind};

use crate::bench::{Bench, Ran, Trial};
use crate::record::Recorder;
use crate::subject;

fn with(kind: TroubleKind, times: u32) -> Script {
    Script { troubles: vec![Trouble { turn: 0, times, kind }], ..Script::writes("hello.txt", "hello\n") }
}

async fn run(bench: &Bench, kind: TroubleKind, times: u32, seen: &Recorder) -> Result<(Trial, Ran)> {
    let trial = bench.trial(with(kind, times)).await?;
    let ran = trial.run(bench, trial.request()).await?;
    seen.keep(&trial, &ran)?;
    Ok((trial, ran))
}

/// The run is not charged what it may have used: it used nothing.
fn costs_nothing(ran: &Ran) -> Result<()> {
    ensure!(ran.report.metered, "the usage counts as unknown, so that the whole cap would be charged");
    // A title that the engine asked for beside is charged.
    let (told, sent) = (ran.report.usage.tokens, ran.sent_tokens());
    ensure!(told <= sent, "it reports {told} tokens, the model sent {sent}");
    ensure!(
        told > 0 || ran.report.usage.cost.unwrap_or_default() == Usd::ZERO,
        "it costs something without tokens"
    );
    Ok(())
}

pub(crate) async fn signed_out(bench: &Bench, seen: &Recorder) -> Result<()> {
    let (_trial, ran) = run(bench, TroubleKind::SignedOut, u32::MAX, seen).await?;
    ran.failed(FailReason::SignedOut, true)?;
    costs_nothing(&ran)
}

pub(crate) async fn short_rate_limit(bench: &Bench, seen: &Recorder) -> Result<()> {
    let (_trial, ran) = run(bench, TroubleKind::RateLimited { reset_secs: Some(1) }, 1, seen).await?;
    ran.succeeded()
}

pub(crate) async fn quota(bench: &Bench, reset_secs: Option<u64>, seen: &Recorder) -> Result<()> {
    let mut trial = bench.trial(with(TroubleKind::QuotaExhausted { reset_secs }, u32::MAX)).await?;
    // Windows with a reset time belong to subscriptions.
    trial.subscription = reset_secs.is_some();
    let ran = trial.run(bench, trial.request()).await?;
    seen.keep(&trial, &ran)?;
    let failure = ran.failed(FailReason::OutOfQuota, true)?;
    costs_nothing(&ran)?;
    if let Some(reset) = reset_secs {
        let cause = subject::withheld_reset(bench.engine).unwrap_or(&failure.detail);
        let told = failure.resets_in.with_context(|| format!("no reset time: {cause}"))?.as_secs();
        ensure!((reset - 90..=reset + 90).contains(&told), "resets in {told} s instead of {reset} s");
    }
    Ok(())
}

pub(crate) async fn overloaded(bench: &Bench, seen: &Recorder) -> Result<()> {
    let trial = bench.trial(with(TroubleKind::Overloaded, u32::MAX)).await?;
    let mut request = trial.request();
    // One that waits for its provider for ever is ended like one that is silent.
    request.watchdog.idle = Duration::from_secs(15);
    let ran = trial.run(bench, request).await?;
    seen.keep(&trial, &ran)?;
    ran.failed(FailReason::Infrastructure, true)?;
    costs_nothing(&ran)
}

pub(crate) async fn context_too_long(bench: &Bench, seen: &Recorder) -> Result<()> {
    let mut script = with(TroubleKind::ContextTooLong, u32::MAX);
    // An engine may cut its conversation down and go on; here that does not help.
    let kind = TroubleKind::ContextTooLong;
    script.troubles.extend((1..20).map(|turn| Trouble { turn, times: u32::MAX, kind }));
    let trial = bench.trial(script).await?;
    let ran = trial.run(bench, trial.request()).await?;
    seen.keep(&trial, &ran)?;
    ran.failed(FailReason::ContextTooLong, false)?;
    Ok(())
}

pub(crate) async fn refusal(bench: &Bench, seen: &Recorder) -> Result<()> {
    let (_trial, ran) = run(bench, TroubleKind::Refusal, u32::MAX, seen).await?;
    ran.failed(FailReason::Refused, false)?;
    Ok(())
}

pub(crate) async fn silence(bench: &Bench) -> Result<()> {
    let trial = bench.trial(with(TroubleKind::Silence, u32::MAX)).await?;
    let mut request = trial.request();
    request.watchdog.idle = Duration::from_secs(8);
    let ran = trial.run(bench, request).await?;
    ran.failed(FailReason::Timeout, true)?;
    ensure!(!ran.turns().is_empty(), "the model was never asked");
    costs_nothing(&ran)
}

pub(crate) async fn endless(bench: &Bench) -> Result<()> {
    let trial = bench.trial(with(TroubleKind::Endless, u32::MAX)).await?;
    let mut request = trial.request();
    // Longer than an engine takes to start on a busy machine.
    request.watchdog.idle = Duration::from_secs(15);
    request.budget.wall_ms = Some(15_000);
    let ran = trial.run(bench, request).await?;
    ensure!(!ran.turns().is_empty(), "the model was never asked");
    // By a cap, by the watchdog, or by the engine itself where it notices that an answer goes in circles: in each case the job
    // knows that it failed, and is not left with half an answer that passes for a whole one.
    match &ran.report.outcome {
        EngineOutcome::Failed(failure)
            if matches!(failure.reason, FailReason::Timeout | FailReason::BudgetExceeded) => {}
        EngineOutcome::Failed(failure) if went_in_circles(failure) => {}
        other => anyhow::bail!("it was not cut off: {other:?}"),
    }
    Ok(())
}

/// As the factory words it where an engine says so itself; another run may fare better.
fn went_in_circles(failure: &EngineFailure) -> bool {
    failure.reason == FailReason::Crash && failure.retryable && failure.detail.contains("went in circles")
}

pub(crate) async fn cut(bench: &Bench, seen: &Recorder) -> Result<()> {
    let (_trial, ran) = run(bench, TroubleKind::Cut, 1, seen).await?;
    if let EngineOutcome::Succeeded = ran.report.outcome {
        return Ok(());
    }
    ran.failed(FailReason::Infrastructure, true)?;
    Ok(())
}
