//! Factories of a pool join by its credential.

use giga_domain::factory::FactoryScope;
use giga_domain::token::{Lifetime, Permission, TokenSecret};
use giga_domain::{Actor, Factory, FactoryId, PoolName, TokenId};
use giga_ports::StoreError;
use giga_ports::store::EnrollMember;

use super::Pools;
use crate::{Error, FieldProblem};

impl Pools {
    /// `bound_to`: the only factory that the credential is for. Without a name of its own, the factory gets one.
    pub async fn enroll(
        &self,
        pool: &PoolName,
        bound_to: Option<&FactoryId>,
        given: Option<FactoryId>,
        credential: TokenId,
    ) -> Result<(Factory, TokenSecret), Error> {
        if let (Some(own), Some(given)) = (bound_to, &given)
            && own != given
        {
            let message = format!("this credential is for factory {own}, not for {given}");
            return Err(FieldProblem::new("factoryId", message).into());
        }
        let factory = bound_to.cloned().or(given).unwrap_or_else(|| self.new_member(pool));
        self.fleet.refresh().await?;
        if bound_to.is_none() && self.is_running(&factory) {
            let (pool, why) = (pool.clone(), "a factory of that name is running");
            return Err(StoreError::NotExpected { pool, factory, why }.into());
        }
        let known = self.fleet.view.lock().pools.get(pool).cloned();
        let settings = known.ok_or_else(|| StoreError::NoSuchPool(pool.clone()))?.settings;
        let scope = FactoryScope { products: settings.products, capabilities: None };
        let permission = Permission::Factory { factory: factory.clone(), scope: scope.clone() };
        let label = format!("factory {factory}");
        let (token, secret) =
            crate::tokens::new_token(&self.core, "factory", permission, label, Lifetime::RENEWED);
        let actor = Actor::Token(credential);
        let enrolled = EnrollMember { pool: pool.clone(), factory, scope, token, actor };
        let factory = self.core.store.enroll_member(enrolled).await?;
        self.tokens.clear();
        self.fleet.refresh().await?;
        Ok((factory, secret))
    }

    /// Whoever has a credential of the whole pool could end another's token by its name.
    fn is_running(&self, factory: &FactoryId) -> bool {
        let now = self.core.store_now();
        let state = self.fleet.view.lock();
        state.factories.get(factory).is_some_and(|known| self.fleet.heard_of(&state, known, now))
    }
}
