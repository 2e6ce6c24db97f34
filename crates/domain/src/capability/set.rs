//! Capabilities with numbers: what a factory has how many of, and what a job uses how many of.
//!
//! On a factory no number means as many as anybody asks for; on a job it means one. Everything that compares the two sides
//! is here, so that store, scheduler and agent cannot disagree.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use serde::{Deserialize, Serialize};

use super::Capability;
use crate::id::IdError;

/// The most that a factory can have, or a job ask for, of one capability.
const MOST_UNITS: u32 = 10_000;

/// Sorted, so that equal sets print, hash and compare alike.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct CapabilitySet(BTreeMap<Capability, Option<NonZeroU32>>);

/// How many of each capability the jobs that a factory holds use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnitsInUse(BTreeMap<Capability, u32>);

impl UnitsInUse {
    pub fn of(&self, capability: &Capability) -> u32 {
        self.0.get(capability).copied().unwrap_or(0)
    }

    /// A job that asks for this is held there now.
    pub fn take(&mut self, needs: &CapabilitySet) {
        for (capability, units) in needs.countable() {
            let used = self.0.entry(capability.clone()).or_default();
            *used = used.saturating_add(units);
        }
    }

    /// A job that asks for this is no longer held there.
    pub fn give_back(&mut self, needs: &CapabilitySet) {
        for (capability, units) in needs.countable() {
            if let Some(used) = self.0.get_mut(capability) {
                *used = used.saturating_sub(units);
            }
        }
        self.0.retain(|_, used| *used > 0);
    }
}

impl CapabilitySet {
    pub fn new() -> Self {
        Self::default()
    }

    /// Parses each token, `gpu` or `gpu:a100=2`; the first bad one is the error.
    pub fn parse<S: AsRef<str>>(tokens: impl IntoIterator<Item = S>) -> Result<Self, IdError> {
        let mut set = Self::new();
        for token in tokens {
            set.insert_token(token.as_ref())?;
        }
        Ok(set)
    }

    /// One token, with its number where it has one. Of two numbers for the same capability the larger counts.
    pub fn insert_token(&mut self, token: &str) -> Result<(), IdError> {
        let Some((name, number)) = token.split_once('=') else {
            self.insert(token.parse()?);
            return Ok(());
        };
        let refused = |why: &'static str| IdError::new("capability", token, why);
        let name: Capability = name.parse().map_err(|_| refused(Capability::GRAMMAR))?;
        if !name.is_countable() {
            return Err(refused(
                "engines, repositories, tools and systems are there or not: write it without a number",
            ));
        }
        let number = number.parse::<NonZeroU32>().ok().filter(|number| number.get() <= MOST_UNITS);
        let number = number.ok_or_else(|| {
            refused("the number after `=` is a whole number from 1 to 10000, as in gpu:a100=2")
        })?;
        let known = self.0.entry(name).or_default();
        *known = (*known).max(Some(number));
        Ok(())
    }

    /// Without a number; one that is there with a number stays as it is.
    pub fn insert(&mut self, capability: Capability) -> bool {
        let before = self.0.len();
        self.0.entry(capability).or_default();
        self.0.len() > before
    }

    /// For what may not be a capability after all.
    pub fn extend(&mut self, more: impl IntoIterator<Item = Capability>) {
        for capability in more {
            self.insert(capability);
        }
    }

    pub fn contains(&self, capability: &Capability) -> bool {
        self.0.contains_key(capability)
    }

    /// How many of it there are, where there is a number.
    pub fn units(&self, capability: &Capability) -> Option<u32> {
        self.0.get(capability).copied().flatten().map(NonZeroU32::get)
    }

    /// Those with a number.
    pub fn counted(&self) -> impl Iterator<Item = (&Capability, u32)> {
        self.0.iter().filter_map(|(capability, number)| Some((capability, (*number)?.get())))
    }

    /// Of a job: how many of each it uses.
    pub fn needs(&self) -> impl Iterator<Item = (&Capability, u32)> {
        self.0.iter().map(|(capability, number)| (capability, number.map_or(1, NonZeroU32::get)))
    }

    /// The same for those that a factory may have a number of.
    pub fn countable(&self) -> impl Iterator<Item = (&Capability, u32)> {
        self.needs().filter(|(capability, _)| capability.is_countable())
    }

    /// Whether the factory has all that the job asks for here, used or not.
    pub fn is_subset(&self, factory: &Self) -> bool {
        self.missing_from(factory).next().is_none()
    }

    /// What the job asks for here and the factory has not, or not that many, in order.
    pub fn missing_from<'a>(&'a self, factory: &'a Self) -> impl Iterator<Item = &'a Capability> {
        let has = |capability: &Capability, wanted: u32| match factory.0.get(capability) {
            None => false,
            Some(None) => true,
            Some(Some(number)) => wanted <= number.get(),
        };
        self.needs().filter(move |(capability, wanted)| !has(capability, *wanted)).map(|(missing, _)| missing)
    }

    /// What the job asks for here and another job does not, or for fewer.
    pub fn beyond<'a>(&'a self, job: &'a Self) -> impl Iterator<Item = &'a Capability> {
        let asks = |capability: &Capability| job.0.get(capability).map(|n| n.map_or(1, NonZeroU32::get));
        self.needs()
            .filter(move |(capability, wanted)| asks(capability).is_none_or(|asked| asked < *wanted))
            .map(|(more, _)| more)
    }

