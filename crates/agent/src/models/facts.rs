//! Facts about the vendors' current models.
//!
//! The facts decide when a conversation is compacted, what a turn costs and how reasoning is requested. A model that is not
//! listed works too. A name covers the model and its dated releases (`gpt-5-2025-08-07`). The source is the vendors' pages
//! about models and prices, read in November 2026.

use serde::{Deserialize, Serialize};

use crate::usage::TokenPrices;

/// Facts about a model; `None`: unknown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct ModelFacts {
    /// The most tokens that a conversation may have.
    pub context_window: Option<u64>,
    /// The most tokens that the model writes in one turn.
    pub max_tokens: Option<u32>,
    /// Set if the model can reason before it answers.
    pub reasoning: Option<bool>,
    /// Set if the model accepts images.
    pub images: Option<bool>,
    /// The prices of the tokens.
    pub prices: Option<TokenPrices>,
}

/// The way to request a model's reasoning effort.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReasoningStyle {
    /// Anthropic: a budget of tokens.
    Budget,
    /// Anthropic: the model decides, within an effort.
    Adaptive {
        /// The name of the highest effort, if there is one above `high`.
        highest: Option<&'static str>,
        /// Set if reasoning can be switched off.
        can_stop: bool,
    },
    /// OpenAI: an effort.
    Effort {
        /// The name of the effort that switches reasoning off, if there is one.
        off: Option<&'static str>,
        /// Set if the efforts range from `low` to `xhigh` instead of from `minimal` to `high`.
        has_highest: bool,
    },
}

/// A model and the facts about it.
pub(super) struct FactRow {
    name: &'static str,
    pub(super) context_window: u64,
    pub(super) max_tokens: u32,
    pub(super) style: Option<ReasoningStyle>,
    pub(super) prices: TokenPrices,
}

const fn row(
    name: &'static str,
    (context_window, max_tokens): (u64, u32),
    style: Option<ReasoningStyle>,
    (input, output, cache_read, cache_write): (f64, f64, f64, f64),
) -> FactRow {
    let prices = TokenPrices { input, output, cache_read, cache_write };
    FactRow { name, context_window, max_tokens, style, prices }
}

const BUDGET: Option<ReasoningStyle> = Some(ReasoningStyle::Budget);
const ADAPTIVE: Option<ReasoningStyle> =
    Some(ReasoningStyle::Adaptive { highest: Some("xhigh"), can_stop: true });
const ALWAYS_ADAPTIVE: Option<ReasoningStyle> =
    Some(ReasoningStyle::Adaptive { highest: Some("xhigh"), can_stop: false });
const EFFORT: Option<ReasoningStyle> = Some(ReasoningStyle::Effort { off: None, has_highest: false });
const EFFORT_OR_NONE: Option<ReasoningStyle> =
    Some(ReasoningStyle::Effort { off: Some("none"), has_highest: false });
const EFFORT_TO_HIGHEST: Option<ReasoningStyle> =
    Some(ReasoningStyle::Effort { off: Some("none"), has_highest: true });
const ALWAYS_TO_HIGHEST: Option<ReasoningStyle> =
    Some(ReasoningStyle::Effort { off: None, has_highest: true });

const LARGE: (u64, u32) = (1_000_000, 128_000);
const UNKNOWN: (f64, f64, f64, f64) = (0.0, 0.0, 0.0, 0.0);

/// Anthropic's models. All of them accept images. Prices are in dollars per million tokens.
const ANTHROPIC: &[FactRow] = &[
    row("claude-fable-5-1", LARGE, ALWAYS_ADAPTIVE, (10.0, 50.0, 0.25, 12.5)),
    row("claude-opus-5-5", LARGE, ALWAYS_ADAPTIVE, (4.0, 20.0, 0.2, 5.0)),
    row("claude-sonnet-5-5", LARGE, ALWAYS_ADAPTIVE, (2.0, 10.0, 0.1, 2.5)),
    // The prices for prompts of at most 100,000 tokens. Longer ones cost five times as much.
    row("claude-haiku-5-5", LARGE, ALWAYS_ADAPTIVE, (0.1, 0.5, 0.01, 0.125)),
    row("claude-opus-5", LARGE, ALWAYS_ADAPTIVE, (5.0, 25.0, 0.5, 6.25)),
    row("claude-sonnet-5", LARGE, ALWAYS_ADAPTIVE, (2.0, 10.0, 0.2, 2.5)),
    row("claude-opus-4-8", LARGE, ADAPTIVE, (5.0, 25.0, 0.5, 6.25)),
    row("claude-opus-4-7", LARGE, ADAPTIVE, (5.0, 25.0, 0.5, 6.25)),
    row(
        "claude-opus-4-6",
        LARGE,
        Some(ReasoningStyle::Adaptive { highest: Some("max"), can_stop: true }),
        (5.0, 25.0, 0.5, 6.25),
    ),
    row(
        "claude-sonnet-4-6",
        (1_000_000, 64_000),
        Some(ReasoningStyle::Adaptive { highest: None, can_stop: true }),
        (3.0, 15.0, 0.3, 3.75),
    ),
    row("claude-opus-4-5", (200_000, 64_000), BUDGET, (5.0, 25.0, 0.5, 6.25)),
    row("claude-sonnet-4-5", (200_000, 64_000), BUDGET, (3.0, 15.0, 0.3, 3.75)),
    row("claude-haiku-4-5", (200_000, 64_000), BUDGET, (1.0, 5.0, 0.1, 1.25)),
];

