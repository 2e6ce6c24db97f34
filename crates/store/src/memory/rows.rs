//! The tables as rows with names: what a store that keeps them elsewhere writes down, and reads back.
//!
//! A row is a JSON object with the columns that it has in SQL (`crate::rows`), by name and without the empty ones. Rows
//! are put whole, so that applying the same ones twice, or newer ones first, ends in the same tables.

use giga_domain::job::JobKind;
use giga_domain::{
    ArtifactName, Charge, DispatchSeq, EffectId, Epoch, Event, FactoryId, FeedPos, Job, JobId, NewEvent,
    PoolName, ProductId, RequestId, SecretName, Stage, TokenId, WebhookId,
};
use giga_ports::StoreError;
use giga_ports::store::{JobText, QueueState};
use serde_json::{Map, Value, json};

use super::Tables;
use crate::engine::{ChargeRow, LeaseRow, PendingEvent, RunWrite};
use crate::rows::{self, Cell, Fields, Kind, Row, RunRows, Source, Table};

type Result<T> = std::result::Result<T, StoreError>;

/// What names a row. In this order rows can be applied: a job before its text, the counters last.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    Product(ProductId),
    Profile(ProductId, String, u32),
    Shared(String),
    Secret(ProductId, SecretName),
    Flag(String),
    Token(TokenId),
    Factory(FactoryId),
    Pool(PoolName),
    Member(FactoryId),
    Leader,
    Webhook(WebhookId),
    Budget(ProductId),
    Queue(ProductId),
    Job(JobId),
    Text(JobId),
    Run(JobId, Epoch),
    Artifact(JobId, Epoch, ArtifactName),
    Offer(JobId, DispatchSeq),
    Reconsider(u64),
    Effect(EffectId),
    /// By its place in the ledger, from 0.
    Charge(u64),
    Corrected(ProductId, RequestId),
    Event(FeedPos),
    Counters,
}

impl Key {
    pub(crate) fn words(&self) -> Vec<String> {
        let (kind, mut words): (&str, Vec<String>) = match self {
            Self::Product(id) => ("product", vec![id.to_string()]),
            Self::Profile(product, name, version) => {
                ("profile", vec![product.to_string(), name.clone(), version.to_string()])
            }
            Self::Shared(name) => ("key", vec![name.clone()]),
            Self::Secret(product, name) => ("secret", vec![product.to_string(), name.to_string()]),
            Self::Flag(name) => ("flag", vec![name.clone()]),
            Self::Token(id) => ("token", vec![id.to_string()]),
            Self::Factory(id) => ("factory", vec![id.to_string()]),
            Self::Pool(name) => ("pool", vec![name.to_string()]),
            Self::Member(id) => ("member", vec![id.to_string()]),
            Self::Leader => ("leader", Vec::new()),
            Self::Webhook(id) => ("webhook", vec![id.to_string()]),
            Self::Budget(product) => ("budget", vec![product.to_string()]),
            Self::Queue(product) => ("queue", vec![product.to_string()]),
            Self::Job(id) => ("job", vec![id.to_string()]),
            Self::Text(id) => ("text", vec![id.to_string()]),
            Self::Run(job, epoch) => ("run", vec![job.to_string(), epoch.to_string()]),
            Self::Artifact(job, epoch, name) => {
                ("artifact", vec![job.to_string(), epoch.to_string(), name.to_string()])
            }
            Self::Offer(job, seq) => ("offer", vec![job.to_string(), seq.to_string()]),
            Self::Reconsider(row) => ("reconsider", vec![row.to_string()]),
            Self::Effect(id) => ("effect", vec![id.to_string()]),
            Self::Charge(place) => ("charge", vec![place.to_string()]),
            Self::Corrected(product, request) => {
                ("corrected", vec![product.to_string(), request.to_string()])
            }
            Self::Event(pos) => ("event", vec![pos.to_string()]),
            Self::Counters => ("counters", Vec::new()),
        };
        words.insert(0, kind.to_owned());
        words
    }

