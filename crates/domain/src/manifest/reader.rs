//! Reads typed values out of the tree and notes every problem on the way.
//!
//! Never stops at the first problem, and never decides a default: a value that is absent, null or refused is
//! `None`, and the caller fills in. Whether there is a manifest at all is decided once, at the end.

use std::ops::RangeInclusive;

use strum::VariantArray;

use super::error::{Problems, either, is_unprintable, quoted, shortened};
use super::quantity::{self, format_duration};
use super::suggest;
use super::tree::{Node, Value};
use crate::Usd;

/// A map with a fixed set of keys.
pub(super) struct Section<'t> {
    path: String,
    line: Option<usize>,
    entries: &'t [(Node, Node)],
}

/// A value and how to name it in a message.
pub(super) struct Field<'t> {
    pub(super) path: String,
    pub(super) node: &'t Node,
}

impl<'t> Section<'t> {
    /// Refuses whatever is not a map, and every key that is not `known`.
    pub(super) fn open(
        path: &str,
        node: &'t Node,
        known: &[&'static str],
        problems: &mut Problems,
    ) -> Option<Self> {
        let entries: &[(Node, Node)] = match &node.value {
            Value::Map(entries) => entries,
            Value::Null => &[],
            _ => {
                let subject = if path.is_empty() { "the manifest" } else { path };
                let message = format!(
                    "{subject} must be a map with the keys {}; it is {}",
                    known.join(", "),
                    node.described()
                );
                problems.add(path, node.line, message);
                return None;
            }
        };
        let section = Self { path: path.to_owned(), line: node.line, entries };
        for (key, _) in entries {
            section.check_key(key, known, problems);
        }
        Some(section)
    }

    fn check_key(&self, key: &Node, known: &[&'static str], problems: &mut Problems) {
        let Value::Text(word) = &key.value else {
            let message = format!(
                "{} is not a key of {}; the keys are {}",
                key.described(),
                self.name(),
                known.join(", ")
            );
            problems.add(&self.path, key.line, message);
            return;
        };
        if known.contains(&word.as_str()) {
            return;
        }
        let hint = match suggest(word, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the keys are {}", known.join(", ")),
        };
        let message = format!("{} is not a key of {}; {hint}", quoted(word), self.name());
        problems.add(&self.path_of(&shortened(word)), key.line, message);
    }

    fn name(&self) -> &str {
        if self.path.is_empty() { "a manifest" } else { &self.path }
    }

    fn path_of(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// The value of a key; a key with nothing after it counts as left out.
    pub(super) fn get(&self, key: &str) -> Option<Field<'t>> {
        let is_key = |node: &Node| matches!(&node.value, Value::Text(word) if word == key);
        let (_, node) = self.entries.iter().find(|(name, _)| is_key(name))?;
        (node.value != Value::Null).then(|| Field { path: self.path_of(key), node })
    }

    /// As `get`, for a key that must be there.
    pub(super) fn require(&self, key: &str, such_as: &str, problems: &mut Problems) -> Option<Field<'t>> {
        let field = self.get(key);
        if field.is_none() {
            let path = self.path_of(key);
            problems.add(&path, self.line, format!("{path} is required, such as `{such_as}`"));
        }
        field
    }
}

impl<'t> Field<'t> {
    pub(super) fn refuse(&self, message: impl AsRef<str>, problems: &mut Problems) {
        problems.add(&self.path, self.node.line, format!("{} {}", self.path, message.as_ref()));
    }

    /// `must be …; it is …`
    pub(super) fn expected(&self, what: &str, problems: &mut Problems) {
        self.refuse(format!("must be {what}; it is {}", self.node.described()), problems);
    }

    /// Any text without NUL, which no shell, file name or database takes.
    pub(super) fn text(&self, what: &str, problems: &mut Problems) -> Option<&'t str> {
        match &self.node.value {
            Value::Text(text) if text.contains('\0') => {
                self.refuse("must not contain the character NUL (U+0000)", problems);
                None
            }
            Value::Text(text) => Some(text),
            Value::Integer(_) | Value::Float(_) | Value::Bool(_) => {
                let given = self.node.described();
                let message = format!("must be {what}; {given} is not text unless it is quoted: \"{given}\"");
                self.refuse(message, problems);
                None
            }
            _ => {
                self.expected(what, problems);
                None
            }
        }
    }

