//! One connection per process that listens, and reconnects by itself.
//!
//! It sends no queries while nothing happens: TCP keepalives find a dead connection. Notifications that are sent while it
//! is down are lost: the consumers of this process end with it, so that none waits in vain, and after a reconnect all
//! readers resync.

use std::sync::Arc;
use std::time::Duration;

use giga_ports::BrokerError;
use tokio::sync::{mpsc, watch};
use tokio_postgres::{Client, Notification};

use super::connect::{Connector, failure};
use super::wire;
use crate::backoff::Backoff;
use crate::local::{DeadLetterBroadcast, HintBroadcast, Mailboxes};

/// To connect and to listen. A server that accepts the connection and then does not answer counts as unreachable.
const PATIENCE: Duration = Duration::from_secs(10);

/// The state of the listening connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Link {
    /// The server was never reached.
    Connecting,
    Up,
    /// It is being restored.
    Lost,
}

/// Where notifications go.
pub(super) struct Receivers {
    pub(super) mailboxes: Arc<Mailboxes>,
    pub(super) hints: HintBroadcast,
    pub(super) dead: DeadLetterBroadcast,
}

pub(super) struct Listening {
    client: Client,
    notifications: mpsc::UnboundedReceiver<Notification>,
}

impl Listening {
    pub(super) async fn start(connector: &Connector) -> Result<Self, BrokerError> {
        let listening = async {
            let (client, notifications) = connector.connect().await?;
            let listen = format!("LISTEN {}; LISTEN {}; LISTEN {}", wire::OFFERS, wire::HINTS, wire::DEAD);
            client.batch_execute(&listen).await.map_err(failure)?;
            Ok(Self { client, notifications })
        };
        match tokio::time::timeout(PATIENCE, listening).await {
            Ok(listening) => listening,
            Err(late) => Err(BrokerError {
                reason: format!("PostgreSQL did not answer within {PATIENCE:?}"),
                source: Some(Box::new(std::io::Error::from(late))),
            }),
        }
    }
}

/// Runs until the broker is dropped, which closes `link`. `first` is `None` if the server could not be reached yet.
pub(super) async fn listen(
    connector: Arc<Connector>,
    first: Option<Listening>,
    receivers: Receivers,
    link: watch::Sender<Link>,
) {
    let mut next = first;
    loop {
        let mut listening = if let Some(listening) = next.take() {
            listening
        } else {
            let reconnected = tokio::select! {
                () = link.closed() => return,
                reconnected = reconnect(&connector) => reconnected,
            };
            link.send_replace(Link::Up);
            receivers.hints.resync();
            reconnected
        };
        tokio::select! {
            () = link.closed() => return,
            () = forward(&mut listening, &receivers) => {}
        }
        // Set first, so that a consumer that is opened afterwards sees it.
        link.send_replace(Link::Lost);
        receivers.mailboxes.end_consumers();
    }
}

/// Returns when the connection has ended.
async fn forward(Listening { client, notifications }: &mut Listening, receivers: &Receivers) {
    while let Some(notification) = notifications.recv().await {
        let payload = notification.payload();
        match notification.channel() {
            wire::OFFERS => receivers.mailboxes.put(wire::unpack(payload)),
            wire::HINTS => wire::unpack(payload).for_each(|hint| receivers.hints.send(hint)),
            wire::DEAD => wire::unpack(payload).for_each(|letter| receivers.dead.send(letter)),
            _ => {}
        }
    }
    debug_assert!(client.is_closed(), "notifications end with their connection");
}

async fn reconnect(connector: &Connector) -> Listening {
    let mut backoff = Backoff::new();
    loop {
        match Listening::start(connector).await {
            Ok(listening) => return listening,
            Err(error) => tracing::warn!(%error, "cannot listen on PostgreSQL yet; retrying"),
        }
        backoff.wait().await;
    }
}
