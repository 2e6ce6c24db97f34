//! Calls to the provider: bounded in number, time and size, and never redirected.

use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{RequestBuilder, StatusCode, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::{Error, Provider};

/// Far more than keys, tokens or claims take.
const MOST_BYTES: usize = 1024 * 1024;
/// How much of a provider's own words is shown.
const SHOWN_CHARS: usize = 300;

pub(crate) fn client(timeout: Duration) -> reqwest::Result<reqwest::Client> {
    reqwest::Client::builder()
        .timeout(timeout)
        .connect_timeout(timeout)
        // A redirect could carry a code or a secret elsewhere.
        .redirect(reqwest::redirect::Policy::none())
        .user_agent(concat!("giga/", env!("CARGO_PKG_VERSION")))
        .build()
}

/// An answer of the token endpoint that is a refusal (RFC 6749, 5.2).
#[derive(Debug, Deserialize)]
pub(crate) struct OauthError {
    pub(crate) error: String,
    #[serde(default)]
    pub(crate) error_description: Option<String>,
}

impl OauthError {
    pub(crate) fn text(&self) -> String {
        match &self.error_description {
            Some(description) => shown(&format!("{} ({})", description, self.error)),
            None => shown(&self.error),
        }
    }
}

pub(crate) enum Answered<T> {
    Well(T),
    Refused(OauthError),
}

impl Provider {
    pub(crate) fn away(&self, reason: impl ToString) -> Error {
        Error::Away { provider: self.display_name(), reason: shown(&reason.to_string()) }
    }

    pub(crate) async fn get<T: DeserializeOwned>(&self, url: &str, bearer: Option<&str>) -> Result<T, Error> {
        let mut request = self.http.get(url);
        if let Some(token) = bearer {
            request = request.bearer_auth(token);
        }
        match self.send(request).await? {
            Answered::Well(value) => Ok(value),
            Answered::Refused(error) => Err(Error::Refused(error.text())),
        }
    }

    /// A form, in the name of this client (RFC 6749, 2.3.1).
    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        url: &str,
        mut fields: Vec<(&str, &str)>,
        takes_basic: bool,
    ) -> Result<Answered<T>, Error> {
        let id = self.config.client_id.as_str();
        let mut request = self.http.post(url).header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        match &self.config.client_secret {
            Some(secret) if takes_basic => {
                request = request.basic_auth(encoded(id), Some(encoded(&secret.0)));
            }
            Some(secret) => fields.extend([("client_id", id), ("client_secret", secret.0.as_str())]),
            None => fields.push(("client_id", id)),
        }
        self.send(request.body(form(&fields))).await
    }

    async fn send<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<Answered<T>, Error> {
        let Ok(_call) = self.calls.try_acquire() else {
            return Err(self.away("too many people are signing in at once"));
        };
        // Without the address: it may hold what is nobody's business.
        let failed = |error: reqwest::Error| self.away(why(&error.without_url()));
        let mut response = request.header(ACCEPT, "application/json").send().await.map_err(failed)?;
        let status = response.status();
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            if bytes.len() + chunk.len() > MOST_BYTES {
                return Err(Error::Untrusted("it is too large".to_owned()));
            }
            bytes.extend_from_slice(&chunk);
        }
        if status.is_success() {
            let read = serde_json::from_slice(&bytes);
            return read
                .map(Answered::Well)
                .map_err(|error| Error::Untrusted(format!("it cannot be read: {error}")));
        }
        let is_refusal = status.is_client_error() && status != StatusCode::TOO_MANY_REQUESTS;
        match serde_json::from_slice::<OauthError>(&bytes) {
            Ok(error) if is_refusal => Ok(Answered::Refused(error)),
            _ => Err(self.away(format!("it answered {status}"))),
        }
    }
}

/// The innermost reason: the outer ones only say that something was sent.
fn why(error: &dyn std::error::Error) -> String {
    let mut inner = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}

fn shown(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(SHOWN_CHARS).collect()
}

pub(crate) fn form(fields: &[(&str, &str)]) -> String {
    let mut url = Url::parse("form:").expect("a scheme is a URL");
    url.query_pairs_mut().extend_pairs(fields);
    url.query().unwrap_or_default().to_owned()
}

fn encoded(text: &str) -> String {
    form(&[("", text)]).trim_start_matches('=').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_encoded() {
        assert_eq!(form(&[("a", "b c"), ("d", "é&=")]), "a=b+c&d=%C3%A9%26%3D");
        assert_eq!(encoded("se:cret/"), "se%3Acret%2F");
        assert_eq!(encoded("=x"), "%3Dx");
    }
}
