//! What tokens cost, for engines that count them and name no dollars.
//!
//! An estimate that guards budgets, never a bill. A model that the table does not know is counted at a dear price
//! and the log says so, so that a new model cannot run past a cap unnoticed.

use std::collections::BTreeMap;

use giga_domain::Usd;
use serde::Deserialize;

/// Dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Price {
    pub input: f64,
    pub cached_input: f64,
    pub output: f64,
}

/// Tokens by what they cost. The three parts do not overlap.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Tokens {
    pub(super) input: u64,
    pub(super) cached_input: u64,
    pub(super) output: u64,
}

impl Tokens {
    pub(super) const fn sum(self) -> u64 {
        self.input.saturating_add(self.cached_input).saturating_add(self.output)
    }

    /// The larger of each.
    pub(super) fn at_least(self, other: Self) -> Self {
        Self {
            input: self.input.max(other.input),
            cached_input: self.cached_input.max(other.cached_input),
            output: self.output.max(other.output),
        }
    }

    pub(super) const fn plus(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            cached_input: self.cached_input.saturating_add(other.cached_input),
            output: self.output.saturating_add(other.output),
        }
    }

    pub(super) const fn less(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_sub(other.input),
            cached_input: self.cached_input.saturating_sub(other.cached_input),
            output: self.output.saturating_sub(other.output),
        }
    }
}

impl Price {
    /// A million tokens and a million micro-dollars cancel out.
    pub(super) fn cost(self, tokens: Tokens) -> Usd {
        let part = |count: u64, price: f64| count as f64 * price.max(0.0);
        let micros = part(tokens.input, self.input)
            + part(tokens.cached_input, self.cached_input)
            + part(tokens.output, self.output);
        Usd::from_micros(micros.ceil() as i64)
    }
}

const fn price(input: f64, cached_input: f64, output: f64) -> Price {
    Price { input, cached_input, output }
}

/// Dollars per million tokens as the vendors listed them on 18 November 2026 for ordinary requests (developers.openai.com,
/// ai.google.dev, platform.claude.com), by the beginning of the model's name. Dearer tiers (long prompts, fast modes) and
/// writes to a cache are not told apart. One model in two lines is a family and an exception to it.
const LISTED: [(&str, Price); 40] = [
    ("claude-haiku", price(1.0, 0.1, 5.0)),
    ("claude-haiku-5-5", price(0.1, 0.01, 0.5)),
    ("claude-opus", price(5.0, 0.5, 25.0)),
    ("claude-opus-4-1", price(15.0, 1.5, 75.0)),
    ("claude-opus-5-5", price(4.0, 0.2, 20.0)),
    ("claude-sonnet", price(3.0, 0.3, 15.0)),
    ("claude-sonnet-5", price(2.0, 0.2, 10.0)),
    ("claude-sonnet-5-5", price(2.0, 0.1, 10.0)),
    ("codex-mini", price(1.5, 0.375, 6.0)),
    ("gemini-2.5-flash", price(0.3, 0.03, 2.5)),
    ("gemini-2.5-flash-lite", price(0.1, 0.01, 0.4)),
    ("gemini-2.5-pro", price(1.25, 0.125, 10.0)),
    ("gemini-3-flash", price(0.5, 0.05, 3.0)),
    ("gemini-3-pro", price(2.0, 0.2, 12.0)),
    ("gemini-3.1-flash-lite", price(0.25, 0.025, 1.5)),
    ("gemini-3.1-pro", price(2.0, 0.2, 12.0)),
    ("gemini-3.5-flash-lite", price(0.3, 0.03, 2.5)),
    // Until the end of 2026; twice that afterwards.
    ("gemini-3.7-flash", price(0.75, 0.075, 3.75)),
    ("gemini-3.8-flash", price(0.75, 0.075, 3.75)),
    ("gpt-4.1", price(2.0, 0.5, 8.0)),
    ("gpt-5", price(1.25, 0.125, 10.0)),
    ("gpt-5-mini", price(0.25, 0.025, 2.0)),
    ("gpt-5.1", price(1.25, 0.125, 10.0)),
    ("gpt-5.2", price(1.75, 0.175, 14.0)),
    ("gpt-5.3", price(1.75, 0.175, 14.0)),
    ("gpt-5.4", price(2.5, 0.25, 15.0)),
    ("gpt-5.4-mini", price(0.75, 0.075, 4.5)),
    ("gpt-5.4-nano", price(0.2, 0.02, 1.25)),
    ("gpt-5.5", price(5.0, 0.5, 30.0)),
    ("gpt-5.6", price(5.0, 0.5, 30.0)),
    ("gpt-5.6-luna", price(0.2, 0.02, 1.2)),
    ("gpt-5.6-sol", price(5.0, 0.5, 30.0)),
    ("gpt-5.6-terra", price(2.0, 0.2, 12.0)),
    ("gpt-6-astra", price(10.0, 1.0, 50.0)),
    ("gpt-6-luna", price(0.1, 0.01, 0.5)),
    ("gpt-6-sol", price(2.0, 0.2, 10.0)),
    ("gpt-6.1-sol", price(2.0, 0.1, 10.0)),
    ("gpt-6.1-terra", price(1.0, 0.05, 5.0)),
    ("o3", price(2.0, 0.5, 8.0)),
    ("o4-mini", price(1.1, 0.275, 4.4)),
];

