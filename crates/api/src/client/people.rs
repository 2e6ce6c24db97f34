//! Signing in and out, and who did what.

use super::transport::Call;
use super::{Answer, Client, ClientError};
use crate::wire::{AuditPage, DeviceSignIn, PollSignInAnswer, PollSignInRequest, SignInOffer};

type Result<T> = std::result::Result<Answer<T>, ClientError>;

/// Which part of the history.
#[derive(Debug, Clone, Default)]
pub struct AuditQuery {
    pub actor: Option<String>,
    pub kind: Option<String>,
    pub job: Option<String>,
    pub since: Option<String>,
    pub until: Option<String>,
    pub before: Option<u64>,
    pub limit: Option<usize>,
}

impl Client {
    pub async fn sign_in_offer(&self) -> Result<SignInOffer> {
        self.ask(Call::get(&["sign-in"])).await
    }

    pub async fn start_device_sign_in(&self) -> Result<DeviceSignIn> {
        self.ask(Call::post(&["sign-in", "device"])).await
    }

    /// Whether somebody has signed in meanwhile.
    pub async fn poll_device_sign_in(&self, device_code: &str) -> Result<PollSignInAnswer> {
        let request = PollSignInRequest { device_code: device_code.to_owned() };
        self.ask(Call::post(&["sign-in", "device", "poll"]).json(&request)).await
    }

    /// Ends the token of this client, where signing in made it.
    pub async fn sign_out(&self) -> Result<()> {
        self.done(Call::post(&["sign-out"]).repeatable(true)).await
    }

    pub async fn audit(&self, query: &AuditQuery) -> Result<AuditPage> {
        let call = Call::get(&["audit"])
            .query("actor", query.actor.as_deref())
            .query("kind", query.kind.as_deref())
            .query("job", query.job.as_deref())
            .query("since", query.since.as_deref())
            .query("until", query.until.as_deref())
            .query("before", query.before)
            .query("limit", query.limit);
        self.ask(call).await
    }
}
