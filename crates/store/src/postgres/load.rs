//! Locks and loads what a batch needs.
//!
//! Sweeps cost a round trip of their own, because what they find has to be locked; everything else is asked for in
//! one. What a look finds before the lock is looked at again behind it wherever somebody else could have changed it
//! in between.

use std::collections::{BTreeSet, HashMap};

use giga_domain::{FactoryId, JobId, Lease, Timestamp};
use giga_ports::StoreError;
use tokio_postgres::Row;

use super::pipeline::Value;
use super::{ClockSource, Writer, decode_all, effects, graph, pools, registry, secrets};
use crate::engine::{Loaded, Needs};
use crate::rows::{
    self, ARTIFACTS, BUDGETS, CHARGES, FACTORIES, FLAGS, Fields, JOB_READ, JOBS, LEADER, LEASE_READ, LEASES,
    TOKENS, Table,
};
use crate::sql;

type Result<T> = std::result::Result<T, StoreError>;

pub(super) async fn load(writer: &Writer, clock: &ClockSource, needs: &Needs) -> Result<Loaded> {
    let mut loaded = Loaded::default();
    let sweeps = needs.expired > 0
        || graph::comes_first(&needs.graph)
        || needs.mergeable > 0
        || needs.retirable.is_some()
        || needs.prunable.is_some();
    let found = if sweeps { find_sweeps(writer, clock, needs, &mut loaded).await? } else { BTreeSet::new() };
    lock_and_look(writer, clock, needs, found, !sweeps, &mut loaded).await?;
    load_answers(writer, &mut loaded).await?;
    Ok(loaded)
}

/// Begins the transaction with what the reconcilers look for: the jobs to be locked.
async fn find_sweeps(
    writer: &Writer,
    clock: &ClockSource,
    needs: &Needs,
    loaded: &mut Loaded,
) -> Result<BTreeSet<JobId>> {
    let statements = &writer.statements;
    let mut pipeline = writer.pipeline();
    pipeline.send_plain("BEGIN").await;
    let now = pipeline.send(&statements.now, Vec::new()).await;
    let first = pipeline
        .send_if(needs.expired > 0, &statements.first_to_expire, || {
            vec![limit(needs.expired.saturating_add(1))]
        })
        .await;
    let graph = graph::ask_first(&mut pipeline, statements, &needs.graph).await;
    let mergeable =
        pipeline.send_if(needs.mergeable > 0, &statements.mergeable, || vec![limit(needs.mergeable)]).await;
    let (before, most) = needs.retirable.unwrap_or_default();
    let retirable = pipeline
        .send_if(needs.retirable.is_some(), &statements.retirable, || {
            vec![Box::new(before.as_millis()), limit(most)]
        })
        .await;
    let unseen_since = needs.prunable.unwrap_or_default();
    let prunable = pipeline
        .send_if(needs.prunable.is_some(), &statements.prunable, || vec![Box::new(unseen_since.as_millis())])
        .await;
    let mut answers = pipeline.finish().await?;

    let now = tell_time(clock, &answers.take(now))?;
    let decode = |fields: &mut Fields<'_>| Ok((fields.parse()?, fields.time()?));
    let first = decode_all(&answers.take(first), &LEASES, decode)?;
    (loaded.expired, loaded.next_expiry) = sql::split_expired(first, now, needs.expired);
    loaded.mergeable = decode_all(&answers.take(mergeable), &JOBS, rows::id)?;
    loaded.retirable = decode_all(&answers.take(retirable), &JOBS, rows::id)?;
    loaded.prunable = decode_all(&answers.take(prunable), &FACTORIES, rows::id)?;
    let mut found = graph::answer_first(&mut answers, &graph, loaded)?;
    found.extend(loaded.expired.iter().chain(&loaded.mergeable).chain(&loaded.retirable));
    Ok(found)
}

