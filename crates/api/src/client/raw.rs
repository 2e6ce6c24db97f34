//! A call as a value: for whoever offers the API in another form and leaves the judging to the coordinator.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

use super::transport::Call;
use super::{Client, ClientError};

/// What stands for itself everywhere in an address (RFC 3986).
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RawMethod {
    Get,
    Post,
}

/// A call below `/api/fleet`.
#[derive(Debug, Clone)]
pub struct RawCall {
    pub method: RawMethod,
    /// Each is escaped: what somebody typed as an id stays one segment.
    pub path: Vec<String>,
    pub query: Vec<(&'static str, String)>,
    pub headers: Vec<(&'static str, String)>,
    /// Its content type, and the bytes.
    pub body: Option<(String, Vec<u8>)>,
    /// Sending it twice has the same effect as sending it once.
    pub repeatable: bool,
}

impl RawCall {
    pub fn get(path: &[&str]) -> Self {
        Self { repeatable: true, ..Self::post(path) }.with_method(RawMethod::Get)
    }

    pub fn post(path: &[&str]) -> Self {
        Self {
            method: RawMethod::Post,
            path: path.iter().map(|&segment| segment.to_owned()).collect(),
            query: Vec::new(),
            headers: Vec::new(),
            body: None,
            repeatable: false,
        }
    }

    fn with_method(mut self, method: RawMethod) -> Self {
        self.method = method;
        self
    }

    #[must_use]
    pub fn query(mut self, name: &'static str, value: Option<impl ToString>) -> Self {
        self.query.extend(value.map(|value| (name, value.to_string())));
        self
    }

    #[must_use]
    pub fn header(mut self, name: &'static str, value: Option<impl ToString>) -> Self {
        self.headers.extend(value.map(|value| (name, value.to_string())));
        self
    }

    #[must_use]
    pub fn body(mut self, kind: &str, bytes: Vec<u8>) -> Self {
        self.body = Some((kind.to_owned(), bytes));
        self
    }

    #[must_use]
    pub fn json(self, body: &serde_json::Value) -> Self {
        self.body("application/json", body.to_string().into_bytes())
    }

    #[must_use]
    pub fn repeatable(mut self, repeatable: bool) -> Self {
        self.repeatable = repeatable;
        self
    }

    /// Such as `/api/fleet/jobs?limit=5`, for whoever has no client.
    pub fn path_and_query(&self) -> String {
        let escaped = |text: &str| utf8_percent_encode(text, ESCAPED).to_string();
        let mut address = "/api/fleet".to_owned();
        for segment in &self.path {
            // Neither would survive as a segment; both are refused as whatever they stand for.
            let segment = match segment.as_str() {
                "." => "%2E".to_owned(),
                ".." => "%2E%2E".to_owned(),
                other => escaped(other),
            };
            address.push('/');
            address.push_str(&segment);
        }
        for (at, (name, value)) in self.query.iter().enumerate() {
            address.push(if at == 0 { '?' } else { '&' });
            address.push_str(name);
            address.push('=');
            address.push_str(&escaped(value));
        }
        address
    }
}

impl Client {
    /// The bytes of the answer; a refusal is an error.
    pub async fn raw(&self, call: &RawCall) -> Result<Vec<u8>, ClientError> {
        self.bytes_of(Call::raw(call)).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_typed_stays_one_segment() {
        for (typed, sent) in [
            ("01J", "01J"),
            ("../tokens", "..%2Ftokens"),
            ("..", "%2E%2E"),
            ("a b?x=1#y", "a%20b%3Fx%3D1%23y"),
            ("é\0", "%C3%A9%00"),
        ] {
            let call = RawCall::get(&["jobs", typed]);
            assert_eq!(call.path_and_query(), format!("/api/fleet/jobs/{sent}"));
        }
        let call = RawCall::get(&["jobs"]).query("name", Some("a&limit=9")).query("limit", Some(5));
        assert_eq!(call.path_and_query(), "/api/fleet/jobs?name=a%26limit%3D9&limit=5");
    }
}
