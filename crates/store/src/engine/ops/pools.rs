//! The commands about pools and their members.
//!
//! How many a pool may have is judged where they are written, so that it never has more, whoever races.

use giga_domain::pool::cost_of;
use giga_domain::{
    Actor, Factory, FactoryId, FactoryState, Member, MemberState, NewEvent, Pool, PoolName, PoolRecord,
    ProductId, Rev, limits,
};
use giga_ports::StoreError;
use giga_ports::store::{
    ChargePool, EnrollMember, ForgetMember, LearnPool, NoteMember, OrderMembers, RemovePool, SetPool,
    StopMember,
};

use super::super::{Needs, Op, Working};
use super::dispatch::check_term;
use super::tokens::{forget_tokens, issue, revoke_all};

fn reconciler() -> Actor {
    Actor::system("pools")
}

fn known<'w>(working: &'w Working, name: &PoolName) -> Result<&'w Pool, StoreError> {
    working.pools.get(name).ok_or_else(|| StoreError::NoSuchPool(name.clone()))
}

/// The pool, as long as its settings are those that the caller has decided by.
fn as_decided(working: &Working, name: &PoolName, given: Rev) -> Result<Pool, StoreError> {
    let pool = known(working, name)?;
    if pool.rev != given {
        return Err(StoreError::RevMismatch { given, current: pool.rev });
    }
    Ok(pool.clone())
}

fn its_member(working: &Working, pool: &PoolName, factory: &FactoryId) -> Option<Member> {
    working.pools.member(factory).filter(|member| member.pool == *pool).cloned()
}

impl Op for SetPool {
    fn needs(&self, needs: &mut Needs) {
        needs.pools = true;
    }

    fn decide(&self, working: &mut Working) -> Result<Pool, StoreError> {
        let Self { name, settings, if_rev, actor } = self;
        let before = working.pools.get(name).cloned();
        let current = before.as_ref().map_or(Rev::default(), |pool| pool.rev);
        if let Some(pool) = before.as_ref().filter(|pool| pool.settings == *settings) {
            return Ok(pool.clone());
        }
        if let Some(given) = if_rev.filter(|given| *given != current) {
            return Err(StoreError::RevMismatch { given, current });
        }
        if before.is_none() && working.pools.count() >= limits::POOLS {
            return Err(StoreError::TooManyPools(limits::POOLS));
        }
        let record = before
            .as_ref()
            .map_or_else(PoolRecord::default, |pool| pool.record.under(&pool.settings, settings));
        let pool = Pool { name: name.clone(), settings: settings.clone(), record, rev: current.next() };
        working.append(None, None, actor.clone(), NewEvent::pool_changed(before.as_ref(), &pool));
        working.pools.put(pool.clone());
        Ok(pool)
    }
}

impl Op for RemovePool {
    fn needs(&self, needs: &mut Needs) {
        needs.pools = true;
    }

    fn decide(&self, working: &mut Working) -> Result<bool, StoreError> {
        let members = working.pools.members(&self.name).count();
        if members > 0 {
            return Err(StoreError::PoolInUse { pool: self.name.clone(), members });
        }
        let was_there = working.pools.get(&self.name).is_some();
        if was_there {
            working.pools.remove(&self.name);
            working.append(None, None, self.actor.clone(), NewEvent::pool_removed(&self.name));
        }
        Ok(was_there)
    }
}

impl Op for OrderMembers {
    fn needs(&self, needs: &mut Needs) {
        needs.leader = true;
        needs.pools = true;
        needs.budgets.extend(self.charge_to.clone());
    }

