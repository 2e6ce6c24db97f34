//! What a job and people say to each other: the job's questions, people's answers and messages.
//!
//! All of it is a part of the job and changes through [`crate::transition()`] only, so that one epoch fences asking as it fences
//! everything else. Whether somebody may answer or say something at all is asked before, by the caller's role.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::word::words;
use crate::{Epoch, RequestId, Timestamp, limits};

words! {
    "question kind",
    #[derive(Default)]
    pub enum QuestionKind {
        /// Something that the engine wants to know. Answered with one of the options, or in other words.
        #[default]
        Question,
        /// Something that the engine wants to do. Answered with one of the options.
        Permission,
    }
}

words! {
    "permissions",
    /// What an engine may do without asking. Ordered: `Ask` sorts first and allows least.
    pub enum Permissions {
        /// Read the work tree, and nothing else.
        Ask,
        /// Change files of the work tree, too.
        Edit,
        /// Run commands in the sandbox, too.
        Commands,
        /// Whatever its tools can do in the sandbox.
        All,
    }
}

/// When a question is given up, and how long its run keeps its seat for it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AskPolicy {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub park_after_ms: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline_ms: Option<u64>,
}

impl AskPolicy {
    pub const PARK_AFTER: Duration = Duration::from_mins(10);
    pub const DEADLINE: Duration = Duration::from_hours(24);

    pub fn is_unsaid(&self) -> bool {
        *self == Self::default()
    }

    /// A question that is open for longer than this frees the seat of its run.
    pub fn park_after(&self) -> Duration {
        self.park_after_ms.map_or(Self::PARK_AFTER, Duration::from_millis)
    }

    /// After this the default is the answer, or the job fails.
    pub fn deadline(&self) -> Duration {
        self.deadline_ms.map_or(Self::DEADLINE, Duration::from_millis)
    }
}

/// What a job's holder, or what runs inside the job, wants to know.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Ask {
    pub kind: QuestionKind,
    /// The same key is the same question, in every run of the job. Without one, the same text is.
    pub key: Option<String>,
    pub text: String,
    pub options: Vec<String>,
    /// The answer if nobody gives one in time.
    pub default: Option<String>,
    /// Instead of what the job's policy says, where it is shorter.
    pub deadline: Option<Duration>,
}

/// Why something cannot be asked, answered or said. Each says what would be right.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TalkError {
    #[error("{0} questions of this job are open, which is the most; wait for answers first")]
    TooManyOpen(usize),
    #[error("this job has asked {0} questions, which is the most")]
    TooManyAsked(u32),
    #[error("{0} messages wait for this job's engine, which is the most; wait until it has read some")]
    TooManyMessages(usize),
    #[error("the job has no question {0}; `giga job questions JOB` lists them")]
    NoSuchQuestion(u32),
    #[error("the job has no open question")]
    NothingOpen,
    #[error("several questions are open ({0}); say which is meant")]
    WhichOne(String),
    #[error("question {number} was answered by {by} already: {answer}")]
    Answered { number: u32, by: String, answer: String },
    #[error("question {0} is closed: nobody answered it in time, or its run ended without it")]
    Closed(u32),
    #[error("question {number} is a request for permission: answer with one of {options}")]
    NotAnOption { number: u32, options: String },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Question {
    /// Counts from 1 in each job.
    pub number: u32,
    #[serde(default)]
    pub kind: QuestionKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    pub text: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
    /// The run that asked.
    pub epoch: Epoch,
    pub asked_at: Timestamp,
    /// From then on its run is to give its seat up.
    pub park_at: Timestamp,
    pub deadline: Timestamp,
    /// `None` while it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed: Option<Closed>,
}

/// How a question came to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Closed {
    pub at: Timestamp,
    pub how: ClosedHow,
    /// Its place among all that the job is told. Nothing is told of a withdrawn one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered: Option<Delivered>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum ClosedHow {
    Answered {
        by: String,
        answer: String,
    },
    /// Nobody answered in time.
    Defaulted {
        answer: String,
    },
    /// The same, and there is no default.
    Expired,
    /// Its run ended without the answer, and so that no other run will need it.
    Withdrawn,
}

