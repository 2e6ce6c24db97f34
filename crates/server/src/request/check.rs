//! Fields of a body that JSON types alone cannot judge: ids, words, texts, counts and money.

use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;

use giga_domain::id::IdError;
use giga_domain::{CapabilitySet, ProductId, Usd, limits, manifest};
use strum::VariantArray;

use super::{did_you_mean, shown};
use crate::problem::Problem;

pub(crate) fn id<T: FromStr<Err = IdError>>(field: &str, text: &str) -> Result<T, Problem> {
    text.parse().map_err(|error: IdError| Problem::field(field, error.to_string()))
}

/// One of the words of an enum.
pub(crate) fn word<T: FromStr + VariantArray + Display>(field: &str, text: &str) -> Result<T, Problem> {
    text.parse().map_err(|_| {
        let words: Vec<String> = T::VARIANTS.iter().map(ToString::to_string).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        Problem::field(field, none_of(text, &words))
    })
}

pub(crate) fn none_of(given: &str, words: &[&str]) -> String {
    let near = did_you_mean(given, words.iter().copied());
    format!("`{}` is none of {}{near}", shown(given), words.join(", "))
}

/// Free text of at most so many characters. Line breaks and tabs are fine; other control characters are refused,
/// because no database and no terminal is the better for them.
pub(crate) fn text(field: &str, text: &str, most: usize) -> Result<(), Problem> {
    if text.chars().count() > most {
        return Err(Problem::field(field, format!("it may have at most {most} characters")));
    }
    match text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
        Some(control) => {
            let message = format!("it may not have control characters such as {}", control.escape_default());
            Err(Problem::field(field, message))
        }
        None => Ok(()),
    }
}

/// The same where nothing may be refused for it: cut, and without what would not be let through.
pub(crate) fn cleaned(text: &str, most: usize) -> String {
    let kept = text.chars().filter(|c| !c.is_control() || matches!(c, '\n' | '\r' | '\t'));
    kept.take(most).collect()
}

pub(crate) fn optional_text(field: &str, given: Option<&String>, most: usize) -> Result<(), Problem> {
    given.map_or(Ok(()), |given| text(field, given, most))
}

/// A short name on one line.
pub(crate) fn name(field: &str, given: &str, most: usize) -> Result<(), Problem> {
    if given.trim().is_empty() || given.chars().any(char::is_control) || given.chars().count() > most {
        let message = format!("it must be 1 to {most} printable characters on one line");
        return Err(Problem::field(field, message));
    }
    Ok(())
}

pub(crate) fn at_most(field: &str, count: usize, most: usize) -> Result<(), Problem> {
    if count <= most {
        Ok(())
    } else {
        Err(Problem::field(field, format!("it may list at most {most}; it lists {count}")))
    }
}

pub(crate) fn in_range<T: PartialOrd + Display>(
    field: &str,
    value: T,
    from: T,
    to: T,
) -> Result<(), Problem> {
    if value >= from && value <= to {
        Ok(())
    } else {
        Err(Problem::field(field, format!("it must be from {from} to {to}, not {value}")))
    }
}

/// The most that one run, or one hour of a factory, may cost.
pub(crate) const MOST_PER_RUN: i64 = 1_000_000;
/// The most that a budget may be, or be corrected by.
pub(crate) const MOST_PER_BUDGET: i64 = 1_000_000_000;

pub(crate) fn dollars(field: &str, usd: Usd, most: i64) -> Result<Usd, Problem> {
    if (Usd::ZERO..=Usd::from_dollars(most)).contains(&usd) {
        Ok(usd)
    } else {
        Err(Problem::field(field, format!("it must be dollars from 0 to {most}, such as 0.42")))
    }
}

pub(crate) fn duration(field: &str, text: &str) -> Result<Duration, Problem> {
    manifest::parse_duration(text).map(Duration::from_millis).ok_or_else(|| {
        let message = format!("`{}` is not a duration such as 500ms, 30s, 10m, 24h or 7d", shown(text));
        Problem::field(field, message)
    })
}

/// Each once, in the order given.
pub(crate) fn products(field: &str, given: &[String]) -> Result<Vec<ProductId>, Problem> {
    let mut products: Vec<ProductId> = Vec::with_capacity(given.len());
    for (index, text) in given.iter().enumerate() {
        let product = id(&format!("{field}[{index}]"), text)?;
        if !products.contains(&product) {
            products.push(product);
        }
    }
    Ok(products)
}

/// At most so many as the limits say; those that name a repository are counted like repositories.
pub(crate) fn capabilities(field: &str, given: &[String]) -> Result<CapabilitySet, Problem> {
    let repos = given.iter().filter(|text| text.starts_with("repo:")).count();
    at_most(field, repos, limits::FACTORY_REPOS)?;
    at_most(field, given.len() - repos, limits::CAPABILITIES)?;
    let mut capabilities = CapabilitySet::new();
    for (index, text) in given.iter().enumerate() {
        let refused = |error: IdError| Problem::field(format!("{field}[{index}]"), error.to_string());
        capabilities.insert_token(text).map_err(refused)?;
    }
    Ok(capabilities)
}
