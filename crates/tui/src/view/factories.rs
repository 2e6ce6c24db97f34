//! The machines: how they are, how busy, and with what.

use giga_api::wire::{Factory, FactoryState, Health, Job};
use giga_domain::Usd;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::nothing;
use super::table::{self, cell, column, line, plain};
use super::theme::{self, bar_text};
use crate::model::{Cursor, Model};
use crate::text::{age, clean, wrap};

/// Lines above the running jobs of one factory.
pub(crate) const HEAD: usize = 9;

pub(super) fn state(factory: &Factory) -> (&'static str, Style) {
    match (factory.live, factory.state, factory.health) {
        (false, _, _) => ("stale", theme::bad()),
        (true, FactoryState::Draining, _) => (factory.state.as_str(), theme::warn()),
        (true, FactoryState::Active, Health::Ok) => (factory.health.as_str(), theme::good()),
        (true, FactoryState::Active, Health::Degraded) => (factory.health.as_str(), theme::warn()),
        (true, FactoryState::Active, Health::Down) => (factory.health.as_str(), theme::bad()),
    }
}

fn seats(factory: &Factory, cells: usize) -> String {
    let (used, all) = (factory.seats_used, factory.seat_limit);
    format!("{} {used}/{all}", bar_text((f64::from(used), 0.0), f64::from(all), cells))
}

/// The name of a job where it is known here, else the end of its id.
fn job_name(model: &Model, id: &str) -> String {
    match known(model, id) {
        Some(job) => clean(&job.name),
        None => format!("…{}", id.get(id.len().saturating_sub(6)..).unwrap_or(id)),
    }
}

fn known<'a>(model: &'a Model, id: &str) -> Option<&'a Job> {
    let mut rows = model.board.columns.values().flatten().chain(&model.jobs.rows);
    rows.find(|job| job.id == id)
}

fn load(factory: &Factory) -> String {
    if factory.load.is_finite() { format!("{:.1}", factory.load) } else { "-".to_owned() }
}

/// What it does, and what it was asked to do where that is something else.
fn delivery(factory: &Factory) -> String {
    if factory.delivery == factory.actual_delivery {
        factory.delivery.to_string()
    } else {
        format!("{} ({})", factory.actual_delivery, factory.delivery)
    }
}

pub(super) fn draw(model: &Model, area: Rect, buf: &mut Buffer) {
    let shown = model.shown_factories();
    match &model.factories {
        None => return nothing(area, buf, &["asking the coordinator …"]),
        Some(all) if all.is_empty() => {
            return nothing(
                area,
                buf,
                &[
                    "No factories: jobs wait until there is one. Enrol a machine, and run it there:",
                    "",
                    "giga factory enroll mac-1",
                    "giga factory run",
                ],
            );
        }
        Some(_) if shown.is_empty() => {
            return nothing(area, buf, &["No factory matches; Esc clears the filter."]);
        }
        Some(_) => {}
    }
    let columns = [
        column("FACTORY", 11, 0).grows(),
        column("STATE", 8, 0),
        column("SEATS", 12, 0),
        column("LOAD", 4, 3).right(),
        column("DELIVERY", 8, 4),
        column("RUNS", 13, 1).grows(),
        column("CAPABILITIES", 13, 5).grows(),
    ];
    let cursor = &model.factory_list.cursor;
    let rows = shown.iter().skip(cursor.top()).map(|factory| {
        let (word, style) = state(factory);
        let running: Vec<String> = factory.running.iter().map(|id| job_name(model, id)).collect();
        vec![
            cell(&factory.id, theme::title()),
            cell(word, style),
            plain(seats(factory, 6)),
            plain(load(factory)),
            plain(delivery(factory)),
            plain(if running.is_empty() { "-".to_owned() } else { running.join(", ") }),
            cell(factory.capabilities.join(" "), theme::faint()),
        ]
    });
    table::draw(area, buf, &columns, rows, cursor.index().checked_sub(cursor.top()));
}

