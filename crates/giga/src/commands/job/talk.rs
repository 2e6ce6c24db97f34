//! Questions of jobs, answers to them, and messages.

use comfy_table::Cell;
use giga_api::client::JobQuery;
use giga_api::wire::{AnswerRequest, Conversation, Job, Question, QuestionState, SayRequest};
use giga_domain::limits;
use serde_json::json;

use super::wait::meant;
use crate::args::{AnswerArgs, SayArgs};
use crate::commands::Done;
use crate::commands::context::Context;
use crate::exit::CliError;
use crate::output::{Columns, ago, dash, printable, say};

pub(super) async fn tell(args: SayArgs, context: &Context) -> Done {
    let client = context.client()?;
    let id = context.job_id(&client, &args.job.job).await?;
    let text = args.text.join(" ");
    let request_id = Some(format!("say-{:016x}", random()?));
    let job = client.say(&id, &SayRequest { text, request_id }).await?;
    context.output.one(&job.json, "/id", || format!("{}  {}", job.id, printable(&job.name)))?;
    if job.lease.is_none() {
        say("it is not running now; it reads this when it runs next");
    }
    Ok(())
}

fn random() -> Result<u64, CliError> {
    getrandom::u64().map_err(|error| CliError::failed(format!("no randomness for a request id: {error}")))
}

pub(super) async fn answer(args: AnswerArgs, context: &Context) -> Done {
    let client = context.client()?;
    let id = context.job_id(&client, &args.job.job).await?;
    let request = AnswerRequest { question: args.question, answer: args.text.join(" ") };
    let job = client.answer(&id, &request).await?;
    context
        .output
        .one(&job.json, "/id", || format!("{}  {}  {}", job.id, job.stage.label(), printable(&job.name)))?;
    if let Some(next) = job.open_questions.first() {
        say(&format!("it asks something else, too: {}", printable(&next.text)));
    }
    Ok(())
}

pub(super) async fn questions(job: Option<&str>, context: &Context) -> Done {
    let client = context.client()?;
    let Some(named) = job else {
        let limit = Some(limits::PAGE_MAX);
        let query = JobQuery { needs_input: true, limit, ..JobQuery::default() };
        let page = client.jobs(&query).await?;
        return context.output.list(&page.json, ("/jobs", "/id"), "no open questions", || {
            let rows = page.jobs.iter().flat_map(|job| job.open_questions.iter().map(move |q| (job, q)));
            open_table(rows, context)
        });
    };
    let id = context.job_id(&client, named).await?;
    let talk = client.conversation(&id, 0, std::time::Duration::ZERO).await?;
    let shown = json!({"questions": talk.json["questions"], "messages": talk.json["messages"]});
    context
        .output
        .list(&shown, ("/questions", "/text"), "it asked nothing", || text_of(&talk.value, context))?;
    let open = talk.value.questions.iter().find(|question| question.state == QuestionState::Open);
    if let Some(open) = open {
        say(&format!("answer with: giga job answer {id} {}", wanted(open)));
    }
    Ok(())
}

fn open_table<'a>(rows: impl Iterator<Item = (&'a Job, &'a Question)>, context: &Context) -> String {
    let mut table = Columns::new(&["JOB~", "NO", "QUESTION~", "OPTIONS~", "DEFAULT", "ASKED", "UNTIL"]);
    for (job, question) in rows {
        let options = question.options.join(" | ");
        table.row(vec![
            Cell::new(printable(meant(job))),
            Cell::new(question.number),
            Cell::new(printable(first_line(&question.text))),
            Cell::new(printable(dash(Some(options.as_str()).filter(|text| !text.is_empty())))),
            Cell::new(printable(dash(question.default.as_deref()))),
            Cell::new(ago(&question.asked_at, context.output.now)),
            Cell::new(ago(&question.deadline, context.output.now)),
        ]);
    }
    table.render()
}

/// The conversation as people read it.
pub(super) fn text_of(talk: &Conversation, context: &Context) -> String {
    let when = |time: &str| ago(time, context.output.now);
    let mut lines = Vec::new();
    for question in &talk.questions {
        let Question { number, text, asked_at, deadline, .. } = question;
        lines.push(format!("{number}. {}  ({})", printable(text), when(asked_at)));
        if !question.options.is_empty() {
            lines.push(format!("   options: {}", printable(&question.options.join(" | "))));
        }
        let answer = printable(question.answer.as_deref().unwrap_or_default());
        lines.push(match (question.state, &question.default) {
            (QuestionState::Open, Some(default)) => {
                format!("   open; `{}` is taken {}", printable(default), when(deadline))
            }
            (QuestionState::Open, None) => {
                format!("   open; the job fails {} without an answer", when(deadline))
            }
            (QuestionState::Answered, _) => {
                format!(
                    "   {} answered: {answer}",
                    printable(question.answered_by.as_deref().unwrap_or("somebody"))
                )
            }
            (QuestionState::Defaulted, _) => {
                format!("   nobody answered in time, so the default is taken: {answer}")
            }
            (QuestionState::Expired, _) => "   nobody answered in time".to_owned(),
            (QuestionState::Withdrawn, _) => {
                "   withdrawn: the job went on or ended without an answer".to_owned()
            }
        });
    }
    for message in &talk.messages {
        let read = match &message.delivered {
            Some(delivered) => format!("read by run {}", delivered.lease_epoch),
            None => "not read yet".to_owned(),
        };
        let (by, text) = (printable(&message.by), printable(&message.text));
        lines.push(format!("{by}: {text}  ({}, {read})", when(&message.at)));
    }
    lines.join("\n")
}

/// What the answer to a question looks like on a command line.
pub(super) fn wanted(question: &Question) -> String {
    let number = format!("--question {}", question.number);
    match question.options.first() {
        Some(first) => format!("{number} '{}'", first.replace('\'', r"'\''")),
        None => format!("{number} TEXT"),
    }
}

pub(super) fn first_line(text: &str) -> &str {
    text.trim().lines().next().unwrap_or_default()
}
