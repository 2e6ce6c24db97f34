//! The factory's own token: made at the first start, kept in a file that only its owner can read.
//!
//! A name belongs to the factory that enrolled it first. Two machines under one name would take each other's jobs, so it
//! changes hands only where the operator says so.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use giga_api::client::{Client, ClientError, ClientOptions};
use giga_api::wire::{EnrollRequest, ProblemCode};

use super::{AgentConfig, AgentError};

/// A client that speaks as this factory.
pub(super) async fn client(config: &AgentConfig) -> Result<(Client, String), AgentError> {
    std::fs::create_dir_all(&config.base).map_err(AgentError::file(&config.base))?;
    let path = config.base.join("factory.token");
    let known = match std::fs::read_to_string(&path) {
        Ok(text) => Some(text.trim().to_owned()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => return Err(AgentError::file(&path)(error)),
    };
    let token = match known {
        // Of a coordinator that is no more, such as one whose store was made anew.
        Some(token) if config.enroll_with.is_some() && is_refused(config, &token).await? => {
            tracing::warn!(factory = %config.id, "the stored token is no longer valid; enrolling again");
            enroll(config, &path).await?
        }
        Some(token) => token,
        None => enroll(config, &path).await?,
    };
    Ok((connect(config, Some(token.clone()))?, token))
}

async fn is_refused(config: &AgentConfig, token: &str) -> Result<bool, AgentError> {
    let asked = connect(config, Some(token.to_owned()))?.queue_state(None, Duration::ZERO).await;
    // Whoever does not answer has not refused.
    Ok(asked.is_err_and(|error| error.code() == Some(ProblemCode::Unauthenticated)))
}

/// By its prefix, which says what kind of token it is.
fn is_factory_token(token: &str) -> bool {
    token.starts_with("giga_factory_")
}

async fn enroll(config: &AgentConfig, path: &Path) -> Result<String, AgentError> {
    let Some(allowed) = config.enroll_with.clone() else {
        return Err(AgentError::NotEnrolled(config.id.to_string(), path.display().to_string()));
    };
    if is_factory_token(&allowed) {
        // An admin enrolled it and handed its token over; there is nothing left but to keep it.
        write_private(path, &allowed).map_err(AgentError::file(path))?;
        return Ok(allowed);
    }
    let request =
        EnrollRequest { factory_id: config.id.to_string(), products: Vec::new(), capabilities: Vec::new() };
    let answer = match connect(config, Some(allowed))?.enroll(&request).await {
        Err(ClientError::Problem(problem)) if problem.status == 409 => {
            return Err(AgentError::NameTaken(config.id.to_string()));
        }
        answer => answer?,
    };
    write_private(path, &answer.token).map_err(AgentError::file(path))?;
    tracing::info!(factory = %config.id, "enrolled");
    Ok(answer.token.clone())
}

/// Gives this machine a token for a name that is enrolled already, unless it has one that works. The tokens before it
/// end. Does nothing about a name that nobody has.
pub async fn take_over(config: &AgentConfig) -> Result<(), AgentError> {
    let Some(allowed) = config.enroll_with.clone().filter(|token| !is_factory_token(token)) else {
        return Ok(());
    };
    let path = config.base.join("factory.token");
    if let Ok(token) = std::fs::read_to_string(&path)
        && !is_refused(config, token.trim()).await?
    {
        return Ok(());
    }
    match connect(config, Some(allowed))?.rotate_factory_token(config.id.as_str()).await {
        Ok(answer) => {
            std::fs::create_dir_all(&config.base).map_err(AgentError::file(&config.base))?;
            tracing::info!(factory = %config.id, "took over the name");
            write_private(&path, &answer.token).map_err(AgentError::file(path))
        }
        Err(error) if error.code() == Some(ProblemCode::NotFound) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn connect(config: &AgentConfig, token: Option<String>) -> Result<Client, AgentError> {
    let agent = concat!("giga-factory/", env!("CARGO_PKG_VERSION")).to_owned();
    let (url, trust) = (config.url.clone(), config.trust.clone());
    Ok(Client::new(ClientOptions { url, token, product: None, agent, trust })?)
}

/// Whole or not at all, and never readable by others, not even for a moment.
fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let fresh = path.with_extension("new");
    let _ = std::fs::remove_file(&fresh);
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&fresh, path)
}
