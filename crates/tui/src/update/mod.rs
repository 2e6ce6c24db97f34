//! What becomes of the model when something happens, and what has to be done for it. Nothing here waits, reads a
//! clock or draws.

mod act;
mod answers;
mod jump;
mod keys;
mod prompt;

use std::time::Duration;

use giga_api::wire::Event;

use crate::model::{Column, Model, Page, Part, Tab, Tone};
use crate::msg::{Effect, Fetch, Msg};

pub(crate) use act::{fits_stage, meant};
pub(crate) use jump::completion;

/// What is asked for anew without any news, so that nothing is silently old.
const FLOOR: Duration = Duration::from_secs(10);
/// Rows that are asked for by id at once.
const MOST_ROWS: usize = 100;

pub fn update(model: &mut Model, msg: Msg) -> Vec<Effect> {
    let mut effects = match msg {
        Msg::Key(key) => keys::key(model, key),
        Msg::Paste(text) => prompt::paste(model, &text),
        Msg::Resize(columns, rows) => {
            model.size = (columns, rows);
            Vec::new()
        }
        Msg::Tick(now) => tick(model, now),
        Msg::Open => {
            // What became of an action says more than that.
            if model.link.feed_back() && model.note.is_none() {
                model.say(Tone::Good, "connected again");
            }
            everything(model)
        }
        Msg::Lost(reason) => {
            model.link.feed_lost(model.now, reason);
            Vec::new()
        }
        Msg::News(event) => news(model, &event),
        Msg::Got(got) => answers::got(model, *got),
        Msg::Failed { fetch, error, failure } => {
            answers::failed(model, fetch, error, failure);
            Vec::new()
        }
        Msg::Acted { outcome, .. } => {
            match outcome {
                Ok(said) => model.say(Tone::Good, said),
                Err(why) => model.say(Tone::Bad, why),
            }
            everything(model)
        }
    };
    settle(model);
    effects.extend(next_page(model));
    effects
}

/// Everything that is in sight, the header included.
pub fn everything(model: &mut Model) -> Vec<Effect> {
    model.asked_at = model.now;
    try_again(model);
    let mut effects =
        vec![Effect::Fetch(Fetch::Metrics), Effect::Fetch(Fetch::Alerts), Effect::Fetch(Fetch::Factories)];
    effects.extend(in_front(model));
    effects
}

/// What failed may be asked for again; whether anything had.
fn try_again(model: &mut Model) -> bool {
    let failed = std::mem::take(&mut model.failed);
    if failed {
        model.jobs.loading = false;
    }
    failed
}

/// What the tab or page in front shows beside that.
fn in_front(model: &Model) -> Vec<Effect> {
    let fetches = match (model.page(), model.tab) {
        (Some(Page::Job(page)), _) => {
            let id = page.id.clone();
            // The runs always: what the job cost so far is what they cost.
            let mut fetches = vec![
                Fetch::Job(id.clone()),
                Fetch::Events { id: id.clone(), after: page.last_seq() },
                Fetch::Runs(id.clone()),
            ];
            fetches.extend(match page.part {
                Part::Events | Part::Runs => None,
                Part::Explain => Some(Fetch::Explain(id)),
                Part::Log if page.log.complete => None,
                Part::Log => Some(Fetch::Log {
                    id,
                    epoch: page.log.epoch,
                    offset: page.log.next_offset,
                    wait: page.log.loaded,
                }),
            });
            fetches
        }
        // For the names of what runs.
        (Some(Page::Factory { .. }), _) | (None, Tab::Factories) => {
            vec![Fetch::Factories, Fetch::Column(Column::Running)]
        }
        (None, Tab::Board) => Column::ALL.map(Fetch::Column).into(),
        (None, Tab::Alerts) => vec![Fetch::Alerts],
        (None, Tab::Jobs) => vec![head(model)],
        (None, Tab::Budgets) => vec![Fetch::Budgets],
        (None, Tab::Topics) => vec![Fetch::Topics],
    };
    fetches.into_iter().map(Effect::Fetch).collect()
}

fn head(model: &Model) -> Fetch {
    let jobs = &model.jobs;
    let name = jobs.list.filter.clone();
    Fetch::Jobs { generation: jobs.generation, group: jobs.group, name, cursor: None }
}

