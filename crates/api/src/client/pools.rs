//! Calls about pools.

use super::transport::Call;
use super::{Answer, Client, ClientError};
use crate::wire::{
    Pool, PoolCredential, PoolCredentialRequest, PoolEnrollAnswer, PoolEnrollRequest, PoolList, PoolSettings,
};

type Result<T> = std::result::Result<Answer<T>, ClientError>;

impl Client {
    pub async fn pools(&self) -> Result<PoolList> {
        self.ask(Call::get(&["pools"])).await
    }

    pub async fn pool(&self, name: &str) -> Result<Pool> {
        self.ask(Call::get(&["pools", name])).await
    }

    /// Makes it, or replaces its settings.
    pub async fn set_pool(&self, name: &str, settings: &PoolSettings) -> Result<Pool> {
        self.ask(Call::put(&["pools", name]).json(settings).repeatable(true)).await
    }

    pub async fn remove_pool(&self, name: &str) -> Result<()> {
        self.done(Call::delete(&["pools", name])).await
    }

    pub async fn pause_pool(&self, name: &str) -> Result<Pool> {
        self.ask(Call::post(&["pools", name, "pause"]).repeatable(true)).await
    }

    pub async fn resume_pool(&self, name: &str) -> Result<Pool> {
        self.ask(Call::post(&["pools", name, "resume"]).repeatable(true)).await
    }

    pub async fn pool_credential(
        &self,
        name: &str,
        request: &PoolCredentialRequest,
    ) -> Result<PoolCredential> {
        self.ask(Call::post(&["pools", name, "credentials"]).json(request)).await
    }

    /// With a credential of the pool. The same again gives the factory another token and ends the one before.
    pub async fn enroll_in_pool(&self, name: &str, request: &PoolEnrollRequest) -> Result<PoolEnrollAnswer> {
        self.ask(Call::post(&["pools", name, "enroll"]).json(request).repeatable(true)).await
    }
}