    fn decide(&self, working: &mut Working) -> Result<Vec<Member>, StoreError> {
        check_term(working, self.term)?;
        let mut pool = as_decided(working, &self.pool, self.rev)?;
        let now = working.now();
        let pays = match &self.charge_to {
            Some(product) => working.admit(product, None)?.is_ok(),
            None => true,
        };
        let may_start = pays && !pool.settings.paused && pool.record.waits_until(now).is_none();
        let mut ordered = Vec::new();
        for factory in &self.factories {
            // The same call after a lost reply.
            if let Some(member) = its_member(working, &self.pool, factory) {
                ordered.push(member);
                continue;
            }
            let is_full = working.pools.members(&self.pool).count() >= pool.settings.max as usize;
            if !may_start || is_full || working.pools.member(factory).is_some() {
                break;
            }
            let member = Member::ordered(self.pool.clone(), factory.clone(), now);
            working.append(None, None, reconciler(), NewEvent::pool_starting(&self.pool, factory));
            working.pools.put_member(member.clone());
            pool.record.starts += 1;
            ordered.push(member);
        }
        working.pools.put(pool);
        Ok(ordered)
    }
}

impl Op for NoteMember {
    fn needs(&self, needs: &mut Needs) {
        needs.pools = true;
    }

    fn decide(&self, working: &mut Working) -> Result<(), StoreError> {
        if let Some(member) = its_member(working, &self.pool, &self.factory) {
            working.pools.put_member(Member { handle: Some(self.handle.clone()), ..member });
        }
        Ok(())
    }
}

impl Op for EnrollMember {
    fn needs(&self, needs: &mut Needs) {
        needs.pools = true;
        needs.factories.insert(self.factory.clone());
        needs.tokens.insert(self.token.id.clone());
        needs.tokens_of.insert(self.factory.clone());
    }

    fn decide(&self, working: &mut Working) -> Result<Factory, StoreError> {
        let Self { pool: name, factory: id, scope, token, actor } = self;
        let mut pool = known(working, name)?.clone();
        let refused = |why| Err(StoreError::NotExpected { pool: name.clone(), factory: id.clone(), why });
        let now = working.now();
        let member = match working.pools.member(id) {
            Some(member) if member.pool != *name => return refused("it belongs to another pool"),
            Some(member) if member.state == MemberState::Stopping => return refused("it was given up"),
            Some(member) => member.clone(),
            None if working.factory(id).is_ok() => return Err(StoreError::FactoryExists(id.clone())),
            None if pool.settings.driver != giga_domain::DriverKind::Keda => {
                return refused("nobody ordered it");
            }
            None if working.pools.members(name).count() >= pool.settings.max as usize => {
                return refused("the pool has as many factories as it may have");
            }
            None => Member::ordered(name.clone(), id.clone(), now),
        };
        // The same call after a lost reply.
        if working.token(&token.id).is_ok_and(|known| known.hash == token.hash) {
            return working.factory(id).cloned();
        }
        let known = working.factory(id).ok().cloned();
        let factory = known.clone().unwrap_or_else(|| Factory {
            id: id.clone(),
            state: FactoryState::Active,
            scope: scope.clone(),
            advertised: giga_domain::factory::Advertised::default(),
            enrolled_at: now,
            last_seen_at: None,
        });
        let factory = Factory { scope: scope.clone(), ..factory };
        working.put_factory(factory.clone());
        if known.is_none() {
            working.append(None, None, actor.clone(), NewEvent::factory_enrolled(id));
        }
        end_factory_tokens(working, id, actor);
        issue(working, token, actor);
        if member.state == MemberState::Starting {
            let took = now.since(member.ordered_at);
            if pool.settings.driver != giga_domain::DriverKind::Keda {
                pool.record.started(took);
                working.pools.put(pool);
            }
            let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
            working.append(None, None, actor.clone(), NewEvent::pool_joined(name, id, took_ms));
            let state = MemberState::Running;
            working.pools.put_member(Member { state, since: now, enrolled_at: Some(now), ..member });
        }
        Ok(factory)
    }
}

/// Its pool credential stays good until it ends by itself: a process that is restarted needs it again.
fn end_factory_tokens(working: &mut Working, factory: &FactoryId, actor: &Actor) {
    super::tokens::revoke_where(working, factory, actor, |permission| {
        matches!(permission, giga_domain::token::Permission::Factory { .. })
    });
}

impl Op for LearnPool {
    fn needs(&self, needs: &mut Needs) {
        needs.pools = true;
    }

