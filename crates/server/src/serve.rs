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
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tower_http::add_extension::AddExtension;
use tower_http::catch_panic::CatchPanicLayer;

use crate::app::{App, ServerOptions};
use crate::auth::Peer;
use crate::problem::{Code, Problem};
use crate::tls::{Listener, Tls};
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
    listener: impl Into<Listener>,
    options: ServerOptions,
    shutdown: CancellationToken,
) -> io::Result<()> {
    let Listener { tcp: listener, tls } = listener.into();
    let (drain, head_timeout) = (options.drain, options.head_timeout);
    let mut app = App::new(coordinator, options, shutdown.clone());
    app.is_https = tls.is_some();
    let router = build(app);
    let connections = TaskTracker::new();
    if let Some(tls) = tls.clone() {
        let stop = shutdown.clone();
        connections.spawn(async move { stop.run_until_cancelled(tls.keep_current()).await });
    }
    loop {
        let accepted = tokio::select! {
            () = shutdown.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                let guest = Guest { router: router.clone(), head_timeout };
                connections.spawn(welcome(stream, tls.clone(), guest, shutdown.clone()));
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
    if tokio::time::timeout(drain, connections.wait()).await.is_err() {
        tracing::warn!("some requests did not end in time; the server stops without them");
    }
    Ok(())
}

fn is_the_peers(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionRefused | ConnectionAborted | ConnectionReset)
}

/// What every connection is served with.
struct Guest {
    router: Router,
    head_timeout: Duration,
}

async fn welcome(stream: TcpStream, tls: Option<Arc<Tls>>, guest: Guest, shutdown: CancellationToken) {
    // Answers are small and somebody waits for each: never hold one back to fill a packet.
    let _ = stream.set_nodelay(true);
    // Nobody knows yet what it speaks, so that no protocol's own deadline counts.
    let mut byte = [0];
    let first = tokio::time::timeout(guest.head_timeout, stream.peek(&mut byte));
    let has_begun = tokio::select! {
        first = first => matches!(first, Ok(Ok(1))),
        () = shutdown.cancelled() => false,
    };
    if !has_begun {
        return;
    }
    let peer = Peer(stream.peer_addr().map_or(Ipv4Addr::UNSPECIFIED.into(), |peer| peer.ip()));
    let Some(tls) = tls else { return connection(stream, peer, guest, shutdown).await };
    let shaken = tokio::select! {
        shaken = tls.accept(stream) => shaken,
        () = shutdown.cancelled() => return,
    };
    match shaken {
        Ok(Some(stream)) => connection(stream, peer, guest, shutdown).await,
        Ok(None) => {}
        Err(error) => tracing::debug!(%error, "a TLS handshake failed"),
    }
}

/// HTTP/1 and HTTP/2 on the same port. A peer that died without a word is noticed by HTTP/2 pings, so that a worker's
/// presence ends with the worker.
async fn connection<S>(stream: S, peer: Peer, guest: Guest, shutdown: CancellationToken)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Guest { router, head_timeout } = guest;
    let mut builder = Builder::new(TokioExecutor::new());
    // Whoever says nothing makes room for others.
    builder.http1().timer(TokioTimer::new()).header_read_timeout(head_timeout);
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
