//! Brokers behind one trait: embedded in the process, LISTEN/NOTIFY on PostgreSQL, JetStream on NATS, Azure Service Bus.
//!
//! A broker carries hints. Nothing here may be needed for a job to be done once: whatever is lost, comes twice or comes
//! late is made up for by the store and its deadlines. A broker's URL holds a password and is never written anywhere.

mod backoff;
mod embedded;
mod local;
mod nats;
mod open;
mod postgres;
mod servicebus;

pub use embedded::Embedded;
pub use nats::{Nats, NatsKey, NatsPublicKey, NatsTuning, read_offers, server_accounts};
pub use open::{Access, open, open_with};
pub use postgres::Postgres;
pub use servicebus::{
    ServiceBus, ServiceBusAccess, ServiceBusCredential, ServiceBusTuning, read_service_bus_offers,
    subscription_name,
};
