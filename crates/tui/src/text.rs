//! Values as a narrow terminal shows them. Everything that outsiders wrote passes through [`clean`] or [`log_line`]
//! before it is drawn: neither lets a character through that could steer a terminal or turn the reading order around.

use std::time::Duration;

use giga_domain::Timestamp;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// One line of harmless text: line breaks and tabs become spaces, what steers goes.
pub fn clean(text: &str) -> String {
    text.chars()
        .filter_map(|c| match c {
            '\n' | '\r' | '\t' => Some(' '),
            c if steers(c) => None,
            c => Some(c),
        })
        .collect()
}

/// Also what joins characters into one or picks how they look: terminals do not agree how wide the outcome is, and
/// one that is drawn wider than it was counted moves the rest of the screen.
fn steers(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{00ad}' | '\u{061c}' | '\u{200b}'..='\u{200f}' | '\u{2028}' | '\u{2029}'
            | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{1f3fb}'..='\u{1f3ff}' | '\u{e0000}'..='\u{e01ef}')
}

/// A line of a log: escape sequences go as a whole, and of a line that was drawn over (`\r`) the last state stays.
pub fn log_line(line: &str) -> String {
    let mut kept = String::with_capacity(line.len());
    let mut rest = line.trim_end_matches('\r').chars().peekable();
    while let Some(c) = rest.next() {
        match c {
            '\r' => kept.clear(),
            '\t' => kept.push_str("    "),
            '\u{1b}' => skip_escape(&mut rest),
            c if steers(c) => {}
            c => kept.push(c),
        }
    }
    kept
}

fn skip_escape(rest: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match rest.peek().copied() {
        Some('[') => {
            rest.next();
            // Parameters, then one final byte.
            while rest.next().is_some_and(|c| !matches!(c, '@'..='~')) {}
        }
        Some(']' | 'P' | 'X' | '^' | '_') => {
            // Titles, links and the like: until BEL or ESC \.
            while let Some(c) = rest.next() {
                if c == '\u{7}' || (c == '\u{1b}' && rest.next_if_eq(&'\\').is_some()) {
                    break;
                }
            }
        }
        Some(_) => {
            rest.next();
        }
        None => {}
    }
}

pub(crate) fn width(text: &str) -> usize {
    text.width()
}

/// At most so many cells; what is cut ends with `…`.
pub(crate) fn cut(text: &str, cells: usize) -> String {
    if text.width() <= cells {
        return text.to_owned();
    }
    let Some(room) = cells.checked_sub(1) else { return String::new() };
    let mut kept = String::new();
    let mut used = 0;
    for c in text.chars() {
        let cell = c.width().unwrap_or(0);
        if used + cell > room {
            break;
        }
        used += cell;
        kept.push(c);
    }
    kept.push('…');
    kept
}

/// The end, in at most so many cells; what is cut begins with `…`.
pub(crate) fn tail(text: &str, cells: usize) -> String {
    if text.width() <= cells {
        return text.to_owned();
    }
    let Some(room) = cells.checked_sub(1) else { return String::new() };
    let mut used = 0;
    let kept = text.char_indices().rev().take_while(|(_, c)| {
        used += c.width().unwrap_or(0);
        used <= room
    });
    let from = kept.last().map_or(text.len(), |(at, _)| at);
    format!("…{}", &text[from..])
}

/// Exactly so many cells.
pub(crate) fn fit(text: &str, cells: usize) -> String {
    let mut kept = cut(text, cells);
    let short = cells.saturating_sub(kept.width());
    kept.extend(std::iter::repeat_n(' ', short));
    kept
}

/// The same, to the right.
pub(crate) fn fit_right(text: &str, cells: usize) -> String {
    let kept = cut(text, cells);
    let short = cells.saturating_sub(kept.width());
    format!("{}{kept}", " ".repeat(short))
}

/// Lines of at most so many cells, broken between words where that is possible.
pub(crate) fn wrap(text: &str, cells: usize) -> Vec<String> {
    let cells = cells.max(1);
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        let mut word = word.to_owned();
        loop {
            let last = lines.last_mut().expect("there is always a line");
            let gap = usize::from(!last.is_empty());
            if last.width() + gap + word.width() <= cells {
                if gap == 1 {
                    last.push(' ');
                }
                last.push_str(&word);
                break;
            }
            if last.is_empty() {
                // A word that is wider than a line is cut hard.
                let (head, tail) = split_at_width(&word, cells);
                last.push_str(&head);
                if tail.is_empty() {
                    break;
                }
                word = tail;
            }
            lines.push(String::new());
        }
    }
    lines
}

/// The first part has at most so many cells, and one character at least.
fn split_at_width(text: &str, cells: usize) -> (String, String) {
    let mut used = 0;
    for (at, c) in text.char_indices() {
        used += c.width().unwrap_or(0);
        if used > cells && at > 0 {
            return (text[..at].to_owned(), text[at..].to_owned());
        }
    }
    (text.to_owned(), String::new())
}