    pub(crate) fn from_words(words: &[String]) -> Result<Self> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let read = || -> Option<Self> {
            Some(match *words {
                ["product", id] => Self::Product(id.parse().ok()?),
                ["profile", product, name, version] => {
                    Self::Profile(product.parse().ok()?, name.to_owned(), version.parse().ok()?)
                }
                ["key", name] => Self::Shared(name.to_owned()),
                ["secret", product, name] => Self::Secret(product.parse().ok()?, name.parse().ok()?),
                ["flag", name] => Self::Flag(name.to_owned()),
                ["token", id] => Self::Token(id.parse().ok()?),
                ["factory", id] => Self::Factory(id.parse().ok()?),
                ["pool", name] => Self::Pool(name.parse().ok()?),
                ["member", id] => Self::Member(id.parse().ok()?),
                ["leader"] => Self::Leader,
                ["webhook", id] => Self::Webhook(id.parse().ok()?),
                ["budget", product] => Self::Budget(product.parse().ok()?),
                ["queue", product] => Self::Queue(product.parse().ok()?),
                ["job", id] => Self::Job(id.parse().ok()?),
                ["text", id] => Self::Text(id.parse().ok()?),
                ["run", job, epoch] => Self::Run(job.parse().ok()?, Epoch(epoch.parse().ok()?)),
                ["artifact", job, epoch, name] => {
                    Self::Artifact(job.parse().ok()?, Epoch(epoch.parse().ok()?), name.parse().ok()?)
                }
                ["offer", job, seq] => Self::Offer(job.parse().ok()?, DispatchSeq(seq.parse().ok()?)),
                ["reconsider", row] => Self::Reconsider(row.parse().ok()?),
                ["effect", id] => Self::Effect(id.parse().ok()?),
                ["charge", place] => Self::Charge(place.parse().ok()?),
                ["corrected", product, request] => {
                    Self::Corrected(product.parse().ok()?, request.parse().ok()?)
                }
                ["event", pos] => Self::Event(FeedPos(pos.parse().ok()?)),
                ["counters"] => Self::Counters,
                _ => return None,
            })
        };
        read().ok_or_else(|| StoreError::broken_because(format!("no row is named {}", words.join("/"))))
    }
}

impl Tables {
    /// Of all rows, in order. Of the charges and events only the places, so this is cheap beside the rows.
    pub(crate) fn keys(&self) -> Vec<Key> {
        let mut keys: Vec<Key> = Vec::new();
        keys.extend(self.registry.products.keys().cloned().map(Key::Product));
        keys.extend(self.registry.profiles.keys().map(|(p, n, v)| Key::Profile(p.clone(), n.clone(), *v)));
        keys.extend(self.registry.keys.keys().cloned().map(Key::Shared));
        keys.extend(self.secrets.keys().map(|(product, name)| Key::Secret(product.clone(), name.clone())));
        keys.extend(self.flags.keys().cloned().map(Key::Flag));
        keys.extend(self.tokens.keys().cloned().map(Key::Token));
        keys.extend(self.factories.keys().cloned().map(Key::Factory));
        keys.extend(self.pools.keys().cloned().map(Key::Pool));
        keys.extend(self.members.keys().cloned().map(Key::Member));
        keys.extend(self.leader.iter().map(|_| Key::Leader));
        keys.extend(self.effects.webhooks.keys().copied().map(Key::Webhook));
        keys.extend(self.budgets.keys().cloned().map(Key::Budget));
        keys.extend(self.queue.keys().cloned().map(Key::Queue));
        keys.extend(self.jobs.keys().copied().map(Key::Job));
        keys.extend(self.texts.keys().copied().map(Key::Text));
        keys.extend(self.runs.keys().map(|(job, epoch)| Key::Run(*job, *epoch)));
        keys.extend(
            self.artifacts.keys().map(|(job, epoch, name)| Key::Artifact(*job, *epoch, name.clone())),
        );
        keys.extend(self.offers.keys().map(|(job, seq)| Key::Offer(*job, *seq)));
        keys.extend(self.reconsider.keys().copied().map(Key::Reconsider));
        keys.extend(self.effects.effects.keys().cloned().map(Key::Effect));
        keys.extend((0..self.charges.len() as u64).map(Key::Charge));
        keys.extend(
            self.corrected.iter().cloned().map(|(product, request)| Key::Corrected(product, request)),
        );
        keys.extend(self.events.iter().map(|event| Key::Event(event.pos)));
        keys.push(Key::Counters);
        keys
    }

