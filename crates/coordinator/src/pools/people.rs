//! What operators ask for: making pools, looking at them, handing out their credentials.

use giga_domain::token::{Lifetime, Permission, TokenRecord};
use giga_domain::{Actor, Pool, PoolName, PoolSettings, Rev};
use giga_ports::StoreError;
use giga_ports::store::{IssueToken, RemovePool, SetPool};

use super::{PoolView, Pools};
use crate::{Error, FieldProblem};

impl Pools {
    pub async fn set(
        &self,
        name: PoolName,
        settings: PoolSettings,
        if_rev: Option<Rev>,
        actor: Actor,
    ) -> Result<Pool, Error> {
        settings.check().map_err(|wrong| FieldProblem::new(wrong.field, wrong.rule))?;
        let pool = self.core.store.set_pool(SetPool { name, settings, if_rev, actor }).await?;
        self.fleet.refresh().await?;
        Ok(pool)
    }

    pub async fn remove(&self, name: PoolName, actor: Actor) -> Result<(), Error> {
        let removed = self.core.store.remove_pool(RemovePool { name: name.clone(), actor }).await?;
        self.fleet.refresh().await?;
        if removed { Ok(()) } else { Err(StoreError::NoSuchPool(name).into()) }
    }

    /// By name.
    pub async fn all(&self) -> Result<Vec<PoolView>, Error> {
        self.fleet.refresh().await?;
        self.fleet.refresh_stale_heartbeats().await?;
        let now = self.core.store_now();
        let mut state = self.fleet.view.lock();
        Ok(self.views(&mut state, now))
    }

    pub async fn one(&self, name: &PoolName) -> Result<PoolView, Error> {
        let found = self.all().await?.into_iter().find(|view| view.pool.name == *name);
        found.ok_or_else(|| StoreError::NoSuchPool(name.clone()).into())
    }

    /// How many factories the pool should have now, for whoever scales it from outside. `None`: there is no such pool.
    pub async fn wanted(&self, name: &PoolName) -> Result<Option<u32>, Error> {
        self.fleet.refresh().await?;
        let now = self.core.store_now();
        let mut state = self.fleet.view.lock();
        let looked = self.look(&mut state, now);
        Ok(looked.and_then(|looked| looked.pools.get(name).map(|(_, scaled)| scaled.target)))
    }

    /// What factories of the pool enrol with, whoever starts them.
    pub async fn new_credential(
        &self,
        name: &PoolName,
        lifetime: Lifetime,
        actor: Actor,
    ) -> Result<(TokenRecord, String), Error> {
        let permission = Permission::Pool { pool: name.clone(), factory: None };
        self.issue(name, permission, format!("pool {name}"), lifetime, actor).await
    }

    /// What a scaler asks with how many factories are wanted.
    pub async fn new_scaler(
        &self,
        name: &PoolName,
        lifetime: Lifetime,
        actor: Actor,
    ) -> Result<(TokenRecord, String), Error> {
        let permission = Permission::Scaler { pool: name.clone() };
        self.issue(name, permission, format!("scaler of pool {name}"), lifetime, actor).await
    }

    async fn issue(
        &self,
        name: &PoolName,
        permission: Permission,
        label: String,
        lifetime: Lifetime,
        actor: Actor,
    ) -> Result<(TokenRecord, String), Error> {
        self.fleet.refresh().await?;
        if !self.fleet.view.lock().pools.contains_key(name) {
            return Err(StoreError::NoSuchPool(name.clone()).into());
        }
        let kind = if matches!(permission, Permission::Pool { .. }) { "pool" } else { "scaler" };
        let (token, secret) = crate::tokens::new_token(&self.core, kind, permission, label, lifetime);
        self.core.store.issue_token(IssueToken { token: token.clone(), actor }).await?;
        self.tokens.forget_strangers();
        Ok((token, secret.reveal().to_owned()))
    }
}