fn tick(model: &mut Model, now: giga_domain::Timestamp) -> Vec<Effect> {
    model.now = now;
    if model.link.feed_is_lost() {
        return Vec::new();
    }
    let mut effects = Vec::new();
    let jobs = &mut model.jobs;
    if model.tab == Tab::Jobs && model.pages.is_empty() && !jobs.touched.is_empty() {
        let ids: Vec<String> = jobs.touched.iter().take(MOST_ROWS).cloned().collect();
        jobs.touched.retain(|id| !ids.contains(id));
        let name = jobs.list.filter.clone();
        effects.push(Effect::Fetch(Fetch::Rows {
            generation: jobs.generation,
            group: jobs.group,
            name,
            ids,
        }));
    }
    if now.since(model.asked_at) >= FLOOR {
        model.asked_at = now;
        effects.extend([Fetch::Metrics, Fetch::Alerts, Fetch::Factories].map(Effect::Fetch));
        let failed = try_again(model);
        // These change without a word in the feed: a lease is renewed, a verdict is another one.
        let silent = match (model.page(), model.tab) {
            (Some(Page::Job(_)), _) | (None, Tab::Topics | Tab::Budgets) => true,
            _ => failed || model.link.lost().is_some(),
        };
        if silent {
            effects.extend(in_front(model));
        }
    }
    effects
}

fn news(model: &mut Model, event: &Event) -> Vec<Effect> {
    model.jobs.hear(event);
    let about = event.kind.as_str().split('.').next().unwrap_or_default();
    // A job that is open stays open whatever product is shown around it.
    let open = model.job_page().is_some_and(|page| event.job_id.as_ref() == Some(&page.id));
    if !open && model.product.is_some() && event.product_id.is_some() && model.product != event.product_id {
        // Seats are everybody's.
        return vec![Effect::Fetch(Fetch::Metrics)];
    }
    let mut fetches = Vec::new();
    if matches!(about, "job" | "factory" | "budget") {
        fetches.extend([Fetch::Metrics, Fetch::Alerts]);
    }
    match (model.page(), model.tab) {
        (Some(Page::Job(_)), _) if open => {
            return fetches.into_iter().map(Effect::Fetch).chain(in_front(model)).collect();
        }
        (Some(Page::Factory { .. }), _) | (None, Tab::Factories) => {
            if matches!(about, "job" | "factory") {
                fetches.extend([Fetch::Factories, Fetch::Column(Column::Running)]);
            }
        }
        (None, Tab::Board) => {
            let stages = [event.from, event.to].into_iter().flatten();
            let mut columns: Vec<Column> = stages.filter_map(Column::of).collect();
            columns.dedup();
            fetches.extend(columns.into_iter().map(Fetch::Column));
        }
        (None, Tab::Jobs) if about == "job" => fetches.push(head(model)),
        (None, Tab::Budgets) if matches!(about, "job" | "budget") => fetches.push(Fetch::Budgets),
        (None, Tab::Topics) if about == "topic" => fetches.push(Fetch::Topics),
        _ => {}
    }
    fetches.into_iter().map(Effect::Fetch).collect()
}

/// Cursors and scrolled pages stay on what is there.
fn settle(model: &mut Model) {
    let (keys, height) = (model.keys(), model.list_height());
    if let Some(cursor) = model.cursor_mut() {
        cursor.settle(&keys, height);
    }
    if let Some(page) = model.job_page() {
        let most = crate::view::job::scrolls(model, page);
        if let Some(page) = model.job_page_mut() {
            page.top = page.top.min(most);
        }
    }
}

/// Another page of jobs when somebody comes near the end of those that are here.
fn next_page(model: &mut Model) -> Option<Effect> {
    if model.tab != Tab::Jobs || !model.pages.is_empty() || model.jobs.loading || !model.jobs.loaded {
        return None;
    }
    let near = model.jobs.list.cursor.index() + 2 * model.list_height().max(1);
    let cursor = model.jobs.next.clone().filter(|_| near >= model.shown_jobs().len())?;
    model.jobs.loading = true;
    let jobs = &model.jobs;
    let name = jobs.list.filter.clone();
    Some(Effect::Fetch(Fetch::Jobs {
        generation: jobs.generation,
        group: jobs.group,
        name,
        cursor: Some(cursor),
    }))
}

fn switch(model: &mut Model, tab: Tab) -> Vec<Effect> {
    model.pages.clear();
    model.tab = tab;
    in_front(model)
}

fn open_job(model: &mut Model, id: &str) -> Vec<Effect> {
    let rows = model.jobs.rows.iter().chain(model.board.columns.values().flatten());
    let known = rows.into_iter().find(|job| job.id == id).cloned();
    push(model, Page::Job(Box::new(crate::model::JobPage::new(id, known))))
}

fn open_factory(model: &mut Model, id: &str) -> Vec<Effect> {
    push(model, Page::Factory { id: id.to_owned(), cursor: crate::model::Cursor::default() })
}

fn push(model: &mut Model, page: Page) -> Vec<Effect> {
    // Going round in circles (job, factory, job, …) must not pile up for ever.
    if model.pages.len() >= 8 {
        model.pages.remove(0);
    }
    model.pages.push(page);
    in_front(model)
}
