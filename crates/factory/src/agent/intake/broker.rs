//! Offers from the broker, read by the factory itself and accepted at the coordinator.
//!
//! An offer is a hint: only the coordinator's answer makes it a job. It is acknowledged after that answer and not
//! before, so one that nobody could ask about comes again. One is taken only with a seat in hand.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use giga_api::client::ClientError;
use giga_api::wire::AcceptRequest;
use giga_domain::{FactoryId, Offer};
use giga_ports::BrokerError;
use giga_ports::broker::Offers;
use tokio_util::sync::CancellationToken;

use super::channel::{Channel, ChannelError, Connector};
use super::{poll, start};
use crate::agent::Shared;

const OPEN: Duration = Duration::from_secs(10);

/// How the factory gets to its offers, and to nothing else on the broker. The composition root knows which kinds there are.
#[async_trait]
pub trait BrokerConnector: Debug + Send + Sync {
    /// Until what it returns is dropped.
    async fn read_offers(&self, factory: &FactoryId) -> Result<Box<dyn Offers>, BrokerError>;

    /// What must never be shown, whatever an engine prints.
    fn secret(&self) -> Option<String>;
}

#[async_trait]
impl Connector for Arc<dyn BrokerConnector> {
    async fn open(&self, shared: &Shared) -> Result<Box<dyn Channel>, ChannelError> {
        match tokio::time::timeout(OPEN, self.read_offers(&shared.id)).await {
            Ok(Ok(offers)) => Ok(Box::new(Mailbox { offers })),
            Ok(Err(error)) => Err(ChannelError(error.to_string())),
            Err(_) => Err(ChannelError("the broker does not answer".to_owned())),
        }
    }
}

struct Mailbox {
    offers: Box<dyn Offers>,
}

#[async_trait]
impl Channel for Mailbox {
    async fn serve(&mut self, shared: &Arc<Shared>, end: &CancellationToken) -> Result<(), ChannelError> {
        while let Some(seat) = poll::seat(shared, end).await {
            let delivered = tokio::select! {
                biased;
                () = end.cancelled() => break,
                delivered = self.offers.next() => delivered.map_err(|error| ChannelError(error.to_string()))?,
            };
            // From here on nothing may be cut short: what is accepted is held.
            match shared.client.accept(&request(shared, &delivered.offer)).await {
                Ok(grant) => start(shared, grant, Some(seat)),
                Err(error) if is_refusal(&error) => {
                    tracing::debug!(offer = delivered.offer.message_id(), %error, "the offer is no longer valid");
                }
                // Not acknowledged: it comes again when the coordinator can be asked.
                Err(error) => return Err(ChannelError(error.to_string())),
            }
            if let Err(error) = self.offers.ack(&delivered).await {
                // It comes again, and is recognised.
                return Err(ChannelError(error.to_string()));
            }
        }
        Ok(())
    }
}

/// The same for the same offer, so that a repetition is one.
fn request(shared: &Shared, offer: &Offer) -> AcceptRequest {
    AcceptRequest {
        job_id: offer.job_id.to_string(),
        factory_id: shared.id.to_string(),
        dispatch_seq: offer.dispatch_seq.0,
        request_id: format!("offer:{}", offer.message_id()),
    }
}

/// About the offer. A refusal of the factory itself is not for an offer to find out.
fn is_refusal(error: &ClientError) -> bool {
    match error {
        ClientError::Problem(problem) => !error.is_passing() && !matches!(problem.status, 401 | 403 | 429),
        _ => false,
    }
}
