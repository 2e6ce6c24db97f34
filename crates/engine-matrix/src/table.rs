//! The result, for people: a table in a page, between two marks.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use anyhow::{Context as _, Result};
use giga_factory::engines::Program;

use crate::behaviour::Behaviour;

const BEGIN: &str = "<!-- matrix: written by `cargo xtask engines matrix --write` -->";
const END: &str = "<!-- end of the matrix -->";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cell {
    Proven,
    /// And why.
    Not(String),
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Proven => f.write_str("ok"),
            Self::Not(why) => write!(f, "NOT: {why}"),
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Table {
    versions: BTreeMap<Program, String>,
    cells: BTreeMap<(Behaviour, Program), Cell>,
}

impl Table {
    pub(crate) fn version(&mut self, engine: Program, version: String) {
        self.versions.insert(engine, version);
    }

    pub(crate) fn add(&mut self, engine: Program, behaviour: Behaviour, cell: Cell) {
        self.cells.insert((behaviour, engine), cell);
    }

    pub(crate) fn is_green(&self) -> bool {
        self.cells.values().all(|cell| *cell == Cell::Proven)
    }

    pub(crate) fn write(&self, page: &Path) -> Result<()> {
        let text = std::fs::read_to_string(page).with_context(|| page.display().to_string())?;
        let marks = text.split_once(BEGIN).and_then(|(before, rest)| Some((before, rest.split_once(END)?.1)));
        let (before, after) =
            marks.with_context(|| format!("{} has no `{BEGIN}` … `{END}`", page.display()))?;
        let date = jiff::Timestamp::now().to_string();
        let date = date.split('T').next().unwrap_or_default();
        let new = format!("{before}{BEGIN}\n\n{}\n{END}{after}", self.markdown(date));
        Ok(std::fs::write(page, new)?)
    }

    fn markdown(&self, date: &str) -> String {
        let versions = self.versions.iter().map(|(engine, version)| format!(" {engine} {version} |"));
        let engines = versions.collect::<Vec<_>>().concat();
        let mut lines = vec![
            format!("Run on {date}."),
            String::new(),
            format!("| behaviour |{engines}"),
            format!("| --- |{}", " --- |".repeat(self.versions.len())),
        ];
        let mut reasons = Vec::new();
        for behaviour in Behaviour::ALL {
            let cells = self.versions.keys().map(|engine| match self.cells.get(&(*behaviour, *engine)) {
                Some(Cell::Proven) => " yes |".to_owned(),
                Some(Cell::Not(why)) => {
                    let number = reasons.len() + 1;
                    reasons.push(format!("{number}. {engine}, {}: {}", behaviour.title(), one_line(why)));
                    format!(" **no** ({number}) |")
                }
                None => " |".to_owned(),
            });
            let cells: String = cells.collect();
            lines.push(format!("| {} |{cells}", behaviour.title()));
        }
        if !reasons.is_empty() {
            lines.extend([String::new(), "Why not:".to_owned(), String::new()]);
            lines.extend(reasons);
        }
        lines.join("\n") + "\n"
    }
}

/// Reasons quote what engines say.
fn one_line(text: &str) -> String {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ").replace(['|', '<'], " ");
    text.chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_that_is_not_green_has_its_reason() {
        let mut table = Table::default();
        table.version(Program::Claude, "1.2.3".to_owned());
        table.add(Program::Claude, Behaviour::Edit, Cell::Proven);
        table.add(Program::Claude, Behaviour::Refusal, Cell::Not("it\nsucceeded".to_owned()));
        let text = table.markdown("2026-11-18");
        assert!(text.contains("| behaviour | claude 1.2.3 |"), "{text}");
        assert!(text.contains("| edits a file headless, prompt byte for byte | yes |"), "{text}");
        assert!(
            text.contains("| **no** (1) |")
                && text.contains("\n1. claude, a refusal is `refused`: it succeeded\n")
        );
        assert!(!table.is_green());
    }
}
