//! Why a job waits, or where it would go, for the person who is woken by it.
//!
//! Explaining never differs from planning: the filters, the terms and the turn are those of `plan`, asked for one job
//! with every answer kept. Every sentence must be true; where counting everything would take too long the text says
//! "at least".

mod cause;
mod fix;
mod quota;
mod remedy;
mod words;

use giga_domain::{FactoryId, Timestamp};
use serde::Serialize;
use strum::Display;

use crate::feasible::{self, Filter, Rejection};
use crate::fleet::{Candidates, Fleet, Seats};
use crate::select::aged;
use crate::{JobView, Policy, ReadyQueue, Snapshot, Terms};

use cause::Case;

pub use fix::Fix;

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// One sentence.
    pub summary: String,
    /// All that stands in the way; empty when it would be placed now.
    pub blockers: Vec<Blocker>,
    /// What would place it, the smallest change first.
    pub remedies: Vec<Remedy>,
    /// Those that could take it now first, by score; then the others by id.
    pub factories: Vec<FactoryVerdict>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Blocker {
    pub code: BlockerCode,
    pub message: String,
}

impl Blocker {
    pub fn new(code: impl Into<BlockerCode>, message: impl Into<String>) -> Self {
        Self { code: code.into(), message: message.into() }
    }
}

/// What stands in a job's way: a filter that no factory passes, or something that is not about factories.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Display)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum BlockerCode {
    NoFactories,
    /// Jobs that are ahead.
    Order,
    /// A factory of a pool is on its way, or could be.
    Pool,
    /// A seat is being freed for it.
    Preemption,
    Dependency,
    Child,
    /// A person has to answer.
    Question,
    Review,
    Ship,
    /// On its way into its branch.
    Merge,
    Failed,
    #[serde(untagged)]
    #[strum(transparent)]
    Filter(Filter),
}

impl From<Filter> for BlockerCode {
    fn from(filter: Filter) -> Self {
        Self::Filter(filter)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Remedy {
    pub message: String,
    /// A command line that does it, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// What exactly that command does, where it is complete as it stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<Fix>,
}

impl Remedy {
    /// What nobody can do by a command.
    pub fn advice(message: impl Into<String>) -> Self {
        Self { message: message.into(), command: None, fix: None }
    }

    /// A command that wants something chosen, or another place to run at.
    pub fn command(message: impl Into<String>, command: impl Into<String>) -> Self {
        Self { message: message.into(), command: Some(command.into()), fix: None }
    }

    pub fn fix(message: impl Into<String>, fix: Fix) -> Self {
        Self { message: message.into(), command: Some(fix.command()), fix: Some(fix) }
    }
}

/// What the filters say of one factory as things stand, jobs ahead left aside.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FactoryVerdict {
    pub factory_id: FactoryId,
    pub feasible: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejected_by: Option<Rejection>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terms: Option<Terms>,
}

/// The job need not be in the queue: a dry run asks before it submits.
pub fn explain(
    job: &JobView,
    queue: &ReadyQueue,
    snapshot: &Snapshot,
    now: Timestamp,
    policy: &Policy,
) -> Explanation {
    let case = Case::new(job, queue, snapshot, now, policy);
    Explanation {
        summary: words::summary(&case),
        blockers: words::blockers(&case),
        remedies: remedy::remedies(&case),
        factories: verdicts(&case, snapshot, policy),
    }
}

fn verdicts(case: &Case<'_>, snapshot: &Snapshot, policy: &Policy) -> Vec<FactoryVerdict> {
    let (job, now) = (case.job, case.now);
    let fleet = Fleet::new(snapshot, now, Seats::AsTheyAre);
    let candidates = Candidates::new(&fleet, job, case.product.weights);
    let mut verdicts: Vec<FactoryVerdict> = fleet
        .factories
        .iter()
        .enumerate()
        .map(|(at, factory)| {
            let failed = feasible::factory_failures(job, factory)
                .into_iter()
                .chain(case.gates.iter().copied())
                .chain(feasible::pair_failures(job, factory, now))
                .next();
            let score = match failed {
                None => {
                    Some(aged(candidates.terms_for(&fleet, at, job), job, case.product.weights, now, policy))
                }
                Some(_) => None,
            };
            FactoryVerdict {
                factory_id: factory.id.clone(),
                feasible: failed.is_none(),
                rejected_by: failed
                    .map(|filter| Rejection { filter, detail: words::detail(filter, case, factory) }),
                score: score.map(|s| s.total),
                terms: score.map(|s| s.terms),
            }
        })
        .collect();
    // Stable, so that equals stay in order of id.
    verdicts.sort_by(|a, b| match (a.score, b.score) {
        (Some(a), Some(b)) => b.total_cmp(&a),
        (a, b) => b.is_some().cmp(&a.is_some()),
    });
    verdicts
}
