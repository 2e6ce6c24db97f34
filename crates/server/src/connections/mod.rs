//! From an accepted socket to calls on the router, and every way in which that ends: the peer leaves, says nothing, stops
//! reading, has to make room for others (`pool`), or the server stops.
//!
//! Every wait for a peer here has a deadline, from the first byte to the last.

mod counted;
mod pool;
mod stall;

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_util::sync::CancellationToken;

use crate::app::ServerOptions;
use crate::auth::Peer;
use crate::tls::Tls;
use counted::CountedBody;
use stall::WriteTimeout;

pub(crate) use pool::{Connection, Place, Pool};

const PING_EVERY: Duration = Duration::from_secs(10);
const PING_TIMEOUT: Duration = Duration::from_secs(10);
/// Calls under way on one HTTP/2 connection.
const CALLS_AT_ONCE: u32 = 1_000;
/// Calls that were reset before anybody looked at them, and those that we had to reset: with more the peer is attacking,
/// and its connection ends.
const RESETS: usize = 20;
const OUR_RESETS: usize = 200;
/// The head of a request, and what HTTP/1 reads or writes at once.
const HEAD_BYTES: u32 = 16 * 1024;
const BUFFER: usize = 64 * 1024;
/// What one HTTP/2 call may have ready to be sent.
const SEND_BUFFER: usize = 128 * 1024;
/// For a connection that was idle to say goodbye.
const GOODBYE: Duration = Duration::from_secs(1);

/// What every connection is served with.
#[derive(Clone)]
pub(crate) struct Serving {
    pub(crate) router: Router,
    pub(crate) options: ServerOptions,
    pub(crate) tls: Option<Arc<Tls>>,
    pub(crate) shutdown: CancellationToken,
}

/// Ends with the connection, or when somebody else needs its place.
pub(crate) async fn run(stream: TcpStream, peer: Peer, place: Place, serving: Serving) {
    let connection = place.0.clone();
    tokio::select! {
        () = welcome(stream, peer, &connection, serving) => {}
        () = connection.let_go() => tracing::debug!(peer = %peer.0, "a connection makes room for others"),
    }
}

async fn welcome(stream: TcpStream, peer: Peer, connection: &Arc<Connection>, serving: Serving) {
    // Answers are small and somebody waits for each: never hold one back to fill a packet.
    let _ = stream.set_nodelay(true);
    let opening = tokio::time::timeout(serving.options.head_timeout, open(stream, serving.tls.as_deref()));
    let opened = tokio::select! {
        opened = opening => opened.ok().flatten(),
        () = serving.shutdown.cancelled() => None,
    };
    // Boxed: those who say nothing cost little.
    match opened {
        Some(Opened::Plain(stream)) => Box::pin(calls(stream, peer, connection, serving)).await,
        Some(Opened::Encrypted(stream)) => Box::pin(calls(*stream, peer, connection, serving)).await,
        None => {}
    }
}

enum Opened {
    Plain(TcpStream),
    Encrypted(Box<tokio_rustls::server::TlsStream<TcpStream>>),
}

/// Waits for the first byte, because nobody knows yet what the peer speaks and no protocol's own deadline counts; then for
/// the end of the handshake, where there is one.
async fn open(stream: TcpStream, tls: Option<&Tls>) -> Option<Opened> {
    let mut byte = [0];
    if !matches!(stream.peek(&mut byte).await, Ok(1)) {
        return None;
    }
    let Some(tls) = tls else { return Some(Opened::Plain(stream)) };
    match tls.accept(stream).await {
        Ok(stream) => stream.map(|stream| Opened::Encrypted(Box::new(stream))),
        Err(error) => {
            tracing::debug!(%error, "a TLS handshake failed");
            None
        }
    }
}

/// HTTP/1 and HTTP/2 on the same port. A peer that died without a word is noticed by HTTP/2 pings, so that a worker's
/// presence ends with the worker.
async fn calls<S>(stream: S, peer: Peer, connection: &Arc<Connection>, serving: Serving)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Serving { router, options, shutdown, .. } = serving;
    let mut builder = Builder::new(TokioExecutor::new());
    // Whoever says nothing makes room for others.
    builder.http1().timer(TokioTimer::new()).header_read_timeout(options.head_timeout).max_buf_size(BUFFER);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_TIMEOUT)
        .max_concurrent_streams(CALLS_AT_ONCE)
        .max_header_list_size(HEAD_BYTES)
        .max_pending_accept_reset_streams(RESETS)
        .max_local_error_reset_streams(OUR_RESETS)
        .max_send_buf_size(SEND_BUFFER);
    let counting = connection.clone();
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        let call = counting.begin_call();
        request.extensions_mut().insert(peer);
        request.extensions_mut().insert(counting.clone());
        let answering = router.call(request);
        async move { answering.await.map(|answer| answer.map(|body| CountedBody::new(body, call))) }
    });
    let stream = WriteTimeout::new(stream, options.write_timeout);
    let mut served = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let ended = tokio::select! {
        ended = served.as_mut() => ended,
        () = shutdown.cancelled() => {
            served.as_mut().graceful_shutdown();
            served.await
        }
        // Also those that a protocol has no deadline for: half a preface, or a whole one and no call after it.
        () = connection.was_idle_for(options.head_timeout, options.idle_timeout) => {
            served.as_mut().graceful_shutdown();
            let _ = tokio::time::timeout(GOODBYE, served).await;
            return;
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke off");
    }
}
