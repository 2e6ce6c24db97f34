//! Calls of the API server: a bounded answer, and refusals in words for operators.

use giga_ports::DriverError;
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{Certificate, Client, Method, Response, StatusCode};
use serde_json::Value;

use super::{KubernetesOptions, Token};

/// Objects of ours have a few thousand bytes.
const ANSWER_BYTES: usize = 4 << 20;

#[derive(Debug)]
pub(super) struct Api {
    http: Client,
    options: KubernetesOptions,
}

/// What the API server said, where that is not what was asked for.
#[derive(Debug)]
pub(super) enum Refused {
    NotFound(String),
    Exists(String),
    Other(DriverError),
}

impl From<Refused> for DriverError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::NotFound(reason) | Refused::Exists(reason) => Self::lasting(reason),
            Refused::Other(error) => error,
        }
    }
}

impl Api {
    pub(super) fn new(options: KubernetesOptions) -> Result<Self, DriverError> {
        let mut http = Client::builder()
            .timeout(options.limit)
            .user_agent(concat!("gigafactory/", env!("CARGO_PKG_VERSION")))
            // A redirect would carry the token to wherever it points.
            .redirect(reqwest::redirect::Policy::none());
        if let Some(path) = &options.ca_cert {
            let cannot = |why: String| {
                DriverError::lasting(format!(
                    "cannot use the certificate of the cluster in {}: {why}",
                    path.display()
                ))
            };
            let pem = std::fs::read(path).map_err(|error| cannot(error.to_string()))?;
            let roots = Certificate::from_pem_bundle(&pem).map_err(|error| cannot(error.to_string()))?;
            if roots.is_empty() {
                return Err(cannot("there is none in it".to_owned()));
            }
            http = http.tls_certs_only(roots);
        }
        let http = http.build().map_err(|error| DriverError::lasting(format!("no HTTP client: {error}")))?;
        Ok(Self { http, options })
    }

    /// `path` begins with a slash.
    pub(super) async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
    ) -> Result<Value, Refused> {
        let url = format!("{}{path}", self.options.url.trim_end_matches('/'));
        let mut request =
            self.http.request(method, url).bearer_auth(self.token()?).header(ACCEPT, "application/json");
        if let Some(body) = body {
            request = request.header(CONTENT_TYPE, "application/json").body(body.to_string());
        }
        let answer = request.send().await.map_err(|error| self.unreachable(&error))?;
        let status = answer.status();
        let body = bounded(answer).await.map_err(|error| self.unreachable(&error))?;
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        if status.is_success() { Ok(body) } else { Err(refused(status, &body)) }
    }

    fn token(&self) -> Result<String, Refused> {
        match &self.options.token {
            Token::Text(token) => Ok(token.clone()),
            Token::File(path) => {
                let read = std::fs::read_to_string(path).map(|text| text.trim().to_owned());
                read.map_err(|error| {
                    let reason =
                        format!("cannot read the token for the cluster in {}: {error}", path.display());
                    Refused::Other(DriverError::lasting(reason))
                })
            }
        }
    }

    fn unreachable(&self, error: &reqwest::Error) -> Refused {
        // The last of a chain says what happened; the others only say where.
        let mut last: &dyn std::error::Error = error;
        while let Some(source) = last.source() {
            last = source;
        }
        let why = if error.is_timeout() { "no answer in time".to_owned() } else { last.to_string() };
        let reason = format!("the API server of Kubernetes at {} cannot be reached: {why}", self.options.url);
        Refused::Other(DriverError::transient(reason))
    }
}

async fn bounded(mut answer: Response) -> reqwest::Result<Vec<u8>> {
    let mut body = Vec::new();
    while let Some(piece) = answer.chunk().await? {
        if body.len() + piece.len() > ANSWER_BYTES {
            // Not JSON any more, which is how it is treated.
            return Ok(Vec::new());
        }
        body.extend_from_slice(&piece);
    }
    Ok(body)
}

fn refused(status: StatusCode, body: &Value) -> Refused {
    let said = body["message"].as_str().unwrap_or_default();
    let said: String = said.chars().filter(|c| !c.is_control()).take(500).collect();
    let reason = |what: &str| {
        if said.is_empty() { format!("{what} ({status})") } else { format!("{what}: {said}") }
    };
    let other = |what: &str, transient| Refused::Other(DriverError { reason: reason(what), transient });
    match status {
        StatusCode::NOT_FOUND => Refused::NotFound(reason("Kubernetes does not know it")),
        StatusCode::CONFLICT => Refused::Exists(reason("Kubernetes has it already")),
        // The token may have been replaced while it was on its way.
        StatusCode::UNAUTHORIZED => other("Kubernetes does not accept the coordinator's token", true),
        // Quotas are refusals too, and pass when something ends.
        StatusCode::FORBIDDEN if said.contains("exceeded quota") => {
            other("the namespace's quota is used up", true)
        }
        StatusCode::FORBIDDEN => other(
            "Kubernetes does not allow it; docs/pool-drivers.md lists the rights that the coordinator needs",
            false,
        ),
        StatusCode::TOO_MANY_REQUESTS => other("Kubernetes has too much to do", true),
        status if status.is_server_error() => other("the API server of Kubernetes failed", true),
        _ => other("Kubernetes refuses the Job", false),
    }
}