/// For a model that is not listed: about what the larger ones cost.
const UNKNOWN: Price = price(5.0, 0.5, 30.0);

/// The listed prices and what the operator set over them; an entry named `default` replaces [`UNKNOWN`].
#[derive(Debug, Clone)]
pub(super) struct PriceTable(BTreeMap<String, Price>);

impl PriceTable {
    pub(super) fn new(own: &BTreeMap<String, Price>) -> Self {
        let mut table: BTreeMap<_, _> =
            LISTED.iter().map(|(model, price)| ((*model).to_owned(), *price)).collect();
        table.extend(own.iter().map(|(model, price)| (model.clone(), *price)));
        Self(table)
    }

    /// The entry with the longest name that `model` begins with. `gpt-5` is no beginning of `gpt-5.7`.
    pub(super) fn known(&self, model: &str) -> Option<Price> {
        let model = model.rsplit('/').next().unwrap_or(model);
        let continues = |rest: &str| !rest.starts_with(|c: char| c == '.' || c.is_ascii_digit());
        self.0
            .iter()
            .filter(|(name, _)| model.strip_prefix(name.as_str()).is_some_and(continues))
            .max_by_key(|(name, _)| name.len())
            .map(|(_, price)| *price)
    }

    pub(super) fn fallback(&self) -> Price {
        self.0.get("default").copied().unwrap_or(UNKNOWN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_beginning_wins_and_a_provider_is_ignored() {
        let table = PriceTable::new(&BTreeMap::new());
        assert_eq!(table.known("gpt-5.4-mini-2026-03-01"), Some(price(0.75, 0.075, 4.5)));
        assert_eq!(table.known("openai/gpt-5-codex"), Some(price(1.25, 0.125, 10.0)));
        assert_eq!(table.known("gpt-6.1-sol"), Some(price(2.0, 0.1, 10.0)), "no price of another version");
        assert_eq!(table.known("gemini-3.8-flash"), Some(price(0.75, 0.075, 3.75)));
        assert_eq!(table.known("brand-new"), None);
        // A version that nobody listed is not taken for an older one.
        assert_eq!(table.known("gpt-6.2-sol"), None);
        assert_eq!(table.known("gpt-5.7"), None);
    }

    #[test]
    fn the_operator_is_stronger_than_the_list() {
        let own = BTreeMap::from([
            ("gpt-5".to_owned(), price(9.0, 9.0, 9.0)),
            ("default".to_owned(), price(1.0, 1.0, 1.0)),
        ]);
        let table = PriceTable::new(&own);
        assert_eq!(table.known("gpt-5-codex"), Some(price(9.0, 9.0, 9.0)));
        assert_eq!(table.fallback(), price(1.0, 1.0, 1.0));
    }

    #[test]
    fn a_million_tokens_cost_the_listed_dollars() {
        let tokens = Tokens { input: 1_000_000, cached_input: 1_000_000, output: 100_000 };
        assert_eq!(price(1.25, 0.125, 10.0).cost(tokens), Usd::from_micros(2_375_000));
    }
}
