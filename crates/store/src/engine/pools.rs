//! Pools of a batch, and the members of those that it is about.

use std::collections::{BTreeMap, BTreeSet};

use giga_domain::{FactoryId, Member, Pool, PoolName};

#[derive(Debug, Default)]
pub struct PoolsLoaded {
    /// Every pool, where the batch is about one.
    pub pools: BTreeMap<PoolName, Pool>,
    /// Every member, likewise: a factory is a member of one pool at most.
    pub members: BTreeMap<FactoryId, Member>,
}

#[derive(Debug, Default)]
pub struct PoolWrites {
    /// Each pool and each member appears in at most one of its two.
    pub put: Vec<Pool>,
    pub delete: Vec<PoolName>,
    pub put_members: Vec<Member>,
    pub delete_members: Vec<FactoryId>,
}

impl PoolWrites {
    pub fn is_empty(&self) -> bool {
        self.put.is_empty()
            && self.delete.is_empty()
            && self.put_members.is_empty()
            && self.delete_members.is_empty()
    }
}

/// The rows while the commands of a batch are decided.
#[derive(Debug, Default)]
pub(super) struct Pools {
    loaded: PoolsLoaded,
    changed: BTreeSet<PoolName>,
    changed_members: BTreeSet<FactoryId>,
}

impl Pools {
    pub(super) fn new(loaded: PoolsLoaded) -> Self {
        Self { loaded, ..Self::default() }
    }

    pub(super) fn count(&self) -> usize {
        self.loaded.pools.len()
    }

    pub(super) fn get(&self, name: &PoolName) -> Option<&Pool> {
        self.loaded.pools.get(name)
    }

    pub(super) fn put(&mut self, pool: Pool) {
        self.changed.insert(pool.name.clone());
        self.loaded.pools.insert(pool.name.clone(), pool);
    }

    pub(super) fn remove(&mut self, name: &PoolName) -> bool {
        self.changed.insert(name.clone());
        self.loaded.pools.remove(name).is_some()
    }

    pub(super) fn member(&self, factory: &FactoryId) -> Option<&Member> {
        self.loaded.members.get(factory)
    }

    pub(super) fn members(&self, pool: &PoolName) -> impl Iterator<Item = &Member> {
        self.loaded.members.values().filter(move |member| member.pool == *pool)
    }

    pub(super) fn put_member(&mut self, member: Member) {
        self.changed_members.insert(member.factory.clone());
        self.loaded.members.insert(member.factory.clone(), member);
    }

    pub(super) fn remove_member(&mut self, factory: &FactoryId) {
        self.changed_members.insert(factory.clone());
        self.loaded.members.remove(factory);
    }

    pub(super) fn into_writes(mut self) -> PoolWrites {
        let mut writes = PoolWrites::default();
        for name in self.changed {
            match self.loaded.pools.remove(&name) {
                Some(pool) => writes.put.push(pool),
                None => writes.delete.push(name),
            }
        }
        for factory in self.changed_members {
            match self.loaded.members.remove(&factory) {
                Some(member) => writes.put_members.push(member),
                None => writes.delete_members.push(factory),
            }
        }
        writes
    }
}
