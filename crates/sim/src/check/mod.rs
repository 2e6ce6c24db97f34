//! The promises of the specification, each checked from outside: by what was asked and answered at the store's boundary and
//! by what is left in the end. The rules are written down here a second time on purpose, and never call the system's own.

mod accounts;
mod attempts;
mod deliveries;
mod events;
mod evictions;
mod graph;
mod holders;
mod kept;
mod limits;
mod merges;
mod money;
mod rows;
mod standing;
mod story;
mod stranded;
mod talk;
mod terms;
#[cfg(test)]
mod tests;
mod topics;

pub(crate) use deliveries::wants;
pub(crate) use standing::Standing;

use std::collections::BTreeMap;
use std::fmt;

use giga_domain::topic::TopicJob;
use giga_domain::{Budget, Charge, Effect, Event, Job, JobId, ProductId, Run, Timestamp, Webhook};
use giga_ports::store::QueueState;
use giga_ports::topics::TopicCounts;

use crate::history::Record;
use crate::ports::Branch;
use crate::scenario::Scenario;
use story::Stories;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Promise {
    /// A job is never held by two; an accepted write is the current holder's.
    OneHolder,
    /// A repeated request is answered with the grant that it won, for as long as that lasts.
    SameGrant,
    /// A lease is taken back only because it ended.
    LeaseKept,
    /// What a dead holder left comes back within its lease and one sweep.
    RecoveredInTime,
    /// An acknowledged job is there.
    Durable,
    /// The same idempotency key makes one job.
    KeyOnce,
    /// Nothing leaves a terminal stage.
    TerminalAbsorbs,
    /// Stages change only as the table says, each event going on from the one before.
    StageTable,
    /// A job's events are numbered 1, 2, 3, … without gaps.
    EventsNumbered,
    /// A reader that resumes from its cursor misses nothing and sees nothing twice.
    FeedComplete,
    /// Every job ends, or waits for a person for a known reason.
    NotStranded,
    /// An older leader's offers change nothing.
    TermFenced,
    /// Attempts are counted: failures and lost leases, not releases.
    AttemptsCounted,
    /// A topic job is settled by its current holder alone, and with success at most once.
    TopicOnce,
    /// A worker never has more than it asked for.
    InFlight,
    /// Nothing of a topic is handed out while it is paused.
    PauseKept,
    /// Seats, concurrency keys, capabilities and drained factories are respected by every grant.
    LimitsKept,
    /// Counts and runs say what the history says.
    CountsBalance,
    /// Nobody gets a job before its time has come.
    NotBeforeItsTime,
    /// What was spent and what is reserved fits into every limit at every grant; a paused budget grants nothing.
    BudgetKept,
    /// Every run is charged once, for what it cost; what is reserved is what stands on the leases.
    ChargedOnce,
    /// A seat is given up only for a more urgent job, not too often, and costs no attempt.
    EvictionsFree,
    /// Nobody runs before its deps have shipped; composites, their children and their waiters end with each other.
    GraphKept,
    /// What somebody subscribed to is sent under one id until it is taken or given up.
    DeliveredOnce,
    /// A question has one end: the answer that was taken, or its deadline; nobody runs a job that waits for an answer.
    Answered,
    /// Nobody is sent to an account that is known to be closed.
    AccountsKept,
    /// A job is shipped when its result is in its branch, and is in there once; the branch only ever moves to what passed
    /// and was announced.
    ShippedIsMerged,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    pub promise: Promise,
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.promise, self.text)
    }
}

/// All that the checkers get to see.
#[derive(Debug)]
pub struct Evidence {
    pub(crate) scenario: Scenario,
    pub(crate) records: Vec<Record>,
    /// The feed as its reader got it.
    pub(crate) read: Vec<Event>,
    /// The feed as it is.
    pub(crate) events: Vec<Event>,
    pub(crate) jobs: Vec<Job>,
    /// What `explain` says of the jobs that have not ended.
    pub(crate) explained: BTreeMap<JobId, String>,
    pub(crate) topic_jobs: Vec<TopicJob>,
    pub(crate) runs: Vec<Run>,
    pub(crate) queues: Vec<(ProductId, QueueState)>,
    pub(crate) topic_counts: Vec<TopicCounts>,
    pub(crate) budgets: Vec<Budget>,
    pub(crate) charges: Vec<Charge>,
    pub(crate) webhooks: Vec<Webhook>,
    pub(crate) effects: Vec<Effect>,
    /// The branches in the end, by repository.
    pub(crate) branches: BTreeMap<String, Branch>,
    /// When the faults stopped.
    pub(crate) calm_since: Timestamp,
    /// When all this was looked at.
    pub(crate) ended_at: Timestamp,
}

pub fn check(evidence: &Evidence) -> Vec<Violation> {
    let stories = Stories::of(&evidence.events);
    let mut found = Findings::default();
    holders::check(evidence, &stories, &mut found);
    kept::check(evidence, &mut found);
    limits::check(evidence, &mut found);
    rows::check(evidence, &stories, &mut found);
    events::check(evidence, &stories, &mut found);
    attempts::check(evidence, &stories, &mut found);
    terms::check(evidence, &mut found);
    topics::check(evidence, &mut found);
    money::check(evidence, &mut found);
    evictions::check(evidence, &stories, &mut found);
    graph::check(evidence, &mut found);
    deliveries::check(evidence, &mut found);
    merges::check(evidence, &stories, &mut found);
    talk::check(evidence, &stories, &mut found);
    accounts::check(evidence, &mut found);
    stranded::check(evidence, &mut found);
    found.0
}

#[derive(Debug, Default)]
struct Findings(Vec<Violation>);

impl Findings {
    fn add(&mut self, promise: Promise, text: String) {
        self.0.push(Violation { promise, text });
    }
}
