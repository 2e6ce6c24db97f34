//! Calls about the fleet as a whole.

use giga_domain::limits;
use serde_json::Value;

use super::transport::Call;
use super::{Answer, Client, ClientError};
use crate::wire::{
    AlertList, EventPage, Flag, FlagList, FleetMetrics, MarkdownAnswer, MarkdownRequest, SetFlagRequest,
    Shadow, WhoAmI,
};

type Result<T> = std::result::Result<Answer<T>, ClientError>;

impl Client {
    /// Whose token this client has.
    pub async fn whoami(&self) -> Result<WhoAmI> {
        self.ask(Call::get(&["whoami"])).await
    }

    /// Markdown as HTML that may be shown.
    pub async fn markdown(&self, texts: Vec<String>) -> Result<MarkdownAnswer> {
        self.ask(Call::post(&["markdown"]).json(&MarkdownRequest { texts }).repeatable(true)).await
    }

    pub async fn flags(&self) -> Result<FlagList> {
        self.ask(Call::get(&["flags"])).await
    }

    pub async fn set_flag(&self, name: &str, value: Value) -> Result<Flag> {
        self.ask(Call::put(&["flags", name]).json(&SetFlagRequest { value })).await
    }

    pub async fn shadow(&self) -> Result<Shadow> {
        self.ask(Call::get(&["shadow"])).await
    }

    pub async fn alerts(&self) -> Result<AlertList> {
        self.ask(Call::get(&["alerts"])).await
    }

    pub async fn metrics(&self) -> Result<FleetMetrics> {
        self.ask(Call::get(&["metrics"])).await
    }

    /// The fleet-wide feed after a position, oldest first.
    pub async fn events(&self, after: Option<u64>) -> Result<EventPage> {
        let call = Call::get(&["events"]).query("after", after);
        self.ask(call.query("limit", Some(limits::PAGE_MAX))).await
    }
}