    fn decide(&self, working: &mut Working) -> Result<Option<Pool>, StoreError> {
        let Some(pool) = working.pools.get(&self.pool).filter(|pool| pool.rev == self.rev) else {
            return Ok(None);
        };
        let mut pool = pool.clone();
        if pool.record.template.as_ref() != Some(&self.template) {
            pool.record.template = Some(self.template.clone());
            working.pools.put(pool.clone());
        }
        Ok(Some(pool))
    }
}

impl Op for StopMember {
    fn needs(&self, needs: &mut Needs) {
        needs.leader = true;
        needs.pools = true;
        needs.factories.insert(self.factory.clone());
        needs.tokens_of.insert(self.factory.clone());
    }

    fn decide(&self, working: &mut Working) -> Result<(), StoreError> {
        check_term(working, self.term)?;
        let Some(member) = its_member(working, &self.pool, &self.factory) else { return Ok(()) };
        let now = working.now();
        if member.state == MemberState::Stopping {
            return Ok(());
        }
        if member.state == MemberState::Starting
            && let Some(mut pool) = working.pools.get(&self.pool).cloned()
        {
            pool.record.failed(&self.reason, now);
            let retry_at = pool.record.retry_at;
            let event = NewEvent::pool_start_failed(&self.pool, &self.factory, &self.reason, retry_at);
            working.append(None, None, reconciler(), event);
            working.pools.put(pool);
        }
        revoke_all(working, &self.factory, &reconciler());
        if working.factory(&self.factory).is_ok() {
            working.delete_factory(&self.factory);
            working.append(None, None, reconciler(), NewEvent::factory_deregistered(&self.factory));
        }
        let event = NewEvent::pool_stopping(&self.pool, &self.factory, &self.reason);
        working.append(None, None, reconciler(), event);
        let reason = Some(self.reason.clone());
        working.pools.put_member(Member { state: MemberState::Stopping, since: now, reason, ..member });
        Ok(())
    }
}

/// Up to now. What it cost since the last time.
fn charge(working: &mut Working, pool: &Pool, payer: Option<&ProductId>, member: Member) {
    let now = working.now();
    if let (Some(product), Some(rate)) = (payer, pool.settings.cost_per_hour) {
        let cost = cost_of(rate, now.since(member.charged_until));
        working.charge_hours(product, cost);
    }
    working.pools.put_member(Member { charged_until: now, ..member });
}

impl Op for ForgetMember {
    fn needs(&self, needs: &mut Needs) {
        needs.leader = true;
        needs.pools = true;
        needs.budgets.extend(self.charge_to.clone());
        needs.tokens_of.insert(self.factory.clone());
    }

    fn decide(&self, working: &mut Working) -> Result<(), StoreError> {
        check_term(working, self.term)?;
        let Some(member) = its_member(working, &self.pool, &self.factory) else { return Ok(()) };
        let pool = as_decided(working, &self.pool, self.rev)?;
        let whole =
            pool.settings.cost_per_hour.map(|rate| cost_of(rate, working.now().since(member.ordered_at)));
        charge(working, &pool, self.charge_to.as_ref(), member);
        working.pools.remove_member(&self.factory);
        forget_tokens(working, &self.factory);
        let event = NewEvent::pool_left(&self.pool, &self.factory, whole);
        working.append(self.charge_to.clone(), None, reconciler(), event);
        Ok(())
    }
}

impl Op for ChargePool {
    fn needs(&self, needs: &mut Needs) {
        needs.leader = true;
        needs.pools = true;
        needs.budgets.insert(self.charge_to.clone());
    }

    fn decide(&self, working: &mut Working) -> Result<(), StoreError> {
        check_term(working, self.term)?;
        let pool = as_decided(working, &self.pool, self.rev)?;
        let members: Vec<Member> = working.pools.members(&self.pool).cloned().collect();
        for member in members {
            charge(working, &pool, Some(&self.charge_to), member);
        }
        Ok(())
    }
}
