//! The sentences. They name the cause, the factory and the time, and leave out whatever the reader cannot act on.
//!
//! Nothing is decided here. Lists are cut after a few names: a sentence is read at night on a small screen.

use std::time::Duration;

use giga_domain::budget::PauseCause;
use giga_domain::{CapabilitySet, Period, Timestamp};

use super::cause::{Case, Count, Prospect};
use super::quota;
use super::{Blocker, BlockerCode};
use crate::feasible::{self, Filter};
use crate::routable::{is_any_engine, listed, needed};
use crate::{FactoryView, Limit, Unroutable};

const NAMES_SHOWN: usize = 3;
const CAPABILITIES_SHOWN: usize = 8;

pub(super) fn summary(case: &Case<'_>) -> String {
    if let Some(unroutable) = &case.unroutable {
        return match unroutable {
            Unroutable::Capabilities(_) => format!("waiting: {unroutable}; {}", live_capabilities(case)),
            _ => format!("waiting: {unroutable}"),
        };
    }
    if let Some(&gate) = most_lasting(&case.gates) {
        return format!("waiting{}", gate_clause(gate, case));
    }
    if let Some((to, deadline)) = case.offer {
        return format!("on offer to {to}, which may take it until {}", moment(*deadline, case.now));
    }
    let retry = case.job.earlier.as_ref().map_or_else(String::new, |earlier| {
        format!(" (attempt {} of {}; the last one failed: {})", earlier.next, earlier.of, earlier.failure)
    });
    match &case.prospect {
        Prospect::Placed(factory) => {
            format!("would be placed on {factory} now{}{retry}", quota::moved_on(case, factory))
        }
        Prospect::Behind { ahead, uses_up } => {
            format!("waiting its turn: {}", overtaken(*uses_up, case, *ahead))
        }
        Prospect::NoSeat { ahead } if ahead.jobs == 0 && !ahead.at_least => format!(
            "next in line: would be placed on {} as soon as a seat is free",
            names(&case.lacking_only(Filter::Seats), "or")
        ),
        Prospect::NoSeat { ahead } => format!(
            "waiting for a seat on {}: {}",
            names(&case.lacking_only(Filter::Seats), "or"),
            ahead_of_it(*ahead)
        ),
        Prospect::Closed => match factory_obstacles(case).into_iter().next() {
            Some((_, message)) => format!("waiting: {message}"),
            None => "waiting for the next plan".to_owned(),
        },
    }
}

pub(super) fn blockers(case: &Case<'_>) -> Vec<Blocker> {
    let mut blockers = Vec::new();
    if let Some(unroutable) = &case.unroutable {
        let code = match unroutable {
            Unroutable::NoFactories => BlockerCode::NoFactories,
            Unroutable::Capabilities(_) | Unroutable::Engines(_) | Unroutable::NoSingleFactory { .. } => {
                Filter::Capabilities.into()
            }
            Unroutable::Product(_) => Filter::Product.into(),
            Unroutable::Repo { .. } => Filter::Repo.into(),
        };
        blockers.push(Blocker::new(code, unroutable.to_string()));
    }
    for &gate in &case.gates {
        blockers.push(Blocker::new(gate, gate_message(gate, case)));
    }
    if let Some((to, deadline)) = case.offer {
        let message = format!("on offer to {to} until {}", moment(*deadline, case.now));
        blockers.push(Blocker::new(Filter::Offered, message));
    }
    let feasible_somewhere = case.factories.iter().any(|s| s.failures.is_empty());
    if case.unroutable.is_none() && !feasible_somewhere {
        let obstacles = factory_obstacles(case).into_iter();
        blockers.extend(obstacles.map(|(filter, message)| Blocker::new(filter, message)));
    }
    match &case.prospect {
        Prospect::Behind { ahead, uses_up } => {
            blockers.push(Blocker::new(BlockerCode::Order, overtaken(*uses_up, case, *ahead)));
        }
        Prospect::NoSeat { ahead } if ahead.jobs > 0 || ahead.at_least => {
            blockers.push(Blocker::new(BlockerCode::Order, ahead_of_it(*ahead)));
        }
        _ => {}
    }
    blockers
}

