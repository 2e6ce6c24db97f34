//! The standard health service: serving until the server is told to stop. Whether the store is well is asked at
//! `/readyz`; a coordinator that cannot reach it keeps its streams.

use std::pin::Pin;

use futures::{Stream, StreamExt, stream};
use giga_proto::externalscaler::external_scaler_server;
use giga_proto::v1::{dispatch_server, fleet_server};
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server::{Health, HealthServer};
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use crate::app::App;

/// The whole server, and each service by its name.
const NAMES: [&str; 4] =
    ["", dispatch_server::SERVICE_NAME, fleet_server::SERVICE_NAME, external_scaler_server::SERVICE_NAME];

pub(super) fn service(app: App) -> HealthServer<HealthService> {
    HealthServer::new(HealthService(app))
}

pub(super) struct HealthService(App);

type Answers = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

impl HealthService {
    fn status(&self) -> HealthCheckResponse {
        answer(if self.0.stop.is_cancelled() { ServingStatus::NotServing } else { ServingStatus::Serving })
    }
}

fn answer(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse { status: status.into() }
}

#[tonic::async_trait]
impl Health for HealthService {
    type WatchStream = Answers;

    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        let name = &request.get_ref().service;
        if NAMES.contains(&name.as_str()) {
            Ok(Response::new(self.status()))
        } else {
            Err(Status::not_found(format!("there is no service `{}` here", crate::request::shown(name))))
        }
    }

    /// Ends with the server: a stream that outlived it would only hold up the shutdown.
    async fn watch(&self, request: Request<HealthCheckRequest>) -> Result<Response<Answers>, Status> {
        let known = NAMES.contains(&request.get_ref().service.as_str());
        let first = if known { self.status() } else { answer(ServingStatus::ServiceUnknown) };
        let stop = self.0.stop.clone();
        let last = stream::once(async move {
            stop.cancelled().await;
            Ok(answer(ServingStatus::NotServing))
        });
        Ok(Response::new(stream::once(async move { Ok(first) }).chain(last).boxed()))
    }
}
