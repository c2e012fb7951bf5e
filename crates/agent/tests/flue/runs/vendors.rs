//! The other protocols: Anthropic's messages and OpenAI's responses.

use eyot_agent::standin::StandInTurn;
use eyot_agent::{ModelApi, StopReason, TokenUsage};
use serde_json::json;

use super::prompts::PIXEL;
use super::{call, text};
use crate::scenario::Difference::{Differs, OnlyOurs, OnlyTheirs};
use crate::scenario::Scenario;

pub fn scenarios() -> Vec<Scenario> {
    [by_messages(), by_responses(), particular()].concat()
}

fn by_messages() -> Vec<Scenario> {
    let by = |scenario: Scenario| scenario.by(ModelApi::AnthropicMessages);
    vec![
        by(working("by_messages_an_agent_thinks_calls_tools_and_answers")).except(
            "the bodies of requests",
            &[OnlyOurs("/requests/2/tools/8/input_schema/additionalProperties")],
        ),
        by(thinking("by_messages_a_prompt_can_have_any_effort")),
        by(looking("by_messages_a_model_sees_images")),
        by(too_long("by_messages_an_answer_reaches_its_limit")),
        by(failing_tool("by_messages_a_tool_that_fails_is_an_answer")),
        by(overflowing(
            "by_messages_a_conversation_that_is_too_long_is_made_shorter",
            "prompt is too long: 210000 tokens > 200000 maximum",
        ))
        .except(
            "the effort of a summary",
            &[Differs("/requests/3/thinking"), Differs("/requests/3/max_tokens")],
        )
        .except("texts and names of errors", &[Differs("/events/11/error")]),
        by(refusing("by_messages_a_refusal_fails_the_prompt"))
            .with_errors_of_models()
            .except("a refusal", &[Differs("/events/2/stopReason")]),
        by(shortening("by_messages_a_conversation_is_made_shorter")).except(
            "the effort of a summary",
            &[Differs("/requests/2/thinking"), Differs("/requests/2/max_tokens")],
        ),
        by(cut_off("by_messages_an_answer_that_is_cut_fails_the_prompt")).with_errors_of_models(),
    ]
}

fn by_responses() -> Vec<Scenario> {
    let by = |scenario: Scenario| scenario.by(ModelApi::OpenaiResponses);
    vec![
        by(working("by_responses_an_agent_thinks_calls_tools_and_answers")).except(
            "the bodies of requests",
            &[OnlyTheirs("/requests/3/input/11/id"), OnlyOurs("/requests/3/include")],
        ),
        by(thinking("by_responses_a_prompt_can_have_any_effort"))
            .except("the bodies of requests", &[OnlyOurs("/requests/0/include")]),
        by(looking("by_responses_a_model_sees_images"))
            .except("the bodies of requests", &[Differs("/requests/1/input/2/id")]),
        by(too_long("by_responses_an_answer_reaches_its_limit"))
            .except(
                "an answer of OpenAI's responses that reached its limit",
                &[
                    Differs("/events/2/stopReason"),
                    Differs("/events/2/usage"),
                    Differs("/events/3/usage"),
                    Differs("/events/3/result/usage"),
                    Differs("/outcomes/0/result/usage"),
                ],
            )
            .except("the bodies of requests", &[Differs("/requests/1/input/2/id")]),
        by(failing_tool("by_responses_a_tool_that_fails_is_an_answer")).except(
            "the bodies of requests",
            &[OnlyTheirs("/requests/1/input/2/id"), OnlyTheirs("/requests/1/input/3/id")],
        ),
        by(overflowing(
            "by_responses_a_conversation_that_is_too_long_is_made_shorter",
            "Your input exceeds the context window of this model. Please adjust your input and try again.",
        ))
        .except("the effort of a summary", &[Differs("/requests/3/reasoning/effort")])
        .except(
            "the bodies of requests",
            &[
                Differs("/requests/*/input/2/id"),
                Differs("/requests/2/input/4/id"),
                Differs("/requests/4/input/3/id"),
            ],
        )
        .except("texts and names of errors", &[Differs("/events/11/error")]),
        by(refusing("by_responses_a_refusal_fails_the_prompt")).except(
            "a refusal",
            &[
                Differs("/events/2/stopReason"),
                Differs("/events/2/isError"),
                OnlyOurs("/events/2/error"),
                Differs("/events/3/isError"),
                OnlyOurs("/events/3/error"),
                OnlyTheirs("/events/3/result"),
                OnlyTheirs("/events/3/usage"),
                OnlyTheirs("/outcomes/0/result"),
                OnlyOurs("/outcomes/0/error"),
                OnlyTheirs("/requests/1/input/2"),
            ],
        ),
        by(shortening("by_responses_a_conversation_is_made_shorter"))
            .except("the effort of a summary", &[Differs("/requests/2/reasoning/effort")])
            .except(
                "the bodies of requests",
                &[Differs("/requests/1/input/2/id"), Differs("/requests/3/input/3/id")],
            ),
        by(cut_off("by_responses_an_answer_that_is_cut_fails_the_prompt")).with_errors_of_models(),
    ]
}

