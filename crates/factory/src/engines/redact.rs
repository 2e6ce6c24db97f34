//! Takes secrets out of text before anybody can read it: the ones that are known, however they are written (see
//! [`Leaks`]), and the ones that look like it.
//!
//! Works on whole lines, so a secret that arrives in two reads is still one.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use giga_domain::secret::Leaks;
use regex::Regex;

use super::engine::{JobSecret, Secret};

const BLOT: &str = "[redacted]";

/// What tokens look like; the first group, where there is one, is kept.
static SHAPES: LazyLock<Regex> = LazyLock::new(|| {
    let shapes = [
        r"\bgiga_[a-z]+_[A-Za-z0-9_-]{20,}",
        // Of a job: the same wherever it is met, also of another run.
        r"\bgigaj_[0-9A-Z]{26}_[0-9]+_[A-Za-z0-9]{20,}",
        r"\bgh[pousr]_[A-Za-z0-9]{20,}",
        r"\bgithub_pat_[A-Za-z0-9_]{20,}",
        r"\bglpat-[A-Za-z0-9_-]{16,}",
        r"\bsk-[A-Za-z0-9_-]{20,}",
        r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
        r"\bAIza[A-Za-z0-9_-]{30,}",
        r"\bxox[abeprs]-[A-Za-z0-9-]{10,}",
        r"\bapk_[A-Za-z0-9_-]{16,}",
        r"\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{5,}",
        r#"(?P<header>(?i:\bauthorization)["']?[ \t]*[:=][ \t]*["']?)?\b(?P<scheme>(?i:bearer|basic))[ \t]+(?P<token>[A-Za-z0-9._~+/=-]{8,})"#,
        r"://[^\s/:@]+:[^\s/@]+@",
    ];
    Regex::new(&shapes.join("|")).expect("the shapes are a constant that a test compiles")
});

#[derive(Debug, Clone, Default)]
pub(super) struct Redactor {
    known: Leaks,
}

impl Redactor {
    /// Those of the job by their names, the others without.
    pub(super) fn new<'a>(named: &[JobSecret], nameless: impl IntoIterator<Item = &'a Secret>) -> Self {
        let named = named.iter().map(|secret| (Some(secret.name.as_str()), secret.value.as_slice()));
        let nameless = nameless.into_iter().map(|secret| (None, secret.expose().as_bytes()));
        Self { known: Leaks::shown(named.chain(nameless)) }
    }

    pub(super) fn redact(&self, text: &str) -> String {
        let clean = self.known.redact(text);
        SHAPES
            .replace_all(&clean, |found: &regex::Captures<'_>| match found.name("scheme") {
                Some(scheme) => {
                    let header = found.name("header").map_or("", |header| header.as_str());
                    if header.is_empty() && !is_credential(scheme.as_str(), &found["token"]) {
                        return found[0].to_owned();
                    }
                    format!("{header}{} {BLOT}", scheme.as_str())
                }
                None if found[0].starts_with("://") => format!("://{BLOT}@"),
                None => BLOT.to_owned(),
            })
            .into_owned()
    }
}

/// Whether what stands behind the name of a scheme, and in no header, is one: people write about basic functionality and
/// bearer tokens too.
fn is_credential(scheme: &str, token: &str) -> bool {
    if scheme.eq_ignore_ascii_case("basic") {
        // A name and a password, and nothing else, is what it holds.
        let padding = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
        let decoder = GeneralPurpose::new(&alphabet::STANDARD, padding);
        return decoder.decode(token).is_ok_and(|bytes| bytes.contains(&b':'));
    }
    let is_mixed =
        token.contains(|c: char| c.is_ascii_uppercase()) && token.contains(|c: char| c.is_ascii_lowercase());
    token.contains(|c: char| c.is_ascii_digit()) || (is_mixed && token.len() >= 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn redact(secrets: &[&str], text: &str) -> String {
        let secrets: Vec<Secret> = secrets.iter().map(|text| Secret::new(*text)).collect();
        Redactor::new(&[], &secrets).redact(text)
    }

    #[test]
    fn known_secrets_go_also_inside_json_and_line_by_line() {
        assert_eq!(redact(&["hunter22"], "a hunter22 b hunter22"), "a [redacted] b [redacted]");
        assert_eq!(redact(&["pa\"ss\\word"], r#"{"x":"pa\"ss\\word"}"#), r#"{"x":"[redacted]"}"#);
        assert_eq!(redact(&["BEGIN KEY\nabcdefgh\nEND KEY"], "abcdefgh"), "[redacted]");
        assert_eq!(redact(&["secret", "secret-and-more"], "secret-and-more"), "[redacted]");
    }

    #[test]
    fn secrets_of_the_job_go_by_their_names() {
        let secret = JobSecret {
            name: "API_KEY".parse().unwrap(),
            place: giga_domain::SecretPlace::Env("API_KEY".to_owned()),
            value: b"hunter22".to_vec().into(),
        };
        // The same value is also among the factory's own.
        let redactor = Redactor::new(&[secret], &[Secret::new("hunter22")]);
        assert_eq!(redactor.redact("a hunter22 b aHVudGVyMjI="), "a [redacted API_KEY] b [redacted API_KEY]");
    }

    #[test]
    fn tokens_of_jobs_go_whoever_has_them() {
        let job = giga_domain::JobId::from_u128(7);
        let token = giga_domain::JobToken::new(&[1; 32], job, giga_domain::Epoch(3)).secret();
        for text in
            [format!("GIGA_TOKEN={}", token.reveal()), format!("{{\"token\":\"{}\"}}", token.reveal())]
        {
            let clean = redact(&[], &text);
            assert!(!clean.contains("gigaj_") && clean.contains("[redacted]"), "{clean}");
        }
        assert_eq!(redact(&[token.reveal()], &const_hex::encode(token.reveal())), "[redacted]");
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
        assert_eq!(redact(&[], "curl -H 'X: Basic dXNlcjpwYXNz'"), "curl -H 'X: Basic [redacted]'");
        assert_eq!(
            redact(&[], "\"Authorization\": \"Bearer letters-only\""),
            "\"Authorization\": \"Bearer [redacted]\""
        );
        assert_eq!(redact(&[], "Bearer eyabcdef0123"), "Bearer [redacted]");
        assert_eq!(redact(&[], "https://me:pass@host/x"), "https://[redacted]@host/x");
    }

    #[test]
    fn ordinary_words_stay() {
        for text in [
            "sk-learn",
            "task-0123456789-abcdefghij",
            "the bearer of news",
            "http://host:80/x",
            "AKIA",
            "Add basic functionality",
            "basic authentication, Basic JavaScript, basic-functionality",
            "bearer authentication and bearer tokens",
        ] {
            assert_eq!(redact(&[], text), text);
        }
    }
}
