//! The protocol around the tools: who serves them, on which transport.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use http_body_util::combinators::BoxBody;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, Implementation, ListToolsResult, PaginatedRequestParams,
    ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{QuitReason, RequestContext};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};

use crate::api::Api;
use crate::job::JobTools;
use crate::tool::Entry;
use crate::{SERVER_NAME, fleet, job};

/// The tools, for one caller.
#[derive(Debug, Clone)]
pub struct McpServer(Tools);

#[derive(Clone)]
enum Tools {
    Fleet(Arc<dyn Api>),
    Job(JobTools),
}

impl fmt::Debug for Tools {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Fleet(_) => "Fleet",
            Self::Job(_) => "Job",
        })
    }
}

impl McpServer {
    /// For somebody with a token.
    pub fn fleet(api: Arc<dyn Api>) -> Self {
        Self(Tools::Fleet(api))
    }

    /// For what runs inside a job.
    pub fn job(tools: JobTools) -> Self {
        Self(Tools::Job(tools))
    }

    fn tools(&self) -> Vec<Tool> {
        match &self.0 {
            Tools::Fleet(_) => listed(fleet::tools()),
            Tools::Job(_) => listed(job::tools()),
        }
    }
}

fn listed<C>(entries: &[Entry<C>]) -> Vec<Tool> {
    entries.iter().map(|entry| entry.tool.clone()).collect()
}

fn named<'a, C>(entries: &'a [Entry<C>], name: &str) -> Result<&'a Entry<C>, ErrorData> {
    entries.iter().find(|entry| entry.tool.name == name).ok_or_else(|| {
        let names: Vec<&str> = entries.iter().map(|entry| entry.tool.name.as_ref()).collect();
        let shown: String = name.chars().take(80).collect();
        let message = format!("there is no tool {shown:?}; the tools are {}", names.join(", "));
        ErrorData::invalid_params(message, None)
    })
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let (title, instructions) = match &self.0 {
            Tools::Fleet(_) => ("Gigafactory", fleet::INSTRUCTIONS),
            Tools::Job(_) => ("This job of Gigafactory", job::INSTRUCTIONS),
        };
        let mut about = Implementation::new(SERVER_NAME, env!("CARGO_PKG_VERSION"));
        about.title = Some(title.to_owned());
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(about)
            .with_instructions(instructions)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.tools()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.tools().into_iter().find(|tool| tool.name == name)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let CallToolRequestParams { name, arguments, .. } = request;
        let result = match &self.0 {
            Tools::Fleet(api) => named(fleet::tools(), &name)?.call(api.clone(), arguments).await,
            Tools::Job(tools) => named(job::tools(), &name)?.call(tools.clone(), arguments).await,
        };
        Ok(result.into())
    }
}

#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("the client did not begin as the protocol wants it: {0}")]
    Handshake(String),
    #[error("serving tools ended early: {0}")]
    Ended(String),
}

/// On standard input and output, until the client closes them. Nothing else may write to standard output meanwhile.
pub async fn serve_stdio(server: McpServer) -> Result<(), ServeError> {
    let running = match server.serve(rmcp::transport::stdio()).await {
        Ok(running) => running,
        Err(error) => return Err(ServeError::Handshake(error.to_string())),
    };
    match running.waiting().await {
        Ok(QuitReason::JoinError(error)) | Err(error) => Err(ServeError::Ended(error.to_string())),
        Ok(_) => Ok(()),
    }
}

/// One request over HTTP. Nothing is kept between two of them; the answer is JSON.
pub async fn serve_http(server: McpServer, request: Request<Bytes>) -> Response<BoxBody<Bytes, Infallible>> {
    // Who may call is known by a token that no page of another site can send; hosts are for the coordinator's operator
    // to choose.
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .with_json_response(true)
        .disable_allowed_hosts();
    let service = StreamableHttpService::new(
        move || Ok(server.clone()),
        Arc::new(NeverSessionManager::default()),
        config,
    );
    service.handle(request.map(Full::new)).await
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn all() -> Vec<(&'static str, Vec<Tool>)> {
        vec![("fleet", listed(fleet::tools())), ("job", listed(job::tools()))]
    }

    /// What outsiders rely on.
    #[test]
    fn the_tools() {
        for (set, tools) in all() {
            insta::assert_json_snapshot!(set, tools);
        }
    }

    /// Clients hand schemas on to models' providers, which take less than JSON Schema has.
    #[test]
    fn schemas_are_closed_objects_in_one_piece() {
        fn walk(name: &str, schema: &Value) {
            let text = schema.to_string();
            for word in ["$ref", "$defs", "oneOf", "anyOf", "allOf"] {
                assert!(!text.contains(&format!("\"{word}\"")), "{name} has {word}: {text}");
            }
            if schema["type"] == "object" && schema.get("properties").is_some() {
                assert_eq!(schema["additionalProperties"], json!(false), "{name}: {schema}");
            }
            match schema {
                Value::Object(fields) => fields.values().for_each(|value| walk(name, value)),
                Value::Array(items) => items.iter().for_each(|value| walk(name, value)),
                _ => {}
            }
        }
        for (_, tools) in all() {
            for tool in tools {
                let schema = tool.schema_as_json_value();
                assert_eq!(schema["type"], "object", "{}", tool.name);
                walk(&tool.name, &schema);
            }
        }
    }

    #[test]
    fn reading_is_marked_as_reading_and_deciding_as_deciding() {
        for (_, tools) in all() {
            for tool in tools {
                let annotations = tool.annotations.unwrap();
                let reads =
                    ["list_", "show_", "explain_", "read_", "plan_"].iter().any(|p| tool.name.starts_with(p));
                let reads = reads || tool.name == "job_history";
                assert_eq!(annotations.read_only_hint, Some(reads), "{}", tool.name);
                let decides =
                    ["ship_job", "cancel_job", "review_job", "answer_question"].contains(&tool.name.as_ref());
                assert_eq!(annotations.is_destructive() && !reads, decides, "{}", tool.name);
            }
        }
    }
}