/// What keeps the factories from taking it: each obstacle that is the only one somewhere, else all of the closest.
pub(super) fn factory_obstacles(case: &Case<'_>) -> Vec<(Filter, String)> {
    let single = case.single_obstacles();
    if !single.is_empty() {
        return single.into_iter().map(|filter| (filter, obstacle(filter, case))).collect();
    }
    let Some(closest) = case.factories.first() else { return Vec::new() };
    let details: Vec<String> = closest.failures.iter().map(|f| detail(*f, case, closest.factory)).collect();
    let message =
        format!("no factory fits; {} comes closest: it {}", closest.factory.id, listed(&details, "and"));
    closest.failures.first().map(|filter| (*filter, message)).into_iter().collect()
}

/// The factories where only `filter` is in the way, in one clause.
fn obstacle(filter: Filter, case: &Case<'_>) -> String {
    let factories = case.lacking_only(filter);
    let who = names(&factories, "and");
    let many = factories.len() > 1;
    let (is, it) = if many { ("are", "them") } else { ("is", "it") };
    match filter {
        Filter::Seats if many => format!("every seat of {who} is taken"),
        Filter::InUse if many => {
            let each: Vec<String> =
                factories.iter().map(|f| format!("{} {}", f.id, in_use(case.job, f))).collect();
            listed(&each, "and")
        }
        Filter::Draining => format!("{who} could run it but {is} draining"),
        Filter::Stale => format!("{who} could run it but {is} offline"),
        Filter::Down => match factories.as_slice() {
            [FactoryView { health_reason: Some(reason), .. }] => {
                format!("{who} could run it but is down: {reason}")
            }
            _ => format!("{who} could run it but {is} reported as down"),
        },
        Filter::Product => {
            format!("{who} could run it but no token of {it} admits the product `{}`", case.job.product)
        }
        Filter::Excluded => match excluded_until(case, &factories) {
            Some(until) => {
                format!("{who} could run it but did not pick it up and {is} left out until {until}")
            }
            None => format!("{who} could run it but did not pick it up in time"),
        },
        Filter::Quota => quota::closed_on(case, &factories),
        Filter::Capabilities if many => lacked_by_many(&factories, case),
        Filter::Repo if many => {
            let repo = factories.iter().find_map(|factory| feasible::unreached_repo(case.job, factory));
            let repo = repo.unwrap_or_default();
            format!("{who} have no repository `{repo}` and may not clone it")
        }
        _ => factories.first().map(|f| format!("{who} {}", detail(filter, case, f))).unwrap_or_default(),
    }
}

fn lacked_by_many(factories: &[&FactoryView], case: &Case<'_>) -> String {
    let lacked: Vec<String> = factories.iter().map(|factory| needed(case.job, factory)).collect();
    match lacked.as_slice() {
        [first, rest @ ..] if rest.iter().all(|other| other == first) => {
            format!("{} lack {first}", names(factories, "and"))
        }
        [first, ..] => {
            let all = names(factories, "and");
            format!("{all} each lack a capability, {} for one {first}", factories[0].id)
        }
        [] => String::new(),
    }
}

/// What running jobs use of what the job needs; completes "the factory …".
fn in_use(job: &crate::JobView, factory: &FactoryView) -> String {
    let needs: Vec<String> = factory
        .short_of(job)
        .map(|(capability, left)| {
            let all = factory.capabilities.units(capability).unwrap_or_default();
            match (all, left) {
                (1, 0) => format!("has its only {capability} in use"),
                (_, 0) => format!("has all {all} {capability} in use"),
                _ => format!("has {left} of {all} {capability} left"),
            }
        })
        .collect();
    listed(&needs, "and")
}

/// Why this factory cannot take it; completes "the factory …".
pub(super) fn detail(filter: Filter, case: &Case<'_>, factory: &FactoryView) -> String {
    match filter {
        Filter::Draining => "is draining".to_owned(),
        Filter::Stale => "is offline".to_owned(),
        Filter::Down => match &factory.health_reason {
            Some(reason) => format!("reports itself as down ({reason})"),
            None => "reports itself as down".to_owned(),
        },
        Filter::Product => format!("has a token that does not admit the product `{}`", case.job.product),
        Filter::Capabilities => format!("lacks {}", needed(case.job, factory)),
        Filter::Repo => {
            format!(
                "has no repository `{}` and may not clone it",
                feasible::unreached_repo(case.job, factory).unwrap_or_default()
            )
        }
        Filter::Quota => format!("cannot run it: {}", quota::closed_here(case, factory)),
        Filter::Seats => match factory.seat_limit {
            0 => "has no seats".to_owned(),
            1 => "has its only seat taken".to_owned(),
            limit => format!("has all {limit} seats taken"),
        },
        Filter::InUse => in_use(case.job, factory),
        Filter::Offered => match case.offer {
            Some((to, deadline)) => format!("must leave it to {to} until {}", moment(*deadline, case.now)),
            None => "must leave it to another".to_owned(),
        },
        Filter::Excluded => match excluded_until(case, &[factory]) {
            Some(until) => format!("did not pick it up and is left out until {until}"),
            None => "did not pick it up in time".to_owned(),
        },
        Filter::Unfit => match &case.job.earlier {
            Some(earlier) => format!("had it and could not run it ({})", earlier.failure),
            None => "had it and could not run it".to_owned(),
        },
        Filter::NotReady | Filter::Paused | Filter::Budget | Filter::Concurrency => {
            gate_message(filter, case)
        }
    }
}

