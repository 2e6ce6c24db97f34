//! Callers whose tokens nobody knows: remembered for a moment, and slowed, so that guessing costs the store nothing.
//!
//! An address may ask about so many unknown tokens, and all addresses together about so many more. Past that a token is
//! looked up only if it is among the live ones, whose list is read once in a while for everybody.

use std::collections::{HashMap, HashSet};
use std::future::Future;
use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use giga_domain::Timestamp;
use giga_domain::rate::{Bucket, Rate};
use giga_domain::token::TokenHash;
use parking_lot::Mutex;

/// Unknown tokens that one address may send.
const PER_PEER: Rate = Rate { per_second: 1.0, burst: 30.0 };
/// Look-ups of tokens that were never seen, of all addresses together: many of them may guess at once.
const TOGETHER: Rate = Rate { per_second: 100.0, burst: 1_000.0 };
/// What an attempt to sign in counts for: less than a guess, because a whole office may come from one address in the morning, and
/// the identity provider slows whoever guesses.
const KNOCK: f64 = 0.25;
/// How long a token stays unknown. It is forgotten as soon as any token is issued.
const UNKNOWN_FOR: Duration = Duration::from_secs(30);
const MOST_UNKNOWN: usize = 10_000;
const MOST_PEERS: usize = 10_000;
/// How old the list of live tokens may be. It is read only while somebody guesses.
const LISTED_FOR: Duration = Duration::from_secs(2);

#[derive(Default)]
pub(crate) struct Strangers {
    unknown: Mutex<HashMap<TokenHash, Timestamp>>,
    peers: Mutex<HashMap<IpAddr, Bucket>>,
    together: Mutex<Option<Bucket>>,
    listed: tokio::sync::Mutex<Option<(Timestamp, HashSet<TokenHash>)>>,
}

impl Strangers {
    pub(crate) fn is_unknown(&self, hash: &TokenHash, now: Timestamp) -> bool {
        self.unknown.lock().get(hash).is_some_and(|at| now.since(*at) < UNKNOWN_FOR)
    }

    pub(crate) fn remember_unknown(&self, hash: TokenHash, now: Timestamp) {
        let mut unknown = self.unknown.lock();
        if unknown.len() >= MOST_UNKNOWN {
            unknown.clear();
        }
        unknown.insert(hash, now);
    }

    pub(crate) fn forget_unknown(&self) {
        self.unknown.lock().clear();
    }

    /// May this address ask about a token that is not known here? If not, when again.
    pub(crate) fn ask(&self, hash: TokenHash, peer: IpAddr, now: Timestamp) -> Result<(), Duration> {
        self.take_from(peer, 1.0, now)?;
        if self.is_unknown(&hash, now) {
            return Ok(());
        }
        self.together.lock().get_or_insert_with(|| Bucket::full(TOGETHER, now)).take(TOGETHER, 1.0, now)
    }

    /// The same for somebody who has no token at all and wants one.
    pub(crate) fn knock(&self, peer: IpAddr, now: Timestamp) -> Result<(), Duration> {
        self.take_from(peer, KNOCK, now)?;
        self.together.lock().get_or_insert_with(|| Bucket::full(TOGETHER, now)).take(TOGETHER, KNOCK, now)
    }

    fn take_from(&self, peer: IpAddr, cost: f64, now: Timestamp) -> Result<(), Duration> {
        let mut peers = self.peers.lock();
        if peers.len() >= MOST_PEERS {
            peers.retain(|_, bucket| !bucket.is_full(PER_PEER, now));
        }
        if peers.len() >= MOST_PEERS {
            // Far more guess than are remembered; the bound on all of them stands.
            peers.clear();
        }
        let bucket = peers.entry(network(peer)).or_insert_with(|| Bucket::full(PER_PEER, now));
        bucket.take(PER_PEER, cost, now)
    }

    /// It was no stranger after all.
    pub(crate) fn was_known(&self, peer: IpAddr) {
        if let Some(bucket) = self.peers.lock().get_mut(&network(peer)) {
            bucket.give_back(PER_PEER, 1.0);
        }
        if let Some(bucket) = self.together.lock().as_mut() {
            bucket.give_back(TOGETHER, 1.0);
        }
    }

    /// Is it among the live tokens, by a list that is hardly old?
    pub(crate) async fn is_listed<E, F>(
        &self,
        hash: TokenHash,
        now: Timestamp,
        read: impl FnOnce() -> F,
    ) -> Result<bool, E>
    where
        F: Future<Output = Result<Vec<TokenHash>, E>>,
    {
        let mut listed = self.listed.lock().await;
        let fresh = listed.as_ref().is_some_and(|(at, _)| *at <= now && now.since(*at) < LISTED_FOR);
        if !fresh {
            *listed = Some((now, read().await?.into_iter().collect()));
        }
        Ok(listed.as_ref().is_some_and(|(_, hashes)| hashes.contains(&hash)))
    }
}

/// A host has a whole network of addresses in IPv6.
fn network(peer: IpAddr) -> IpAddr {
    match peer.to_canonical() {
        IpAddr::V6(address) => {
            let network = u128::from(address) & !u128::from(u64::MAX);
            IpAddr::V6(Ipv6Addr::from(network))
        }
        v4 @ IpAddr::V4(_) => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_host_cannot_change_its_address_to_start_again() {
        let of = |text: &str| network(text.parse().unwrap());
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:2"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let strangers = Strangers::default();
        let now = Timestamp::from_millis(0);
        for number in 0..25_000_u32 {
            let mut hex = format!("{number:x}");
            hex.insert_str(0, &"0".repeat(64 - hex.len()));
            strangers.remember_unknown(TokenHash::from_hex(&hex).unwrap(), now);
            let _ = strangers.take_from(IpAddr::V4(number.into()), 1.0, now);
        }
        assert!(strangers.unknown.lock().len() <= MOST_UNKNOWN);
        assert!(strangers.peers.lock().len() <= MOST_PEERS);
    }
}
