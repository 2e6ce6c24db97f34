//! Calls about named secrets.

use super::transport::Call;
use super::{Answer, Client, ClientError};
use crate::wire::{JobSecrets, JobSecretsRequest, RotatedSecrets, Secret, SecretList};

type Result<T> = std::result::Result<Answer<T>, ClientError>;

impl Client {
    pub async fn secrets(&self, product: &str) -> Result<SecretList> {
        self.ask(Call::get(&["products", product, "secrets"])).await
    }

    /// The value goes byte for byte. Setting it twice makes two versions with the same value.
    pub async fn set_secret(&self, product: &str, name: &str, value: Vec<u8>) -> Result<Secret> {
        let call = Call::put(&["products", product, "secrets", name]);
        self.ask(call.bytes("application/octet-stream", value).repeatable(true)).await
    }

    pub async fn remove_secret(&self, product: &str, name: &str) -> std::result::Result<(), ClientError> {
        self.fetch(Call::delete(&["products", product, "secrets", name])).await.map(drop)
    }

    pub async fn rotate_secrets(&self) -> Result<RotatedSecrets> {
        self.ask(Call::post(&["secrets", "rotate"]).repeatable(true)).await
    }

    /// Of the job that this factory holds under this epoch.
    pub async fn job_secrets(
        &self,
        id: &str,
        lease_epoch: u64,
    ) -> std::result::Result<JobSecrets, ClientError> {
        let call = Call::post(&["jobs", id, "secrets"]).json(&JobSecretsRequest { lease_epoch });
        // As parsed only: no second copy of the values is kept beside it.
        let answer: Answer<JobSecrets> = self.ask(call.repeatable(true)).await?;
        Ok(answer.value)
    }
}
