//! Loads what a batch needs. The write lock is held already, so plain looks are enough.

use std::collections::BTreeSet;
use std::collections::hash_map::Entry;

use giga_domain::{JobId, ProductId, Timestamp};
use giga_ports::StoreError;
use rusqlite::Connection;

use super::{effects, graph, pools, read, registry, secrets};
use crate::engine::{BudgetRow, Loaded, Needs};
use crate::rows::{
    self, ARTIFACTS, BUDGETS, Cell, FACTORIES, FLAGS, Fields, JOB_READ, JOBS, LEADER, LEASES, TOKENS, text,
};
use crate::sql;

type Result<T> = std::result::Result<T, StoreError>;

pub(super) fn load(connection: &Connection, needs: &Needs, now: Timestamp) -> Result<Loaded> {
    let mut loaded = Loaded { now, ..Loaded::default() };
    let mut wanted: BTreeSet<JobId> = needs.jobs.union(&needs.claims).copied().collect();

    find_sweeps(connection, needs, &mut loaded)?;
    let swept = loaded.expired.iter().chain(&loaded.mergeable).chain(&loaded.retirable);
    wanted.extend(swept.chain(loaded.graph.taken.iter().map(|taken| &taken.job)));

    for key in &needs.keys {
        let sql = "SELECT jobs.id, job_texts.fingerprint FROM jobs \
                   JOIN job_texts ON job_texts.job_id = jobs.id \
                   WHERE jobs.product_id = $1 AND jobs.idempotency_key = $2";
        let values = vec![text(&key.0), key.1.as_str().into()];
        let decode = |fields: &mut Fields<'_>| Ok((fields.parse()?, fields.text()?.to_owned()));
        if let Some(found) = read(connection, sql, values, &JOBS, decode)?.pop() {
            wanted.insert(found.0);
            loaded.keys.insert(key.clone(), found);
        }
    }
    for grant in &needs.grants {
        let sql = "SELECT job_id FROM leases WHERE factory_id = $1 AND request_id = $2 ORDER BY job_id DESC";
        let values = vec![text(&grant.0), text(&grant.1)];
        if let Some(job) = read(connection, sql, values, &LEASES, rows::id)?.pop() {
            wanted.insert(job);
            loaded.grants.insert(grant.clone(), job);
        }
    }
    let by_id = sql::select_jobs("WHERE jobs.id = $1");
    for id in wanted {
        if let Some(job) = read(connection, &by_id, vec![text(id)], &JOB_READ, rows::leased_job)?.pop() {
            loaded.jobs.insert(id, job);
        }
    }
    let named = sql::select(&ARTIFACTS, "WHERE job_id = $1 AND lease_epoch = $2 AND name = $3");
    for key @ (job, epoch, name) in &needs.artifacts {
        let values = vec![text(job), epoch.0.into(), name.as_str().into()];
        let found = read(connection, &named, values, &ARTIFACTS, rows::artifact)?.pop();
        loaded.artifacts.extend(found.map(|artifact| (key.clone(), artifact)));
    }
    graph::look(connection, &needs.graph, &mut loaded)?;
    count_keys(connection, needs, &mut loaded)?;
    load_budgets(connection, needs, &mut loaded)?;
    for id in &needs.seats {
        let sql = "SELECT count(*) FROM leases WHERE factory_id = $1";
        loaded.seats_in_use.insert(id.clone(), count(connection, sql, vec![text(id)])?);
        let sql = "SELECT factory_id, units FROM leases WHERE factory_id = $1 AND units IS NOT NULL";
        loaded.count_units(read(connection, sql, vec![text(id)], &LEASES, rows::lease_units)?);
    }
    load_fleet(connection, needs, &mut loaded)?;
    loaded.registry = registry::load(connection, &needs.registry)?;
    loaded.secrets = secrets::load(connection, &needs.secrets)?;
    loaded.pools = pools::load(connection, needs.pools)?;
    loaded.effects = effects::load(connection, &needs.effects, now)?;
    Ok(loaded)
}

