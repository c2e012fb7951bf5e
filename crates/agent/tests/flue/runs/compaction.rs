//! Conversations that are made shorter by hand.

use eyot_agent::standin::StandInTurn;
use eyot_agent::{ModelApi, StopReason, TokenUsage};
use serde_json::{Value, json};

use super::prompts::PIXEL;
use super::{call, text};
use crate::scenario::Difference::{Differs, OnlyOurs, OnlyTheirs};
use crate::scenario::Scenario;

pub fn scenarios() -> Vec<Scenario> {
    [by_hand_in_all(), of_split_turns(), of_long_conversations(), that_fail()].concat()
}

pub fn tokens(input: u64, output: u64) -> TokenUsage {
    TokenUsage { input, output, ..TokenUsage::default() }
}

/// An answer of 50 tokens, as they are estimated.
pub fn long() -> StandInTurn {
    text(&"x".repeat(200))
}

/// A small window, of which so many of the newest tokens stay: 51 are a prompt and its long answer, and 20 less than that answer.
pub fn keeping(tokens: u32) -> Value {
    json!({
        "contextWindow": 8000,
        "maxTokens": 1000,
        "compaction": {"reserveTokens": 1000, "keepRecentTokens": tokens},
    })
}

pub fn prompts(texts: &[&str]) -> Vec<Value> {
    texts.iter().map(|text| json!({"do": "prompt", "text": text})).collect()
}

/// Two prompts, a compaction by hand, and one more prompt.
fn by_hand() -> Value {
    let mut steps = prompts(&["one", "two", "three"]);
    steps.insert(2, json!({"do": "compact"}));
    json!(steps)
}

fn by_hand_in_all() -> Vec<Scenario> {
    vec![
        Scenario::new(
            "a_conversation_is_made_shorter_by_hand",
            by_hand(),
            vec![long(), long(), text("The summary."), text("Three.")],
        )
        .with(keeping(51))
        .with_summaries(&["/requests/2"]),
        Scenario::new(
            "a_short_conversation_stays_as_it_is",
            json!([{"do": "prompt", "text": "one"}, {"do": "compact"}, {"do": "prompt", "text": "two"}]),
            vec![text("One."), text("Two.")],
        )
        .with(keeping(51)),
        Scenario::new("an_empty_conversation_stays_as_it_is", json!([{"do": "compact"}]), vec![]),
        Scenario::new(
            "a_second_summary_goes_on_from_the_first",
            json!([
                {"do": "prompt", "text": "one"},
                {"do": "prompt", "text": "two"},
                {"do": "compact"},
                {"do": "prompt", "text": "three"},
                {"do": "compact"},
                {"do": "prompt", "text": "four"},
            ]),
            vec![long(), long(), text("First."), long(), text("Second."), text("Four.")],
        )
        .with(keeping(51))
        .with_summaries(&["/requests/2", "/requests/4"]),
        Scenario::new(
            "another_model_can_write_the_summaries",
            by_hand(),
            vec![long(), long(), text("The summary."), text("Three.")],
        )
        .with(json!({"contextWindow": 8000, "compaction": {"keepRecentTokens": 51, "model": "other"}}))
        .with_summaries(&["/requests/2"]),
    ]
}

fn of_split_turns() -> Vec<Scenario> {
    vec![
        Scenario::new(
            "a_second_summary_of_a_split_turn_goes_on_from_the_first",
            json!([
                {"do": "prompt", "text": "one"},
                {"do": "prompt", "text": "two"},
                {"do": "compact"},
                {"do": "prompt", "text": "three"},
                {"do": "compact"},
                {"do": "prompt", "text": "four"},
            ]),
            vec![
                long(),
                long(),
                text("A summary."),
                text("A summary."),
                long(),
                text("A summary."),
                text("A summary."),
                text("Four."),
            ],
        )
        .with(keeping(20))
        .with_summaries(&["/requests/2", "/requests/3", "/requests/5", "/requests/6"]),
        Scenario::new(
            "a_turn_that_is_too_long_is_split_and_gets_a_summary_of_its_own",
            by_hand(),
            vec![
                long(),
                text("I look.").and_call("c1", "bash", json!({"command": "echo one"})),
                StandInTurn::empty()
                    .and_thinking("I should write it down.", "")
                    .and_call("c2", "write", json!({"path": "a.txt", "content": "a"}))
                    .and_call("c3", "bash", json!({"command": "true"})),
                long(),
                text("A summary."),
                text("A summary."),
                text("Three."),
            ],
        )
        .with(keeping(20))
        .with_summaries(&["/requests/4", "/requests/5"]),
        Scenario::new(
            "the_first_turn_alone_is_split_without_anything_before_it",
            json!([{"do": "prompt", "text": "one"}, {"do": "compact"}, {"do": "prompt", "text": "two"}]),
            vec![
                text("I look.").and_call("c1", "bash", json!({"command": "echo one"})),
                long(),
                text("A summary."),
                text("Two."),
            ],
        )
        .with(keeping(20))
        .with_summaries(&["/requests/2"]),
    ]
}

