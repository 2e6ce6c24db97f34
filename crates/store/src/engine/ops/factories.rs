//! The commands about worker hosts.

use giga_domain::factory::Advertised;
use giga_domain::{Actor, Delivery, Factory, FactoryId, FactoryState, NewEvent};
use giga_ports::StoreError;
use giga_ports::store::{Advertise, Deregister, Enroll, Prune, SetFactoryState, StreamLost, Touch};

use super::super::{Needs, Op, Working};
use super::tokens::{issue, revoke_all};

impl Op for Enroll {
    fn needs(&self, needs: &mut Needs) {
        needs.factories.insert(self.id.clone());
        needs.tokens.insert(self.token.id.clone());
    }

    fn decide(&self, working: &mut Working) -> Result<Factory, StoreError> {
        let Self { id, scope, token, actor } = self;
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
        working.append(None, None, actor.clone(), NewEvent::factory_enrolled(id));
        issue(working, token, actor);
        Ok(factory)
    }
}

impl Op for Advertise {
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
            let event = NewEvent::factory_changed(&factory.id);
            working.append(None, None, Actor::Factory(factory.id.clone()), event);
        }
        Ok(factory)
    }
}

impl Op for StreamLost {
    fn needs(&self, needs: &mut Needs) {
        needs.factories.insert(self.factory.clone());
    }

    fn decide(&self, working: &mut Working) -> Result<(), StoreError> {
        let mut factory = working.factory(&self.factory)?.clone();
        if factory.advertised.delivery != Some(Delivery::Stream) {
            return Ok(());
        }
        factory.advertised.delivery = Some(Delivery::Poll);
        let event = NewEvent::stream_lost(&factory.id);
        working.put_factory(factory);
        working.append(None, None, Actor::system("dispatcher"), event);
        Ok(())
    }
}

impl Op for Touch {
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

impl Op for SetFactoryState {
    fn needs(&self, needs: &mut Needs) {
        needs.factories.insert(self.factory.clone());
    }

    fn decide(&self, working: &mut Working) -> Result<Factory, StoreError> {
        let mut factory = working.factory(&self.factory)?.clone();
        if factory.state != self.state {
            factory.state = self.state;
            working.put_factory(factory.clone());
            let event = NewEvent::factory_state(&factory.id, self.state);
            working.append(None, None, self.actor.clone(), event);
        }
        Ok(factory)
    }
}

impl Op for Deregister {
    fn needs(&self, needs: &mut Needs) {
        needs.factories.insert(self.factory.clone());
        needs.tokens_of.insert(self.factory.clone());
    }

    fn decide(&self, working: &mut Working) -> Result<(), StoreError> {
        // One that is gone is what was asked for: this may be the same call again.
        if working.factory(&self.factory).is_ok() {
            let event = NewEvent::factory_deregistered(&self.factory);
            remove(working, &self.factory, &self.actor, event);
        }
        Ok(())
    }
}

fn remove(working: &mut Working, id: &FactoryId, actor: &Actor, event: NewEvent) {
    revoke_all(working, id, actor);
    working.delete_factory(id);
    working.append(None, None, actor.clone(), event);
}

impl Op for Prune {
    fn needs(&self, needs: &mut Needs) {
        needs.prunable = Some(needs.prunable.map_or(self.before, |before| before.min(self.before)));
    }

    fn decide(&self, working: &mut Working) -> Result<Vec<FactoryId>, StoreError> {
        let mut ids = working.loaded().prunable.clone();
        // Judged again: commands before it in the batch may have seen the factory, given it a job or removed it.
        ids.retain(|id| {
            working.factory(id).is_ok_and(|factory| working.last_seen(factory) < self.before)
                && working.seats_in_use(id) == 0
        });
        for id in &ids {
            remove(working, id, &self.actor, NewEvent::factory_pruned(id));
        }
        Ok(ids)
    }
}
