//! Who may have a connection open, and who is let go for others.
//!
//! A connection is a stranger's until a valid token came over it. Strangers never take the whole pool, and when room is
//! needed they go first, the silent before those that are being answered, the oldest before the newest: whoever has
//! something to say says it while its connection is young. So a newcomer is not refused because of others that say
//! nothing, and a holder's connection is not cut for a stranger's.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use axum::http::Extensions;
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How many connections there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shares {
    all: usize,
    /// Of those that have not shown a valid token.
    strangers: usize,
    /// Of one address. Loopback has no share of its own: behind a proxy on this machine everybody comes from there.
    address: usize,
}

impl Shares {
    fn of(most: usize) -> Self {
        let all = most.max(4);
        Self { all, strangers: all - all / 4, address: all / 2 }
    }
}

pub(crate) struct Pool {
    shares: Shares,
    started: Instant,
    open: Mutex<Open>,
}

/// Ids go up, so that the lowest is the oldest.
#[derive(Default)]
struct Open {
    last: u64,
    all: BTreeMap<u64, Arc<Connection>>,
    strangers: BTreeSet<u64>,
    by_address: HashMap<IpAddr, BTreeSet<u64>>,
}

/// One connection, as the pool and the calls on it see it.
pub(crate) struct Connection {
    pool: Arc<Pool>,
    id: u64,
    address: IpAddr,
    is_known: AtomicBool,
    calls: AtomicUsize,
    /// When its last call ended, or it was opened: milliseconds since the pool was made.
    idle_since: AtomicU64,
    let_go: CancellationToken,
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("id", &self.id)
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

/// Keeps the place in the pool until it is dropped.
pub(crate) struct Place(pub(crate) Arc<Connection>);

impl Pool {
    pub(crate) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { shares: Shares::of(most), started: Instant::now(), open: Mutex::default() })
    }

    /// A place for a newcomer, where there is one or somebody can be let go for it.
    pub(crate) fn admit(self: &Arc<Self>, address: IpAddr) -> Option<Place> {
        let address = network_of(address);
        let mut open = self.open.lock();
        let of_address = open.by_address.get(&address).map_or(0, BTreeSet::len);
        if !address.is_loopback() && of_address >= self.shares.address {
            let own = open.by_address.get(&address).into_iter().flatten();
            let goes = open.first_to_go(own.copied())?;
            open.let_go(goes);
        } else if open.all.len() >= self.shares.all || open.strangers.len() >= self.shares.strangers {
            let goes = open.first_stranger().or_else(|| open.first_to_go(open.all.keys().copied()))?;
            open.let_go(goes);
        }
        open.last += 1;
        let connection = Arc::new(Connection {
            pool: self.clone(),
            id: open.last,
            address,
            is_known: AtomicBool::new(false),
            calls: AtomicUsize::new(0),
            idle_since: AtomicU64::new(self.now()),
            let_go: CancellationToken::new(),
        });
        open.all.insert(connection.id, connection.clone());
        open.strangers.insert(connection.id);
        open.by_address.entry(address).or_default().insert(connection.id);
        Some(Place(connection))
    }

    fn now(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX)
    }
}

impl Open {
    fn first_stranger(&self) -> Option<u64> {
        let is_silent = |id: &&u64| self.all.get(*id).is_some_and(|connection| connection.is_silent());
        self.strangers.iter().find(is_silent).or(self.strangers.first()).copied()
    }

    /// Of these, oldest first: a silent stranger, any stranger, or one between two calls. Nobody whose call is under way
    /// and who has shown a token.
    fn first_to_go(&self, ids: impl Iterator<Item = u64>) -> Option<u64> {
        let (mut stranger, mut idle) = (None, None);
        for connection in ids.filter_map(|id| self.all.get(&id)) {
            match (connection.is_known.load(Ordering::SeqCst), connection.is_silent()) {
                (false, true) => return Some(connection.id),
                (false, false) => stranger = stranger.or(Some(connection.id)),
                (true, true) => idle = idle.or(Some(connection.id)),
                (true, false) => {}
            }
        }
        stranger.or(idle)
    }

    fn let_go(&mut self, id: u64) {
        if let Some(connection) = self.all.get(&id).cloned() {
            connection.let_go.cancel();
            self.remove(&connection);
        }
    }

    fn remove(&mut self, connection: &Connection) {
        self.all.remove(&connection.id);
        self.strangers.remove(&connection.id);
        if let Some(own) = self.by_address.get_mut(&connection.address) {
            own.remove(&connection.id);
            if own.is_empty() {
                self.by_address.remove(&connection.address);
            }
        }
    }
}

