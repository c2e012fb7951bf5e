//! Models that fail.

use std::time::Duration;

use eyot_agent::StopReason;
use eyot_agent::standin::StandInTurn;
use serde_json::json;

use super::{call, text, twice};
use crate::scenario::Difference::{Differs, OnlyOurs};
use crate::scenario::Scenario;

pub fn scenarios() -> Vec<Scenario> {
    [refused(), unavailable(), cut()].concat()
}

/// The failure, which ours waits for no longer than a millisecond.
fn soon(failure: StandInTurn) -> StandInTurn {
    failure.with_header("retry-after-ms", "1")
}

/// A prompt whose model fails, and fails again for ours each time that it is asked.
fn again(name: &'static str, failing: StandInTurn) -> Scenario {
    let turns = vec![failing.clone(), failing.clone(), failing.clone(), text("Well.")];
    Scenario::new(name, twice(), vec![failing, text("Well.")]).with_our_turns(turns).with_errors_of_models()
}

fn refused() -> Vec<Scenario> {
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
        Scenario::new(
            "a_refusal_fails_the_prompt",
            twice(),
            vec![text("I won't.").stopped_by(StopReason::Refusal), text("Well.")],
        )
        .with_errors_of_models()
        .except("a refusal", &[Differs("/events/2/stopReason")]),
        Scenario::new(
            "a_prompt_for_a_result_fails_with_its_model",
            json!([{"do": "prompt", "text": "go", "tools": ["add"], "result": "number"}]),
            vec![StandInTurn::failure(404, "not_found_error", "no such model")],
        )
        .with_errors_of_models(),
    ]
}

fn unavailable() -> Vec<Scenario> {
    vec![
        again("too_many_requests_fail_the_prompt", StandInTurn::rate_limited(Duration::from_millis(1))),
        again("an_overloaded_model_fails_the_prompt", soon(StandInTurn::overloaded())),
        again(
            "an_unavailable_model_fails_the_prompt",
            soon(StandInTurn::failure(503, "service_unavailable", "Unavailable")),
        ),
        again("an_error_of_the_provider_fails_the_prompt", soon(StandInTurn::server_error())),
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
    ]
}

fn cut() -> Vec<Scenario> {
    vec![
        again("an_answer_that_is_cut_fails_the_prompt", text("It begins well and then").cut()),
        again(
            "an_error_in_an_answer_fails_the_prompt",
            text("It begins well and then").broken_by("overloaded_error"),
        ),
        again(
            "a_call_that_is_cut_is_not_run",
            call("c1", "bash", json!({"command": "echo never > a.txt"})).cut(),
        ),
        again(
            "an_answer_without_a_finish_reason_fails_the_prompt",
            text("It begins well and then").unfinished(),
        ),
        Scenario::new(
            "an_answer_that_is_cut_is_asked_for_again",
            twice(),
            vec![text("It begins well."), text("Well again.")],
        )
        .with_our_turns(vec![text("It begins well and").cut(), text("It begins well."), text("Well again.")])
        .except("an answer that is cut", &[OnlyOurs("/events/1"), OnlyOurs("/events/1")]),
    ]
}
