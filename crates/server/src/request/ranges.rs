//! The `Range` header: one stretch of bytes. Whatever else it says is passed over, as HTTP wants it.

use std::ops::Range;

use axum::http::HeaderMap;
use axum::http::header::{IF_RANGE, RANGE};

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Whole,
    Part(Range<u64>),
    /// It asks for bytes that are not there.
    Nothing,
}

pub(crate) fn wanted(headers: &HeaderMap, tag: &str, size: u64) -> Wanted {
    let given = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    match (given(RANGE), given(IF_RANGE)) {
        (Some(range), None) => parse(range, size),
        // It goes on with a file that it has the beginning of, if it is still this one.
        (Some(range), Some(expected)) if expected == tag => parse(range, size),
        _ => Wanted::Whole,
    }
}

fn parse(text: &str, size: u64) -> Wanted {
    let Some((first, last)) = text.strip_prefix("bytes=").and_then(|spec| spec.split_once('-')) else {
        return Wanted::Whole;
    };
    // `parse` would take a sign.
    let number = |text: &str| {
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        digits.then(|| text.parse::<u64>().ok()).flatten()
    };
    let range = match (number(first), number(last)) {
        (Some(first), Some(last)) if first <= last => first..last.saturating_add(1).min(size),
        (Some(first), None) if last.is_empty() => first..size,
        (None, Some(count)) if first.is_empty() => size.saturating_sub(count)..size,
        _ => return Wanted::Whole,
    };
    if range.is_empty() { Wanted::Nothing } else { Wanted::Part(range) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_cut_to_what_there_is() {
        for (text, expected) in [
            ("bytes=0-3", Wanted::Part(0..4)),
            ("bytes=4-", Wanted::Part(4..10)),
            ("bytes=-3", Wanted::Part(7..10)),
            ("bytes=-99", Wanted::Part(0..10)),
            ("bytes=8-99", Wanted::Part(8..10)),
            ("bytes=0-18446744073709551615", Wanted::Part(0..10)),
            ("bytes=10-", Wanted::Nothing),
            ("bytes=-0", Wanted::Nothing),
            ("bytes=5-4", Wanted::Whole),
            ("bytes=0-1,3-4", Wanted::Whole),
            ("bytes=+1-2", Wanted::Whole),
            ("lines=0-1", Wanted::Whole),
            ("bytes=-", Wanted::Whole),
        ] {
            assert_eq!(parse(text, 10), expected, "{text}");
        }
        assert_eq!(parse("bytes=0-", 0), Wanted::Nothing);
    }
}
