//! Everything that is on the screen, as values. It changes in `update` only and is drawn by `view` only; neither
//! knows a terminal, a clock or a connection.

mod board;
mod cursor;
mod job;
mod jobs;
mod link;
mod rows;

use std::collections::BTreeSet;

use giga_api::wire::{Alert, Budget, Factory, FleetMetrics, TokenRole, TopicList, WhoAmI};
use giga_domain::Timestamp;
use giga_domain::token::Right;

pub use board::{Board, Column};
pub use cursor::Cursor;
pub use job::{JobPage, Log, Part};
pub use jobs::{Group, Jobs};
pub use link::Link;
pub use rows::{BoardColumn, alert_key, topic_key};

use crate::keys::Place;
use crate::msg::Action;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tab {
    Board,
    Factories,
    Alerts,
    Jobs,
    Budgets,
    Topics,
}

impl Tab {
    pub const ALL: [Self; 6] =
        [Self::Board, Self::Factories, Self::Alerts, Self::Jobs, Self::Budgets, Self::Topics];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Board => "board",
            Self::Factories => "factories",
            Self::Alerts => "alerts",
            Self::Jobs => "jobs",
            Self::Budgets => "budgets",
            Self::Topics => "topics",
        }
    }

    #[must_use]
    pub fn next(self, back: bool) -> Self {
        let at = Self::ALL.iter().position(|tab| *tab == self).unwrap_or(0);
        Self::ALL[(at + if back { 5 } else { 1 }) % 6]
    }
}

/// Who looks, by the token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Who {
    pub role: TokenRole,
    pub label: String,
    /// Empty: every product.
    pub products: Vec<String>,
}

impl Who {
    pub fn may_act(&self) -> bool {
        self.role.may(Right::Steer)
    }

    pub fn may_look(&self) -> bool {
        self.role.may(Right::Read)
    }
}

impl From<WhoAmI> for Who {
    fn from(who: WhoAmI) -> Self {
        Self {
            role: who.role.map_or(TokenRole::Factory, Into::into),
            label: who.label,
            products: who.products,
        }
    }
}

/// A list with its filter.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct List {
    pub filter: String,
    pub cursor: Cursor,
}

/// What lies above a tab. Esc takes the last one away.
#[derive(Debug, Clone)]
pub enum Page {
    Job(Box<JobPage>),
    Factory { id: String, cursor: Cursor },
}

/// What is being typed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    pub what: Typing,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Typing {
    Filter,
    Search,
    Jump,
    /// An answer to this question, or without one a message to the engine.
    Say {
        id: String,
        name: String,
        question: Option<u32>,
    },
    /// Why changes are asked for.
    Comment {
        id: String,
        name: String,
        epoch: Option<u64>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    Plain,
    Good,
    Bad,
}

/// The last message, until the next key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    pub text: String,
    pub tone: Tone,
}

#[derive(Debug, Clone)]
pub struct Model {
    pub now: Timestamp,
    /// Columns and rows.
    pub size: (u16, u16),
    pub who: Who,
    pub link: Link,
    /// Only what belongs to it is shown.
    pub product: Option<String>,
    /// Those that were ever seen.
    pub products: BTreeSet<String>,
    pub tab: Tab,
    pub pages: Vec<Page>,
    pub metrics: Option<FleetMetrics>,
    pub factories: Option<Vec<Factory>>,
    pub alerts: Option<Vec<Alert>>,
    pub budgets: Option<Vec<Budget>>,
    pub topics: Option<TopicList>,
    pub board: Board,
    pub jobs: Jobs,
    pub factory_list: List,
    pub alert_list: List,
    pub budget_list: List,
    pub topic_list: List,
    pub prompt: Option<Prompt>,
    /// Waits for `y`.
    pub ask: Option<Action>,
    pub help: bool,
    pub note: Option<Note>,
    /// When the coordinator was last asked without having said that anything is new.
    pub asked_at: Timestamp,
    /// Something was not answered since, or with a no that may not last.
    pub failed: bool,
}

impl Model {
    pub fn new(who: Who, product: Option<String>, size: (u16, u16), now: Timestamp) -> Self {
        Self {
            now,
            size,
            products: who.products.iter().cloned().chain(product.clone()).collect(),
            who,
            link: Link::default(),
            product,
            tab: Tab::Board,
            pages: Vec::new(),
            metrics: None,
            factories: None,
            alerts: None,
            budgets: None,
            topics: None,
            board: Board::default(),
            jobs: Jobs::default(),
            factory_list: List::default(),
            alert_list: List::default(),
            budget_list: List::default(),
            topic_list: List::default(),
            prompt: None,
            ask: None,
            help: false,
            note: None,
            asked_at: now,
            failed: false,
        }
    }

    /// Rows between the header and the two lines at the bottom.
    pub fn body_height(&self) -> usize {
        usize::from(self.size.1).saturating_sub(4)
    }

    pub fn page(&self) -> Option<&Page> {
        self.pages.last()
    }

    pub fn job_page(&self) -> Option<&JobPage> {
        match self.pages.last() {
            Some(Page::Job(page)) => Some(page),
            _ => None,
        }
    }

    pub fn job_page_mut(&mut self) -> Option<&mut JobPage> {
        match self.pages.last_mut() {
            Some(Page::Job(page)) => Some(page),
            _ => None,
        }
    }

    /// Where the reader is; a job's log has keys of its own.
    pub fn places(&self) -> Vec<Place> {
        let mut places = match self.page() {
            Some(Page::Job(page)) if page.part == Part::Log => vec![Place::Job, Place::Log],
            Some(Page::Job(_)) => vec![Place::Job],
            Some(Page::Factory { .. }) => vec![Place::Factory],
            None => vec![
                match self.tab {
                    Tab::Board => Place::Board,
                    Tab::Factories => Place::Factories,
                    Tab::Alerts => Place::Alerts,
                    Tab::Jobs => Place::Jobs,
                    Tab::Budgets => Place::Budgets,
                    Tab::Topics => Place::Topics,
                },
                Place::Lists,
            ],
        };
        places.extend([Place::Moving, Place::Everywhere]);
        places
    }

    pub fn say(&mut self, tone: Tone, text: impl Into<String>) {
        self.note = Some(Note { text: text.into(), tone });
    }

    pub fn factory(&self, id: &str) -> Option<&Factory> {
        self.factories.as_ref()?.iter().find(|factory| factory.id == id)
    }
}
