//! One connection per process that listens, and comes back by itself.
//!
//! Asks the server nothing while nothing happens: a connection that is dead without a word is found by TCP keepalives.
//! What was told while it was away is lost: the consumers of this process end with it, so that nobody waits for what
//! cannot come, and after it has come back everybody is told to look.

use std::sync::Arc;
use std::time::Duration;

use giga_ports::BrokerError;
use tokio::sync::{mpsc, watch};
use tokio_postgres::{Client, Notification};

use super::connect::{Connector, failure};
use super::wire;
use crate::backoff::Backoff;
use crate::local::{DeadFan, HintFan, Mailboxes};

/// To connect and to listen. A server that takes the connection and then says nothing is as good as none.
const PATIENCE: Duration = Duration::from_secs(10);

/// How it stands with the connection that listens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Link {
    /// The server was never reached.
    NotYet,
    Up,
    /// It is being restored.
    Lost,
}

/// Where what was heard goes.
pub(super) struct Ears {
    pub(super) mailboxes: Arc<Mailboxes>,
    pub(super) hints: HintFan,
    pub(super) dead: DeadFan,
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

/// Until the broker is dropped, which `link` tells. `first` is missing where the server could not be reached yet.
pub(super) async fn listen(
    connector: Arc<Connector>,
    first: Option<Listening>,
    ears: Ears,
    link: watch::Sender<Link>,
) {
    let mut next = first;
    loop {
        let mut listening = if let Some(listening) = next.take() {
            listening
        } else {
            let back = tokio::select! {
                () = link.closed() => return,
                back = come_back(&connector) => back,
            };
            link.send_replace(Link::Up);
            ears.hints.look_again();
            back
        };
        tokio::select! {
            () = link.closed() => return,
            () = hear(&mut listening, &ears) => {}
        }
        // Said first: whoever opens a consumer afterwards sees it.
        link.send_replace(Link::Lost);
        ears.mailboxes.end_consumers();
    }
}

/// Returns when the connection has ended.
async fn hear(Listening { client, notifications }: &mut Listening, ears: &Ears) {
    while let Some(notification) = notifications.recv().await {
        let payload = notification.payload();
        match notification.channel() {
            wire::OFFERS => ears.mailboxes.put(wire::unpack(payload)),
            wire::HINTS => wire::unpack(payload).for_each(|hint| ears.hints.send(hint)),
            wire::DEAD => wire::unpack(payload).for_each(|letter| ears.dead.send(letter)),
            _ => {}
        }
    }
    debug_assert!(client.is_closed(), "notifications end with their connection");
}

async fn come_back(connector: &Connector) -> Listening {
    let mut backoff = Backoff::new();
    loop {
        match Listening::start(connector).await {
            Ok(listening) => return listening,
            Err(error) => tracing::warn!(%error, "cannot listen on PostgreSQL yet"),
        }
        backoff.wait().await;
    }
}