    pub(crate) fn row(&self, key: &Key) -> Option<Value> {
        Some(match key {
            Key::Product(id) => named(&rows::PRODUCTS, rows::product_row(self.registry.products.get(id)?)),
            Key::Profile(product, name, version) => {
                let profile = self.registry.profiles.get(&(product.clone(), name.clone(), *version))?;
                named(&rows::PROFILES, rows::profile_row(profile))
            }
            Key::Shared(name) => named(&rows::SECRETS, rows::shared_key_row(self.registry.keys.get(name)?)),
            Key::Secret(product, name) => {
                let sealed = self.secrets.get(&(product.clone(), name.clone()))?;
                named(&rows::JOB_SECRETS, rows::sealed_secret_row(sealed))
            }
            Key::Flag(name) => named(&rows::FLAGS, rows::flag_row(name, self.flags.get(name)?)),
            Key::Token(id) => named(&rows::TOKENS, rows::token_row(self.tokens.get(id)?)),
            Key::Factory(id) => named(&rows::FACTORIES, rows::factory_row(self.factories.get(id)?)),
            Key::Pool(name) => named(&rows::POOLS, rows::pool_row(self.pools.get(name)?)),
            Key::Member(id) => named(&rows::MEMBERS, rows::member_row(self.members.get(id)?)),
            Key::Leader => named(&rows::LEADER, rows::leader_row(self.leader.as_ref()?)),
            Key::Webhook(id) => named(&rows::WEBHOOKS, rows::webhook_row(self.effects.webhooks.get(id)?)),
            Key::Budget(product) => named(&rows::BUDGETS, rows::budget_row(self.budgets.get(product)?)),
            Key::Queue(product) => queue_row(self.queue.get(product)?),
            Key::Job(id) => job_row(self.jobs.get(id)?),
            Key::Text(id) => self.text_row(*id)?,
            Key::Run(job, epoch) => {
                let run = self.runs.get(&(*job, *epoch))?;
                named(&rows::RUNS, RunRows::fold(vec![RunWrite::Open(run.clone())]).opened.pop()?)
            }
            Key::Artifact(job, epoch, name) => {
                let artifact = self.artifacts.get(&(*job, *epoch, name.clone()))?;
                named(&rows::ARTIFACTS, rows::artifact_row(artifact))
            }
            Key::Offer(job, seq) => named(&rows::OFFERS, rows::offer_row(self.offers.get(&(*job, *seq))?)),
            Key::Reconsider(row) => {
                let (job, parent_ended) = self.reconsider.get(row)?;
                json!({ "job_id": job.to_string(), "parent_ended": parent_ended })
            }
            Key::Effect(id) => named(&rows::EFFECTS, rows::effect_row(self.effects.effects.get(id)?)),
            Key::Charge(place) => charge_row(self.charges.get(usize::try_from(*place).ok()?)?),
            Key::Corrected(product, request) => {
                self.corrected.contains(&(product.clone(), request.clone())).then(|| json!({}))?
            }
            Key::Event(pos) => {
                let place = self.events.binary_search_by_key(pos, |event| event.pos).ok()?;
                event_row(&self.events[place])
            }
            Key::Counters => json!({
                "last_pos": self.last_pos.0,
                "last_reconsider": self.last_reconsider,
                "fan_out": self.effects.cursor.0,
            }),
        })
    }

    fn text_row(&self, id: JobId) -> Option<Value> {
        let text = self.texts.get(&id)?;
        let key =
            self.jobs.get(&id).and_then(|job| Some((job.product.clone(), job.spec.idempotency_key.clone()?)));
        let fingerprint = key.and_then(|key| self.keys.get(&key)).map(|(_, fingerprint)| fingerprint);
        Some(json!({
            "manifest": text.manifest,
            "body": text.body,
            "persona": text.persona,
            "fingerprint": fingerprint,
        }))
    }

