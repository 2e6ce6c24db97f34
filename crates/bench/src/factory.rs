//! A factory that is a stream and heartbeats and nothing more: no git, no engine. What it is given it starts and reports.

use std::io::Write;
use std::time::Duration;

use anyhow::{Context as _, Result};
use giga_api::client::{Client, ClientOptions};
use giga_api::wire::{Delivery, Health, HeartbeatRequest, PatchRequest, ReportRequest, Stage};
use giga_proto::v1::fleet_client::FleetClient;
use giga_proto::v1::{Grant, ReceiveGrantsRequest, ReceiveGrantsResponse, receive_grants_response::Event};
use tokio::time::Interval;
use tonic::transport::Endpoint;

use crate::FactoryArgs;

/// Between heartbeats; the default interval is ten seconds and three missed ones make a factory stale.
const BEAT: Duration = Duration::from_secs(5);
const AFTER_A_FAILURE: Duration = Duration::from_millis(200);

pub(crate) struct Stub {
    pub(crate) client: Client,
    heartbeat: HeartbeatRequest,
    beats: Interval,
    stream: tonic::Streaming<ReceiveGrantsResponse>,
}

impl Stub {
    /// Streaming and known to the coordinator.
    pub(crate) async fn connect(url: &str, token: &str, id: &str, seats: u32) -> Result<Self> {
        let client = Client::new(ClientOptions {
            url: url.to_owned(),
            token: Some(token.to_owned()),
            agent: "giga-bench".to_owned(),
            ..ClientOptions::default()
        })?;
        let mut heartbeat = HeartbeatRequest {
            factory_id: id.to_owned(),
            capabilities: vec!["os:linux".to_owned(), "engine:shell".to_owned()],
            repos: Vec::new(),
            seat_limit: seats,
            load: 0.0,
            health: Health::Ok,
            health_reason: None,
            can_clone: true,
            clones: Vec::new(),
            instance: None,
            take_over: false,
            cost_usd_per_hour: None,
            delivery: None,
            accounts: Vec::new(),
        };
        // Known first, then reached by its stream.
        client.heartbeat(&heartbeat).await?;
        let channel = Endpoint::from_shared(url.to_owned())?.connect().await?;
        let mut request = tonic::Request::new(ReceiveGrantsRequest { factory_id: id.to_owned() });
        let bearer = format!("Bearer {token}").parse()?;
        request.metadata_mut().insert("authorization", bearer);
        let stream = FleetClient::new(channel).receive_grants(request).await?.into_inner();
        heartbeat.delivery = Some(Delivery::Stream);
        client.heartbeat(&heartbeat).await?;
        let mut beats = tokio::time::interval(BEAT);
        beats.reset();
        Ok(Self { client, heartbeat, beats, stream })
    }

    /// The next job that is already its own.
    pub(crate) async fn next(&mut self) -> Result<Grant> {
        loop {
            tokio::select! {
                _ = self.beats.tick() => {
                    let _ = self.client.heartbeat(&self.heartbeat).await;
                }
                message = self.stream.message() => {
                    let message = message?.context("the stream of a factory ended")?;
                    if let Some(Event::Grant(grant)) = message.event {
                        return Ok(grant);
                    }
                }
            }
        }
    }
}

/// `giga-bench factory`: until it is killed, or nobody reads what it prints.
pub(crate) async fn run(args: FactoryArgs) -> Result<()> {
    loop {
        if let Err(error) = serve(&args).await
            && error.is::<std::io::Error>()
        {
            return Err(error);
        }
        // Its coordinator may be away for a moment.
        tokio::time::sleep(AFTER_A_FAILURE).await;
    }
}

async fn serve(args: &FactoryArgs) -> Result<()> {
    let mut stub = Stub::connect(&args.caller.url, &args.caller.token, &args.id, args.seats).await?;
    loop {
        let grant = stub.next().await?;
        print(&grant)?;
        let client = stub.client.clone();
        // Each on its own: a call that has to be repeated holds up nobody else.
        tokio::spawn(async move {
            let (job, epoch) = (&grant.job_id, epoch(&grant));
            let start =
                PatchRequest { lease_epoch: epoch, stage: Some(Stage::Building), ..PatchRequest::default() };
            let report = ReportRequest { lease_epoch: epoch, ..ReportRequest::default() };
            for _ in 0..20 {
                let started = client.patch_job(job, &start).await;
                if started.is_ok() && client.report(job, &report).await.is_ok() {
                    return;
                }
                tokio::time::sleep(AFTER_A_FAILURE).await;
            }
        });
    }
}

fn epoch(grant: &Grant) -> u64 {
    grant.lease.as_ref().map_or(0, |lease| lease.epoch)
}

fn print(grant: &Grant) -> std::io::Result<()> {
    let mut stdout = std::io::stdout().lock();
    writeln!(stdout, "job {} {}", grant.job_id, epoch(grant))?;
    stdout.flush()
}
