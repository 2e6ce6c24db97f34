//! What somebody should look at, worst first; the selected one is told in full below.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::table::{self, cell, column, line, plain};
use super::{nothing, theme};
use crate::model::{Model, severity};
use crate::text::{age, clean, wrap};

/// Lines for the whole text of the selected one.
pub(crate) const FOOT: usize = 4;

pub(super) fn draw(model: &Model, area: Rect, buf: &mut Buffer) {
    let shown = model.shown_alerts();
    match &model.alerts {
        None => return nothing(area, buf, &["asking the coordinator …"]),
        Some(all) if all.is_empty() => {
            return nothing(area, buf, &["Nothing to look at. Alerts come here by themselves."]);
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
        column("WHAT", 20, 0).grows(),
    ];
    let cursor = &model.alert_list.cursor;
    let rows = shown.iter().skip(cursor.top()).map(|alert| {
        let style = match severity(&alert.code) {
            0 => theme::loud(),
            1 => theme::warn(),
            _ => Style::new(),
        };
        let about = match (&alert.job_id, &alert.factory_id, &alert.product_id) {
            (Some(job), _, _) => job_label(model, job),
            (None, Some(factory), _) => factory.clone(),
            (None, None, Some(product)) => product.clone(),
            (None, None, None) => "the fleet".to_owned(),
        };
        vec![
            cell(alert.code.replace('_', " "), style),
            plain(alert.since.as_deref().map_or("-".to_owned(), |since| age(since, model.now))),
            plain(about),
            plain(&alert.message),
        ]
    });
    table::draw(list, buf, &columns, rows, cursor.index().checked_sub(cursor.top()));
    let Some(alert) = shown.get(cursor.index()) else { return };
    let below = Rect { y: list.bottom(), height: foot, ..area };
    let text = wrap(&clean(&alert.message), usize::from(area.width).saturating_sub(2));
    for (row, text) in below.rows().skip(1).zip(text) {
        line(row, buf, &[(format!(" {text}"), Style::new())]);
    }
}

fn job_label(model: &Model, id: &str) -> String {
    let mut rows = model.board.columns.values().flatten().chain(&model.jobs.rows);
    match rows.find(|job| job.id == id) {
        Some(job) => job.name.clone(),
        None => format!("…{}", id.get(id.len().saturating_sub(6)..).unwrap_or(id)),
    }
}
