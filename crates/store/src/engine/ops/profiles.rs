//! The command about profiles. There is no other: a version is never changed and never removed.

use giga_domain::{Actor, EventKind, NewEvent, Profile};
use giga_ports::StoreError;
use giga_ports::store::NewProfile;

use super::super::{Needs, Op, Working};

pub(in crate::engine) struct AddProfile {
    pub(in crate::engine) new: NewProfile,
    pub(in crate::engine) actor: Actor,
}

impl Op for AddProfile {
    type Reply = Profile;

    fn needs(&self, needs: &mut Needs) {
        needs.registry.profiles.insert((self.new.product.clone(), self.new.name.clone()));
    }

    fn decide(&self, working: &mut Working) -> Result<Profile, StoreError> {
        let NewProfile { product, name, content } = &self.new;
        let newest = working.registry.newest_profile(product, name);
        if let Some(newest) = newest.filter(|newest| newest.content == *content) {
            return Ok(newest.clone());
        }
        let profile = Profile {
            product: product.clone(),
            name: name.clone(),
            version: newest.map_or(0, |newest| newest.version) + 1,
            content: content.clone(),
            created_at: working.now(),
            created_by: self.actor.clone(),
        };
        let cause = format!("profile {name}@{} was added", profile.version);
        let event = NewEvent::new(EventKind::ProfileAdded, cause)
            .with("productId", product.as_str())
            .with("name", name.as_str())
            .with("version", profile.version);
        working.append(Some(product.clone()), None, self.actor.clone(), event);
        working.registry.add_profile(profile.clone());
        Ok(profile)
    }
}