/// How long ago, in the largest unit or two: `12s`, `3m`, `1h20m`, `4d`. A time that cannot be read is `-`.
pub(crate) fn age(time: &str, now: Timestamp) -> String {
    time.parse::<Timestamp>().map_or_else(|_| "-".to_owned(), |at| span(now.since(at)))
}

/// `in 3m`, or how long ago.
pub(crate) fn when(time: &str, now: Timestamp) -> String {
    match time.parse::<Timestamp>() {
        Err(_) => "-".to_owned(),
        Ok(at) if at > now => format!("in {}", span(at.since(now))),
        Ok(at) => format!("{} ago", span(now.since(at))),
    }
}

/// `14:03:07`, by UTC as everything here; the day too where it is another one.
pub(crate) fn clock(time: &str, now: Timestamp) -> String {
    let Ok(at) = time.parse::<Timestamp>() else { return "-".to_owned() };
    let (text, today) = (at.to_string(), now.to_string());
    let hms = text.get(11..19).unwrap_or("-").to_owned();
    match (text.get(..10), today.get(..10)) {
        (Some(day), Some(same)) if day == same => hms,
        (Some(day), _) => format!("{} {hms}", day.get(5..).unwrap_or(day)),
        (None, _) => hms,
    }
}

pub(crate) fn span(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (days, hours, minutes) = (seconds / 86_400, seconds / 3_600, seconds / 60);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3_600 => format!("{minutes}m"),
        3_600..36_000 => match minutes % 60 {
            0 => format!("{hours}h"),
            rest => format!("{hours}h{rest}m"),
        },
        36_000..172_800 => format!("{hours}h"),
        _ => format!("{days}d"),
    }
}

/// `3 jobs`, `1 job`.
pub(crate) fn count(n: usize, what: &str) -> String {
    if n == 1 { format!("1 {what}") } else { format!("{n} {what}s") }
}

/// A word for a shell, quoted where it has to be.
pub(crate) fn quoted(word: &str) -> String {
    let word = clean(word);
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@%+=,".contains(c);
    if !word.is_empty() && !word.starts_with('-') && word.chars().all(plain) {
        word
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_steers_the_terminal() {
        assert_eq!(clean("a\u{1b}[31mb\u{7}\u{202e}c\nd\u{9b}e\u{2066}"), "a[31mbc de");
        // What joins and picks pictures: terminals do not agree how wide the outcome is.
        assert_eq!(
            clean("👩\u{200d}💻 ❤\u{fe0f} so\u{ad}ft\u{200c} 👍\u{1f3fd} 葛\u{e0100}"),
            "👩💻 ❤ soft 👍 葛"
        );
        assert_eq!(log_line("👩\u{200d}💻\u{fe0f}"), "👩💻");
        assert_eq!(log_line("\u{1b}[1;31mred\u{1b}[0m plain\u{202e}"), "red plain");
        assert_eq!(
            log_line("\u{1b}]0;title\u{7}text\u{1b}]8;;http://x\u{1b}\\link\u{1b}]8;;\u{1b}\\"),
            "textlink"
        );
        assert_eq!(log_line("10%\r20%\r30%\r"), "30%");
        assert_eq!(log_line("cut \u{1b}["), "cut ");
    }

    #[test]
    fn cells_are_counted_not_characters() {
        assert_eq!(fit("漢字かな", 5), "漢字…");
        assert_eq!(fit("漢字かな", 6), "漢字… ");
        assert_eq!(fit("ab", 4), "ab  ");
        assert_eq!(fit_right("ab", 4), "  ab");
        assert_eq!(cut("abc", 0), "");
        assert_eq!([tail("abc", 3), tail("abcd", 3), tail("漢字かな", 4)], ["abc", "…cd", "…な"]);
        assert_eq!([tail("abc", 1), tail("abc", 0)], ["…", ""]);
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("漢字漢字", 4), ["漢字", "漢字"]);
        assert_eq!(wrap("", 4), [""]);
    }

    #[test]
    fn times_are_short_and_never_nonsense() {
        let now: Timestamp = "2026-12-01T09:00:00Z".parse().unwrap();
        assert_eq!(age("2026-12-01T08:59:48Z", now), "12s");
        assert_eq!(age("2026-12-01T07:40:00Z", now), "1h20m");
        assert_eq!(age("whenever", now), "-");
        assert_eq!(clock("2026-12-01T08:59:48.5Z", now), "08:59:48");
        assert_eq!(clock("2026-11-30T08:59:48Z", now), "11-30 08:59:48");
        assert_eq!(when("2026-12-01T09:03:00Z", now), "in 3m");
    }

    #[test]
    fn a_line_for_the_shell_is_one() {
        assert_eq!(quoted("fix-greeting"), "fix-greeting");
        assert_eq!(quoted("it's; rm -rf"), r"'it'\''s; rm -rf'");
        assert_eq!(quoted("--yes"), "'--yes'");
        assert_eq!(quoted(""), "''");
    }
}
