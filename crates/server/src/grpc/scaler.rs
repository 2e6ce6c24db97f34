//! KEDA's external scaler: how many factories of a pool are wanted.
//!
//! KEDA sends no header of its own, so the credential comes in the metadata of the scaled object, where KEDA puts what it read
//! from the environment of the scale target (`tokenFromEnv`). It is good for this question about one pool and nothing else,
//! because whatever runs in that container could read it, too.

use std::collections::HashMap;
use std::pin::Pin;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderValue, header::AUTHORIZATION};
use futures::{Stream, stream};
use giga_domain::PoolName;
use giga_proto::externalscaler::external_scaler_server::{ExternalScaler, ExternalScalerServer};
use giga_proto::externalscaler::{
    GetMetricSpecResponse, GetMetricsRequest, GetMetricsResponse, IsActiveResponse, MetricSpec, MetricValue,
    ScaledObjectRef,
};
use tokio::sync::watch;
use tonic::{Request, Response, Status};

use super::auth::TokenWatch;
use super::{refused, stopping};
use crate::app::App;
use crate::auth::{Peer, authenticate};
use crate::caller::{Caller, Who};
use crate::connections::Connection;
use crate::problem::Problem;
use crate::request::check;

const METRIC: &str = "factories";
/// A look is a plan, and a busy fleet changes many times while one is made.
const BREATH: Duration = Duration::from_millis(20);
/// Demand changes by the clock, too: what was scheduled becomes ready. Asked of memory.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

pub(super) fn service(app: App) -> ExternalScalerServer<ScalerService> {
    ExternalScalerServer::new(ScalerService(app))
}

pub(super) struct ScalerService(App);

type Activity = Pin<Box<dyn Stream<Item = Result<IsActiveResponse, Status>> + Send>>;

impl ScalerService {
    /// The pool that is asked about, by a credential of that very pool.
    async fn admitted<T>(
        &self,
        request: &Request<T>,
        asked: &ScaledObjectRef,
    ) -> Result<(PoolName, Caller), Status> {
        let given = &asked.scaler_metadata;
        let name =
            given.get("pool").ok_or_else(|| field("pool", "say which pool in the trigger's metadata"))?;
        let pool: PoolName = check::id("scalerMetadata.pool", name)?;
        let headers = with_credential(request.metadata().as_ref(), given)?;
        let caller = authenticate(&self.0, Peer::of(request.extensions()), &headers).await?;
        Connection::has_shown_a_token(request.extensions());
        match &caller.who {
            Who::Scaler(own) if *own == pool => Ok((pool, caller)),
            _ => Err(crate::auth::refused(&format!("the scaler credential of pool {pool}"), &caller).into()),
        }
    }

    async fn wanted(&self, pool: &PoolName) -> Result<u32, Status> {
        wanted(&self.0, pool).await
    }
}

async fn wanted(app: &App, pool: &PoolName) -> Result<u32, Status> {
    let wanted = app.coordinator.pools().wanted(pool).await.map_err(refused)?;
    wanted.ok_or_else(|| {
        Status::not_found(format!("there is no pool {pool}; `giga pool set {pool}` makes one"))
    })
}

fn field(name: &str, message: &str) -> Status {
    Problem::field(format!("scalerMetadata.{name}"), message).into()
}

/// As if it had come in a header, unless one did.
fn with_credential(headers: &HeaderMap, given: &HashMap<String, String>) -> Result<HeaderMap, Status> {
    if headers.contains_key(AUTHORIZATION) {
        return Ok(headers.clone());
    }
    let token = given.get("tokenFromEnv").or_else(|| given.get("token")).ok_or_else(|| {
        field(
            "tokenFromEnv",
            "name the variable that holds what `giga pool credential POOL --scaler` printed",
        )
    })?;
    let value = HeaderValue::from_str(&format!("Bearer {}", token.trim()));
    let value = value.map_err(|_| field("tokenFromEnv", "that is no token"))?;
    Ok(HeaderMap::from_iter([(AUTHORIZATION, value)]))
}

#[tonic::async_trait]
impl ExternalScaler for ScalerService {
    type StreamIsActiveStream = Activity;

    async fn is_active(
        &self,
        request: Request<ScaledObjectRef>,
    ) -> Result<Response<IsActiveResponse>, Status> {
        let (pool, _) = self.admitted(&request, request.get_ref()).await?;
        let result = self.wanted(&pool).await? > 0;
        Ok(Response::new(IsActiveResponse { result }))
    }

    async fn stream_is_active(
        &self,
        request: Request<ScaledObjectRef>,
    ) -> Result<Response<Activity>, Status> {
        let tokens = self.0.coordinator.tokens_changed();
        let (pool, caller) = self.admitted(&request, request.get_ref()).await?;
        let watching = Watching {
            changes: self.0.coordinator.pools().changes(),
            token: TokenWatch::new(&self.0, tokens, caller),
            app: self.0.clone(),
            pool,
            last: None,
        };
        let answers = stream::unfold(Some(watching), |watching| async {
            let mut watching = watching?;
            match watching.next().await {
                Ok(result) => Some((Ok(IsActiveResponse { result }), Some(watching))),
                Err(status) => Some((Err(status), None)),
            }
        });
        Ok(Response::new(Box::pin(answers)))
    }

    async fn get_metric_spec(
        &self,
        request: Request<ScaledObjectRef>,
    ) -> Result<Response<GetMetricSpecResponse>, Status> {
        let (pool, _) = self.admitted(&request, request.get_ref()).await?;
        self.wanted(&pool).await?;
        let spec = MetricSpec { metric_name: METRIC.to_owned(), target_size: 1, target_size_float: 1.0 };
        Ok(Response::new(GetMetricSpecResponse { metric_specs: vec![spec] }))
    }

    async fn get_metrics(
        &self,
        request: Request<GetMetricsRequest>,
    ) -> Result<Response<GetMetricsResponse>, Status> {
        let asked = request.get_ref().scaled_object_ref.clone();
        let asked = asked.ok_or_else(|| Status::invalid_argument("scaledObjectRef: it is missing"))?;
        let (pool, _) = self.admitted(&request, &asked).await?;
        let metric_name = &request.get_ref().metric_name;
        if metric_name != METRIC {
            let shown = crate::request::shown(metric_name);
            return Err(Status::invalid_argument(format!(
                "metricName: there is `{METRIC}` and no `{shown}`"
            )));
        }
        let wanted = self.wanted(&pool).await?;
        let value = MetricValue {
            metric_name: METRIC.to_owned(),
            metric_value: i64::from(wanted),
            metric_value_float: f64::from(wanted),
        };
        Ok(Response::new(GetMetricsResponse { metric_values: vec![value] }))
    }
}

/// Who is told when the first factory is wanted, and when none is any more.
struct Watching {
    app: App,
    pool: PoolName,
    changes: watch::Receiver<()>,
    token: TokenWatch,
    last: Option<bool>,
}

impl Watching {
    async fn next(&mut self) -> Result<bool, Status> {
        loop {
            self.changes.mark_unchanged();
            let active = wanted(&self.app, &self.pool).await? > 0;
            if self.last.replace(active) != Some(active) {
                return Ok(active);
            }
            tokio::select! {
                biased;
                () = self.app.stop.cancelled() => return Err(stopping()),
                over = self.token.is_over() => return Err(over),
                changed = self.changes.changed() => {
                    if changed.is_err() {
                        return Err(stopping());
                    }
                    tokio::time::sleep(BREATH).await;
                }
                () = tokio::time::sleep(LOOK_AGAIN) => {}
            }
        }
    }
}
