//! Use cases about worker hosts, and their signs of life.

use std::collections::HashMap;
use std::time::Duration;

use giga_domain::factory::{Advertised, FactoryScope, Instance};
use giga_domain::token::{Lifetime, Permission, TokenSecret};
use giga_domain::{Actor, Delivery, Factory, FactoryId, FactoryState, Stage, Timestamp};
use giga_ports::StoreError;
use giga_ports::store::{
    Advertise, Deregister, Enroll, JobFilter, Prune, RevokeFactoryTokens, RotateToken, SetFactoryState,
};
use parking_lot::{Mutex, MutexGuard};

use crate::accounts::as_known;
use crate::dispatch::RESERVED_FACTORY;
use crate::{Coordinator, Directive, Error, FieldProblem};

/// Jobs that are read together where all of a kind are looked at.
const PAGE: usize = 500;

/// When each factory was last seen. Kept in memory and written now and then, all in one write: a heartbeat that
/// says nothing new costs no transaction.
#[derive(Default)]
pub(crate) struct Presence(Mutex<HashMap<FactoryId, Seen>>);

struct Seen {
    at: Timestamp,
    written: bool,
    /// Changes with every heartbeat and is worth nothing a minute later, so it is never written for its own sake.
    load: Option<f64>,
}

impl Presence {
    fn lock(&self) -> MutexGuard<'_, HashMap<FactoryId, Seen>> {
        self.0.lock()
    }

    pub(crate) fn touch(&self, factory: &FactoryId, at: Timestamp) {
        self.note(factory, at, None);
    }

    fn note(&self, factory: &FactoryId, at: Timestamp, load: Option<f64>) {
        let mut seen = self.lock();
        let entry = seen.entry(factory.clone()).or_insert(Seen { at, written: false, load });
        entry.load = load.or(entry.load);
        if entry.at < at {
            entry.at = at;
            entry.written = false;
        }
    }

    pub(crate) fn load(&self, factory: &Factory) -> f64 {
        self.lock().get(&factory.id).and_then(|seen| seen.load).unwrap_or(factory.advertised.load)
    }

    pub(crate) fn last_seen(&self, factory: &Factory) -> Option<Timestamp> {
        self.lock().get(&factory.id).map(|seen| seen.at).max(factory.last_seen_at)
    }

    pub(crate) fn take_unwritten(&self) -> Vec<(FactoryId, Timestamp)> {
        let mut seen = self.lock();
        let unwritten = seen.iter_mut().filter(|(_, entry)| !entry.written);
        unwritten
            .map(|(id, entry)| {
                entry.written = true;
                (id.clone(), entry.at)
            })
            .collect()
    }

    pub(crate) fn forget(&self, factory: &FactoryId) {
        self.lock().remove(factory);
    }
}

#[derive(Debug, Clone)]
pub struct HeartbeatAnswer {
    pub heartbeat_interval: Duration,
    pub stale_after: Duration,
    /// How jobs should reach it.
    pub delivery: Delivery,
    pub directives: Vec<Directive>,
}

#[derive(Debug, Clone)]
pub struct Pruned {
    pub factories: Vec<FactoryId>,
}

impl Coordinator {
    pub async fn enroll(
        &self,
        id: FactoryId,
        scope: FactoryScope,
        actor: Actor,
    ) -> Result<(Factory, TokenSecret), Error> {
        if id.as_str() == RESERVED_FACTORY {
            let message = format!(
                "`{RESERVED_FACTORY}` is reserved for what shadow mode measures; choose another name"
            );
            return Err(FieldProblem::new("id", message).into());
        }
        let permission = Permission::Factory { factory: id.clone(), scope: scope.clone() };
        let (token, secret) =
            self.new_token("factory", permission, format!("factory {id}"), Lifetime::RENEWED);
        let factory = self.core.store.enroll(Enroll { id, scope, token, actor }).await?;
        self.fleet.refresh().await?;
        Ok((factory, secret))
    }

