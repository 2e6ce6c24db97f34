//! Takes secrets out of text before anybody can read it: the ones that are known and the ones that look like it.
//!
//! Works on whole lines, so a secret that arrives in two reads is still one. It never tries to be clever about short
//! words: a secret of fewer than six characters would blot out the log.

use std::sync::LazyLock;

use regex::Regex;

use super::engine::Secret;

const SHORTEST: usize = 6;
const BLOT: &str = "[redacted]";

/// What tokens look like; the first group, where there is one, is kept.
static SHAPES: LazyLock<Regex> = LazyLock::new(|| {
    let shapes = [
        r"\bgiga_[a-z]+_[A-Za-z0-9_-]{20,}",
        r"\bgh[pousr]_[A-Za-z0-9]{20,}",
        r"\bgithub_pat_[A-Za-z0-9_]{20,}",
        r"\bglpat-[A-Za-z0-9_-]{16,}",
        r"\bsk-[A-Za-z0-9_-]{20,}",
        r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
        r"\bAIza[A-Za-z0-9_-]{30,}",
        r"\bxox[abeprs]-[A-Za-z0-9-]{10,}",
        r"\bapk_[A-Za-z0-9_-]{16,}",
        r"\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{5,}",
        r"(?i:\b(?P<scheme>bearer|basic)[ \t]+)[A-Za-z0-9._~+/=-]{8,}",
        r"://[^\s/:@]+:[^\s/@]+@",
    ];
    Regex::new(&shapes.join("|")).expect("the shapes are a constant that a test compiles")
});

#[derive(Debug, Clone, Default)]
pub(super) struct Redactor {
    /// Longest first, so that a secret inside another leaves nothing of the outer one.
    known: Vec<String>,
}

impl Redactor {
    pub(super) fn new<'a>(secrets: impl IntoIterator<Item = &'a Secret>) -> Self {
        let mut known: Vec<String> = secrets
            .into_iter()
            // A key of several lines is met line by line.
            .flat_map(|secret| secret.expose().lines())
            .map(str::trim)
            .filter(|line| line.len() >= SHORTEST)
            .flat_map(|line| [line.to_owned(), as_in_json(line)])
            .collect();
        known.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        known.dedup();
        Self { known }
    }

    pub(super) fn redact(&self, text: &str) -> String {
        let mut clean = text.to_owned();
        for secret in &self.known {
            if clean.contains(secret.as_str()) {
                clean = clean.replace(secret.as_str(), BLOT);
            }
        }
        SHAPES
            .replace_all(&clean, |found: &regex::Captures<'_>| match found.name("scheme") {
                Some(scheme) => format!("{} {BLOT}", scheme.as_str()),
                None if found[0].starts_with("://") => format!("://{BLOT}@"),
                None => BLOT.to_owned(),
            })
            .into_owned()
    }
}

/// The secret as it stands inside a JSON string.
fn as_in_json(secret: &str) -> String {
    serde_json::Value::from(secret).to_string().trim_matches('"').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redact(secrets: &[&str], text: &str) -> String {
        let secrets: Vec<Secret> = secrets.iter().map(|text| Secret::new(*text)).collect();
        Redactor::new(&secrets).redact(text)
    }

    #[test]
    fn known_secrets_go_also_inside_json_and_line_by_line() {
        assert_eq!(redact(&["hunter22"], "a hunter22 b hunter22"), "a [redacted] b [redacted]");
        assert_eq!(redact(&["pa\"ss\\word"], r#"{"x":"pa\"ss\\word"}"#), r#"{"x":"[redacted]"}"#);
        assert_eq!(redact(&["BEGIN KEY\nabcdefgh\nEND KEY"], "abcdefgh"), "[redacted]");
        assert_eq!(redact(&["secret", "secret-and-more"], "secret-and-more"), "[redacted]");
    }

    #[test]
    fn a_short_secret_does_not_blot_out_the_log() {
        assert_eq!(redact(&["a", "", "  "], "a banana"), "a banana");
    }

    #[test]
    fn things_that_look_like_tokens_go() {
        for token in [
            "giga_factory_0123456789abcdefghijABCDEFGHIJ",
            "ghp_0123456789abcdefghijABCDEFGHIJ012345",
            "github_pat_0123456789abcdefghij_ABC",
            "sk-ant-api03-0123456789abcdef",
            "sk-proj-0123456789abcdefghijkl",
            "AKIAIOSFODNN7EXAMPLE",
            "AIzaSyA0123456789abcdefghijklmnopqrstuv",
            "xoxb-1234567890-abcdef",
        ] {
            assert_eq!(redact(&[], &format!("x {token} y")), "x [redacted] y", "{token}");
            assert_eq!(redact(&[], &format!("\"{token}\"")), "\"[redacted]\"", "{token}");
        }
        assert_eq!(redact(&[], "Authorization: Bearer abc.DEF-123"), "Authorization: Bearer [redacted]");
        assert_eq!(redact(&[], "authorization: basic dXNlcjpwYXNz"), "authorization: basic [redacted]");
        assert_eq!(redact(&[], "https://me:pass@host/x"), "https://[redacted]@host/x");
    }

    #[test]
    fn ordinary_words_stay() {
        for text in
            ["sk-learn", "task-0123456789-abcdefghij", "the bearer of news", "http://host:80/x", "AKIA"]
        {
            assert_eq!(redact(&[], text), text);
        }
    }
}
