//! What text from elsewhere may hold that nobody sees.

/// At most so many characters of it.
pub fn first_chars(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

/// Controls but for tabs and line breaks, fillers and marks without width, what turns the order of others, line and
/// paragraph separators, selectors of variants, and tags, which spell ASCII that nobody sees.
pub fn is_hidden(c: char) -> bool {
    matches!(
        c,
        '\0'..='\u{8}'
            | '\u{b}'..='\u{c}'
            | '\u{e}'..='\u{1f}'
            | '\u{7f}'..='\u{9f}'
            | '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{180e}'
            | '\u{200b}'
            | '\u{200e}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0d}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}
