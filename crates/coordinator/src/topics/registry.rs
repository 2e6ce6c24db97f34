//! The hub's registry: streams, topics, and who holds what. No I/O and no clock of its own; every method is short, because
//! all of them run under one lock.
//!
//! Two numbers must never go wrong: a stream's `taken` is what is reserved for it by a claim under way plus what it was
//! sent and has not settled, and it never passes `max_in_flight`. Bytes are bounded likewise: what all claims under way
//! may bring and what streams hold is within their shares, but for a single job that is larger than what is left.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use giga_domain::topic::TopicKey;
use giga_domain::{Epoch, JobId, ProductId, Timestamp, WorkerId, limits};
use giga_ports::topics::{Assignment, PauseScope, TopicClaim, TopicOwner};
use tokio::sync::mpsc::UnboundedSender;

use super::stream::Dealt;

/// One claim asks for no more than this, so that a transaction stays short.
const CLAIM_MOST: usize = 1_000;
/// How many of this process's own hints are remembered until they come back, per topic, and of how many topics.
const ECHOES: usize = 256;
const ECHO_TOPICS: usize = 1_024;
/// A stream with more bytes of payload than this waiting for its transport is given nothing more.
pub(super) const UNSENT_MOST: usize = 8 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct StreamId(u64);

#[derive(Default)]
pub(super) struct StreamRegistry {
    streams: HashMap<StreamId, Stream>,
    /// Only those that a stream here serves, or that a claim is under way for.
    /// Sorted, so that they are claimed in the same order every time.
    topics: BTreeMap<TopicKey, Topic>,
    /// Dirty topics that no claim is under way for, longest waiting first, so that the topics of one stream take turns.
    queue: VecDeque<TopicKey>,
    held: HashMap<JobId, Held>,
    paused: HashSet<PauseScope>,
    echoes: HashMap<TopicKey, BTreeSet<JobId>>,
    /// Rises with every stream and every job that is dealt.
    serial: u64,
}

struct Stream {
    worker: WorkerId,
    topics: Vec<TopicKey>,
    max_in_flight: u32,
    taken: u32,
    /// Bytes of payload that it was sent and has not settled, and those that claims under way may bring.
    bytes: u64,
    claiming_bytes: u64,
    outlet: UnboundedSender<Vec<Dealt>>,
    /// Bytes of payload that were dealt and that the transport has not taken.
    unsent: Arc<AtomicUsize>,
}

impl Stream {
    fn free(&self) -> u32 {
        if self.free_bytes() == 0 {
            return 0;
        }
        self.max_in_flight.saturating_sub(self.taken)
    }

    /// A single job may be larger than what is left.
    fn free_bytes(&self) -> u64 {
        let unsent = self.unsent.load(Ordering::Relaxed) as u64 + self.claiming_bytes;
        let in_flight = self.bytes + self.claiming_bytes;
        let most = limits::IN_FLIGHT_BYTES.saturating_sub(in_flight);
        most.min((UNSENT_MOST as u64).saturating_sub(unsent))
    }
}

#[derive(Default)]
struct Topic {
    streams: VecDeque<StreamId>,
    /// Something may be ready.
    dirty: bool,
    /// Stands in `queue`.
    queued: bool,
    claiming: bool,
}

/// Sent by this process and, as far as it knows, not settled. Stays when its stream closes: its lease goes on.
struct Held {
    stream: StreamId,
    worker: WorkerId,
    key: TopicKey,
    epoch: Epoch,
    bytes: u64,
    until: Timestamp,
    serial: u64,
}

/// A claim that was decided on, with the slots that are reserved for it.
pub(super) struct Planned {
    pub(super) claim: TopicClaim,
    reserved: Vec<Reserved>,
}

#[derive(Clone, Copy)]
struct Reserved {
    stream: StreamId,
    slots: u32,
    bytes: u64,
}

