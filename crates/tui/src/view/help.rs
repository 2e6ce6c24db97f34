//! The keys that work here.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::widgets::{Block, Clear, Widget};

use super::table::line;
use super::theme;
use crate::keys::{self, Key};
use crate::model::Model;
use crate::text::{cut, fit};

const KEYS: usize = 17;

pub(super) fn draw(model: &Model, area: Rect, buf: &mut Buffer) {
    let all: Vec<&Key> = keys::of(&model.places(), model.who.may_act()).collect();
    let width = area.width.min(74);
    let height = area.height.min(all.len() as u16 + 2);
    let over =
        Rect { x: area.x + (area.width - width) / 2, y: area.y + (area.height - height) / 2, width, height };
    Clear.render(over, buf);
    let foot = if model.who.may_act() {
        " any key closes this "
    } else {
        " read-only: actions are hidden · any key closes this "
    };
    let block =
        Block::bordered().title(" keys ").title_bottom(cut(foot, usize::from(width.saturating_sub(2))));
    let inner = block.inner(over);
    block.render(over, buf);
    for (row, key) in inner.rows().zip(all) {
        line(
            row,
            buf,
            &[
                (fit(&format!(" {}", key.keys), KEYS), theme::title()),
                (format!(" {}", key.about), Style::new()),
            ],
        );
    }
}
