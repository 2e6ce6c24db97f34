//! What one run and people say to each other: the engine's questions go to the coordinator, answers and messages come back.
//!
//! Decides nothing: until when a question can be answered, and when the run has to give its seat up for it, is the coordinator's
//! word. What an engine does not take while it runs is in the prompt of the next run.

use std::collections::HashMap;
use std::convert::Infallible;
use std::fmt::Write as _;
use std::time::Duration;

use giga_api::wire::{AskRequest, Conversation, DeliveredRequest, Message, Question, QuestionState};
use giga_domain::Timestamp;
use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::job::JobRun;
use super::{accounts, lease};
use crate::engines::{Answer, Asking, Inbox, Input, Question as Asked, Talked};

/// How long the coordinator may take to say what is asked.
const LOOK: Duration = Duration::from_secs(10);

/// How much may wait for an engine that is busy. Not to be lost: what does not fit comes with the next look.
const WAITING: usize = 64;

/// The engine's end is its inbox.
pub(super) struct Talk {
    inbox: mpsc::Sender<Input>,
    /// What was read so far.
    seen: Mutex<u64>,
    /// The engine's own ids of its questions, by their numbers.
    asked: Mutex<HashMap<u32, String>>,
}

impl Talk {
    /// `seen`: what the prompt says already.
    pub(super) fn new(seen: u64) -> (Self, Inbox) {
        let (inbox, engine) = Inbox::channel(WAITING);
        (Self { inbox, seen: Mutex::new(seen), asked: Mutex::default() }, engine)
    }
}

impl JobRun<'_> {
    /// What was said before this run began, as a part of its prompt. Marked as delivered: the run is told.
    pub(super) async fn said_before(&self) -> (Option<Talked>, u64) {
        if !self.grant.has_conversation {
            return (None, 0);
        }
        let talk = match self.shared.client.conversation(&self.held.job, 0, Duration::ZERO).await {
            Ok(talk) => talk.value,
            Err(error) => {
                self.log.note(&format!("what people said could not be read: {error}"));
                return (None, 0);
            }
        };
        let waiting = waiting(&talk, 0);
        if !waiting.is_empty() {
            self.log.note(&format!("{} of people for the engine, in its prompt", messages(waiting.len())));
            self.delivered(waiting).await;
        }
        let talked = words(&talk, |_| true).map(|whole| Talked { whole, new: words(&talk, |new| new) });
        (talked, talk.last_seq)
    }

    /// Brings what people say to the engine, until somebody stops listening to it.
    pub(super) async fn bring_input(&self, talk: &Talk) -> Infallible {
        loop {
            self.held.input.notified().await;
            let seen = *talk.seen.lock();
            let said = match self.shared.client.conversation(&self.held.job, seen, Duration::ZERO).await {
                Ok(said) => said.value,
                Err(error) => {
                    tracing::warn!(job = self.held.job, %error, "what people said could not be read");
                    continue;
                }
            };
            let expired = said.questions.iter().find(|question| {
                question.state == QuestionState::Expired && question.seq.is_some_and(|seq| seq > seen)
            });
            if let Some(question) = expired {
                self.log.note(&format!("nobody answered in time: {}", question.text));
                self.keeper.stop_unanswered(&question.text);
                return std::future::pending().await;
            }
            for input in inputs(&said, seen, &talk.asked.lock()) {
                self.log.note(&describe(&input));
                // One that is full waits for the next look; one that is gone belongs to an engine that takes nothing.
                if let Err(mpsc::error::TrySendError::Full(_)) = talk.inbox.try_send(input) {
                    break;
                }
            }
            *talk.seen.lock() = said.last_seq;
        }
    }

    /// Asks people what the engine asks.
    pub(super) async fn ask_people(&self, talk: &Talk, asked: Asked) {
        let Asked { id, kind, text, options, default } = asked;
        let request = AskRequest {
            lease_epoch: self.held.epoch,
            text,
            kind: kind.into(),
            options,
            default,
            key: Some(id.clone()),
            deadline: None,
        };
        self.log.note(&format!("the engine asks: {}", request.text));
        match self.shared.client.ask_people(&self.held.job, &request).await {
            Ok(question) => {
                talk.asked.lock().insert(question.value.number, id.clone());
                // There is room: an engine waits for few answers at once.
                if let Some(input) = answer_of(&question.value, id) {
                    let _ = talk.inbox.try_send(input);
                }
            }
            Err(error) if lease::is_final(&error) => {
                self.keeper.stop_because(lease::StopCause::LeaseLost);
            }
            Err(error) => {
                self.log.note(&format!("the question could not be asked: {error}"));
                let answer = Input::Answer { seq: 0, question: id, answer: Answer::None };
                let _ = talk.inbox.try_send(answer);
            }
        }
    }

    /// Whether this run waits for people: it may have asked by a tool or a command, which its engine does not say.
    pub(super) fn asking(&self) -> Asking {
        let (client, job, epoch) = (self.shared.client.clone(), self.held.job.clone(), self.held.epoch);
        Asking::new(move || {
            let (client, job) = (client.clone(), job.clone());
            async move {
                let talk = client.conversation(&job, 0, Duration::ZERO);
                match tokio::time::timeout(LOOK, talk).await {
                    Ok(Ok(talk)) => last_asked(&talk.value, epoch, accounts::now()),
                    _ => None,
                }
            }
        })
    }

    pub(super) async fn delivered(&self, seqs: Vec<u64>) {
        let request = DeliveredRequest { lease_epoch: self.held.epoch, seqs };
        if let Err(error) = self.shared.client.delivered(&self.held.job, &request).await {
            tracing::warn!(job = self.held.job, %error, "that the engine was told could not be noted");
        }
    }
}