pub(super) fn draw_one(model: &Model, id: &str, cursor: &Cursor, area: Rect, buf: &mut Buffer) {
    let Some(factory) = model.factory(id) else {
        let text = match &model.factories {
            None => "asking the coordinator …".to_owned(),
            Some(_) => format!("There is no factory {} any more. Esc goes back.", clean(id)),
        };
        return nothing(area, buf, &[&text]);
    };
    let (word, style) = state(factory);
    let heard = factory
        .last_seen_at
        .as_deref()
        .map_or("never heard of".to_owned(), |at| format!("heard of {} ago", age(at, model.now)));
    let products =
        if factory.products.is_empty() { "every product".to_owned() } else { factory.products.join(", ") };
    let mut repos: Vec<String> = factory.repos.iter().map(|repo| repo.name.clone()).collect();
    if factory.can_clone {
        repos.push("and clones others".to_owned());
    }
    let none = |words: Vec<String>| if words.is_empty() { "none".to_owned() } else { words.join("  ") };
    let missing: Vec<String> =
        factory.advertised.iter().filter(|cap| !factory.capabilities.contains(cap)).cloned().collect();
    let mut lines: Vec<Vec<(String, Style)>> = vec![
        vec![
            (format!(" {}  ", clean(id)), theme::title()),
            (word.to_owned(), style),
            (format!("  {heard}, enrolled {} ago", age(&factory.enrolled_at, model.now)), theme::faint()),
        ],
        vec![(
            format!(
                " seats {}   load {}   jobs reach it by {}",
                seats(factory, 10),
                load(factory),
                clean(&delivery(factory))
            ),
            Style::new(),
        )],
        vec![(" products      ".to_owned(), theme::faint()), (clean(&products), Style::new())],
        vec![(" repositories  ".to_owned(), theme::faint()), (clean(&none(repos)), Style::new())],
    ];
    let room = usize::from(area.width).saturating_sub(16);
    for (at, text) in wrap(&clean(&none(factory.capabilities.clone())), room).into_iter().take(3).enumerate()
    {
        let before = if at == 0 { " capabilities  " } else { "               " };
        lines.push(vec![(before.to_owned(), theme::faint()), (text, Style::new())]);
    }
    if !missing.is_empty() {
        lines.push(vec![
            (" not allowed   ".to_owned(), theme::faint()),
            (clean(&missing.join("  ")), theme::warn()),
        ]);
    }
    lines.truncate(HEAD - 1);
    for (row, pieces) in area.rows().zip(&lines) {
        line(row, buf, pieces);
    }
    let below =
        Rect { y: area.y + HEAD as u16 - 1, height: area.height.saturating_sub(HEAD as u16 - 1), ..area };
    if factory.running.is_empty() {
        line(Rect { height: 1, ..below }, buf, &[(" nothing runs here".to_owned(), theme::faint())]);
        return;
    }
    let columns = [
        column("RUNNING", 20, 0).grows(),
        column("STAGE", 9, 0),
        column("FOR", 6, 0).right(),
        column("PRODUCT", 12, 2),
        column("SPENT", 8, 1).right(),
        column("ID", 26, 3),
    ];
    let rows = factory.running.iter().skip(cursor.top()).map(|id| match known(model, id) {
        Some(job) => {
            let since = job.lease.as_ref().map_or(&job.updated_at, |lease| &lease.granted_at);
            let spent = job.lease.as_ref().map_or(Usd::ZERO, |lease| lease.spent_usd);
            vec![
                cell(&job.name, theme::title()),
                cell(job.stage.label(), theme::stage(job.stage)),
                plain(age(since, model.now)),
                plain(&job.product_id),
                plain(spent.to_string()),
                cell(id, theme::faint()),
            ]
        }
        None => vec![
            plain(job_name(model, id)),
            plain("-"),
            plain("-"),
            plain("-"),
            plain("-"),
            cell(id, theme::faint()),
        ],
    });
    table::draw(below, buf, &columns, rows, cursor.index().checked_sub(cursor.top()));
}
