//! One tool: its name, what it takes and does, and how a call of it goes.

use std::pin::Pin;
use std::sync::Arc;

use rmcp::handler::server::tool::schema_for_input;
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, Tool, ToolAnnotations};
use rmcp::schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::reply::{Refusal, Reply};

type Running = Pin<Box<dyn Future<Output = Result<Reply, Refusal>> + Send>>;
type Run<C> = Box<dyn Fn(C, JsonObject) -> Running + Send + Sync>;

/// What a call changes, as clients want to know it before they let a model make it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Nothing.
    Reads,
    /// Something comes to be; nothing goes.
    Adds,
    /// The same, and a second call like the first changes nothing more.
    AddsOnce,
    /// Something ends, or cannot be taken back.
    Decides,
}

impl Effect {
    fn annotations(self, title: &str) -> ToolAnnotations {
        let annotations = ToolAnnotations::with_title(title)
            .read_only(self == Self::Reads)
            // A closed world: the fleet. What jobs do in theirs is not the tool's doing.
            .open_world(false);
        match self {
            Self::Reads => annotations,
            Self::Adds => annotations.destructive(false).idempotent(false),
            Self::AddsOnce => annotations.destructive(false).idempotent(true),
            Self::Decides => annotations.destructive(true).idempotent(true),
        }
    }
}

/// `C` is what a call needs beside its arguments.
pub(crate) struct Entry<C> {
    pub(crate) tool: Tool,
    run: Run<C>,
}

impl<C> Entry<C> {
    pub(crate) fn new<A, F, R>(
        name: &'static str,
        title: &'static str,
        effect: Effect,
        about: &'static str,
        run: F,
    ) -> Self
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(C, A) -> R + Clone + Send + Sync + 'static,
        R: Future<Output = Result<Reply, Refusal>> + Send + 'static,
        C: Send + 'static,
    {
        let schema = schema_for_input::<A>().expect("the arguments of a tool are an object");
        let tool = Tool::new(name, about, Arc::new(plain(&schema)))
            .with_title(title)
            .with_annotations(effect.annotations(title));
        let run = move |context: C, arguments: JsonObject| -> Running {
            let run = run.clone();
            Box::pin(async move { run(context, parse(arguments)?).await })
        };
        Self { tool, run: Box::new(run) }
    }

    pub(crate) async fn call(&self, context: C, arguments: Option<JsonObject>) -> CallToolResult {
        match (self.run)(context, arguments.unwrap_or_default()).await {
            Ok(reply) => CallToolResult::success(reply.into_blocks()),
            Err(refusal) => CallToolResult::error(vec![ContentBlock::text(refusal.into_text())]),
        }
    }
}

/// Without what only describes our types.
fn plain(schema: &JsonObject) -> JsonObject {
    let mut schema = schema.clone();
    for key in ["$schema", "title"] {
        schema.remove(key);
    }
    schema
}

fn parse<A: DeserializeOwned>(arguments: JsonObject) -> Result<A, Refusal> {
    serde_path_to_error::deserialize(Value::Object(arguments)).map_err(|error| {
        let path = error.path().to_string();
        let field = if path == "." { "the arguments".to_owned() } else { path };
        Refusal::new(format!("{field}: {}", error.inner()))
    })
}
