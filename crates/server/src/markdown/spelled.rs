//! Characters that change the order of others, or that nobody sees and a machine reads, are written out. The page does
//! the same with what it shows as plain text: web/src/ui/visible.ts knows the same characters, and the tests of both
//! read one table.

use std::borrow::Cow;
use std::fmt::Write;

pub(super) use giga_domain::text::is_hidden;

pub(super) fn spelled_out(text: &str) -> Cow<'_, str> {
    let mut spelled = String::new();
    let mut kept = 0;
    let mut before = None;
    let mut chars = text.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        if is_hidden(c) || is_out_of_place(before, c, chars.peek().map(|&(_, next)| next)) {
            spelled.push_str(&text[kept..at]);
            spell(c, &mut spelled);
            kept = at + c.len_utf8();
        }
        before = Some(c);
    }
    finished(text, spelled, kept)
}

/// Only those that are hidden wherever they stand: for a piece of a text, whose neighbours are not known.
pub(super) fn spelled_out_piece(text: &str) -> Cow<'_, str> {
    let mut spelled = String::new();
    let mut kept = 0;
    for (at, c) in text.match_indices(is_hidden) {
        spelled.push_str(&text[kept..at]);
        c.chars().for_each(|c| spell(c, &mut spelled));
        kept = at + c.len();
    }
    finished(text, spelled, kept)
}

fn finished(text: &str, mut spelled: String, kept: usize) -> Cow<'_, str> {
    if kept == 0 {
        return Cow::Borrowed(text);
    }
    spelled.push_str(&text[kept..]);
    Cow::Owned(spelled)
}

fn spell(c: char, into: &mut String) {
    let _ = write!(into, "⟨U+{:04X}⟩", u32::from(c));
}

/// What has its place hides nothing there: a return before a line break, joiners in the scripts that need them and in
/// emoji, and the two selectors behind what has an emoji and a text form.
fn is_out_of_place(before: Option<char>, c: char, after: Option<char>) -> bool {
    match c {
        '\r' => !matches!(after, None | Some('\n')),
        '\u{200c}' | '\u{200d}' => !before.is_some_and(is_joined),
        '\u{fe0e}' | '\u{fe0f}' => {
            let keycap = matches!(before, Some('0'..='9' | '#' | '*')) && after == Some('\u{20e3}');
            !(keycap || before.is_some_and(is_picture))
        }
        _ => false,
    }
}

fn is_joined(c: char) -> bool {
    matches!(
        c,
        '\u{600}'..='\u{109f}'
            | '\u{1700}'..='\u{18af}'
            | '\u{1900}'..='\u{1cff}'
            | '\u{2190}'..='\u{2bff}'
            | '\u{a800}'..='\u{abff}'
            | '\u{fe0f}'
            | '\u{1f000}'..='\u{1faff}'
    ) && !is_hidden(c)
}

fn is_picture(c: char) -> bool {
    matches!(
        c,
        '©' | '®'
            | '\u{203c}'
            | '\u{2049}'
            | '\u{2100}'..='\u{2bff}'
            | '\u{3030}'
            | '\u{303d}'
            | '\u{3297}'
            | '\u{3299}'
            | '\u{1f000}'..='\u{1faff}'
    )
}
