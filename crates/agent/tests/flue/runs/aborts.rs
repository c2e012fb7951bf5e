//! Calls that are aborted.

use std::time::Duration;

use eyot_agent::TokenUsage;
use eyot_agent::standin::StandInTurn;
use serde_json::json;

use super::{call, text};
use crate::scenario::Difference::{Differs, OnlyTheirs};
use crate::scenario::Scenario;

pub fn scenarios() -> Vec<Scenario> {
    [of_prompts(), of_other_calls()].concat()
}

/// An answer that takes long enough to be aborted after its first piece.
fn slow() -> StandInTurn {
    text("It begins well and then it goes on for long").slowed(Duration::from_millis(500))
}

fn of_prompts() -> Vec<Scenario> {
    vec![
        Scenario::new(
            "a_prompt_is_aborted_while_the_model_answers",
            json!([{"do": "prompt", "text": "go", "abort": "text_delta"}, {"do": "prompt", "text": "again"}]),
            vec![slow(), text("Well.")],
        )
        .except("texts and names of errors", &[Differs("/events/2/error")]),
        Scenario::new(
            "a_prompt_is_aborted_while_a_tool_runs",
            json!([{"do": "prompt", "text": "go", "abort": "tool_start"}, {"do": "prompt", "text": "again"}]),
            vec![call("c1", "waits", json!({})), text("Well.")],
        )
        .with(json!({"tools": ["waits"]}))
        .except(
            "a prompt that is aborted while its tools run",
            &[
                OnlyTheirs("/events/4"),
                Differs("/events/2/result/content/0/text"),
                Differs("/requests/1/messages/3/content"),
            ],
        ),
        Scenario::new(
            "a_prompt_is_aborted_in_its_task",
            json!([{"do": "prompt", "text": "go", "abort": "text_delta"}, {"do": "prompt", "text": "again"}]),
            vec![call("c1", "task", json!({"prompt": "wait"})), slow(), text("Well.")],
        )
        .except(
            "a prompt that is aborted while its tools run",
            &[
                OnlyTheirs("/events/11"),
                Differs("/events/5/error"),
                Differs("/events/6/error/message"),
                Differs("/events/8/result"),
                Differs("/events/9/result/content/0/text"),
                Differs("/requests/2/messages/3/content"),
            ],
        ),
    ]
}

fn of_other_calls() -> Vec<Scenario> {
    vec![
        Scenario::new(
            "a_task_of_the_caller_is_aborted",
            json!([{"do": "task", "text": "go", "abort": "text_delta"}, {"do": "prompt", "text": "again"}]),
            vec![slow(), text("Well.")],
        )
        .except("texts and names of errors", &[Differs("/events/4/error")]),
        Scenario::new(
            "a_compaction_is_not_begun_for_an_aborted_prompt",
            json!([
                {"do": "prompt", "text": "one"},
                {"do": "prompt", "text": "two", "abort": "text_delta"},
                {"do": "compact"},
                {"do": "prompt", "text": "three"},
            ]),
            vec![text("One."), slow(), text("Three.")],
        )
        .except("texts and names of errors", &[Differs("/events/7/error")]),
        Scenario::new(
            "a_session_does_one_thing_at_a_time",
            json!([{"do": "twice", "text": "go"}, {"do": "prompt", "text": "again"}]),
            vec![slow(), text("Well.")],
        )
        .except("texts and names of errors", &[Differs("/outcomes/0/result/1/error/message")]),
        Scenario::new(
            "a_command_of_the_caller_is_aborted",
            json!([
                {"do": "shell", "text": "sleep 5", "abort": "tool_start"},
                {"do": "prompt", "text": "again"},
            ]),
            vec![text("Well.")],
        )
        .except(
            "a command that takes too long or is aborted",
            &[Differs("/events/2/result/content/0/text"), Differs("/requests/0/messages/3/content")],
        ),
        Scenario::new(
            "a_prompt_is_aborted_while_its_summary_is_written",
            json!([
                {"do": "prompt", "text": "one"},
                {"do": "prompt", "text": "two", "abort": "compaction_start", "after": 200},
                {"do": "prompt", "text": "three"},
            ]),
            vec![
                text(&"x".repeat(200)),
                text(&"x".repeat(200)).with_usage(TokenUsage {
                    input: 7_500,
                    output: 10,
                    ..TokenUsage::default()
                }),
                slow(),
                text("Well."),
            ],
        )
        .with(json!({"contextWindow": 8000, "compaction": {"reserveTokens": 1000, "keepRecentTokens": 51}}))
        .with_summaries(&["/requests/2"])
        .except("texts and names of errors", &[Differs("/events/9/error")]),
    ]
}
