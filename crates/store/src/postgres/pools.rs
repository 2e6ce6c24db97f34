//! Pools and their members in PostgreSQL. Both tables are locked as a whole: they change seldom, and how many members a
//! pool may have hangs on all that it has.

use giga_ports::StoreError;

use super::decode_all;
use super::load::texts;
use super::persist::put;
use super::pipeline::{Answers, Pipeline, Ticket};
use super::statements::Statements;
use crate::engine::{PoolWrites, PoolsLoaded};
use crate::rows::{self, MEMBERS, POOLS};

/// Where the answers will be found.
pub(super) struct Asked {
    pools: Option<Ticket>,
    members: Option<Ticket>,
}

pub(super) async fn ask<'c>(pipeline: &mut Pipeline<'c>, statements: &'c Statements, wanted: bool) -> Asked {
    pipeline.send_if(wanted, &statements.lock_pools, Vec::new).await;
    Asked {
        pools: pipeline.send_if(wanted, &statements.pools, Vec::new).await,
        members: pipeline.send_if(wanted, &statements.pool_members, Vec::new).await,
    }
}

impl Asked {
    pub(super) fn read(self, answers: &mut Answers) -> Result<PoolsLoaded, StoreError> {
        let pools = decode_all(&answers.take(self.pools), &POOLS, rows::pool)?;
        let members = decode_all(&answers.take(self.members), &MEMBERS, rows::member)?;
        Ok(PoolsLoaded {
            pools: pools.into_iter().map(|pool| (pool.name.clone(), pool)).collect(),
            members: members.into_iter().map(|member| (member.factory.clone(), member)).collect(),
        })
    }
}

pub(super) async fn persist<'c>(out: &mut Pipeline<'c>, s: &'c Statements, writes: &PoolWrites) {
    put(out, &s.put_pools, &POOLS, writes.put.iter().map(rows::pool_row)).await;
    if !writes.delete.is_empty() {
        out.send(&s.delete_pools, vec![texts(&writes.delete)]).await;
    }
    put(out, &s.put_pool_members, &MEMBERS, writes.put_members.iter().map(rows::member_row)).await;
    if !writes.delete_members.is_empty() {
        out.send(&s.delete_pool_members, vec![texts(&writes.delete_members)]).await;
    }
}
