//! Streams that anybody may open: health watches and reflection. Bounded in number, per address and in all, and in time.
//!
//! Nobody who has a token is counted here, and neither is a single health check, which is over at once.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use http_body_util::{BodyExt, StreamBody};
use parking_lot::Mutex;
use tonic::{Code, Status};

use crate::auth::Peer;

/// Who has how many streams open.
#[derive(Debug, Clone)]
pub(super) struct OpenStreams {
    most: usize,
    per_peer: usize,
    longest: Duration,
    open: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

/// One of them, until it is dropped.
struct Slot {
    peer: IpAddr,
    open: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut open = self.open.lock();
        if let Some(count) = open.get_mut(&self.peer) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.peer);
            }
        }
    }
}

impl OpenStreams {
    pub(super) fn new(most: usize, per_peer: usize, longest: Duration) -> Self {
        Self { most, per_peer, longest, open: Arc::default() }
    }

    fn take(&self, peer: IpAddr) -> Result<Slot, Status> {
        let mut open = self.open.lock();
        let (own, all) = (open.get(&peer).copied().unwrap_or(0), open.values().sum::<usize>());
        let (whose, most) = if own >= self.per_peer {
            ("of this address", self.per_peer)
        } else if all >= self.most {
            ("without a token", self.most)
        } else {
            *open.entry(peer).or_default() += 1;
            return Ok(Slot { peer, open: self.open.clone() });
        };
        let text = format!("{most} streams {whose} are open, the most there can be; close one, or try later");
        Err(Status::resource_exhausted(text))
    }
}

pub(super) async fn bounded(State(streams): State<OpenStreams>, request: Request, next: Next) -> Response {
    if request.uri().path().ends_with("/Check") {
        return next.run(request).await;
    }
    let slot = match streams.take(Peer::of(request.extensions()).0) {
        Ok(slot) => slot,
        Err(status) => return status.into_http::<Body>().into_response(),
    };
    let ended = Arc::new(AtomicBool::new(false));
    let at_its_end = ended.clone();
    let longest = streams.longest;
    let over = async move {
        tokio::time::sleep(longest).await;
        at_its_end.store(true, Ordering::Relaxed);
    };
    next.run(request).await.map(|body| {
        let frames = body.into_stream().take_until(Box::pin(over));
        let trailers = async move { ended.load(Ordering::Relaxed).then(|| Ok(come_again())) };
        let held = StreamBody::new(frames.map(move |frame| {
            let _ = &slot;
            frame
        }));
        Body::new(held.with_trailers(trailers))
    })
}

fn come_again() -> HeaderMap {
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", HeaderValue::from(Code::Unavailable as i32));
    let text = "a stream without a token ends after a while; open it again";
    trailers.insert("grpc-message", HeaderValue::from_static(text));
    trailers
}