/// What became of a claim.
#[derive(Default)]
pub(super) struct DealtOut {
    /// Nobody is there any more to take these.
    pub(super) undeliverable: Vec<(JobId, Epoch)>,
}

impl StreamRegistry {
    pub(super) fn open(
        &mut self,
        worker: WorkerId,
        topics: Vec<TopicKey>,
        max_in_flight: u32,
        outlet: UnboundedSender<Vec<Dealt>>,
        unsent: Arc<AtomicUsize>,
    ) -> StreamId {
        self.serial += 1;
        let id = StreamId(self.serial);
        for key in &topics {
            self.topics.entry(key.clone()).or_default().streams.push_back(id);
            self.mark(key);
        }
        self.streams.insert(
            id,
            Stream { worker, topics, max_in_flight, taken: 0, bytes: 0, claiming_bytes: 0, outlet, unsent },
        );
        id
    }

    /// What it holds stays in the registry until it is settled or its lease ends.
    pub(super) fn close(&mut self, id: StreamId) {
        let Some(stream) = self.streams.remove(&id) else { return };
        for key in stream.topics {
            let Some(topic) = self.topics.get_mut(&key) else { continue };
            topic.streams.retain(|other| *other != id);
            // While a claim is under way the topic stays: whoever opens a stream for it now must not claim beside it.
            if topic.streams.is_empty() && !topic.claiming {
                self.forget(&key);
            }
        }
    }

    /// Nobody serves it any more.
    fn forget(&mut self, key: &TopicKey) {
        if self.topics.remove(key).is_some_and(|topic| topic.queued) {
            self.queue.retain(|queued| queued != key);
        }
    }

    /// A stream belongs to one product. Fewer than before takes nothing away that was sent already.
    pub(super) fn set_max_in_flight(&mut self, within: Option<&[ProductId]>, worker: &WorkerId, most: u32) {
        for stream in self.streams.values_mut().filter(|stream| stream.worker == *worker) {
            let ours = |key: &TopicKey| within.is_none_or(|products| products.contains(&key.product));
            if stream.topics.first().is_some_and(ours) {
                stream.max_in_flight = most;
            }
        }
    }

    /// Something may be ready there.
    pub(super) fn mark(&mut self, key: &TopicKey) {
        let Some(topic) = self.topics.get_mut(key) else { return };
        topic.dirty = true;
        if !topic.queued && !topic.claiming {
            topic.queued = true;
            self.queue.push_back(key.clone());
        }
    }

    pub(super) fn mark_all(&mut self) {
        let keys: Vec<TopicKey> = self.topics.keys().cloned().collect();
        for key in &keys {
            self.mark(key);
        }
    }

    pub(super) fn expect_echo(&mut self, key: &TopicKey, lowest: JobId) {
        if self.echoes.len() >= ECHO_TOPICS {
            self.echoes.clear();
        }
        let expected = self.echoes.entry(key.clone()).or_default();
        if expected.len() >= ECHOES {
            expected.clear();
        }
        expected.insert(lowest);
    }

    /// A hint of this process's own, come back: it was acted on when it was sent.
    ///
    /// Hints are merged on their way, so of those that are expected only the lowest may come. What it may stand for is
    /// forgotten with it: an id that stayed would swallow the hint of another coordinator about that job, while one that
    /// is forgotten too early costs a look.
    pub(super) fn is_echo(&mut self, key: &TopicKey, lowest: JobId) -> bool {
        let Some(expected) = self.echoes.get_mut(key) else { return false };
        let known = expected.contains(&lowest);
        if !known {
            expected.split_off(&lowest);
        }
        if known || expected.is_empty() {
            self.echoes.remove(key);
        }
        known
    }

    fn is_closed(&self, key: &TopicKey) -> bool {
        !self.paused.is_empty()
            && (self.paused.contains(&PauseScope::Everything)
                || self.paused.contains(&PauseScope::Topic(key.clone())))
    }

