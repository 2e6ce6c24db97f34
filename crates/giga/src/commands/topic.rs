//! `giga topic …`

use std::fmt::Write;
use std::io::Read;

use comfy_table::{Cell, Color};
use giga_api::client::{Answer, Client};
use giga_api::wire::{EnqueueRequest, Topic, TopicJob, TopicJobPage, TopicJobState, TopicPause, TopicRetry};
use giga_domain::limits;
use giga_ports::{Clock, Randomness};
use serde_json::value::RawValue;

use super::Done;
use super::context::Context;
use crate::args::{EnqueueArgs, PauseTopicArgs, TopicArg, TopicCommand, TopicJobsArgs};
use crate::exit::CliError;
use crate::output::{Columns, Format, Output, ago, append_page, dash, millis, printable, say};
use crate::system::{SystemClock, SystemRandomness};

pub(crate) async fn run(command: TopicCommand, context: &Context) -> Done {
    let (client, output) = (context.client()?, &context.output);
    match command {
        TopicCommand::List => {
            let answer = client.topics().await?;
            if let (Some(pause), Format::Table) = (&answer.paused, output.format) {
                say(&format!(
                    "all topics are {}; resume them with `giga topic resume --all`",
                    paused(pause, output)
                ));
            }
            let none = "no topics; `giga topic enqueue` creates one";
            output.list(&answer.json, ("/topics", "/name"), none, || table(&answer.topics, output))
        }
        TopicCommand::Show(TopicArg { topic }) => show(&client, &topic, context).await,
        TopicCommand::Pause(PauseTopicArgs { topic: Some(topic), .. }) => {
            let answer = client.pause_topic(&topic).await?;
            output.one(&answer.json, "/name", || text(&answer, output))
        }
        TopicCommand::Resume(PauseTopicArgs { topic: Some(topic), .. }) => {
            let answer = client.resume_topic(&topic).await?;
            output.one(&answer.json, "/name", || text(&answer, output))
        }
        TopicCommand::Pause(_) => {
            let answer = client.pause_all_topics().await?;
            output.one(&answer.json, "", || "all topics are paused".to_owned())
        }
        TopicCommand::Resume(_) => {
            let answer = client.resume_all_topics().await?;
            output.one(&answer.json, "", || {
                "all topics are running, except those paused individually".to_owned()
            })
        }
        TopicCommand::Enqueue(args) => enqueue(args, &client, output).await,
        TopicCommand::Jobs(TopicJobsArgs { topic, job: Some(job), .. }) => {
            let job = client.topic_job(&topic, &job).await?;
            output.one(&job.json, "/id", || job_text(&job, output))
        }
        TopicCommand::Jobs(args) => jobs(&args.topic, args.state, args.limit, &client, output).await,
        TopicCommand::Dead(TopicArg { topic }) => {
            jobs(&topic, TopicJobState::Dead, None, &client, output).await
        }
        TopicCommand::Retry { topic, jobs } => {
            let answer = client.retry_dead(&topic, jobs).await?;
            output.list(&answer.json, ("/retried", ""), "no dead jobs to retry", || {
                answer.retried.iter().map(|id| printable(id) + "\n").collect()
            })
        }
    }
}

async fn show(client: &Client, name: &str, context: &Context) -> Done {
    let all = client.topics().await?;
    let wanted = context.settings.product().map(|product| product.value);
    let is_it =
        |topic: &Topic| topic.name == name && wanted.as_ref().is_none_or(|own| topic.product_id == *own);
    let found: Vec<usize> = (0..all.topics.len()).filter(|index| is_it(&all.topics[*index])).collect();
    match found.as_slice() {
        [index] => {
            let json = all.json.pointer(&format!("/topics/{index}")).cloned().unwrap_or_default();
            context.output.one(&json, "/name", || text(&all.topics[*index], &context.output))
        }
        [] => Err(CliError::NoSuchTopic(name.to_owned())),
        several => {
            let products: Vec<&str> =
                several.iter().map(|index| all.topics[*index].product_id.as_str()).collect();
            let products = products.join(", ");
            Err(CliError::Usage(format!("`{name}` exists in {products}; choose one with --product")))
        }
    }
}

async fn enqueue(args: EnqueueArgs, client: &Client, output: &Output) -> Done {
    let text = if args.payload == "-" { read_stdin().await? } else { args.payload };
    let payload: Box<RawValue> = serde_json::from_str(text.trim()).map_err(|error| {
        CliError::Usage(format!("the payload is not JSON ({error}); quote plain text: '\"like this\"'"))
    })?;
    // One that lives as long as this invocation, so that a call whose answer was lost can be repeated.
    let made_up = || format!("cli-{}", SystemRandomness.job_id(SystemClock.now()));
    let retry = TopicRetry { max: args.retry_max, backoff: args.backoff };
    let request = EnqueueRequest {
        payload: Some(payload),
        priority: args.priority,
        run_at: args.run_at,
        idempotency_key: Some(args.key.unwrap_or_else(made_up)),
        retry: (retry != TopicRetry::default()).then_some(retry),
        jobs: None,
    };
    let answer = client.enqueue(&args.topic, &request).await?;
    let existing = answer.jobs.iter().any(|job| job.existing);
    output.list(&answer.json, ("/jobs", "/id"), "", || {
        answer.jobs.iter().map(|job| printable(&job.id) + "\n").collect()
    })?;
    if existing && output.format == Format::Table {
        say("the key was used before; this is its job");
    }
    Ok(())
}

