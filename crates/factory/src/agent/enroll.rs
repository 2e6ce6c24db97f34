//! The factory's own token: made at the first start, kept in a file that only its owner can read.

use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use giga_api::client::{Client, ClientOptions};
use giga_api::wire::EnrollRequest;

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
        Some(token) => token,
        None => enroll(config, &path).await?,
    };
    Ok((connect(config, Some(token.clone()))?, token))
}

async fn enroll(config: &AgentConfig, path: &Path) -> Result<String, AgentError> {
    let Some(allowed) = config.enroll_with.clone() else {
        return Err(AgentError::NotEnrolled(config.id.to_string(), path.display().to_string()));
    };
    let request =
        EnrollRequest { factory_id: config.id.to_string(), products: Vec::new(), capabilities: Vec::new() };
    let answer = connect(config, Some(allowed))?.enroll(&request).await?;
    write_private(path, &answer.token).map_err(AgentError::file(path))?;
    tracing::info!(factory = %config.id, "enrolled");
    Ok(answer.token.clone())
}

fn connect(config: &AgentConfig, token: Option<String>) -> Result<Client, AgentError> {
    let agent = concat!("giga-factory/", env!("CARGO_PKG_VERSION")).to_owned();
    Ok(Client::new(ClientOptions { url: config.url.clone(), token, product: None, agent })?)
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
