//! Rows and columns. What does not fit goes by its importance, not by its place.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::theme;
use crate::text::{clean, cut, fit, fit_right};

pub(super) struct Column {
    title: &'static str,
    width: usize,
    grows: bool,
    right: bool,
    /// The highest goes first; 0 stays.
    drop: u8,
}

pub(super) const fn column(title: &'static str, width: usize, drop: u8) -> Column {
    Column { title, width, grows: false, right: false, drop }
}

impl Column {
    pub(super) const fn grows(mut self) -> Self {
        self.grows = true;
        self
    }

    pub(super) const fn right(mut self) -> Self {
        self.right = true;
        self
    }
}

pub(super) struct Cell {
    text: String,
    style: Style,
}

pub(super) fn cell(text: impl AsRef<str>, style: Style) -> Cell {
    Cell { text: clean(text.as_ref()), style }
}

pub(super) fn plain(text: impl AsRef<str>) -> Cell {
    cell(text, Style::new())
}

/// Which columns are shown, and how wide. One cell is left for the mark of the selected row, one between columns.
fn layout(columns: &[Column], width: usize) -> Vec<(usize, usize)> {
    let mut shown: Vec<usize> = (0..columns.len()).collect();
    let needed = |shown: &[usize]| shown.iter().map(|at| columns[*at].width + 1).sum::<usize>() + 1;
    while needed(&shown) > width {
        let Some(least) =
            shown.iter().copied().filter(|at| columns[*at].drop > 0).max_by_key(|at| columns[*at].drop)
        else {
            break;
        };
        shown.retain(|at| *at != least);
    }
    let spare = width.saturating_sub(needed(&shown));
    let growing = shown.iter().filter(|at| columns[**at].grows).count().max(1);
    shown
        .into_iter()
        .map(|at| (at, columns[at].width + if columns[at].grows { spare / growing } else { 0 }))
        .collect()
}

/// `rows` are those on the screen, the first of them `top` of all.
pub(super) fn draw(
    area: Rect,
    buf: &mut Buffer,
    columns: &[Column],
    rows: impl Iterator<Item = Vec<Cell>>,
    selected: Option<usize>,
) {
    let layout = layout(columns, usize::from(area.width));
    let aligned = |column: &Column, text: &str, width: usize| {
        if column.right { fit_right(text, width) } else { fit(text, width) }
    };
    let mut lines = area.rows();
    if let Some(line) = lines.next() {
        let mut x = line.x + 1;
        for (at, width) in &layout {
            let text = aligned(&columns[*at], columns[*at].title, *width);
            x = put(buf, line, x, &text, theme::faint()) + 1;
        }
    }
    for (number, (line, cells)) in lines.zip(rows).enumerate() {
        let mut x = line.x + 1;
        for (at, width) in &layout {
            let Some(cell) = cells.get(*at) else { continue };
            x = put(buf, line, x, &aligned(&columns[*at], &cell.text, *width), cell.style) + 1;
        }
        if selected == Some(number) {
            mark(line, buf);
        }
    }
}

/// The row that keys are about: by a mark and by its colours turned around, so that either is enough.
pub(super) fn mark(line: Rect, buf: &mut Buffer) {
    buf.set_stringn(line.x, line.y, "›", 1, Style::new());
    buf.set_style(line, theme::selected());
}

fn put(buf: &mut Buffer, line: Rect, x: u16, text: &str, style: Style) -> u16 {
    let room = line.right().saturating_sub(x);
    buf.set_stringn(x.min(line.right()), line.y, text, usize::from(room), style).0
}

/// Pieces of a line, each with its style, cut at the end of the area.
pub(super) fn line(area: Rect, buf: &mut Buffer, pieces: &[(String, Style)]) {
    let mut x = area.x;
    for (text, style) in pieces {
        let room = area.right().saturating_sub(x);
        if room == 0 {
            break;
        }
        x = buf.set_stringn(x, area.y, cut(text, usize::from(room)), usize::from(room), *style).0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_important_goes_first_and_the_rest_grows() {
        let columns = [column("A", 4, 0), column("NAME", 6, 0).grows(), column("B", 5, 2), column("C", 5, 1)];
        let shown = |width: usize| layout(&columns, width).into_iter().map(|(at, _)| at).collect::<Vec<_>>();
        assert_eq!(shown(40), [0, 1, 2, 3]);
        assert_eq!(shown(24), [0, 1, 3]);
        assert_eq!(shown(14), [0, 1]);
        assert_eq!(shown(0), [0, 1], "what must stay stays, and is cut");
        assert_eq!(layout(&columns, 40)[1].1, 6 + 40 - 25);
    }
}
