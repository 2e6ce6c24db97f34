//! Calls about factories and tokens.

use super::transport::Call;
use super::{Answer, Client, ClientError};
use crate::wire::{
    AccountList, CapabilityList, DrainRequest, EnrollAnswer, EnrollRequest, Factory, FactoryList,
    IssueTokenAnswer, IssueTokenRequest, LeaveAnswer, LeaveRequest, PruneAnswer, PruneRequest,
    RenewTokenRequest, RotateAnswer, RotatedKeys, Token, TokenList,
};

type Result<T> = std::result::Result<Answer<T>, ClientError>;

impl Client {
    pub async fn factories(&self) -> Result<FactoryList> {
        self.ask(Call::get(&["factories"])).await
    }

    pub async fn factory(&self, id: &str) -> Result<Factory> {
        self.ask(Call::get(&["factories", id])).await
    }

    /// Those that engines are signed in with.
    pub async fn accounts(&self) -> Result<AccountList> {
        self.ask(Call::get(&["accounts"])).await
    }

    /// Which the fleet has, who uses them and who waits for them.
    pub async fn capabilities(&self) -> Result<CapabilityList> {
        self.ask(Call::get(&["capabilities"])).await
    }

    pub async fn enroll(&self, request: &EnrollRequest) -> Result<EnrollAnswer> {
        self.ask(Call::post(&["factories", "enroll"]).json(request)).await
    }

    /// As this factory itself, for good. Refused in its answer while it holds something.
    pub async fn leave(&self, request: &LeaveRequest) -> Result<LeaveAnswer> {
        self.ask(Call::post(&["factories", "leave"]).json(request).repeatable(true)).await
    }

    pub async fn drain(&self, id: &str, undo: bool) -> Result<Factory> {
        let call = Call::post(&["factories", id, "drain"]).json(&DrainRequest { undo });
        self.ask(call.repeatable(true)).await
    }

    pub async fn deregister(&self, id: &str) -> Result<()> {
        self.done(Call::delete(&["factories", id])).await
    }

    /// Forgets every factory that was silent for `idle`, such as `24h`.
    pub async fn prune(&self, idle: &str) -> Result<PruneAnswer> {
        self.ask(Call::post(&["factories", "prune"]).json(&PruneRequest { idle: idle.to_owned() })).await
    }

    pub async fn rotate_factory_token(&self, id: &str) -> Result<RotateAnswer> {
        self.ask(Call::post(&["factories", id, "token", "rotate"])).await
    }

    pub async fn revoke_factory_tokens(&self, id: &str) -> Result<()> {
        self.done(Call::post(&["factories", id, "token", "revoke"]).repeatable(true)).await
    }

    pub async fn tokens(&self) -> Result<TokenList> {
        self.ask(Call::get(&["tokens"])).await
    }

    pub async fn issue_token(&self, request: &IssueTokenRequest) -> Result<IssueTokenAnswer> {
        self.ask(Call::post(&["tokens"]).json(request)).await
    }

    pub async fn renew_token(&self, id: &str, request: &RenewTokenRequest) -> Result<Token> {
        self.ask(Call::post(&["tokens", id, "renew"]).json(request)).await
    }

    pub async fn rotate_keys(&self) -> Result<RotatedKeys> {
        self.ask(Call::post(&["keys", "rotate"])).await
    }

    pub async fn revoke_token(&self, id: &str) -> Result<()> {
        self.done(Call::delete(&["tokens", id])).await
    }
}
