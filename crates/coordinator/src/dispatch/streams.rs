//! Factory streams: takes a factory's offers from the broker, claims each for it, and only then sends the job.
//!
//! Never sends what is not claimed, and never leaves claimed what could not be sent: such a job is released at once.
//! The broker is the quick way, not the only one. What is on offer to a factory whose stream is here, and did not come
//! by the broker, is found in the view after a short grace; so a wiped broker costs that grace and no pickup deadline.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use giga_domain::{Delivery, DispatchSeq, Event, FactoryId, Holder, HolderAction, Job, JobId};
use giga_ports::BrokerError;
use giga_ports::broker::{Delivered, Offers};
use giga_ports::store::{Hold, StreamLost};
use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;
use tokio::sync::{Notify, mpsc};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Dispatch;
use crate::Error;
use crate::backoff::pause_after;

/// How many jobs may wait for the stream to carry them. More are not even claimed.
const WAITING: usize = 4;
/// How many deliveries a stream remembers, so that what came both ways is sent once.
const REMEMBERED: usize = 128;
/// How many streams are notified of an order to merge where the factory that made the result is not here.
const OTHERS_TOLD: usize = 4;
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// A consumer that lasted for so long was a good one: its end is not held against the next.
const LASTED: Duration = Duration::from_secs(30);

/// Something for the factory.
#[derive(Debug)]
pub enum StreamEvent {
    Grant(Box<Grant>),
    /// Orders to merge may wait, jobs should reach it another way, or there is a word about a job that it holds.
    News,
}

/// A job that is claimed for the factory. Dropped without [`Grant::delivered`], it is released.
pub struct Grant {
    job: Job,
    dispatch: Arc<Dispatch>,
    delivered: bool,
}

impl Grant {
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// It is on its way to the factory; from here on the lease owns it.
    pub fn delivered(mut self) {
        self.delivered = true;
    }
}

impl std::fmt::Debug for Grant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Grant").field("job", &self.job.id).finish_non_exhaustive()
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        // Where there is no runtime any more there is nobody to give it back to but the lease.
        if let (false, Ok(runtime)) = (self.delivered, tokio::runtime::Handle::try_current()) {
            let (dispatch, job) = (self.dispatch.clone(), self.job.clone());
            self.dispatch
                .core
                .tasks
                .spawn_on(async move { dispatch.release_undelivered(job).await }, &runtime);
        }
    }
}

/// What a factory is sent for as long as this is held. Dropping it closes the stream.
#[derive(Debug)]
pub struct FactoryStream {
    events: mpsc::Receiver<StreamEvent>,
    bell: Arc<Bell>,
}

impl FactoryStream {
    /// `None`: the stream is over, because a newer one took its place or because the coordinator stops.
    pub async fn next(&mut self) -> Option<StreamEvent> {
        tokio::select! {
            biased;
            () = self.bell.over.cancelled() => None,
            event = self.events.recv() => event,
        }
    }

    pub fn was_replaced(&self) -> bool {
        self.bell.replaced.load(Ordering::SeqCst)
    }
}

/// The streams that are open here, one per factory.
#[derive(Default)]
pub(crate) struct Streams {
    open: Mutex<BTreeMap<FactoryId, Arc<Bell>>>,
    /// Who was told last of an order to merge: the next ones are told next.
    told_last: Mutex<Option<FactoryId>>,
}

/// How a stream's task is reached.
#[derive(Debug)]
struct Bell {
    over: CancellationToken,
    replaced: AtomicBool,
    news: Notify,
    /// The feed says that something is on offer to the factory.
    expects: Notify,
}

impl Streams {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<FactoryId, Arc<Bell>>> {
        self.open.lock()
    }

    pub(super) fn expect_offer(&self, event: &Event) {
        let Some(Ok(factory)) = event.data.get("factoryId").and_then(Value::as_str).map(str::parse) else {
            return;
        };
        if let Some(bell) = self.lock().get::<FactoryId>(&factory) {
            bell.expects.notify_one();
        }
    }

