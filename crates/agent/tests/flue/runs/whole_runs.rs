//! Runs of an agent, from their start to their end.

use serde_json::json;

use super::text;
use crate::scenario::Scenario;

pub fn scenarios() -> Vec<Scenario> {
    vec![
        Scenario::new(
            "a_run_tells_of_its_start_its_work_its_log_and_its_end",
            json!([
                {"do": "log", "level": "info", "text": "I begin", "attributes": {"number": 1}},
                {"do": "prompt", "text": "hello"},
                {"do": "log", "level": "warn", "text": "I am slow"},
                {"do": "log", "level": "error", "text": "I end", "attributes": {"why": {"deep": [1, null]}}},
            ]),
            vec![text("Hello.")],
        )
        .with(json!({"run": {"task": "greet", "times": 2}})),
        Scenario::new(
            "a_run_whose_handler_fails_ends_with_its_error",
            json!([{"do": "prompt", "text": "hello"}, {"do": "fail", "text": "I can't."}]),
            vec![text("Hello.")],
        )
        .with(json!({"run": "greet"})),
        Scenario::new("a_run_that_does_nothing_has_a_start_and_an_end", json!([]), vec![])
            .with(json!({"run": null})),
    ]
}