async fn lock_and_look(
    writer: &Writer,
    clock: &ClockSource,
    needs: &Needs,
    found: BTreeSet<JobId>,
    begin: bool,
    loaded: &mut Loaded,
) -> Result<()> {
    let statements = &writer.statements;
    let mut wanted = found;
    wanted.extend(needs.jobs.union(&needs.claims));
    let pruned = &loaded.prunable;

    let mut pipeline = writer.pipeline();
    if begin {
        pipeline.send_plain("BEGIN").await;
    }
    graph::lock(&mut pipeline, statements, &needs.graph).await;
    // Jobs, and what only changes under their locks.
    let jobs = pipeline.send_if(!wanted.is_empty(), &statements.lock_jobs, || vec![texts(&wanted)]).await;
    let leases = pipeline.send_if(!wanted.is_empty(), &statements.leases, || vec![texts(&wanted)]).await;
    let graph = graph::look(&mut pipeline, statements, &needs.graph, loaded).await;
    let (before, _) = needs.retirable.unwrap_or_default();
    let retirable = pipeline
        .send_if(!loaded.retirable.is_empty(), &statements.still_retirable, || {
            vec![Box::new(before.as_millis()), texts(&loaded.retirable)]
        })
        .await;
    let keys = pipeline
        .send_if(!needs.keys.is_empty(), &statements.keys, || {
            vec![
                texts(needs.keys.iter().map(|(product, _)| product)),
                texts(needs.keys.iter().map(|(_, key)| key)),
            ]
        })
        .await;
    let artifacts = pipeline
        .send_if(!needs.artifacts.is_empty(), &statements.artifacts, || {
            let epochs: Vec<i64> =
                needs.artifacts.iter().map(|(_, epoch, _)| epoch.0.cast_signed()).collect();
            vec![
                texts(needs.artifacts.iter().map(|(job, ..)| job)),
                Box::new(epochs),
                texts(needs.artifacts.iter().map(|(_, _, name)| name)),
            ]
        })
        .await;
    // Concurrency keys: nobody else grants one until this batch is done.
    let claims = !needs.claims.is_empty();
    pipeline.send_if(claims, &statements.lock_concurrency_keys, || vec![texts(&needs.claims)]).await;
    let in_use = pipeline.send_if(claims, &statements.keys_in_use, || vec![texts(&needs.claims)]).await;
    // Budgets: nobody else sets anything aside until this batch is done. One that is missing is made before it is locked.
    let taken = loaded.graph.taken.iter().map(|taken| &taken.job);
    let spenders = needs.claims.iter().chain(&needs.money).chain(&loaded.expired);
    let spenders: BTreeSet<&JobId> = spenders.chain(taken).collect();
    let money = !spenders.is_empty() || !needs.budgets.is_empty();
    pipeline.send_if(money, &statements.make_budgets, || vec![texts(&spenders), texts(&needs.budgets)]).await;
    let budgets = pipeline
        .send_if(money, &statements.lock_budgets, || vec![texts(&spenders), texts(&needs.budgets)])
        .await;
    let corrected = pipeline
        .send_if(!needs.corrections.is_empty(), &statements.corrected, || {
            vec![
                texts(needs.corrections.iter().map(|(product, _)| product)),
                texts(needs.corrections.iter().map(|(_, request)| request)),
            ]
        })
        .await;
    // Factories: their lock also keeps their seats and the requests that they have won.
    let locked: BTreeSet<&FactoryId> = needs.factories.iter().chain(&needs.seen).chain(pruned).collect();
    pipeline.send_if(!locked.is_empty(), &statements.lock_factories, || vec![texts(&locked)]).await;
    let named: BTreeSet<&FactoryId> = needs.factories.iter().chain(pruned).collect();
    let factories = pipeline.send_if(!named.is_empty(), &statements.factories, || vec![texts(&named)]).await;
    let seated: BTreeSet<&FactoryId> = needs.seats.iter().chain(pruned).collect();
    let seats = pipeline.send_if(!seated.is_empty(), &statements.seats, || vec![texts(&seated)]).await;
    let units = pipeline.send_if(!seated.is_empty(), &statements.units, || vec![texts(&seated)]).await;
    let grants = pipeline
        .send_if(!needs.grants.is_empty(), &statements.grants, || {
            vec![
                texts(needs.grants.iter().map(|(factory, _)| factory)),
                texts(needs.grants.iter().map(|(_, request)| request)),
            ]
        })
        .await;
    let owners: BTreeSet<&FactoryId> = needs.tokens_of.iter().chain(pruned).collect();
    let tokens = pipeline
        .send_if(!needs.tokens.is_empty() || !owners.is_empty(), &statements.lock_tokens, || {
            vec![texts(&needs.tokens), texts(&owners)]
        })
        .await;
    let flags =
        pipeline.send_if(!needs.flags.is_empty(), &statements.lock_flags, || vec![texts(&needs.flags)]).await;
    let leader = pipeline.send_if(needs.leader, &statements.lock_leader, Vec::new).await;
    let registry = registry::ask(&mut pipeline, statements, &needs.registry).await;
    let secrets = secrets::ask(&mut pipeline, statements, &needs.secrets).await;
    let pools = pools::ask(&mut pipeline, statements, needs.pools).await;
    let effects = effects::ask(&mut pipeline, statements, &needs.effects, clock).await;
    // Last, so that no time is older than a change that a lock was waited for.
    let now = pipeline.send(&statements.now, Vec::new()).await;
    let mut answers = pipeline.finish().await?;

    loaded.now = tell_time(clock, &answers.take(now))?;
    let leases = decode_all(&answers.take(leases), &LEASE_READ, rows::lease)?;
    let leases: HashMap<JobId, Lease> = leases.into_iter().collect();
    let with_lease = |fields: &mut Fields<'_>| rows::job(fields, |_, id| Ok(leases.get(&id).cloned()));
    let jobs = decode_all(&answers.take(jobs), &JOB_READ, with_lease)?;
    loaded.jobs = jobs.into_iter().map(|job| (job.id, job)).collect();
    loaded.retirable = decode_all(&answers.take(retirable), &JOBS, rows::id)?;
    let artifacts = decode_all(&answers.take(artifacts), &ARTIFACTS, rows::artifact)?;
    loaded.artifacts = artifacts.into_iter().map(|artifact| (artifact.key(), artifact)).collect();
    let key = |fields: &mut Fields<'_>| {
        let key = (fields.parse()?, fields.text()?.to_owned());
        Ok((key, (fields.parse()?, fields.text()?.to_owned())))
    };
    loaded.keys = map(&answers.take(keys), &JOBS, key)?;
    graph::answer(&mut answers, &graph, &needs.graph, loaded)?;
    let used = |fields: &mut Fields<'_>| Ok(((fields.parse()?, fields.text()?.to_owned()), fields.count()?));
    loaded.key_in_use = map(&answers.take(in_use), &LEASES, used)?;
    let budgets = decode_all(&answers.take(budgets), &BUDGETS, rows::budget)?;
    loaded.budgets = budgets.into_iter().map(|row| (row.budget.product.clone(), row)).collect();
    let correction = |fields: &mut Fields<'_>| Ok((fields.parse()?, fields.parse()?));
    loaded.corrected = decode_all(&answers.take(corrected), &CHARGES, correction)?.into_iter().collect();
    let seats_of = |fields: &mut Fields<'_>| Ok((fields.parse()?, fields.count()?));
    loaded.seats_in_use = map(&answers.take(seats), &LEASES, seats_of)?;
    loaded.count_units(decode_all(&answers.take(units), &LEASES, rows::lease_units)?);
    let grant = |fields: &mut Fields<'_>| Ok(((fields.parse()?, fields.parse()?), fields.parse()?));
    loaded.grants = map(&answers.take(grants), &LEASES, grant)?;
    let factories = decode_all(&answers.take(factories), &FACTORIES, rows::factory)?;
    loaded.factories = factories.into_iter().map(|factory| (factory.id.clone(), factory)).collect();
    let tokens = decode_all(&answers.take(tokens), &TOKENS, rows::token)?;
    loaded.tokens = tokens.into_iter().map(|token| (token.id.clone(), token)).collect();
    loaded.flags = map(&answers.take(flags), &FLAGS, rows::flag)?;
    loaded.leader = decode_all(&answers.take(leader), &LEADER, rows::leader)?.pop().flatten();
    loaded.registry = registry.read(&mut answers)?;
    loaded.secrets = secrets.read(&mut answers)?;
    loaded.pools = pools.read(&mut answers)?;
    loaded.effects = effects.read(&mut answers)?;
    keep_prunable(loaded, needs.prunable);
    Ok(())
}