/// Of several gates the one that will not open by itself.
fn most_lasting(gates: &[Filter]) -> Option<&Filter> {
    let waits_for = |filter: &&Filter| match filter {
        Filter::Paused => 0,
        Filter::Budget => 1,
        Filter::NotReady => 2,
        _ => 3,
    };
    gates.iter().min_by_key(waits_for)
}

fn gate_clause(gate: Filter, case: &Case<'_>) -> String {
    match gate {
        Filter::NotReady => match &case.job.earlier {
            Some(_) => format!(" to be retried: {}", gate_message(gate, case)),
            None => format!(" until {}: scheduled for then", moment(case.job.ready_at, case.now)),
        },
        _ => format!(": {}", gate_message(gate, case)),
    }
}

fn gate_message(gate: Filter, case: &Case<'_>) -> String {
    match gate {
        Filter::NotReady => match &case.job.earlier {
            Some(earlier) => format!(
                "attempt {} of {} at {}; the last one failed: {}",
                earlier.next,
                earlier.of,
                moment(case.job.ready_at, case.now),
                earlier.failure
            ),
            None => format!("the job is not ready until {}", moment(case.job.ready_at, case.now)),
        },
        Filter::Paused => paused(case),
        Filter::Budget => short_of_budget(case),
        Filter::Concurrency => match &case.job.concurrency {
            Some(concurrency) => format!(
                "the concurrency key `{}` is at its limit: {} held, {} allowed",
                concurrency.key,
                feasible::running_with_key(case.job, case.snapshot),
                concurrency.limit
            ),
            None => String::new(),
        },
        other => other.to_string(),
    }
}

fn paused(case: &Case<'_>) -> String {
    let product = &case.job.product;
    match &case.product.pause {
        Some(PauseCause::Limit { .. }) => {
            let reached = case.product.limits.iter().filter(|c| c.spent >= c.usd);
            let reached: Vec<String> = reached
                .map(|c| {
                    let (limit, spent) = (c.usd.up_to_the_cent(), c.spent.up_to_the_cent());
                    format!("{limit} {}: {spent} spent", per(c.period))
                })
                .collect();
            format!("the budget of `{product}` has reached its limit ({})", reached.join("; "))
        }
        Some(PauseCause::Operator { reason: Some(reason), .. }) => {
            format!("the product `{product}` is paused: {reason}")
        }
        Some(PauseCause::Operator { .. }) | None => format!("the product `{product}` is paused"),
    }
}

fn short_of_budget(case: &Case<'_>) -> String {
    let product = &case.job.product;
    let needed = case.product.reserve_for(case.job);
    if let Some(limit) = too_low(case) {
        return format!(
            "the job may cost up to {} and the limit of `{product}` is {} {}: it never fits",
            needed.up_to_the_cent(),
            limit.usd.up_to_the_cent(),
            per(limit.period)
        );
    }
    let tightest = case.product.short_for(case.job).min_by_key(|c| c.usd.less(c.used()));
    let period = tightest.map(|c| format!(" {}", for_the(c.period))).unwrap_or_default();
    match case.product.budget_left {
        Some(left) if !left.is_zero() => format!(
            "the budget of `{product}` has {} left{period} and the job may cost up to {}",
            left.up_to_the_cent(),
            needed.up_to_the_cent()
        ),
        _ => match tightest.filter(|c| !c.reserved.is_zero()) {
            Some(limit) => format!(
                "the budget of `{product}` is exhausted{period}: {} of {} spent, {} reserved for running jobs",
                limit.spent.up_to_the_cent(),
                limit.usd.up_to_the_cent(),
                limit.reserved.up_to_the_cent()
            ),
            None => format!("the budget of `{product}` is exhausted{period}"),
        },
    }
}

