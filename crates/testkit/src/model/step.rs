//! The steps of a random history. They name jobs, factories and revisions by relation ("a held one", "the one
//! before"), so that a step makes sense wherever shrinking leaves it.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;

use super::outside::{Outside, outside};

/// A job that exists, and whether it should be one that the step can be expected to work on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pick {
    pub(super) index: Index,
    pub(super) sensible: bool,
}

#[derive(Debug, Clone)]
pub(super) struct JobShape {
    pub(super) product: u8,
    pub(super) key: Option<u8>,
    pub(super) content: u8,
    pub(super) priority: u8,
    pub(super) deps: Vec<Index>,
    /// Of the job before it in the same submit.
    pub(super) after_neighbour: bool,
    pub(super) unknown_dep: bool,
    pub(super) any: bool,
    pub(super) concurrency: Option<(u8, u32)>,
    pub(super) retries: u32,
    pub(super) quorum: u32,
    pub(super) auto: bool,
    pub(super) delay_ms: u64,
    pub(super) demanding: bool,
    /// In cents.
    pub(super) cap: Option<u8>,
}

/// What the caller believes about a revision or an epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Belief {
    Right,
    Old,
    Ahead,
    None,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Action {
    Start,
    Renew(u32),
    Checkpoint(u8),
    /// In cents.
    Spend(u8),
    Report(Option<u8>),
    Fail {
        retryable: bool,
    },
    Release {
        checkpoint: bool,
    },
    Ask(u8),
    Delivered(u8),
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Order {
    Ship,
    Requeue,
    Reject,
    Cancel,
    Approve(u8),
    AskForChanges(u8),
    Refuse(u8),
    AskForReview(u32),
    Answer(u8),
    Say(u8),
    CloseQuestions,
}

/// What becomes of a budget; amounts are in cents.
#[derive(Debug, Clone, Copy)]
pub(super) enum Purse {
    Set { day: Option<u8>, total: Option<u8>, job: Option<u8> },
    Pause,
    Resume,
    Correct(u8),
}

#[derive(Debug, Clone)]
pub(super) enum Step {
    Advance { millis: u64 },
    Submit(Vec<JobShape>),
    SubmitAgain(Index),
    Claim { job: Pick, factory: u8, request: u8, rev: Belief, offer: Belief, lease_ms: u32 },
    Hold { job: Pick, actions: Vec<Action>, epoch: Belief, stranger: bool },
    LeaveFile { job: Pick, name: u8, epoch: Belief, stranger: bool },
    Steer { job: Pick, order: Order, rev: Belief },
    Expire { limit: usize },
    Reconsider,
    Retire { age_ms: u32 },
    Enroll { factory: u8, narrow: bool, again: bool },
    Advertise { factory: u8, seats: u32, gpu: bool },
    Touch { factory: u8, later_ms: u32 },
    Drain { factory: u8, draining: bool },
    Deregister { factory: u8 },
    Prune { age_ms: u32 },
    Rotate { factory: u8, token: u8, grace_ms: u32 },
    RevokeFactory { factory: u8 },
    IssueToken { token: u8 },
    RevokeToken { token: u8 },
    SetFlag { flag: u8, value: u8 },
    Lead { node: u8, lease_ms: u32 },
    Resign { node: u8, term: Belief },
    Offer { chosen: Vec<(Pick, Belief, u8)>, term: Belief, pickup_ms: u32 },
    Sent { count: usize },
    Diverge { job: Pick },
    Evict { asked: Vec<(Pick, Belief, bool)>, term: Belief, grace_ms: u32 },
    Budget { product: u8, purse: Purse, rev: Belief },
    BudgetAgain,
    Outside(Outside),
}

pub(super) const FACTORIES: u8 = 4;
pub(super) const TOKENS: u8 = 6;
const NODES: u8 = 3;

fn pick() -> impl Strategy<Value = Pick> {
    (any::<Index>(), prop::bool::weighted(0.85)).prop_map(|(index, sensible)| Pick { index, sensible })
}

fn belief(right: u32) -> impl Strategy<Value = Belief> {
    prop_oneof![
        right => Just(Belief::Right),
        1 => Just(Belief::Old),
        1 => Just(Belief::Ahead),
        1 => Just(Belief::None),
    ]
}

fn accepted() -> impl Strategy<Value = Belief> {
    prop_oneof![3 => Just(Belief::None), 1 => belief(4)]
}

fn job_shape() -> impl Strategy<Value = JobShape> {
    let identity = (0..2u8, prop::option::weighted(0.3, 0..4u8), 0..2u8, 0..4u8);
    let deps = (
        vec(any::<Index>(), 0..3),
        prop::bool::weighted(0.3),
        prop::bool::weighted(0.03),
        prop::bool::weighted(0.3),
    );
    let quorum = prop_oneof![3 => Just(0u32), 1 => 1..3u32];
    let limits = (prop::option::weighted(0.3, (0..2u8, 1..3u32)), 0..3u32, quorum);
    let rest = (
        any::<bool>(),
        prop_oneof![4 => Just(0), 1 => 1..5_000u64],
        prop::bool::weighted(0.15),
        prop::option::of(0..6u8),
    );
    (identity, deps, limits, rest).prop_map(|(identity, deps, limits, rest)| JobShape {
        product: identity.0,
        key: identity.1,
        content: identity.2,
        priority: identity.3,
        deps: deps.0,
        after_neighbour: deps.1,
        unknown_dep: deps.2,
        any: deps.3,
        concurrency: limits.0,
        retries: limits.1,
        quorum: limits.2,
        auto: rest.0,
        delay_ms: rest.1,
        demanding: rest.2,
        cap: rest.3,
    })
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        4 => Just(Action::Start),
        2 => (0..20_000u32).prop_map(Action::Renew),
        2 => (0..3u8).prop_map(Action::Checkpoint),
        3 => (0..8u8).prop_map(Action::Spend),
        3 => prop::option::of(0..8u8).prop_map(Action::Report),
        1 => any::<bool>().prop_map(|retryable| Action::Fail { retryable }),
        1 => any::<bool>().prop_map(|checkpoint| Action::Release { checkpoint }),
        1 => (0..3u8).prop_map(Action::Ask),
        1 => (0..4u8).prop_map(Action::Delivered),
    ]
}

