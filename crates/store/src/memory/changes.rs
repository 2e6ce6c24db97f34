//! What a batch changes, as rows: found out without touching the tables, so that they stay what was committed.

use std::collections::{BTreeMap, HashSet};

use giga_domain::{EffectTarget, JobId};
use giga_ports::StoreError;
use serde_json::{Value, json};

use super::Tables;
use super::rows::{Key, charge_row, event_row};
use crate::engine::{RunWrite, Writes};

#[derive(Debug, Default, PartialEq)]
pub(crate) struct Changes {
    pub(crate) gone: Vec<Key>,
    pub(crate) put: Vec<(Key, Value)>,
}

impl Changes {
    pub(crate) fn is_empty(&self) -> bool {
        self.gone.is_empty() && self.put.is_empty()
    }

    pub(crate) fn to_json(&self) -> Value {
        let gone: Vec<Vec<String>> = self.gone.iter().map(Key::words).collect();
        let put: Vec<Value> = self.put.iter().map(|(key, row)| json!([key.words(), row])).collect();
        json!({ "gone": gone, "put": put })
    }

    pub(crate) fn from_json(mut value: Value) -> Result<Self, StoreError> {
        let unreadable =
            |what: String| StoreError::broken_because(format!("changes that cannot be read: {what}"));
        let gone: Vec<Vec<String>> =
            serde_json::from_value(value["gone"].take()).map_err(|error| unreadable(error.to_string()))?;
        let put: Vec<(Vec<String>, Value)> =
            serde_json::from_value(value["put"].take()).map_err(|error| unreadable(error.to_string()))?;
        let gone = gone.iter().map(|words| Key::from_words(words)).collect::<Result<_, _>>()?;
        let put = put.into_iter().map(|(words, row)| Ok((Key::from_words(&words)?, row)));
        Ok(Self { gone, put: put.collect::<Result<_, StoreError>>()? })
    }
}

impl Tables {
    /// What would be different if these writes were persisted.
    pub(crate) fn changes(&self, writes: Writes) -> Changes {
        let mut slice = self.slice(&writes);
        let charged = self.charges.len() as u64;
        let before = slice.all_rows();
        slice.persist(writes);
        let charges = std::mem::take(&mut slice.charges);
        let events = std::mem::take(&mut slice.events);
        let after = slice.all_rows();
        let gone = before.keys().filter(|key| !after.contains_key(key)).cloned().collect();
        let mut put: Vec<(Key, Value)> =
            after.into_iter().filter(|(key, row)| before.get(key) != Some(row)).collect();
        put.extend((charged..).zip(&charges).map(|(place, charge)| (Key::Charge(place), charge_row(charge))));
        put.extend(events.iter().map(|event| (Key::Event(event.pos), event_row(event))));
        put.sort_by(|(one, _), (other, _)| one.cmp(other));
        Changes { gone, put }
    }

    pub(crate) fn apply(&mut self, changes: &Changes) -> Result<(), StoreError> {
        // First: a new job may take over the idempotency key of one that goes.
        for key in &changes.gone {
            self.take_away(key);
        }
        for (key, row) in &changes.put {
            self.put(key, row)?;
        }
        Ok(())
    }

    fn all_rows(&self) -> BTreeMap<Key, Value> {
        self.keys().into_iter().filter_map(|key| self.row(&key).map(|row| (key, row))).collect()
    }

