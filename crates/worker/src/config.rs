//! Where the coordinator is and who is calling. Settings are checked here, before anything is sent; the token is kept out
//! of every text.

use std::fmt;
use std::time::Duration;

use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Uri};

use crate::Error;

/// How long a connection may stay silent before it is asked whether it still lives, and how long it has to answer.
const PROBE_EVERY: Duration = Duration::from_secs(20);
const PROBE_PATIENCE: Duration = Duration::from_secs(10);
/// Room for a full batch of jobs on its way to us without waiting for window updates.
const STREAM_WINDOW: u32 = 4 * 1024 * 1024;
const CONNECTION_WINDOW: u32 = 8 * 1024 * 1024;

/// Address and credentials of a [`crate::Client`].
#[derive(Clone)]
pub struct Config {
    url: String,
    token: String,
    product: Option<String>,
    allow_plain_http: bool,
    ca_certificate: Option<Vec<u8>>,
}

impl Config {
    /// `https://` uses TLS and trusts what the machine trusts; `http://host:port` speaks HTTP/2 in the clear, and is refused
    /// for other machines unless [`Config::allow_plain_http`] says otherwise.
    pub fn new(url: impl Into<String>, token: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            token: token.into(),
            product: None,
            allow_plain_http: false,
            ca_certificate: None,
        }
    }

    /// Send the token over plain HTTP to another machine: everyone on the way can read it.
    #[must_use]
    pub fn allow_plain_http(mut self) -> Self {
        self.allow_plain_http = true;
        self
    }

    /// The only certificates that can vouch for the coordinator, as PEM, instead of those that the machine trusts.
    #[must_use]
    pub fn ca_certificate(mut self, pem: impl Into<Vec<u8>>) -> Self {
        self.ca_certificate = Some(pem.into());
        self
    }

    /// The product that calls are for; needed where the token is for several.
    #[must_use]
    pub fn product(mut self, product: impl Into<String>) -> Self {
        self.product = Some(product.into());
        self
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn endpoint(&self) -> Result<Endpoint, Error> {
        let wanted = "wanted `http://host:port` or `https://host`";
        let secure = match self.url.split_once("://") {
            Some(("http", _)) => false,
            Some(("https", _)) => true,
            // Not echoed: an address with a password in it would end up in a log.
            _ => return Err(Error::setting("url", wanted)),
        };
        if self.url.contains('@') {
            return Err(Error::setting("url", "credentials do not belong into the address; give a token"));
        }
        let endpoint = Endpoint::from_shared(self.url.clone())
            .map_err(|error| Error::setting("url", format!("{error}; {wanted}")))?;
        if !secure && !self.allow_plain_http && !is_loopback(endpoint.uri()) {
            return Err(Error::setting(
                "url",
                "a token is not sent over plain HTTP to another machine: use https://, or Config::allow_plain_http where \
                 everyone on the way may read it",
            ));
        }
        let mut endpoint = endpoint
            .connect_timeout(Duration::from_secs(10))
            .http2_keep_alive_interval(PROBE_EVERY)
            .keep_alive_timeout(PROBE_PATIENCE)
            .keep_alive_while_idle(true)
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW);
        if secure {
            let tls = match &self.ca_certificate {
                Some(pem) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem)),
                None => ClientTlsConfig::new().with_native_roots(),
            };
            endpoint = endpoint
                .tls_config(tls)
                .map_err(|error| Error::setting("url", format!("TLS cannot be used here: {error}")))?;
        }
        Ok(endpoint)
    }

    pub(crate) fn credentials(&self) -> Result<Credentials, Error> {
        let token = self.token.trim();
        if token.is_empty() {
            return Err(Error::setting("token", "is empty; `giga` prints one when it makes it"));
        }
        let mut authorization = MetadataValue::try_from(format!("Bearer {token}")).map_err(|_| {
            Error::setting("token", "holds characters that no token has; was it cut out right?")
        })?;
        authorization.set_sensitive(true);
        let product = self.product.as_deref().map(MetadataValue::try_from).transpose();
        let product =
            product.map_err(|_| Error::setting("product", "holds characters that no product id has"))?;
        Ok(Credentials { authorization, product })
    }
}

fn is_loopback(uri: &Uri) -> bool {
    let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
}

impl fmt::Debug for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut config = f.debug_struct("Config");
        config.field("url", &self.url).field("product", &self.product).finish_non_exhaustive()
    }
}

/// What every call carries.
#[derive(Clone)]
pub(crate) struct Credentials {
    authorization: MetadataValue<Ascii>,
    product: Option<MetadataValue<Ascii>>,
}

impl Credentials {
    pub(crate) fn sign<T>(&self, message: T) -> tonic::Request<T> {
        let mut request = tonic::Request::new(message);
        request.metadata_mut().insert("authorization", self.authorization.clone());
        if let Some(product) = &self.product {
            request.metadata_mut().insert("x-product-id", product.clone());
        }
        request
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKEN: &str = "giga_not_to_be_shown";

    fn refused(config: Config) -> String {
        let endpoint = config.endpoint().map(|_| ());
        let error = endpoint.and_then(|()| config.credentials().map(|_| ())).unwrap_err();
        format!("{error} {error:?}")
    }

    #[test]
    fn what_cannot_work_is_named_before_anything_is_sent() {
        assert!(refused(Config::new("127.0.0.1:7717", TOKEN)).starts_with("url: wanted `http://host:port`"));
        assert!(refused(Config::new("ftp://host", TOKEN)).starts_with("url: "));
        assert!(refused(Config::new("https://host", " ")).starts_with("token: is empty"));
        assert!(refused(Config::new("https://host", TOKEN).product("a\nb")).starts_with("product: "));
        Config::new("https://host", TOKEN).endpoint().unwrap();
    }

    #[test]
    fn a_token_goes_over_plain_http_only_on_this_machine() {
        for url in ["http://127.0.0.1:1", "http://localhost:1", "http://[::1]:1", "https://example.com"] {
            assert!(Config::new(url, TOKEN).endpoint().is_ok(), "{url}");
        }
        for url in ["http://example.com", "http://0.0.0.0:1", "http://localhost.example.com"] {
            let why = refused(Config::new(url, TOKEN));
            assert!(why.contains("plain HTTP") && why.contains("allow_plain_http"), "{why}");
            assert!(Config::new(url, TOKEN).allow_plain_http().endpoint().is_ok(), "{url}");
        }
    }

    #[test]
    fn secrets_are_in_no_text() {
        for config in [
            Config::new("https://host", format!("{TOKEN}\n{TOKEN}")),
            Config::new(format!("http://user:{TOKEN}@host"), TOKEN),
            Config::new(format!("nonsense {TOKEN}"), TOKEN),
        ] {
            let text = refused(config);
            assert!(!text.contains(TOKEN), "{text}");
        }
        let config = Config::new("http://host", TOKEN);
        assert!(!format!("{config:?}").contains(TOKEN));
        let signed = config.credentials().unwrap().sign(());
        assert!(!format!("{signed:?}").contains(TOKEN), "{signed:?}");
    }
}
