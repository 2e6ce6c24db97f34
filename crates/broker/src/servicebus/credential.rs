//! Who we are there: a shared access key, a signature that somebody else made, or an identity of Entra ID.
//!
//! Secrets never show. Nothing here knows what time it is; whoever asks says so.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use giga_domain::Timestamp;
use giga_ports::BrokerError;
use hmac::{Hmac, KeyInit as _, Mac as _};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde::Deserialize;
use sha2::Sha256;

use super::failure::{Failure, Kind, PATIENCE};

const IMDS: &str = "http://169.254.169.254";
const ENTRA: &str = "https://login.microsoftonline.com";
const RESOURCE: &str = "https://servicebus.azure.net";
/// How long a signature of ours is good for.
pub(super) const SIGNED_FOR: Duration = Duration::from_hours(1);
const UNESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
const REMEDY: &str = "give one of: --servicebus-connection FILE with a connection string, AZURE_SERVICEBUS_CONNECTION_STRING, \
                      a federated token (AZURE_FEDERATED_TOKEN_FILE, AZURE_TENANT_ID, AZURE_CLIENT_ID), or a managed \
                      identity of the machine";

#[derive(Clone)]
pub struct ServiceBusCredential(Kinds);

#[derive(Clone)]
enum Kinds {
    Key { name: String, key: String },
    Signature(String),
    Managed { endpoint: String, header: Option<String>, client: Option<String> },
    Workload { authority: String, tenant: String, client: String, file: PathBuf },
}

impl fmt::Debug for ServiceBusCredential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServiceBusCredential({})", self.describe())
    }
}

/// What `$cbs` and the management take.
#[derive(Clone)]
pub(super) struct Token {
    pub(super) text: String,
    pub(super) kind: &'static str,
    pub(super) until: Timestamp,
}

impl Token {
    pub(super) fn header(&self) -> String {
        if self.kind == JWT { format!("Bearer {}", self.text) } else { self.text.clone() }
    }
}

const JWT: &str = "jwt";
const SAS: &str = "servicebus.windows.net:sastoken";

impl ServiceBusCredential {
    /// A connection string as the portal shows it, with a key or with a signature.
    pub fn from_connection_string(text: &str) -> Result<Self, BrokerError> {
        let field = |wanted: &str| {
            let mut pairs = text.trim().split(';').filter_map(|pair| pair.split_once('='));
            pairs
                .find(|(name, _)| name.trim().eq_ignore_ascii_case(wanted))
                .map(|(_, value)| value.trim().to_owned())
        };
        let signature = || {
            let whole = text.trim();
            let bare = whole.starts_with("SharedAccessSignature ").then(|| whole.to_owned());
            bare.or_else(|| field("SharedAccessSignature"))
        };
        match (field("SharedAccessKeyName"), field("SharedAccessKey"), signature()) {
            (Some(name), Some(key), _) if !name.is_empty() && !key.is_empty() => {
                Ok(Self(Kinds::Key { name, key }))
            }
            (_, _, Some(signature)) if expiry(&signature).is_some() => Ok(Self(Kinds::Signature(signature))),
            _ => Err(BrokerError::because(
                "it is no connection string of Service Bus, which has SharedAccessKeyName and SharedAccessKey, or \
                 SharedAccessSignature",
            )),
        }
    }