/// A limit that the job would not fit under even if nothing were spent.
pub(super) fn too_low<'a>(case: &'a Case<'_>) -> Option<&'a Limit> {
    let needed = case.product.reserve_for(case.job);
    let too_low = case.product.limits.iter().filter(|limit| limit.usd < needed);
    too_low.min_by_key(|limit| limit.usd)
}

fn per(period: Period) -> &'static str {
    match period {
        Period::Day => "a day",
        Period::Week => "a week",
        Period::Month => "a month",
        Period::Total => "in total",
    }
}

fn for_the(period: Period) -> &'static str {
    match period {
        Period::Day => "for the day",
        Period::Week => "for the week",
        Period::Month => "for the month",
        Period::Total => "in total",
    }
}

fn ahead_of_it(Count { jobs, at_least }: Count) -> String {
    match (jobs, at_least) {
        (0, true) => "many jobs, most of them for other factories, are ahead of it".to_owned(),
        (1, false) => "1 job is ahead of it".to_owned(),
        (jobs, false) => format!("{jobs} jobs are ahead of it"),
        (jobs, true) => format!("at least {jobs} jobs are ahead of it"),
    }
}

/// What the jobs ahead use up before its turn comes.
fn overtaken(uses_up: Filter, case: &Case<'_>, ahead: Count) -> String {
    match (uses_up, &case.job.concurrency) {
        (Filter::Concurrency, Some(concurrency)) => {
            format!("what is ahead of it takes the concurrency key `{}`", concurrency.key)
        }
        (Filter::Budget, _) => {
            format!("what is ahead of it reserves the rest of the budget of `{}`", case.job.product)
        }
        _ => format!("{} and will take the free seats", ahead_of_it(ahead)),
    }
}

/// `2 live factories advertise a, b, c`.
fn live_capabilities(case: &Case<'_>) -> String {
    let live: Vec<&FactoryView> = case.snapshot.factories.iter().filter(|f| f.live).collect();
    let advertised = live.iter().flat_map(|f| f.capabilities.iter()).filter(|c| !is_any_engine(c));
    let all: CapabilitySet = advertised.cloned().collect();
    let mut shown: Vec<&str> =
        all.iter().take(CAPABILITIES_SHOWN).map(giga_domain::Capability::as_str).collect();
    let more = format!("and {} more", all.len().saturating_sub(CAPABILITIES_SHOWN));
    if all.len() > CAPABILITIES_SHOWN {
        shown.push(&more);
    }
    match (live.len(), shown.is_empty()) {
        (0, _) => "no factory is live".to_owned(),
        (1, false) => format!("the 1 live factory advertises {}", shown.join(", ")),
        (1, true) => "the 1 live factory advertises nothing".to_owned(),
        (n, false) => format!("{n} live factories advertise {}", shown.join(", ")),
        (n, true) => format!("{n} live factories advertise nothing"),
    }
}

/// `mac-1, mac-2 or 3 others`.
pub(super) fn names(factories: &[&FactoryView], joint: &str) -> String {
    let mut names: Vec<String> = factories.iter().map(|f| f.id.to_string()).collect();
    names.sort_unstable();
    if names.len() > NAMES_SHOWN + 1 {
        let others = names.len() - NAMES_SHOWN;
        names.truncate(NAMES_SHOWN);
        names.push(format!("{others} others"));
    }
    listed(&names, joint)
}

/// The first moment at which one of these is asked again.
pub(super) fn excluded_until(case: &Case<'_>, factories: &[&FactoryView]) -> Option<String> {
    let left_out = case.job.excluded.iter().filter(|(id, _)| factories.iter().any(|f| f.id == *id));
    let until = left_out.map(|(_, until)| *until).filter(|until| *until > case.now).min()?;
    Some(moment(until, case.now))
}

/// Both the time of day and how long that is.
pub(super) fn moment(at: Timestamp, now: Timestamp) -> String {
    format!("{at} (in {})", span(at.since(now)))
}

fn span(duration: Duration) -> String {
    let seconds = duration.as_millis().div_ceil(1000);
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, minutes) => format!("{minutes} min {} s", seconds % 60),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (days, hours, _) => format!("{days} d {hours} h"),
    }
}
