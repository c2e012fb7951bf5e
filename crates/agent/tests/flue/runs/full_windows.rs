//! Conversations that are made shorter because they fill the model's window.

use eyot_agent::TokenUsage;
use eyot_agent::standin::StandInTurn;
use serde_json::{Value, json};

use super::compaction::{keeping, long, prompts, tokens};
use super::{call, text};
use crate::scenario::Difference::{Differs, OnlyOurs, OnlyTheirs};
use crate::scenario::Scenario;

pub fn scenarios() -> Vec<Scenario> {
    [of_full_windows(), of_overflows(), that_differ()].concat()
}

fn overflow() -> StandInTurn {
    let message =
        "This model's maximum context length is 8000 tokens. However, your messages resulted in 9000 tokens.";
    StandInTurn::failure(400, "context_length_exceeded", message)
}

fn three() -> Value {
    json!(prompts(&["one", "two", "three"]))
}

/// The second prompt's first turn nearly fills the window.
fn in_the_middle(with_summary: bool) -> Vec<StandInTurn> {
    let summary = with_summary.then(|| text("The summary."));
    let full = call("c1", "bash", json!({"command": "echo one"})).with_usage(tokens(7_000, 10));
    let after = call("c2", "bash", json!({"command": "echo two"}));
    [long(), full].into_iter().chain(summary).chain([after, long()]).collect()
}

fn of_full_windows() -> Vec<Scenario> {
    vec![
        Scenario::new(
            "a_conversation_is_made_shorter_when_it_nearly_fills_the_window",
            three(),
            vec![
                long(),
                long().with_usage(tokens(7_000, 10)),
                text("The summary.").with_usage(tokens(50, 5)),
                text("Three."),
            ],
        )
        .with(keeping(51))
        .with_summaries(&["/requests/2"]),
        Scenario::new(
            "a_conversation_at_the_threshold_stays_as_it_is",
            three(),
            vec![long(), long().with_usage(tokens(6_990, 10)), text("Three.")],
        )
        .with(keeping(51)),
        Scenario::new(
            "cached_tokens_count_for_the_threshold",
            three(),
            vec![
                long(),
                long().with_usage(TokenUsage {
                    input: 10,
                    output: 10,
                    cache_read: 7_000,
                    ..TokenUsage::default()
                }),
                text("The summary."),
                text("Three."),
            ],
        )
        .with(keeping(51))
        .with_summaries(&["/requests/2"]),
        Scenario::new(
            "with_compaction_off_a_full_conversation_stays_as_it_is",
            three(),
            vec![long(), long().with_usage(tokens(7_900, 10)), text("Three.")],
        )
        .with(json!({"contextWindow": 8000, "maxTokens": 1000, "compaction": false})),
        Scenario::new(
            "the_default_limits_follow_the_model",
            three(),
            vec![
                text(&"y".repeat(40_000)).with_usage(tokens(10_000, 10_000)),
                long().with_usage(tokens(20_001, 0)),
                text("The summary.").with_usage(tokens(50, 5)),
                text("Three."),
            ],
        )
        .with(json!({"contextWindow": 30_000, "maxTokens": 16_000}))
        .with_summaries(&["/requests/2"]),
    ]
}

fn of_overflows() -> Vec<Scenario> {
    vec![
        Scenario::new(
            "a_conversation_that_the_model_finds_too_long_is_made_shorter_and_sent_again",
            three(),
            vec![long(), long(), overflow(), text("The summary."), text("Three.")],
        )
        .with(keeping(53))
        .with_summaries(&["/requests/3"])
        .except("texts and names of errors", &[Differs("/events/11/error")]),
        Scenario::new(
            "a_conversation_that_is_still_too_long_fails_the_prompt",
            three(),
            vec![long(), long(), overflow(), text("The summary."), overflow()],
        )
        .with(keeping(53))
        .with_summaries(&["/requests/3"])
        .with_errors_of_models(),
        Scenario::new(
            "with_compaction_off_a_conversation_that_is_too_long_is_made_shorter_all_the_same",
            three(),
            vec![long(), long(), overflow(), text("The summary."), text("Three.")],
        )
        .with(json!({"contextWindow": 8000, "maxTokens": 1000, "compaction": false}))
        .with_errors_of_models(),
        Scenario::new(
            "a_short_conversation_that_the_model_finds_too_long_fails_the_prompt",
            json!(prompts(&["one", "two"])),
            vec![overflow(), text("Two.")],
        )
        .with(keeping(51))
        .with_errors_of_models(),
    ]
}

fn that_differ() -> Vec<Scenario> {
    vec![
        Scenario::new(
            "a_conversation_is_made_shorter_in_the_middle_of_a_prompt_too",
            json!(prompts(&["one", "two"])),
            in_the_middle(false),
        )
        .with_our_turns(in_the_middle(true))
        .with(keeping(9))
        .except(
            "a conversation that nearly fills the window in the middle of a prompt",
            &[
                OnlyOurs("/requests/2"),
                Differs("/requests/2/messages"),
                Differs("/requests/3/messages"),
                OnlyOurs("/events/11"),
                OnlyOurs("/events/10"),
                OnlyOurs("/events/9"),
                Differs("/events/14/usage"),
                Differs("/events/14/result/usage"),
                Differs("/outcomes/1/result/usage"),
            ],
        ),
        Scenario::new(
            "an_answer_to_more_tokens_than_the_window_has_is_kept",
            json!(prompts(&["one", "two"])),
            vec![long(), long().with_usage(tokens(8_001, 10)), text("The summary."), text("Two.")],
        )
        .with_our_turns(vec![long(), long().with_usage(tokens(8_001, 10)), text("The summary.")])
        .with(keeping(51))
        .with_summaries(&["/requests/2"])
        .except(
            "an answer to more tokens than the window has",
            &[
                OnlyTheirs("/requests/3"),
                Differs("/requests/2/messages/1/content/0/text"),
                Differs("/requests/2/max_tokens"),
                OnlyTheirs("/events/12"),
                OnlyTheirs("/events/11"),
                Differs("/events/8/estimatedTokens"),
                Differs("/events/10/messagesBefore"),
                Differs("/events/11/usage"),
                Differs("/events/11/result"),
                Differs("/outcomes/1/result/text"),
                Differs("/outcomes/1/result/usage"),
            ],
        ),
    ]
}