/// How long ago the last question of this run was closed or, at the latest, could be answered.
fn last_asked(talk: &Conversation, epoch: u64, now: Timestamp) -> Option<Duration> {
    let of_this_run = talk.questions.iter().filter(|question| question.lease_epoch == epoch);
    let ends = of_this_run.filter_map(|question| {
        let end = question.closed_at.as_ref().unwrap_or(&question.deadline);
        end.parse::<Timestamp>().ok()
    });
    ends.max().map(|end| now.since(end))
}

/// Places of what no run was given.
fn waiting(talk: &Conversation, after: u64) -> Vec<u64> {
    let answers = talk.questions.iter().filter(|question| question.delivered.is_none());
    let messages = talk.messages.iter().filter(|message| message.delivered.is_none());
    let seqs = answers.filter_map(|question| question.seq).chain(messages.map(|message| message.seq));
    seqs.filter(|seq| *seq > after).collect()
}

/// In the order in which it was said.
fn inputs(talk: &Conversation, after: u64, asked: &HashMap<u32, String>) -> Vec<Input> {
    let answers = talk.questions.iter().filter_map(|question| {
        let id = asked.get(&question.number).cloned().or_else(|| question.key.clone())?;
        Some((question.seq.filter(|_| question.delivered.is_none())?, answer_of(question, id)?))
    });
    let messages = talk.messages.iter().filter(|message| message.delivered.is_none()).map(|message| {
        let Message { seq, text, by, .. } = message.clone();
        (seq, Input::Message { seq, by, text })
    });
    let mut all: Vec<(u64, Input)> = answers.chain(messages).filter(|(seq, _)| *seq > after).collect();
    all.sort_by_key(|(seq, _)| *seq);
    all.into_iter().map(|(_, input)| input).collect()
}

fn answer_of(question: &Question, id: String) -> Option<Input> {
    let text = question.answer.clone()?;
    let answer = Answer::Given { text, by: question.answered_by.clone() };
    Some(Input::Answer { seq: question.seq?, question: id, answer })
}

fn describe(input: &Input) -> String {
    match input {
        Input::Message { by, text, .. } => format!("message from {by}: {text}"),
        Input::Answer { answer: Answer::Given { text, by }, .. } => match by {
            Some(by) => format!("answer of {by}: {text}"),
            None => format!("nobody answered in time; the default is taken: {text}"),
        },
        Input::Answer { answer: Answer::None, .. } => "no answer".to_owned(),
    }
}

