//! Finds secrets in text and bytes: as they are, and as programs commonly write them.
//!
//! What is looked for: the value, each of its lines, the same as JSON has it, as URLs have it, in hexadecimal digits, and
//! in Base64, also in the middle of something longer. Whatever else is done to a value (compression, encryption, another
//! alphabet, a letter per line) is not found. It never tries to be clever about short words.

use std::fmt::{self, Write as _};
use std::sync::Arc;

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};

use crate::limits::SECRET_LEAST_BYTES;

/// Of a value with several lines, such lines are also in files that hold no secret.
const SHORTEST_TELLING_LINE: usize = 16;
/// A shorter line with a blank in it may well be ordinary text.
const SHORTEST_TELLING_TEXT: usize = 64;
/// A piece of Base64 or of a URL that is shorter says too little.
const SHORTEST_PIECE: usize = 7;
/// How `base64` and `openssl` break lines.
const ROWS: [usize; 2] = [76, 64];

/// What to look for. Debugging shows names only.
#[derive(Clone, Default)]
pub struct Leaks(Option<Arc<Found>>);

struct Found {
    automaton: AhoCorasick,
    /// Whose pattern each is.
    owners: Vec<Option<String>>,
    longest: usize,
}

impl Leaks {
    /// For text that is to be shown: every line of a value counts. A secret without a name is blotted out namelessly.
    pub fn shown<'a>(secrets: impl IntoIterator<Item = (Option<&'a str>, &'a [u8])>) -> Self {
        Self::new(secrets, |_| true)
    }

    /// For what is refused when it contains one: lines that could stand anywhere do not count.
    pub fn kept_back<'a>(secrets: impl IntoIterator<Item = (&'a str, &'a [u8])>) -> Self {
        Self::new(secrets.into_iter().map(|(name, value)| (Some(name), value)), |line| {
            let has_blank = line.iter().any(u8::is_ascii_whitespace);
            line.len() >= if has_blank { SHORTEST_TELLING_TEXT } else { SHORTEST_TELLING_LINE }
        })
    }

    fn new<'a>(
        secrets: impl IntoIterator<Item = (Option<&'a str>, &'a [u8])>,
        counts: fn(&[u8]) -> bool,
    ) -> Self {
        let mut patterns: Vec<(Vec<u8>, Option<String>)> = Vec::new();
        for (name, value) in secrets {
            for form in forms(value, counts) {
                patterns.push((form, name.map(str::to_owned)));
            }
        }
        // Of the same pattern the one with a name stays.
        patterns
            .sort_by(|a, b| a.0.cmp(&b.0).then_with(|| (a.1.is_none(), &a.1).cmp(&(b.1.is_none(), &b.1))));
        patterns.dedup_by(|a, b| a.0 == b.0);
        let longest = patterns.iter().map(|(pattern, _)| pattern.len()).max().unwrap_or(0);
        let automaton = AhoCorasick::builder()
            .match_kind(MatchKind::LeftmostLongest)
            .build(patterns.iter().map(|(pattern, _)| pattern));
        let owners = patterns.into_iter().map(|(_, owner)| owner).collect();
        let found = automaton.ok().filter(|_| longest > 0);
        Self(found.map(|automaton| Arc::new(Found { automaton, owners, longest })))
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The text without them: `[redacted]`, or `[redacted NAME]` for one that has a name.
    pub fn redact(&self, text: &str) -> String {
        let Some(found) = self.0.as_deref().filter(|found| found.automaton.is_match(text)) else {
            return text.to_owned();
        };
        let mut clean = String::with_capacity(text.len());
        found.automaton.replace_all_with(text, &mut clean, |hit, _, clean| {
            match &found.owners[hit.pattern().as_usize()] {
                Some(name) => {
                    clean.push_str("[redacted ");
                    clean.push_str(name);
                    clean.push(']');
                }
                None => clean.push_str("[redacted]"),
            }
            true
        });
        clean
    }

    /// The name of the first secret in there.
    pub fn find(&self, bytes: &[u8]) -> Option<&str> {
        let found = self.0.as_deref()?;
        let hit = found.automaton.find(bytes)?;
        found.owners[hit.pattern().as_usize()].as_deref()
    }

    /// The same for what comes in pieces.
    pub fn piecewise(&self) -> PiecewiseCheck {
        PiecewiseCheck { leaks: self.clone(), tail: Vec::new() }
    }
}

impl fmt::Debug for Leaks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Leaks").field("is_empty", &self.is_empty()).finish_non_exhaustive()
    }
}

/// Remembers the end of the piece before, in which a secret may have begun.
#[derive(Debug)]
pub struct PiecewiseCheck {
    leaks: Leaks,
    tail: Vec<u8>,
}