    pub(crate) fn put(&mut self, key: &Key, row: &Value) -> Result<()> {
        match key {
            Key::Product(id) => {
                self.registry.products.insert(id.clone(), read(&rows::PRODUCTS, row, rows::product)?);
            }
            Key::Profile(product, name, version) => {
                let profile = read(&rows::PROFILES, row, rows::profile)?;
                self.registry.profiles.insert((product.clone(), name.clone(), *version), profile);
            }
            Key::Shared(name) => {
                self.registry.keys.insert(name.clone(), read(&rows::SECRETS, row, rows::shared_key)?);
            }
            Key::Secret(product, name) => {
                let sealed = read(&rows::JOB_SECRETS, row, rows::sealed_secret)?;
                self.secrets.insert((product.clone(), name.clone()), sealed);
            }
            Key::Flag(name) => {
                self.flags.insert(name.clone(), read(&rows::FLAGS, row, rows::flag)?.1);
            }
            Key::Token(id) => {
                self.tokens.insert(id.clone(), read(&rows::TOKENS, row, rows::token)?);
            }
            Key::Factory(id) => {
                self.factories.insert(id.clone(), read(&rows::FACTORIES, row, rows::factory)?);
            }
            Key::Pool(name) => {
                self.pools.insert(name.clone(), read(&rows::POOLS, row, rows::pool)?);
            }
            Key::Member(id) => {
                self.members.insert(id.clone(), read(&rows::MEMBERS, row, rows::member)?);
            }
            Key::Leader => self.leader = read(&rows::LEADER, row, rows::leader)?,
            Key::Webhook(id) => {
                self.effects.webhooks.insert(*id, read(&rows::WEBHOOKS, row, rows::webhook)?);
            }
            Key::Budget(product) => {
                self.budgets.insert(product.clone(), read(&rows::BUDGETS, row, rows::budget)?);
            }
            Key::Queue(product) => {
                self.queue.insert(product.clone(), queue(row).ok_or_else(|| unreadable(key))?);
            }
            Key::Job(id) => {
                self.jobs.insert(*id, job(row)?);
            }
            Key::Text(id) => self.put_text(*id, row).ok_or_else(|| unreadable(key))?,
            Key::Run(job, epoch) => {
                self.runs.insert((*job, *epoch), read(&rows::RUNS, row, rows::run)?);
            }
            Key::Artifact(job, epoch, name) => {
                let artifact = read(&rows::ARTIFACTS, row, rows::artifact)?;
                self.artifacts.insert((*job, *epoch, name.clone()), artifact);
            }
            Key::Offer(job, seq) => {
                self.offers.insert((*job, *seq), read(&rows::OFFERS, row, rows::waiting)?);
            }
            Key::Reconsider(number) => {
                let read = || Some((row["job_id"].as_str()?.parse().ok()?, row["parent_ended"].as_bool()?));
                self.reconsider.insert(*number, read().ok_or_else(|| unreadable(key))?);
            }
            Key::Effect(id) => {
                self.effects.effects.insert(id.clone(), read(&rows::EFFECTS, row, rows::effect)?);
            }
            Key::Charge(place) => self.put_charge(*place, row)?,
            Key::Corrected(product, request) => {
                self.corrected.insert((product.clone(), request.clone()));
            }
            Key::Event(pos) => {
                // Events only ever come behind the others; one that is not behind them is here or was retired.
                if self.events.last().is_none_or(|last| last.pos < *pos) {
                    self.events.push(read(&rows::EVENTS, row, rows::event)?);
                }
            }
            Key::Counters => {
                let number = |name: &str| row[name].as_u64().ok_or_else(|| unreadable(key));
                self.last_pos = FeedPos(number("last_pos")?);
                self.last_reconsider = number("last_reconsider")?;
                self.effects.cursor = FeedPos(number("fan_out")?);
            }
        }
        Ok(())
    }

    fn put_text(&mut self, id: JobId, row: &Value) -> Option<()> {
        let text = |name: &str| row[name].as_str().map(str::to_owned);
        if let Some(Job { product, spec, .. }) = self.jobs.get(&id)
            && let Some(key) = &spec.idempotency_key
        {
            self.keys.insert((product.clone(), key.clone()), (id, text("fingerprint")?));
        }
        let (manifest, body) = (row.get("manifest")?.clone(), text("body")?);
        self.texts.insert(id, JobText { manifest, body, persona: text("persona") });
        Some(())
    }

