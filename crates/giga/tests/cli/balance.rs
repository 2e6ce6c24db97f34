//! A load balancer before two coordinators, of the worst kind: no call goes to where the one before it went.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

/// One call goes to one, the next to the other. Who cannot be connected to is passed over; what breaks off is answered with
/// 502, as load balancers do.
pub(crate) struct Alternating {
    pub(crate) url: String,
    state: Arc<Balance>,
    _ends: DropGuard,
}

struct Balance {
    nodes: [String; 2],
    calls: AtomicUsize,
    /// Pieces of logs that each of them accepted.
    pieces: [AtomicUsize; 2],
    http: reqwest::Client,
}

impl Alternating {
    pub(crate) async fn before(nodes: [String; 2]) -> Self {
        let state = Arc::new(Balance {
            nodes,
            calls: AtomicUsize::new(0),
            pieces: Default::default(),
            http: reqwest::Client::new(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let app = axum::Router::new().fallback(pass_on).with_state(state.clone());
        let end = CancellationToken::new();
        let ended = end.clone();
        tokio::spawn(
            async move { ended.run_until_cancelled(async { axum::serve(listener, app).await }).await },
        );
        Self { url, state, _ends: end.drop_guard() }
    }

    pub(crate) fn pieces(&self) -> [usize; 2] {
        self.state.pieces.each_ref().map(|count| count.load(Ordering::Relaxed))
    }
}

async fn pass_on(State(state): State<Arc<Balance>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let is_piece = parts.method == "POST" && parts.uri.path().ends_with("/logs");
    let body = to_bytes(body, usize::MAX).await.unwrap();
    let first = state.calls.fetch_add(1, Ordering::Relaxed);
    for turn in [first % 2, (first + 1) % 2] {
        let url = format!("{}{}", state.nodes[turn], parts.uri);
        let mut headers = parts.headers.clone();
        headers.remove("host");
        let call = state.http.request(parts.method.clone(), url).headers(headers).body(body.clone());
        match call.send().await {
            Ok(answer) => {
                let (status, headers) = (answer.status(), answer.headers().clone());
                let Ok(bytes) = answer.bytes().await else { break };
                if is_piece && status.is_success() {
                    state.pieces[turn].fetch_add(1, Ordering::Relaxed);
                }
                let mut response = Response::new(Body::from(bytes));
                *response.status_mut() = status;
                *response.headers_mut() = headers;
                response.headers_mut().remove("transfer-encoding");
                return response;
            }
            Err(error) if error.is_connect() => {}
            Err(_) => break,
        }
    }
    (StatusCode::BAD_GATEWAY, "bad gateway").into_response()
}