impl PiecewiseCheck {
    pub fn next(&mut self, piece: &[u8]) -> Option<String> {
        let longest = self.leaks.0.as_deref()?.longest;
        self.tail.extend_from_slice(piece);
        if let Some(name) = self.leaks.find(&self.tail) {
            return Some(name.to_owned());
        }
        let spent = self.tail.len().saturating_sub(longest);
        self.tail.drain(..spent);
        None
    }
}

/// Everything that counts as the value.
fn forms(value: &[u8], counts: fn(&[u8]) -> bool) -> Vec<Vec<u8>> {
    let mut forms = Vec::new();
    let whole = value.trim_ascii();
    if whole.len() >= SECRET_LEAST_BYTES {
        written(whole, &mut forms);
        if whole.len() < value.len() {
            forms.extend(base64_forms(value));
        }
    }
    let lines: Vec<&[u8]> =
        whole.split(|byte| matches!(byte, b'\n' | b'\r')).map(<[u8]>::trim_ascii).collect();
    if lines.len() > 1 {
        for line in lines {
            // The fences of a PEM file are in every other one.
            let is_fence = line.starts_with(b"-----");
            if line.len() >= SECRET_LEAST_BYTES && !is_fence && counts(line) {
                written(line, &mut forms);
            }
        }
    }
    forms.retain(|form| form.len() >= SECRET_LEAST_BYTES);
    forms
}

fn written(value: &[u8], forms: &mut Vec<Vec<u8>>) {
    forms.push(value.to_vec());
    forms.push(const_hex::encode(value).into_bytes());
    forms.push(const_hex::encode_upper(value).into_bytes());
    forms.extend(base64_forms(value));
    forms.extend(url_forms(value));
    if let Ok(text) = std::str::from_utf8(value) {
        let json = serde_json::Value::from(text).to_string();
        let inner = json[1..json.len() - 1].to_owned();
        // A string in a string, as logs of JSON in JSON have it.
        let twice = serde_json::Value::from(inner.as_str()).to_string();
        forms.push(twice.as_bytes()[1..twice.len() - 1].to_vec());
        forms.push(in_ascii(&inner).into_bytes());
        forms.push(inner.replace('/', "\\/").into_bytes());
        forms.push(inner.into_bytes());
    }
}

/// As JSON that keeps to ASCII writes it.
fn in_ascii(text: &str) -> String {
    let mut ascii = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii() {
            ascii.push(c);
        } else {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                let _ = write!(ascii, "\\u{unit:04x}");
            }
        }
    }
    ascii
}

/// Alone, with and without padding, in rows, and inside something longer: there it may begin at any of three places, and
/// the letters at its ends also hold bits of what is around it.
fn base64_forms(value: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = Vec::new();
    for (padded, plain) in [(&STANDARD, &STANDARD_NO_PAD), (&URL_SAFE, &URL_SAFE_NO_PAD)] {
        for alone in [padded.encode(value).into_bytes(), plain.encode(value).into_bytes()] {
            for row in ROWS.into_iter().filter(|row| alone.len() > *row) {
                forms.extend(alone.chunks(row).filter(|row| row.len() >= SHORTEST_PIECE).map(<[u8]>::to_vec));
            }
            forms.push(alone);
        }
        for before in 0..3 {
            let mut longer = vec![0; before];
            longer.extend_from_slice(value);
            let letters = plain.encode(&longer).into_bytes();
            let (first, last) = ((before * 8).div_ceil(6), longer.len() * 8 / 6);
            let own = &letters[first..last];
            if own.len() >= SHORTEST_PIECE {
                forms.push(own.to_vec());
            }
        }
    }
    forms
}