/// What the reconcilers look for.
fn find_sweeps(connection: &Connection, needs: &Needs, loaded: &mut Loaded) -> Result<()> {
    if needs.expired > 0 {
        let values = vec![needs.expired.saturating_add(1).into()];
        let decode = |fields: &mut Fields<'_>| Ok((fields.parse()?, fields.time()?));
        let first = read(connection, sql::FIRST_TO_EXPIRE, values, &LEASES, decode)?;
        (loaded.expired, loaded.next_expiry) = sql::split_expired(first, loaded.now, needs.expired);
    }
    graph::take(connection, &needs.graph, loaded)?;
    if needs.mergeable > 0 {
        let values = vec![needs.mergeable.into()];
        loaded.mergeable = read(connection, sql::MERGEABLE, values, &JOBS, rows::id)?;
    }
    if let Some((before, limit)) = needs.retirable {
        let sql = sql::retirable(sql::RETIRABLE_TAIL);
        loaded.retirable = read(connection, &sql, vec![before.into(), limit.into()], &JOBS, rows::id)?;
    }
    if let Some(before) = needs.prunable {
        loaded.prunable = read(connection, sql::PRUNABLE, vec![before.into()], &FACTORIES, rows::id)?;
    }
    Ok(())
}

fn count_keys(connection: &Connection, needs: &Needs, loaded: &mut Loaded) -> Result<()> {
    for job in needs.claims.iter().filter_map(|id| loaded.jobs.get(id)) {
        let Some(concurrency) = &job.spec.concurrency else { continue };
        let key = (job.product.clone(), concurrency.key.clone());
        if let Entry::Vacant(unknown) = loaded.key_in_use.entry(key) {
            let (product, key) = unknown.key();
            let sql = "SELECT count(*) FROM leases WHERE product_id = $1 AND concurrency_key = $2";
            let used = count(connection, sql, vec![text(product), key.as_str().into()])?;
            unknown.insert(used);
        }
    }
    Ok(())
}

/// One that has no row yet is blank: nobody else can make it meanwhile.
fn load_budgets(connection: &Connection, needs: &Needs, loaded: &mut Loaded) -> Result<()> {
    let taken = loaded.graph.taken.iter().map(|taken| &taken.job);
    let spenders = needs.claims.iter().chain(&needs.money).chain(&loaded.expired).chain(taken);
    let products = spenders.filter_map(|id| Some(&loaded.jobs.get(id)?.product));
    let products: BTreeSet<&ProductId> = products.chain(&needs.budgets).collect();
    let sql = sql::select(&BUDGETS, "WHERE product_id = $1");
    for product in products {
        let found = read(connection, &sql, vec![text(product)], &BUDGETS, rows::budget)?.pop();
        let row = found.unwrap_or_else(|| BudgetRow::new(product.clone()));
        loaded.budgets.insert(product.clone(), row);
    }
    for (product, request) in &needs.corrections {
        let sql = "SELECT count(*) FROM charges WHERE product_id = $1 AND request_id = $2";
        if count(connection, sql, vec![text(product), text(request)])? > 0 {
            loaded.corrected.insert((product.clone(), request.clone()));
        }
    }
    Ok(())
}

fn load_fleet(connection: &Connection, needs: &Needs, loaded: &mut Loaded) -> Result<()> {
    let factory_sql = sql::select(&FACTORIES, "WHERE id = $1");
    for id in needs.factories.iter().chain(&loaded.prunable) {
        for factory in read(connection, &factory_sql, vec![text(id)], &FACTORIES, rows::factory)? {
            loaded.factories.insert(factory.id.clone(), factory);
        }
    }
    let by_id = sql::select(&TOKENS, "WHERE id = $1");
    let by_factory = sql::select(&TOKENS, "WHERE factory_id = $1");
    let looked_up =
        needs.tokens.iter().map(|id| (&by_id, text(id))).chain(
            needs.tokens_of.iter().chain(&loaded.prunable).map(|factory| (&by_factory, text(factory))),
        );
    for (sql, value) in looked_up {
        for token in read(connection, sql, vec![value], &TOKENS, rows::token)? {
            loaded.tokens.insert(token.id.clone(), token);
        }
    }
    let flag_sql = sql::select(&FLAGS, "WHERE name = $1");
    for name in &needs.flags {
        loaded.flags.extend(read(
            connection,
            &flag_sql,
            vec![Cell::from(name.as_str())],
            &FLAGS,
            rows::flag,
        )?);
    }
    if needs.leader {
        let sql = sql::select(&LEADER, "");
        loaded.leader = read(connection, &sql, Vec::new(), &LEADER, rows::leader)?.pop().flatten();
    }
    Ok(())
}

fn count(connection: &Connection, sql: &str, values: Vec<Cell>) -> Result<u32> {
    let counted = read(connection, sql, values, &LEASES, rows::number::<u32>)?;
    Ok(counted.into_iter().sum())
}
