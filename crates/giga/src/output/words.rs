//! Values as people say them.

use std::fmt::Write;
use std::time::Duration;

use giga_domain::Timestamp;
use giga_domain::text::is_hidden;

/// Text from outside without what would steer a terminal. Line breaks and tabs stay.
pub(crate) fn printable(text: &str) -> String {
    let steers = |c: char| (c.is_control() && c != '\n' && c != '\t') || is_hidden(c);
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if steers(c) {
            let _ = write!(shown, "{}", c.escape_default());
        } else {
            shown.push(c);
        }
    }
    shown
}

pub(crate) fn dash(text: Option<&str>) -> &str {
    text.filter(|text| !text.is_empty()).unwrap_or("-")
}

pub(crate) fn or_dash(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

pub(crate) fn joined(words: &[String]) -> String {
    if words.is_empty() { "-".to_owned() } else { words.join(", ") }
}

/// `3m ago`, or `in 3m`; a time that cannot be read is shown as it is.
pub(crate) fn ago(time: &str, now: Timestamp) -> String {
    let Ok(at) = time.parse::<Timestamp>() else { return printable(time) };
    if at > now.plus(Duration::from_secs(1)) {
        format!("in {}", span(at.since(now)))
    } else {
        match now.since(at) {
            just if just < Duration::from_secs(1) => "now".to_owned(),
            before => format!("{} ago", span(before)),
        }
    }
}

pub(crate) fn millis(millis: u64) -> String {
    span(Duration::from_millis(millis))
}

/// The two largest units at most.
pub(crate) fn span(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600, seconds / 60);
    match seconds {
        0 => "0s".to_owned(),
        1..60 => format!("{seconds}s"),
        60..600 => match seconds % 60 {
            0 => format!("{minutes}m"),
            rest => format!("{minutes}m{rest}s"),
        },
        600..3_600 => format!("{minutes}m"),
        3_600..36_000 => match minutes % 60 {
            0 => format!("{hours}h"),
            rest => format!("{hours}h{rest}m"),
        },
        36_000..172_800 => format!("{hours}h"),
        _ => format!("{days}d"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        let now: Timestamp = "2026-12-01T09:00:00Z".parse().unwrap();
        let text = |seconds: u64| ago(&now.minus(Duration::from_secs(seconds)).to_string(), now);
        assert_eq!(
            [0, 1, 59, 60, 61, 3_599, 3_600, 3_661, 40_000, 200_000].map(text),
            [
                "now", "1s ago", "59s ago", "1m ago", "1m1s ago", "59m ago", "1h ago", "1h1m ago", "11h ago",
                "2d ago"
            ]
        );
        assert_eq!(ago("2026-12-01T09:00:30Z", now), "in 30s");
        assert_eq!(ago("2026-12-01T09:00:00.500Z", now), "now", "clocks differ a little");
        assert_eq!(ago("soon", now), "soon");
    }

    #[test]
    fn nothing_steers_the_terminal() {
        assert_eq!(printable("a\u{1b}[31mb\u{7}\u{202e}c\nd\te"), "a\\u{1b}[31mb\\u{7}\\u{202e}c\nd\te");
    }
}