    fn put_charge(&mut self, place: u64, row: &Value) -> Result<()> {
        match (self.charges.len() as u64).cmp(&place) {
            std::cmp::Ordering::Greater => Ok(()),
            std::cmp::Ordering::Equal => {
                self.charges.push(read(&rows::CHARGES, row, rows::charge)?);
                Ok(())
            }
            std::cmp::Ordering::Less => {
                Err(StoreError::broken_because(format!("the charge before number {place} is missing")))
            }
        }
    }

    /// One that is not there is fine.
    pub(crate) fn take_away(&mut self, key: &Key) {
        match key {
            Key::Product(id) => drop(self.registry.products.remove(id)),
            Key::Profile(product, name, version) => {
                self.registry.profiles.remove(&(product.clone(), name.clone(), *version));
            }
            Key::Shared(name) => drop(self.registry.keys.remove(name)),
            Key::Secret(product, name) => drop(self.secrets.remove(&(product.clone(), name.clone()))),
            Key::Flag(name) => drop(self.flags.remove(name)),
            Key::Token(id) => drop(self.tokens.remove(id)),
            Key::Factory(id) => drop(self.factories.remove(id)),
            Key::Pool(name) => drop(self.pools.remove(name)),
            Key::Member(id) => drop(self.members.remove(id)),
            Key::Leader => self.leader = None,
            Key::Webhook(id) => drop(self.effects.webhooks.remove(id)),
            Key::Budget(product) => drop(self.budgets.remove(product)),
            Key::Queue(product) => drop(self.queue.remove(product)),
            // With all that belongs to it, its events included.
            Key::Job(id) => self.forget(*id),
            Key::Text(id) => drop(self.texts.remove(id)),
            Key::Run(job, epoch) => drop(self.runs.remove(&(*job, *epoch))),
            Key::Artifact(job, epoch, name) => drop(self.artifacts.remove(&(*job, *epoch, name.clone()))),
            Key::Offer(job, seq) => drop(self.offers.remove(&(*job, *seq))),
            Key::Reconsider(row) => drop(self.reconsider.remove(row)),
            Key::Effect(id) => drop(self.effects.effects.remove(id)),
            // These are never taken back one by one.
            Key::Charge(_) | Key::Corrected(..) | Key::Event(_) | Key::Counters => {}
        }
    }

    /// Whether one of these jobs ends something for it: `persist_graph` has to find it.
    pub(super) fn hangs_on(job: &Job, writes: &crate::engine::GraphWrites) -> bool {
        job.spec.deps.iter().any(|dep| writes.over.contains(dep))
            || (writes.parents.contains(&job.id) && job.spec.kind == JobKind::Composite)
            || job.spec.parent.is_some_and(|parent| writes.ending.contains(&parent))
    }
}

fn unreadable(key: &Key) -> StoreError {
    StoreError::broken_because(format!("the row {} cannot be read", key.words().join("/")))
}

/// Numbers past these are not kept by everybody who keeps JSON.
const SAFE: i64 = 1 << 53;

fn named(table: &Table, row: Row) -> Value {
    Value::Object(columns(table, row))
}

fn columns(table: &Table, row: Row) -> Map<String, Value> {
    let filled = table.names().zip(row).filter_map(|(name, cell)| {
        let value = match cell {
            Cell::Null => return None,
            Cell::Text(text) => Value::String(text),
            Cell::Int(number) if (-SAFE..=SAFE).contains(&number) => number.into(),
            Cell::Int(number) => Value::String(number.to_string()),
            Cell::Bytes(bytes) => Value::String(const_hex::encode(bytes)),
        };
        Some((name.to_owned(), value))
    });
    filled.collect()
}

