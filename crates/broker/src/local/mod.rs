//! Shared by the brokers that keep offers in this process: a mailbox per factory, and a broadcast to many readers.
//!
//! Never blocks: a full mailbox drops its oldest offer, a slow reader loses its oldest hints.

mod broadcast;
mod mailboxes;
mod window;

pub(crate) use broadcast::{DeadLetterBroadcast, HintBroadcast};
pub(crate) use mailboxes::{Bounds, DELIVERIES, Mailboxes};

use giga_domain::{Offer, Timestamp};
use giga_ports::broker::DeadLetter;

/// The same text from every broker.
pub(crate) fn never_acknowledged(offer: &Offer, at: Timestamp) -> DeadLetter {
    DeadLetter {
        job_id: offer.job_id,
        product_id: offer.product_id.clone(),
        topic: None,
        reason: format!("offer was delivered {DELIVERIES} times and never acknowledged"),
        at,
    }
}
