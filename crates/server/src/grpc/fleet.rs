//! `gigafactory.v1.Fleet`: jobs for factories, each claimed before it is sent.
//!
//! Nothing is decided here. A job that could not be handed to the connection goes back to the coordinator, which gives
//! it to somebody else; what the connection lost on its way is the lease's affair.

use std::pin::Pin;

use axum::http::HeaderMap;
use futures::{Stream, stream};
use giga_coordinator::{FactoryStream, Grant, StreamEvent};
use giga_domain::FactoryId;
use giga_proto::v1;
use giga_proto::v1::fleet_server::{Fleet, FleetServer};
use giga_proto::v1::receive_grants_response::Event;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status};

use super::auth::TokenWatch;
use super::{grant_message, refused, stopping};
use crate::app::App;
use crate::auth::{Peer, admit, authenticate};
use crate::connections::Connection;
use crate::handlers::holders::claim_answer;
use crate::request::check;
use crate::routes::Access;

pub(super) fn service(app: App) -> FleetServer<FleetService> {
    FleetServer::new(FleetService(app))
}

pub(super) struct FleetService(App);

type Grants = Pin<Box<dyn Stream<Item = Result<v1::ReceiveGrantsResponse, Status>> + Send>>;

#[tonic::async_trait]
impl Fleet for FleetService {
    type ReceiveGrantsStream = Grants;

    async fn receive_grants(
        &self,
        request: Request<v1::ReceiveGrantsRequest>,
    ) -> Result<Response<Grants>, Status> {
        let app = &self.0;
        let tokens = app.coordinator.tokens_changed();
        let headers: &HeaderMap = request.metadata().as_ref();
        let caller = authenticate(app, Peer::of(request.extensions()), headers).await?;
        Connection::has_shown_a_token(request.extensions());
        admit(Access::Factory, &caller)?;
        let factory: FactoryId = check::id("factory_id", &request.get_ref().factory_id)?;
        caller.speaks_for(&factory)?;
        if app.stop.is_cancelled() {
            return Err(stopping());
        }
        let jobs = app.coordinator.dispatch().open_factory_stream(factory).map_err(refused)?;
        let token_watch = TokenWatch::new(app, tokens, caller);
        let connected = Connected { app: app.clone(), jobs, token_watch, stop: app.stop.clone() };
        let messages = stream::unfold(Some(connected), |connected| async {
            let mut connected = connected?;
            match connected.next().await {
                Ok(event) => Some((Ok(v1::ReceiveGrantsResponse { event: Some(event) }), Some(connected))),
                Err(status) => Some((Err(status), None)),
            }
        });
        Ok(Response::new(Box::pin(messages)))
    }
}

struct Connected {
    app: App,
    jobs: FactoryStream,
    token_watch: TokenWatch,
    stop: CancellationToken,
}

impl Connected {
    async fn next(&mut self) -> Result<Event, Status> {
        let event = tokio::select! {
            biased;
            () = self.stop.cancelled() => return Err(stopping()),
            over = self.token_watch.is_over() => return Err(over),
            event = self.jobs.next() => event,
        };
        match event {
            Some(StreamEvent::Grant(grant)) => self.message(*grant).await,
            Some(StreamEvent::News) => Ok(Event::News(v1::News {})),
            None if self.jobs.was_replaced() => {
                Err(Status::aborted("a newer stream of this factory took over; one factory needs only one"))
            }
            None => Err(stopping()),
        }
    }

    /// Until this returns, the grant goes back where the call is given up.
    async fn message(&self, grant: Grant) -> Result<Event, Status> {
        let answer = claim_answer(&self.app, grant.job()).await?;
        grant.delivered();
        Ok(Event::Grant(grant_message(answer)))
    }
}
