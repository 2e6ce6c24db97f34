//! What the brokers that keep offers in this process share: a mailbox per factory, and fan-out to many readers.
//!
//! Never waits for anybody: a full mailbox loses its oldest offer, a slow reader its oldest hints.

mod fan;
mod mailboxes;
mod window;

pub(crate) use fan::{DeadFan, HintFan};
pub(crate) use mailboxes::{Bounds, DELIVERIES, Mailboxes};

use giga_domain::{Offer, Timestamp};
use giga_ports::broker::DeadLetter;

/// The same words from every broker.
pub(crate) fn never_acknowledged(offer: &Offer, at: Timestamp) -> DeadLetter {
    DeadLetter {
        job_id: offer.job_id,
        product_id: offer.product_id.clone(),
        topic: None,
        reason: format!("offer was delivered {DELIVERIES} times and never acknowledged"),
        at,
    }
}
