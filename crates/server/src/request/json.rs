//! JSON bodies, and what is wrong with one in words for the person who sent it.
//!
//! The parser's own texts name Rust types; they are translated, never shown as they are.

use serde::de::DeserializeOwned;
use serde_path_to_error::{Path, Segment};

use super::{check, did_you_mean, shown};
use crate::problem::Problem;

pub(super) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    // A derived type would also take its fields as a list, by position; that is no part of the API.
    if bytes.trim_ascii_start().first() == Some(&b'[') {
        return Err(Problem::field("body", "it must be an object, not a list"));
    }
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let path = spelled(error.path());
        explain(&path, error.inner())
    })?;
    reader.end().map_err(|error| explain("", &error))?;
    Ok(value)
}

fn spelled(path: &Path) -> String {
    let mut text = String::new();
    for segment in path {
        match segment {
            Segment::Seq { index } => text.extend(["[", &index.to_string(), "]"]),
            Segment::Map { key } | Segment::Enum { variant: key } => {
                if !text.is_empty() {
                    text.push('.');
                }
                text.push_str(&shown(key));
            }
            Segment::Unknown => {}
        }
    }
    text
}

fn explain(path: &str, error: &serde_json::Error) -> Problem {
    let place = format!("line {}, column {}", error.line(), error.column());
    if !error.is_data() {
        let text = error.to_string();
        let what = text.split(" at line ").next().unwrap_or_default();
        return Problem::field("body", format!("it is not JSON: {what} ({place})"));
    }
    let text = error.to_string();
    let text = text.split(" at line ").next().unwrap_or_default();
    let words: Vec<&str> = text.split('`').skip(1).step_by(2).collect();
    if text.starts_with("unknown field") {
        let (given, known) = words.split_first().map_or(("", &[][..]), |(given, known)| (*given, known));
        let near = did_you_mean(given, known.iter().copied());
        let message = format!("unknown field{near} The fields are {}", known.join(", "));
        let message = if near.is_empty() { message.replacen(" The", "; the", 1) } else { message };
        return Problem::field(joined(path, given), message);
    }
    if text.starts_with("missing field") {
        return Problem::field(joined(path, words.first().copied().unwrap_or_default()), "it is missing");
    }
    if text.starts_with("duplicate field") {
        return Problem::field(joined(path, words.first().copied().unwrap_or_default()), "it is given twice");
    }
    let field = if path.is_empty() { "body" } else { path };
    if let Some((given, _)) =
        text.strip_prefix("unknown variant `").and_then(|rest| rest.rsplit_once("`, expected "))
    {
        return Problem::field(field, check::none_of(given, &words[1..]));
    }
    let rest = text.strip_prefix("invalid type: ").or_else(|| text.strip_prefix("invalid value: "));
    match rest.and_then(|rest| rest.rsplit_once(", expected ")) {
        Some((given, expected)) => {
            Problem::field(field, format!("it must be {}, not {}", plain(expected), plain(given)))
        }
        None => Problem::field(field, shown(text)),
    }
}

/// The unknown or missing field itself, where the path ends at the object that has or lacks it.
fn joined(path: &str, name: &str) -> String {
    let name = shown(name);
    if path.is_empty() {
        name
    } else if path == name || path.ends_with(&format!(".{name}")) {
        path.to_owned()
    } else {
        format!("{path}.{name}")
    }
}

fn plain(words: &str) -> String {
    match words {
        "u64" | "usize" => "a whole number from 0 on".to_owned(),
        "u32" => format!("a whole number from 0 to {}", u32::MAX),
        "f64" => "a number".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a sequence" | "sequence" => "a list".to_owned(),
        "map" | "a map" => "an object".to_owned(),
        words if words.starts_with("struct ") => "an object".to_owned(),
        "unit" => "null".to_owned(),
        words => {
            words.chars().take(120).flat_map(char::escape_debug).collect::<String>().replace("\\\"", "\"")
        }
    }
}

#[cfg(test)]
mod tests {
    use giga_api::wire::{ClaimRequest, HeartbeatRequest, PatchRequest, SetProductRequest};

    use super::*;

    fn refused<T: DeserializeOwned>(text: &str) -> String {
        match parse::<T>(text.as_bytes()) {
            Ok(_) => panic!("{text} was accepted"),
            Err(problem) => problem.detail().to_owned(),
        }
    }

    #[test]
    fn an_unknown_field_is_named_with_what_was_meant() {
        let text = refused::<SetProductRequest>(r#"{"repso":["a"]}"#);
        assert!(
            text.starts_with("repso: unknown field; did you mean `repos`? The fields are share, "),
            "{text}"
        );
        let text = refused::<SetProductRequest>(r#"{"policy":{"bogus":1}}"#);
        assert!(text.starts_with("policy.bogus: unknown field; the fields are quorum, autoShip, "), "{text}");
    }

    /// A factory may be newer than its coordinator, and tell it more than it knows of.
    #[test]
    fn what_factories_say_beside_what_is_known_is_passed_over() {
        let beat = r#"{"factoryId":"f","capabilities":[],"seatLimit":1,"mood":"fine","instance":{"id":"i","host":"h","pid":7}}"#;
        let beat = parse::<HeartbeatRequest>(beat.as_bytes()).map_err(|problem| problem.detail().to_owned());
        assert_eq!(beat.unwrap().instance.unwrap().host, "h");
        let patch = r#"{"leaseEpoch":1,"checkpoint":{"commit":"c","mood":"fine"},"mood":"fine"}"#;
        let patch = parse::<PatchRequest>(patch.as_bytes()).map_err(|problem| problem.detail().to_owned());
        assert_eq!(patch.unwrap().checkpoint.unwrap().commit.as_deref(), Some("c"));
    }

    #[test]
    fn a_missing_or_wrong_field_is_named() {
        assert_eq!(refused::<ClaimRequest>(r#"{"factoryId":"f"}"#), "requestId: it is missing");
        assert_eq!(
            refused::<PatchRequest>(r#"{"leaseEpoch":"one"}"#),
            "leaseEpoch: it must be a whole number from 0 on, not string \"one\""
        );
        assert_eq!(
            refused::<PatchRequest>(r#"{"leaseEpoch":-1}"#),
            "leaseEpoch: it must be a whole number from 0 on, not integer `-1`"
        );
        assert_eq!(
            refused::<HeartbeatRequest>(r#"{"factoryId":"f","capabilities":["a",7],"seatLimit":1}"#),
            "capabilities[1]: it must be a string, not integer `7`"
        );
        assert_eq!(refused::<ClaimRequest>("[]"), "body: it must be an object, not a list");
        assert_eq!(
            refused::<ClaimRequest>(r#"{"factoryId":"a","factoryId":"b"}"#),
            "factoryId: it is given twice"
        );
    }

    #[test]
    fn what_is_not_json_says_where() {
        assert_eq!(
            refused::<ClaimRequest>("{\"factoryId\" \"f\"}"),
            "body: it is not JSON: expected `:` (line 1, column 14)"
        );
        assert!(refused::<ClaimRequest>("").contains("not JSON"));
        assert!(
            refused::<ClaimRequest>(r#"{"factoryId":"f","requestId":"r"} x"#).contains("trailing characters")
        );
        assert!(refused::<ClaimRequest>(&"[".repeat(10_000)).starts_with("body: "));
    }
}
