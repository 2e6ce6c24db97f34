//! What all parts of the coordinator share: the ports that each of them asks, time, and the signal to stop.
//!
//! Nothing here knows any of the parts.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use giga_domain::{NodeId, RequestId};
use giga_ports::{Broker, BrokerError, Clock, Randomness, Store};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::admission::Admission;
use crate::store_clock::StoreClock;
use crate::{Metrics, Options, Ports};

/// A broker that has not answered by then counts as down.
const PATIENCE: Duration = Duration::from_secs(2);

pub(crate) struct Core {
    /// This very process: a restart is another node.
    pub(crate) node: NodeId,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) broker: Arc<dyn Broker>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) random: Arc<dyn Randomness>,
    pub(crate) options: Options,
    pub(crate) store_clock: StoreClock,
    pub(crate) metrics: Metrics,
    pub(crate) admission: Admission,
    pub(crate) stop: CancellationToken,
    pub(crate) tasks: TaskTracker,
}

impl Core {
    pub(crate) fn new(ports: &Ports, options: Options) -> Self {
        Self {
            node: new_node(&*ports.random),
            store: ports.store.clone(),
            broker: ports.broker.clone(),
            clock: ports.clock.clone(),
            random: ports.random.clone(),
            options,
            store_clock: StoreClock::default(),
            metrics: Metrics::default(),
            admission: Admission::default(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        }
    }

    /// Names one call of this process.
    pub(crate) fn new_request(&self) -> RequestId {
        let id = self.random.job_id(self.clock.now()).to_string();
        id.parse().expect("26 letters and digits fit the grammar of request ids")
    }

    /// Up to `most`, so that many that wait for the same moment do not all come at it.
    pub(crate) fn jitter(&self, most: Duration) -> Duration {
        let bytes = self.random.bytes();
        most.mul_f64(f64::from(u16::from_be_bytes([bytes[0], bytes[1]])) / f64::from(u16::MAX))
    }

    /// What is asked of the broker may fail, and must hold nothing up.
    pub(crate) async fn within_patience<T>(
        &self,
        asked: impl Future<Output = Result<T, BrokerError>>,
    ) -> Result<T, BrokerError> {
        tokio::select! {
            biased;
            answered = tokio::time::timeout(PATIENCE, asked) => answered.unwrap_or_else(|_| {
                Err(BrokerError::because(format!("no answer for {} s", PATIENCE.as_secs())))
            }),
            () = self.stop.cancelled() => Err(BrokerError::because("the coordinator stops")),
        }
    }
}

fn new_node(random: &dyn Randomness) -> NodeId {
    let name = format!("node-{}", const_hex::encode(&random.bytes()[..8]));
    name.parse().expect("hexadecimal digits are legal in a node id")
}
