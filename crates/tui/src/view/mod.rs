//! Frames, drawn from the model alone. At 80×24 everything can be used; narrower, the less important columns go.

pub(crate) mod alerts;
pub(crate) mod board;
pub(crate) mod budgets;
mod explain;
pub(crate) mod factories;
mod header;
mod help;
pub(crate) mod job;
mod jobs;
mod status;
mod table;
mod theme;
mod topics;

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

use crate::model::{Model, Page, Tab};
use crate::text::wrap;

const LEAST: (u16, u16) = (40, 10);

/// `colour` is off where NO_COLOR says so: words and weight alone then say what colours would.
pub fn draw(model: &Model, colour: bool, area: Rect, buf: &mut Buffer) {
    if area.is_empty() {
        return;
    }
    if area.width < LEAST.0 || area.height < LEAST.1 {
        let text = format!("too small: needs at least {}×{}", LEAST.0, LEAST.1);
        buf.set_stringn(area.x, area.y, text, usize::from(area.width), Style::new());
        return;
    }
    let row = |y: u16| Rect { y: area.y + y, height: 1, ..area };
    let body = Rect { y: area.y + 2, height: area.height - 4, ..area };
    header::draw(model, row(0), row(1), buf);
    match (model.page(), model.tab) {
        (Some(Page::Job(page)), _) => job::draw(model, page, body, buf),
        (Some(Page::Factory { id, cursor }), _) => factories::draw_one(model, id, cursor, body, buf),
        (None, Tab::Board) => board::draw(model, body, buf),
        (None, Tab::Factories) => factories::draw(model, body, buf),
        (None, Tab::Alerts) => alerts::draw(model, body, buf),
        (None, Tab::Jobs) => jobs::draw(model, body, buf),
        (None, Tab::Budgets) => budgets::draw(model, body, buf),
        (None, Tab::Topics) => topics::draw(model, body, buf),
    }
    if model.link.lost().is_some() {
        // What is shown was true once.
        for old in [row(0), body] {
            buf.set_style(old, Style::new().fg(Color::DarkGray).add_modifier(Modifier::DIM));
        }
    }
    status::draw(model, row(area.height - 2), row(area.height - 1), buf);
    if model.help {
        help::draw(model, area, buf);
    }
    if !colour {
        for cell in &mut buf.content {
            (cell.fg, cell.bg) = (Color::Reset, Color::Reset);
        }
    }
}

/// Words where there is nothing to show: what that means, and what to do next.
fn nothing(area: Rect, buf: &mut Buffer, lines: &[&str]) {
    let room = usize::from(area.width.saturating_sub(4));
    let shown = lines.iter().flat_map(|line| wrap(line, room));
    for (row, line) in area.rows().skip(1).zip(shown) {
        let command = line.starts_with("giga ");
        let style = if command { theme::command() } else { theme::faint() };
        buf.set_stringn(row.x + 2, row.y, line, room, style);
    }
}
