//! Money: one type from the manifest to the ledger, the wire and the screen.
//!
//! Kept in millionths of a dollar, so sums are exact. Nobody else converts: people write `2.50`, JSON carries the number of
//! dollars, databases and stored JSON carry the millionths ([`as_micros`]). Sums saturate instead of wrapping.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Mul, Neg, Sub};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

const MICROS_PER_DOLLAR: i64 = 1_000_000;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Usd(i64);

/// What was written is not an amount of dollars.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be dollars such as 2.50, with six decimals at most")]
pub struct UsdError;

impl Usd {
    pub const ZERO: Self = Self(0);
    /// Nothing smaller can be spent.
    pub const LEAST: Self = Self(1);
    pub const MAX: Self = Self(i64::MAX);

    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    pub const fn micros(self) -> i64 {
        self.0
    }

    pub const fn from_dollars(dollars: i64) -> Self {
        Self(dollars.saturating_mul(MICROS_PER_DOLLAR))
    }

    /// The nearest millionth. A double has more digits than that for any sum below a billion, so the nearest is the
    /// one that was written. `None` for what is not a number, or too much for one.
    pub fn from_f64(dollars: f64) -> Option<Self> {
        let micros = (dollars * MICROS_PER_DOLLAR as f64).round();
        (micros.abs() < 2f64.powi(53)).then_some(Self(micros as i64))
    }

    /// The amount that was written, where it has six decimals at most.
    pub fn exactly(dollars: f64) -> Option<Self> {
        Self::from_f64(dollars).filter(|usd| usd.as_f64().to_bits() == dollars.to_bits())
    }

    /// For JSON, gauges and charts; everything else computes with the millionths.
    pub fn as_f64(self) -> f64 {
        self.0 as f64 / MICROS_PER_DOLLAR as f64
    }

    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    pub const fn is_negative(self) -> bool {
        self.0 < 0
    }

    #[must_use]
    pub const fn abs(self) -> Self {
        Self(self.0.saturating_abs())
    }

    /// What is left of this after `used`: never less than nothing.
    #[must_use]
    pub const fn less(self, used: Self) -> Self {
        let left = self.0.saturating_sub(used.0);
        Self(if left < 0 { 0 } else { left })
    }

    /// Which part of `whole` this is, for scores and bars.
    pub fn part_of(self, whole: Self) -> f64 {
        self.0 as f64 / whole.0 as f64
    }

    /// Rounded up, so that what is advised is enough.
    #[must_use]
    pub const fn up_to_the_cent(self) -> Self {
        const CENT: i64 = MICROS_PER_DOLLAR / 100;
        let beyond = self.0.rem_euclid(CENT);
        Self(if beyond == 0 { self.0 } else { self.0.saturating_add(CENT - beyond) })
    }
}

impl Add for Usd {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Usd {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Usd {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl Mul<Usd> for i64 {
    type Output = Usd;
    fn mul(self, each: Usd) -> Usd {
        Usd(each.0.saturating_mul(self))
    }
}

impl Neg for Usd {
    type Output = Self;
    fn neg(self) -> Self {
        Self(self.0.saturating_neg())
    }
}

impl Sum for Usd {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::ZERO, Add::add)
    }
}

/// `$2.50`; a fraction of a cent only where there is one. `{:#}` leaves the dollar sign out, as on a command line.
impl fmt::Display for Usd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let micros = self.0.unsigned_abs();
        let (dollars, rest) = (micros / MICROS_PER_DOLLAR as u64, micros % MICROS_PER_DOLLAR as u64);
        let minus = if self.is_negative() { "-" } else { "" };
        let sign = if f.alternate() { "" } else { "$" };
        if rest.is_multiple_of(10_000) {
            write!(f, "{minus}{sign}{dollars}.{:02}", rest / 10_000)
        } else {
            let decimals = format!("{rest:06}");
            write!(f, "{minus}{sign}{dollars}.{}", decimals.trim_end_matches('0'))
        }
    }
}

/// `2.5`, `2.50`, `$2.50`, `-0.10`: exactly what is written, or refused.
impl FromStr for Usd {
    type Err = UsdError;
    fn from_str(text: &str) -> Result<Self, UsdError> {
        let (minus, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let text = text.strip_prefix('$').unwrap_or(text);
        let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(decimals) || decimals.len() > 6 {
            return Err(UsdError);
        }
        let dollars: i64 = whole.parse().map_err(|_| UsdError)?;
        let rest: i64 = format!("{decimals:0<6}").parse().map_err(|_| UsdError)?;
        let micros = dollars.checked_mul(MICROS_PER_DOLLAR).and_then(|micros| micros.checked_add(rest));
        micros.map(|micros| Self(if minus { -micros } else { micros })).ok_or(UsdError)
    }
}

/// The number of dollars.
impl Serialize for Usd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.as_f64())
    }
}

