//! Tables without lines: what is aligned can be read, cut and pasted.

use comfy_table::{
    Attribute, Cell, CellAlignment, Color, ColumnConstraint, ContentArrangement, Table, presets,
};

use super::words::printable;

/// A table whose first column, the id, is never broken.
pub(crate) struct Columns(Table);

impl Columns {
    pub(crate) fn new(header: &[&str]) -> Self {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
        // Whether colour is wanted is decided by the stream that it is written to.
        table.enforce_styling();
        table.set_header(header.iter().map(|name| Cell::new(name).add_attribute(Attribute::Bold)));
        Self(table)
    }

    pub(crate) fn row<T: Into<Cell>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.0.add_row(cells.into_iter().map(Into::into));
    }

    /// Numbers are compared by their ends.
    pub(crate) fn right(&mut self, columns: &[usize]) {
        for &index in columns {
            if let Some(column) = self.0.column_mut(index) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
    }

    pub(crate) fn render(mut self) -> String {
        let last = self.0.column_count().saturating_sub(1);
        for (index, column) in self.0.column_iter_mut().enumerate() {
            column.set_padding((0, if index == last { 0 } else { 2 }));
        }
        if let Some(column) = self.0.column_mut(0) {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
        self.0.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
    }
}

/// A stage in its colour: what needs somebody stands out.
pub(crate) fn stage_cell(stage: &str) -> Cell {
    let cell = Cell::new(printable(stage));
    match stage {
        "assigned" | "building" => cell.fg(Color::Cyan),
        "review" | "testing" => cell.fg(Color::Yellow),
        "shipped" => cell.fg(Color::Green),
        "failed" | "dead_letter" => cell.fg(Color::Red),
        "blocked" | "cancelled" => cell.add_attribute(Attribute::Dim),
        _ => cell,
    }
}
