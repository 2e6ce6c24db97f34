//! Jobs down a gRPC stream: the coordinator claims first, then sends. While it is up, nothing is asked.
//!
//! A grant that was sent is held by this factory whether it arrives or not, so everything that arrives is started, and a
//! stream that is left is listened to until it has fallen silent.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use giga_api::client::Trust;
use giga_proto::v1::fleet_client::FleetClient;
use giga_proto::v1::receive_grants_response::Event;
use giga_proto::v1::{ReceiveGrantsRequest, ReceiveGrantsResponse};
use tokio_util::sync::CancellationToken;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint};
use tonic::{Code, Request, Status, Streaming};

use super::channel::{Channel, ChannelError, Connector};
use super::start;
use crate::agent::Shared;

const CONNECT: Duration = Duration::from_secs(5);
/// How long the coordinator may take to answer that the stream is open.
const OPEN: Duration = Duration::from_secs(10);
/// A dead peer is noticed within two of these.
const KEEP_ALIVE: Duration = Duration::from_secs(10);
/// When closing: the stream is empty after so long without a message.
const SILENT: Duration = Duration::from_millis(200);
/// When closing: how long to read at most.
const LAST_GRANTS: Duration = Duration::from_secs(1);
/// The body and what is taken of the manifest are at most one such each; persona, reviews and checkpoint have less.
const GRANT_BYTES: usize = 4 * giga_domain::limits::MANIFEST_BYTES;

/// Where streams come from: the coordinator of the REST API, with the same token.
pub(crate) struct Streams {
    pub(crate) url: String,
    pub(crate) token: String,
    pub(crate) trust: Trust,
}

impl Streams {
    fn endpoint(&self) -> Result<Endpoint, tonic::transport::Error> {
        let endpoint = Endpoint::from_shared(self.url.clone())?
            .user_agent(concat!("giga-factory/", env!("CARGO_PKG_VERSION")))?
            .connect_timeout(CONNECT)
            .http2_keep_alive_interval(KEEP_ALIVE)
            .keep_alive_timeout(KEEP_ALIVE)
            .keep_alive_while_idle(true);
        if self.url.starts_with("https:") {
            let tls = match &self.trust.ca_cert {
                Some(pem) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(pem)),
                None => ClientTlsConfig::new().with_native_roots(),
            };
            return endpoint.tls_config(tls);
        }
        Ok(endpoint)
    }

    fn authorization(&self) -> Result<MetadataValue<Ascii>, ChannelError> {
        let value = format!("Bearer {}", self.token).parse();
        let mut value: MetadataValue<Ascii> =
            value.map_err(|_| ChannelError("the token has characters that cannot be sent".to_owned()))?;
        value.set_sensitive(true);
        Ok(value)
    }
}

#[async_trait]
impl Connector for Streams {
    async fn open(&self, shared: &Shared) -> Result<Box<dyn Channel>, ChannelError> {
        self.trust.check(&self.url).map_err(|error| ChannelError(error.to_string()))?;
        let cannot = |error: tonic::transport::Error| ChannelError(innermost(&error));
        let connection = self.endpoint().map_err(cannot)?.connect().await.map_err(cannot)?;
        let mut client = FleetClient::new(connection).max_decoding_message_size(GRANT_BYTES);
        let mut request = Request::new(ReceiveGrantsRequest { factory_id: shared.id.to_string() });
        request.metadata_mut().insert("authorization", self.authorization()?);
        match tokio::time::timeout(OPEN, client.receive_grants(request)).await {
            Ok(Ok(answer)) => Ok(Box::new(Stream { messages: answer.into_inner() })),
            Ok(Err(status)) => Err(broken(&status)),
            Err(_) => Err(ChannelError("the coordinator does not answer".to_owned())),
        }
    }
}

fn broken(status: &Status) -> ChannelError {
    ChannelError(match status.code() {
        Code::Unimplemented => "this coordinator does not support streams".to_owned(),
        code if status.message().is_empty() => code.description().to_owned(),
        _ => status.message().to_owned(),
    })
}

/// The last of a chain says what happened; the others only say where.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}

struct Stream {
    messages: Streaming<ReceiveGrantsResponse>,
}

impl Stream {
    async fn next(&mut self) -> Result<ReceiveGrantsResponse, ChannelError> {
        match self.messages.message().await {
            Ok(Some(message)) => Ok(message),
            Ok(None) => Err(ChannelError("the coordinator ended the stream".to_owned())),
            Err(status) => Err(broken(&status)),
        }
    }
}

#[async_trait]
impl Channel for Stream {
    async fn serve(&mut self, shared: &Arc<Shared>, end: &CancellationToken) -> Result<(), ChannelError> {
        loop {
            tokio::select! {
                biased;
                () = end.cancelled() => return Ok(()),
                message = self.next() => receive(shared, message?),
            }
        }
    }

    async fn leave(&mut self, shared: &Arc<Shared>) {
        let listen = async {
            while let Ok(Ok(message)) = tokio::time::timeout(SILENT, self.next()).await {
                receive(shared, message);
            }
        };
        let _ = tokio::time::timeout(LAST_GRANTS, listen).await;
    }
}

fn receive(shared: &Arc<Shared>, message: ReceiveGrantsResponse) {
    match message.event {
        Some(Event::Grant(grant)) => start(shared, grant, None),
        Some(Event::News(_)) => {
            shared.merge_hint.notify_one();
            shared.heartbeat_hint.notify_one();
            shared.running.renew_all();
        }
        // Of a newer coordinator, which also speaks to those who do not understand it.
        None => {}
    }
}
