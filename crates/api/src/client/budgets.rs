//! Calls about budgets.

use super::transport::Call;
use super::{Answer, Client, ClientError};
use crate::wire::{
    Budget, BudgetList, Burndown, CorrectBudgetRequest, PauseBudgetAnswer, PauseBudgetRequest,
    SetBudgetRequest,
};

type Result<T> = std::result::Result<Answer<T>, ClientError>;

impl Client {
    /// Those of every product that the token may see.
    pub async fn budgets(&self) -> Result<BudgetList> {
        self.ask(Call::get(&["budgets"])).await
    }

    pub async fn budget(&self, product: &str) -> Result<Budget> {
        self.ask(Call::get(&["budgets", product])).await
    }

    /// With `rev`, only if nobody changed it meanwhile.
    pub async fn set_budget(
        &self,
        product: &str,
        request: &SetBudgetRequest,
        rev: Option<u64>,
    ) -> Result<Budget> {
        let call = Call::put(&["budgets", product]).json(request);
        // With a revision, a repetition after a lost reply would be refused by its own effect.
        let call = call.repeatable(rev.is_none());
        self.ask(call.header("if-match", rev.map(|rev| format!("\"rev-{rev}\"")))).await
    }

    pub async fn pause_budget(
        &self,
        product: &str,
        request: &PauseBudgetRequest,
    ) -> Result<PauseBudgetAnswer> {
        self.ask(Call::post(&["budgets", product, "pause"]).json(request).repeatable(true)).await
    }

    pub async fn resume_budget(&self, product: &str) -> Result<Budget> {
        self.ask(Call::post(&["budgets", product, "resume"]).repeatable(true)).await
    }

    /// Books once for each key, however often it is sent.
    pub async fn correct_budget(
        &self,
        product: &str,
        request: &CorrectBudgetRequest,
        key: &str,
    ) -> Result<Budget> {
        let call = Call::post(&["budgets", product, "correct"]).json(request);
        self.ask(call.header("idempotency-key", Some(key)).repeatable(true)).await
    }

    /// Times and the length of a stretch as the API wants them; what is left out is up to the coordinator.
    pub async fn burndown(
        &self,
        product: &str,
        from: Option<&str>,
        to: Option<&str>,
        bucket: Option<&str>,
    ) -> Result<Burndown> {
        let call = Call::get(&["budgets", product, "burndown"]);
        self.ask(call.query("from", from).query("to", to).query("bucket", bucket)).await
    }
}
