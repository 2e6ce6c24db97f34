//! The factory's own token: made at the first start, kept in a file that only its owner can read.
//!
//! A name belongs to the factory that enrolled it first. Two machines under one name would take each other's jobs, so it
//! changes hands only where the operator says so.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use giga_api::client::{Client, ClientError, ClientOptions};
use giga_api::wire::{EnrollRequest, PoolEnrollRequest, ProblemCode};
use giga_domain::PoolName;

use super::backoff::Backoff;
use super::{AgentConfig, AgentError};

const TOKEN: &str = "factory.token";

/// A client that speaks as this factory.
pub(super) async fn client(config: &AgentConfig) -> Result<(Client, String), AgentError> {
    std::fs::create_dir_all(&config.base).map_err(AgentError::file(&config.base))?;
    let path = config.base.join(TOKEN);
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
    if let Some(pool) = &config.pool {
        return enroll_in_pool(config, pool, allowed, path).await;
    }
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

/// The coordinator that started this factory may be away for a moment, or another one may have taken over: it is waited for.
/// A refusal is final: the credential is good for one factory and a short time.
async fn enroll_in_pool(
    config: &AgentConfig,
    pool: &PoolName,
    credential: String,
    path: &Path,
) -> Result<String, AgentError> {
    let client = connect(config, Some(credential))?;
    let request = PoolEnrollRequest { factory_id: Some(config.id.to_string()) };
    let mut backoff = Backoff::new();
    let answer = loop {
        match client.enroll_in_pool(pool.as_str(), &request).await {
            Ok(answer) => break answer,
            Err(error) if error.is_passing() => {
                tracing::warn!(%error, "the coordinator cannot be asked yet; retrying");
                backoff.wait().await;
            }
            Err(ClientError::Problem(problem)) => {
                let (pool, factory) = (pool.clone(), config.id.clone());
                return Err(AgentError::PoolRefused { pool, factory, detail: problem.detail.clone() });
            }
            Err(error) => return Err(error.into()),
        }
    };
    write_private(path, &answer.token).map_err(AgentError::file(path))?;
    tracing::info!(factory = %config.id, %pool, "enrolled");
    Ok(answer.token.clone())
}

/// The coordinator has forgotten the factory: its token is worth nothing any more.
pub(super) fn forget_token(base: &Path) {
    let path = base.join(TOKEN);
    if let Err(error) = std::fs::remove_file(&path) {
        tracing::debug!(path = %path.display(), %error, "the token that has ended stays");
    }
}

/// Gives this machine a token for a name that is enrolled already, unless it has one that works. The tokens before it
/// end. Does nothing about a name that nobody has.
pub async fn take_over(config: &AgentConfig) -> Result<(), AgentError> {
    let Some(allowed) = config.enroll_with.clone().filter(|token| !is_factory_token(token)) else {
        return Ok(());
    };
    let path = config.base.join(TOKEN);
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
