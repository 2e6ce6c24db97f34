//! The commands about worker hosts.

use giga_domain::factory::Advertised;
use giga_domain::{Actor, Delivery, EventKind, Factory, FactoryId, FactoryState, NewEvent, Timestamp};
use giga_ports::StoreError;
use giga_ports::store::NewFactory;

use super::super::{Needs, Op, Working};
use super::tokens::{issue, revoke_all};

fn event(kind: EventKind, id: &FactoryId, cause: impl Into<String>) -> NewEvent {
    NewEvent::new(kind, cause).with("factoryId", id.as_str())
}

pub(in crate::engine) struct Enroll {
    pub(in crate::engine) factory: NewFactory,
    pub(in crate::engine) actor: Actor,
}

impl Op for Enroll {
    type Reply = Factory;

    fn needs(&self, needs: &mut Needs) {
        needs.factories.insert(self.factory.id.clone());
        needs.tokens.insert(self.factory.token.id.clone());
    }

    fn decide(&self, working: &mut Working) -> Result<Factory, StoreError> {
        let NewFactory { id, scope, token } = &self.factory;
        if let Ok(factory) = working.factory(id) {
            let repeated = working.token(&token.id).is_ok_and(|known| known.hash == token.hash);
            return if repeated { Ok(factory.clone()) } else { Err(StoreError::FactoryExists(id.clone())) };
        }
        let factory = Factory {
            id: id.clone(),
            state: FactoryState::Active,
            scope: scope.clone(),
            advertised: Advertised::default(),
            enrolled_at: working.now(),
            last_seen_at: None,
        };
        working.put_factory(factory.clone());
        working.append(
            None,
            None,
            self.actor.clone(),
            event(EventKind::FactoryEnrolled, id, format!("{id} enrolled")),
        );
        issue(working, token, &self.actor);
        Ok(factory)
    }
}

pub(in crate::engine) struct Advertise {
    pub(in crate::engine) factory: FactoryId,
    pub(in crate::engine) advertised: Advertised,
}

impl Op for Advertise {
    type Reply = Factory;

    fn needs(&self, needs: &mut Needs) {
        needs.factories.insert(self.factory.clone());
    }

    fn decide(&self, working: &mut Working) -> Result<Factory, StoreError> {
        let now = working.now();
        let mut factory = working.factory(&self.factory)?.clone();
        let changed = factory.advertised != self.advertised;
        factory.last_seen_at = factory.last_seen_at.max(Some(now));
        factory.advertised = self.advertised.clone();
        working.put_factory(factory.clone());
        if changed {
            let event =
                event(EventKind::FactoryChanged, &factory.id, format!("{} advertises anew", factory.id));
            working.append(None, None, Actor::Factory(factory.id.clone()), event);
        }
        Ok(factory)
    }
}

pub(in crate::engine) struct StreamLost(pub(in crate::engine) FactoryId);

impl Op for StreamLost {
    type Reply = ();

    fn needs(&self, needs: &mut Needs) {
        needs.factories.insert(self.0.clone());
    }

    fn decide(&self, working: &mut Working) -> Result<(), StoreError> {
        let mut factory = working.factory(&self.0)?.clone();
        if factory.advertised.delivery != Some(Delivery::Stream) {
            return Ok(());
        }
        factory.advertised.delivery = Some(Delivery::Poll);
        let event =
            event(EventKind::FactoryChanged, &factory.id, format!("the stream of {} is gone", factory.id));
        working.put_factory(factory);
        working.append(None, None, Actor::system("dispatcher"), event);
        Ok(())
    }
}

pub(in crate::engine) struct Touch {
    pub(in crate::engine) seen: Vec<(FactoryId, Timestamp)>,
}

impl Op for Touch {
    type Reply = ();

    fn needs(&self, needs: &mut Needs) {
        needs.seen.extend(self.seen.iter().map(|(id, _)| id.clone()));
    }

    fn decide(&self, working: &mut Working) -> Result<(), StoreError> {
        for (id, at) in &self.seen {
            working.seen(id.clone(), *at);
        }
        Ok(())
    }
}

pub(in crate::engine) struct SetFactoryState {
    pub(in crate::engine) factory: FactoryId,
    pub(in crate::engine) state: FactoryState,
    pub(in crate::engine) actor: Actor,
}

impl Op for SetFactoryState {
    type Reply = Factory;

    fn needs(&self, needs: &mut Needs) {
        needs.factories.insert(self.factory.clone());
    }

    fn decide(&self, working: &mut Working) -> Result<Factory, StoreError> {
        let mut factory = working.factory(&self.factory)?.clone();
        if factory.state != self.state {
            factory.state = self.state;
            working.put_factory(factory.clone());
            let (kind, what) = match self.state {
                FactoryState::Draining => (EventKind::FactoryDraining, "drains: it is given nothing new"),
                FactoryState::Active => (EventKind::FactoryResumed, "takes jobs again"),
            };
            let event = event(kind, &factory.id, format!("{} {what}", factory.id));
            working.append(None, None, self.actor.clone(), event);
        }
        Ok(factory)
    }
}

pub(in crate::engine) struct Deregister {
    pub(in crate::engine) factory: FactoryId,
    pub(in crate::engine) actor: Actor,
}

impl Op for Deregister {
    type Reply = ();

    fn needs(&self, needs: &mut Needs) {
        needs.factories.insert(self.factory.clone());
        needs.tokens_of.insert(self.factory.clone());
    }

    fn decide(&self, working: &mut Working) -> Result<(), StoreError> {
        // One that is gone is what was asked for: this may be the same call again.
        if working.factory(&self.factory).is_ok() {
            forget(working, &self.factory, &self.actor, "deregistered");
        }
        Ok(())
    }
}

fn forget(working: &mut Working, id: &FactoryId, actor: &Actor, why: &str) {
    revoke_all(working, id, actor);
    working.delete_factory(id);
    let event = event(EventKind::FactoryDeregistered, id, format!("{id} {why}"));
    working.append(None, None, actor.clone(), event);
}

pub(in crate::engine) struct Prune {
    pub(in crate::engine) before: Timestamp,
    pub(in crate::engine) actor: Actor,
}

impl Op for Prune {
    type Reply = Vec<FactoryId>;

    fn needs(&self, needs: &mut Needs) {
        needs.prunable = Some(needs.prunable.map_or(self.before, |before| before.min(self.before)));
    }

    fn decide(&self, working: &mut Working) -> Result<Vec<FactoryId>, StoreError> {
        let mut ids = working.loaded().prunable.clone();
        // Judged again: commands before it in the batch may have heard of the factory, given it a job or forgotten it.
        ids.retain(|id| {
            working.factory(id).is_ok_and(|factory| working.last_seen(factory) < self.before)
                && working.seats_in_use(id) == 0
        });
        for id in &ids {
            forget(working, id, &self.actor, "pruned: not seen for too long");
        }
        Ok(ids)
    }
}
