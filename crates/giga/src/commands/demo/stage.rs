//! What a demo plays on: a folder, a coordinator in this process, factories as processes of their own, origins.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use giga_api::client::{Client, ClientOptions, Idempotency, Signal};
use giga_api::wire::{Job, MergeState, Stage};
use giga_coordinator::Coordinator;
use giga_domain::factory::FactoryScope;
use giga_domain::{Actor, FactoryId};
use giga_ports::PoolDrivers;
use giga_server::ServerOptions;
use serde_json::json;
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::factory::FactoryProcess;
use super::origin::Origin;
use crate::exit::CliError;
use crate::output::say;
use crate::serve::Wanted;

/// Long enough to be renewed on a busy machine, short enough to watch a factory be missed.
const LEASE_MS: u64 = 3_000;
/// A step that takes longer than this will not come any more.
const PATIENCE: Duration = Duration::from_secs(45);

pub(super) struct DemoStage {
    folder: TempDir,
    coordinator: Arc<Coordinator>,
    server: JoinHandle<std::io::Result<()>>,
    shutdown: CancellationToken,
    pub(super) client: Client,
    factories: Vec<FactoryProcess>,
    keep: bool,
}

impl DemoStage {
    pub(super) async fn open(keep: bool) -> Result<Self, CliError> {
        let folder = tempfile::Builder::new().prefix("giga-demo-").tempdir()?;
        std::fs::create_dir(folder.path().join("repos"))?;
        std::fs::write(folder.path().join(PLAYING), "")?;
        let data = folder.path().join("coordinator");
        std::fs::create_dir(&data)?;
        let store = format!("sqlite:{}", data.join("giga.db").display());
        let outside = giga_effects::Config::default();
        let (broker, place) = (crate::config::Settings::EMBEDDED_BROKER, data.display().to_string());
        let keys = crate::serve::secret_keys_in(&data);
        let access = giga_broker::Access::default();
        let wanted = Wanted { store: &store, broker, access, place: &place, adopt_artifacts: false };
        let (coordinator, _) = crate::serve::start(wanted, outside, keys, PoolDrivers::default()).await?;
        let started = async {
            coordinator.set_flag("lease_ms", json!(LEASE_MS), Actor::system("demo")).await?;
            coordinator.new_admin().await
        };
        let token = started.await.map_err(|error| CliError::failed(error.to_string()))?.reveal().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let shutdown = CancellationToken::new();
        let options = ServerOptions::default();
        let server =
            tokio::spawn(giga_server::serve(coordinator.clone(), listener, options, shutdown.clone()));
        let client = Client::new(ClientOptions {
            url,
            token: Some(token),
            product: Some("demo".to_owned()),
            agent: concat!("giga/", env!("CARGO_PKG_VERSION")).to_owned(),
            ..ClientOptions::default()
        })?;
        Ok(Self { folder, coordinator, server, shutdown, client, factories: Vec::new(), keep })
    }

    pub(super) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// There until the stage is cleared: a script whose factory was killed sees that the play is over.
    pub(super) fn playing(&self) -> PathBuf {
        self.path().join(PLAYING)
    }

    pub(super) async fn origin(&self, name: &str, files: &[(&str, &str)]) -> Result<Origin, CliError> {
        Origin::make(&self.path().join("repos"), name, files).await
    }

    /// Starts it and waits until the coordinator knows it. It gets a token of its own: the admin's stays here.
    pub(super) async fn factory(&mut self, name: &str) -> Result<(), CliError> {
        let wrong =
            |error: &dyn std::fmt::Display| CliError::failed(format!("cannot enroll {name}: {error}"));
        let id: FactoryId = name.parse().map_err(|error| wrong(&error))?;
        let enrolled = self.coordinator.enroll(id, FactoryScope::default(), Actor::system("demo")).await;
        let (_, token) = enrolled.map_err(|error| wrong(&error))?;
        self.factories.push(FactoryProcess::spawn(self.path(), self.client.url(), token.reveal(), name)?);
        match self.factories.last_mut() {
            Some(started) => started.until_ready().await,
            None => Ok(()),
        }
    }

    /// As when its machine loses its power.
    pub(super) async fn kill_factory(&mut self, name: &str) -> Result<(), CliError> {
        let Some(place) = self.factories.iter().position(|factory| factory.name == name) else {
            return Err(CliError::failed(format!("there is no factory {name} to kill")));
        };
        self.factories.remove(place).kill().await
    }

    pub(super) async fn submit(&self, manifest: &str) -> Result<Job, CliError> {
        let answer = self.client.submit(manifest.as_bytes().to_vec(), &Idempotency::Nothing).await?;
        Ok(answer.value.job)
    }

    /// The job as soon as it is so; an error when it can no longer become so.
    pub(super) async fn until(&self, id: &str, so: impl Fn(&Job) -> bool) -> Result<Job, CliError> {
        let wait = async {
            let mut events = self.client.follow_job(id, 0);
            loop {
                let job = self.client.job(id).await?.value;
                if so(&job) {
                    return Ok(job);
                }
                if let Some(why) = hopeless(&job) {
                    return Err(CliError::failed(format!("{}: {why}", job.name)));
                }
                while !matches!(events.next().await?, Signal::Event(_)) {}
            }
        };
        tokio::time::timeout(PATIENCE, wait).await.unwrap_or_else(|_| {
            let message = format!("the job made no progress within {} s", PATIENCE.as_secs());
            Err(CliError::failed_but(message, "`giga demo --keep` keeps the logs of the factories"))
        })
    }

    /// Until its repository has taken it in; the merge commit.
    pub(super) async fn until_merged(&self, id: &str) -> Result<String, CliError> {
        let merged = self.until(id, |job| commit_of(job).is_some()).await?;
        Ok(commit_of(&merged).unwrap_or_default())
    }

    pub(super) async fn clear(mut self) {
        // Whoever waits for it to go may go first.
        let _ = std::fs::remove_file(self.playing());
        for factory in &mut self.factories {
            factory.leave().await;
        }
        self.shutdown.cancel();
        let _ = self.server.await;
        self.coordinator.stop().await;
        if self.keep {
            say(&format!("\nEverything was kept in {}", self.folder.keep().display()));
        } else if let Err(error) = self.folder.close() {
            say(&format!("cannot remove the demo's folder: {error}"));
        }
    }
}

pub(super) const PLAYING: &str = "playing";

fn commit_of(job: &Job) -> Option<String> {
    job.merge.as_ref().filter(|merge| merge.state == MergeState::Merged)?.commit.clone()
}

/// Why a job will not get any further by itself.
fn hopeless(job: &Job) -> Option<String> {
    let merge = job.merge.as_ref().filter(|merge| merge.state == MergeState::SentBack);
    if let Some(merge) = merge {
        return Some(format!("not merged: {}", merge.detail.as_deref().unwrap_or(merge.state.as_str())));
    }
    let ended = matches!(job.stage, Stage::Failed | Stage::DeadLetter | Stage::Cancelled);
    ended.then(|| match &job.failure {
        Some(failure) => failure.words(),
        None => job.stage.label().to_owned(),
    })
}
