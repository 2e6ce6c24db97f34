//! Builds the router from the route table and serves it until it is told to stop.
//!
//! Nothing is routed here by hand: what is neither in the table nor a gRPC service is the page's (`site`), or 404.

use std::io;
use std::net::Ipv4Addr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::OriginalUri;
use axum::http::Method;
use axum::middleware;
use axum::routing::MethodFilter;
use giga_coordinator::Coordinator;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower_http::add_extension::AddExtension;
use tower_http::catch_panic::CatchPanicLayer;

use crate::app::{App, ServerOptions};
use crate::auth::Peer;
use crate::problem::{Code, Problem};
use crate::{auth, grpc, observe, routes, site};

const PING_EVERY: Duration = Duration::from_secs(10);
const PING_TIMEOUT: Duration = Duration::from_secs(10);
/// Calls under way on one HTTP/2 connection.
const CALLS_AT_ONCE: u32 = 1_000;

/// The whole API over this coordinator. Streams run until their client leaves.
pub fn router(coordinator: Arc<Coordinator>, options: ServerOptions) -> Router {
    build(App::new(coordinator, options, CancellationToken::new()))
}

/// Serves until `shutdown`: then stops accepting, ends streams and long polls, and waits for the rest, but not
/// longer than [`ServerOptions::drain`].
pub async fn serve(
    coordinator: Arc<Coordinator>,
    listener: TcpListener,
    options: ServerOptions,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let router = build(App::new(coordinator, options, shutdown.clone()));
    let connections = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            () = shutdown.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                connections.spawn(connection(stream, router.clone(), shutdown.clone()));
            }
            // Out of file descriptors, most likely: others have to end first.
            Err(error) if !is_the_peers(&error) => {
                tracing::error!(%error, "connections cannot be accepted just now");
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            Err(_) => {}
        }
    }
    drop(listener);
    connections.close();
    if tokio::time::timeout(options.drain, connections.wait()).await.is_err() {
        tracing::warn!("some requests did not end in time; the server stops without them");
    }
    Ok(())
}

fn is_the_peers(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionRefused | ConnectionAborted | ConnectionReset)
}

/// HTTP/1 and HTTP/2 on the same port. A peer that died without a word is noticed by HTTP/2 pings, so that a worker's
/// presence ends with the worker.
async fn connection(stream: TcpStream, router: Router, shutdown: CancellationToken) {
    // Answers are small and somebody waits for each: never hold one back to fill a packet.
    let _ = stream.set_nodelay(true);
    let peer = Peer(stream.peer_addr().map_or(Ipv4Addr::UNSPECIFIED.into(), |peer| peer.ip()));
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_TIMEOUT)
        .max_concurrent_streams(CALLS_AT_ONCE);
    let service = TowerToHyperService::new(AddExtension::new(router, peer));
    let mut served = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = served.as_mut() => ended,
        () = shutdown.cancelled() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke off");
    }
}

fn build(app: App) -> Router {
    let mut router = Router::new();
    for route in routes::table() {
        let filter =
            MethodFilter::try_from(route.method.clone()).expect("the table has only methods of RFC 9110");
        let guard = middleware::from_fn_with_state(auth::GuardState { app: app.clone(), route }, auth::guard);
        router = router.route(route.path, (route.handler)(filter).route_layer(guard));
    }
    router
        .fallback(site::answer)
        .method_not_allowed_fallback(wrong_method)
        .layer(CatchPanicLayer::custom(observe::panicked))
        .layer(middleware::from_fn_with_state(app.clone(), observe::record))
        .layer(middleware::map_response(observe::harden))
        .with_state(app.clone())
        .merge(grpc::router(&app))
}

async fn wrong_method(method: Method, OriginalUri(uri): OriginalUri) -> Problem {
    let path: String = uri.path().chars().take(200).collect();
    let detail = format!("{path} does not take {method}; the Allow header says what it takes");
    Problem::new(Code::MethodNotAllowed, detail)
}
