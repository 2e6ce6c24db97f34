//! The API as tools of the Model Context Protocol: for people's coding assistants, and for what runs inside a job.
//!
//! A thin layer. Every tool is one or two calls of the REST API with the caller's own token, so nothing here decides who may
//! do what, and nothing can be done here that the API would refuse. What it adds is for readers that are models: arguments
//! with all their constraints, refusals in words that name the field and the remedy, and answers of a bounded size.
//!
//! ```text
//! giga mcp        standard streams ─┐                 ┌─ the typed client, to the coordinator
//! POST /mcp       HTTP, stateless ──┼─▶ tools ─▶ Api ─┤
//! giga mcp --job  standard streams ─┘                 └─ the coordinator's own router
//! ```

mod api;
mod fleet;
mod job;
mod manifest;
mod reply;
mod server;
mod tool;

pub use api::{Api, CallError};
pub use job::{Agent, AgentError, JobTools, RunIdentity, Saved, SocketAgent, tool_names as job_tool_names};
pub use server::{McpServer, ServeError, serve_http, serve_stdio};

/// What tools are called by clients, such as `mcp__giga__list_jobs` by Claude Code.
pub const SERVER_NAME: &str = "giga";