    /// A copy of the rows that persisting these writes reads, changes or takes away, with the counters. What it only
    /// puts need not be here. New charges and events come in alone.
    fn slice(&self, writes: &Writes) -> Self {
        let mut slice = Self {
            last_pos: self.last_pos,
            last_reconsider: self.last_reconsider,
            leader: self.leader.clone(),
            ..Self::default()
        };
        slice.effects.cursor = self.effects.cursor;
        self.slice_jobs(writes, &mut slice);

        let factories = writes.seen_factories.keys().chain(&writes.delete_factories);
        let factories = factories.chain(writes.put_factories.iter().map(|factory| &factory.id));
        slice
            .factories
            .extend(factories.filter_map(|id| Some((id.clone(), self.factories.get(id)?.clone()))));
        let tokens = writes.delete_tokens.iter();
        slice.tokens.extend(tokens.filter_map(|id| Some((id.clone(), self.tokens.get(id)?.clone()))));
        let pools = writes.pools.delete.iter();
        slice.pools.extend(pools.filter_map(|name| Some((name.clone(), self.pools.get(name)?.clone()))));
        let members = writes.pools.delete_members.iter();
        slice.members.extend(members.filter_map(|id| Some((id.clone(), self.members.get(id)?.clone()))));
        let flags = writes.delete_flags.iter();
        slice.flags.extend(flags.filter_map(|name| Some((name.clone(), self.flags.get(name)?.clone()))));
        let secrets = writes.secrets.delete.iter();
        slice.secrets.extend(secrets.filter_map(|key| Some((key.clone(), self.secrets.get(key)?.clone()))));
        let webhooks = writes.effects.delete_webhooks.iter();
        slice
            .effects
            .webhooks
            .extend(webhooks.filter_map(|id| Some((*id, self.effects.webhooks.get(id)?.clone()))));
        for id in &writes.effects.delete {
            slice.effects.effects.extend(self.effects.effects.get(id).map(|e| (id.clone(), e.clone())));
        }
        for (webhook, ..) in &writes.effects.give_up {
            let target = EffectTarget::Webhook(*webhook);
            let to_it = self.effects.effects.iter().filter(|(_, effect)| effect.target == target);
            slice.effects.effects.extend(to_it.map(|(id, effect)| (id.clone(), effect.clone())));
        }
        let rows = writes.graph.seen_to.iter();
        slice.reconsider.extend(rows.filter_map(|row| Some((*row, *self.reconsider.get(row)?))));
        for (product, _) in writes.queue.keys() {
            slice.queue.extend(self.queue.get(product).map(|state| (product.clone(), *state)));
        }
        slice
    }

    fn slice_jobs(&self, writes: &Writes, slice: &mut Self) {
        let retired: HashSet<JobId> = writes.retire_jobs.iter().copied().collect();
        let changed =
            writes.update_jobs.iter().map(|job| job.id).chain(writes.put_leases.iter().map(|row| row.job));
        for id in changed.chain(writes.retire_jobs.iter().copied()) {
            slice.jobs.extend(self.jobs.get(&id).map(|job| (id, job.clone())));
        }
        let graph = &writes.graph;
        if !(graph.over.is_empty() && graph.parents.is_empty() && graph.ending.is_empty()) {
            let hanging = self.jobs.iter().filter(|(_, job)| Self::hangs_on(job, graph));
            slice.jobs.extend(hanging.map(|(id, job)| (*id, job.clone())));
        }
        for id in &retired {
            slice.texts.extend(self.texts.get(id).map(|text| (*id, text.clone())));
            let key = self
                .jobs
                .get(id)
                .and_then(|job| Some((job.product.clone(), job.spec.idempotency_key.clone()?)));
            slice.keys.extend(key.and_then(|key| Some((key.clone(), self.keys.get(&key)?.clone()))));
        }
        let from = |id: &JobId| (*id, giga_domain::Epoch::ZERO)..=(*id, giga_domain::Epoch(u64::MAX));
        for id in &retired {
            slice.runs.extend(self.runs.range(from(id)).map(|(key, run)| (*key, run.clone())));
        }
        for write in &writes.runs {
            let key = match write {
                RunWrite::Open(run) => (run.job, run.epoch),
                RunWrite::Engine { job, epoch, .. }
                | RunWrite::Start { job, epoch, .. }
                | RunWrite::Close { job, epoch, .. } => (*job, *epoch),
            };
            slice.runs.extend(self.runs.get(&key).map(|run| (key, run.clone())));
        }
        if !(retired.is_empty() && writes.delete_artifacts.is_empty()) {
            let going = self.artifacts.iter().filter(|(_, artifact)| {
                retired.contains(&artifact.job) || writes.delete_artifacts.contains(&artifact.id)
            });
            slice.artifacts.extend(going.map(|(key, artifact)| (key.clone(), artifact.clone())));
        }
        let withdrawn: HashSet<JobId> = writes.withdraw_offers.iter().chain(&retired).copied().collect();
        let sent: HashSet<_> = writes.delete_offers.iter().copied().collect();
        let going = self.offers.iter().filter(|(key, _)| withdrawn.contains(&key.0) || sent.contains(key));
        slice.offers.extend(going.map(|(key, waiting)| (*key, waiting.clone())));
    }
}
