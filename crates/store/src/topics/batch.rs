//! Jobs that were loaded and locked, while `giga_domain::topic::step` decides what becomes of them. Everything but the
//! two hot steps (claim, success) and renewals goes through this batch; no backend writes those rules a second time.

use std::collections::{BTreeMap, HashMap, VecDeque};

use giga_domain::topic::{TopicCommand, TopicKey, TopicStage, TopicState, step};
use giga_domain::{Epoch, JobId, Timestamp};
use giga_ports::topics::{Settled, Swept};

use super::command::Round;
use super::settles::Settles;
use crate::rows::TopicRow;

struct Job {
    loaded: TopicRow,
    before: TopicState,
    changed: bool,
}

#[derive(Default)]
pub(super) struct TopicBatch {
    jobs: BTreeMap<JobId, Job>,
}

/// What is added to a topic's counts, by `TopicStage as usize`.
pub(super) type Delta = [i64; 5];

impl TopicBatch {
    /// Puts all of them here; their ids by the time that they wait for.
    pub(super) fn load(&mut self, mut rows: Vec<TopicRow>) -> Vec<JobId> {
        rows.sort_by_key(|row| (at(&row.head.state), row.id));
        let ids = rows.iter().map(|row| row.id).collect();
        for row in rows {
            self.put(row);
        }
        ids
    }

    /// The first version that is put here counts: a second look at a job sees what the batch has not written yet.
    fn put(&mut self, loaded: TopicRow) {
        let before = loaded.head.state.clone();
        self.jobs.entry(loaded.id).or_insert(Job { loaded, before, changed: false });
    }

    /// Applies the command where the job is here and allows it.
    fn step(&mut self, id: JobId, command: &TopicCommand, now: Timestamp) -> Option<&TopicRow> {
        let job = self.jobs.get_mut(&id)?;
        let head = step(&job.loaded.head, command, now).ok()?;
        if head != job.loaded.head {
            job.loaded.head = head;
            job.changed = true;
        }
        Some(&job.loaded)
    }

    fn settle(&mut self, id: JobId, command: &TopicCommand, now: Timestamp) -> Settled {
        let Some(job) = self.jobs.get(&id) else { return Settled::Unknown };
        let repeated = job.loaded.head.state.stage() != TopicStage::Running;
        self.step(id, command, now).map_or(Settled::Fenced, |job| Settled::Applied {
            key: job.key.clone(),
            stage: job.head.state.stage(),
            due: due(&job.head.state),
            repeated,
        })
    }

    fn sweep(&mut self, ids: Vec<JobId>, command: &TopicCommand, now: Timestamp) -> Swept {
        let moved = ids.into_iter().filter_map(|id| {
            let job = self.step(id, command, now)?;
            Some((job.key.clone(), id, job.head.state.stage()))
        });
        Swept { jobs: moved.collect(), next: None }
    }

    /// In the order of their ids.
    pub(super) fn changed(&self) -> impl Iterator<Item = &TopicRow> {
        self.jobs.values().filter(|job| job.changed).map(|job| &job.loaded)
    }

    pub(super) fn deltas(&self) -> HashMap<&TopicKey, Delta> {
        let mut deltas: HashMap<&TopicKey, Delta> = HashMap::new();
        for job in self.jobs.values().filter(|job| job.changed) {
            let delta = deltas.entry(&job.loaded.key).or_default();
            delta[job.before.stage() as usize] -= 1;
            delta[job.loaded.head.state.stage() as usize] += 1;
        }
        deltas
    }
}

fn due(state: &TopicState) -> Option<Timestamp> {
    match state {
        TopicState::Scheduled { due } => Some(*due),
        _ => None,
    }
}

/// The one time that a state has, as the `at` column keeps it.
pub(super) fn at(state: &TopicState) -> Timestamp {
    match state {
        TopicState::Scheduled { due: at }
        | TopicState::Running { until: at, .. }
        | TopicState::Done { at }
        | TopicState::Dead { at } => *at,
        TopicState::Ready => Timestamp::ZERO,
    }
}

/// What was decided about the commands of a round that go through the batch.
#[derive(Default)]
pub(super) struct Decided {
    settled: HashMap<(JobId, Epoch), VecDeque<Settled>>,
    pub(super) expired: Swept,
    pub(super) promoted: Swept,
    retried: Vec<Vec<JobId>>,
}

impl Decided {
    /// `found`: jobs whose lease has ended, jobs that are due, and per retry the jobs that it may be about.
    pub(super) fn of(
        round: &Round,
        settles: &Settles,
        batch: &mut TopicBatch,
        now: Timestamp,
        found: (Vec<JobId>, Vec<JobId>, Vec<Vec<JobId>>),
    ) -> Self {
        let mut settled: HashMap<_, VecDeque<Settled>> = HashMap::new();
        for (id, epoch, outcome) in &settles.others {
            let command = TopicCommand::Settle { epoch: *epoch, outcome: outcome.clone() };
            settled.entry((*id, *epoch)).or_default().push_back(batch.settle(*id, &command, now));
        }
        let (expired, due, dead) = found;
        let expired = batch.sweep(expired, &TopicCommand::Expire, now);
        let promoted = batch.sweep(due, &TopicCommand::Promote, now);
        let mut retried = Vec::with_capacity(dead.len());
        for (asked, mut ids) in round.retries.iter().zip(dead) {
            ids.sort_unstable();
            let risen = ids.into_iter().filter(|id| {
                batch.jobs.get(id).is_some_and(|job| job.loaded.key == asked.ask.key)
                    && batch.step(*id, &TopicCommand::Retry, now).is_some()
            });
            retried.push(risen.take(asked.ask.limit).collect());
        }
        Self { settled, expired, promoted, retried }
    }

    /// What the holder's word came to, if it went through the batch. In the order of the words.
    pub(super) fn settled(&mut self, id: JobId, epoch: Epoch) -> Option<Settled> {
        self.settled.get_mut(&(id, epoch))?.pop_front()
    }

    /// Several sweeps in one round share what was found, in turn and as far as each one's limit goes.
    pub(super) fn answer(mut self, round: &mut Round) {
        for asked in &mut round.expiries {
            asked.reply(Ok(share(&mut self.expired, asked.ask)));
        }
        for asked in &mut round.promotions {
            asked.reply(Ok(share(&mut self.promoted, asked.ask)));
        }
        for (asked, risen) in round.retries.iter_mut().zip(self.retried) {
            asked.reply(Ok(risen));
        }
    }
}

fn share(swept: &mut Swept, limit: usize) -> Swept {
    let jobs = swept.jobs.drain(..limit.min(swept.jobs.len())).collect();
    Swept { jobs, next: swept.next }
}