    /// A file with such a text in it.
    pub fn read(path: &Path) -> Result<Self, BrokerError> {
        let wrong =
            |why: &str| BrokerError::because(format!("the connection string in {}: {why}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|error| wrong(&error.to_string()))?;
        Self::from_connection_string(&text).map_err(|error| wrong(&error.reason))
    }

    /// As the tools of Azure would find it: a connection string, a federated token, else the machine's own identity.
    pub fn from_variables(variables: &[(String, String)]) -> Result<Self, BrokerError> {
        let get = |name: &str| {
            variables
                .iter()
                .find(|(known, value)| known == name && !value.is_empty())
                .map(|(_, value)| value.clone())
        };
        if let Some(text) = get("AZURE_SERVICEBUS_CONNECTION_STRING") {
            return Self::from_connection_string(&text).map_err(|error| {
                BrokerError::because(format!("AZURE_SERVICEBUS_CONNECTION_STRING: {}", error.reason))
            });
        }
        if let Some(file) = get("AZURE_FEDERATED_TOKEN_FILE") {
            let (Some(tenant), Some(client)) = (get("AZURE_TENANT_ID"), get("AZURE_CLIENT_ID")) else {
                return Err(BrokerError::because(
                    "AZURE_FEDERATED_TOKEN_FILE is set: set AZURE_TENANT_ID and AZURE_CLIENT_ID too",
                ));
            };
            let authority = get("AZURE_AUTHORITY_HOST").unwrap_or_else(|| ENTRA.to_owned());
            return Ok(Self(Kinds::Workload { authority, tenant, client, file: file.into() }));
        }
        let client = get("AZURE_CLIENT_ID");
        // Of App Service and Container Apps, which have no IMDS.
        if let (Some(endpoint), Some(header)) = (get("IDENTITY_ENDPOINT"), get("IDENTITY_HEADER")) {
            return Ok(Self(Kinds::Managed { endpoint, header: Some(header), client }));
        }
        let host = get("AZURE_POD_IDENTITY_AUTHORITY_HOST").unwrap_or_else(|| IMDS.to_owned());
        let endpoint = format!("{}/metadata/identity/oauth2/token", host.trim_end_matches('/'));
        Ok(Self(Kinds::Managed { endpoint, header: None, client }))
    }

    /// For people: of which kind it is.
    pub fn describe(&self) -> String {
        match &self.0 {
            Kinds::Key { name, .. } => format!("shared access key {name}"),
            Kinds::Signature(_) => "shared access signature".to_owned(),
            Kinds::Managed { client: None, .. } => "managed identity".to_owned(),
            Kinds::Managed { client: Some(client), .. } => format!("managed identity {client}"),
            Kinds::Workload { client, .. } => format!("workload identity {client}"),
        }
    }

    /// One token for everything.
    pub(super) fn is_identity(&self) -> bool {
        matches!(self.0, Kinds::Managed { .. } | Kinds::Workload { .. })
    }

    /// What must never be shown, whatever an engine prints.
    pub fn secret(&self) -> Option<&str> {
        match &self.0 {
            Kinds::Key { key, .. } => Some(key),
            Kinds::Signature(signature) => Some(signature),
            Kinds::Managed { header, .. } => header.as_deref(),
            Kinds::Workload { .. } => None,
        }
    }

    /// A signature for one factory's subscription, which can read there and nowhere else. Only a key can sign.
    pub fn sign_for(
        &self,
        url: &str,
        factory: &giga_domain::FactoryId,
        until: Timestamp,
    ) -> Result<String, BrokerError> {
        let Kinds::Key { name, key } = &self.0 else {
            return Err(BrokerError::because(format!(
                "only a shared access key can sign, and this is a {}; give the factory's own identity the role Azure \
                 Service Bus Data Receiver on its subscription instead",
                self.describe()
            )));
        };
        let address = super::address::parse(url)?;
        Ok(signed(name, key, &address.audience(&address.mailbox(factory)), until))
    }

    pub(super) async fn token(
        &self,
        http: &reqwest::Client,
        audience: &str,
        now: Timestamp,
        signed_for: Duration,
    ) -> Result<Token, Failure> {
        match &self.0 {
            Kinds::Key { name, key } => {
                let until = now.plus(signed_for);
                Ok(Token { text: signed(name, key, audience, until), kind: SAS, until })
            }
            Kinds::Signature(text) => {
                let until = expiry(text).unwrap_or(now);
                if until <= now {
                    return Err(Failure::new(
                        Kind::Refused,
                        "the shared access signature has expired: get another one",
                    ));
                }
                Ok(Token { text: text.clone(), kind: SAS, until })
            }
            Kinds::Managed { endpoint, header, client } => {
                let version = if header.is_some() { "2019-08-01" } else { "2018-02-01" };
                let mut query = vec![("api-version", version), ("resource", RESOURCE)];
                if let Some(client) = client {
                    query.push(("client_id", client));
                }
                let query: Vec<String> = query
                    .iter()
                    .map(|(name, value)| format!("{name}={}", utf8_percent_encode(value, UNESCAPED)))
                    .collect();
                let mut request =
                    http.get(format!("{endpoint}?{}", query.join("&"))).header("metadata", "true");
                if let Some(header) = header {
                    request = request.header("x-identity-header", header);
                }
                ask(request, "the managed identity", now).await
            }
            Kinds::Workload { authority, tenant, client, file } => {
                let unreadable = |error| {
                    Failure::new(
                        Kind::Refused,
                        format!("AZURE_FEDERATED_TOKEN_FILE {}: {error}", file.display()),
                    )
                };
                // Read each time: whoever runs the machine replaces it.
                let assertion = tokio::fs::read_to_string(file).await.map_err(unreadable)?;
                let scope = format!("{RESOURCE}/.default");
                let form = [
                    ("grant_type", "client_credentials"),
                    ("client_id", client),
                    ("scope", &scope),
                    ("client_assertion_type", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"),
                    ("client_assertion", assertion.trim()),
                ];
                let form: Vec<String> = form
                    .iter()
                    .map(|(name, value)| format!("{name}={}", utf8_percent_encode(value, UNESCAPED)))
                    .collect();
                let url = format!("{}/{tenant}/oauth2/v2.0/token", authority.trim_end_matches('/'));
                let request = http
                    .post(url)
                    .header("content-type", "application/x-www-form-urlencoded")
                    .body(form.join("&"));
                ask(request, "the workload identity", now).await
            }
        }
    }
}

#[derive(Deserialize)]
struct Answer {
    access_token: String,
    /// IMDS writes it as text.
    expires_in: Option<serde_json::Value>,
}

#[derive(Deserialize, Default)]
struct Refusal {
    #[serde(default)]
    error: String,
    #[serde(default)]
    error_description: String,
}

async fn ask(request: reqwest::RequestBuilder, whose: &str, now: Timestamp) -> Result<Token, Failure> {
    let answer = request.timeout(PATIENCE).send().await;
    // Without the address: it can hold a secret, and the error would repeat it.
    let lost = |error: reqwest::Error| {
        Failure::new(
            Kind::Lost,
            format!("{whose} cannot be asked for a token: {}; {REMEDY}", error.without_url()),
        )
    };
    let answer = answer.map_err(lost)?;
    let status = answer.status().as_u16();
    let body = answer.text().await.map_err(lost)?;
    if status != 200 {
        let Refusal { error, error_description } = serde_json::from_str(&body).unwrap_or_default();
        let said = if error_description.is_empty() { error } else { error_description };
        let kind = if status == 429 || status >= 500 { Kind::Busy } else { Kind::Refused };
        return Err(Failure::new(kind, format!("{whose} gets no token: {said} (status {status})")));
    }
    let unreadable = || Failure::new(Kind::Lost, format!("{whose} got an answer that is no token"));
    let answer: Answer = serde_json::from_str(&body).map_err(|_| unreadable())?;
    let seconds = match answer.expires_in {
        Some(serde_json::Value::String(text)) => text.parse().ok(),
        Some(value) => value.as_u64(),
        None => None,
    };
    let until = now.plus(Duration::from_secs(seconds.ok_or_else(unreadable)?));
    Ok(Token { text: answer.access_token, kind: JWT, until })
}

fn signed(name: &str, key: &str, audience: &str, until: Timestamp) -> String {
    let resource = utf8_percent_encode(audience, UNESCAPED).to_string();
    let seconds = until.as_millis() / 1000;
    let mut mac = Hmac::<Sha256>::new_from_slice(key.as_bytes()).expect("a key may have any length");
    mac.update(format!("{resource}\n{seconds}").as_bytes());
    let signature = STANDARD.encode(mac.finalize().into_bytes());
    format!(
        "SharedAccessSignature sr={resource}&sig={}&se={seconds}&skn={}",
        utf8_percent_encode(&signature, UNESCAPED),
        utf8_percent_encode(name, UNESCAPED)
    )
}

/// Until when a signature is good.
fn expiry(signature: &str) -> Option<Timestamp> {
    let fields = signature.strip_prefix("SharedAccessSignature ")?;
    let value = fields.split('&').find_map(|pair| pair.strip_prefix("se="))?;
    let seconds: i64 = percent_decode_str(value).decode_utf8().ok()?.parse().ok()?;
    Some(Timestamp::from_millis(seconds.checked_mul(1000)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Endpoint=sb://ns.servicebus.windows.net/;SharedAccessKeyName=root;SharedAccessKey=c2VjcmV0+/=;EntityPath=giga";

    #[test]
    fn a_connection_string_is_read_and_not_shown() {
        let credential = ServiceBusCredential::from_connection_string(TEXT).unwrap();
        assert_eq!(credential.secret(), Some("c2VjcmV0+/="));
        assert_eq!(format!("{credential:?}"), "ServiceBusCredential(shared access key root)");
        for wrong in
            ["", "hunter2", "Endpoint=sb://ns/;SharedAccessKey=hunter2", "SharedAccessSignature=hunter2"]
        {
            let error = ServiceBusCredential::from_connection_string(wrong).unwrap_err().to_string();
            assert!(error.contains("SharedAccessKeyName") && !error.contains("hunter2"), "{error}");
        }
    }

    #[test]
    fn a_signature_is_what_the_service_computes() {
        // Checked with openssl: printf 'sb%3A%2F%2Fns%2Fgiga\n1700000000' | openssl dgst -sha256 -hmac key -binary | base64
        let text = signed("root", "key", "sb://ns/giga", Timestamp::from_millis(1_700_000_000_999));
        assert_eq!(
            text,
            "SharedAccessSignature sr=sb%3A%2F%2Fns%2Fgiga&sig=mX2eBltpsISR%2Fu2VsTtmL56LU5a0gGNlJ5MPUSem%2F2w%3D&se=1700000000&skn=root"
        );
        assert_eq!(expiry(&text), Some(Timestamp::from_millis(1_700_000_000_000)));
        assert!(ServiceBusCredential::from_connection_string(&text).is_ok(), "it may stand alone in a file");
    }

    #[test]
    fn the_environment_says_who_we_are() {
        let of = |pairs: &[(&str, &str)]| {
            let variables: Vec<_> =
                pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            ServiceBusCredential::from_variables(&variables).map(|credential| credential.describe())
        };
        assert_eq!(of(&[]).unwrap(), "managed identity");
        assert_eq!(of(&[("AZURE_CLIENT_ID", "c1")]).unwrap(), "managed identity c1");
        assert_eq!(of(&[("AZURE_SERVICEBUS_CONNECTION_STRING", TEXT)]).unwrap(), "shared access key root");
        let workload =
            [("AZURE_FEDERATED_TOKEN_FILE", "/t"), ("AZURE_TENANT_ID", "x"), ("AZURE_CLIENT_ID", "c1")];
        assert_eq!(of(&workload).unwrap(), "workload identity c1");
        let error = of(&workload[..1]).unwrap_err().to_string();
        assert!(error.contains("AZURE_TENANT_ID"), "{error}");
    }

    #[test]
    fn only_a_key_signs_for_factories() {
        let url = "servicebus://ns.servicebus.windows.net/fleet";
        let until = Timestamp::from_millis(1_700_000_000_000);
        let sign =
            |credential: &ServiceBusCredential| credential.sign_for(url, &"mac-1".parse().unwrap(), until);
        let text = sign(&ServiceBusCredential::from_connection_string(TEXT).unwrap()).unwrap();
        assert!(text.contains("fleet%2FSubscriptions%2Fmac-1"), "{text}");
        let error = sign(&ServiceBusCredential::from_variables(&[]).unwrap()).unwrap_err().to_string();
        assert!(error.contains("Data Receiver"), "{error}");
    }
}