/// OpenAI's models. All of them accept images. Prices are in dollars per million tokens.
const OPENAI: &[FactRow] = &[
    row("gpt-6.2-astra", (1_050_000, 128_000), ALWAYS_TO_HIGHEST, (8.0, 40.0, 0.8, 10.0)),
    row("gpt-6.2-sol", (1_050_000, 128_000), ALWAYS_TO_HIGHEST, (2.0, 10.0, 0.2, 2.5)),
    row("gpt-5.5", (272_000, 128_000), EFFORT_TO_HIGHEST, (5.0, 30.0, 0.5, 0.0)),
    row("gpt-5.4", (272_000, 128_000), EFFORT_TO_HIGHEST, (2.5, 15.0, 0.25, 0.0)),
    row("gpt-5.4-mini", (400_000, 128_000), EFFORT_TO_HIGHEST, (0.75, 4.5, 0.075, 0.0)),
    row("gpt-5.2", (400_000, 128_000), EFFORT_TO_HIGHEST, (1.75, 14.0, 0.175, 0.0)),
    row("gpt-5.1", (400_000, 128_000), EFFORT_OR_NONE, (1.25, 10.0, 0.125, 0.0)),
    row("gpt-5", (400_000, 128_000), EFFORT, (1.25, 10.0, 0.125, 0.0)),
    row("gpt-5-mini", (400_000, 128_000), EFFORT, (0.25, 2.0, 0.025, 0.0)),
    row("gpt-5-nano", (400_000, 128_000), EFFORT, (0.05, 0.4, 0.005, 0.0)),
    row("gpt-4.1", (1_047_576, 32_768), None, (2.0, 8.0, 0.5, 0.0)),
    row("gpt-4.1-mini", (1_047_576, 32_768), None, (0.4, 1.6, 0.1, 0.0)),
    row("gpt-4o", (128_000, 16_384), None, (2.5, 10.0, 1.25, 0.0)),
    row("gpt-4o-mini", (128_000, 16_384), None, (0.15, 0.6, 0.075, 0.0)),
    row("o3", (200_000, 100_000), EFFORT, (2.0, 8.0, 0.5, 0.0)),
    row("o4-mini", (200_000, 100_000), EFFORT, (1.1, 4.4, 0.275, 0.0)),
];

/// Generations of models that are known to reason, but whose sizes and prices are unknown. A name covers every model whose
/// id begins with it.
const GENERATIONS: &[FactRow] = &[
    row("claude-fable-5", (0, 0), ALWAYS_ADAPTIVE, UNKNOWN),
    row("claude-mythos-5", (0, 0), ALWAYS_ADAPTIVE, UNKNOWN),
    row("claude-opus-5", (0, 0), ALWAYS_ADAPTIVE, UNKNOWN),
    row("claude-sonnet-5", (0, 0), ALWAYS_ADAPTIVE, UNKNOWN),
    row("claude-haiku-5", (0, 0), ALWAYS_ADAPTIVE, UNKNOWN),
    row("gpt-6", (0, 0), ALWAYS_TO_HIGHEST, UNKNOWN),
    row("gpt-5.6", (0, 0), ALWAYS_TO_HIGHEST, UNKNOWN),
];

/// Finds the facts about a model of Anthropic.
pub(super) fn of_anthropic(id: &str) -> Option<&'static FactRow> {
    find(ANTHROPIC, id)
}

/// Finds the facts about a model of OpenAI.
pub(super) fn of_openai(id: &str) -> Option<&'static FactRow> {
    find(OPENAI, id)
}

fn find(rows: &'static [FactRow], id: &str) -> Option<&'static FactRow> {
    let exact = rows.iter().find(|row| id.strip_prefix(row.name).is_some_and(is_release));
    exact.or_else(|| GENERATIONS.iter().find(|row| id.starts_with(row.name)))
}

/// Returns whether the rest of a name is only the date of a release.
fn is_release(rest: &str) -> bool {
    let date = |byte: u8| byte.is_ascii_digit() || byte == b'-';
    rest.is_empty() || rest.starts_with('-') && rest.len() > 8 && rest.bytes().all(date)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stands_for_its_dated_releases_and_for_no_other_model() {
        let window = |id: &str| of_openai(id).map(|row| row.context_window);
        assert_eq!(window("gpt-5-2025-08-07"), Some(400_000));
        assert_eq!(window("gpt-4o-2024-11-20"), Some(128_000));
        assert_eq!((window("gpt-5-pro"), window("gpt-5.9"), window("gpt")), (None, None, None));
        assert_eq!(of_anthropic("claude-haiku-4-5-20251001").unwrap().prices.output, 5.0);
        assert!(of_anthropic("claude-sonnet-4-9").is_none());
    }

    #[test]
    fn a_model_of_a_known_generation_reasons_and_has_no_invented_price() {
        let new = of_anthropic("claude-opus-5-9").unwrap();
        assert_eq!((new.context_window, new.prices.input, new.style), (0, 0.0, ALWAYS_ADAPTIVE));
        assert_eq!(of_anthropic("claude-opus-5").unwrap().prices.input, 5.0);
        assert_eq!(of_openai("gpt-6-luna").unwrap().style, ALWAYS_TO_HIGHEST);
    }
}
