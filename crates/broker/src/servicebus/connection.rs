//! One AMQP connection to a namespace: a socket of our own, TLS, no name (who we are comes by `$cbs`).
//!
//! The library would open the socket itself, with Nagle's algorithm: 44 ms for a round trip instead of one.

use std::sync::Arc;

use fe2o3_amqp::Connection;
use fe2o3_amqp::connection::ConnectionHandle;
use fe2o3_amqp::connection::OpenError;
use fe2o3_amqp::sasl_profile::SaslProfile;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::address::Address;
use super::failure::{Failure, Kind, PATIENCE};

/// What Service Bus allows: a session each for thousands of factories.
const SESSIONS: u16 = 4_999;
/// Nothing is heard for so long: the connection is dead. The other side sends something in between.
const SILENCE_MS: u32 = 60_000;
const FRAME: u32 = 64 * 1024;

pub(super) async fn open(address: &Address, container: &str) -> Result<ConnectionHandle<()>, Failure> {
    let opening = async {
        let stream = TcpStream::connect((address.host.as_str(), address.port)).await.map_err(unreachable)?;
        stream.set_nodelay(true).map_err(unreachable)?;
        if address.plain {
            return negotiate(address, container, stream).await;
        }
        let name = ServerName::try_from(address.host.clone()).map_err(|_| {
            Failure::new(Kind::Refused, "the host of the Service Bus URL is no name of a server")
        })?;
        let stream = TlsConnector::from(Arc::new(tls()?)).connect(name, stream).await.map_err(|error| {
            // What TLS objects to, a certificate that is not trusted for example, comes as invalid data.
            let refused = error.kind() == std::io::ErrorKind::InvalidData;
            let kind = if refused { Kind::Refused } else { Kind::Lost };
            Failure::new(kind, format!("no TLS with Service Bus: {error}"))
        })?;
        negotiate(address, container, stream).await
    };
    let late = || Failure::new(Kind::Lost, "Service Bus does not answer");
    tokio::time::timeout(PATIENCE, opening).await.map_err(|_| late())?
}

fn unreachable(error: std::io::Error) -> Failure {
    Failure::new(Kind::Lost, format!("Service Bus cannot be reached: {error}"))
}

async fn negotiate<Io>(
    address: &Address,
    container: &str,
    stream: Io,
) -> Result<ConnectionHandle<()>, Failure>
where
    Io: AsyncRead + AsyncWrite + std::fmt::Debug + Send + Unpin + 'static,
{
    let opened = Connection::builder()
        .container_id(container)
        .hostname(address.host.as_str())
        .scheme("amqp")
        .sasl_profile(SaslProfile::Anonymous)
        .max_frame_size(FRAME)
        .channel_max(SESSIONS)
        .idle_time_out(SILENCE_MS)
        .open_with_stream(stream)
        .await;
    opened.map_err(|error| match &error {
        OpenError::RemoteClosedWithError(why) => Failure::of_condition(why),
        OpenError::ProtocolHeaderMismatch(_) => {
            Failure::new(Kind::Refused, "what answers at this address does not speak AMQP 1.0")
        }
        _ => Failure::lost(error),
    })
}

/// The machine's own roots, as for PostgreSQL.
fn tls() -> Result<ClientConfig, Failure> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if roots.is_empty() {
        return Err(Failure::new(
            Kind::Refused,
            "there are no root certificates on this machine: install ca-certificates, or name a file by SSL_CERT_FILE",
        ));
    }
    let wrong = |error: rustls::Error| Failure::new(Kind::Refused, error.to_string());
    let builder = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()));
    let builder = builder.with_safe_default_protocol_versions().map_err(wrong)?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}
