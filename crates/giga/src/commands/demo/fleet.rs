//! Two factories, three repositories, and a machine that dies in the middle: its work goes on elsewhere.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use giga_api::client::Signal;
use giga_api::wire::{Event, EventType};

use super::origin::{BROKEN_GREETING, Origin};
use super::stage::DemoStage;
use super::{quote, step};
use crate::exit::CliError;
use crate::output::{announce, printable, say};

/// The factory of the last one dies.
const REPOS: [&str; 3] = ["parser", "website", "billing"];
const LONG: &str = "billing";
/// The commit that is there before the kill.
const FIRST_HALF: &str = "Correct the greeting";
const PATIENCE: Duration = Duration::from_secs(55);

/// A job of the demo by its id.
struct Play {
    name: &'static str,
    origin: Origin,
    merged: Option<String>,
}

pub(super) async fn run(stage: &mut DemoStage) -> Result<(), CliError> {
    say(
        "Three jobs on two factories, one of which gets killed. Everything is real, and it is all removed afterwards.",
    );

    step("1  Three repositories, each with a failing test, and two factories");
    let mut origins = Vec::new();
    for name in REPOS {
        origins.push((name, stage.origin(name, BROKEN_GREETING).await?));
    }
    stage.factory("factory-1").await?;
    stage.factory("factory-2").await?;
    say(&format!("  {}", REPOS.join(", ")));
    say("  factory-1 and factory-2, each a separate process, have joined.");

    step("2  A job for each repository");
    let mut plays = BTreeMap::new();
    for (name, origin) in origins {
        let job = stage.submit(&manifest(stage, name)).await?;
        plays.insert(job.id, Play { name, origin, merged: None });
    }
    let played = tokio::time::timeout(PATIENCE, watch(stage, &mut plays)).await;
    played.map_err(|_| {
        CliError::failed_but("the jobs made no progress", "`giga demo --fleet --keep` keeps the logs")
    })??;

    step("3  All merged, including what was done before the kill");
    for play in plays.values() {
        let (passed, output) = play.origin.test().await?;
        if !passed {
            return Err(CliError::failed(format!("{} was merged, but its test fails: {output}", play.name)));
        }
    }
    if let Some(long) = plays.values().find(|play| play.name == LONG) {
        quote(&long.origin.history().await?);
    }
    for play in plays.values() {
        announce(&format!("merged fix-{} {}", play.name, play.merged.as_deref().unwrap_or_default()))?;
    }
    Ok(())
}

/// The jobs differ in one thing: that of the long one saves half of its work and then takes its time. Whoever resumes
/// it finds the first half done.
fn manifest(stage: &DemoStage, name: &str) -> String {
    let fix = "sed 's/Helo/Hello/' greet.sh > greet.new; mv greet.new greet.sh";
    let script = if name == LONG {
        format!(
            "  if git log --format=%s | grep -qx '{FIRST_HALF}'; then echo 'half of it is already done'\n  \
             else {fix}; git commit --quiet --all --message '{FIRST_HALF}'\n  \
             while [ -e '{}' ]; do sleep 0.2; done; exit 1; fi\n  \
             echo 'Greets properly.' > NOTES\n",
            stage.playing().display()
        )
    } else {
        format!("  {fix}\n")
    };
    format!(
        "---\nname: fix-{name}\nrepo: {name}\nengine: shell\nscript: |\n{script}verify: [sh test.sh]\nship: auto\n\
         retry: {{max: 3, backoff: 0s}}\n---\nThe greeting has a typo.\n"
    )
}

/// Tells what happens until everything is merged, and kills the factory that holds the long job once half of its work
/// is safe.
async fn watch(stage: &mut DemoStage, plays: &mut BTreeMap<String, Play>) -> Result<(), CliError> {
    let mut feed = stage.client.follow_fleet(Some(0));
    let mut killed = false;
    let began = Instant::now();
    while plays.values().any(|play| play.merged.is_none()) {
        let Signal::Event(event) = feed.next().await? else { continue };
        let Some((id, play)) = event.job_id.as_ref().and_then(|id| plays.get_key_value(id)) else { continue };
        say(&line(began.elapsed(), play.name, &event));
        let (id, is_long) = (id.clone(), play.name == LONG);
        match event.kind {
            EventType::Checkpointed if is_long && !killed && half_is_safe(play, &id).await? => {
                if let Some(lease) = stage.client.job(&id).await?.value.lease {
                    stage.kill_factory(&lease.factory_id).await?;
                    killed = true;
                    say(&format!(
                        "  \x1b[1;31m{} was killed (kill -9).\x1b[0m Its lease expires in a moment; then the other one takes over.",
                        lease.factory_id
                    ));
                }
            }
            EventType::Merged => {
                let commit = event.data.get("commit").and_then(serde_json::Value::as_str);
                if let Some(play) = plays.get_mut(&id) {
                    play.merged = commit.map(str::to_owned);
                }
            }
            EventType::Failed | EventType::DeadLettered | EventType::MergeConflict => {
                return Err(CliError::failed(format!("fix-{}: {}", plays[&id].name, event.cause)));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The origin has the commit of the first half, so that any factory can go on from it.
async fn half_is_safe(play: &Play, id: &str) -> Result<bool, CliError> {
    let subjects = play.origin.subjects(&format!("giga/wip/{id}")).await?;
    Ok(subjects.lines().any(|subject| subject == FIRST_HALF))
}

fn line(at: Duration, name: &str, event: &Event) -> String {
    let what = event.kind.as_str().trim_start_matches("job.").replace('_', " ");
    let factory = event.data.get("factoryId").and_then(serde_json::Value::as_str);
    let factory = factory.or_else(|| event.actor.strip_prefix("factory ")).unwrap_or("-");
    let line = format!("  {:4.1}s  fix-{name:<8} {what:<14} {factory:<10} {}", at.as_secs_f64(), event.cause);
    printable(&line)
}
