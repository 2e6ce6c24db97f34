//! Takes work in the way that the coordinator wishes for: one supervisor, one small file per way, one way in.
//!
//! ```text
//! heartbeat's answer ▶ wished ▶ forever ▶ poll │ self_select │ channel ▶ stream │ broker   (poll while it is down)
//!                                           └────────┴─────────────┴──▶ start ▶ one task per job
//! ```
//!
//! A change of the way never touches a running job. Whatever brings a grant ends in `start`; nothing else may run one.

mod broker;
mod channel;
mod claim;
mod poll;
mod self_select;
mod stream;

pub use broker::BrokerDoor;
pub(super) use claim::Unanswered;
pub(super) use poll::{AFTER_A_FAILURE, gate, once};
pub(super) use stream::Streams;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;

use giga_api::wire::ClaimAnswer;
use giga_domain::Delivery;
use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, watch};
use tokio_util::sync::CancellationToken;

use super::lease::Held;
use super::{AgentError, Shared, job};

/// How jobs should reach this factory, and how they do.
pub(super) struct Ways {
    /// As the coordinator last said.
    pub(super) wished: watch::Sender<Delivery>,
    /// As it is: told with every heartbeat, because whoever is not told of must not be counted on.
    pub(super) actual: watch::Sender<Delivery>,
}

impl Default for Ways {
    fn default() -> Self {
        Self { wished: watch::Sender::new(Delivery::Poll), actual: watch::Sender::new(Delivery::Poll) }
    }
}

impl Ways {
    pub(super) fn wish(&self, mode: Delivery) {
        self.wished.send_if_modified(|wished| std::mem::replace(wished, mode) != mode);
    }

    /// Says so in the log, and in a heartbeat at once.
    fn arrive_by(&self, mode: Delivery) {
        if self.actual.send_if_modified(|actual| std::mem::replace(actual, mode) != mode) {
            tracing::info!("jobs arrive by {mode}");
        }
    }
}

/// Until `stop`, or until the coordinator does not want this factory any more.
pub(super) async fn forever(shared: &Arc<Shared>, stop: &CancellationToken) -> Result<(), AgentError> {
    let mut wished = shared.ways.wished.subscribe();
    while !stop.is_cancelled() {
        let mode = *wished.borrow_and_update();
        let end = stop.child_token();
        let taking = async {
            let taken = take(shared, mode, &end).await;
            end.cancel();
            taken
        };
        let listening = async {
            tokio::select! {
                () = end.cancelled() => {}
                _ = wished.wait_for(|now| *now != mode) => end.cancel(),
            }
        };
        let (taken, ()) = tokio::join!(taking, listening);
        taken?;
    }
    Ok(())
}

/// One way, until `end`.
async fn take(shared: &Arc<Shared>, mode: Delivery, end: &CancellationToken) -> Result<(), AgentError> {
    match mode {
        Delivery::Poll | Delivery::Shadow => {
            shared.ways.arrive_by(mode);
            poll::run(shared, end).await
        }
        Delivery::SelfSelect => {
            shared.ways.arrive_by(mode);
            self_select::run(shared, end).await
        }
        Delivery::Stream => channel::keep(shared, mode, &shared.streams, end).await,
        Delivery::Broker => {
            if let Some(broker) = &shared.broker {
                return channel::keep(shared, mode, broker, end).await;
            }
            tracing::warn!(
                "jobs should come from the broker, but this factory knows none; it polls. Name it with --broker, such \
                 as nats://host:4222"
            );
            shared.ways.arrive_by(Delivery::Poll);
            poll::run(shared, end).await
        }
    }
}

/// What runs here, by job and epoch: a grant that comes twice is one job. With each, what makes it renew its lease now.
#[derive(Default)]
pub(super) struct Running(Mutex<HashMap<(String, u64), Arc<Notify>>>);

impl Running {
    fn enter(&self, held: &Held) -> bool {
        match self.0.lock().entry((held.job.clone(), held.epoch)) {
            Entry::Occupied(_) => false,
            Entry::Vacant(place) => {
                place.insert(held.look.clone());
                true
            }
        }
    }

    fn leave(&self, held: &Held) {
        self.0.lock().remove(&(held.job.clone(), held.epoch));
    }

    /// There may be a word about any of them: each renews its lease at once.
    fn look(&self) {
        self.0.lock().values().for_each(|held| held.notify_one());
    }
}

/// The one way in. A grant is held from the moment it was made, so it always runs: one that comes without a seat waits
/// for it with its lease kept alive, because a job that ends reports before its seat is free again.
fn start(shared: &Arc<Shared>, grant: ClaimAnswer, seat: Option<OwnedSemaphorePermit>) {
    let held = Held::of(&grant);
    if !shared.running.enter(&held) {
        tracing::debug!(job = held.job, epoch = held.epoch, "granted again; it runs already");
        return;
    }
    let task = shared.clone();
    shared.jobs.spawn(async move {
        job::run(task.clone(), grant, held.clone(), seat).await;
        task.running.leave(&held);
    });
}
