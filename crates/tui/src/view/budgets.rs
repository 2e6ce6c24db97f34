//! What products may spend and have spent. No limit is normal: then there is an amount and no bar.

use giga_api::wire::{Budget, BudgetPeriod, PauseCause};
use giga_domain::Usd;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::nothing;
use super::table::{line, mark};
use super::theme::{self, bar_text};
use crate::model::Model;
use crate::text::{age, clean, fit, when};

/// Lines of one product: its name, two lines with two periods each, and one between products.
pub(crate) const ROW: usize = 4;

pub(super) fn draw(model: &Model, area: Rect, buf: &mut Buffer) {
    let shown = model.shown_budgets();
    match &model.budgets {
        None => return nothing(area, buf, &["loading …"]),
        Some(all) if all.is_empty() => {
            return nothing(
                area,
                buf,
                &[
                    "No product has spent anything or has a budget yet. Set a limit:",
                    "",
                    "giga budget set PRODUCT --day 20 --job 2.50",
                ],
            );
        }
        Some(_) if shown.is_empty() => {
            return nothing(area, buf, &["No product matches; Esc clears the filter."]);
        }
        Some(_) => {}
    }
    let first = Rect { height: 1, ..area };
    line(first, buf, &[(" █ spent  ▒ reserved for running jobs  ░ left   (UTC)".to_owned(), theme::faint())]);
    let cursor = &model.budget_list.cursor;
    let room = model.list_height();
    for (at, budget) in shown.iter().enumerate().skip(cursor.top()).take(room.max(1)) {
        let y = area.y + 1 + ((at - cursor.top()) * ROW) as u16;
        let rows = Rect { y, height: (ROW as u16).min(area.bottom().saturating_sub(y)), ..area };
        one(model, budget, at == cursor.index(), rows, buf);
    }
}

fn one(model: &Model, budget: &Budget, selected: bool, area: Rect, buf: &mut Buffer) {
    let mut rows = area.rows();
    let Some(first) = rows.next() else { return };
    let (state, style) = match &budget.paused {
        None => match (budget.left_usd, &budget.tightest) {
            (Some(left), Some(period)) => {
                (format!("active, {left} left of the {} limit", period.label()), theme::good())
            }
            _ => ("active, no limit".to_owned(), theme::good()),
        },
        Some(pause) => {
            let since = age(&pause.at, model.now);
            let reason =
                pause.reason.as_deref().map(|reason| format!(": {}", clean(reason))).unwrap_or_default();
            let text = match (pause.cause, &pause.by, pause.period) {
                (PauseCause::Ceiling, _, Some(period)) => {
                    let until =
                        budget.periods.iter().find(|p| p.period == period).and_then(|p| p.until.as_deref());
                    let opens = until.map_or("until it is raised".to_owned(), |until| {
                        format!("reopens {}", when(until, model.now))
                    });
                    format!("PAUSED {since}: the {} limit is reached, {opens}", period.label())
                }
                (_, Some(by), _) => format!("PAUSED {since} by {}{reason}", clean(by)),
                _ => format!("PAUSED {since}{reason}"),
            };
            (text, theme::loud())
        }
    };
    let cap = budget.job_usd.map_or("no cap per job".to_owned(), |cap| format!("{cap} cap per job"));
    let pieces = [
        (format!(" {}  ", clean(&budget.product_id)), theme::title()),
        (state, style),
        (format!("  {cap}"), theme::faint()),
    ];
    line(first, buf, &pieces);
    if selected {
        mark(first, buf);
    }
    let half = usize::from(area.width) / 2;
    for (row, pair) in rows.zip(budget.periods.chunks(2)) {
        let mut pieces = Vec::new();
        for period in pair {
            pieces.extend(amounts(period, budget.reserved_usd, half));
        }
        line(row, buf, &pieces);
    }
}

fn amounts(period: &BudgetPeriod, reserved: Usd, room: usize) -> Vec<(String, Style)> {
    let name = fit(&format!(" {}", period.period), 7);
    let spent = period.spent_usd;
    let aside = if reserved.is_zero() { String::new() } else { format!("+{reserved}") };
    match period.ceiling_usd {
        None => vec![
            (name, theme::faint()),
            (fit(&format!("{spent}{aside} spent, no limit"), room.saturating_sub(7)), Style::new()),
        ],
        Some(limit) => {
            let left = period.left_usd.unwrap_or_default();
            let style = if left <= Usd::ZERO {
                theme::bad()
            } else if 5 * left < limit {
                theme::warn()
            } else {
                theme::good()
            };
            let bar = bar_text((spent.as_f64(), reserved.as_f64()), limit.as_f64(), 10);
            let text = format!(" {spent}{aside} of {limit}");
            vec![(name, theme::faint()), (bar, style), (fit(&text, room.saturating_sub(17)), Style::new())]
        }
    }
}
