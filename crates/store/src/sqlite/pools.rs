//! Pools and their members in SQLite.

use giga_ports::StoreError;
use rusqlite::Connection;

use super::persist::{upsert, write};
use super::read;
use crate::engine::{PoolWrites, PoolsLoaded};
use crate::rows::{self, MEMBERS, POOLS, text};
use crate::sql;

type Result<T> = std::result::Result<T, StoreError>;

pub(super) fn load(connection: &Connection, wanted: bool) -> Result<PoolsLoaded> {
    if !wanted {
        return Ok(PoolsLoaded::default());
    }
    let pools = read(connection, &sql::select(&POOLS, ""), Vec::new(), &POOLS, rows::pool)?;
    let members = read(connection, &sql::select(&MEMBERS, ""), Vec::new(), &MEMBERS, rows::member)?;
    Ok(PoolsLoaded {
        pools: pools.into_iter().map(|pool| (pool.name.clone(), pool)).collect(),
        members: members.into_iter().map(|member| (member.factory.clone(), member)).collect(),
    })
}

pub(super) fn persist(connection: &Connection, writes: &PoolWrites) -> Result<()> {
    write(connection, &upsert(&POOLS, sql::replace_excluded), writes.put.iter().map(rows::pool_row))?;
    let gone = writes.delete.iter().map(|name| vec![text(name)]);
    write(connection, "DELETE FROM pools WHERE name = $1", gone)?;
    let members = writes.put_members.iter().map(rows::member_row);
    write(connection, &upsert(&MEMBERS, sql::replace_excluded), members)?;
    let gone = writes.delete_members.iter().map(|factory| vec![text(factory)]);
    write(connection, "DELETE FROM pool_members WHERE factory_id = $1", gone)
}