/// Escaped as little and as much as URLs and forms are.
fn url_forms(value: &[u8]) -> Vec<Vec<u8>> {
    let escape = |keeps: fn(u8) -> bool, capital: bool, plus: bool| {
        let mut text = Vec::with_capacity(value.len());
        for byte in value {
            match byte {
                b' ' if plus => text.push(b'+'),
                byte if keeps(*byte) => text.push(*byte),
                byte if capital => text.extend_from_slice(format!("%{byte:02X}").as_bytes()),
                byte => text.extend_from_slice(format!("%{byte:02x}").as_bytes()),
            }
        }
        text
    };
    let unreserved = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let component = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!'()*".contains(&byte);
    let path = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!'()*/:@&=+$,;".contains(&byte);
    let form = |byte: u8| byte.is_ascii_alphanumeric() || b"*-._".contains(&byte);
    let mut forms = Vec::new();
    for keeps in [unreserved as fn(u8) -> bool, component, path, form] {
        for capital in [true, false] {
            forms.push(escape(keeps, capital, false));
            forms.push(escape(keeps, capital, true));
        }
    }
    forms
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(value: &str, text: &str) -> String {
        Leaks::shown([(Some("KEY"), value.as_bytes())]).redact(text)
    }

    #[test]
    fn a_value_goes_however_it_is_written() {
        let value = "p4ss \"wörd\"/+&=<x>";
        for written in [
            value.to_owned(),
            const_hex::encode(value),
            const_hex::encode_upper(value),
            STANDARD.encode(value),
            STANDARD_NO_PAD.encode(value),
            URL_SAFE.encode(value),
            URL_SAFE_NO_PAD.encode(value),
            r#"p4ss \"wörd\"/+&=<x>"#.to_owned(),
            r#"p4ss \"w\u00f6rd\"/+&=<x>"#.to_owned(),
            r#"p4ss \\\"wörd\\\"/+&=<x>"#.to_owned(),
            "p4ss%20%22w%C3%B6rd%22%2F%2B%26%3D%3Cx%3E".to_owned(),
            "p4ss%20%22w%c3%b6rd%22%2f%2b%26%3d%3cx%3e".to_owned(),
            "p4ss+%22w%C3%B6rd%22%2F%2B%26%3D%3Cx%3E".to_owned(),
        ] {
            assert_eq!(shown(value, &format!("a {written} b")), "a [redacted KEY] b");
            let kept_back = Leaks::kept_back([("KEY", value.as_bytes())]);
            assert_eq!(kept_back.find(written.as_bytes()), Some("KEY"), "{written}");
        }
    }

    #[test]
    fn base64_of_something_longer_is_found_at_every_place() {
        let leaks = Leaks::kept_back([("KEY", b"hunter22-hunter22".as_slice())]);
        for before in ["", "u", "us", "user:"] {
            for after in ["", "\n", "!!", ":x"] {
                let text = format!("{before}hunter22-hunter22{after}");
                for written in [STANDARD.encode(&text), URL_SAFE_NO_PAD.encode(&text)] {
                    assert_eq!(leaks.find(written.as_bytes()), Some("KEY"), "{text:?}");
                }
            }
        }
        assert_eq!(leaks.find(STANDARD.encode("hunter23-hunter23").as_bytes()), None);
    }

    #[test]
    fn long_values_are_found_row_by_row_and_line_by_line() {
        let long: String = (0..200).map(|n: u32| char::from(b'a' + (n * 7 % 26) as u8)).collect();
        for row in STANDARD.encode(&long).as_bytes().chunks(76) {
            let row = std::str::from_utf8(row).unwrap();
            assert_eq!(shown(&long, row), "[redacted KEY]");
        }
        let key = "-----BEGIN KEY-----\nabcdefghijklmnopqrst\nshort1\n-----END KEY-----\n";
        assert_eq!(shown(key, "x abcdefghijklmnopqrst y"), "x [redacted KEY] y");
        assert_eq!(shown(key, "short1"), "[redacted KEY]");
        assert_eq!(shown(key, "-----BEGIN KEY-----"), "-----BEGIN KEY-----");
        let kept_back = Leaks::kept_back([("KEY", key.as_bytes())]);
        assert_eq!(kept_back.find(b"abcdefghijklmnopqrst"), Some("KEY"));
        assert_eq!(kept_back.find(b"short1"), None, "it could stand anywhere");
        assert_eq!(kept_back.find(key.as_bytes()), Some("KEY"));
    }

    #[test]
    fn pieces_hide_nothing() {
        let leaks = Leaks::kept_back([("KEY", b"hunter22".as_slice())]);
        let text = b"...................................................hunter22.......";
        for size in 1..text.len() {
            let mut check = leaks.piecewise();
            let found = text.chunks(size).find_map(|piece| check.next(piece));
            assert_eq!(found.as_deref(), Some("KEY"), "{size}");
        }
        let mut check = leaks.piecewise();
        assert!(text[..40].chunks(3).all(|piece| check.next(piece).is_none()));
    }

    #[test]
    fn short_words_and_nothing_are_left_alone() {
        assert_eq!(shown("abc", "abc abc"), "abc abc");
        assert!(Leaks::shown([(None, b"".as_slice())]).is_empty());
        assert_eq!(Leaks::default().redact("text"), "text");
        assert_eq!(Leaks::shown([(None, b"hunter22".as_slice())]).redact("hunter22"), "[redacted]");
        assert!(!format!("{:?}", Leaks::shown([(None, b"hunter22".as_slice())])).contains("hunter"));
    }
}
