//! The manifest's `verify` commands: each is run like a script of the shell engine, and the end of its output is kept.
//!
//! Decides nothing but whether a command passed. Output is redacted before it comes here.

use giga_domain::limits::CHECK_OUTPUT_BYTES;

/// The end of what a command printed.
#[derive(Debug, Default)]
pub(super) struct Tail(String);

impl Tail {
    pub(super) fn line(&mut self, line: &str) {
        let kept = line.chars().filter(|c| !c.is_control() || *c == '\t');
        self.0.extend(kept);
        self.0.push('\n');
        // Not with every line: what is cut off is copied.
        if self.0.len() > 16 * CHECK_OUTPUT_BYTES {
            self.cut();
        }
    }

    pub(super) fn take(mut self) -> String {
        self.cut();
        self.0
    }

    /// To whole lines, where one fits.
    fn cut(&mut self) {
        let Some(over) = self.0.len().checked_sub(CHECK_OUTPUT_BYTES).filter(|over| *over > 0) else {
            return;
        };
        let from = self.0.ceil_char_boundary(over);
        let rest = &self.0[from..];
        let line = match rest.find('\n') {
            Some(end) if end + 1 < rest.len() => end + 1,
            _ => 0,
        };
        self.0.drain(..from + line);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_is_kept_in_whole_lines() {
        let mut tail = Tail::default();
        for number in 0..100_000 {
            tail.line(&format!("line {number}"));
        }
        let kept = tail.take();
        assert!(kept.len() <= CHECK_OUTPUT_BYTES && kept.len() > CHECK_OUTPUT_BYTES - 20, "{}", kept.len());
        assert!(kept.starts_with("line ") && kept.ends_with("line 99999\n"), "{kept}");
    }

    #[test]
    fn a_line_that_is_too_long_is_cut_between_characters() {
        let mut tail = Tail::default();
        tail.line(&"é".repeat(CHECK_OUTPUT_BYTES));
        let kept = tail.take();
        assert!(kept.len() <= CHECK_OUTPUT_BYTES && kept.ends_with("éé\n"));
    }

    #[test]
    fn control_characters_go() {
        let mut tail = Tail::default();
        tail.line("\u{1b}[31mred\u{7}\tx\r");
        assert_eq!(tail.take(), "[31mred\tx\n");
    }
}