    /// What the factory says of itself. Written only when something changed; otherwise it is a sign of life. Refused
    /// where another process is this factory.
    pub async fn heartbeat(
        &self,
        id: FactoryId,
        mut advertised: Advertised,
    ) -> Result<HeartbeatAnswer, Error> {
        if let Some(instance) = &mut advertised.instance {
            instance.since = self.since_when(&id, instance).await?;
        }
        self.accept(id, advertised).await
    }

    /// The same from a process that replaces whichever had the name: from now on that one is refused.
    pub async fn take_over(
        &self,
        id: FactoryId,
        mut advertised: Advertised,
    ) -> Result<HeartbeatAnswer, Error> {
        if let Some(instance) = &mut advertised.instance {
            let known = self.instance_of(&id).map(|(_, known)| known).filter(|known| known.is_same(instance));
            instance.since = known.map_or_else(|| self.core.store_now(), |known| known.since);
        }
        self.accept(id, advertised).await
    }

    /// Since when this process is the factory: from now on, where it is a new one and the name is free.
    async fn since_when(&self, id: &FactoryId, instance: &Instance) -> Result<Timestamp, Error> {
        if let Some((_, known)) = self.instance_of(id).filter(|(_, known)| known.is_same(instance)) {
            return Ok(known.since);
        }
        // The other one may be heard from by another coordinator.
        self.fleet.refresh().await?;
        self.fleet.refresh_stale_heartbeats().await?;
        match self.instance_of(id) {
            Some((factory, known)) if !known.is_same(instance) && self.is_live(&factory) => {
                let seen = self.last_seen(&factory).unwrap_or(known.since);
                let Instance { host, since, .. } = known;
                Err(Error::FactoryInUse { factory: id.clone(), host, since, seen })
            }
            Some((_, known)) if known.is_same(instance) => Ok(known.since),
            _ => Ok(self.core.store_now()),
        }
    }

    fn instance_of(&self, id: &FactoryId) -> Option<(Factory, Instance)> {
        let factory = self.fleet.view.lock().factories.get(id).cloned()?;
        let instance = factory.advertised.instance.clone()?;
        Some((factory, instance))
    }

    async fn accept(&self, id: FactoryId, mut advertised: Advertised) -> Result<HeartbeatAnswer, Error> {
        self.fleet.presence.note(&id, self.core.store_now(), Some(advertised.load));
        let (known, delivery) = {
            let state = self.fleet.view.lock();
            (state.factories.get(&id).cloned(), state.wished_delivery(&id))
        };
        if let Some(known) = &known {
            advertised.accounts = as_known(advertised.accounts, known);
        }
        let says_nothing_new = known
            .as_ref()
            .is_some_and(|f| Advertised { load: f.advertised.load, ..advertised.clone() } == f.advertised);
        let state = match known {
            Some(factory) if says_nothing_new => factory.state,
            _ => {
                let factory =
                    self.core.store.advertise(Advertise { factory: id.clone(), advertised }).await?;
                // Not from the answer, which a later change may have overtaken.
                self.fleet.refresh().await?;
                factory.state
            }
        };
        if delivery == Delivery::Broker
            && let Err(error) = self.core.broker.prepare(&id).await
        {
            // It polls meanwhile, and its next heartbeat tries again.
            tracing::debug!(factory = %id, %error, "the factory's offers cannot be made ready on the broker");
        }
        let directives = if state == FactoryState::Draining { vec![Directive::Drain] } else { Vec::new() };
        Ok(HeartbeatAnswer {
            heartbeat_interval: self.fleet.flag_millis("heartbeat_interval_ms"),
            stale_after: self.fleet.stale_after(),
            delivery,
            directives,
        })
    }

    pub async fn set_factory_state(
        &self,
        id: FactoryId,
        state: FactoryState,
        actor: Actor,
    ) -> Result<Factory, Error> {
        let factory =
            self.core.store.set_factory_state(SetFactoryState { factory: id, state, actor }).await?;
        self.fleet.refresh().await?;
        Ok(factory)
    }