async fn read_stdin() -> Result<String, CliError> {
    let read = tokio::task::spawn_blocking(|| {
        let mut text = String::new();
        let most = limits::TOPIC_PAYLOAD_BYTES as u64 + 1;
        std::io::stdin().take(most).read_to_string(&mut text).map(|_| text)
    });
    let read = read.await.map_err(|_| CliError::Interrupted)?;
    read.map_err(|error| CliError::Usage(format!("cannot read the payload from stdin: {error}")))
}

async fn jobs(
    topic: &str,
    state: TopicJobState,
    limit: Option<usize>,
    client: &Client,
    output: &Output,
) -> Done {
    let wanted = limit.unwrap_or(limits::PAGE_DEFAULT);
    let page = |cursor: Option<String>, left: usize| async move {
        client.topic_jobs(topic, state, Some(left.min(limits::PAGE_MAX)), cursor.as_deref()).await
    };
    let mut all: Answer<TopicJobPage> = page(None, wanted).await?;
    while all.jobs.len() < wanted {
        let Some(cursor) = all.value.next_cursor.take() else { break };
        let next = page(Some(cursor), wanted - all.jobs.len()).await?;
        all.value.jobs.extend(next.value.jobs);
        all.value.next_cursor = next.value.next_cursor;
        append_page(&mut all.json, next.json, "jobs", "nextCursor");
    }
    let none = format!("no {state} jobs in {topic}");
    output.list(&all.json, ("/jobs", "/id"), &none, || jobs_table(&all.jobs, output))
}

fn paused(pause: &TopicPause, output: &Output) -> String {
    format!("paused by {} {}", printable(&pause.by), ago(&pause.since, output.now))
}

fn count(topic: &Topic, state: TopicJobState) -> u64 {
    topic.by_state.get(&state).copied().unwrap_or_default()
}

fn table(topics: &[Topic], output: &Output) -> String {
    use TopicJobState::{Dead, Done, Ready, Running, Scheduled};
    let mut table = Columns::new(&[
        "TOPIC",
        "PRODUCT",
        "STATE~",
        "READY",
        "SCHEDULED",
        "RUNNING",
        "DONE",
        "DEAD",
        "WORKERS",
    ]);
    for topic in topics {
        let state = match &topic.paused {
            Some(pause) => Cell::new(paused(pause, output)).fg(Color::Yellow),
            None => Cell::new("running").fg(Color::Green),
        };
        let mut row = vec![Cell::new(printable(&topic.name)), Cell::new(printable(&topic.product_id)), state];
        row.extend([Ready, Scheduled, Running, Done, Dead].map(|state| Cell::new(count(topic, state))));
        row.push(Cell::new(topic.workers));
        table.row(row);
    }
    table.render()
}

fn facts(heading: &str, facts: &[(&str, Option<String>)]) -> String {
    let mut text = format!("\x1b[1m{}\x1b[0m\n", printable(heading));
    for (name, value) in facts {
        if let Some(value) = value {
            let _ = writeln!(text, "  {name:<9}  {}", printable(value));
        }
    }
    text
}

fn text(topic: &Topic, output: &Output) -> String {
    let state = topic.paused.as_ref().map_or("running".to_owned(), |pause| paused(pause, output));
    let of = |state| Some(count(topic, state).to_string());
    facts(
        &topic.name,
        &[
            ("product", Some(topic.product_id.clone())),
            ("state", Some(state)),
            ("ready", of(TopicJobState::Ready)),
            ("scheduled", of(TopicJobState::Scheduled)),
            ("running", of(TopicJobState::Running)),
            ("done", of(TopicJobState::Done)),
            ("dead", of(TopicJobState::Dead)),
            ("workers", Some(topic.workers.to_string())),
        ],
    )
}

fn jobs_table(jobs: &[TopicJob], output: &Output) -> String {
    let any_error = jobs.iter().any(|job| job.last_error.is_some());
    let any_worker = jobs.iter().any(|job| job.worker_id.is_some());
    let mut headings = vec!["ID", "STATE", "PRIORITY", "ATTEMPTS"];
    headings.extend(any_worker.then_some("WORKER"));
    headings.extend(any_error.then_some("LAST ERROR~"));
    headings.push("CREATED");
    let mut table = Columns::new(&headings);
    for job in jobs {
        let mut row = vec![
            printable(&job.id),
            job.state.to_string(),
            job.priority.to_string(),
            job.attempts.to_string(),
        ];
        row.extend(any_worker.then(|| printable(dash(job.worker_id.as_deref()))));
        row.extend(any_error.then(|| printable(dash(job.last_error.as_deref()))));
        row.push(ago(&job.created_at, output.now));
        table.row(row);
    }
    table.render()
}

fn job_text(job: &TopicJob, output: &Output) -> String {
    let when = |at: &Option<String>| at.as_deref().map(|at| ago(at, output.now));
    let payload = job.payload.as_ref().map(|json| json.get().to_owned());
    facts(
        &job.id,
        &[
            ("topic", Some(job.topic.clone())),
            ("product", Some(job.product_id.clone())),
            ("state", Some(job.state.to_string())),
            ("priority", Some(job.priority.to_string())),
            ("attempts", Some(format!("{} of {} used", job.attempts, u64::from(job.retry_max) + 1))),
            ("backoff", Some(millis(job.retry_backoff_ms))),
            ("created", when(&Some(job.created_at.clone()))),
            ("due", when(&job.due_at)),
            ("worker", job.worker_id.clone()),
            ("lease", when(&job.expires_at)),
            ("ended", when(&job.ended_at)),
            ("error", job.last_error.clone()),
            ("key", job.idempotency_key.clone().filter(|key| !key.starts_with("cli-"))),
            ("payload", payload.or_else(|| job.payload_base64.as_ref().map(|text| format!("base64 {text}")))),
        ],
    )
}