fn order() -> impl Strategy<Value = Order> {
    prop_oneof![
        3 => Just(Order::Ship),
        2 => Just(Order::Requeue),
        1 => Just(Order::Reject),
        1 => Just(Order::Cancel),
        4 => (0..3u8).prop_map(Order::Approve),
        1 => (0..3u8).prop_map(Order::AskForChanges),
        1 => (0..3u8).prop_map(Order::Refuse),
        1 => (0..3u32).prop_map(Order::AskForReview),
        3 => (1..4u8).prop_map(Order::Answer),
        1 => (0..3u8).prop_map(Order::Say),
        1 => Just(Order::CloseQuestions),
    ]
}

fn purse() -> impl Strategy<Value = Purse> {
    let limit = || prop::option::of(0..20u8);
    prop_oneof![
        4 => (limit(), limit(), prop::option::of(0..4u8))
            .prop_map(|(day, total, job)| Purse::Set { day, total, job }),
        1 => Just(Purse::Pause),
        3 => Just(Purse::Resume),
        1 => (0..9u8).prop_map(Purse::Correct),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let factory = 0..FACTORIES;
    prop_oneof![
        6 => prop_oneof![40 => 0..3_000u64, 10 => 3_000..60_000u64, 1 => 3_600_000..90_000_000u64].prop_map(|millis| Step::Advance { millis }),
        10 => vec(job_shape(), 1..4).prop_map(Step::Submit),
        2 => any::<Index>().prop_map(Step::SubmitAgain),
        14 => (pick(), factory.clone(), 0..40u8, belief(6), accepted(), 1..10_000u32).prop_map(
            |(job, factory, request, rev, offer, lease_ms)| Step::Claim { job, factory, request, rev, offer, lease_ms }
        ),
        20 => (pick(), vec(action(), 0..4), belief(12), prop::bool::weighted(0.05))
            .prop_map(|(job, actions, epoch, stranger)| Step::Hold { job, actions, epoch, stranger }),
        5 => (pick(), 0..3u8, belief(12), prop::bool::weighted(0.05))
            .prop_map(|(job, name, epoch, stranger)| Step::LeaveFile { job, name, epoch, stranger }),
        12 => (pick(), order(), belief(6)).prop_map(|(job, order, rev)| Step::Steer { job, order, rev }),
        4 => prop_oneof![Just(1), Just(2), Just(100)].prop_map(|limit| Step::Expire { limit }),
        5 => Just(Step::Reconsider),
        2 => (0..30_000u32).prop_map(|age_ms| Step::Retire { age_ms }),
        2 => (factory.clone(), any::<bool>(), any::<bool>())
            .prop_map(|(factory, narrow, again)| Step::Enroll { factory, narrow, again }),
        3 => (factory.clone(), 0..4u32, any::<bool>())
            .prop_map(|(factory, seats, gpu)| Step::Advertise { factory, seats, gpu }),
        1 => (factory.clone(), 0..5_000u32).prop_map(|(factory, later_ms)| Step::Touch { factory, later_ms }),
        1 => (factory.clone(), any::<bool>()).prop_map(|(factory, draining)| Step::Drain { factory, draining }),
        1 => factory.clone().prop_map(|factory| Step::Deregister { factory }),
        1 => (0..60_000u32).prop_map(|age_ms| Step::Prune { age_ms }),
        1 => (factory.clone(), 0..TOKENS, 0..5_000u32)
            .prop_map(|(factory, token, grace_ms)| Step::Rotate { factory, token, grace_ms }),
        1 => factory.clone().prop_map(|factory| Step::RevokeFactory { factory }),
        1 => (0..TOKENS).prop_map(|token| Step::IssueToken { token }),
        1 => (0..TOKENS).prop_map(|token| Step::RevokeToken { token }),
        1 => (0..3u8, 0..3u8).prop_map(|(flag, value)| Step::SetFlag { flag, value }),
        4 => (0..NODES, 0..20_000u32).prop_map(|(node, lease_ms)| Step::Lead { node, lease_ms }),
        1 => (0..NODES, belief(3)).prop_map(|(node, term)| Step::Resign { node, term }),
        8 => (vec((pick(), belief(8), factory), 1..5), belief(12), 0..5_000u32)
            .prop_map(|(chosen, term, pickup_ms)| Step::Offer { chosen, term, pickup_ms }),
        3 => (0..4usize).prop_map(|count| Step::Sent { count }),
        1 => pick().prop_map(|job| Step::Diverge { job }),
        4 => (vec((pick(), belief(12), any::<bool>()), 1..3), accepted(), 0..8_000u32)
            .prop_map(|(asked, term, grace_ms)| Step::Evict { asked, term, grace_ms }),
        4 => (0..2u8, purse(), accepted()).prop_map(|(product, purse, rev)| Step::Budget { product, purse, rev }),
        1 => Just(Step::BudgetAgain),
        12 => outside().prop_map(Step::Outside),
    ]
}

pub(super) fn history(steps: usize) -> impl Strategy<Value = Vec<Step>> {
    vec(step(), steps / 2..=steps)
}