    /// Somebody should look for what is to be merged: first the factory that made the result, whose files are warm, and
    /// others where it was told before. Those are others each time: some may be frozen, or not have the repository.
    pub(super) fn tell_of_merge(&self, made_by: Option<&FactoryId>, is_new: bool) {
        let streams = self.lock();
        let first = made_by.and_then(|made_by| streams.get(made_by));
        if let Some(bell) = first {
            bell.news.notify_one();
        }
        if first.is_none() || !is_new {
            let mut last = self.told_last.lock();
            let after = last.take().map_or(Bound::Unbounded, Bound::Excluded);
            let rest = streams.range((after.clone(), Bound::Unbounded));
            let told = rest.chain(&*streams).take(OTHERS_TOLD.min(streams.len()));
            for (factory, bell) in told {
                bell.news.notify_one();
                *last = Some(factory.clone());
            }
        }
    }
}

/// Why a stream's task stops what it does.
enum Cut {
    /// Nobody listens any more.
    Over,
    /// The broker or the store failed; the offers are looked for again after a pause.
    Failed,
}

impl Dispatch {
    /// Jobs for this factory from here on, each claimed before it comes out. Ends an older stream of the factory.
    pub fn open_factory_stream(self: &Arc<Self>, factory: FactoryId) -> Result<FactoryStream, Error> {
        self.fleet.may_claim(&factory)?;
        let bell = Arc::new(Bell {
            over: self.core.stop.child_token(),
            replaced: AtomicBool::new(false),
            news: Notify::new(),
            expects: Notify::new(),
        });
        let older = self.streams.lock().insert(factory.clone(), bell.clone());
        if let Some(older) = older {
            older.replaced.store(true, Ordering::SeqCst);
            older.over.cancel();
        } else {
            self.core.metrics.dispatch.streams.inc();
        }
        let (sender, events) = mpsc::channel(WAITING);
        let stream =
            Stream { dispatch: self.clone(), factory, bell: bell.clone(), sender, sent: VecDeque::new() };
        self.core.tasks.spawn(stream.serve());
        Ok(FactoryStream { events, bell })
    }

    async fn release_undelivered(self: Arc<Self>, job: Job) {
        let Some(lease) = job.lease() else { return };
        self.core.metrics.dispatch.undelivered.inc();
        let holder = Holder { factory: lease.factory.clone(), epoch: job.epoch };
        let actions = vec![HolderAction::Release { checkpoint: None }];
        if let Err(error) = self.core.store.hold(Hold { job: job.id, holder, actions }).await {
            tracing::warn!(job = %job.id, %error, "an undelivered job could not be released; its lease will end");
        }
    }

    /// Nobody may choose a factory that does not listen any more, and one that died will not say so itself. One that
    /// lives says with its next heartbeat how it is reached.
    async fn stream_was_lost(&self, factory: &FactoryId) {
        let delivery =
            self.fleet.view.lock().factories.get(factory).and_then(|known| known.advertised.delivery);
        if delivery != Some(Delivery::Stream) {
            return;
        }
        let written = async {
            self.core.store.stream_lost(StreamLost { factory: factory.clone() }).await?;
            self.fleet.refresh().await
        };
        if let Err(error) = written.await {
            tracing::warn!(%factory, %error, "that a stream was lost could not be written");
        }
    }

    /// There is something to be heard for this factory, if its stream is here: about its leases, too.
    pub(crate) fn news_for(&self, factory: &FactoryId) {
        if let Some(bell) = self.streams.lock().get(factory) {
            bell.news.notify_one();
        }
    }

    /// What is on offer and was refused for want of money may be had now.
    pub(crate) fn look_at_offers_again(&self) {
        for bell in self.streams.lock().values() {
            bell.expects.notify_one();
        }
    }