    pub(super) fn any_closed(&self) -> bool {
        !self.paused.is_empty()
    }

    pub(super) fn set_pauses(&mut self, paused: HashSet<PauseScope>) {
        self.paused = paused;
        self.mark_all();
    }

    pub(super) fn set_pause(&mut self, scope: PauseScope, paused: bool) {
        if paused {
            self.paused.insert(scope);
        } else {
            self.paused.remove(&scope);
            self.mark_all();
        }
    }

    /// Every topic where something may be ready and somebody has room, longest waiting first. A stream's room is shared
    /// between those of its topics, so that none has to wait for the claim of another.
    pub(super) fn plan(&mut self, lease: Duration) -> Vec<Planned> {
        let mut wanted = Vec::with_capacity(self.queue.len());
        let mut shares: HashMap<StreamId, u32> = HashMap::new();
        for key in std::mem::take(&mut self.queue) {
            let paused = self.is_closed(&key);
            let Some(topic) = self.topics.get_mut(&key) else { continue };
            topic.queued = false;
            // The end of a pause marks everything again, and so does the end of a claim.
            if !paused && !topic.claiming {
                topic.streams.iter().for_each(|id| *shares.entry(*id).or_default() += 1);
                wanted.push(key);
            }
        }
        let mut planned = Vec::new();
        for key in wanted {
            let Some(topic) = self.topics.get_mut(&key) else { continue };
            let reserved = reserve(topic, &mut self.streams, &mut shares);
            if reserved.is_empty() {
                topic.queued = true;
                self.queue.push_back(key);
                continue;
            }
            topic.claiming = true;
            topic.dirty = false;
            let workers = reserved.iter().filter_map(|reserved| {
                self.streams.get(&reserved.stream).map(|stream| (stream.worker.clone(), reserved.slots))
            });
            let most_bytes = reserved.iter().map(|reserved| reserved.bytes).sum();
            let claim = TopicClaim { key, workers: workers.collect(), most_bytes, lease };
            planned.push(Planned { claim, reserved });
        }
        planned
    }

    /// The claim came to nothing; whatever was ready still is.
    pub(super) fn failed(&mut self, planned: &Planned) {
        for reserved in &planned.reserved {
            self.give_back(reserved.stream, reserved.slots);
            self.end_claiming(*reserved);
        }
        self.end_claim(&planned.claim.key, true);
    }

    /// Deals the claimed jobs to the streams that the slots were reserved for. `until` is when their lease ends, by this
    /// process's clock.
    pub(super) fn deal(&mut self, planned: Planned, jobs: Vec<Assignment>, until: Timestamp) -> DealtOut {
        let Planned { claim: TopicClaim { key, lease, most_bytes, .. }, reserved } = planned;
        let asked: usize = reserved.iter().map(|reserved| reserved.slots as usize).sum();
        let bytes: u64 = jobs.iter().map(|job| job.payload.len() as u64).sum();
        // Where one more might not have fitted, more may be ready.
        let one_more = bytes.saturating_add(limits::TOPIC_PAYLOAD_BYTES as u64);
        let filled = jobs.len() >= asked || (!jobs.is_empty() && one_more > most_bytes);
        for reserved in &reserved {
            self.end_claiming(*reserved);
        }
        let hand = |reserved: Reserved| Hand { id: reserved.stream, slots: reserved.slots, jobs: Vec::new() };
        let mut hands: Vec<Hand> = reserved.into_iter().map(hand).collect();
        let mut by_worker: HashMap<WorkerId, VecDeque<usize>> = HashMap::new();
        for (at, hand) in hands.iter().enumerate() {
            if let Some(stream) = self.streams.get(&hand.id) {
                by_worker.entry(stream.worker.clone()).or_default().push_back(at);
            }
        }
        let mut out = DealtOut::default();
        for job in jobs {
            // Several streams of one worker take turns.
            let turns = by_worker.get_mut(&job.worker);
            let next = turns.and_then(|turns| turns.pop_front().map(|at| (turns, at)));
            let Some((turns, at)) = next else {
                out.undeliverable.push((job.id, job.epoch));
                continue;
            };
            let hand = &mut hands[at];
            hand.slots -= 1;
            hand.jobs.push(job);
            if hand.slots > 0 {
                turns.push_back(at);
            }
        }
        for hand in hands {
            self.give_back(hand.id, hand.slots);
            self.send(hand.id, &key, hand.jobs, lease, until, &mut out);
        }
        self.end_claim(&key, filled);
        out
    }

