//! Reading what was sent: every way in which it can be wrong is answered with the name of the part that is wrong and
//! what would be right. Nothing here looks anything up or changes anything.

pub(crate) mod body;
pub(crate) mod check;
pub(crate) mod header;
mod json;
pub(crate) mod path;
pub(crate) mod query;
pub(crate) mod ranges;
pub(crate) mod room;

pub(crate) use body::{BytesBody, JsonBody, LargeJson, OptionalJson, Upload};
pub(crate) use path::PathText;
pub(crate) use query::Query;

/// Text from outside as part of a sentence: bounded, and without anything that a terminal would act on.
pub(crate) fn shown(text: &str) -> String {
    let mut shown: String = text.chars().take(80).flat_map(char::escape_debug).collect();
    if text.chars().nth(80).is_some() {
        shown.push('…');
    }
    shown
}

/// `; did you mean …?` when one of the known words is near, else nothing.
pub(crate) fn did_you_mean<'a>(given: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    giga_domain::manifest::suggest(given, known)
        .map(|near| format!("; did you mean `{near}`?"))
        .unwrap_or_default()
}
