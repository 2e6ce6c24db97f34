//! Builds the router from the route table and serves it until it is told to stop.
//!
//! Nothing is routed here by hand: what is neither in the table nor a gRPC service is the page's (`site`), or 404.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::OriginalUri;
use axum::http::Method;
use axum::middleware;
use axum::routing::{MethodFilter, get};
use axum::{Extension, Router};
use giga_coordinator::Coordinator;
use tokio::net::TcpListener;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower_http::catch_panic::CatchPanicLayer;

use crate::app::{App, ServerOptions};
use crate::auth::Peer;
use crate::connections::{Pool, Serving};
use crate::handlers::health::metrics_for_the_network;
use crate::handlers::mcp::ApiRouter;
use crate::problem::{Code, Problem};
use crate::tls::Listener;
use crate::{auth, connections, grpc, observe, routes, site};

/// Between two warnings that there was no room for a newcomer.
const WARN_EVERY: Duration = Duration::from_secs(10);
/// On the listener for `/metrics` alone.
const METRICS_CONNECTIONS: usize = 100;

/// The whole API over this coordinator. Streams run until their client leaves.
pub fn router(coordinator: Arc<Coordinator>, options: ServerOptions) -> Router {
    build(App::new(coordinator, options, CancellationToken::new()))
}

/// Serves until `shutdown`: then stops accepting, ends streams and long polls, and waits for the rest, but not
/// longer than [`ServerOptions::drain`].
pub async fn serve(
    coordinator: Arc<Coordinator>,
    listener: impl Into<Listener>,
    options: ServerOptions,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let Listener { tcp, tls, metrics } = listener.into();
    let drain = options.drain;
    let mut app = App::new(coordinator, options.clone(), shutdown.clone());
    app.is_https = tls.is_some();
    let tasks = TaskTracker::new();
    if let Some(tls) = tls.clone() {
        let stop = shutdown.clone();
        tasks.spawn(async move { stop.run_until_cancelled(tls.keep_current()).await });
    }
    if let Some(tcp) = metrics {
        let router = Router::new().route("/metrics", get(metrics_for_the_network)).with_state(app.clone());
        let options = ServerOptions { max_connections: METRICS_CONNECTIONS, ..options.clone() };
        let serving = Serving { router, options, tls: None, shutdown: shutdown.clone() };
        tasks.spawn(accept(tcp, serving, tasks.clone()));
    }
    let serving = Serving { router: build(app), options, tls, shutdown };
    accept(tcp, serving, tasks.clone()).await;
    tasks.close();
    if tokio::time::timeout(drain, tasks.wait()).await.is_err() {
        tracing::warn!("some requests did not end in time; the server stops without them");
    }
    Ok(())
}

/// Until the shutdown; then nobody can connect any more.
async fn accept(listener: TcpListener, serving: Serving, tasks: TaskTracker) {
    let pool = Pool::new(serving.options.max_connections);
    let mut warned_at: Option<Instant> = None;
    loop {
        let accepted = tokio::select! {
            () = serving.shutdown.cancelled() => return,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => match pool.admit(peer.ip()) {
                Some(place) => {
                    tasks.spawn(connections::run(stream, Peer(peer.ip()), place, serving.clone()));
                }
                None if warned_at.is_none_or(|at| at.elapsed() >= WARN_EVERY) => {
                    warned_at = Some(Instant::now());
                    tracing::warn!(%peer, "no room for another connection; --max-connections says how many there may be");
                }
                None => {}
            },
            // Out of file descriptors, most likely: others have to end first.
            Err(error) if !is_the_peers(&error) => {
                tracing::error!(%error, "connections cannot be accepted just now");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            Err(_) => {}
        }
    }
}

fn is_the_peers(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionRefused | ConnectionAborted | ConnectionReset)
}

fn build(app: App) -> Router {
    let api = ApiRouter(routed(&app, None));
    routed(&app, Some(api)).merge(grpc::router(&app))
}

/// The routes of the table. The one whose tools are calls of the others is given those.
fn routed(app: &App, others: Option<ApiRouter>) -> Router {
    let mut router = Router::new();
    for route in routes::table() {
        let filter =
            MethodFilter::try_from(route.method.clone()).expect("the table has only methods of RFC 9110");
        let guard = middleware::from_fn_with_state(auth::GuardState { app: app.clone(), route }, auth::guard);
        let mut served = (route.handler)(filter).route_layer(guard);
        if route.operation == routes::MCP {
            let Some(others) = &others else { continue };
            served = served.layer(Extension(others.clone()));
        }
        router = router.route(route.path, served);
    }
    router
        .fallback(site::answer)
        .method_not_allowed_fallback(wrong_method)
        .layer(CatchPanicLayer::custom(observe::panicked))
        .layer(middleware::from_fn_with_state(app.clone(), observe::record))
        .layer(middleware::map_response(observe::harden))
        .with_state(app.clone())
}

async fn wrong_method(method: Method, OriginalUri(uri): OriginalUri) -> Problem {
    let path: String = uri.path().chars().take(200).collect();
    let detail = format!("{path} does not take {method}; the Allow header says what it takes");
    Problem::new(Code::MethodNotAllowed, detail)
}