    fn send(
        &mut self,
        id: StreamId,
        key: &TopicKey,
        jobs: Vec<Assignment>,
        lease: Duration,
        until: Timestamp,
        out: &mut DealtOut,
    ) {
        if jobs.is_empty() {
            return;
        }
        for job in &jobs {
            self.serial += 1;
            let (epoch, serial) = (job.epoch, self.serial);
            let bytes = job.payload.len() as u64;
            let worker = job.worker.clone();
            let held = Held { stream: id, worker, key: key.clone(), epoch, bytes, until, serial };
            if let Some(stream) = self.streams.get_mut(&id) {
                stream.bytes += bytes;
            }
            if let Some(older) = self.held.insert(job.id, held) {
                self.settled(older.stream, older.bytes);
            }
        }
        let bytes: usize = jobs.iter().map(|job| job.payload.len()).sum();
        let dealt = jobs.into_iter().map(|job| Dealt { topic: key.topic.clone(), lease, job }).collect();
        let refused = match self.streams.get(&id) {
            // Counted first: it may be taken out before this returns.
            Some(stream) => {
                stream.unsent.fetch_add(bytes, Ordering::Relaxed);
                stream.outlet.send(dealt).err().map(|refused| refused.0)
            }
            None => Some(dealt),
        };
        for dealt in refused.into_iter().flatten() {
            self.free(dealt.job.id, dealt.job.epoch);
            out.undeliverable.push((dealt.job.id, dealt.job.epoch));
        }
    }

    fn end_claim(&mut self, key: &TopicKey, dirty: bool) {
        let Some(topic) = self.topics.get_mut(key) else { return };
        topic.claiming = false;
        if topic.streams.is_empty() {
            self.forget(key);
            return;
        }
        topic.dirty |= dirty;
        if topic.dirty && !topic.queued {
            topic.queued = true;
            self.queue.push_back(key.clone());
        }
    }

