//! The smallest change that would place the job, in order, with the command that makes it where there is one.
//!
//! Advice is never given for what is not in the way, and a command is never shown that does only half of what the
//! sentence says.

use giga_domain::budget::PauseCause;
use giga_domain::factory::canonical_url;
use giga_domain::job::Concurrency;
use giga_domain::{Capability, FactoryId, Timestamp, Usd};

use super::cause::{Case, Prospect};
use super::words::{excluded_until, moment, names, too_low};
use super::{Fix, Remedy, quota};
use crate::feasible::{self, Filter};
use crate::routable::{is_any_engine, listed, needed, quoted};
use crate::{FactoryView, Limit, MissingCapability, Unroutable};

pub(super) fn remedies(case: &Case<'_>) -> Vec<Remedy> {
    let mut remedies = Vec::new();
    if let Some(unroutable) = &case.unroutable {
        remedies.extend(routes(unroutable, case));
    }
    remedies.extend(case.gates.iter().flat_map(|gate| open_gate(*gate, case)));
    if let Some((to, deadline)) = case.offer {
        let message =
            format!("wait until {}: {to} takes it, or it is planned again", moment(*deadline, case.now));
        remedies.push(Remedy::advice(message));
    }
    let feasible_somewhere = case.factories.iter().any(|s| s.failures.is_empty());
    if case.unroutable.is_none() && !feasible_somewhere {
        remedies.extend(open_factories(case));
    }
    if let Prospect::Behind { uses_up, .. } = &case.prospect {
        remedies.push(match uses_up {
            Filter::Concurrency | Filter::Budget => Remedy::advice("wait for the jobs ahead of it to end"),
            _ => {
                let fitting: Vec<&FactoryView> =
                    case.factories.iter().filter(|s| s.failures.is_empty()).map(|s| s.factory).collect();
                more_seats(&fitting)
            }
        });
    }
    remedies
}

fn routes(unroutable: &Unroutable, case: &Case<'_>) -> Vec<Remedy> {
    match unroutable {
        Unroutable::NoFactories => vec![
            Remedy::command(
                "start a factory on this machine, together with the coordinator",
                "giga up --factories 1",
            ),
            Remedy::command(
                "or enroll another machine and start `giga factory run` there",
                "giga factory enroll NAME",
            ),
        ],
        Unroutable::Capabilities(missing) => {
            let mut remedies: Vec<Remedy> = missing.iter().filter_map(|m| did_you_mean(m, case)).collect();
            let names: Vec<&Capability> = missing.iter().map(|m| &m.capability).collect();
            if names.iter().any(|name| is_any_engine(name)) {
                remedies.push(Remedy::command(
                    "install an engine such as claude or codex on a factory and start it again; this says what is missing there",
                    "giga doctor",
                ));
                remedies.push(Remedy::advice("or make it a script: `engine: shell`, with `script`"));
            }
            let names: Vec<&Capability> = names.into_iter().filter(|name| !is_any_engine(name)).collect();
            if !names.is_empty() {
                remedies.push(Remedy::command(
                    format!("start a factory that advertises {} and whose token allows it", quoted(&names)),
                    "giga factory enroll NAME",
                ));
            }
            remedies
        }
        Unroutable::Engines(choice) => vec![Remedy::command(
            format!("install one of {choice} on a factory and sign in; this says what is missing there"),
            "giga doctor",
        )],
        Unroutable::Product(product) => {
            vec![Remedy::command(
                format!("enroll a factory whose token admits the product `{product}`"),
                "giga factory enroll NAME",
            )]
        }
        Unroutable::NoSingleFactory { closest, lacks } => {
            let mut remedies =
                vec![Remedy::advice(format!("give {closest} {}: it has the rest", listed(lacks, "and")))];
            remedies.extend(only(Filter::Product, case));
            remedies
        }
        Unroutable::Repo { repo, did_you_mean } => {
            let mut remedies = Vec::new();
            if let Some(near) = did_you_mean {
                remedies.push(Remedy::advice(format!("did you mean the repository `{near}`?")));
            }
            remedies.push(match case.factories.iter().find(|s| s.failures.contains(&Filter::Repo)) {
                Some(s) => let_clone(repo, &s.factory.id),
                None => Remedy::advice(format!("check out `{repo}` on a factory")),
            });
            remedies
        }
    }
}

fn did_you_mean(missing: &MissingCapability, case: &Case<'_>) -> Option<Remedy> {
    let near = missing.did_you_mean.as_ref()?;
    let having: Vec<&FactoryView> =
        case.snapshot.factories.iter().filter(|f| f.capabilities.contains(near)).collect();
    let verb = if having.len() == 1 { "advertises" } else { "advertise" };
    Some(Remedy::advice(format!("did you mean `{near}`? {} {verb} it", names(&having, "and"))))
}

fn open_gate(gate: Filter, case: &Case<'_>) -> Vec<Remedy> {
    let product = &case.job.product;
    match gate {
        Filter::NotReady => {
            vec![Remedy::advice(format!("wait until {}", moment(case.job.ready_at, case.now)))]
        }
        Filter::Paused if matches!(case.product.pause, Some(PauseCause::Limit { .. })) => more_budget(case),
        Filter::Paused => {
            let message = format!("resume the product `{product}`");
            vec![Remedy::fix(message, Fix::ResumeBudget(product.clone()))]
        }
        // One that is paused by its limit was answered above.
        Filter::Budget if matches!(case.product.pause, Some(PauseCause::Limit { .. })) => Vec::new(),
        Filter::Budget => more_budget(case),
        Filter::Concurrency => {
            let held = feasible::running_with_key(case.job, case.snapshot);
            let wait = |concurrency: &Concurrency| {
                Remedy::advice(format!(
                    "wait for a job with the key `{}` to end, or submit it with a limit above {held}",
                    concurrency.key
                ))
            };
            case.job.concurrency.iter().map(wait).collect()
        }
        _ => Vec::new(),
    }
}

