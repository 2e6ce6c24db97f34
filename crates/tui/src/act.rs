//! Doing what was confirmed, and saying what became of it.

use giga_api::client::{Client, ClientError};
use giga_api::wire::{AnswerRequest, Job, PauseBudgetRequest, ReviewRequest, ReviewVerdict, SayRequest};

use crate::data::{describe, narrowed};
use crate::msg::Action;
use crate::text::count;

pub(crate) async fn act(client: &Client, action: &Action) -> Result<String, String> {
    match done(client, action).await {
        Ok(message) => Ok(format!("{message}   ({})", action.line())),
        Err(ClientError::Unreachable { reason, .. }) => {
            Err(format!("no answer ({reason}): it may or may not have been done; check before trying again"))
        }
        Err(error) => Err(describe(&error)),
    }
}

async fn done(client: &Client, action: &Action) -> Result<String, ClientError> {
    Ok(match action {
        Action::Job { act, id, .. } => standing(&client.act(id, *act, None, None).await?.value),
        Action::Approve { id, epoch, .. } => {
            let request = verdict(ReviewVerdict::Approve, None, *epoch);
            standing(&client.review(id, &request).await?.value)
        }
        Action::RequestChanges { id, epoch, comment, .. } => {
            let request = verdict(ReviewVerdict::RequestChanges, Some(comment.clone()), *epoch);
            standing(&client.review(id, &request).await?.value)
        }
        Action::Answer { id, name, question, text, .. } => {
            let request = AnswerRequest { question: Some(*question), answer: text.clone() };
            client.answer(id, &request).await?;
            format!("question {question} of {name} is answered")
        }
        Action::Say { id, name, text, .. } => {
            client.say(id, &SayRequest { text: text.clone(), request_id: None }).await?;
            format!("{name} gets your message")
        }
        Action::Drain { factory, undo } => {
            client.drain(factory, *undo).await?;
            if *undo {
                format!("{factory} is taking jobs again")
            } else {
                format!("{factory} is draining: it finishes its jobs and takes no new ones")
            }
        }
        Action::PauseBudget { product, stop_running } => {
            let request = PauseBudgetRequest { reason: None, stop_running: *stop_running };
            let answer = narrowed(client, Some(product)).pause_budget(product, &request).await?;
            let stopped = match answer.stopped {
                0 => String::new(),
                many => format!(", {} asked to stop", count(many as usize, "job")),
            };
            format!("{product} is paused{stopped}")
        }
        Action::ResumeBudget { product } => {
            let budget = narrowed(client, Some(product)).resume_budget(product).await?;
            let left = budget.left_usd.map(|left| format!(", {left} left")).unwrap_or_default();
            format!("{product} is resumed{left}")
        }
        Action::PauseTopic { product, topic } => {
            narrowed(client, Some(product)).pause_topic(topic).await?;
            format!("topic {topic} is paused")
        }
        Action::ResumeTopic { product, topic } => {
            narrowed(client, Some(product)).resume_topic(topic).await?;
            format!("topic {topic} is resumed")
        }
        Action::RetryDead { product, topic, .. } => {
            let answer = narrowed(client, Some(product)).retry_dead(topic, Vec::new()).await?;
            format!("{} of {topic} queued for retry", count(answer.retried.len(), "job"))
        }
    })
}

fn verdict(verdict: ReviewVerdict, comment: Option<String>, epoch: Option<u64>) -> ReviewRequest {
    // Bound to what was looked at: a result that came since is not judged by this.
    ReviewRequest {
        verdict,
        reviewer: None,
        comment,
        lease_epoch: epoch,
        commit: None,
        acknowledge_unseen: false,
    }
}

fn standing(job: &Job) -> String {
    format!("{} is {}", job.name, job.stage.label())
}
