//! Colours that mean something, from the sixteen that every terminal has.

use giga_api::wire::Stage;
use giga_domain::Phase;
use ratatui::style::{Color, Modifier, Style};

use crate::model::Tone;

pub(super) fn title() -> Style {
    Style::new().add_modifier(Modifier::BOLD)
}

pub(super) fn faint() -> Style {
    Style::new().fg(Color::DarkGray)
}

pub(super) fn command() -> Style {
    Style::new().fg(Color::Cyan)
}

pub(super) fn good() -> Style {
    Style::new().fg(Color::Green)
}

pub(super) fn warn() -> Style {
    Style::new().fg(Color::Yellow)
}

pub(super) fn bad() -> Style {
    Style::new().fg(Color::Red)
}

pub(super) fn loud() -> Style {
    bad().add_modifier(Modifier::BOLD)
}

pub(super) fn selected() -> Style {
    Style::new().add_modifier(Modifier::REVERSED)
}

pub(super) fn tone(tone: Tone) -> Style {
    match tone {
        Tone::Plain => Style::new(),
        Tone::Good => good(),
        Tone::Bad => bad(),
    }
}

pub(super) fn stage(stage: Stage) -> Style {
    match stage.phase() {
        Phase::Queued => Style::new(),
        Phase::Blocked => warn(),
        Phase::Running | Phase::Shipping => Style::new().fg(Color::Blue),
        Phase::Review | Phase::Ready => Style::new().fg(Color::Magenta),
        Phase::Shipped => good(),
        Phase::Failed => bad(),
        Phase::Cancelled => faint(),
    }
}

/// Cells of a bar: so many full ones, so many half-tone ones, the rest empty. More than all is all.
pub(super) fn bar(parts: (f64, f64), whole: f64, cells: usize) -> (usize, usize) {
    let share = |part: f64| {
        let share = part / whole;
        if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 }
    };
    let scaled = |part: f64| {
        let exact = share(part) * cells as f64;
        // Something is never nothing.
        if exact > 0.0 { (exact.round() as usize).max(1) } else { 0 }
    };
    let full = scaled(parts.0).min(cells);
    let both = scaled(parts.0 + parts.1).min(cells);
    (full, both.saturating_sub(full).max(usize::from(parts.1 > 0.0 && full < cells)))
}

pub(super) fn bar_text(parts: (f64, f64), whole: f64, cells: usize) -> String {
    let (full, half) = bar(parts, whole, cells);
    let empty = cells.saturating_sub(full + half);
    format!("{}{}{}", "█".repeat(full), "▒".repeat(half), "░".repeat(empty))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_never_nonsense() {
        assert_eq!(bar_text((5.0, 0.0), 10.0, 4), "██░░");
        assert_eq!(bar_text((0.01, 0.0), 10.0, 4), "█░░░");
        assert_eq!(bar_text((5.0, 2.5), 10.0, 4), "██▒░");
        assert_eq!(bar_text((99.0, 99.0), 10.0, 4), "████");
        for whole in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            for part in [0.0, 1.0, f64::NAN] {
                assert_eq!(bar_text((part, part), whole, 4).chars().count(), 4, "{part} of {whole}");
            }
        }
    }
}
