//! Points in time as the store keeps them: whole milliseconds since 1970, UTC.
//!
//! There is no `now()` here or anywhere below the composition root; time is an argument.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::id::IdError;

#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    pub const ZERO: Self = Self(0);

    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    pub const fn as_millis(self) -> i64 {
        self.0
    }

    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }

    #[must_use]
    pub fn minus(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }

    /// How long after `earlier` this is; zero when it is not after it.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(self.0.saturating_sub(earlier.0).max(0).cast_unsigned())
    }
}

impl FromStr for Timestamp {
    type Err = IdError;
    fn from_str(text: &str) -> Result<Self, IdError> {
        text.parse::<jiff::Timestamp>().map(|t| Self(t.as_millisecond())).map_err(|_| {
            IdError::new("time", text, "times are RFC 3339 with a zone, such as 2026-12-01T09:00:00Z")
        })
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(t) => write!(f, "{t:.3}"),
            Err(_) => write!(f, "{}ms", self.0),
        }
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rfc3339_both_ways() {
        let t: Timestamp = "2026-12-01T09:00:00Z".parse().unwrap();
        assert_eq!(t.to_string(), "2026-12-01T09:00:00.000Z");
        assert_eq!("2026-12-01T10:00:00+01:00".parse::<Timestamp>(), Ok(t));
        assert!("tomorrow".parse::<Timestamp>().is_err());
        assert!("2026-12-01T09:00:00".parse::<Timestamp>().is_err(), "a zone is required");
    }

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Timestamp::from_millis(5).since(Timestamp::from_millis(9)), Duration::ZERO);
        assert_eq!(Timestamp::from_millis(i64::MAX).plus(Duration::from_secs(1)).as_millis(), i64::MAX);
    }
}
