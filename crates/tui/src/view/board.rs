//! What is where: counts by product, and under each stage its newest jobs.

use std::time::Duration;

use giga_api::wire::Job;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

use super::table::{line, mark};
use super::{nothing, theme};
use crate::model::{BoardColumn, Column, Model};
use crate::text::{age, clean, cut, fit, fit_right, span, width};

/// Products that have a line of their own.
const PRODUCTS: usize = 4;
/// A column that is narrower says nothing.
const NARROWEST: usize = 16;

/// The counts by product, with their titles; one product is shown by the columns themselves.
pub(crate) fn head_height(model: &Model) -> usize {
    let products = model.metrics.as_ref().map_or(0, |metrics| metrics.products.len());
    match products {
        0 | 1 => 1,
        many => 1 + many.min(PRODUCTS),
    }
}

pub(super) fn draw(model: &Model, area: Rect, buf: &mut Buffer) {
    let Some(metrics) = &model.metrics else {
        return nothing(area, buf, &["loading …"]);
    };
    if metrics.products.iter().all(|product| product.by_stage.values().all(|count| *count == 0)) {
        let first = match &model.product {
            Some(product) => format!("No jobs in {} yet. Submit one:", clean(product)),
            None => "No jobs yet. Submit one:".to_owned(),
        };
        return nothing(area, buf, &[&first, "", "giga job init hello.md", "giga job submit hello.md"]);
    }
    counts(model, area, buf);
    let head = head_height(model) as u16;
    let below = Rect { y: area.y + head, height: area.height.saturating_sub(head), ..area };
    columns(model, below, buf);
}

fn counts(model: &Model, area: Rect, buf: &mut Buffer) {
    let Some(metrics) = &model.metrics else { return };
    let oldest = match metrics.oldest_queued_ms {
        Some(ms) => format!("oldest queued {}", span(Duration::from_millis(ms))),
        None => "nothing queued".to_owned(),
    };
    let mut rows = area.rows();
    let Some(first) = rows.next() else { return };
    if metrics.products.len() < 2 {
        let product = metrics.products.first().map(|product| clean(&product.product_id)).unwrap_or_default();
        line(first, buf, &[(format!(" {product}  "), theme::title()), (oldest, theme::faint())]);
        return;
    }
    let used: Vec<Column> =
        Column::ALL.into_iter().filter(|column| model.in_stages(&column.stages()) > 0).collect();
    let named = 12;
    let wide = |column: &Column| (column.title().len() + 1).max(8);
    let mut titles = vec![(fit(" product", named), theme::faint())];
    titles.extend(used.iter().map(|column| (fit_right(column.title(), wide(column)), theme::faint())));
    titles.push((format!("  {oldest}"), theme::faint()));
    line(first, buf, &titles);
    let hidden = metrics.products.len().saturating_sub(PRODUCTS);
    for (at, (row, product)) in rows.zip(metrics.products.iter().take(PRODUCTS)).enumerate() {
        let paused = product.budget.is_some_and(|budget| budget.paused);
        let mut pieces = vec![(fit(&format!(" {}", clean(&product.product_id)), named), theme::title())];
        pieces.extend(used.iter().map(|column| {
            let stages = column.stages();
            let count: u64 = stages.iter().filter_map(|stage| product.by_stage.get(stage)).sum();
            let style = if count == 0 { theme::faint() } else { theme::stage(stages[0]) };
            (fit_right(&count.to_string(), wide(column)), style)
        }));
        if paused {
            pieces.push(("  budget paused".to_owned(), theme::warn()));
        }
        if hidden > 0 && at + 1 == PRODUCTS {
            pieces.push((format!("  and {hidden} more: p"), theme::faint()));
        }
        line(row, buf, &pieces);
    }
}

fn columns(model: &Model, area: Rect, buf: &mut Buffer) {
    let all = model.board_columns();
    let fitting = (usize::from(area.width) / NARROWEST).clamp(1, all.len().max(1));
    let here = all.iter().position(|shown| shown.column == model.board.column).unwrap_or(0);
    // The chosen one is always in sight.
    let first = (here + 1).saturating_sub(fitting).min(all.len().saturating_sub(fitting));
    let width = area.width / fitting as u16;
    for (at, shown) in all.iter().skip(first).take(fitting).enumerate() {
        let x = area.x + at as u16 * width;
        let last = at + 1 == fitting;
        let wide = if last { area.right() - x } else { width };
        let more = (at == 0 && first > 0, last && first + fitting < all.len());
        column(model, shown, more, Rect { x, width: wide, ..area }, buf);
    }
}

fn column(model: &Model, shown: &BoardColumn<'_>, more: (bool, bool), area: Rect, buf: &mut Buffer) {
    let here = shown.column == model.board.column;
    let (left, right) = (if more.0 { "‹" } else { " " }, if more.1 { " ›" } else { "" });
    let title = format!("{left}{} {}{right}", shown.column.title(), shown.total);
    let mut style = theme::stage(shown.column.stages()[0]).add_modifier(Modifier::BOLD);
    if here {
        style = style.add_modifier(Modifier::UNDERLINED);
    }
    let mut rows = area.rows();
    if let Some(row) = rows.next() {
        line(row, buf, &[(title, style)]);
    }
    let cursor = model.board.cursors.get(&shown.column);
    let top = cursor.map_or(0, crate::model::Cursor::top);
    let selected = cursor.map_or(0, crate::model::Cursor::index);
    let height = usize::from(area.height).saturating_sub(1);
    let room = usize::from(area.width).saturating_sub(2);
    let mut drawn = 0;
    for (at, (row, job)) in rows.zip(shown.jobs.iter().skip(top)).enumerate() {
        let text = card(job, room, model);
        line(row, buf, &[(" ".to_owned(), Style::new()), (text, Style::new())]);
        if here && at + top == selected {
            mark(Rect { width: row.width.saturating_sub(1), ..row }, buf);
        }
        drawn = at + 1;
    }
    // Only the newest are fetched.
    let missing = shown.total.saturating_sub(shown.jobs.len() as u64);
    if missing > 0 && !shown.jobs.is_empty() && drawn < height && model.board.filter.is_empty() {
        let row = Rect { y: area.y + 1 + drawn as u16, height: 1, ..area };
        line(row, buf, &[(format!(" … {missing} older"), theme::faint())]);
    }
}

fn card(job: &Job, room: usize, model: &Model) -> String {
    let since = job.lease.as_ref().map_or(&job.updated_at, |lease| &lease.granted_at);
    let mut age = age(since, model.now);
    if let Some(lease) = job.lease.as_ref().filter(|_| room >= 28) {
        age = format!("{} {age}", cut(&clean(&lease.factory_id), 10));
    }
    let name = room.saturating_sub(width(&age) + 1);
    format!("{} {age}", fit(&clean(&job.name), name))
}
