//! From a URL to a session: at once if the server is there, otherwise as soon as it is.
//!
//! The library could wait for the first connection by itself, but it would keep trying after the broker was dropped and
//! hide why the server refuses.

use std::io::ErrorKind;
use std::sync::Arc;

use async_nats::jetstream::context::{ContextBuilder, CreateStreamError, CreateStreamErrorKind};
use async_nats::{Client, ConnectError, ConnectErrorKind};
use giga_ports::BrokerError;
use parking_lot::Mutex;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

use super::{NatsKey, PATIENCE, Session, address, failure, streams, subscriptions};
use crate::backoff::{Backoff, reconnect_delay};
use crate::local::{DeadLetterBroadcast, HintBroadcast};

/// The session, or why there is none yet.
pub(super) type Link = Result<Arc<Session>, String>;

struct Failed {
    error: BrokerError,
    /// The server answered and refused: an error now rather than a retry.
    refused: bool,
}

/// The tasks end when the set is dropped.
pub(super) async fn establish(
    url: &str,
    key: Option<NatsKey>,
    hints: &HintBroadcast,
    dead: &DeadLetterBroadcast,
) -> Result<(watch::Receiver<Link>, JoinSet<()>), BrokerError> {
    match connect(url, key.as_ref(), hints, dead).await {
        Ok((session, tasks)) => Ok((watch::channel(Ok(session)).1, tasks)),
        Err(Failed { error, refused: true }) => Err(error),
        Err(Failed { error, refused: false }) => {
            tracing::warn!(reason = error.reason, "cannot connect to NATS yet; retrying");
            let (link, seen) = watch::channel(Err(error.reason));
            let mut tasks = JoinSet::new();
            tasks.spawn(connect_later(url.to_owned(), key, hints.clone(), dead.clone(), link));
            Ok((seen, tasks))
        }
    }
}

/// Never gives up: an operator may fix the server meanwhile.
async fn connect_later(
    url: String,
    key: Option<NatsKey>,
    hints: HintBroadcast,
    dead: DeadLetterBroadcast,
    link: watch::Sender<Link>,
) {
    let mut backoff = Backoff::new();
    let mut tasks = loop {
        backoff.wait().await;
        match connect(&url, key.as_ref(), &hints, &dead).await {
            Ok((session, tasks)) => {
                link.send_modify(|link| *link = Ok(session));
                break tasks;
            }
            Err(Failed { error, refused }) => {
                if refused {
                    tracing::error!(reason = error.reason, "the NATS server cannot be used");
                } else {
                    tracing::warn!(reason = error.reason, "cannot connect to NATS yet");
                }
                link.send_modify(|link| *link = Err(error.reason));
            }
        }
    };
    hints.resync();
    while tasks.join_next().await.is_some() {}
}

async fn connect(
    url: &str,
    key: Option<&NatsKey>,
    hints: &HintBroadcast,
    dead: &DeadLetterBroadcast,
) -> Result<(Arc<Session>, JoinSet<()>), Failed> {
    let refused = |error| Failed { error, refused: true };
    let passing = |error| Failed { error, refused: false };
    let (servers, options) = address::parse(url, key).map_err(refused)?;
    let (happened, events) = mpsc::unbounded_channel();
    let client = options
        .name("gigafactory")
        .connection_timeout(PATIENCE)
        .reconnect_delay_callback(reconnect_delay)
        .event_callback(move |event| {
            // An error means that the broker is being dropped.
            let _ = happened.send(event);
            std::future::ready(())
        })
        .connect(servers)
        .await
        .map_err(not_connected)?;
    check_server(&client).map_err(refused)?;
    let context = ContextBuilder::new().timeout(PATIENCE).build(client.clone());
    streams::ensure(&context).await.map_err(without_streams)?;
    let disconnects = watch::Sender::new(0);
    let session = Arc::new(Session {
        client,
        context,
        disconnects,
        consumers: Mutex::default(),
        prepared: Mutex::default(),
    });
    let tasks = subscriptions::start(&session, events, hints, dead).await.map_err(passing)?;
    // The server answers in order: after this it knows the subscriptions.
    session.ping().await.map_err(passing)?;
    Ok((session, tasks))
}

fn check_server(client: &Client) -> Result<(), BrokerError> {
    let info = client.server_info();
    if !client.is_server_compatible(2, 10, 0) {
        return Err(BrokerError::because(format!(
            "the NATS server is version {}, and 2.10 or newer is needed: upgrade it, or use another broker",
            info.version
        )));
    }
    if !info.jetstream {
        return Err(BrokerError::because(
            "the NATS server runs without JetStream: start it with `-js`, or enable `jetstream` in its settings",
        ));
    }
    Ok(())
}

/// Why there is no connection, for whoever does not retry.
pub(super) fn refusal(error: ConnectError) -> BrokerError {
    not_connected(error).error
}

fn not_connected(error: ConnectError) -> Failed {
    match error.kind() {
        ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => {
            let error =
                BrokerError::because("the NATS server refuses the credentials in the URL, or the key");
            Failed { error, refused: true }
        }
        ConnectErrorKind::ServerParse | ConnectErrorKind::Tls => {
            Failed { error: failure(error), refused: true }
        }
        _ => {
            let source = std::error::Error::source(&error);
            let io = source.and_then(|source| source.downcast_ref::<std::io::Error>());
            // What TLS objects to, a certificate that is not trusted for example, comes as invalid data.
            let refused = io.is_some_and(|io| io.kind() == ErrorKind::InvalidData);
            Failed { error: failure(error), refused }
        }
    }
}

/// A cluster that is still electing answers "temporarily unavailable", or not at all.
fn without_streams(error: BrokerError) -> Failed {
    let source = error.source.as_ref().and_then(|source| source.downcast_ref::<CreateStreamError>());
    let refused = source.is_some_and(
        |source| matches!(source.kind(), CreateStreamErrorKind::JetStream(why) if why.code() != 503),
    );
    Failed { error, refused }
}