    pub async fn deregister(&self, id: FactoryId, actor: Actor) -> Result<(), Error> {
        if self.core.store.read().factory(&id).await?.is_none() {
            return Err(StoreError::NoSuchFactory(id).into());
        }
        self.core.store.deregister(Deregister { factory: id.clone(), actor }).await?;
        self.caches.tokens.clear();
        self.fleet.presence.forget(&id);
        Ok(self.fleet.refresh().await?)
    }

    /// A factory goes for good. Refused while it holds something, and answers how much: nothing new comes to it, because it
    /// is draining by then, so it asks again when it is through.
    pub async fn leave(&self, id: FactoryId, actor: Actor) -> Result<usize, Error> {
        // First, and in the store: what is counted afterwards cannot grow any more.
        self.set_factory_state(id.clone(), FactoryState::Draining, actor.clone()).await?;
        let running = {
            let state = self.fleet.view.lock();
            state.running.values().filter(|running| running.factory == id).count()
        };
        let holds = running + self.merges_of(&id).await?;
        if holds == 0 {
            self.deregister(id, actor).await?;
        }
        Ok(holds)
    }

    async fn merges_of(&self, factory: &FactoryId) -> Result<usize, Error> {
        let filter = JobFilter { stages: vec![Stage::Shipping], ..JobFilter::default() };
        let (mut count, mut before) = (0, None);
        loop {
            let page = self.core.store.read().list_jobs(&filter, before, PAGE).await?;
            let merges = page.iter().filter_map(|job| job.merge.as_ref());
            count += merges.filter(|merge| merge.holder() == Some(factory)).count();
            match page.last() {
                Some(last) if page.len() == PAGE => before = Some(last.id),
                _ => return Ok(count),
            }
        }
    }

    /// Removes every factory that has been offline for `idle` and holds nothing.
    pub async fn prune(&self, idle: Duration, actor: Actor) -> Result<Pruned, Error> {
        self.fleet.write_presence().await?;
        let before = self.core.store.read().now().await?.minus(idle);
        let factories = self.core.store.prune(Prune { before, actor }).await?;
        self.caches.tokens.clear();
        for id in &factories {
            self.fleet.presence.forget(id);
        }
        self.fleet.refresh().await?;
        Ok(Pruned { factories })
    }

    /// A new token for the factory; the old ones work until the grace ends.
    pub async fn rotate_factory_token(&self, id: FactoryId, actor: Actor) -> Result<TokenSecret, Error> {
        let factory = self
            .core
            .store
            .read()
            .factory(&id)
            .await?
            .ok_or_else(|| StoreError::NoSuchFactory(id.clone()))?;
        let permission = Permission::Factory { factory: id.clone(), scope: factory.scope };
        let (token, secret) =
            self.new_token("factory", permission, format!("factory {id}"), Lifetime::RENEWED);
        self.core
            .store
            .rotate_token(RotateToken { factory: id, token, grace: self.core.options.rotation_grace, actor })
            .await?;
        self.caches.tokens.clear();
        Ok(secret)
    }

    pub async fn revoke_factory_tokens(&self, id: FactoryId, actor: Actor) -> Result<(), Error> {
        self.core.store.revoke_factory_tokens(RevokeFactoryTokens { factory: id, actor }).await?;
        self.caches.tokens.clear();
        Ok(())
    }

    /// When the factory was last seen, fresher than what is written.
    pub fn last_seen(&self, factory: &Factory) -> Option<Timestamp> {
        self.fleet.presence.last_seen(factory)
    }

    pub fn is_live(&self, factory: &Factory) -> bool {
        let now = self.core.store_now();
        self.last_seen(factory).is_some_and(|seen| now.since(seen) <= self.fleet.stale_after())
    }

    /// Jobs that the factory holds, as far as this process knows.
    pub fn held_by(&self, factory: &FactoryId) -> Vec<giga_domain::JobId> {
        let mut held: Vec<_> = self.fleet.view.lock().held_by(factory).collect();
        held.sort_unstable();
        held
    }

    /// Writes the signs of life that were not written yet.
    pub async fn presence_once(&self) -> Result<(), StoreError> {
        self.fleet.write_presence().await
    }
}