/// Limits high enough for the job beside all that is spent and reserved; or patience, where that helps.
fn more_budget(case: &Case<'_>) -> Vec<Remedy> {
    let product = &case.job.product;
    let needed = case.product.reserve_for(case.job).max(Usd::LEAST);
    let short: Vec<&Limit> = case.product.short_for(case.job).collect();
    let missing = |limit: &&Limit| (limit.used() + needed).less(limit.usd);
    let Some(most) = short.iter().map(missing).max() else {
        let left = case.product.budget_left.unwrap_or_default();
        return vec![Remedy::advice(format!(
            "+{} of budget for `{product}`",
            needed.less(left).up_to_the_cent()
        ))];
    };
    let options: Vec<String> = short
        .iter()
        .map(|c| format!("--{} {:#}", c.period.as_str(), (c.used() + needed).up_to_the_cent()))
        .collect();
    // No fix: a call sets all limits at once, and those that are not in the way may be others by now. The command reads
    // them first, and writes only if nobody wrote meanwhile.
    let mut remedies = vec![Remedy::command(
        format!("+{} of budget for `{product}`", most.up_to_the_cent()),
        format!("giga budget set {product} {}", options.join(" ")),
    )];
    if too_low(case).is_some() {
        remedies.push(Remedy::advice("or submit it with a lower cap (`budget.usd`)"));
        return remedies;
    }
    let fits_then = |c: &&Limit| c.reserved + needed <= c.usd;
    let ends: Option<Vec<Timestamp>> = short.iter().map(|c| c.ends_at).collect();
    if let Some(reopens) = ends.and_then(|ends| ends.into_iter().max())
        && short.iter().all(fits_then)
    {
        remedies.push(Remedy::advice(format!(
            "or wait until {}, when it opens again",
            moment(reopens, case.now)
        )));
    }
    if short.iter().any(|c| !c.reserved.is_zero()) && case.product.pause.is_none() {
        remedies.push(Remedy::advice("or wait for running jobs to cost less than is reserved for them"));
    }
    remedies
}

/// Each obstacle that is the only one somewhere is one remedy; else all those of the closest factory are needed.
fn open_factories(case: &Case<'_>) -> Vec<Remedy> {
    let single = case.single_obstacles();
    if !single.is_empty() {
        return single.into_iter().flat_map(|filter| only(filter, case)).collect();
    }
    let Some(closest) = case.factories.first() else { return Vec::new() };
    let mut remedies: Vec<Remedy> =
        closest.failures.iter().filter_map(|filter| open_factory(*filter, closest.factory, case)).collect();
    for remedy in remedies.iter_mut().skip(1) {
        remedy.message = format!("and also {}", remedy.message);
    }
    remedies
}

/// What to do where `filter` is all that is in the way; one factory is enough.
fn only(filter: Filter, case: &Case<'_>) -> Vec<Remedy> {
    let factories = case.lacking_only(filter);
    match factories.first() {
        Some(_) if filter == Filter::Seats => vec![more_seats(&factories)],
        Some(_) if filter == Filter::Quota => quota::remedies(case, &factories),
        Some(factory) => open_factory(filter, factory, case).into_iter().collect(),
        None => Vec::new(),
    }
}

fn open_factory(filter: Filter, factory: &FactoryView, case: &Case<'_>) -> Option<Remedy> {
    let id = &factory.id;
    Some(match filter {
        Filter::Draining => Remedy::fix(format!("end the drain of {id}"), Fix::EndDrain(id.clone())),
        Filter::Stale => {
            Remedy::command(format!("start the agent on {id} again, on that machine"), "giga factory run")
        }
        Filter::Down => {
            Remedy::command(format!("find out on {id} itself why it reports itself as down"), "giga doctor")
        }
        Filter::Product => Remedy::command(
            format!("enroll {id} again with a token that admits the product `{}`", case.job.product),
            "giga factory enroll NAME",
        ),
        Filter::Capabilities => Remedy::advice(format!("give {id} {}", needed(case.job, factory))),
        Filter::Repo => let_clone(feasible::unreached_repo(case.job, factory).unwrap_or_default(), id),
        Filter::Unfit => {
            let message = format!("once {id} has what it lacked, let it try again");
            Remedy::fix(message, Fix::Requeue(case.job.id))
        }
        Filter::Quota => quota::remedies(case, &[factory]).pop()?,
        Filter::Seats => more_seats(&[factory]),
        Filter::InUse => {
            let (capability, _) = factory.short_of(case.job).next()?;
            Remedy::advice(format!(
                "wait for a job on {id} that uses {capability} to end, or add a factory that has it"
            ))
        }
        Filter::Excluded => Remedy::advice(format!(
            "wait until {}, when {id} is asked again",
            excluded_until(case, &[factory])?
        )),
        _ => return None,
    })
}

/// A URL can be allowed; a name says nothing about where to clone it from.
fn let_clone(repo: &str, factory: &FactoryId) -> Remedy {
    Remedy::advice(match canonical_url(repo) {
        Some(_) => format!(
            "allow `{repo}` on {factory} (`--git-allow`), or put a checkout of it among its repositories"
        ),
        None => {
            format!("put a checkout of `{repo}` among the repositories of {factory}, or name it by its URL")
        }
    })
}

fn more_seats(factories: &[&FactoryView]) -> Remedy {
    Remedy::advice(format!(
        "wait for a seat, raise seatLimit of {}, or add a factory like it",
        names(factories, "or")
    ))
}
