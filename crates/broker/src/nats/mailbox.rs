//! A factory's own end: it reads and acknowledges its offers, and needs no right to anything else.
//!
//! It makes no stream and no consumer, and hears neither hints nor dead letters: that is the coordinator's. Whatever goes
//! wrong is the end of it; whoever reads opens another.

use async_nats::Event;
use async_nats::jetstream::Context;
use async_nats::jetstream::consumer::{PullConsumer, pull};
use async_nats::jetstream::context::ContextBuilder;
use giga_domain::FactoryId;
use giga_ports::BrokerError;
use giga_ports::broker::Offers;
use serde_json::json;
use tokio::sync::{oneshot, watch};

use super::{NatsKey, PATIENCE, address, link, offers, streams};

/// `nats://…` or `tls://…`. The coordinator has made the consumer when the factory sent its heartbeat.
pub async fn read_offers(
    url: &str,
    key: Option<&NatsKey>,
    factory: &FactoryId,
) -> Result<Box<dyn Offers>, BrokerError> {
    let (servers, options) = address::parse(url, key)?;
    let (disconnects, seen) = watch::channel(0_u64);
    let client = options
        .name("gigafactory factory")
        .connection_timeout(PATIENCE)
        .event_callback(move |event| {
            if matches!(event, Event::Disconnected) {
                disconnects.send_modify(|disconnects| *disconnects += 1);
            }
            std::future::ready(())
        })
        .connect(servers)
        .await
        .map_err(link::refusal)?;
    let context = ContextBuilder::new().timeout(PATIENCE).build(client);
    let consumer = unasked(factory, context).map_err(BrokerError::from_source)?;
    // Nothing in this process takes over; the sender lives as long as its offers are read.
    let (newest, replaced) = oneshot::channel();
    let offers = offers::read(consumer, seen, replaced, Some(newest)).await?;
    Ok(Box::new(offers))
}

/// The consumer as the coordinator has made it. Asking the server about it would take one more right; where it is not there,
/// reading fails.
fn unasked(factory: &FactoryId, context: Context) -> serde_json::Result<PullConsumer> {
    let nothing = json!({"consumer_seq": 0, "stream_seq": 0});
    let info = serde_json::from_value(json!({
        "stream_name": streams::OFFERS,
        "name": streams::token(factory),
        "created": "1970-01-01T00:00:00Z",
        "config": {"deliver_policy": "all", "ack_policy": "explicit", "replay_policy": "instant"},
        "delivered": nothing,
        "ack_floor": nothing,
        "num_ack_pending": 0,
        "num_redelivered": 0,
        "num_waiting": 0,
        "num_pending": 0,
    }))?;
    Ok(PullConsumer::new(pull::Config::default(), info, context))
}
