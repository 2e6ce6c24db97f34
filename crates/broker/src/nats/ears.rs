//! What runs beside the calls: hints and dead letters to the readers of this process, offers that were given up to the
//! dead letters, and what is to be done after a reconnect.
//!
//! Ends with the broker. Never ends on a message that cannot be read.

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
use crate::local::{DeadFan, HintFan, never_acknowledged};

/// The tasks end when the set is dropped.
pub(super) async fn listen(
    session: &Arc<Session>,
    events: mpsc::UnboundedReceiver<Event>,
    hints: &HintFan,
    dead: &DeadFan,
) -> Result<JoinSet<()>, BrokerError> {
    let client = &session.client;
    let hint_messages = client.subscribe(streams::HINTS_SUBJECT).await.map_err(failure)?;
    let dead_messages = client.subscribe(streams::DEAD_SUBJECT).await.map_err(failure)?;
    let group = streams::GIVEN_UP_GROUP.to_owned();
    let given_up = client.queue_subscribe(streams::GIVEN_UP, group).await.map_err(failure)?;

    let mut tasks = JoinSet::new();
    let fan = hints.clone();
    tasks.spawn(each(hint_messages, move |hint| fan.send(hint)));
    let fan = dead.clone();
    tasks.spawn(each(dead_messages, move |letter| fan.send(letter)));
    tasks.spawn(bury_all(Arc::clone(session), given_up));
    tasks.spawn(follow(Arc::clone(session), events, hints.clone()));
    Ok(tasks)
}

async fn each<T: DeserializeOwned>(mut messages: Subscriber, take: impl Fn(T)) {
    while let Some(message) = messages.next().await {
        match serde_json::from_slice(&message.payload) {
            Ok(value) => take(value),
            Err(error) => tracing::debug!(%error, "a message that cannot be read was skipped"),
        }
    }
}

/// What the server says about an offer that it gives up.
#[derive(Deserialize)]
struct Advisory {
    stream_seq: u64,
    timestamp: Timestamp,
}

async fn bury_all(session: Arc<Session>, mut advisories: Subscriber) {
    while let Some(advisory) = advisories.next().await {
        if let Err(error) = bury(&session, &advisory).await {
            tracing::warn!(%error, "an offer that was given up could not be mirrored; it goes when it is old");
        }
    }
}

/// Mirrored first: the other way around a failure between the two would lose it.
async fn bury(session: &Session, advisory: &Message) -> Result<(), BrokerError> {
    let Advisory { stream_seq, timestamp } =
        serde_json::from_slice(&advisory.payload).map_err(BrokerError::from_source)?;
    let stream = session.context.get_stream_no_info(streams::OFFERS).await.map_err(failure)?;
    let message = stream.get_raw_message(stream_seq).await.map_err(failure)?;
    let offer: Offer = serde_json::from_slice(&message.payload).map_err(BrokerError::from_source)?;
    session.bury(&never_acknowledged(&offer, timestamp)).await?;
    stream.delete_message(stream_seq).await.map_err(failure)?;
    Ok(())
}

async fn follow(session: Arc<Session>, mut events: mpsc::UnboundedReceiver<Event>, hints: HintFan) {
    let mut was_away = false;
    while let Some(event) = events.recv().await {
        match event {
            Event::Disconnected => {
                was_away = true;
                tracing::warn!("the connection to NATS was lost");
                session.losses.send_modify(|losses| *losses += 1);
            }
            Event::Connected if was_away => {
                was_away = false;
                // The server may be another one, with empty disks. Its answer also means that it knows our
                // subscriptions again: no hint is lost after this.
                if let Err(error) = streams::ensure(&session.context).await {
                    tracing::warn!(%error, "NATS is back without its streams");
                }
                hints.look_again();
            }
            Event::SlowConsumer(_) => hints.look_again(),
            other => tracing::debug!(event = %other, "NATS"),
        }
    }
}
