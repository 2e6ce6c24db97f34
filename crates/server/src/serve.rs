//! Builds the router from the route table and serves it until it is told to stop.
//!
//! Nothing is routed here by hand: what is not in the table answers 404.

use std::future::IntoFuture;
use std::sync::Arc;

use axum::Router;
use axum::extract::OriginalUri;
use axum::http::Method;
use axum::middleware;
use axum::routing::MethodFilter;
use axum::serve::ListenerExt;
use giga_coordinator::Coordinator;
use tokio_util::sync::CancellationToken;
use tower_http::catch_panic::CatchPanicLayer;

use crate::app::{App, ServerOptions};
use crate::problem::{Code, Problem};
use crate::{auth, observe, routes};

/// The whole API over this coordinator. Streams run until their client leaves.
pub fn router(coordinator: Arc<Coordinator>, options: ServerOptions) -> Router {
    build(App::new(coordinator, options, CancellationToken::new()))
}

/// Serves until `shutdown`: then stops accepting, ends streams and long polls, and waits for the rest, but not
/// longer than [`ServerOptions::drain`].
pub async fn serve(
    coordinator: Arc<Coordinator>,
    listener: tokio::net::TcpListener,
    options: ServerOptions,
    shutdown: CancellationToken,
) -> std::io::Result<()> {
    let router = build(App::new(coordinator, options, shutdown.clone()));
    // Answers are small and somebody waits for each: never hold one back to fill a packet.
    let listener = listener.tap_io(|connection| {
        let _ = connection.set_nodelay(true);
    });
    let server = axum::serve(listener, router).with_graceful_shutdown(shutdown.clone().cancelled_owned());
    let overdue = async {
        shutdown.cancelled().await;
        tokio::time::sleep(options.drain).await;
    };
    tokio::select! {
        served = server.into_future() => served,
        () = overdue => {
            tracing::warn!("some requests did not end in time; the server stops without them");
            Ok(())
        }
    }
}

fn build(app: App) -> Router {
    let mut router = Router::new();
    for route in routes::table() {
        let filter =
            MethodFilter::try_from(route.method.clone()).expect("the table has only methods of RFC 9110");
        let guard = middleware::from_fn_with_state(auth::Gate { app: app.clone(), route }, auth::guard);
        router = router.route(route.path, (route.handler)(filter).route_layer(guard));
    }
    router
        .fallback(no_such_route)
        .method_not_allowed_fallback(wrong_method)
        .layer(CatchPanicLayer::custom(observe::panicked))
        .layer(middleware::from_fn_with_state(app.clone(), observe::record))
        .layer(middleware::map_response(observe::harden))
        .with_state(app)
}

async fn no_such_route(method: Method, OriginalUri(uri): OriginalUri) -> Problem {
    let path: String = uri.path().chars().take(200).collect();
    Problem::new(Code::NotFound, format!("there is no {method} {path}; see /api/openapi.json"))
}

async fn wrong_method(method: Method, OriginalUri(uri): OriginalUri) -> Problem {
    let path: String = uri.path().chars().take(200).collect();
    let detail = format!("{path} does not take {method}; the Allow header says what it takes");
    Problem::new(Code::MethodNotAllowed, detail)
}