    /// One line that can be shown anywhere.
    pub(super) fn printable(&self, most: usize, problems: &mut Problems) -> Option<String> {
        let what = format!("1 to {most} printable characters");
        let text = self.text(&what, problems)?;
        let length = text.chars().count();
        if length > most {
            self.refuse(format!("must be {what}; it has {length}"), problems);
            return None;
        }
        if let Some(hidden) = text.chars().find(|c| is_unprintable(*c)) {
            let message =
                format!("must be {what}; it contains U+{:04X}, which does not print", u32::from(hidden));
            self.refuse(message, problems);
            return None;
        }
        if text.trim().is_empty() {
            self.refuse(format!("must be {what}; it is blank"), problems);
            return None;
        }
        Some(text.to_owned())
    }

    /// A command or script: it may have several lines, but must say something.
    pub(super) fn command(&self, what: &str, problems: &mut Problems) -> Option<String> {
        let text = self.text(what, problems)?;
        if text.trim().is_empty() {
            self.refuse(format!("must be {what}; it is blank"), problems);
            return None;
        }
        Some(text.to_owned())
    }

    /// One of a few words.
    pub(super) fn word<T>(&self, problems: &mut Problems) -> Option<T>
    where
        T: Copy + Into<&'static str> + VariantArray,
    {
        let names: Vec<&str> = T::VARIANTS.iter().map(|value| (*value).into()).collect();
        let Value::Text(given) = &self.node.value else {
            self.expected(&either(&names), problems);
            return None;
        };
        let found = T::VARIANTS.iter().copied().find(|value| (*value).into() == given.as_str());
        if found.is_none() {
            let hint = suggest(given, names.iter().copied())
                .map(|near| format!("; did you mean `{near}`?"))
                .unwrap_or_default();
            let message = format!("must be {}; it is {}{hint}", either(&names), quoted(given));
            self.refuse(message, problems);
        }
        found
    }

    pub(super) fn whole_number(&self, range: RangeInclusive<u64>, problems: &mut Problems) -> Option<u64> {
        let number = match &self.node.value {
            Value::Integer(integer) => u64::try_from(*integer).ok(),
            // JSON and YAML both have one kind of number: 3.0 and 2e5 are whole.
            Value::Float(float) if float.fract() == 0.0 && (0.0..1e15).contains(float) => Some(*float as u64),
            _ => None,
        };
        let number = number.filter(|number| range.contains(number));
        if number.is_none() {
            self.expected(&format!("a whole number from {} to {}", range.start(), range.end()), problems);
        }
        number
    }

    pub(super) fn dollars(&self, problems: &mut Problems) -> Option<Usd> {
        const MOST: i64 = 1_000_000;
        let usd = match &self.node.value {
            Value::Integer(integer) => i64::try_from(*integer).ok().map(Usd::from_dollars),
            Value::Float(float) if *float >= 0.0 => Usd::from_f64(*float),
            _ => None,
        };
        let usd = usd.filter(|usd| (Usd::ZERO..=Usd::from_dollars(MOST)).contains(usd));
        if usd.is_none() {
            self.expected(&format!("a number of dollars from 0 to {MOST}, such as 2.50"), problems);
        }
        usd
    }

    /// A duration as milliseconds.
    pub(super) fn duration(&self, range: RangeInclusive<u64>, problems: &mut Problems) -> Option<u64> {
        let (least, most) = (format_duration(*range.start()), format_duration(*range.end()));
        let what = format!("a duration from {least} to {most}, such as 30s, 20m or 1m30s");
        match &self.node.value {
            Value::Text(text) => {
                let millis = quantity::parse_duration(text).filter(|millis| range.contains(millis));
                if millis.is_none() {
                    self.expected(&what, problems);
                }
                millis
            }
            Value::Integer(_) | Value::Float(_) => {
                let given = self.node.described();
                let message = format!("must be {what}; {given} has no unit: {given}s or {given}m?");
                self.refuse(message, problems);
                None
            }
            _ => {
                self.expected(&what, problems);
                None
            }
        }
    }

    /// The items of a list; one value that stands alone is a list of one.
    pub(super) fn items(&self, what: &str, most: usize, problems: &mut Problems) -> Vec<Field<'t>> {
        let Value::List(items) = &self.node.value else {
            if matches!(self.node.value, Value::Map(_)) {
                self.expected(&format!("a list of {what}"), problems);
                return Vec::new();
            }
            return vec![Field { path: self.path.clone(), node: self.node }];
        };
        if items.len() > most {
            self.refuse(format!("may list at most {most} {what}; it lists {}", items.len()), problems);
            return Vec::new();
        }
        let numbered = items.iter().enumerate();
        numbered.map(|(index, node)| Field { path: format!("{}[{index}]", self.path), node }).collect()
    }
}
