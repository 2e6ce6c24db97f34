//! Pools and the factories that they start.

use super::NewEvent;
use crate::event::EventKind;
use crate::{FactoryId, Pool, PoolName, Timestamp, Usd};

impl NewEvent {
    pub fn pool_changed(before: Option<&Pool>, pool: &Pool) -> Self {
        let now = &pool.settings;
        let how = match before.map(|pool| &pool.settings) {
            None => format!("made: {} to {} factories by {}", now.min, now.max, now.driver),
            Some(was) if !was.paused && now.paused => "paused: it starts nothing".to_owned(),
            Some(was) if was.paused && !now.paused => "resumed".to_owned(),
            Some(_) => format!("changed: {} to {} factories by {}", now.min, now.max, now.driver),
        };
        Self::pool(EventKind::PoolChanged, &pool.name, &how)
    }

    pub fn pool_removed(pool: &PoolName) -> Self {
        Self::pool(EventKind::PoolRemoved, pool, "removed")
    }

    pub fn pool_starting(pool: &PoolName, factory: &FactoryId) -> Self {
        Self::member(EventKind::PoolStarting, pool, factory, &format!("starts factory {factory}"))
    }

    pub fn pool_joined(pool: &PoolName, factory: &FactoryId, took_ms: u64) -> Self {
        let how = format!("has factory {factory}, {:.1} s after it was ordered", took_ms as f64 / 1_000.0);
        Self::member(EventKind::PoolJoined, pool, factory, &how).with("tookMs", took_ms)
    }

    pub fn pool_start_failed(
        pool: &PoolName,
        factory: &FactoryId,
        why: &str,
        retry_at: Option<Timestamp>,
    ) -> Self {
        let how = format!("could not start factory {factory}: {}", super::first_line(why));
        Self::member(EventKind::PoolStartFailed, pool, factory, &how)
            .with("detail", why)
            .with_some("retryAt", retry_at.map(|at| at.to_string()))
    }

    pub fn pool_stopping(pool: &PoolName, factory: &FactoryId, why: &str) -> Self {
        let how = format!("stops factory {factory}: {}", super::first_line(why));
        Self::member(EventKind::PoolStopping, pool, factory, &how).with("detail", why)
    }

    /// `cost`: of all its hours, where they cost something.
    pub fn pool_left(pool: &PoolName, factory: &FactoryId, cost: Option<Usd>) -> Self {
        Self::member(EventKind::PoolLeft, pool, factory, &format!("is rid of factory {factory}"))
            .with_some("usdMicros", cost.map(Usd::micros))
    }

    fn member(kind: EventKind, pool: &PoolName, factory: &FactoryId, how: &str) -> Self {
        Self::pool(kind, pool, how).with("factoryId", factory.as_str())
    }

    fn pool(kind: EventKind, pool: &PoolName, how: &str) -> Self {
        Self::new(kind, format!("pool {pool} {how}")).with("pool", pool.as_str())
    }
}
