//! What differs from run to run, made the same: ids, times, tokens, ports and folders.

/// For golden files. Widths of ids and times of day stay, so that columns still line up.
pub(crate) fn mask(text: &str, home: &std::path::Path) -> String {
    let text = text.replace(&home.display().to_string(), "HOME");
    let text = replace(&text, key, "cli-KEY");
    let text = replace(&text, ulid, "01JXXXXXXXXXXXXXXXXXXXXXXX");
    let text = replace(&text, time, "2026-01-01T00:00:00.000Z");
    let text = replace(&text, token_id, "tok-0000000000000000");
    let text = replace(&text, secret, "giga_SECRET");
    let text = replace(&text, port, "127.0.0.1:PORT");
    let text = replace(&text, waited, "oldest for TIME");
    replace(&text, ago, "AGO")
}

/// For explanations of jobs that could run: scores as `0.00`.
pub(crate) fn mask_scores(text: &str) -> String {
    replace(text, score, "0.00")
}

/// Columns of a table that holds durations: as wide as they happen to be, so that only the order is compared.
pub(crate) fn squeeze(text: &str) -> String {
    let squeezed = text.lines().map(|line| {
        let indent = line.len() - line.trim_start().len();
        let words: Vec<&str> = line.split("  ").map(str::trim).filter(|word| !word.is_empty()).collect();
        format!("{}{}\n", &line[..indent], words.join("  "))
    });
    squeezed.collect()
}

/// Where a piece begins that `length` knows, it is replaced as a whole.
fn replace(text: &str, length: impl Fn(&str) -> Option<usize>, with: &str) -> String {
    let mut masked = String::new();
    let mut rest = text;
    let mut inside_word = false;
    while let Some(c) = rest.chars().next() {
        if let Some(length) = length(rest).filter(|_| !inside_word) {
            masked.push_str(with);
            rest = &rest[length..];
            inside_word = false;
        } else {
            inside_word = c.is_ascii_alphanumeric();
            masked.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    masked
}

fn run(text: &str, fits: impl Fn(char) -> bool) -> usize {
    text.find(|c| !fits(c)).unwrap_or(text.len())
}

fn ulid(text: &str) -> Option<usize> {
    (text.starts_with("01") && run(text, |c| c.is_ascii_digit() || c.is_ascii_uppercase()) == 26)
        .then_some(26)
}

fn time(text: &str) -> Option<usize> {
    let piece = text.get(..24)?;
    let like = piece.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect::<String>();
    (like == "0000-00-00T00:00:00.000Z").then_some(24)
}

fn prefixed(text: &str, prefix: &str, least: usize) -> Option<usize> {
    let rest = text.strip_prefix(prefix)?;
    let length = run(rest, |c| c.is_ascii_alphanumeric() || c == '_' || c == '…');
    (length >= least).then_some(prefix.len() + length)
}

fn token_id(text: &str) -> Option<usize> {
    prefixed(text, "tok-", 16)
}

fn secret(text: &str) -> Option<usize> {
    prefixed(text, "giga_user_", 6).or_else(|| prefixed(text, "giga_factory_", 40))
}

fn key(text: &str) -> Option<usize> {
    prefixed(text, "cli-", 26)
}

fn port(text: &str) -> Option<usize> {
    let rest = text.strip_prefix("127.0.0.1:")?;
    let digits = run(rest, |c| c.is_ascii_digit());
    (digits > 0 && &rest[..digits] != "7717").then_some("127.0.0.1:".len() + digits)
}

/// `2m5s`.
fn span(text: &str) -> Option<usize> {
    let length = run(text, |c| c.is_ascii_digit() || "smhd".contains(c));
    (length > 1 && text.starts_with(|c: char| c.is_ascii_digit())).then_some(length)
}

/// Scores move with the age of a job.
fn score(text: &str) -> Option<usize> {
    let digits: Vec<char> = text.chars().take(4).collect();
    matches!(digits.as_slice(), [a, '.', b, c] if [a, b, c].iter().all(|d| d.is_ascii_digit())).then_some(4)
}

fn waited(text: &str) -> Option<usize> {
    let before = "oldest for ".len();
    text.strip_prefix("oldest for ").and_then(span).map(|length| before + length)
}

/// `now`, `3s ago`, `in 2m5s`.
fn ago(text: &str) -> Option<usize> {
    if text.starts_with("now") && run(text, char::is_alphanumeric) == 3 {
        return Some(3);
    }
    if let Some(length) = text.strip_prefix("in ").and_then(span) {
        return Some(3 + length);
    }
    let length = span(text)?;
    text[length..].starts_with(" ago").then_some(length + 4)
}

#[test]
fn only_what_differs_is_masked() {
    let home = std::path::Path::new("/home/x");
    let text = "01J9ZK3V5N8Q4W2E6R7T1Y0ABC known now 3s ago in 2m5s in time 2026-12-01T09:00:00.123Z /home/x/a 127.0.0.1:4";
    let masked =
        "01JXXXXXXXXXXXXXXXXXXXXXXX known AGO AGO AGO in time 2026-01-01T00:00:00.000Z HOME/a 127.0.0.1:PORT";
    assert_eq!(mask(text, home), masked);
}
