//! What jobs ask: a question is closed once, by the answer that somebody was told is taken or at its deadline and not before,
//! and nobody runs a job that waits for one.

use std::collections::{BTreeMap, BTreeSet};

use giga_domain::conversation::ClosedHow;
use giga_domain::{Event, EventKind, Job, JobId, Stage, Timestamp};

use super::story::{Stories, grant_of};
use super::{Evidence, Findings, Promise};
use crate::history::Record;

pub(super) fn check(evidence: &Evidence, stories: &Stories<'_>, found: &mut Findings) {
    for job in &evidence.jobs {
        let mut answers = BTreeMap::new();
        if let Err(text) = closed_once(stories.of_job(job.id), &mut answers) {
            found.add(Promise::Answered, format!("{}: {text}", job.id));
        }
        as_told(job, &answers, found);
        let late = job.open_questions().find(|question| {
            let due = question.deadline.max(evidence.calm_since);
            due.plus(evidence.scenario.sweep * 4) < evidence.ended_at
        });
        if let Some(question) = late {
            let text = format!(
                "{}: nobody closed question {}, due at {}",
                job.id, question.number, question.deadline
            );
            found.add(Promise::Answered, text);
        }
    }
    let kept: BTreeSet<(JobId, u32)> = answered(evidence, stories);
    for record in &evidence.records {
        if let Record::Answered { job, question } = record
            && !kept.contains(&(*job, *question))
        {
            let text = format!("{job}: the answer to question {question} was taken, and nobody gave one");
            found.add(Promise::Answered, text);
        }
    }
}

/// Those with the answer of a person in the history.
fn answered(evidence: &Evidence, stories: &Stories<'_>) -> BTreeSet<(JobId, u32)> {
    let by_people =
        |event: &&&Event| event.kind == EventKind::QuestionAnswered && event.data.get("by").is_some();
    let of = |job: &Job| {
        let id = job.id;
        let events = stories.of_job(id).iter().filter(by_people).filter_map(|event| number(event));
        events.map(move |number| (id, number)).collect::<Vec<_>>()
    };
    evidence.jobs.iter().flat_map(of).collect()
}

struct Open {
    deadline: Timestamp,
    default: Option<String>,
}

/// As its events have it; `answers` are collected on the way.
fn closed_once(events: &[&Event], answers: &mut BTreeMap<u32, String>) -> Result<(), String> {
    let mut open: BTreeMap<u32, Open> = BTreeMap::new();
    let mut asked = 0;
    for event in events {
        if grant_of(event).is_some() && !open.is_empty() {
            return Err(format!("it was granted at {} and waited for an answer", event.at));
        }
        if event.to.is_some_and(|to| !matches!(to, Stage::Queued | Stage::Assigned | Stage::Building)) {
            // Nobody will need the answer any more.
            open.clear();
        }
        let text = |name: &str| event.data.get(name).and_then(|value| value.as_str());
        match event.kind {
            EventKind::QuestionAsked => {
                asked += 1;
                let deadline = text("deadline").and_then(|at| at.parse().ok());
                let deadline = deadline.ok_or("a question has no deadline")?;
                if number(event) != Some(asked) {
                    return Err(format!("question {asked} has the number {:?}", number(event)));
                }
                open.insert(asked, Open { deadline, default: text("default").map(str::to_owned) });
            }
            EventKind::QuestionAnswered | EventKind::QuestionExpired => {
                let number = number(event).ok_or("an answer is to no question")?;
                let Some(Open { deadline, default }) = open.remove(&number) else {
                    return Err(format!("question {number} was closed at {} and was not open", event.at));
                };
                let answer = text("answer").map(str::to_owned);
                if text("by").is_none() {
                    if event.at < deadline {
                        return Err(format!(
                            "question {number} was given up at {}, before {deadline}",
                            event.at
                        ));
                    }
                    if answer != default {
                        return Err(format!("question {number} got {answer:?} instead of {default:?}"));
                    }
                }
                answers.extend(answer.map(|answer| (number, answer)));
            }
            _ => {}
        }
    }
    Ok(())
}

/// The job has the answers of its history.
fn as_told(job: &Job, answers: &BTreeMap<u32, String>, found: &mut Findings) {
    for question in job.conversation.iter().flat_map(|talk| &talk.questions) {
        let has = question.closed.as_ref().and_then(|closed| match &closed.how {
            ClosedHow::Answered { answer, .. } | ClosedHow::Defaulted { answer } => Some(answer),
            ClosedHow::Expired | ClosedHow::Withdrawn => None,
        });
        if has != answers.get(&question.number) {
            let told = answers.get(&question.number);
            let text = format!("{}: question {} has {has:?}, its history {told:?}", job.id, question.number);
            found.add(Promise::Answered, text);
        }
    }
}

fn number(event: &Event) -> Option<u32> {
    u32::try_from(event.data.get("question")?.as_u64()?).ok()
}
