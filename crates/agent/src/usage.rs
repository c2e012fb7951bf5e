//! Token usage of a model's turns, and its price.

use std::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};

/// The tokens that one or more turns took, and their price.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TokenUsage {
    /// The tokens that the model read, without those from the cache.
    pub input: u64,
    /// The tokens that the model wrote.
    pub output: u64,
    /// The tokens that were read from the prompt cache.
    pub cache_read: u64,
    /// The tokens that were written to the prompt cache.
    pub cache_write: u64,
    /// The sum of all tokens.
    pub total_tokens: u64,
    /// The price.
    pub cost: TokenCost,
}

/// The price of tokens, in the unit of the model's prices, usually dollars.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TokenCost {
    /// The price of the tokens that the model read.
    pub input: f64,
    /// The price of the tokens that the model wrote.
    pub output: f64,
    /// The price of the tokens that were read from the cache.
    pub cache_read: f64,
    /// The price of the tokens that were written to the cache.
    pub cache_write: f64,
    /// The total price.
    pub total: f64,
}

/// The prices of a model, each per million tokens. Unknown prices are zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct TokenPrices {
    /// The price of tokens that the model reads.
    pub input: f64,
    /// The price of tokens that the model writes.
    pub output: f64,
    /// The price of tokens that are read from the cache.
    pub cache_read: f64,
    /// The price of tokens that are written to the cache.
    pub cache_write: f64,
}

impl TokenUsage {
    /// Returns this usage with its total and its price.
    #[must_use]
    pub fn priced(self, prices: &TokenPrices) -> Self {
        Self { cost: prices.cost_of(&self), ..self.with_total() }
    }

    /// The same tokens with the total that they make. A provider may say any number.
    pub(crate) fn with_total(self) -> Self {
        let parts = [self.input, self.output, self.cache_read, self.cache_write];
        Self { total_tokens: parts.into_iter().fold(0, u64::saturating_add), ..self }
    }
}

impl TokenPrices {
    const TOKENS: f64 = 1_000_000.0;

    fn cost_of(&self, usage: &TokenUsage) -> TokenCost {
        let price = |per_million: f64, tokens: u64| per_million / Self::TOKENS * tokens as f64;
        let input = price(self.input, usage.input);
        let output = price(self.output, usage.output);
        let cache_read = price(self.cache_read, usage.cache_read);
        let cache_write = price(self.cache_write, usage.cache_write);
        let total = input + output + cache_read + cache_write;
        TokenCost { input, output, cache_read, cache_write, total }
    }
}

impl Add for TokenUsage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_write: self.cache_write.saturating_add(other.cache_write),
            total_tokens: self.total_tokens.saturating_add(other.total_tokens),
            cost: self.cost + other.cost,
        }
    }
}

impl AddAssign for TokenUsage {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Add for TokenCost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            input: self.input + other.input,
            output: self.output + other.output,
            cache_read: self.cache_read + other.cache_read,
            cache_write: self.cache_write + other.cache_write,
            total: self.total + other.total,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_price_is_that_of_a_million_tokens() {
        let prices = TokenPrices { input: 3.0, output: 15.0, cache_read: 0.3, cache_write: 3.75 };
        let usage = TokenUsage { input: 1_000_000, output: 100_000, cache_read: 10, ..TokenUsage::default() };
        let priced = usage.priced(&prices);
        assert_eq!((priced.cost.input, priced.cost.output), (3.0, 1.5));
        assert_eq!(priced.total_tokens, 1_100_010);
        assert_eq!((priced + priced).total_tokens, 2_200_020);
        let absurd = TokenUsage { input: u64::MAX, output: 1, ..TokenUsage::default() }.priced(&prices);
        assert_eq!((absurd + absurd).total_tokens, u64::MAX);
    }
}