    fn give_back(&mut self, id: StreamId, slots: u32) {
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.taken = stream.taken.saturating_sub(slots);
        }
    }

    fn settled(&mut self, id: StreamId, bytes: u64) {
        self.give_back(id, 1);
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.bytes = stream.bytes.saturating_sub(bytes);
        }
    }

    fn end_claiming(&mut self, reserved: Reserved) {
        if let Some(stream) = self.streams.get_mut(&reserved.stream) {
            stream.claiming_bytes = stream.claiming_bytes.saturating_sub(reserved.bytes);
        }
    }

    /// The worker no longer holds the job under this epoch. Says whether this process knew of it.
    pub(super) fn free(&mut self, id: JobId, epoch: Epoch) -> bool {
        match self.held.get(&id) {
            Some(held) if held.epoch == epoch => {
                let (stream, bytes) = (held.stream, held.bytes);
                self.held.remove(&id);
                self.settled(stream, bytes);
                true
            }
            _ => false,
        }
    }

    /// The store took these back in a sweep that began at `serial`; what was dealt later is another grant.
    pub(super) fn free_swept(&mut self, id: JobId, serial: u64) {
        if let Some(held) = self.held.get(&id).filter(|held| held.serial <= serial) {
            let epoch = held.epoch;
            self.free(id, epoch);
        }
    }

    pub(super) fn renewed(&mut self, id: JobId, epoch: Epoch, until: Timestamp) {
        if let Some(held) = self.held.get_mut(&id).filter(|held| held.epoch == epoch) {
            held.until = held.until.max(until);
        }
    }

    pub(super) fn serial(&self) -> u64 {
        self.serial
    }

    pub(super) fn owner_of(&self, id: JobId) -> Option<TopicOwner> {
        let held = self.held.get(&id)?;
        let (product, worker) = (held.key.product.clone(), Some(held.worker.clone()));
        Some(TopicOwner { product, epoch: held.epoch, worker })
    }

    pub(super) fn held_among(&self, jobs: &[JobId]) -> Vec<(JobId, Epoch)> {
        jobs.iter().filter_map(|id| self.held.get(id).map(|held| (*id, held.epoch))).collect()
    }

    /// Those whose lease should have ended by now, as far as is known here.
    pub(super) fn overdue(&self, now: Timestamp) -> Vec<(JobId, Epoch)> {
        let ended = self.held.iter().filter(|(_, held)| held.until <= now);
        let mut ended: Vec<_> = ended.map(|(id, held)| (*id, held.epoch)).collect();
        ended.sort_unstable();
        ended
    }

    pub(super) fn next_lease_end(&self) -> Option<Timestamp> {
        self.held.values().map(|held| held.until).min()
    }

    pub(super) fn holds_nothing(&self) -> bool {
        self.held.is_empty()
    }

    pub(super) fn streams(&self) -> usize {
        self.streams.len()
    }

    /// For each topic served here: how many workers, and how many jobs they hold.
    pub(super) fn by_topic(&self) -> HashMap<TopicKey, (usize, usize)> {
        let workers = |topic: &Topic| {
            let streams = topic.streams.iter().filter_map(|id| self.streams.get(id));
            streams.map(|stream| &stream.worker).collect::<HashSet<_>>().len()
        };
        let mut counts: HashMap<TopicKey, (usize, usize)> =
            self.topics.iter().map(|(key, topic)| (key.clone(), (workers(topic), 0))).collect();
        for held in self.held.values() {
            counts.entry(held.key.clone()).or_default().1 += 1;
        }
        counts
    }
}

struct Hand {
    id: StreamId,
    slots: u32,
    jobs: Vec<Assignment>,
}

/// Takes free slots of the topic's streams, at most [`CLAIM_MOST`], as evenly as their room allows. Who comes first
/// changes from time to time. `shares` says among how many topics each stream's room, in slots and in bytes, is still to be
/// divided.
fn reserve(
    topic: &mut Topic,
    streams: &mut HashMap<StreamId, Stream>,
    shares: &mut HashMap<StreamId, u32>,
) -> Vec<Reserved> {
    if !topic.streams.is_empty() {
        topic.streams.rotate_left(1);
    }
    let mut free = Vec::with_capacity(topic.streams.len());
    for id in &topic.streams {
        let (Some(stream), Some(share)) = (streams.get(id), shares.get_mut(id)) else { continue };
        let among = (*share).max(1);
        let (slots, bytes) = (stream.free().div_ceil(among), stream.free_bytes().div_ceil(u64::from(among)));
        *share -= 1;
        if slots > 0 {
            free.push(Reserved { stream: *id, slots, bytes });
        }
    }
    let room: usize = free.iter().map(|free| free.slots as usize).sum();
    if room > CLAIM_MOST {
        free.sort_by_key(|free| free.slots);
        let mut left = CLAIM_MOST as u32;
        let mut hands = free.len() as u32;
        for free in &mut free {
            free.slots = free.slots.min(left.div_ceil(hands));
            left -= free.slots;
            hands -= 1;
        }
        free.retain(|free| free.slots > 0);
    }
    for reserved in &free {
        if let Some(stream) = streams.get_mut(&reserved.stream) {
            stream.taken += reserved.slots;
            stream.claiming_bytes += reserved.bytes;
        }
    }
    free
}

#[cfg(test)]
mod tests;
