//! What can happen, and what is to be done about it.

use crossterm::event::KeyEvent;
use giga_api::wire::{
    Alert, Budget, Event, Explanation, Factory, FleetMetrics, Job, JobPage, LogPiece, OperatorAction, Run,
    TopicList,
};
use giga_domain::Timestamp;

use crate::model::{Column, Group};
use crate::text::{clean, quoted};

#[derive(Debug, Clone)]
pub enum Msg {
    Key(KeyEvent),
    /// As one piece, so that what is pasted is never taken for keys.
    Paste(String),
    Resize(u16, u16),
    Tick(Timestamp),
    /// The feed is open, or open again.
    Open,
    /// The feed broke off; it is tried again by whoever follows it.
    Lost(String),
    News(Box<Event>),
    Got(Box<Got>),
    /// Nobody answered, or the answer was no.
    Failed {
        fetch: Fetch,
        error: String,
        failure: Failure,
    },
    Acted {
        action: Action,
        outcome: Result<String, String>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failure {
    /// Nobody answered.
    Unreachable,
    /// There is no such thing.
    Missing,
    /// Any other no; it may be a yes the next time.
    Refused,
}

#[derive(Debug, Clone)]
pub struct Got {
    /// What it was narrowed to when it was asked for.
    pub product: Option<String>,
    pub answer: Answer,
}

#[derive(Debug, Clone)]
pub enum Answer {
    Metrics(FleetMetrics),
    Factories(Vec<Factory>),
    Alerts(Vec<Alert>),
    Budgets(Vec<Budget>),
    Topics(TopicList),
    Column(Column, Vec<Job>),
    Jobs {
        generation: u64,
        first: bool,
        page: JobPage,
    },
    Rows {
        generation: u64,
        asked: Vec<String>,
        jobs: Vec<Job>,
    },
    Job(Box<Job>),
    Events {
        id: String,
        events: Vec<Event>,
    },
    Runs {
        id: String,
        runs: Vec<Run>,
    },
    Explain {
        id: String,
        explain: Explanation,
    },
    Log {
        id: String,
        piece: LogPiece,
    },
    /// All that it could be.
    Found {
        text: String,
        jobs: Vec<Job>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    Fetch(Fetch),
    Act(Action),
    Quit,
    /// Ctrl-Z.
    Suspend,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fetch {
    Metrics,
    Factories,
    Alerts,
    Budgets,
    Topics,
    Column(Column),
    Jobs { generation: u64, group: Group, name: String, cursor: Option<String> },
    Rows { generation: u64, group: Group, name: String, ids: Vec<String> },
    Job(String),
    Events { id: String, after: u64 },
    Runs(String),
    Explain(String),
    Log { id: String, epoch: Option<u64>, offset: u64, wait: bool },
    Find(String),
}

impl Fetch {
    /// About one job by its id: which product is shown makes no difference.
    pub(crate) const fn of_one_job(&self) -> bool {
        matches!(
            self,
            Self::Job(_) | Self::Events { .. } | Self::Runs(_) | Self::Explain(_) | Self::Log { .. }
        )
    }
}

/// Something that changes the fleet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    Job { act: OperatorAction, id: String, name: String, meant: String },
    Approve { id: String, name: String, meant: String, epoch: Option<u64> },
    RequestChanges { id: String, name: String, meant: String, epoch: Option<u64>, comment: String },
    Answer { id: String, name: String, meant: String, question: u32, text: String },
    Say { id: String, name: String, meant: String, text: String },
    Drain { factory: String, undo: bool },
    PauseBudget { product: String, stop_running: bool },
    ResumeBudget { product: String },
    PauseTopic { product: String, topic: String },
    ResumeTopic { product: String, topic: String },
    RetryDead { product: String, topic: String, dead: u64 },
}

impl Action {
    /// The same as a command line.
    pub fn line(&self) -> String {
        match self {
            Self::Job { act, meant, .. } => format!("giga job {} {}", act, quoted(meant)),
            Self::Approve { meant, .. } => format!("giga review {} --approve", quoted(meant)),
            Self::RequestChanges { meant, comment, .. } => {
                format!("giga review {} --request-changes -m {}", quoted(meant), quoted(comment))
            }
            Self::Answer { meant, question, text, .. } => {
                format!("giga job answer {} --question {question} {}", quoted(meant), quoted(text))
            }
            Self::Say { meant, text, .. } => format!("giga job say {} {}", quoted(meant), quoted(text)),
            Self::Drain { factory, undo: false } => format!("giga factory drain {}", quoted(factory)),
            Self::Drain { factory, undo: true } => format!("giga factory drain {} --undo", quoted(factory)),
            Self::PauseBudget { product, stop_running } => {
                let stop = if *stop_running { " --stop-running" } else { "" };
                format!("giga budget pause {}{stop}", quoted(product))
            }
            Self::ResumeBudget { product } => format!("giga budget resume {}", quoted(product)),
            Self::PauseTopic { product, topic } => {
                format!("giga topic pause {} --product {}", quoted(topic), quoted(product))
            }
            Self::ResumeTopic { product, topic } => {
                format!("giga topic resume {} --product {}", quoted(topic), quoted(product))
            }
            Self::RetryDead { product, topic, .. } => {
                format!("giga topic retry {} --product {}", quoted(topic), quoted(product))
            }
        }
    }

    /// Asked before it is done; nothing where it only gives back what was taken.
    pub fn question(&self) -> Option<String> {
        Some(match self {
            Self::Job { act, name, .. } => format!("{} {}?", act, clean(name)),
            Self::Approve { name, .. } => format!("approve {}?", clean(name)),
            Self::Drain { factory, undo: false } => format!("drain {}?", clean(factory)),
            Self::PauseBudget { product, .. } => format!("pause {}?", clean(product)),
            Self::PauseTopic { topic, .. } => format!("pause topic {}?", clean(topic)),
            Self::RetryDead { topic, dead, .. } => format!("retry {dead} dead of {}?", clean(topic)),
            Self::RequestChanges { .. }
            | Self::Answer { .. }
            | Self::Say { .. }
            | Self::Drain { undo: true, .. }
            | Self::ResumeBudget { .. }
            | Self::ResumeTopic { .. } => return None,
        })
    }
}
