//! What an agent says that it used, turn by turn.
//!
//! A turn's own figure is believed, and the cost that the agent names for its session. Until there is one, the size of the
//! context is a lower bound that caps go by. Never makes a run cheaper than what was named before.

use agent_client_protocol::v1::schema::{Meta, PromptResponse, Usage as TurnUsage, UsageUpdate};
use giga_domain::Usd;

use crate::engines::engine::Usage;
use crate::engines::prices::{PriceTable, Tokens};

#[derive(Debug)]
pub(super) struct Meter<'a> {
    prices: &'a PriceTable,
    model: Option<String>,
    before: Usage,
    /// Of turns that are over.
    tokens: Tokens,
    /// Of the turn that goes on.
    least: u64,
    /// As the agent names it, since its session began.
    named_cost: Option<Usd>,
    /// A turn ended without a figure.
    missed: bool,
    turns: u32,
}

impl<'a> Meter<'a> {
    pub(super) const fn new(prices: &'a PriceTable, model: Option<String>, before: Usage) -> Self {
        let tokens = Tokens { input: 0, cached_input: 0, output: 0 };
        Self { prices, model, before, tokens, least: 0, named_cost: None, missed: false, turns: 0 }
    }

    /// A new session has not used anything before.
    pub(super) fn begins_anew(&mut self) {
        self.before = Usage::default();
    }

    pub(super) const fn before(&self) -> Usage {
        self.before
    }

    pub(super) fn update(&mut self, update: &UsageUpdate) {
        self.least = self.least.max(update.used);
        if let Some(cost) = &update.cost
            && cost.currency.eq_ignore_ascii_case("usd")
            && let Some(usd) = Usd::from_f64(cost.amount).filter(|usd| !usd.is_negative())
        {
            self.named_cost = Some(usd);
        }
    }

    pub(super) fn turn(&mut self, response: &PromptResponse) {
        self.turns += 1;
        let figure = response.usage.as_ref().map(tokens).or_else(|| response.meta.as_ref().and_then(quota));
        if let Some(tokens) = figure.filter(|tokens| tokens.sum() > 0) {
            self.tokens = self.tokens.plus(tokens);
        } else {
            // At least what was in its context.
            self.tokens.input = self.tokens.input.saturating_add(self.least);
            self.missed = true;
        }
        self.least = 0;
    }

    pub(super) fn usage(&self) -> Usage {
        let least = Tokens { input: self.least, cached_input: 0, output: 0 };
        let tokens = self.tokens.plus(least);
        if tokens.sum() == 0 && self.named_cost.is_none() {
            return Usage::default();
        }
        let cost = self.named_cost.map_or_else(
            || {
                let price = self.model.as_deref().and_then(|model| self.prices.known(model));
                price.unwrap_or_else(|| self.prices.fallback()).cost(tokens)
            },
            |named| {
                // A session counts from its beginning, unless the agent began to count anew.
                let before = self.before.cost.filter(|before| *before <= named).unwrap_or_default();
                named - before
            },
        );
        Usage { tokens: tokens.sum(), cost: Some(cost) }
    }

    /// Whether the figures cover a run that has ended.
    pub(super) const fn is_whole(&self) -> bool {
        self.turns > 0 && !self.missed && self.least == 0
    }
}

/// The cached part stands apart from the input.
fn tokens(usage: &TurnUsage) -> Tokens {
    let cached = usage.cached_read_tokens.unwrap_or(0);
    let written = usage.cached_write_tokens.unwrap_or(0);
    let thought = usage.thought_tokens.unwrap_or(0);
    let parts = usage.input_tokens + usage.output_tokens + cached + written;
    // Some count thoughts as output, and some beside it.
    let thought = if parts + thought <= usage.total_tokens { thought } else { 0 };
    Tokens {
        input: usage.input_tokens.saturating_add(written),
        cached_input: cached,
        output: usage.output_tokens.saturating_add(thought),
    }
}

/// As Gemini CLI says it.
fn quota(meta: &Meta) -> Option<Tokens> {
    let count = meta.get("quota")?.get("token_count")?;
    let number = |name: &str| count.get(name).and_then(serde_json::Value::as_u64).unwrap_or(0);
    Some(Tokens { input: number("input_tokens"), cached_input: 0, output: number("output_tokens") })
}
