//! Background tasks: forward hints and dead letters to the readers of this process, turn expired offers into dead letters,
//! and restore state after a reconnect.
//!
//! They end with the broker, never because of an unreadable message.

use std::sync::Arc;

use async_nats::{Event, Message, Subscriber};
use futures::StreamExt;
use giga_domain::{Offer, Timestamp};
use giga_ports::BrokerError;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use super::{Session, failure, streams};
use crate::local::{DeadLetterBroadcast, HintBroadcast, never_acknowledged};

/// The tasks end when the set is dropped.
pub(super) async fn start(
    session: &Arc<Session>,
    events: mpsc::UnboundedReceiver<Event>,
    hints: &HintBroadcast,
    dead: &DeadLetterBroadcast,
) -> Result<JoinSet<()>, BrokerError> {
    let client = &session.client;
    let hint_messages = client.subscribe(streams::HINTS_SUBJECT).await.map_err(failure)?;
    let dead_messages = client.subscribe(streams::DEAD_SUBJECT).await.map_err(failure)?;
    let group = streams::EXPIRED_GROUP.to_owned();
    let expired = client.queue_subscribe(streams::EXPIRED, group).await.map_err(failure)?;

    let mut tasks = JoinSet::new();
    let readers = hints.clone();
    tasks.spawn(forward(hint_messages, move |hint| readers.send(hint)));
    let readers = dead.clone();
    tasks.spawn(forward(dead_messages, move |letter| readers.send(letter)));
    tasks.spawn(dead_letter_expired(Arc::clone(session), expired));
    tasks.spawn(watch_connection(Arc::clone(session), events, hints.clone()));
    Ok(tasks)
}

async fn forward<T: DeserializeOwned>(mut messages: Subscriber, receive: impl Fn(T)) {
    while let Some(message) = messages.next().await {
        match serde_json::from_slice(&message.payload) {
            Ok(value) => receive(value),
            Err(error) => tracing::debug!(%error, "skipped an unreadable message"),
        }
    }
}

/// The server's notice about an offer that was delivered too often.
#[derive(Deserialize)]
struct Advisory {
    stream_seq: u64,
    timestamp: Timestamp,
}

async fn dead_letter_expired(session: Arc<Session>, mut advisories: Subscriber) {
    while let Some(advisory) = advisories.next().await {
        if let Err(error) = dead_letter(&session, &advisory).await {
            tracing::warn!(%error, "an expired offer could not be moved to the dead letters; the stream drops it when it is old");
        }
    }
}

/// Published before it is deleted: the other way around, a failure in between would lose it.
async fn dead_letter(session: &Session, advisory: &Message) -> Result<(), BrokerError> {
    let Advisory { stream_seq, timestamp } =
        serde_json::from_slice(&advisory.payload).map_err(BrokerError::from_source)?;
    let stream = session.context.get_stream_no_info(streams::OFFERS).await.map_err(failure)?;
    let message = stream.get_raw_message(stream_seq).await.map_err(failure)?;
    let offer: Offer = serde_json::from_slice(&message.payload).map_err(BrokerError::from_source)?;
    session.dead_letter(&never_acknowledged(&offer, timestamp)).await?;
    stream.delete_message(stream_seq).await.map_err(failure)?;
    Ok(())
}

async fn watch_connection(
    session: Arc<Session>,
    mut events: mpsc::UnboundedReceiver<Event>,
    hints: HintBroadcast,
) {
    let mut was_disconnected = false;
    while let Some(event) = events.recv().await {
        match event {
            Event::Disconnected => {
                was_disconnected = true;
                tracing::warn!("the connection to NATS was lost");
                session.disconnects.send_modify(|disconnects| *disconnects += 1);
            }
            Event::Connected if was_disconnected => {
                was_disconnected = false;
                session.prepared.lock().clear();
                // The server may be another one, with empty disks. Its answer also means that it knows our
                // subscriptions again: no hint is lost after this.
                if let Err(error) = streams::ensure(&session.context).await {
                    tracing::warn!(%error, "reconnected to NATS, but its streams cannot be restored");
                }
                hints.resync();
            }
            Event::SlowConsumer(_) => hints.resync(),
            other => tracing::debug!(event = %other, "NATS"),
        }
    }
}