impl<'de> Deserialize<'de> for Usd {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_f64(f64::deserialize(deserializer)?).ok_or_else(|| serde::de::Error::custom(UsdError))
    }
}

/// Only what is written with six decimals at most; the rest is refused, not rounded. For `deserialize_with`.
pub fn exact<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Usd, D::Error> {
    Usd::exactly(f64::deserialize(deserializer)?).ok_or_else(|| serde::de::Error::custom(UsdError))
}

/// The same where there may be none.
pub fn exact_or_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Usd>, D::Error> {
    #[derive(Deserialize)]
    struct Exact(#[serde(deserialize_with = "exact")] Usd);
    Ok(Option::<Exact>::deserialize(deserializer)?.map(|Exact(usd)| usd))
}

/// How it is stored: the millionths, never negative.
#[derive(Clone, Copy)]
pub(crate) struct Micros(pub(crate) Usd);

impl Serialize for Micros {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.micros().serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Micros {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let micros = i64::deserialize(deserializer)?;
        let refused = || serde::de::Error::custom("an amount is never negative");
        (micros >= 0).then_some(Self(Usd(micros))).ok_or_else(refused)
    }
}

/// `#[serde(with = "usd::as_micros")]` for what is stored.
pub mod as_micros {
    use super::{Deserialize, Deserializer, Micros, Serialize, Serializer, Usd};

    pub fn serialize<S: Serializer>(usd: &Usd, serializer: S) -> Result<S::Ok, S::Error> {
        Micros(*usd).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Usd, D::Error> {
        Micros::deserialize(deserializer).map(|Micros(usd)| usd)
    }

    /// The same where there may be none.
    pub mod option {
        use super::{Deserialize, Deserializer, Micros, Serialize, Serializer, Usd};

        pub fn serialize<S: Serializer>(usd: &Option<Usd>, serializer: S) -> Result<S::Ok, S::Error> {
            usd.map(Micros).serialize(serializer)
        }

        pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Usd>, D::Error> {
            Ok(Option::<Micros>::deserialize(deserializer)?.map(|Micros(usd)| usd))
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn shown_as_people_write_it() {
        for (micros, text) in [
            (0, "$0.00"),
            (2_500_000, "$2.50"),
            (1, "$0.000001"),
            (1_234_500, "$1.2345"),
            (-70_000, "-$0.07"),
            (1_000_000_000_000, "$1000000.00"),
        ] {
            assert_eq!(Usd::from_micros(micros).to_string(), text);
            assert_eq!(text.parse(), Ok(Usd::from_micros(micros)));
        }
        assert_eq!(format!("{:#}", Usd::from_micros(2_500_000)), "2.50");
        assert_eq!("2.5".parse(), Ok(Usd::from_micros(2_500_000)));
        for bad in
            ["", "$", ".", "2.", ".5", "1e3", "2,50", "1.0000001", "--1", "$-1", " 1", "99999999999999999"]
        {
            assert_eq!(bad.parse::<Usd>(), Err(UsdError), "{bad}");
        }
    }

    #[test]
    fn nothing_wraps_and_nothing_left_is_zero() {
        assert_eq!(Usd::MAX + Usd::from_dollars(1), Usd::MAX);
        assert_eq!([Usd::MAX, Usd::MAX].into_iter().sum::<Usd>(), Usd::MAX);
        assert_eq!(Usd::from_dollars(1).less(Usd::from_dollars(3)), Usd::ZERO);
        assert_eq!(Usd::from_dollars(1) - Usd::from_dollars(3), Usd::from_dollars(-2));
    }

    #[test]
    fn numbers_that_are_no_amount_are_refused() {
        for dollars in [f64::NAN, f64::INFINITY, -f64::INFINITY, 1e30] {
            assert_eq!(Usd::from_f64(dollars), None);
        }
    }

    proptest! {
        #[test]
        fn survives_text_and_json(micros in -1_000_000_000_000_000i64..1_000_000_000_000_000) {
            let usd = Usd::from_micros(micros);
            prop_assert_eq!(usd.to_string().parse(), Ok(usd));
            let json = serde_json::to_string(&usd).unwrap();
            prop_assert_eq!(serde_json::from_str::<Usd>(&json).unwrap(), usd);
        }
    }
}
