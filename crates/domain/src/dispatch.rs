//! The words of dispatch: who leads, what an offer says, how jobs reach a factory.
//!
//! An offer carries no truth. Whoever acts on one claims in the store, which alone knows whether it still stands.

use serde::{Deserialize, Serialize};
use strum::VariantNames;

use crate::word::words;
use crate::{CapabilitySet, DispatchSeq, FactoryId, JobId, NodeId, Priority, ProductId, Term, Timestamp};

words! {
    "delivery mode",
    /// How jobs reach a factory. Can be switched at run time, for the fleet and for single factories.
    #[derive(Default, VariantNames)]
    pub enum Delivery {
        /// The factory asks. The permanent fallback.
        Poll,
        /// Polling decides; the dispatcher plans and publishes beside it, and the difference is recorded.
        Shadow,
        /// The coordinator claims for the factory and sends job and epoch down its stream.
        #[default]
        Stream,
        /// The factory reads its offers from the broker itself and accepts them.
        Broker,
        /// No scheduler: the factory picks from the queue by its own capabilities.
        SelfSelect,
    }
}

impl Delivery {
    /// Whether the dispatcher chooses targets for a factory that works this way.
    pub const fn is_targeted(self) -> bool {
        matches!(self, Self::Stream | Self::Broker)
    }
}

/// Who may dispatch, until when by the store's clock. Every change of leader raises the term.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leadership {
    pub node: NodeId,
    pub term: Term,
    pub expires_at: Timestamp,
}

/// "Job J, dispatch n, is for you": what is kept until it is sent, and travels on the broker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Offer {
    pub job_id: JobId,
    pub dispatch_seq: DispatchSeq,
    pub product_id: ProductId,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repo: Option<String>,
    #[serde(default)]
    pub caps: CapabilitySet,
    pub priority: Priority,
    pub target_factory_id: FactoryId,
}

impl Offer {
    /// What the broker tells duplicates by. The job id alone would let a job that was requeued inside the duplicate
    /// window be swallowed and stranded.
    pub fn message_id(&self) -> String {
        format!("{}:{}", self.job_id, self.dispatch_seq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_mode_is_read_as_it_is_written() {
        for mode in Delivery::ALL {
            assert_eq!(mode.as_str().parse(), Ok(mode));
            assert_eq!(serde_json::to_value(mode).unwrap(), mode.as_str());
        }
        let error = "push".parse::<Delivery>().unwrap_err().to_string();
        assert!(error.contains("one of poll, shadow, stream"), "{error}");
    }

    #[test]
    fn a_job_that_is_offered_again_is_another_message() {
        let offer = |seq| Offer {
            job_id: JobId::MIN,
            dispatch_seq: DispatchSeq(seq),
            product_id: "demo".parse().unwrap(),
            repo: None,
            caps: CapabilitySet::default(),
            priority: Priority::Normal,
            target_factory_id: "f1".parse().unwrap(),
        };
        assert_ne!(offer(1).message_id(), offer(2).message_id());
        assert!(serde_json::to_vec(&offer(1)).unwrap().len() < crate::limits::OFFER_BYTES);
    }
}