fn read<T>(
    table: &'static Table,
    row: &Value,
    decode: impl FnOnce(&mut Fields<'_>) -> Result<T>,
) -> Result<T> {
    let cell = |(name, kind): &(&str, Kind)| match (kind, row.get(name)) {
        (_, None | Some(Value::Null)) => Some(Cell::Null),
        (Kind::Text, Some(Value::String(text))) => Some(Cell::Text(text.clone())),
        (Kind::Int, Some(Value::Number(number))) => number.as_i64().map(Cell::Int),
        (Kind::Int, Some(Value::String(number))) => number.parse().ok().map(Cell::Int),
        (Kind::Bytes, Some(Value::String(hex))) => const_hex::decode(hex).ok().map(Cell::Bytes),
        _ => None,
    };
    let mut cells = Vec::with_capacity(table.columns.len());
    for column in table.columns {
        let found = cell(column).ok_or_else(|| {
            StoreError::broken_because(format!("{}.{} cannot be read: {row}", table.name, column.0))
        })?;
        cells.push(found);
    }
    decode(&mut Fields::new(&Cells(cells), table))
}

struct Cells(Vec<Cell>);

impl Source for Cells {
    fn text(&self, column: usize) -> std::result::Result<Option<&str>, String> {
        match &self.0[column] {
            Cell::Text(text) => Ok(Some(text)),
            Cell::Null => Ok(None),
            _ => Err("it is not text".to_owned()),
        }
    }

    fn int(&self, column: usize) -> std::result::Result<Option<i64>, String> {
        match &self.0[column] {
            Cell::Int(number) => Ok(Some(*number)),
            Cell::Null => Ok(None),
            _ => Err("it is not a number".to_owned()),
        }
    }

    fn bytes(&self, column: usize) -> std::result::Result<Option<&[u8]>, String> {
        match &self.0[column] {
            Cell::Bytes(bytes) => Ok(Some(bytes)),
            Cell::Null => Ok(None),
            _ => Err("it is not bytes".to_owned()),
        }
    }
}

/// With its lease inside, and without the columns that only repeat others to be found by.
fn job_row(job: &Job) -> Value {
    let mut row = columns(&rows::JOBS, rows::job_row(job));
    row.retain(|name, _| rows::JOB_READ.names().any(|read| read == name));
    if let Some(lease) = job.lease() {
        let lease = LeaseRow {
            job: job.id,
            product: job.product.clone(),
            concurrency_key: None,
            units: None,
            lease: lease.clone(),
        };
        let mut lease = columns(&rows::LEASES, rows::lease_row(&lease));
        lease.retain(|name, _| rows::LEASE_READ.names().any(|read| read == name));
        row.insert("lease".to_owned(), Value::Object(lease));
    }
    Value::Object(row)
}

fn job(row: &Value) -> Result<Job> {
    let lease = match row.get("lease") {
        Some(lease) => Some(read(&rows::LEASE_READ, lease, rows::lease)?.1),
        None => None,
    };
    read(&rows::JOB_READ, row, |fields| rows::job(fields, |_, _| Ok(lease)))
}

fn queue_row(state: &QueueState) -> Value {
    let stages = state.by_stage.iter().filter(|(_, jobs)| **jobs > 0);
    let stages: Map<String, Value> =
        stages.map(|(stage, jobs)| (stage.as_str().to_owned(), (*jobs).into())).collect();
    json!({ "version": state.version, "jobs": stages })
}

fn queue(row: &Value) -> Option<QueueState> {
    let stages = row["jobs"].as_object()?.iter();
    let by_stage: Option<Vec<(Stage, u64)>> =
        stages.map(|(stage, jobs)| Some((stage.parse().ok()?, jobs.as_u64()?))).collect();
    Some(QueueState { version: row["version"].as_u64()?, by_stage: by_stage?.into_iter().collect() })
}

/// The call that made it stands in a row of its own.
pub(super) fn charge_row(charge: &Charge) -> Value {
    named(&rows::CHARGES, rows::charge_row(&ChargeRow { charge: charge.clone(), request: None }))
}

pub(super) fn event_row(event: &Event) -> Value {
    let Event { pos, product, job, at, actor, kind, from, to, cause, data } = event.clone();
    let event = NewEvent { kind, from, to, cause, data };
    let mut row = vec![pos.0.into()];
    row.extend(rows::event_row(&PendingEvent { product, job, at, actor, event }));
    named(&rows::EVENTS, row)
}
