//! Amounts as pictures of block characters.

use std::fmt::Write;

const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// How much of a limit is spent (full) and reserved (half-tone), in `width` cells. Whatever there is shows, however
/// little; what is over the limit fills the bar.
pub(crate) fn bar(spent: f64, reserved: f64, limit: f64, width: usize) -> String {
    let cells = |amount: f64| -> usize {
        if amount <= 0.0 {
            0
        } else if amount >= limit {
            width
        } else {
            ((amount / limit * width as f64).round() as usize).clamp(1, width)
        }
    };
    let full = cells(spent);
    let half = cells(spent + reserved).max(full + usize::from(reserved > 0.0)).min(width);
    format!("{}{}{}", "█".repeat(full), "▒".repeat(half - full), "░".repeat(width - half))
}

/// Columns from the bottom up, `height` lines; `top` is where a column reaches the top. Nothing at all is an empty picture.
pub(crate) fn columns(values: &[f64], top: f64, height: usize) -> Vec<String> {
    let steps = |value: &f64| -> usize {
        if *value <= 0.0 || top <= 0.0 {
            0
        } else {
            ((value / top * (height * 8) as f64).round() as usize).clamp(1, height * 8)
        }
    };
    let steps: Vec<usize> = values.iter().map(steps).collect();
    let line = |row: usize| {
        let below = (height - 1 - row) * 8;
        let mut text = String::new();
        for step in &steps {
            let _ = write!(text, "{}", EIGHTHS[step.saturating_sub(below).min(8)]);
        }
        text
    };
    (0..height).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_shows_what_there_is_and_never_more_than_there_is_room() {
        assert_eq!(bar(0.0, 0.0, 10.0, 10), "░░░░░░░░░░");
        assert_eq!(bar(5.0, 2.0, 10.0, 10), "█████▒▒░░░");
        assert_eq!(bar(0.001, 0.001, 10.0, 10), "█▒░░░░░░░░", "little is not nothing");
        assert_eq!(bar(12.0, 5.0, 10.0, 10), "██████████");
        assert_eq!(bar(0.0, 0.0, 0.0, 4), "░░░░", "nothing of nothing is no division by nothing");
        assert_eq!(bar(1.0, 0.0, 0.0, 4), "████");
    }

    #[test]
    fn columns_grow_by_eighths() {
        assert_eq!(columns(&[0.0, 1.0, 8.0, 12.0, 16.0], 16.0, 2), ["   ▄█", " ▁███"]);
        assert_eq!(columns(&[0.0, 0.0], 0.0, 1), ["  "]);
        assert_eq!(columns(&[-1.0, f64::MIN_POSITIVE, 99.0], 16.0, 1), [" ▁█"]);
    }
}
