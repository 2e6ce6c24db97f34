//! Between domain types and what the driver speaks.

use std::error::Error;
use std::time::Duration;

use giga_domain::{JobId, Priority};
use giga_ports::{Clock, StoreError};
use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

use crate::postgres::ClockSource;
use crate::postgres::pipeline::Value;

/// A job's id as a UUID: the same 128 bits, in the same order.
#[derive(Debug, Clone, Copy)]
pub(super) struct Id(pub(super) JobId);

impl ToSql for Id {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        out.extend_from_slice(&self.0.as_u128().to_be_bytes());
        Ok(IsNull::No)
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::UUID
    }

    to_sql_checked!();
}

impl<'r> FromSql<'r> for Id {
    fn from_sql(_: &Type, raw: &'r [u8]) -> Result<Self, Box<dyn Error + Sync + Send>> {
        Ok(Self(JobId::from_u128(u128::from_be_bytes(raw.try_into()?))))
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::UUID
    }
}

/// A test's time; the server's own where there is none.
pub(super) fn now(clock: &ClockSource) -> Value {
    Box::new(match clock {
        ClockSource::Database => None,
        ClockSource::Injected(clock) => Some(Clock::now(&**clock).as_millis()),
    })
}

pub(super) fn array<T, I>(items: I) -> Value
where
    T: ToSql + Sync + Send + 'static,
    I: Iterator<Item = T>,
{
    Box::new(items.collect::<Vec<T>>())
}

/// For limits, where more than the database can count means all.
pub(super) fn limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

/// Longer than anybody waits, and still a time when it is added to one.
pub(super) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX).min(1 << 50)
}

pub(super) fn priority(rank: i16) -> Result<Priority, StoreError> {
    let priority = u8::try_from(rank).ok().and_then(Priority::from_rank);
    priority.ok_or_else(|| StoreError::broken_because(format!("topic_jobs.priority: {rank} is no priority")))
}
