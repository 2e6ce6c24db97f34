//! The figures of a run: medians and ranges, with what they cost and what they are held against.

use serde_json::{Value, json};

use crate::exit::CliError;
use crate::output::{Columns, Format, Output, say};

/// Several runs of the same thing.
#[derive(Debug, Clone, Default)]
pub(super) struct Series(Vec<f64>);

impl Series {
    pub(super) fn add(&mut self, figure: f64) {
        self.0.push(figure);
        self.0.sort_by(f64::total_cmp);
    }

    pub(super) fn of(figures: impl IntoIterator<Item = f64>) -> Self {
        let mut series = Self(figures.into_iter().collect());
        series.0.sort_by(f64::total_cmp);
        series
    }

    pub(super) fn median(&self) -> f64 {
        self.at(0.5)
    }

    /// The figure that this share of them does not exceed.
    pub(super) fn at(&self, share: f64) -> f64 {
        if self.0.is_empty() {
            return 0.0;
        }
        let last = self.0.len() - 1;
        self.0[((self.0.len() as f64 * share) as usize).min(last)]
    }

    fn range(&self) -> Option<(f64, f64)> {
        (self.0.len() > 1).then(|| (self.0[0], self.0[self.0.len() - 1]))
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct Row {
    pub(super) who: &'static str,
    pub(super) what: String,
    pub(super) unit: &'static str,
    pub(super) figures: Series,
    pub(super) transactions: Option<f64>,
    pub(super) rollbacks: Option<i64>,
    /// What the figure has to be, in words.
    pub(super) target: &'static str,
}

pub(super) struct Table {
    output: Output,
    rows: Vec<Row>,
}

impl Table {
    pub(super) fn new(output: Output) -> Self {
        Self { output, rows: Vec::new() }
    }

    pub(super) fn add(&mut self, row: Row) {
        say(&format!("{} {}: {} {}", row.who, row.what, figure(row.figures.median()), row.unit));
        self.rows.push(row);
    }

    pub(super) fn print(self) -> Result<(), CliError> {
        let rows: Vec<Value> = self.rows.iter().map(as_json).collect();
        let json = json!({ "figures": rows });
        if self.output.format != Format::Table {
            return self.output.list(&json, ("/figures", "/what"), "", String::new);
        }
        let mut table =
            Columns::new(&["WHO", "WHAT", "MEDIAN", "RANGE", "UNIT", "TX/JOB", "ROLLBACKS", "TARGET"]);
        for row in &self.rows {
            let range = row.figures.range().map_or_else(
                || "-".to_owned(),
                |(least, most)| format!("{} to {}", figure(least), figure(most)),
            );
            table.row([
                row.who.to_owned(),
                row.what.clone(),
                figure(row.figures.median()),
                range,
                row.unit.to_owned(),
                row.transactions.map_or_else(|| "-".to_owned(), |tx| format!("{tx:.4}")),
                row.rollbacks.map_or_else(|| "-".to_owned(), |count| count.to_string()),
                row.target.to_owned(),
            ]);
        }
        self.output.text(&table.render())
    }
}

fn as_json(row: &Row) -> Value {
    json!({
        "who": row.who,
        "what": row.what,
        "unit": row.unit,
        "median": row.figures.median(),
        "range": row.figures.range().map(|(least, most)| [least, most]),
        "transactionsPerJob": row.transactions,
        "rollbacks": row.rollbacks,
        "target": row.target,
    })
}

fn figure(value: f64) -> String {
    if value.abs() >= 100.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_taken_from_the_sorted_figures() {
        let series = Series::of([5.0, 1.0, 4.0, 2.0, 3.0]);
        assert!((series.median() - 3.0).abs() < 1e-9);
        assert!((series.at(0.99) - 5.0).abs() < 1e-9);
        assert_eq!(series.range(), Some((1.0, 5.0)));
        assert!((Series::default().median()).abs() < 1e-9);
    }
}
