//! `giga ask`: what runs inside a job asks people, and waits.

use std::time::Duration;

use giga_api::client::{Client, ClientError};
use giga_api::wire::{AskRequest, DeliveredRequest, Question, QuestionKind, QuestionState};
use tokio::time::Instant;

use super::Done;
use super::context::Context;
use crate::args::AskArgs;
use crate::exit::{self, CliError};
use crate::output::{printable, say};

/// How long one call waits for an answer.
const LOOK: Duration = Duration::from_secs(30);
/// A factory takes an engine that prints nothing for too long for stuck.
const SIGN_OF_LIFE: Duration = Duration::from_mins(2);
const PAUSE: Duration = Duration::from_secs(1);

pub(crate) async fn ask(args: AskArgs, context: &Context) -> Done {
    let (job, lease_epoch) = inside()?;
    let client = context.client()?;
    let AskArgs { text, option, default, permission, key, deadline } = args;
    let request = AskRequest {
        lease_epoch,
        text: text.join(" "),
        kind: if permission { QuestionKind::Permission } else { QuestionKind::Question },
        options: option,
        default,
        key,
        deadline,
    };
    let asked = retried(|| client.ask_people(&job, &request)).await?;
    let (mut question, mut json) = (asked.value, asked.json);
    if question.state == QuestionState::Open {
        say(&format!("asked people as question {}; waiting until {}", question.number, question.deadline));
        (question, json) = answered(&client, &job, question.number).await?;
    }
    if let Some(seq) = question.seq {
        // The run has it: it is not told again.
        let request = DeliveredRequest { lease_epoch, seqs: vec![seq] };
        retried(|| client.delivered(&job, &request)).await?;
    }
    match (question.state, &question.answer) {
        (QuestionState::Answered, Some(answer)) => context.output.one(&json, "/answer", || printable(answer)),
        (QuestionState::Defaulted, Some(answer)) => {
            context.output.one(&json, "/answer", || printable(answer))?;
            say("nobody answered in time: this is the default");
            Err(CliError::Ended(exit::DEFAULTED))
        }
        _ => Err(CliError::failed(format!("nobody answered in time: {}", question.text))),
    }
}

/// Which job this runs in, under which lease.
fn inside() -> Result<(String, u64), CliError> {
    let job = std::env::var("GIGA_JOB_ID").ok();
    let epoch = std::env::var("GIGA_LEASE_EPOCH").ok().and_then(|epoch| epoch.parse().ok());
    job.zip(epoch).ok_or_else(|| {
        CliError::Usage(
            "`giga ask` works inside a job: it needs GIGA_JOB_ID and GIGA_LEASE_EPOCH, which a factory sets"
                .to_owned(),
        )
    })
}

async fn answered(
    client: &Client,
    job: &str,
    number: u32,
) -> Result<(Question, serde_json::Value), CliError> {
    let (mut after, mut last_sign) = (0, Instant::now());
    loop {
        let talk = retried(|| client.conversation(job, after, LOOK)).await?;
        let at = talk.value.questions.iter().position(|question| question.number == number);
        let at = at.ok_or_else(|| CliError::failed("the question is not there any more"))?;
        let question = &talk.value.questions[at];
        if question.state != QuestionState::Open {
            return Ok((question.clone(), talk.json["questions"][at].clone()));
        }
        after = talk.value.last_seq;
        if last_sign.elapsed() >= SIGN_OF_LIFE {
            say(&format!("still waiting for an answer to question {number}"));
            last_sign = Instant::now();
        }
    }
}

/// A coordinator that is away comes back; the question stays.
async fn retried<T, F>(mut call: impl FnMut() -> F) -> Result<T, CliError>
where
    F: Future<Output = Result<T, ClientError>>,
{
    loop {
        match call().await {
            Err(error) if error.is_passing() => tokio::time::sleep(PAUSE).await,
            other => return Ok(other?),
        }
    }
}
