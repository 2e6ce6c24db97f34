//! The terms of a score, and how much each counts.
//!
//! How a term is computed is one match in the scheduler; everything else that names the terms goes through
//! [`ScoreTerm::ALL`].

use std::fmt;
use std::ops::{Index, IndexMut};

use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use strum::{Display, EnumString, IntoStaticStr, VariantArray};

use crate::word::words;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Display, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "camelCase", const_into_str)]
#[strum(parse_err_ty = crate::id::IdError, parse_err_fn = Self::unknown)]
pub enum ScoreTerm {
    CapabilityFit,
    Affinity,
    Load,
    CostFit,
    Health,
    /// Of a job that may use several engines: how far down its list the one is that is open there.
    EngineFit,
    Starvation,
}

words!(ScoreTerm, "score term");

impl ScoreTerm {
    const WORDS: [&'static str; Self::ALL.len()] = {
        let mut words = [""; Self::ALL.len()];
        let mut at = 0;
        while at < words.len() {
            words[at] = Self::ALL[at].as_str();
            at += 1;
        }
        words
    };

    /// What people read for it.
    pub const fn label(self) -> &'static str {
        match self {
            Self::CapabilityFit => "capability fit",
            Self::CostFit => "cost fit",
            Self::EngineFit => "engine fit",
            Self::Affinity | Self::Load | Self::Health | Self::Starvation => self.as_str(),
        }
    }

    /// For a product that sets no weight of its own.
    pub const fn default_weight(self) -> f64 {
        match self {
            Self::CapabilityFit | Self::Load | Self::Health | Self::EngineFit => 1.0,
            Self::Affinity => 0.5,
            Self::CostFit => 0.75,
            Self::Starvation => 1.5,
        }
    }
}

/// One value for every term, written by name.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct PerTerm<T>([T; ScoreTerm::ALL.len()]);

impl<T> PerTerm<T> {
    pub fn of(value: impl FnMut(ScoreTerm) -> T) -> Self {
        Self(ScoreTerm::ALL.map(value))
    }

    pub fn iter(&self) -> impl Iterator<Item = (ScoreTerm, &T)> {
        ScoreTerm::ALL.into_iter().zip(&self.0)
    }
}

impl<T> Index<ScoreTerm> for PerTerm<T> {
    type Output = T;
    fn index(&self, term: ScoreTerm) -> &T {
        &self.0[term as usize]
    }
}

impl<T> IndexMut<ScoreTerm> for PerTerm<T> {
    fn index_mut(&mut self, term: ScoreTerm) -> &mut T {
        &mut self.0[term as usize]
    }
}

impl<T: Serialize> Serialize for PerTerm<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter().map(|(term, value)| (term.as_str(), value)))
    }
}

/// How much each term of a score counts for a product's jobs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Weights(PerTerm<f64>);

impl Weights {
    /// The same with another weight for one term.
    #[must_use]
    pub fn with(mut self, term: ScoreTerm, weight: f64) -> Self {
        self[term] = weight;
        self
    }
}

impl From<PerTerm<f64>> for Weights {
    fn from(weights: PerTerm<f64>) -> Self {
        Self(weights)
    }
}

impl Default for Weights {
    fn default() -> Self {
        Self(PerTerm::of(ScoreTerm::default_weight))
    }
}

impl std::ops::Deref for Weights {
    type Target = PerTerm<f64>;
    fn deref(&self) -> &PerTerm<f64> {
        &self.0
    }
}

impl std::ops::DerefMut for Weights {
    fn deref_mut(&mut self) -> &mut PerTerm<f64> {
        &mut self.0
    }
}

/// Terms that are left out have their default weight.
impl<'de> Deserialize<'de> for Weights {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ByName;

        impl<'de> Visitor<'de> for ByName {
            type Value = Weights;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("struct Weights")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Weights, A::Error> {
                let mut given = PerTerm::<Option<f64>>::default();
                while let Some(name) = map.next_key::<String>()? {
                    let term: ScoreTerm =
                        name.parse().map_err(|_| A::Error::unknown_field(&name, &ScoreTerm::WORDS))?;
                    if given[term].replace(map.next_value()?).is_some() {
                        return Err(A::Error::duplicate_field(term.as_str()));
                    }
                }
                Ok(Weights(PerTerm::of(|term| given[term].unwrap_or(term.default_weight()))))
            }
        }

        deserializer.deserialize_map(ByName)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_written_by_name_and_those_left_out_are_the_default() {
        let text = r#"{"capabilityFit":1.0,"affinity":0.5,"load":1.0,"costFit":0.75,"health":1.0,"engineFit":1.0,"starvation":1.5}"#;
        assert_eq!(serde_json::to_string(&Weights::default()).unwrap(), text);
        let read = |text| serde_json::from_str::<Weights>(text).map_err(|error| error.to_string());
        assert_eq!(read("{}"), Ok(Weights::default()));
        let some = Weights::default().with(ScoreTerm::CostFit, 3.0);
        assert_eq!(read(r#"{"costFit":3}"#), Ok(some));
        assert!(
            read(r#"{"speed":1}"#).unwrap_err().starts_with("unknown field `speed`, expected one of `cap")
        );
        assert!(read(r#"{"load":1,"load":2}"#).unwrap_err().starts_with("duplicate field `load`"));
    }
}
