//! Headers: at most one of each, and the two forms of entity tag that we give out.

use axum::http::header::{ETAG, IF_MATCH, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderName, HeaderValue};
use giga_domain::Rev;

use super::shown;
use crate::problem::Problem;

/// The header's text, where it is given; refuses a second one and what is not text.
pub(crate) fn single<'a>(headers: &'a HeaderMap, name: &str) -> Result<Option<&'a str>, Problem> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(_), Some(_)) => Err(Problem::field(name, "the header is given twice; once is enough")),
        (Some(value), None) => match value.to_str() {
            Ok(text) => Ok(Some(text.trim())),
            Err(_) => Err(Problem::field(name, "the header must be printable ASCII")),
        },
    }
}

/// What a job's answers are tagged with.
pub(crate) fn job_tag(rev: Rev) -> String {
    format!("\"rev-{rev}\"")
}

pub(crate) fn etag(tag: &str) -> [(HeaderName, HeaderValue); 1] {
    let value = HeaderValue::from_str(tag).expect("our tags are quotes, letters, digits and dashes");
    [(ETAG, value)]
}

/// The revision that the caller means; `None` when any will do.
pub(crate) fn if_match(headers: &HeaderMap) -> Result<Option<Rev>, Problem> {
    let Some(text) = single(headers, IF_MATCH.as_str())? else { return Ok(None) };
    if text == "*" {
        return Ok(None);
    }
    let number = text.strip_prefix("\"rev-").and_then(|rest| rest.strip_suffix('"'));
    let digits = number.filter(|n| n.bytes().all(|b| b.is_ascii_digit()));
    let rev = digits.and_then(|n| n.parse().ok()).map(Rev);
    rev.map(Some).ok_or_else(|| {
        let message = format!(
            "`{}` is not a tag that this API gave out: send one ETag such as \"rev-7\", or *",
            shown(text)
        );
        Problem::field(IF_MATCH.as_str(), message)
    })
}

/// Does the caller already have what `tag` stands for?
pub(crate) fn none_match(headers: &HeaderMap, tag: &str) -> Result<bool, Problem> {
    let Some(text) = single(headers, IF_NONE_MATCH.as_str())? else { return Ok(false) };
    if text == "*" {
        return Ok(true);
    }
    let mut found = false;
    for given in text.split(',').map(str::trim) {
        let given = given.strip_prefix("W/").unwrap_or(given);
        let quoted = given.len() >= 2 && given.starts_with('"') && given.ends_with('"');
        if !quoted {
            let message =
                format!("`{}` is not a quoted tag; send back an ETag as it came, or *", shown(text));
            return Err(Problem::field(IF_NONE_MATCH.as_str(), message));
        }
        found |= given == tag;
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: HeaderName, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_static(value))])
    }

    #[test]
    fn if_match_takes_our_own_tags_and_a_star() {
        assert_eq!(if_match(&headers(IF_MATCH, "\"rev-7\"")).unwrap(), Some(Rev(7)));
        assert_eq!(if_match(&headers(IF_MATCH, "*")).unwrap(), None);
        for bad in
            ["rev-7", "\"rev-\"", "\"rev-+7\"", "\"rev-x\"", "W/\"rev-7\"", "\"rev-7\", \"rev-8\"", "7", ""]
        {
            assert!(if_match(&headers(IF_MATCH, bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn if_none_match_takes_lists_and_weak_tags() {
        let given = headers(IF_NONE_MATCH, "\"rev-1\", W/\"rev-2\"");
        assert!(none_match(&given, "\"rev-2\"").unwrap());
        assert!(!none_match(&given, "\"rev-3\"").unwrap());
        assert!(none_match(&headers(IF_NONE_MATCH, "rev-2"), "\"rev-2\"").is_err());
        assert!(!none_match(&HeaderMap::new(), "\"rev-2\"").unwrap());
    }
}
