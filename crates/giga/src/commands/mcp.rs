//! Tools over the Model Context Protocol, on standard input and output. Nothing else is ever written to standard output.

use std::sync::Arc;

use giga_api::inside::SOCKET_VARIABLE;
use giga_mcp::{Agent, JobTools, McpServer, RunIdentity, SocketAgent, serve_stdio};

use super::Done;
use super::context::Context;
use crate::args::McpArgs;
use crate::exit::CliError;

pub(crate) async fn mcp(args: &McpArgs, context: &Context) -> Done {
    let server = if args.job { inside(context)? } else { McpServer::fleet(Arc::new(context.client()?)) };
    serve_stdio(server).await.map_err(|error| CliError::failed(error.to_string()))
}

/// Everything about the job comes from its environment.
fn inside(context: &Context) -> Result<McpServer, CliError> {
    let variable = |name: &str| {
        let missing = || {
            CliError::Usage(format!(
                "{name} is not set: `giga mcp --job` runs inside a job, which its factory tells who it is"
            ))
        };
        std::env::var(name).ok().filter(|value| !value.is_empty()).ok_or_else(missing)
    };
    let job_id = variable("GIGA_JOB_ID")?;
    let epoch = variable("GIGA_LEASE_EPOCH")?;
    let lease_epoch = epoch
        .parse()
        .map_err(|_| CliError::Usage(format!("GIGA_LEASE_EPOCH: `{epoch}` is not a whole number")))?;
    // The token belongs to one product; a repository's giga.toml has no say in it.
    let api = Arc::new(context.client_in(None)?);
    let folder = std::env::current_dir()
        .map_err(|error| CliError::failed(format!("the work folder cannot be found: {error}")))?;
    let agent =
        std::env::var_os(SOCKET_VARIABLE).map(|path| Arc::new(SocketAgent(path.into())) as Arc<dyn Agent>);
    Ok(McpServer::job(JobTools { api, run: RunIdentity { job_id, lease_epoch }, agent, folder }))
}
