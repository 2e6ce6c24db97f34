//! Why a job is where it is: the sentence, what is in the way, what would help, and every factory's verdict.

use giga_api::wire::{Explanation, FactoryVerdict};
use ratatui::style::Style;

use super::job::Pieces;
use super::theme;
use crate::text::{clean, fit, fit_right, wrap};

const NAMES: usize = 18;
const BAR: usize = 20;

pub(super) fn lines(explanation: &Explanation, cells: usize) -> Vec<Pieces> {
    let mut lines: Vec<Pieces> = Vec::new();
    let room = cells.saturating_sub(6);
    let mut text = |before: &str, text: &str, style: Style| {
        for (at, part) in wrap(&clean(text), room).into_iter().enumerate() {
            let before = if at == 0 { before.to_owned() } else { " ".repeat(before.chars().count()) };
            lines.push(vec![(before, theme::faint()), (part, style)]);
        }
    };
    text(" ", &explanation.summary, theme::title());
    if !explanation.blockers.is_empty() {
        text(" ", "", Style::new());
        text(" ", "In the way", theme::faint());
        for blocker in &explanation.blockers {
            text("   ", &blocker.message, theme::warn());
        }
    }
    if !explanation.remedies.is_empty() {
        text(" ", "", Style::new());
        text(" ", "What would help", theme::faint());
        for remedy in &explanation.remedies {
            text(" - ", &remedy.message, Style::new());
            if let Some(command) = &remedy.command {
                text("     ", command, theme::command());
            }
        }
    }
    if !explanation.factories.is_empty() {
        text(" ", "", Style::new());
        text(" ", "Factories", theme::faint());
        let values = explanation.factories.iter().flat_map(|factory| factory.terms.values());
        let most = values.map(|value| value.abs()).filter(|value| value.is_finite()).fold(0.0, f64::max);
        for factory in &explanation.factories {
            verdict(factory, most, room, &mut lines);
        }
    }
    lines
}

fn verdict(factory: &FactoryVerdict, most: f64, room: usize, lines: &mut Vec<Pieces>) {
    let name = (format!("   {}  ", clean(&factory.factory_id)), theme::title());
    match (&factory.rejected_by, factory.feasible) {
        (Some(rejection), _) => {
            let mut parts = wrap(&clean(&rejection.detail), room.saturating_sub(4)).into_iter();
            let first = parts.next().unwrap_or_default();
            lines.push(vec![
                name,
                (format!("no, {}: ", rejection.filter.as_str().replace('_', " ")), theme::bad()),
                (first, Style::new()),
            ]);
            lines.extend(parts.map(|part| vec![(format!("       {part}"), Style::new())]));
        }
        (None, fits) => {
            let score = factory.score.filter(|score| score.is_finite());
            let score = score.map(|score| format!("  score {score:.2}")).unwrap_or_default();
            let (word, style) = if fits { ("fits", theme::good()) } else { ("no", theme::bad()) };
            lines.push(vec![name, (word.to_owned(), style), (score, Style::new())]);
        }
    }
    for (term, value) in factory.terms.iter().filter(|(_, value)| value.is_finite()) {
        let style = if *value < 0.0 { theme::bad() } else { theme::good() };
        let (full, _) = theme::bar((value.abs(), 0.0), most, BAR);
        lines.push(vec![
            (format!("     {}", fit(term.label(), NAMES)), theme::faint()),
            (fit_right(&format!("{value:+.2}"), 7), Style::new()),
            (format!(" {}", "█".repeat(full)), style),
        ]);
    }
}
