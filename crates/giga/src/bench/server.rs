//! The coordinator as a process of its own, as it would run for users.

use std::path::PathBuf;
use std::process::Stdio;

use giga_api::client::{Client, ClientOptions};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use super::Measured;
use crate::exit::CliError;

pub(super) const PRODUCT: &str = "bench";

/// Ends with its process when it is dropped.
pub(super) struct Coordinator {
    process: Child,
    pub(super) url: String,
    pub(super) token: String,
    pub(super) client: Client,
    folder: TempDir,
}

impl Coordinator {
    pub(super) async fn start(store: Option<&str>) -> Measured<Self> {
        let folder = tempfile::Builder::new().prefix("giga-bench-").tempdir()?;
        let mut command = Command::new(std::env::current_exe()?);
        command.args(["serve", "--listen", "127.0.0.1:0", "--log", "warn", "--data"]).arg(folder.path());
        if let Some(store) = store {
            command.args(["--store", store]);
        }
        // Nothing of the caller's settings may slip in.
        command.env_clear().current_dir(folder.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut process = command.spawn()?;
        let stdout = process.stdout.take().expect("stdout was asked for");
        let mut lines = BufReader::new(stdout).lines();
        let url = loop {
            match lines.next_line().await? {
                Some(line) => {
                    if let Some(url) = line.strip_prefix("ready ") {
                        break url.to_owned();
                    }
                }
                None => return Err(CliError::failed("the coordinator ended before it was ready")),
            }
        };
        let token = std::fs::read_to_string(folder.path().join("admin.token"))?.trim().to_owned();
        let client = Client::new(ClientOptions {
            url: url.clone(),
            token: Some(token.clone()),
            product: Some(PRODUCT.to_owned()),
            agent: concat!("giga/", env!("CARGO_PKG_VERSION")).to_owned(),
        })?;
        Ok(Self { process, url, token, client, folder })
    }

    pub(super) async fn queue(&self) -> Measured<giga_worker::Client> {
        let config = giga_worker::Config::new(&self.url, &self.token).product(PRODUCT);
        giga_worker::Client::connect(config).await.map_err(|error| CliError::failed(error.to_string()))
    }

    /// Resident memory in KiB, where the system tells.
    pub(super) fn memory_kib(&self) -> Option<f64> {
        let path = PathBuf::from(format!("/proc/{}/status", self.process.id()?));
        let status = std::fs::read_to_string(path).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
        line.trim().trim_end_matches(" kB").trim().parse().ok()
    }

    pub(super) async fn stop(mut self) -> Measured<()> {
        self.process.kill().await?;
        self.folder.close()?;
        Ok(())
    }
}