/// As a text to be read by the engine, those of which `such` says so: it is told whether a run was given it before. `None`
/// where nothing was said.
fn words(talk: &Conversation, such: impl Fn(bool) -> bool) -> Option<String> {
    let mut text = String::new();
    for question in &talk.questions {
        let Some(answer) = question.answer.as_deref().filter(|_| such(question.delivered.is_none())) else {
            continue;
        };
        let by = question.answered_by.as_deref().unwrap_or("nobody answered in time, so this is the default");
        let _ = writeln!(text, "You asked: {}\nThe answer ({by}): {answer}\n", question.text);
    }
    for message in talk.messages.iter().filter(|message| such(message.delivered.is_none())) {
        let _ = writeln!(text, "Message from {} to you: {}\n", message.by, message.text);
    }
    let text = text.trim_end();
    (!text.is_empty()).then(|| format!("What people said while you worked on this:\n\n{text}"))
}

fn messages(count: usize) -> String {
    if count == 1 { "1 message".to_owned() } else { format!("{count} messages") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn talk() -> Conversation {
        let at = "2026-11-15T16:00:00Z";
        let question = |number: u32, state: &str, answer: Option<&str>, seq: Option<u64>, delivered: bool| {
            json!({"number": number, "kind": "question", "state": state, "text": format!("question {number}?"), "key": format!("q{number}"),
                "leaseEpoch": 1, "askedAt": at, "parkAt": at, "deadline": at, "answer": answer, "seq": seq,
                "answeredBy": answer.filter(|_| state == "answered").map(|_| "ana"),
                "delivered": delivered.then(|| json!({"at": at, "leaseEpoch": 1}))})
        };
        let message = |seq: u64, delivered: bool| {
            json!({"seq": seq, "text": format!("message {seq}"), "by": "bo", "at": at,
            "delivered": delivered.then(|| json!({"at": at, "leaseEpoch": 1}))})
        };
        let questions = [
            question(1, "answered", Some("8080"), Some(1), true),
            question(2, "defaulted", Some("no"), Some(4), false),
            question(3, "open", None, None, false),
            question(4, "withdrawn", None, None, false),
        ];
        let talk =
            json!({"questions": questions, "messages": [message(2, true), message(3, false)], "lastSeq": 4});
        serde_json::from_value(talk).unwrap()
    }

    #[test]
    fn a_new_session_is_told_everything_and_a_resumed_one_what_is_new() {
        let whole = words(&talk(), |_| true).unwrap();
        assert_eq!(
            whole,
            "What people said while you worked on this:\n\n\
             You asked: question 1?\nThe answer (ana): 8080\n\n\
             You asked: question 2?\nThe answer (nobody answered in time, so this is the default): no\n\n\
             Message from bo to you: message 2\n\nMessage from bo to you: message 3"
        );
        let new = words(&talk(), |new| new).unwrap();
        assert!(new.contains("question 2?") && new.contains("message 3"), "{new}");
        assert!(!new.contains("question 1?") && !new.contains("message 2"), "{new}");
        assert_eq!(words(&Conversation::default(), |_| true), None);
        assert_eq!(waiting(&talk(), 0), [4, 3]);
    }

    #[test]
    fn a_run_waits_for_people_until_its_question_is_closed_or_too_late() {
        let mut talk = talk();
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        let now = at("2026-11-15T17:00:00Z");
        "2026-11-15T18:00:00Z".clone_into(&mut talk.questions[2].deadline);
        assert_eq!(last_asked(&talk, 1, now), Some(Duration::ZERO), "the third is open");
        assert_eq!(
            last_asked(&talk, 1, at("2026-11-15T18:20:00Z")),
            Some(Duration::from_mins(20)),
            "until then"
        );
        talk.questions[2].closed_at = Some("2026-11-15T16:59:00Z".to_owned());
        assert_eq!(last_asked(&talk, 1, now), Some(Duration::from_mins(1)));
        assert_eq!(last_asked(&talk, 2, now), None, "another run asked");
    }

    #[test]
    fn an_engine_gets_what_is_new_in_its_order_and_under_its_own_names() {
        let asked = HashMap::from([(2, "of the engine".to_owned())]);
        let default = Answer::Given { text: "no".to_owned(), by: None };
        let all = [
            Input::Message { seq: 3, by: "bo".to_owned(), text: "message 3".to_owned() },
            Input::Answer { seq: 4, question: "of the engine".to_owned(), answer: default },
        ];
        assert_eq!(inputs(&talk(), 0, &asked), all);
        assert_eq!(inputs(&talk(), 3, &asked), all[1..]);
        assert_eq!(inputs(&talk(), 4, &asked), []);
    }
}
