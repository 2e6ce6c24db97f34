//! Answers of the coordinator, taken in where they still fit.

use giga_api::wire::{Budget, BudgetPeriod, Ceilings, Job, Period};
use giga_domain::Usd;

use crate::model::{Model, Page, Part, Tone};
use crate::msg::{Answer, Effect, Failure, Fetch, Got};
use crate::text::clean;

pub(super) fn got(model: &mut Model, got: Got) -> Vec<Effect> {
    model.link.answered();
    let fits = got.product == model.product;
    match got.answer {
        Answer::Job(job) => {
            let mut again = None;
            for page in pages(model, &job.id.clone()) {
                if page.log.complete && page.log.epoch.is_some_and(|epoch| epoch < job.lease_epoch) {
                    page.log.start_over();
                    again = (page.part == Part::Log).then(|| Fetch::Log {
                        id: job.id.clone(),
                        epoch: None,
                        offset: 0,
                        wait: false,
                    });
                }
                page.error = None;
                page.job = Some((*job).clone());
            }
            return again.map(Effect::Fetch).into_iter().collect();
        }
        Answer::Events { id, events } => {
            for page in pages(model, &id) {
                page.append_events(events.clone());
            }
        }
        Answer::Runs { id, runs } => {
            for page in pages(model, &id) {
                page.runs = Some(runs.clone());
            }
        }
        Answer::Explain { id, explain } => {
            for page in pages(model, &id) {
                page.explain = Some(explain.clone());
            }
        }
        Answer::Log { id, piece } => {
            let Some(page) = pages(model, &id).last() else { return Vec::new() };
            page.log.add(&piece);
            if page.part == Part::Log && !page.log.complete {
                let (epoch, offset) = (page.log.epoch, page.log.next_offset);
                // While there is more than one piece, nothing is waited for.
                let wait = offset >= page.log.total;
                return vec![Effect::Fetch(Fetch::Log { id, epoch, offset, wait })];
            }
        }
        Answer::Found { text, jobs } => match jobs.as_slice() {
            [] => model.say(Tone::Bad, format!("there is no job `{text}`; search with / in :jobs")),
            [one] => return super::open_job(model, &one.id),
            several => model.say(Tone::Bad, format!("`{text}` matches {}", choices(several))),
        },
        _ if !fits => {}
        Answer::Metrics(metrics) => {
            model.products.extend(metrics.products.iter().map(|product| product.product_id.clone()));
            model.metrics = Some(metrics);
        }
        Answer::Factories(factories) => model.factories = Some(factories),
        Answer::Alerts(alerts) => model.alerts = Some(alerts),
        Answer::Budgets(mut budgets) => {
            model.products.extend(budgets.iter().map(|budget| budget.product_id.clone()));
            // A product that nothing was ever set or spent for can be paused all the same.
            let silent = model.products.iter().filter(|product| {
                let meant = model.product.as_ref().is_none_or(|only| only == *product);
                meant && !budgets.iter().any(|budget| budget.product_id == **product)
            });
            let silent: Vec<Budget> = silent.map(|product| untouched(product)).collect();
            budgets.extend(silent);
            budgets.sort_by(|a, b| a.product_id.cmp(&b.product_id));
            model.budgets = Some(budgets);
        }
        Answer::Topics(topics) => model.topics = Some(topics),
        Answer::Column(column, jobs) => {
            model.board.columns.insert(column, jobs);
        }
        Answer::Jobs { generation, first: true, page } => model.jobs.head(page, generation),
        Answer::Jobs { generation, first: false, page } => model.jobs.more(page, generation),
        Answer::Rows { generation, asked, jobs } => model.jobs.rows(&asked, jobs, generation),
    }
    Vec::new()
}

pub(super) fn failed(model: &mut Model, fetch: Fetch, error: String, failure: Failure) {
    // At the floor and not at once: who says no is not asked in a circle.
    model.failed = true;
    if failure == Failure::Unreachable {
        model.link.unanswered(model.now, error);
        return;
    }
    model.link.answered();
    match (fetch, failure) {
        (Fetch::Job(id), failure) => {
            let mut is_old = false;
            for page in pages(model, &id) {
                // What is known of a job is not hidden behind a no that may not last.
                if failure == Failure::Missing || page.job.is_none() {
                    page.error = Some(error.clone());
                } else {
                    is_old = true;
                }
            }
            if is_old {
                model.say(Tone::Bad, error);
            }
        }
        // A job without a run has none.
        (Fetch::Log { id, .. }, Failure::Missing) => {
            for page in pages(model, &id) {
                page.log.loaded = true;
            }
        }
        _ => model.say(Tone::Bad, error),
    }
}

/// Each by its name and the end of its id, which `:job` takes too.
fn choices(jobs: &[Job]) -> String {
    const NAMED: usize = 3;
    let end = |id: &str| id.get(id.len().saturating_sub(6)..).unwrap_or(id).to_owned();
    let named: Vec<String> =
        jobs.iter().take(NAMED).map(|job| format!("{} (…{})", clean(&job.name), end(&job.id))).collect();
    let more = match jobs.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!("{}{more}", named.join(", "))
}

fn pages<'a>(model: &'a mut Model, id: &str) -> impl Iterator<Item = &'a mut crate::model::JobPage> {
    let id = id.to_owned();
    model.pages.iter_mut().filter_map(move |page| match page {
        Page::Job(page) if page.id == id => Some(&mut **page),
        _ => None,
    })
}

fn untouched(product: &str) -> Budget {
    let period = |period: &Period| BudgetPeriod {
        period: *period,
        since: None,
        until: None,
        spent_usd: Usd::ZERO,
        tokens: 0,
        ceiling_usd: None,
        left_usd: None,
    };
    Budget {
        product_id: product.to_owned(),
        rev: 0,
        ceilings: Ceilings::default(),
        job_usd: None,
        paused: None,
        reserved_usd: Usd::ZERO,
        left_usd: None,
        tightest: None,
        periods: Period::ALL.iter().map(period).collect(),
        warnings: Vec::new(),
    }
}
