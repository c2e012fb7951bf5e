//! Prompts that ask for a result.

use eyot_agent::standin::StandInTurn;
use serde_json::{Value, json};

use super::{call, text};
use crate::scenario::Difference::{Differs, OnlyTheirs};
use crate::scenario::Scenario;

pub fn scenarios() -> Vec<Scenario> {
    [given(), refused()].concat()
}

fn count() -> Value {
    json!([{"do": "prompt", "text": "count", "result": "number"}])
}

fn given() -> Vec<Scenario> {
    vec![
        Scenario::new(
            "a_result_is_given_by_finish",
            count(),
            vec![call("c1", "bash", json!({"command": "ls"})), call("c2", "finish", json!({"n": 3}))],
        ),
        Scenario::new(
            "a_text_as_a_result_comes_in_a_wrapper",
            json!([{"do": "prompt", "text": "name it", "result": "text"}, {"do": "prompt", "text": "and now?"}]),
            vec![call("c1", "finish", json!({"result": "Ada"})), text("Nothing.")],
        ),
        Scenario::new(
            "a_list_as_a_result_comes_in_a_wrapper",
            json!([{"do": "prompt", "text": "name them", "result": "list"}]),
            vec![call("c1", "finish", json!({"result": [{"name": "Ada"}]}))],
        ),
        Scenario::new(
            "the_first_of_two_results_counts",
            count(),
            vec![
                StandInTurn::empty().and_call("c1", "finish", json!({"n": 1})).and_call(
                    "c2",
                    "finish",
                    json!({"n": 2}),
                ),
                text("Done."),
            ],
        )
        .except(
            "two results in one turn",
            &[
                OnlyTheirs("/requests/1"),
                OnlyTheirs("/events/7"),
                OnlyTheirs("/events/6"),
                Differs("/events/6/usage"),
                Differs("/events/6/result/usage"),
                Differs("/outcomes/0/result/usage"),
            ],
        ),
        Scenario::new(
            "a_result_beside_another_call_lets_the_model_go_on",
            count(),
            vec![
                StandInTurn::empty().and_call("c1", "finish", json!({"n": 1})).and_call(
                    "c2",
                    "bash",
                    json!({"command": "ls"}),
                ),
                text("Done."),
            ],
        ),
    ]
}

fn refused() -> Vec<Scenario> {
    vec![
        Scenario::new(
            "a_result_of_another_shape_goes_back_to_the_model",
            count(),
            vec![call("c1", "finish", json!({"n": "many"})), call("c2", "finish", json!({"n": 3}))],
        )
        .except(
            "an unknown tool, arguments of another shape",
            &[Differs("/requests/*/messages/3/content"), Differs("/events/2/result/content/0/text")],
        ),
        Scenario::new(
            "a_model_that_gives_no_result_is_reminded",
            count(),
            vec![text("Three."), call("c1", "finish", json!({"n": 3}))],
        ),
        Scenario::new(
            "a_model_that_gives_up_says_why",
            json!([{"do": "prompt", "text": "count", "result": "number"}, {"do": "prompt", "text": "why?"}]),
            vec![
                text("I look.").and_call("c1", "give_up", json!({"reason": "there is nothing to count"})),
                text("Because."),
            ],
        ),
        Scenario::new(
            "giving_up_needs_a_reason",
            count(),
            vec![
                call("c1", "give_up", json!({"reason": ""})),
                call("c2", "give_up", json!({"reason": " "})),
                call("c3", "finish", json!({"n": 3})),
            ],
        )
        .except(
            "an unknown tool, arguments of another shape",
            &[Differs("/requests/*/messages/3/content"), Differs("/events/2/result/content/0/text")],
        ),
        Scenario::new(
            "a_model_that_never_gives_a_result_is_reminded_32_times",
            count(),
            vec![text("Three."); 34],
        ),
    ]
}
