//! One connection per process that listens, and comes back by itself.
//!
//! Asks the server nothing while nothing happens: a connection that is dead without a word is found by TCP keepalives.
//! What was told while it was away is lost; after it has come back, everybody is told to look.

use std::sync::Arc;
use std::time::Duration;

use giga_ports::BrokerError;
use tokio::sync::{mpsc, watch};
use tokio_postgres::{Client, Notification};

use super::connect::{Connector, failure};
use super::wire;
use crate::local::{DeadFan, HintFan, Mailboxes};

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

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
        let (client, notifications) = connector.connect().await?;
        let listen = format!("LISTEN {}; LISTEN {}; LISTEN {}", wire::OFFERS, wire::HINTS, wire::DEAD);
        client.batch_execute(&listen).await.map_err(failure)?;
        Ok(Self { client, notifications })
    }
}

/// Until the broker is dropped, which `alive` tells.
pub(super) async fn listen(
    connector: Arc<Connector>,
    first: Listening,
    ears: Ears,
    alive: watch::Sender<bool>,
) {
    let mut listening = first;
    loop {
        tokio::select! {
            () = alive.closed() => return,
            () = hear(&mut listening, &ears) => {}
        }
        alive.send_replace(false);
        listening = tokio::select! {
            () = alive.closed() => return,
            back = come_back(&connector) => back,
        };
        alive.send_replace(true);
        ears.hints.look_again();
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
    let mut pause = FIRST_PAUSE;
    loop {
        match Listening::start(connector).await {
            Ok(listening) => return listening,
            Err(error) => tracing::warn!(%error, "cannot listen on PostgreSQL yet"),
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
