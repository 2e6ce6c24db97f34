//! Tables without lines: what is aligned can be read, cut and pasted.

use comfy_table::{
    Attribute, Cell, CellAlignment, Color, ColumnConstraint, ContentArrangement, Table, Width, presets,
};
use giga_api::wire::Stage;
use giga_domain::Phase;

/// A flexible column is not made narrower than this.
const NARROWEST: u16 = 12;

/// A table that breaks only the columns that may be broken: those with prose, never ids or headings.
pub(crate) struct Columns {
    table: Table,
    flexible: Vec<usize>,
}

impl Columns {
    /// A heading that ends with `~` is of a flexible column.
    pub(crate) fn new(headings: &[&str]) -> Self {
        let mut table = Table::new();
        table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
        // Whether colour is wanted is decided by the stream that it is written to.
        table.enforce_styling();
        table.style_text_only();
        let names = headings.iter().map(|heading| heading.trim_end_matches('~'));
        table.set_header(names.map(|name| Cell::new(name).add_attribute(Attribute::Bold)));
        let flexible = (0..headings.len()).filter(|index| headings[*index].ends_with('~')).collect();
        Self { table, flexible }
    }

    pub(crate) fn row<T: Into<Cell>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.table.add_row(cells.into_iter().map(Into::into));
    }

    /// Numbers are compared by their ends.
    pub(crate) fn right(&mut self, columns: &[usize]) {
        for &index in columns {
            if let Some(column) = self.table.column_mut(index) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
    }

    pub(crate) fn render(mut self) -> String {
        let last = self.table.column_count().saturating_sub(1);
        let widths = self.table.column_max_content_widths();
        for (index, column) in self.table.column_iter_mut().enumerate() {
            let gap = if index == last { 0 } else { 2 };
            column.set_padding((0, gap));
            let narrowest = Width::Fixed(widths[index].min(NARROWEST) + gap);
            column.set_constraint(if self.flexible.contains(&index) {
                ColumnConstraint::LowerBoundary(narrowest)
            } else {
                ColumnConstraint::ContentWidth
            });
        }
        self.table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
    }
}

/// A stage in its colour: what needs somebody stands out.
pub(crate) fn stage_cell(stage: Stage) -> Cell {
    let cell = Cell::new(stage.label());
    match stage.phase() {
        Phase::Queued => cell,
        Phase::Running | Phase::Shipping => cell.fg(Color::Cyan),
        Phase::Review | Phase::Ready => cell.fg(Color::Yellow),
        Phase::Shipped => cell.fg(Color::Green),
        Phase::Failed => cell.fg(Color::Red),
        Phase::Blocked | Phase::Cancelled => cell.add_attribute(Attribute::Dim),
    }
}
