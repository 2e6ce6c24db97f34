//! What somebody should look at, worst first; the selected one is shown in full below.

use giga_api::wire::Severity;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::table::{self, cell, column, line, plain};
use super::{nothing, theme};
use crate::model::Model;
use crate::text::{age, clean, wrap};

/// Lines for the whole text of the selected one and what to do about it.
pub(crate) const FOOT: usize = 5;

pub(super) fn draw(model: &Model, area: Rect, buf: &mut Buffer) {
    let shown = model.shown_alerts();
    match &model.alerts {
        None => return nothing(area, buf, &["loading …"]),
        Some(all) if all.is_empty() => {
            return nothing(area, buf, &["No alerts"]);
        }
        Some(_) if shown.is_empty() => {
            return nothing(area, buf, &["No alert matches; Esc clears the filter."]);
        }
        Some(_) => {}
    }
    let foot = FOOT as u16;
    let list = Rect { height: area.height.saturating_sub(foot), ..area };
    let columns = [
        column("ALERT", 20, 0),
        column("SINCE", 6, 0).right(),
        column("ABOUT", 14, 1),
        column("MESSAGE", 20, 0).grows(),
    ];
    let cursor = &model.alert_list.cursor;
    let rows = shown.iter().skip(cursor.top()).map(|alert| {
        let style = match alert.severity {
            Severity::Critical => theme::loud(),
            Severity::Warning => theme::warn(),
            Severity::Info => Style::new(),
        };
        let about = match (&alert.job_id, &alert.factory_id, &alert.product_id) {
            (Some(job), _, _) => job_label(model, job),
            (None, Some(factory), _) => factory.clone(),
            (None, None, Some(product)) => product.clone(),
            (None, None, None) => "the fleet".to_owned(),
        };
        vec![
            cell(alert.title.clone(), style),
            plain(alert.since.as_deref().map_or("-".to_owned(), |since| age(since, model.now))),
            plain(about),
            plain(&alert.message),
        ]
    });
    table::draw(list, buf, &columns, rows, cursor.index().checked_sub(cursor.top()));
    let Some(alert) = shown.get(cursor.index()) else { return };
    let below = Rect { y: list.bottom(), height: foot, ..area };
    let wide = usize::from(area.width).saturating_sub(2);
    let remedy = alert.remedy.as_ref().map(|remedy| match &remedy.command {
        Some(command) => format!("→ {}: {command}", remedy.message),
        None => format!("→ {}", remedy.message),
    });
    let message = wrap(&clean(&alert.message), wide).into_iter().map(|text| (text, Style::new()));
    let remedy =
        remedy.into_iter().flat_map(|text| wrap(&clean(&text), wide)).map(|text| (text, theme::faint()));
    for (row, (text, style)) in below.rows().skip(1).zip(message.chain(remedy)) {
        line(row, buf, &[(format!(" {text}"), style)]);
    }
}

fn job_label(model: &Model, id: &str) -> String {
    let mut rows = model.board.columns.values().flatten().chain(&model.jobs.rows);
    match rows.find(|job| job.id == id) {
        Some(job) => job.name.clone(),
        None => format!("…{}", id.get(id.len().saturating_sub(6)..).unwrap_or(id)),
    }
}