    /// What the job asks for here and the factory has too few of left; the number is how many are left.
    pub fn short_of<'a>(
        &'a self,
        factory: &'a Self,
        in_use: &'a UnitsInUse,
    ) -> impl Iterator<Item = (&'a Capability, u32)> {
        self.needs().filter_map(move |(capability, wanted)| {
            let left = factory.units(capability)?.saturating_sub(in_use.of(capability));
            (left < wanted).then_some((capability, left))
        })
    }

    /// What both have; of two numbers the smaller.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let both = |(capability, number): (&Capability, &Option<NonZeroU32>)| {
            let limit = *other.0.get(capability)?;
            Some((capability.clone(), [*number, limit].into_iter().flatten().min()))
        };
        Self(self.0.iter().filter_map(both).collect())
    }

    /// Everything of both; of two numbers the larger.
    #[must_use]
    pub fn union(mut self, other: &Self) -> Self {
        for (capability, number) in &other.0 {
            let known = self.0.entry(capability.clone()).or_default();
            *known = (*known).max(*number);
        }
        self
    }

    #[must_use]
    pub fn without(&self, left_out: impl Fn(&Capability) -> bool) -> Self {
        Self(self.0.iter().filter(|(name, _)| !left_out(name)).map(|(name, n)| (name.clone(), *n)).collect())
    }

    /// Without the numbers.
    pub fn iter(&self) -> impl Iterator<Item = &Capability> {
        self.0.keys()
    }

    /// As they are written, with the numbers.
    pub fn tokens(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|(capability, number)| token(capability, *number))
    }

    /// One as it is written here.
    pub fn token(&self, capability: &Capability) -> String {
        token(capability, self.0.get(capability).copied().flatten())
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn token(capability: &Capability, number: Option<NonZeroU32>) -> String {
    match number {
        Some(number) => format!("{capability}={number}"),
        None => capability.to_string(),
    }
}

impl FromIterator<Capability> for CapabilitySet {
    fn from_iter<I: IntoIterator<Item = Capability>>(iter: I) -> Self {
        Self(iter.into_iter().map(|capability| (capability, None)).collect())
    }
}

impl TryFrom<Vec<String>> for CapabilitySet {
    type Error = IdError;
    fn try_from(tokens: Vec<String>) -> Result<Self, IdError> {
        Self::parse(tokens)
    }
}

impl From<CapabilitySet> for Vec<String> {
    fn from(set: CapabilitySet) -> Self {
        set.tokens().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(tokens: &[&str]) -> CapabilitySet {
        CapabilitySet::parse(tokens).unwrap()
    }

    #[track_caller]
    fn names<'a>(found: impl Iterator<Item = &'a Capability>, expected: &[&str]) {
        assert_eq!(found.map(Capability::as_str).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn missing_names_exactly_what_is_missing() {
        let wants = set(&["os:linux", "build"]);
        let has = set(&["engine:shell", "os:linux"]);
        assert!(!wants.is_subset(&has));
        names(wants.missing_from(&has), &["build"]);
    }

    #[test]
    fn no_number_is_one_for_a_job_and_any_number_on_a_factory() {
        assert!(set(&["gpu"]).is_subset(&set(&["gpu=1"])));
        assert!(set(&["gpu=64"]).is_subset(&set(&["gpu"])));
        assert!(set(&["gpu=2"]).is_subset(&set(&["gpu=2"])));
        names(set(&["gpu=3", "os:linux"]).missing_from(&set(&["gpu=2", "os:linux"])), &["gpu"]);
    }

    #[test]
    fn a_job_is_short_of_what_others_use() {
        let has = set(&["gpu=2", "license=1", "disk"]);
        let wants = set(&["gpu", "license", "disk=5"]);
        let mut in_use = UnitsInUse::default();
        in_use.take(&set(&["gpu", "os:linux", "disk"]));
        assert_eq!(wants.short_of(&has, &in_use).count(), 0);
        in_use.take(&set(&["gpu"]));
        let short: Vec<_> = wants.short_of(&has, &in_use).map(|(c, left)| (c.as_str(), left)).collect();
        assert_eq!(short, [("gpu", 0)]);
        in_use.give_back(&set(&["gpu"]));
        assert_eq!(wants.short_of(&has, &in_use).count(), 0);
        in_use.give_back(&set(&["gpu", "disk"]));
        assert_eq!(in_use, UnitsInUse::default());
    }

    #[test]
    fn a_child_asks_for_no_more_than_its_parent() {
        names(set(&["gpu=2", "xcode"]).beyond(&set(&["gpu", "xcode"])), &["gpu"]);
        names(set(&["gpu", "figma"]).beyond(&set(&["gpu=2"])), &["figma"]);
    }

    #[test]
    fn numbers_survive_both_ways_and_nonsense_is_refused() {
        let known = set(&["gpu", "gpu=2", "os:linux"]);
        assert_eq!(serde_json::to_string(&known).unwrap(), r#"["gpu=2","os:linux"]"#);
        assert_eq!(serde_json::from_str::<CapabilitySet>(r#"["os:linux","gpu=2"]"#).unwrap(), known);
        assert_eq!(set(&["gpu=4"]).intersection(&set(&["gpu=3"])), set(&["gpu=3"]));
        assert_eq!(set(&["gpu=4"]).intersection(&set(&["gpu"])), set(&["gpu=4"]), "a scope need not count");
        assert_eq!(set(&["gpu"]).union(&set(&["gpu=4", "xcode"])), set(&["gpu=4", "xcode"]));
        for bad in
            ["gpu=0", "gpu=", "gpu=-1", "gpu=1.5", "gpu=10001", "gpu=2=3", "=2", "os:linux=2", "repo:a=1"]
        {
            assert!(CapabilitySet::parse([bad]).is_err(), "{bad}");
        }
    }
}
