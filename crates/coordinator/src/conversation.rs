//! What jobs ask people, and what people say to jobs.
//!
//! Asking is a holder's write and fenced like any other. Whoever answers or speaks is let in by the routes; a job never answers
//! itself. The holder hears of it with its next renewal, which a word down its stream brings forward.

use std::time::Duration;

use giga_domain::{
    Actor, Ask, Command, Conversation, Holder, HolderAction, Job, JobId, Question, RequestId, TalkError,
};
use giga_ports::StoreError;
use giga_ports::store::{Hold, Steer};
use tokio::time::Instant;

use crate::{Coordinator, Error};

impl Coordinator {
    /// The question as it is kept, which may have its answer: the same one was asked before.
    pub async fn ask(&self, id: JobId, holder: Holder, ask: Ask) -> Result<(Job, Question), Error> {
        let actions = vec![HolderAction::Ask(ask.clone())];
        let job = self.core.store.hold(Hold { job: id, holder, actions }).await?;
        let question = job.conversation.as_ref().and_then(|talk| talk.asked_as(&ask)).cloned();
        let question = question.ok_or_else(|| StoreError::broken_because("a question was not kept"))?;
        Ok((job, question))
    }

    /// The engine was given these answers and messages.
    pub async fn delivered(&self, id: JobId, holder: Holder, seqs: Vec<u64>) -> Result<Job, Error> {
        let actions = vec![HolderAction::Delivered(seqs)];
        Ok(self.core.store.hold(Hold { job: id, holder, actions }).await?)
    }

    /// Without a number the only open question is meant.
    pub async fn answer(
        &self,
        id: JobId,
        question: Option<u32>,
        answer: String,
        by: String,
        actor: Actor,
    ) -> Result<Job, Error> {
        let question = if let Some(question) = question {
            question
        } else {
            let job = self.core.store.read().job(id).await?.ok_or(StoreError::NoSuchJob(id))?;
            let open = job.conversation.as_ref().map_or(Err(TalkError::NothingOpen), |talk| talk.only_open());
            open.map_err(|error| StoreError::from(giga_domain::Refusal::from(error)))?
        };
        self.talk(id, Command::Answer { question, answer, by }, actor).await
    }

    /// `request` names this very message: sending it again after a lost reply sends nothing more.
    pub async fn say(
        &self,
        id: JobId,
        request: Option<RequestId>,
        text: String,
        by: String,
        actor: Actor,
    ) -> Result<Job, Error> {
        let message = request.unwrap_or_else(|| self.core.new_request());
        self.talk(id, Command::Say { id: message, text, by }, actor).await
    }

    async fn talk(&self, job: JobId, command: Command, actor: Actor) -> Result<Job, Error> {
        let request = self.core.new_request();
        Ok(self.core.store.steer(Steer { job, request, command, if_rev: None, actor }).await?)
    }

    /// What was said so far. With nothing newer than `after` it waits up to `wait` for something.
    pub async fn conversation(&self, id: JobId, after: u64, wait: Duration) -> Result<Conversation, Error> {
        let until = Instant::now() + wait;
        loop {
            // Registered before the look, so that nothing said in between is slept through.
            let talked = self.fleet.talked.notified();
            tokio::pin!(talked);
            talked.as_mut().enable();
            let job = self.core.store.read().job(id).await?.ok_or(StoreError::NoSuchJob(id))?;
            let talk = job.conversation.map(|talk| *talk).unwrap_or_default();
            if talk.told > after || Instant::now() >= until {
                return Ok(talk);
            }
            tokio::select! {
                () = &mut talked => {}
                () = self.core.stop.cancelled() => return Ok(talk),
                () = tokio::time::sleep_until(until) => {}
            }
        }
    }

    /// One sweep over the questions whose deadline has passed. Returns how long none is due; `None` where none is open.
    pub async fn close_questions_once(&self) -> Result<Option<Duration>, StoreError> {
        loop {
            let limit = self.core.options.sweep_limit;
            let asking = self.core.store.read().asking(limit).await?;
            let Some((_, next)) = asking.first() else { return Ok(None) };
            let now = self.core.store.read().now().await?;
            if *next > now {
                return Ok(Some(next.since(now)));
            }
            for (job, _) in asking.into_iter().take_while(|(_, due)| *due <= now) {
                let (request, command) = (self.core.new_request(), Command::CloseQuestions);
                let steer = Steer { job, request, command, if_rev: None, actor: Actor::system("questions") };
                match self.core.store.steer(steer).await {
                    Ok(_) | Err(StoreError::NoSuchJob(_)) => {}
                    Err(error) => return Err(error),
                }
            }
        }
    }
}
