//! Takes jobs by the delivery mode that the coordinator asks for: one supervisor, one small file per mode.
//!
//! ```text
//! heartbeat's answer ▶ wanted ▶ run ▶ poll │ self_select │ channel ▶ stream │ broker   (poll while it is down)
//!                                       └────────┴─────────────┴──▶ start ▶ one task per job
//! ```
//!
//! A change of mode never touches a running job. Every grant goes through `start`; nothing else may run one.

mod broker;
mod channel;
mod claim;
mod poll;
mod self_select;
mod stream;

pub use broker::BrokerConnector;
pub(super) use claim::PendingClaim;
pub(super) use poll::{RETRY_DELAY, once, wait_for_version};
pub(super) use stream::Streams;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use giga_domain::Delivery;
use giga_domain::id::IdError;
use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, watch};
use tokio_util::sync::CancellationToken;

use super::grant::Grant;
use super::lease::Held;
use super::{AgentError, Shared, job};

/// How jobs should reach this factory, and how they do.
pub(super) struct DeliveryModes {
    /// As the coordinator last asked.
    pub(super) wanted: watch::Sender<Delivery>,
    /// As it is: reported with every heartbeat, because the coordinator relies on nothing else.
    pub(super) actual: watch::Sender<Delivery>,
}

impl Default for DeliveryModes {
    fn default() -> Self {
        Self { wanted: watch::Sender::new(Delivery::Poll), actual: watch::Sender::new(Delivery::Poll) }
    }
}

impl DeliveryModes {
    pub(super) fn want(&self, mode: Delivery) {
        self.wanted.send_if_modified(|wanted| std::mem::replace(wanted, mode) != mode);
    }

    /// Logs it, and has a heartbeat report it at once.
    fn set_actual(&self, mode: Delivery) {
        if self.actual.send_if_modified(|actual| std::mem::replace(actual, mode) != mode) {
            tracing::info!("receiving jobs by {mode}");
        }
    }
}

/// Runs until `stop`, or until the coordinator refuses this factory.
pub(super) async fn run(shared: &Arc<Shared>, stop: &CancellationToken) -> Result<(), AgentError> {
    let mut wanted = shared.delivery.wanted.subscribe();
    while !stop.is_cancelled() {
        let mode = *wanted.borrow_and_update();
        let end = stop.child_token();
        let taking = async {
            let taken = take(shared, mode, &end).await;
            end.cancel();
            taken
        };
        let listening = async {
            tokio::select! {
                () = end.cancelled() => {}
                _ = wanted.wait_for(|now| *now != mode) => end.cancel(),
            }
        };
        let (taken, ()) = tokio::join!(taking, listening);
        taken?;
    }
    Ok(())
}

/// Runs one mode until `end`.
async fn take(shared: &Arc<Shared>, mode: Delivery, end: &CancellationToken) -> Result<(), AgentError> {
    match mode {
        Delivery::Poll | Delivery::Shadow => {
            shared.delivery.set_actual(mode);
            poll::run(shared, end).await
        }
        Delivery::SelfSelect => {
            shared.delivery.set_actual(mode);
            self_select::run(shared, end).await
        }
        Delivery::Stream => channel::run(shared, mode, &shared.streams, end).await,
        Delivery::Broker => {
            if let Some(broker) = &shared.broker {
                return channel::run(shared, mode, broker, end).await;
            }
            tracing::warn!(
                "the coordinator asks for delivery by broker, but no broker is configured here: polling instead. Set \
                 --broker, for example nats://host:4222"
            );
            shared.delivery.set_actual(Delivery::Poll);
            poll::run(shared, end).await
        }
    }
}

/// Running jobs by job and epoch, so that a grant that arrives twice runs once. Each with the means to renew its lease now.
#[derive(Default)]
pub(super) struct Running(Mutex<HashMap<(String, u64), Arc<Notify>>>);

impl Running {
    fn insert(&self, held: &Held) -> bool {
        match self.0.lock().entry((held.job.clone(), held.epoch)) {
            Entry::Occupied(_) => false,
            Entry::Vacant(place) => {
                place.insert(held.renew_now.clone());
                true
            }
        }
    }

    fn remove(&self, held: &Held) {
        self.0.lock().remove(&(held.job.clone(), held.epoch));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    /// There may be a directive for any of them: each renews its lease at once.
    fn renew_all(&self) {
        self.0.lock().values().for_each(|held| held.notify_one());
    }
}

/// Runs a grant. It is held from the moment it was made, so it always runs: one that arrives without a seat waits for a
/// seat with its lease kept alive, because a job that ends reports before its seat is free again.
fn start(
    shared: &Arc<Shared>,
    grant: impl TryInto<Grant, Error = IdError>,
    seat: Option<OwnedSemaphorePermit>,
) {
    let grant = match grant.try_into() {
        Ok(grant) => grant,
        Err(error) => {
            tracing::error!(%error, "unreadable grant; its lease will expire");
            return;
        }
    };
    let held = Held::of(&grant);
    if !shared.running.insert(&held) {
        tracing::debug!(job = held.job, epoch = held.epoch, "granted again; it is already running");
        return;
    }
    let task = shared.clone();
    shared.jobs.spawn(async move {
        job::run(task.clone(), grant, held.clone(), seat).await;
        task.running.remove(&held);
    });
}
