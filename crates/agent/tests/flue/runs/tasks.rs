//! Tasks, and the agents that do them.

use eyot_agent::standin::StandInTurn;
use serde_json::{Value, json};

use super::{call, go, text};
use crate::scenario::Difference::Differs;
use crate::scenario::Scenario;

pub fn scenarios() -> Vec<Scenario> {
    [of_the_caller(), of_the_model(), that_go_wrong()].concat()
}

fn helpers() -> Value {
    json!({
        "subagents": [{"name": "helper", "instructions": "Help."}, {"name": "adder", "tools": ["add"]}],
        "files": {"/home/user/AGENTS.md": "Be kind.", "/home/user/sub/AGENTS.md": "Be quick."},
    })
}

fn of_the_caller() -> Vec<Scenario> {
    vec![
        Scenario::new(
            "a_task_of_the_caller_is_no_part_of_the_conversation",
            json!([{"do": "task", "text": "alone"}, {"do": "prompt", "text": "hello"}]),
            vec![text("I am alone."), text("Hello.")],
        ),
        Scenario::new(
            "a_task_of_the_caller_for_an_agent_that_does_not_exist_fails",
            json!([{"do": "task", "text": "help", "agent": "nobody"}]),
            vec![],
        )
        .with(helpers())
        .except(
            "texts and names of errors",
            &[Differs("/events/1/error/message"), Differs("/outcomes/0/error/message")],
        ),
        Scenario::new(
            "a_task_in_another_folder_reads_the_instructions_there",
            json!([{"do": "task", "text": "help", "agent": "helper", "cwd": "sub"}]),
            vec![call("h1", "bash", json!({"command": "pwd"})), text("Done.")],
        )
        .with(helpers()),
        Scenario::new(
            "a_task_gives_a_result",
            json!([{"do": "task", "text": "count", "result": "number"}]),
            vec![call("c1", "finish", json!({"n": 3}))],
        ),
        Scenario::new(
            "an_agent_can_have_its_own_effort",
            json!([{"do": "task", "text": "help", "agent": "thinker"}, {"do": "task", "text": "help"}]),
            vec![text("Done."), text("Done.")],
        )
        .by(eyot_agent::ModelApi::OpenaiResponses)
        .with(json!({"thinking": "low", "subagents": [{"name": "thinker", "thinkingLevel": "high"}]})),
    ]
}

fn of_the_model() -> Vec<Scenario> {
    vec![
        Scenario::new(
            "a_task_of_the_model_is_done_by_a_named_agent",
            go(),
            vec![
                call("c1", "task", json!({"prompt": "help", "agent": "helper", "description": "Helping"})),
                call("h1", "bash", json!({"command": "ls"})),
                text("It says hi."),
                text("That was all."),
            ],
        )
        .with(helpers()),
        Scenario::new(
            "a_task_without_an_agent_has_the_settings_of_its_session",
            go(),
            vec![call("c1", "task", json!({"prompt": "help"})), text("It says hi."), text("That was all.")],
        )
        .with(helpers())
        .with(json!({"tools": ["add"]})),
        Scenario::new(
            "an_agent_with_tools_of_its_own_has_them_in_its_tasks",
            go(),
            vec![
                call("c1", "task", json!({"prompt": "help", "agent": "adder"})),
                call("h1", "add", json!({"a": 1, "b": 2})),
                text("Three."),
                text("That was all."),
            ],
        )
        .with(helpers()),
        Scenario::new(
            "tools_of_a_call_are_those_of_its_tasks_too",
            json!([{"do": "prompt", "text": "go", "tools": ["add"]}]),
            vec![
                call("c1", "task", json!({"prompt": "help"})),
                call("h1", "add", json!({"a": 1, "b": 2})),
                text("Three."),
                text("That was all."),
            ],
        ),
        Scenario::new(
            "two_tasks_of_one_turn_are_done_at_the_same_time",
            go(),
            vec![
                StandInTurn::empty().and_call("c1", "task", json!({"prompt": "help"})).and_call(
                    "c2",
                    "task",
                    json!({"prompt": "help"}),
                ),
                text("Done."),
                text("Done."),
                text("That was all."),
            ],
        )
        .in_any_order(),
    ]
}

fn that_go_wrong() -> Vec<Scenario> {
    vec![
        Scenario::new(
            "a_task_for_an_agent_that_does_not_exist_is_an_error_for_the_model",
            go(),
            vec![call("c1", "task", json!({"prompt": "help", "agent": "nobody"})), text("Nobody is there.")],
        )
        .with(helpers())
        .except(
            "a task for an agent that does not exist",
            &[
                Differs("/requests/1/messages/3/content"),
                Differs("/events/2/isError"),
                Differs("/events/2/result/content/0/text"),
            ],
        ),
        Scenario::new(
            "a_task_whose_model_fails_is_an_error_for_the_model",
            go(),
            vec![
                call("c1", "task", json!({"prompt": "help"})),
                StandInTurn::failure(400, "invalid_request_error", "no"),
                text("It failed."),
            ],
        )
        .except(
            "texts and names of errors",
            &[
                Differs("/requests/2/messages/3/content"),
                Differs("/events/*/error"),
                Differs("/events/7/result"),
                Differs("/events/8/result/content/0/text"),
            ],
        ),
        Scenario::new(
            "a_task_without_an_answer_has_a_note_in_its_place",
            go(),
            vec![call("c1", "task", json!({"prompt": "help"})), StandInTurn::empty(), text("Nothing came.")],
        ),
        Scenario::new(
            "tasks_nest_four_deep",
            go(),
            vec![
                call("c1", "task", json!({"prompt": "one"})),
                call("c2", "task", json!({"prompt": "two"})),
                call("c3", "task", json!({"prompt": "three"})),
                call("c4", "task", json!({"prompt": "four"})),
                call("c5", "task", json!({"prompt": "five"})),
                text("Four."),
                text("Three."),
                text("Two."),
                text("One."),
                text("Done."),
            ],
        ),
    ]
}
