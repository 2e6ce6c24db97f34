//! The history: numbered without gaps, going on from stage to stage as the table says, and read whole by whoever resumes.

use std::collections::{BTreeMap, HashSet};
use std::sync::LazyLock;

use giga_domain::{Event, Job, JobId, Stage};

use super::story::{Stories, is_over};
use super::{Evidence, Findings, Promise};

pub(super) fn check(evidence: &Evidence, stories: &Stories<'_>, found: &mut Findings) {
    let jobs: BTreeMap<JobId, &Job> = evidence.jobs.iter().map(|job| (job.id, job)).collect();
    for (job, events) in stories.all() {
        numbered(job, events, found);
        staged(job, events, found);
        let last = events.iter().rev().find_map(|event| event.to);
        match jobs.get(&job) {
            None => found.add(Promise::Durable, format!("{job} has a history and is not there")),
            Some(row) if Some(row.stage()) != last || row.last_event.0 != events.len() as u64 => {
                let text = format!(
                    "{job} is {} after {} events, its history ends at {last:?}",
                    row.stage(),
                    row.last_event
                );
                found.add(Promise::EventsNumbered, text);
            }
            Some(_) => {}
        }
    }
    for job in jobs.keys().filter(|job| stories.of_job(**job).is_empty()) {
        found.add(Promise::EventsNumbered, format!("{job} has no history"));
    }
    feed(evidence, found);
}

fn numbered(job: JobId, events: &[&Event], found: &mut Findings) {
    for (event, wanted) in events.iter().zip(1u64..) {
        let seq = event.job.map_or(0, |(_, seq)| seq.0);
        if seq != wanted {
            found.add(Promise::EventsNumbered, format!("{job}: event {wanted} is numbered {seq}"));
            return;
        }
    }
}

fn staged(job: JobId, events: &[&Event], found: &mut Findings) {
    let mut stage: Option<Stage> = None;
    for event in events {
        let Some(to) = event.to else { continue };
        if stage.is_some_and(is_over) {
            found.add(
                Promise::TerminalAbsorbs,
                format!("{job} went from {stage:?} to {to} by {}", event.kind),
            );
        }
        if event.from != stage || !may_follow(stage, to) {
            let text = format!("{job} was {stage:?}; {} says from {:?} to {to}", event.kind, event.from);
            found.add(Promise::StageTable, text);
        }
        stage = Some(to);
    }
}

/// The table of the specification, as text: what the domain's code makes of it is not asked.
fn may_follow(from: Option<Stage>, to: Stage) -> bool {
    static STEPS: LazyLock<HashSet<(Stage, Stage)>> = LazyLock::new(|| {
        let table = include_str!("../../../domain/tests/domain/transition/table.txt");
        let mut rows = table.lines().filter(|line| !line.starts_with('#')).map(str::split_whitespace);
        let stages: Vec<Stage> =
            rows.next().into_iter().flatten().filter_map(|word| word.parse().ok()).collect();
        let step = |(from, cell): (&Stage, &str)| Some((*from, cell.parse().ok()?));
        rows.flat_map(|row| stages.iter().zip(row.skip(1)).filter_map(step)).collect()
    });
    match from {
        None => matches!(to, Stage::Queued | Stage::Blocked),
        Some(from) => STEPS.contains(&(from, to)),
    }
}

fn feed(evidence: &Evidence, found: &mut Findings) {
    if let Some(pair) = evidence.events.windows(2).find(|pair| pair[0].pos >= pair[1].pos) {
        found.add(Promise::FeedComplete, format!("position {} comes after {}", pair[1].pos, pair[0].pos));
    }
    let (read, there) = (&evidence.read, &evidence.events);
    if let Some((got, wanted)) = read.iter().zip(there).find(|(got, wanted)| got != wanted) {
        let text = format!(
            "the reader got {} ({}) where {} ({}) stands",
            got.pos, got.kind, wanted.pos, wanted.kind
        );
        found.add(Promise::FeedComplete, text);
    } else if read.len() != there.len() {
        let text = format!("the reader got {} events of {}", read.len(), there.len());
        found.add(Promise::FeedComplete, text);
    }
}
