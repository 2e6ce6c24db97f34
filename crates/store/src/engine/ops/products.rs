//! The commands about products, and the secrets that coordinators share.

use giga_domain::{EventKind, NewEvent, Product, Rev};
use giga_ports::StoreError;
use giga_ports::store::ProductWrite;

use super::super::registry::SharedSecret;
use super::super::{Needs, Op, Working};

pub(in crate::engine) struct SetProduct(pub(in crate::engine) ProductWrite);

impl Op for SetProduct {
    type Reply = Product;

    fn needs(&self, needs: &mut Needs) {
        needs.registry.products = true;
    }

    fn decide(&self, working: &mut Working) -> Result<Product, StoreError> {
        let ProductWrite { product: id, settings, if_rev, actor } = &self.0;
        let known = working.registry.product(id);
        let rev = known.map_or(Rev::ZERO, |known| known.rev);
        // Also the same command again, which has moved the revision itself.
        let is_current = |given: Rev| given == rev || given.next() == rev;
        if let Some(known) =
            known.filter(|known| known.settings == *settings && if_rev.is_none_or(is_current))
        {
            return Ok(known.clone());
        }
        if let Some(given) = if_rev.filter(|given| *given != rev) {
            return Err(StoreError::RevMismatch { given, current: rev });
        }
        if let Some((repo, owner)) = working.registry.owned_elsewhere(id, &settings.repos) {
            return Err(StoreError::RepoOwned { repo, owner });
        }
        let product = Product { id: id.clone(), settings: settings.clone(), rev: rev.next() };
        let event = NewEvent::new(EventKind::ProductChanged, format!("product {id} was set"))
            .with("productId", id.as_str());
        working.append(Some(id.clone()), None, actor.clone(), event);
        working.registry.put_product(product.clone());
        Ok(product)
    }
}

pub(in crate::engine) struct ShareSecret {
    pub(in crate::engine) name: &'static str,
    pub(in crate::engine) fresh: [u8; 32],
}

impl Op for ShareSecret {
    type Reply = [u8; 32];

    fn needs(&self, needs: &mut Needs) {
        needs.registry.secrets.insert(self.name);
    }

    fn decide(&self, working: &mut Working) -> Result<[u8; 32], StoreError> {
        if let Some(known) = working.registry.secret(self.name) {
            return Ok(known);
        }
        working.registry.add_secret(SharedSecret { name: self.name.to_owned(), value: self.fresh });
        Ok(self.fresh)
    }
}