fn of_long_conversations() -> Vec<Scenario> {
    vec![
        Scenario::new(
            "the_files_of_a_conversation_are_listed_behind_its_summary",
            by_hand(),
            vec![
                call("c1", "write", json!({"path": "a.txt", "content": "a"})),
                call("c2", "read", json!({"path": "a.txt"})).and_call(
                    "c3",
                    "read",
                    json!({"path": "/home/user/b.txt"}),
                ),
                text("Done."),
                long(),
                text("The summary."),
                text("Three."),
            ],
        )
        .with(keeping(51))
        .with(json!({"files": {"/home/user/b.txt": "b"}}))
        .with_summaries(&["/requests/4"]),
        with_long_answer("a_long_answer_of_a_tool_is_shortened_for_the_summary", &"é".repeat(2_100)),
        with_long_answer(
            "letters_outside_of_the_first_plane_count_twice_in_a_long_answer_of_a_tool",
            &"\u{1F600}".repeat(1_100),
        ),
        Scenario::new(
            "an_image_of_a_prompt_counts_for_the_newest_tokens",
            json!([
                {"do": "prompt", "text": "one"},
                {"do": "prompt", "text": "two", "images": [{"type": "image", "data": PIXEL, "mimeType": "image/png"}]},
                {"do": "compact"},
            ]),
            vec![long(), long(), text("A summary.")],
        )
        .by(ModelApi::AnthropicMessages)
        .with(keeping(60))
        .with_summaries(&["/requests/2"])
        .except(
            "an image in a prompt",
            &[
                Differs("/events/13/messagesAfter"),
                Differs("/requests/2/messages/0/content/0/text"),
                Differs("/requests/2/max_tokens"),
            ],
        )
        .except("the effort of a summary", &[Differs("/requests/2/thinking")]),
    ]
}

/// A summary of a conversation in which a tool answered with this text.
fn with_long_answer(name: &'static str, answer: &str) -> Scenario {
    let turns = vec![
        call("c1", "bash", json!({"command": "cat long.txt"})),
        text("Done."),
        long(),
        text("The summary."),
        text("Three."),
    ];
    Scenario::new(name, by_hand(), turns)
        .with(keeping(51))
        .with(json!({"files": {"/home/user/long.txt": answer}}))
        .with_summaries(&["/requests/3"])
}

fn that_fail() -> Vec<Scenario> {
    vec![
        Scenario::new(
            "a_summary_that_fails_leaves_the_conversation_as_it_is",
            by_hand(),
            vec![long(), long(), StandInTurn::failure(400, "invalid_request_error", "no"), text("Three.")],
        )
        .with(keeping(51))
        .with_summaries(&["/requests/2"])
        .except(
            "a compaction by hand that fails",
            &[
                Differs("/events/12/error"),
                Differs("/events/13/isError"),
                OnlyOurs("/events/13/error"),
                OnlyOurs("/outcomes/2/error"),
            ],
        ),
        Scenario::new(
            "a_summary_that_reached_its_limit_is_no_summary",
            json!([{"do": "prompt", "text": "one"}, {"do": "prompt", "text": "two"}, {"do": "compact"}]),
            vec![long(), long(), text("The summ").stopped_by(StopReason::Length)],
        )
        .with(keeping(51))
        .with_summaries(&["/requests/2"])
        .except(
            "a summary that is not whole",
            &[
                OnlyTheirs("/events/13"),
                Differs("/events/13/isError"),
                OnlyOurs("/events/13/error"),
                OnlyOurs("/outcomes/2/error"),
            ],
        ),
    ]
}