/// Features of one protocol.
fn particular() -> Vec<Scenario> {
    let twice = json!([{"do": "prompt", "text": "go"}, {"do": "prompt", "text": "again"}]);
    vec![
        Scenario::new(
            "by_messages_reasoning_that_is_withheld_goes_back",
            twice.clone(),
            vec![
                StandInTurn::empty().and_redacted_thinking("c2VjcmV0").and_text("Well."),
                text("Well again."),
            ],
        )
        .by(ModelApi::AnthropicMessages),
        Scenario::new(
            "by_messages_tokens_of_the_cache_are_counted",
            twice.clone(),
            vec![
                text("Well.").with_usage(TokenUsage {
                    input: 10,
                    output: 20,
                    cache_read: 3_000,
                    cache_write: 400,
                    ..TokenUsage::default()
                }),
                text("Well again."),
            ],
        )
        .by(ModelApi::AnthropicMessages),
        Scenario::new(
            "by_responses_a_text_before_the_answer_keeps_its_phase",
            twice,
            vec![
                StandInTurn::empty()
                    .and_thinking("I should look.", "c2ln")
                    .and_commentary("I look.")
                    .and_call("c1", "bash", json!({"command": "echo one"})),
                text("Well."),
                text("Well again."),
            ],
        )
        .by(ModelApi::OpenaiResponses)
        .except("the bodies of requests", &[Differs("/requests/2/input/6/id")]),
    ]
}

fn failing_tool(name: &'static str) -> Scenario {
    let turns = vec![
        StandInTurn::empty().and_call("c1", "fails", json!({})).and_call(
            "c2",
            "bash",
            json!({"command": "echo one"}),
        ),
        text("Well."),
    ];
    Scenario::new(name, json!([{"do": "prompt", "text": "go"}]), turns).with(json!({"tools": ["fails"]}))
}

fn overflowing(name: &'static str, message: &str) -> Scenario {
    let long = text(&"x".repeat(200));
    let steps = json!([
        {"do": "prompt", "text": "one"},
        {"do": "prompt", "text": "two"},
        {"do": "prompt", "text": "three"},
    ]);
    let overflow = StandInTurn::failure(400, "invalid_request_error", message);
    Scenario::new(name, steps, vec![long.clone(), long, overflow, text("The summary."), text("Three.")])
        .with(json!({"compaction": {"keepRecentTokens": 53}}))
        .with_summaries(&["/requests/3"])
}

fn working(name: &'static str) -> Scenario {
    let usage = TokenUsage { input: 1_000, output: 100, cache_read: 500, ..TokenUsage::default() };
    Scenario::new(
        name,
        json!([
            {"do": "prompt", "text": "go"},
            {"do": "prompt", "text": "count", "result": "number"},
            {"do": "prompt", "text": "quickly", "thinking": "off"},
        ]),
        vec![
            StandInTurn::empty()
                .and_thinking("I should look at the files first.", "c2lnbmF0dXJl")
                .and_text("I look.")
                .and_call("c1", "bash", json!({"command": "echo one"}))
                .and_call("c2", "bash", json!({"command": "exit 2"}))
                .with_usage(usage),
            StandInTurn::empty().and_thinking("There are none.", "c2lnbmF0dXJl").and_text("Done."),
            call("c3", "finish", json!({"n": 3})),
            text("Quick."),
        ],
    )
}

fn thinking(name: &'static str) -> Scenario {
    let efforts = ["off", "minimal", "low", "medium", "high", "xhigh"];
    let steps = efforts.iter().map(|effort| json!({"do": "prompt", "text": effort, "thinking": effort}));
    let turns =
        efforts.iter().map(|effort| StandInTurn::empty().and_thinking(effort, "c2ln").and_text(effort));
    Scenario::new(name, json!(steps.collect::<Vec<_>>()), turns.collect())
}

fn looking(name: &'static str) -> Scenario {
    let image = json!({"type": "image", "data": PIXEL, "mimeType": "image/png"});
    let steps = json!([
        {"do": "prompt", "text": "look", "images": [image]},
        {"do": "prompt", "text": "again", "thinking": "high"},
    ]);
    Scenario::new(name, steps, vec![text("A pixel."), text("A pixel.")])
}

fn too_long(name: &'static str) -> Scenario {
    let turns = vec![text("It begins with").stopped_by(StopReason::Length), text("the end.")];
    Scenario::new(
        name,
        json!([{"do": "prompt", "text": "tell me all"}, {"do": "prompt", "text": "go on"}]),
        turns,
    )
}

fn refusing(name: &'static str) -> Scenario {
    let turns = vec![text("I won't.").stopped_by(StopReason::Refusal), text("Well.")];
    Scenario::new(name, json!([{"do": "prompt", "text": "go"}, {"do": "prompt", "text": "again"}]), turns)
}

fn shortening(name: &'static str) -> Scenario {
    let steps = json!([
        {"do": "prompt", "text": "one"},
        {"do": "prompt", "text": "two"},
        {"do": "compact"},
        {"do": "prompt", "text": "three"},
    ]);
    let long = text(&"x".repeat(200));
    Scenario::new(name, steps, vec![long.clone(), long, text("The summary."), text("Three.")])
        .with(json!({"compaction": {"keepRecentTokens": 51}}))
        .with_summaries(&["/requests/2"])
}

fn cut_off(name: &'static str) -> Scenario {
    let (cut, well) = (text("It begins well and then").cut(), text("Well."));
    let steps = json!([{"do": "prompt", "text": "go"}, {"do": "prompt", "text": "again"}]);
    Scenario::new(name, steps, vec![cut.clone(), well.clone()]).with_our_turns(vec![
        cut.clone(),
        cut.clone(),
        cut,
        well,
    ])
}
