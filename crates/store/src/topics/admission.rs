//! Which jobs of an enqueue call are new. The one place that decides about idempotency keys; it never touches a store.

use std::collections::HashMap;

use giga_domain::topic::TopicKey;
use giga_domain::{JobId, Timestamp};
use giga_ports::StoreError;
use giga_ports::topics::{Enqueued, NewTopicJob};

/// What a store holds already, of what a call names.
pub(super) trait Known {
    /// A job with this very id: the call was made before, and this is the answer.
    fn by_id(&self, id: JobId) -> Option<Enqueued>;
    /// The job that the key made, and from which payload.
    fn by_key(&self, topic: &TopicKey, key: &str) -> Option<(JobId, &[u8])>;
}

/// Of the jobs that a database was asked for, those that are there.
#[derive(Default)]
pub(super) struct Found {
    pub(super) ids: HashMap<JobId, Option<Timestamp>>,
    pub(super) keys: HashMap<TopicKey, HashMap<String, (JobId, Vec<u8>)>>,
}

impl Known for Found {
    fn by_id(&self, id: JobId) -> Option<Enqueued> {
        self.ids.get(&id).map(|due| Enqueued::Created { id, due: *due })
    }

    fn by_key(&self, topic: &TopicKey, key: &str) -> Option<(JobId, &[u8])> {
        let (id, payload) = self.keys.get(topic)?.get(key)?;
        Some((*id, payload.as_slice()))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Admitted {
    /// To be inserted.
    New,
    /// Nothing to do; this is the answer.
    Known(Enqueued),
}

/// Keys that earlier calls of the same transaction will have made.
#[derive(Default)]
pub(super) struct Pending<'c>(HashMap<(&'c TopicKey, &'c str), (JobId, &'c [u8])>);

impl<'c> Pending<'c> {
    /// A verdict per job, or the whole call is refused and leaves nothing.
    pub(super) fn admit(
        &mut self,
        call: &'c [NewTopicJob],
        known: &impl Known,
    ) -> Result<Vec<Admitted>, StoreError> {
        let mut made = HashMap::new();
        let mut verdicts = Vec::with_capacity(call.len());
        for job in call {
            verdicts.push(self.verdict(job, known, &mut made)?);
        }
        self.0.extend(made);
        Ok(verdicts)
    }

    fn verdict(
        &self,
        job: &'c NewTopicJob,
        known: &impl Known,
        made: &mut HashMap<(&'c TopicKey, &'c str), (JobId, &'c [u8])>,
    ) -> Result<Admitted, StoreError> {
        if let Some(answer) = known.by_id(job.id) {
            return Ok(Admitted::Known(answer));
        }
        let Some(key) = job.idempotency_key.as_deref() else { return Ok(Admitted::New) };
        let place = (&job.key, key);
        let before = known.by_key(&job.key, key);
        match before.or_else(|| self.0.get(&place).or_else(|| made.get(&place)).copied()) {
            // The same call twice in one transaction: the store takes the id once.
            Some((id, _)) if id == job.id => Ok(Admitted::New),
            Some((id, payload)) if payload == job.payload => Ok(Admitted::Known(Enqueued::Existing(id))),
            Some((id, _)) => Err(StoreError::KeyReused { key: key.to_owned(), job: id }),
            None => {
                made.insert(place, (job.id, &job.payload));
                Ok(Admitted::New)
            }
        }
    }
}