/// Which run was told, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Delivered {
    pub at: Timestamp,
    pub epoch: Epoch,
}

/// What a person says to the engine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    /// Of the call that sent it.
    pub id: RequestId,
    /// Its place among all that the job is told.
    pub seq: u64,
    pub text: String,
    pub by: String,
    pub at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered: Option<Delivered>,
}

/// Of one job. What is open or not delivered is all there; of the rest only the newest, the history has the others.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Conversation {
    /// Oldest first, like the messages.
    pub questions: Vec<Question>,
    pub messages: Vec<Message>,
    /// How many questions there were.
    pub asked: u32,
    /// How much the job was told: answers and messages.
    pub told: u64,
}

impl Question {
    pub const fn is_open(&self) -> bool {
        self.closed.is_none()
    }

    pub fn answer(&self) -> Option<&str> {
        match &self.closed.as_ref()?.how {
            ClosedHow::Answered { answer, .. } | ClosedHow::Defaulted { answer } => Some(answer),
            ClosedHow::Expired | ClosedHow::Withdrawn => None,
        }
    }

    /// Whether the asker means this one: what was given up or withdrawn is asked anew.
    fn is_asked_by(&self, ask: &Ask) -> bool {
        let same = match (&self.key, &ask.key) {
            (Some(one), Some(other)) => one == other,
            (None, None) => self.text == ask.text && self.options == ask.options,
            _ => false,
        };
        same && (self.is_open() || self.answer().is_some())
    }

    fn undelivered(&self) -> Option<u64> {
        self.closed.as_ref().filter(|closed| closed.delivered.is_none()).and_then(|closed| closed.seq)
    }
}

impl Conversation {
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    pub fn open(&self) -> impl Iterator<Item = &Question> {
        self.questions.iter().filter(|question| question.is_open())
    }

    pub fn question(&self, number: u32) -> Option<&Question> {
        self.questions.iter().find(|question| question.number == number)
    }

    /// Which question somebody means who does not say which.
    pub fn only_open(&self) -> Result<u32, TalkError> {
        let open: Vec<u32> = self.open().map(|question| question.number).collect();
        match open.as_slice() {
            [] => Err(TalkError::NothingOpen),
            [only] => Ok(*only),
            several => {
                let numbers: Vec<String> = several.iter().map(ToString::to_string).collect();
                Err(TalkError::WhichOne(numbers.join(", ")))
            }
        }
    }

    /// The question that this asks, where it was asked.
    pub fn asked_as(&self, ask: &Ask) -> Option<&Question> {
        self.questions.iter().rev().find(|question| question.is_asked_by(ask))
    }

    /// When the next question is given up.
    pub fn due(&self) -> Option<Timestamp> {
        self.open().map(|question| question.deadline).min()
    }

    /// Until when a job in the queue waits for answers at most.
    pub fn waits_until(&self) -> Option<Timestamp> {
        self.open().map(|question| question.deadline).max()
    }

    /// Whether its holder is to free the seat: a question has been open for too long.
    pub fn is_to_park(&self, now: Timestamp) -> bool {
        self.open().any(|question| question.park_at <= now)
    }

    /// Whether something waits for the engine.
    pub fn has_undelivered(&self) -> bool {
        self.questions.iter().any(|question| question.undelivered().is_some())
            || self.messages.iter().any(|message| message.delivered.is_none())
    }

    /// Keeps what matters from growing without an end.
    pub(crate) fn forget_old(&mut self) {
        let mut spare = self.questions.len().saturating_sub(limits::QUESTIONS_KEPT);
        self.questions.retain(|question| {
            let goes = spare > 0 && !question.is_open() && question.undelivered().is_none();
            spare -= usize::from(goes);
            !goes
        });
        let mut spare = self.messages.len().saturating_sub(limits::MESSAGES_KEPT);
        self.messages.retain(|message| {
            let goes = spare > 0 && message.delivered.is_some();
            spare -= usize::from(goes);
            !goes
        });
    }
}
