//! Query parameters: known ones, each once, each with a value that makes sense.

use std::fmt::Display;
use std::str::FromStr;

use axum::extract::FromRequestParts;
use axum::http::Uri;
use axum::http::request::Parts;
use giga_domain::id::IdError;
use strum::VariantArray;

use super::{check, did_you_mean, shown};
use crate::app::App;
use crate::problem::Problem;
use crate::routes::Route;

/// The parameters of the query, which the guard has found to be known and given once.
pub(crate) struct Query {
    pairs: Vec<(String, String)>,
    route: Option<&'static Route>,
}

/// Refuses what the route does not know: a mistyped filter must not be taken for "no filter".
pub(crate) fn check<'a>(uri: &Uri, known: impl Iterator<Item = &'a str> + Clone) -> Result<(), Problem> {
    let pairs = pairs(uri)?;
    for (index, (name, value)) in pairs.iter().enumerate() {
        if !known.clone().any(|k| k == name) {
            let near = did_you_mean(name, known.clone());
            let names: Vec<&str> = known.clone().collect();
            let takes = if names.is_empty() { "this call takes none".to_owned() } else { names.join(", ") };
            let message = format!("unknown query parameter{near} Known: {takes}");
            let message = if near.is_empty() { message.replacen(" Known", "; known", 1) } else { message };
            return Err(Problem::field(shown(name), message));
        }
        if pairs[..index].iter().any(|(earlier, _)| earlier == name) {
            return Err(Problem::field(shown(name), "the parameter is given twice; once is enough"));
        }
        if value.chars().any(char::is_control) {
            return Err(Problem::field(shown(name), "the parameter may not have control characters"));
        }
    }
    Ok(())
}

fn pairs(uri: &Uri) -> Result<Vec<(String, String)>, Problem> {
    axum::extract::Query::<Vec<(String, String)>>::try_from_uri(uri)
        .map(|query| query.0)
        .map_err(|_| Problem::field("query", "it must be percent-encoded name=value pairs"))
}

impl FromRequestParts<App> for Query {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Problem> {
        let route = parts.extensions.get::<&'static Route>().copied();
        Ok(Self { pairs: pairs(&parts.uri)?, route })
    }
}

impl Query {
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        let is_known = |route: &Route| route.query_names().any(|known| known == name);
        debug_assert!(self.route.is_none_or(is_known), "the table has no parameter `{name}` for this route");
        self.pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn id<T: FromStr<Err = IdError>>(&self, name: &str) -> Result<Option<T>, Problem> {
        self.text(name).map(|text| check::id(name, text)).transpose()
    }

    pub(crate) fn word<T>(&self, name: &str) -> Result<Option<T>, Problem>
    where
        T: FromStr + VariantArray + Display,
    {
        self.text(name).map(|text| check::word(name, text)).transpose()
    }

    /// `a,b,c`.
    pub(crate) fn list<T>(
        &self,
        name: &str,
        parse: impl Fn(&str) -> Result<T, Problem>,
    ) -> Result<Vec<T>, Problem> {
        self.text(name).map_or_else(|| Ok(Vec::new()), |text| text.split(',').map(parse).collect())
    }

    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>, Problem> {
        self.text(name).map(|text| whole_number(name, text)).transpose()
    }

    /// How many per page.
    pub(crate) fn limit(&self) -> Result<usize, Problem> {
        use giga_domain::limits::{PAGE_DEFAULT, PAGE_MAX};
        match self.number("limit")? {
            None => Ok(PAGE_DEFAULT),
            Some(limit) if (1..=PAGE_MAX as u64).contains(&limit) => Ok(limit as usize),
            Some(limit) => {
                Err(Problem::field("limit", format!("it must be from 1 to {PAGE_MAX}, not {limit}")))
            }
        }
    }
}

pub(crate) fn whole_number(field: &str, text: &str) -> Result<u64, Problem> {
    // `parse` would take a sign.
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten().ok_or_else(|| {
        Problem::field(field, format!("`{}` is not a whole number from 0 to {}", shown(text), u64::MAX))
    })
}
