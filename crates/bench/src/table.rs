//! The figures of a run: medians and ranges, with what they cost and what they are held against.

use comfy_table::presets;
use serde_json::{Value, json};

use crate::progress;

/// Several runs of the same thing.
#[derive(Debug, Clone, Default)]
pub(crate) struct Series(Vec<f64>);

impl Series {
    pub(crate) fn add(&mut self, figure: f64) {
        self.0.push(figure);
        self.0.sort_by(f64::total_cmp);
    }

    pub(crate) fn of(figures: impl IntoIterator<Item = f64>) -> Self {
        let mut series = Self(figures.into_iter().collect());
        series.0.sort_by(f64::total_cmp);
        series
    }

    pub(crate) fn median(&self) -> f64 {
        self.at(0.5)
    }

    /// The figure that this share of them does not exceed.
    pub(crate) fn at(&self, share: f64) -> f64 {
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
pub(crate) struct Row {
    pub(crate) who: &'static str,
    pub(crate) what: String,
    pub(crate) unit: &'static str,
    pub(crate) figures: Series,
    pub(crate) transactions: Option<f64>,
    pub(crate) rollbacks: Option<i64>,
    /// What the figure has to be, in words.
    pub(crate) target: &'static str,
}

#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Row>,
}

impl Table {
    pub(crate) fn add(&mut self, row: Row) {
        progress(&format!("{} {}: {} {}", row.who, row.what, figure(row.figures.median()), row.unit));
        self.rows.push(row);
    }

    pub(crate) fn json(&self) -> Value {
        json!({ "figures": self.rows.iter().map(as_json).collect::<Vec<_>>() })
    }

    pub(crate) fn text(&self) -> String {
        let mut table = comfy_table::Table::new();
        table.load_style(presets::NOTHING);
        table.set_header(["WHO", "WHAT", "MEDIAN", "RANGE", "UNIT", "TX/JOB", "ROLLBACKS", "TARGET"]);
        for row in &self.rows {
            let range = row.figures.range().map_or_else(
                || "-".to_owned(),
                |(least, most)| format!("{} to {}", figure(least), figure(most)),
            );
            table.add_row([
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
        table.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
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
