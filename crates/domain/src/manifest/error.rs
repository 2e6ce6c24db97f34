//! What is wrong with a manifest, in words for the person who wrote it.
//!
//! Never shows raw parser or serde texts as the whole answer, and never repeats hostile input at length or
//! unescaped: the texts end up in terminals, logs and web pages.

use std::fmt;

use thiserror::Error;

/// How many problems are listed one by one; the rest is counted.
const SHOWN: usize = 50;
/// How much of a wrong value is repeated.
const QUOTED_CHARS: usize = 60;

/// All that was found wrong with a manifest, not just the first.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub struct ManifestError {
    pub problems: Vec<Problem>,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The path of the field, such as `budget.wall` or `deps[2]`; empty for the manifest as a whole.
    pub field: String,
    /// The line in the whole document, from 1; only Markdown has lines.
    pub line: Option<usize>,
    /// What is wrong and what would be right: a sentence of its own that names the field.
    pub message: String,
}

impl ManifestError {
    pub(super) fn whole(line: Option<usize>, message: impl Into<String>) -> Self {
        Self { problems: vec![Problem { field: String::new(), line, message: message.into() }] }
    }
}

impl fmt::Display for ManifestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            problem.fmt(f)?;
        }
        Ok(())
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        f.write_str(&self.message)
    }
}

/// Collects problems while the rest of the manifest is still being read.
#[derive(Debug, Default)]
pub(super) struct Problems {
    found: Vec<Problem>,
    left_out: usize,
}

impl Problems {
    pub(super) fn add(&mut self, field: &str, line: Option<usize>, message: impl Into<String>) {
        if self.found.len() < SHOWN {
            self.found.push(Problem { field: field.to_owned(), line, message: message.into() });
        } else {
            self.left_out += 1;
        }
    }

    /// In the order of the document, because that is how its author will walk through them.
    pub(super) fn into_error(mut self) -> Option<ManifestError> {
        if self.found.is_empty() {
            return None;
        }
        self.found.sort_by_key(|problem| problem.line);
        if self.left_out > 0 {
            let message = format!("and {} more problems", self.left_out);
            self.found.push(Problem { field: String::new(), line: None, message });
        }
        Some(ManifestError { problems: self.found })
    }
}

/// Text from outside, between quotes, escaped and cut to a length that fits into a sentence.
pub(super) fn quoted(text: &str) -> String {
    let mut shown: String = text.chars().take(QUOTED_CHARS).flat_map(char::escape_debug).collect();
    if text.chars().nth(QUOTED_CHARS).is_some() {
        shown.push('…');
    }
    format!("\"{shown}\"")
}

/// A key from outside as part of a field path.
pub(super) fn shortened(key: &str) -> String {
    key.chars().take(40).filter(|c| !is_unprintable(*c)).collect()
}

/// Control characters, and the marks that reorder or hide the text around them.
pub(super) fn is_unprintable(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// `a, b or c`
pub(super) fn either(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} or {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_text_is_cut_and_escaped() {
        let shown = quoted(&"\u{1b}[31m\n".repeat(1000));
        assert!(shown.len() < 600 && !shown.contains('\u{1b}') && !shown.contains('\n'), "{shown}");
        assert!(shown.ends_with("…\""));
        assert_eq!(quoted("lots"), "\"lots\"");
    }

    #[test]
    fn a_flood_of_problems_is_counted_not_listed() {
        let mut problems = Problems::default();
        for n in 0..1000 {
            problems.add("x", Some(1000 - n), "wrong");
        }
        let error = problems.into_error().unwrap();
        assert_eq!(error.problems.len(), SHOWN + 1);
        assert!(error.to_string().ends_with("and 950 more problems"));
        assert!(error.problems[0].line < error.problems[1].line, "in the order of the document");
    }
}
