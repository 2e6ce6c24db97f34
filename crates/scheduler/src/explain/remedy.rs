//! The smallest change that would place the job, in order, with the command that makes it where there is one.
//!
//! Advice is never given for what is not in the way, and a command is never shown that does only half of what the
//! sentence says.

use giga_domain::Capability;

use super::Remedy;
use super::cause::{Case, Prospect};
use super::words::{dollars, excluded_until, moment, names};
use crate::feasible::{self, Filter};
use crate::routable::quoted;
use crate::{FactoryView, MissingCapability, Unroutable};

pub(super) fn remedies(case: &Case<'_>) -> Vec<Remedy> {
    let mut remedies = Vec::new();
    if let Some(unroutable) = &case.unroutable {
        remedies.extend(routes(unroutable, case));
    }
    remedies.extend(case.gates.iter().filter_map(|gate| open_gate(*gate, case)));
    if let Some((to, deadline)) = case.offer {
        let message =
            format!("wait until {}: {to} takes it, or it is planned anew", moment(*deadline, case.now));
        remedies.push(just(message));
    }
    let feasible_somewhere = case.factories.iter().any(|s| s.failures.is_empty());
    if case.unroutable.is_none() && !feasible_somewhere {
        remedies.extend(open_factories(case));
    }
    if let Prospect::Behind { uses_up, .. } = &case.prospect {
        remedies.push(match uses_up {
            Filter::Concurrency | Filter::Budget => just("wait for the jobs ahead of it to end".to_owned()),
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
            run("start a factory on this machine, together with the coordinator", "giga up --factories 1"),
            run("or enrol another machine and start `giga factory run` there", "giga factory enroll NAME"),
        ],
        Unroutable::Capabilities(missing) => {
            let mut remedies: Vec<Remedy> = missing.iter().filter_map(|m| did_you_mean(m, case)).collect();
            let names: Vec<&Capability> = missing.iter().map(|m| &m.capability).collect();
            remedies.push(run(
                &format!("start a factory that advertises {} and whose token allows it", quoted(&names)),
                "giga factory enroll NAME",
            ));
            remedies
        }
        Unroutable::Product(product) => {
            vec![run(
                &format!("enrol a factory whose token admits the product `{product}`"),
                "giga factory enroll NAME",
            )]
        }
        Unroutable::NoSingleFactory { closest, lacks } => {
            let mut remedies = vec![just(format!("give {closest} {}: it has the rest", quoted(lacks)))];
            remedies.extend(only(Filter::Product, case));
            remedies
        }
        Unroutable::Repo { repo, did_you_mean } => {
            let mut remedies = Vec::new();
            if let Some(near) = did_you_mean {
                remedies.push(just(format!("did you mean the repository `{near}`?")));
            }
            remedies.push(match case.factories.iter().find(|s| s.failures.contains(&Filter::Repo)) {
                Some(s) => just(format!("check out `{repo}` on {}, or let it clone", s.factory.id)),
                None => just(format!("check out `{repo}` on a factory")),
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
    Some(just(format!("did you mean `{near}`? {} {verb} it", names(&having, "and"))))
}

fn open_gate(gate: Filter, case: &Case<'_>) -> Option<Remedy> {
    let product = &case.job.product;
    Some(match gate {
        Filter::NotReady => just(format!("wait until {}", moment(case.job.ready_at, case.now))),
        Filter::Paused => {
            run(&format!("resume the product `{product}`"), &format!("giga budget resume {product}"))
        }
        Filter::Budget => {
            let left = case.product.budget_left_usd_micros.unwrap_or(0);
            match case.job.cost_cap_usd_micros {
                Some(cap) if cap > left => just(format!(
                    "raise the budget of `{product}` by {}, or wait for a reservation to be settled",
                    dollars(cap - left)
                )),
                _ => just(format!("raise the budget of `{product}` above what it has spent and reserved")),
            }
        }
        Filter::Concurrency => {
            let concurrency = case.job.concurrency.as_ref()?;
            let held = feasible::running_with_key(case.job, case.snapshot);
            just(format!(
                "wait for a job with the key `{}` to end, or submit it with a limit above {held}",
                concurrency.key
            ))
        }
        _ => return None,
    })
}

/// Each obstacle that is the only one somewhere is one remedy; else all those of the closest factory are needed.
fn open_factories(case: &Case<'_>) -> Vec<Remedy> {
    let single = case.single_obstacles();
    if !single.is_empty() {
        return single.into_iter().filter_map(|filter| only(filter, case)).collect();
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
fn only(filter: Filter, case: &Case<'_>) -> Option<Remedy> {
    let factories = case.lacking_only(filter);
    match filter {
        Filter::Seats if !factories.is_empty() => Some(more_seats(&factories)),
        _ => open_factory(filter, factories.first()?, case),
    }
}

fn open_factory(filter: Filter, factory: &FactoryView, case: &Case<'_>) -> Option<Remedy> {
    let id = &factory.id;
    Some(match filter {
        Filter::Draining => {
            run(&format!("end the drain of {id}"), &format!("giga factory drain {id} --undo"))
        }
        Filter::Stale => run(&format!("start the agent on {id} again, on that machine"), "giga factory run"),
        Filter::Down => run(&format!("find out on {id} itself why it reports itself as down"), "giga doctor"),
        Filter::Product => run(
            &format!("enrol {id} again with a token that admits the product `{}`", case.job.product),
            "giga factory enroll NAME",
        ),
        Filter::Capabilities => just(format!("give {id} {}", quoted(&feasible::lacking(case.job, factory)))),
        Filter::Repo => just(format!(
            "check out `{}` on {id}, or let it clone",
            case.job.repo.as_deref().unwrap_or_default()
        )),
        Filter::Seats => more_seats(&[factory]),
        Filter::Excluded => {
            just(format!("wait until {}, when {id} is asked again", excluded_until(case, &[factory])?))
        }
        _ => return None,
    })
}

fn more_seats(factories: &[&FactoryView]) -> Remedy {
    just(format!("wait for a seat, raise seatLimit of {}, or add a factory like it", names(factories, "or")))
}

fn just(message: String) -> Remedy {
    Remedy { message, command: None }
}

fn run(message: &str, command: &str) -> Remedy {
    Remedy { message: message.to_owned(), command: Some(command.to_owned()) }
}