    /// Factories that should not get their jobs by a stream any more are told to ask how.
    pub(crate) fn delivery_modes_changed(&self) {
        let open: Vec<(FactoryId, Arc<Bell>)> =
            self.streams.lock().iter().map(|(id, bell)| (id.clone(), bell.clone())).collect();
        let state = self.fleet.view.lock();
        for (factory, bell) in open {
            if state.wished_delivery(&factory) != Delivery::Stream {
                bell.news.notify_one();
            }
        }
    }
}

/// The task behind a [`FactoryStream`].
struct Stream {
    dispatch: Arc<Dispatch>,
    factory: FactoryId,
    bell: Arc<Bell>,
    sender: mpsc::Sender<StreamEvent>,
    sent: VecDeque<(JobId, DispatchSeq)>,
}

impl Stream {
    async fn serve(mut self) {
        let mut failures = 0;
        loop {
            let began = Instant::now();
            if let Cut::Over = self.take_offers().await {
                break;
            }
            failures = if began.elapsed() >= LASTED { 1 } else { failures + 1 };
            let pause = pause_after(failures, FIRST_PAUSE, LONGEST_PAUSE);
            // Without the broker what is on offer is still found, only later.
            let next_try = Instant::now() + pause + self.dispatch.core.jitter(pause);
            if let Cut::Over = self.follow(None, Some(next_try)).await {
                break;
            }
        }
        if self.leave() && !self.dispatch.core.stop.is_cancelled() {
            self.dispatch.stream_was_lost(&self.factory).await;
        }
    }

    /// Says whether no newer stream of the factory is here.
    fn leave(&self) -> bool {
        let mut streams = self.dispatch.streams.lock();
        let last = streams.get(&self.factory).is_some_and(|bell| Arc::ptr_eq(bell, &self.bell));
        if last {
            streams.remove(&self.factory);
            self.dispatch.core.metrics.dispatch.streams.dec();
        }
        last
    }

    /// From the broker, for as long as it works; and from the view, whatever the broker does.
    async fn take_offers(&mut self) -> Cut {
        let consumed = tokio::select! {
            () = self.bell.over.cancelled() => return Cut::Over,
            consumed = self.dispatch.core.broker.consume(&self.factory) => consumed,
        };
        // After the consumer is open: what is offered from here on comes by it.
        if let Err(error) = self.dispatch.fleet.refresh().await {
            tracing::warn!(factory = %self.factory, %error, "the offers of a factory cannot be looked for");
        }
        if let Err(cut) = self.take_what_is_on_offer().await {
            return cut;
        }
        match consumed {
            Ok(offers) => self.follow(Some(offers), None).await,
            Err(error) => {
                tracing::warn!(factory = %self.factory, %error, "the offers of a factory cannot be read");
                Cut::Failed
            }
        }
    }

    /// Sends what comes, by the broker where there is one, until it fails or the time is over.
    async fn follow(&mut self, mut offers: Option<Box<dyn Offers>>, until: Option<Instant>) -> Cut {
        let bell = self.bell.clone();
        let mut look_at: Option<Instant> = None;
        loop {
            let step = tokio::select! {
                // The same order every time, so that a simulation replays. Seats bound the offers, so the rest gets its turn.
                biased;
                () = bell.over.cancelled() => return Cut::Over,
                () = self.sender.closed() => return Cut::Over,
                () = reached(until) => return Cut::Failed,
                next = next_of(&mut offers) => match next {
                    Ok(delivered) => {
                        match self.hand_over(delivered.offer.job_id, delivered.offer.dispatch_seq).await {
                            // Claimed or refused: whoever holds the job answers for it now.
                            Ok(()) => ack(&mut offers, &delivered).await.map_err(|error| self.failed(&error)),
                            // Neither: it is left for the next consumer.
                            cut => cut,
                        }
                    }
                    Err(error) => Err(self.failed(&error)),
                },
                () = bell.news.notified() => self.send(StreamEvent::News).await,
                () = bell.expects.notified() => {
                    look_at.get_or_insert_with(|| Instant::now() + self.dispatch.core.options.offer_grace);
                    Ok(())
                }
                () = reached(look_at) => {
                    look_at = None;
                    self.take_what_is_on_offer().await
                }
            };
            if let Err(cut) = step {
                return cut;
            }
        }
    }

