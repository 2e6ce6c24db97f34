//! What every handler can reach, and how the server is set up.

use std::sync::Arc;
use std::time::Duration;

use giga_coordinator::Coordinator;
use giga_domain::rate::{Bucket, Rate};
use giga_domain::{Timestamp, limits};
use giga_web::Page;
use tokio::sync::{Mutex, Semaphore};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::handlers::health::StorePing;
use crate::live::{FeedWatch, TOGETHER};
use crate::observe::HttpMetrics;
use crate::request::room::BodyRoom;
use crate::sign_in::SignIn;

/// Pages of history that all event streams together read at once.
const EVENT_PAGES: usize = 16;

/// Sizes and times; the defaults suit everyone but tests.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// The largest manifest with its body.
    pub manifest_bytes: usize,
    /// The largest of all other request bodies.
    pub request_bytes: usize,
    /// Connections that are open at once. A quarter is kept for callers that have shown a valid token, and one address
    /// gets at most half.
    pub max_connections: usize,
    /// How long a client may take to send the head of a request, all that comes before it included, and how long a
    /// connection of HTTP/1, or one without a valid token, waits for the next one.
    pub head_timeout: Duration,
    /// How long a connection of HTTP/2 with a valid token waits for the next request.
    pub idle_timeout: Duration,
    /// How long a client may take nothing of what is sent to it.
    pub write_timeout: Duration,
    /// How long a client may take to send its body.
    pub body_timeout: Duration,
    /// How long `/readyz` waits for the store.
    pub ready_timeout: Duration,
    /// The longest `?wait=` of a long poll.
    pub longest_wait: Duration,
    /// Streams that are open without a token: of everybody together, and of one address.
    pub tokenless_streams: usize,
    pub tokenless_per_peer: usize,
    /// How long such a stream lasts.
    pub tokenless_longest: Duration,
    /// How fast one event stream is brought up, so that history is no load that one reader can make.
    pub history_speed: Rate,
    /// Event streams that are open at once.
    pub event_streams: usize,
    /// How often a quiet event stream says that it is still there.
    pub keep_alive: Duration,
    /// How often the feed is looked at while somebody waits, in case another coordinator wrote to it and its hint was
    /// lost.
    pub look_every: Duration,
    /// How long a shutdown waits for requests in flight.
    pub drain: Duration,
    /// The page to serve; without one, a few words on how to get it.
    pub page: Option<&'static Page>,
    /// How people sign in who have no token, if they can.
    pub sign_in: Option<Arc<SignIn>>,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            manifest_bytes: limits::MANIFEST_BYTES,
            request_bytes: limits::REQUEST_BYTES,
            max_connections: 10_000,
            head_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_mins(5),
            write_timeout: Duration::from_mins(1),
            body_timeout: Duration::from_secs(30),
            ready_timeout: Duration::from_secs(2),
            longest_wait: Duration::from_mins(1),
            tokenless_streams: 1_000,
            tokenless_per_peer: 100,
            tokenless_longest: Duration::from_mins(10),
            history_speed: Rate { per_second: 5_000.0, burst: 10_000.0 },
            event_streams: 4_000,
            keep_alive: Duration::from_secs(5),
            look_every: Duration::from_secs(30),
            drain: Duration::from_secs(10),
            page: giga_web::page(),
            sign_in: None,
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) struct App {
    pub(crate) coordinator: Arc<Coordinator>,
    pub(crate) options: ServerOptions,
    pub(crate) feed_watch: Arc<FeedWatch>,
    pub(crate) http: Arc<HttpMetrics>,
    /// Callers reach it by `https://`.
    pub(crate) is_https: bool,
    pub(crate) store_ping: Arc<StorePing>,
    pub(crate) body_room: Arc<BodyRoom>,
    /// One for each event stream that may still be opened.
    pub(crate) event_streams: Arc<Semaphore>,
    /// One for each page of history that may be read at once.
    pub(crate) event_pages: Arc<Semaphore>,
    /// How fast all readers of history together are brought up.
    pub(crate) history_speed: Arc<Mutex<Bucket>>,
    started: Instant,
    /// Ends streams and long polls.
    pub(crate) stop: CancellationToken,
}

impl App {
    pub(crate) fn new(
        coordinator: Arc<Coordinator>,
        options: ServerOptions,
        stop: CancellationToken,
    ) -> Self {
        let feed_watch = Arc::new(FeedWatch::new(coordinator.clone(), options.look_every));
        Self {
            coordinator,
            feed_watch,
            http: Arc::default(),
            is_https: false,
            store_ping: Arc::default(),
            body_room: Arc::default(),
            event_streams: Arc::new(Semaphore::new(options.event_streams)),
            event_pages: Arc::new(Semaphore::new(EVENT_PAGES)),
            history_speed: Arc::new(Mutex::new(Bucket::full(TOGETHER, Timestamp::ZERO))),
            started: Instant::now(),
            stop,
            options,
        }
    }

    /// What rates go by: it only moves forward.
    pub(crate) fn since_start(&self) -> Timestamp {
        Timestamp::ZERO.plus(self.started.elapsed())
    }
}
