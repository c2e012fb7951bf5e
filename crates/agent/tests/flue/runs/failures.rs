//! Models that fail, and calls that are aborted.

use std::time::Duration;

use eyot_agent::StopReason;
use eyot_agent::standin::StandInTurn;
use serde_json::json;

use crate::scenario::Difference::{Differs, OnlyOurs, OnlyTheirs};
use crate::scenario::Scenario;

/// The wait before a try of ours, which the stand-in asks for.
fn soon(failure: StandInTurn) -> StandInTurn {
    failure.with_header("retry-after-ms", "1")
}

/// An answer that takes long enough to be aborted after its first piece.
fn slow() -> StandInTurn {
    StandInTurn::text("It begins well and then it goes on for long").slowed(Duration::from_millis(300))
}

pub fn scenarios() -> Vec<Scenario> {
    let text = StandInTurn::text;
    let twice = || json!([{"do": "prompt", "text": "go"}, {"do": "prompt", "text": "again"}]);
    let of_three = |failing: StandInTurn| {
        (vec![failing.clone(), text("Well.")], vec![failing.clone(), failing.clone(), failing, text("Well.")])
    };
    let again = |name, failing: StandInTurn| {
        let (theirs, ours) = of_three(failing);
        Scenario::new(name, twice(), theirs).with_our_turns(ours).with_errors_of_models()
    };
    vec![
        Scenario::new(
            "a_request_that_the_model_refuses_fails_the_prompt",
            twice(),
            vec![StandInTurn::failure(400, "invalid_request_error", "no"), text("Well.")],
        )
        .with_errors_of_models(),
        Scenario::new(
            "a_wrong_key_fails_the_prompt",
            twice(),
            vec![StandInTurn::failure(401, "authentication_error", "wrong key"), text("Well.")],
        )
        .with_errors_of_models(),
        again("too_many_requests_fail_the_prompt", StandInTurn::rate_limited(Duration::from_millis(1))),
        again("an_overloaded_model_fails_the_prompt", soon(StandInTurn::overloaded())),
        again(
            "an_unavailable_model_fails_the_prompt",
            soon(StandInTurn::failure(503, "service_unavailable", "Unavailable")),
        ),
        again("an_error_of_the_provider_fails_the_prompt", soon(StandInTurn::server_error())),
        again("an_answer_that_is_cut_fails_the_prompt", text("It begins well and then").cut()),
        again(
            "an_error_in_an_answer_fails_the_prompt",
            text("It begins well and then").broken_by("overloaded_error"),
        ),
        again(
            "a_call_that_is_cut_is_not_run",
            StandInTurn::call("c1", "bash", json!({"command": "echo never > a.txt"})).cut(),
        ),
        again(
            "an_answer_without_a_finish_reason_fails_the_prompt",
            text("It begins well and then").unfinished(),
        ),
        Scenario::new(
            "a_refusal_fails_the_prompt",
            twice(),
            vec![text("I won't.").stopped_by(StopReason::Refusal), text("Well.")],
        )
        .with_errors_of_models()
        .except("a refusal", &[Differs("/events/2/stopReason")]),
        Scenario::new(
            "a_prompt_is_aborted_while_the_model_answers",
            json!([{"do": "prompt", "text": "go", "abort": "text_delta"}, {"do": "prompt", "text": "again"}]),
            vec![slow(), text("Well.")],
        )
        .except("texts and names of errors", &[Differs("/events/2/error")]),
        Scenario::new(
            "a_prompt_is_aborted_while_a_tool_runs",
            json!([{"do": "prompt", "text": "go", "abort": "tool_start"}, {"do": "prompt", "text": "again"}]),
            vec![StandInTurn::call("c1", "waits", json!({})), text("Well.")],
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
            vec![StandInTurn::call("c1", "task", json!({"prompt": "wait"})), slow(), text("Well.")],
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
            "a_prompt_for_a_result_fails_with_its_model",
            json!([{"do": "prompt", "text": "go", "tools": ["add"], "result": "number"}]),
            vec![StandInTurn::failure(404, "not_found_error", "no such model")],
        )
        .with_errors_of_models(),
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
            "a_turn_that_is_asked_for_again_before_it_began_tells_of_its_answer_alone",
            twice(),
            vec![text("Well."), text("Well again.")],
        )
        .with_our_turns(vec![
            StandInTurn::rate_limited(Duration::from_millis(1)),
            soon(StandInTurn::overloaded()),
            text("Well."),
            soon(StandInTurn::server_error()),
            text("Well again."),
        ]),
        Scenario::new(
            "an_answer_that_is_cut_is_asked_for_again",
            twice(),
            vec![text("It begins well."), text("Well again.")],
        )
        .with_our_turns(vec![text("It begins well and").cut(), text("It begins well."), text("Well again.")])
        .except("an answer that is cut", &[OnlyOurs("/events/1"), OnlyOurs("/events/1")]),
        Scenario::new(
            "a_secret_is_not_told",
            json!([{"do": "prompt", "text": "tell"}, {"do": "shell", "text": "echo sk-standin"}]),
            vec![
                StandInTurn::call("c1", "bash", json!({"command": "echo sk-standin"})),
                text("It is sk-standin."),
            ],
        )
        .except(
            "secrets",
            &[
                Differs("/events/1/args/command"),
                Differs("/events/2/result/content/0/text"),
                Differs("/events/4/text"),
                Differs("/events/6/result/text"),
                Differs("/events/9/args/command"),
                Differs("/events/10/result/content/0/text"),
                Differs("/events/11/result/stdout"),
            ],
        ),
        Scenario::new(
            "a_call_without_an_id_is_answered",
            twice(),
            vec![StandInTurn::call("", "bash", json!({"command": "echo one"})), text("One."), text("Well.")],
        )
        .except(
            "a call without an id",
            &[
                Differs("/events/1/toolCallId"),
                Differs("/events/2/toolCallId"),
                Differs("/requests/*/messages/2/tool_calls/0/id"),
                Differs("/requests/*/messages/3/tool_call_id"),
            ],
        ),
    ]
}