impl Connection {
    /// The token of a call was valid: from now on it is nobody's to be let go for a stranger.
    pub(crate) fn has_shown_a_token(extensions: &Extensions) {
        let Some(connection) = extensions.get::<Arc<Self>>() else { return };
        if !connection.is_known.swap(true, Ordering::SeqCst) {
            connection.pool.open.lock().strangers.remove(&connection.id);
        }
    }

    fn is_silent(&self) -> bool {
        self.calls.load(Ordering::SeqCst) == 0
    }

    /// Until what is returned is dropped.
    pub(crate) fn begin_call(self: &Arc<Self>) -> Call {
        self.calls.fetch_add(1, Ordering::SeqCst);
        Call(self.clone())
    }

    /// Ends when it has to make room.
    pub(crate) async fn let_go(&self) {
        self.let_go.cancelled().await;
    }

    /// Ends when no call was under way for so long.
    pub(crate) async fn was_idle_for(&self, stranger: Duration, known: Duration) {
        loop {
            let limit = if self.is_known.load(Ordering::SeqCst) { known } else { stranger };
            let since = Duration::from_millis(self.idle_since.load(Ordering::SeqCst));
            let idle = if self.is_silent() {
                self.pool.started.elapsed().saturating_sub(since)
            } else {
                Duration::ZERO
            };
            if idle >= limit {
                return;
            }
            tokio::time::sleep(limit.saturating_sub(idle)).await;
        }
    }
}

/// A call under way, its answer included.
pub(crate) struct Call(Arc<Connection>);

impl Drop for Call {
    fn drop(&mut self) {
        self.0.idle_since.store(self.0.pool.now(), Ordering::SeqCst);
        self.0.calls.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.pool.open.lock().remove(&self.0);
    }
}

/// What counts as one address: with IPv6 everybody has a whole /64.
fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(six) if !six.is_loopback() => {
            let [a, b, c, d, ..] = six.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(last: u8) -> IpAddr {
        [10, 0, 0, last].into()
    }

    fn know(place: &Place) {
        let mut extensions = Extensions::new();
        extensions.insert(place.0.clone());
        Connection::has_shown_a_token(&extensions);
    }

    fn is_open(place: &Place) -> bool {
        !place.0.let_go.is_cancelled()
    }

    #[tokio::test]
    async fn strangers_go_first_the_oldest_silent_one_before_others() {
        let pool = Pool::new(8);
        let known = pool.admit(at(1)).unwrap();
        know(&known);
        let strangers: Vec<_> = (2..8).map(|last| pool.admit(at(last)).unwrap()).collect();
        let _call = strangers[0].0.begin_call();
        let more = pool.admit(at(9)).unwrap();
        assert!(is_open(&known) && is_open(&strangers[0]) && is_open(&more));
        assert!(!is_open(&strangers[1]), "the oldest that says nothing");
        assert_eq!(strangers.iter().filter(|place| is_open(place)).count(), 5);
    }

    #[tokio::test]
    async fn strangers_leave_a_quarter_to_those_with_tokens() {
        let pool = Pool::new(8);
        let strangers: Vec<_> = (0..100).map(|last| pool.admit(at(last)).unwrap()).collect();
        assert_eq!(strangers.iter().filter(|place| is_open(place)).count(), 6);
    }

    #[tokio::test]
    async fn an_address_has_half_of_it_unless_it_is_this_machine() {
        let pool = Pool::new(8);
        let from_one: Vec<_> = (0..20).map(|_| pool.admit(at(1)).unwrap()).collect();
        assert_eq!(from_one.iter().filter(|place| is_open(place)).count(), 4);
        let here: Vec<_> = (0..20).map(|_| pool.admit([127, 0, 0, 1].into()).unwrap()).collect();
        assert_eq!(here.iter().filter(|place| is_open(place)).count(), 6);
    }

    #[tokio::test]
    async fn calls_of_known_callers_are_not_cut_for_anybody() {
        let pool = Pool::new(8);
        let places: Vec<_> = (0..8).map(|last| pool.admit(at(last)).unwrap()).inspect(know).collect();
        let calls: Vec<_> = places.iter().map(|place| place.0.begin_call()).collect();
        assert!(pool.admit(at(9)).is_none(), "all of it is in use");
        drop(calls);
        assert!(pool.admit(at(9)).is_some());
        assert!(!is_open(&places[0]), "the oldest that has nothing under way");
        drop(places);
        assert_eq!(pool.open.lock().all.len(), 0);
    }

    #[test]
    fn a_network_of_ipv6_counts_as_one_address() {
        let of = |text: &str| network_of(text.parse().unwrap());
        assert_eq!(of("2001:db8:1:2:3::4"), of("2001:db8:1:2:ffff::1"));
        assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
        assert_eq!(of("::ffff:10.0.0.1"), at(1));
        assert!(of("::1").is_loopback());
    }
}