/// A factory that was seen or won a job since it was found is not pruned.
fn keep_prunable(loaded: &mut Loaded, before: Option<Timestamp>) {
    let Some(before) = before else { return };
    let (factories, seats) = (&loaded.factories, &loaded.seats_in_use);
    loaded.prunable.retain(|id| {
        factories.get(id).is_some_and(|f| f.last_seen_at.unwrap_or(f.enrolled_at) < before)
            && seats.get(id).is_none_or(|used| *used == 0)
    });
}

/// Jobs that were found by key or by request are answered with, never changed: they need no lock, and one that a
/// batch changes under another name has been locked above.
async fn load_answers(writer: &Writer, loaded: &mut Loaded) -> Result<()> {
    let found = loaded.keys.values().map(|(id, _)| id).chain(loaded.grants.values());
    let missing: BTreeSet<JobId> = found.filter(|id| !loaded.jobs.contains_key(id)).copied().collect();
    if missing.is_empty() {
        return Ok(());
    }
    let mut pipeline = writer.pipeline();
    let jobs = pipeline.send(&writer.statements.jobs, vec![texts(&missing)]).await;
    let jobs = decode_all(&pipeline.finish().await?.take(jobs), &JOB_READ, rows::leased_job)?;
    loaded.jobs.extend(jobs.into_iter().map(|job| (job.id, job)));
    Ok(())
}

fn tell_time(clock: &ClockSource, answer: &[Row]) -> Result<Timestamp> {
    match clock {
        ClockSource::Injected(clock) => Ok(clock.now()),
        ClockSource::Database => decode_all(answer, &JOBS, rows::time)?
            .pop()
            .ok_or_else(|| StoreError::broken_because("PostgreSQL did not tell the time")),
    }
}

fn map<K: std::hash::Hash + Eq, V>(
    rows: &[Row],
    table: &'static Table,
    decode: impl Fn(&mut Fields<'_>) -> Result<(K, V)>,
) -> Result<HashMap<K, V>> {
    Ok(decode_all(rows, table, decode)?.into_iter().collect())
}

pub(super) fn texts<T: ToString>(values: impl IntoIterator<Item = T>) -> Value {
    Box::new(values.into_iter().map(|value| value.to_string()).collect::<Vec<_>>())
}

pub(super) fn limit(most: usize) -> Value {
    Box::new(i64::try_from(most).unwrap_or(i64::MAX))
}
