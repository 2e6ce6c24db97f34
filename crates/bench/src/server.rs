//! The coordinator as a process of its own, as it would run for users.

use std::path::PathBuf;
use std::process::Stdio;

use anyhow::{Result, bail};
use giga_api::client::{Client, ClientOptions};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

pub(crate) const PRODUCT: &str = "bench";

/// The product's binary, which stands beside this one.
pub(crate) fn giga() -> Result<PathBuf> {
    let giga = std::env::current_exe()?.with_file_name("giga");
    if !giga.exists() {
        bail!("there is no {}: build it with the same profile, or use `cargo xtask bench`", giga.display());
    }
    Ok(giga)
}

/// Ends with its process when it is dropped.
pub(crate) struct Coordinator {
    process: Child,
    pub(crate) url: String,
    pub(crate) token: String,
    pub(crate) client: Client,
    folder: TempDir,
}

impl Coordinator {
    pub(crate) async fn start(store: Option<&str>) -> Result<Self> {
        let folder = tempfile::Builder::new().prefix("giga-bench-").tempdir()?;
        let mut command = Command::new(giga()?);
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
                None => bail!("the coordinator ended before it was ready"),
            }
        };
        let token = std::fs::read_to_string(folder.path().join("admin.token"))?.trim().to_owned();
        let client = Client::new(ClientOptions {
            url: url.clone(),
            token: Some(token.clone()),
            product: Some(PRODUCT.to_owned()),
            agent: concat!("giga-bench/", env!("CARGO_PKG_VERSION")).to_owned(),
            ..ClientOptions::default()
        })?;
        Ok(Self { process, url, token, client, folder })
    }

    pub(crate) async fn queue(&self) -> Result<giga_worker::Client> {
        let config = giga_worker::Config::new(&self.url, &self.token).product(PRODUCT);
        Ok(giga_worker::Client::connect(config).await?)
    }

    /// Resident memory in KiB, where the system tells.
    pub(crate) fn memory_kib(&self) -> Option<f64> {
        self.status("VmRSS:")
    }

    /// The most that it ever was.
    pub(crate) fn peak_memory_kib(&self) -> Option<f64> {
        self.status("VmHWM:")
    }

    fn status(&self, field: &str) -> Option<f64> {
        let path = PathBuf::from(format!("/proc/{}/status", self.process.id()?));
        let status = std::fs::read_to_string(path).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix(field))?;
        line.trim().trim_end_matches(" kB").trim().parse().ok()
    }

    pub(crate) async fn stop(mut self) -> Result<()> {
        self.process.kill().await?;
        self.folder.close()?;
        Ok(())
    }
}