    fn failed(&self, error: &BrokerError) -> Cut {
        tracing::warn!(factory = %self.factory, %error, "the offers of a factory stopped coming");
        Cut::Failed
    }

    /// As if the broker had brought them. Asks the store for nothing where nothing is on offer.
    async fn take_what_is_on_offer(&mut self) -> Result<(), Cut> {
        let now = self.dispatch.core.store_now();
        let on_offer = self.dispatch.fleet.view.lock().on_offer_to(&self.factory, now);
        for (job, seq) in on_offer {
            self.hand_over(job, seq).await?;
        }
        Ok(())
    }

    /// Claims first, and only with a place to send the job to.
    async fn hand_over(&mut self, job: JobId, seq: DispatchSeq) -> Result<(), Cut> {
        if self.sent.contains(&(job, seq)) {
            return Ok(());
        }
        let place = tokio::select! {
            () = self.bell.over.cancelled() => return Err(Cut::Over),
            place = self.sender.reserve() => place.map_err(|_| Cut::Over)?,
        };
        let taken = self.dispatch.claims.take_offered(&self.factory, job, seq).await.map_err(|error| {
            tracing::warn!(factory = %self.factory, %job, %error, "an offer could not be taken yet");
            Cut::Failed
        })?;
        let Some(job) = taken else { return Ok(()) };
        let grant = Grant { job, dispatch: self.dispatch.clone(), delivered: false };
        if self.bell.over.is_cancelled() || self.sender.is_closed() {
            return Err(Cut::Over);
        }
        self.sent.push_back((grant.job.id, seq));
        if self.sent.len() > REMEMBERED {
            self.sent.pop_front();
        }
        place.send(StreamEvent::Grant(Box::new(grant)));
        Ok(())
    }

    async fn send(&mut self, event: StreamEvent) -> Result<(), Cut> {
        tokio::select! {
            () = self.bell.over.cancelled() => Err(Cut::Over),
            sent = self.sender.send(event) => sent.map_err(|_| Cut::Over),
        }
    }
}

async fn reached(at: Option<Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

async fn next_of(offers: &mut Option<Box<dyn Offers>>) -> Result<Delivered, BrokerError> {
    match offers {
        Some(offers) => offers.next().await,
        None => std::future::pending().await,
    }
}

async fn ack(offers: &mut Option<Box<dyn Offers>>, delivered: &Delivered) -> Result<(), BrokerError> {
    match offers {
        Some(offers) => offers.ack(delivered).await,
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn of_a_merge_others_are_told_each_time_until_everybody_was() {
        let streams = Streams::default();
        let bell = || Bell {
            over: CancellationToken::new(),
            replaced: AtomicBool::new(false),
            news: Notify::new(),
            expects: Notify::new(),
        };
        let bells: Vec<Arc<Bell>> = (0..9).map(|_| Arc::new(bell())).collect();
        for (number, bell) in bells.iter().enumerate() {
            streams.lock().insert(format!("f-{number}").parse().unwrap(), bell.clone());
        }
        let heard = || -> Vec<usize> {
            (0..9).filter(|number| bells[*number].news.notified().now_or_never().is_some()).collect()
        };
        let maker = "f-0".parse().unwrap();
        streams.tell_of_merge(Some(&maker), true);
        assert_eq!(heard(), [0], "who made it is told first, alone");
        streams.tell_of_merge(None, false);
        assert_eq!(heard(), [0, 1, 2, 3]);
        streams.tell_of_merge(None, false);
        assert_eq!(heard(), [4, 5, 6, 7]);
        streams.tell_of_merge(None, false);
        assert_eq!(heard(), [0, 1, 2, 8]);
        streams.lock().retain(|id, _| *id == maker);
        streams.tell_of_merge(None, false);
        assert_eq!(heard(), [0]);
    }
}
