//! The tools that a model calls.

use eyot_agent::StopReason;
use eyot_agent::standin::StandInTurn;
use serde_json::json;

use super::{call, go, text, twice};
use crate::scenario::Difference::Differs;
use crate::scenario::Scenario;

pub fn scenarios() -> Vec<Scenario> {
    [outputs(), mistakes(), wrong_calls(), odd_calls(), other_tools(), secrets()].concat()
}

fn outputs() -> Vec<Scenario> {
    vec![
        Scenario::new(
            "files_are_written_edited_read_and_found",
            go(),
            vec![
                text("Let me look at it.").and_call("c1", "bash", json!({"command": "echo hi > a.txt"})),
                call("c2", "write", json!({"path": "dir/b.txt", "content": "one\ntwo\n"})),
                call("c3", "edit", json!({"path": "dir/b.txt", "oldText": "one", "newText": "1"})),
                call("c4", "read", json!({"path": "dir/b.txt"})).and_call(
                    "c5",
                    "glob",
                    json!({"pattern": "*.txt"}),
                ),
                call("c6", "bash", json!({"command": "echo out; echo err >&2; exit 3"})),
                call("c7", "grep", json!({"pattern": "two", "path": "dir"})),
                call("c8", "grep", json!({"pattern": "none of it"})),
                call("c9", "glob", json!({"pattern": "*.rs"})),
                call("c10", "bash", json!({"command": "true"})),
                text("That was all."),
            ],
        ),
        Scenario::new(
            "a_long_output_is_cut_at_the_same_place",
            go(),
            vec![
                call("c1", "read", json!({"path": "lines.txt"})),
                call("c2", "read", json!({"path": "lines.txt", "offset": 1999, "limit": 2})),
                call("c3", "read", json!({"path": "wide.txt"})),
                call("c4", "bash", json!({"command": "cat lines.txt"})),
                call("c5", "grep", json!({"pattern": "line", "path": "lines.txt"})),
                call("c6", "grep", json!({"pattern": "long", "path": "long.txt"})),
                text("So long."),
            ],
        )
        .with(json!({"files": {
            "/home/user/lines.txt": (1..=2_500).map(|number| format!("line {number}\n")).collect::<String>(),
            "/home/user/wide.txt": "日".repeat(30_000) + "\n" + &"本".repeat(30_000),
            "/home/user/long.txt": "long ".repeat(200),
        }})),
        Scenario::new(
            "a_command_that_takes_too_long_is_stopped",
            go(),
            vec![
                call("c1", "bash", json!({"command": "echo one; sleep 5", "timeout": 0.5})),
                text("It took too long."),
            ],
        )
        .except(
            "a command that takes too long or is aborted",
            &[Differs("/requests/1/messages/3/content"), Differs("/events/2/result/content/0/text")],
        ),
        Scenario::new(
            "an_answer_of_a_tool_can_be_empty",
            go(),
            vec![call("c1", "silent", json!({})), text("It said nothing.")],
        )
        .with(json!({"tools": ["silent"]}))
        .except("the bodies of requests", &[Differs("/requests/1/messages/3/content")]),
    ]
}

fn mistakes() -> Vec<Scenario> {
    vec![
        Scenario::new(
            "all_occurrences_are_replaced_and_a_search_has_a_filter",
            go(),
            vec![
                call("c1", "write", json!({"path": "deep/er/a.txt", "content": "x y x"})),
                call(
                    "c2",
                    "edit",
                    json!({"path": "deep/er/a.txt", "oldText": "x", "newText": "z", "replaceAll": true}),
                ),
                call("c3", "write", json!({"path": "deep/b.md", "content": "z\n"})),
                call("c4", "grep", json!({"pattern": "z", "path": "deep", "include": "*.txt"})),
                call("c5", "glob", json!({"pattern": "*.md", "path": "deep"})),
                call(
                    "c6",
                    "edit",
                    json!({"path": "deep/er/a.txt", "oldText": "x", "newText": "z", "replaceAll": true}),
                ),
                call("c7", "read", json!({"path": "/home/user/deep/../deep/er/a.txt"})),
                text("Done."),
            ],
        ),
        Scenario::new(
            "what_a_tool_can_not_do_is_told_to_the_model",
            go(),
            vec![
                call("c1", "read", json!({"path": "missing.txt"})),
                call("c2", "write", json!({"path": "a.txt", "content": "x x"})),
                call("c3", "edit", json!({"path": "a.txt", "oldText": "y", "newText": "z"})),
                call("c4", "edit", json!({"path": "a.txt", "oldText": "x", "newText": "z"})),
                call("c5", "read", json!({"path": "a.txt", "offset": 9})),
                text("Nothing worked."),
            ],
        )
        .except(
            "texts and names of errors",
            &[Differs("/requests/*/messages/3/content"), Differs("/events/2/result/content/0/text")],
        ),
    ]
}

fn wrong_calls() -> Vec<Scenario> {
    vec![
        Scenario::new(
            "a_tool_that_does_not_exist_is_an_error_for_the_model",
            go(),
            vec![call("c1", "nothing", json!({"a": 1})), text("There is no such tool.")],
        )
        .except(
            "an unknown tool, arguments of another shape",
            &[Differs("/requests/1/messages/3/content"), Differs("/events/2/result/content/0/text")],
        ),
        Scenario::new(
            "arguments_of_another_shape_are_an_error_for_the_model",
            go(),
            vec![
                call("c1", "bash", json!({})),
                call("c2", "add", json!({"a": "no number", "b": 2})),
                text("I can't."),
            ],
        )
        .with(json!({"tools": ["add"]}))
        .except(
            "an unknown tool, arguments of another shape",
            &[
                Differs("/requests/*/messages/3/content"),
                Differs("/requests/*/messages/5/content"),
                Differs("/events/2/result/content/0/text"),
                Differs("/events/5/result/content/0/text"),
            ],
        ),
        Scenario::new(
            "a_number_that_is_written_as_a_text_is_an_error_for_the_model",
            go(),
            vec![call("c1", "add", json!({"a": "1", "b": 2})), text("Three.")],
        )
        .with(json!({"tools": ["add"]}))
        .except(
            "a number that is written as a text",
            &[
                Differs("/requests/1/messages/3/content"),
                Differs("/events/2/result/content/0/text"),
                Differs("/events/2/isError"),
            ],
        ),
    ]
}

fn odd_calls() -> Vec<Scenario> {
    vec![
        Scenario::new(
            "arguments_that_are_no_json_are_an_error_for_the_model",
            go(),
            vec![
                StandInTurn::empty().and_raw_call("c1", "bash", "{\"command\": \"echo a"),
                StandInTurn::empty().and_raw_call("c2", "bash", "echo b"),
                text("I can't."),
            ],
        )
        .except(
            "arguments that are not JSON",
            &[
                Differs("/requests/*/messages/2/tool_calls/0/function/arguments"),
                Differs("/requests/*/messages/4/tool_calls/0/function/arguments"),
                Differs("/requests/*/messages/3/content"),
                Differs("/requests/*/messages/5/content"),
                Differs("/events/1/args"),
                Differs("/events/2/isError"),
                Differs("/events/2/result/content/0/text"),
                Differs("/events/4/args"),
                Differs("/events/5/result/content/0/text"),
            ],
        ),
        Scenario::new(
            "no_arguments_are_those_of_a_tool_that_needs_none",
            go(),
            vec![StandInTurn::empty().and_raw_call("c1", "fails", ""), text("It is broken.")],
        )
        .with(json!({"tools": ["fails"]})),
        Scenario::new(
            "a_call_of_an_answer_that_reached_the_limit_is_run",
            go(),
            vec![
                StandInTurn::empty()
                    .and_raw_call("c1", "bash", "{\"command\": \"echo a\"}")
                    .stopped_by(StopReason::Length),
                text("Well."),
            ],
        ),
        Scenario::new(
            "a_call_without_an_id_is_answered",
            twice(),
            vec![call("", "bash", json!({"command": "echo one"})), text("One."), text("Well.")],
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

fn other_tools() -> Vec<Scenario> {
    vec![
        Scenario::new(
            "calls_of_one_turn_of_which_one_fails_are_all_answered_in_their_order",
            go(),
            vec![
                StandInTurn::empty()
                    .and_call("c1", "bash", json!({"command": "echo one"}))
                    .and_call("c2", "fails", json!({}))
                    .and_call("c3", "nothing", json!({}))
                    .and_call("c4", "add", json!({"a": 1, "b": 2})),
                text("Three of four."),
            ],
        )
        .with(json!({"tools": ["add", "fails"]}))
        .except(
            "an unknown tool, arguments of another shape",
            &[Differs("/requests/1/messages/5/content"), Differs("/events/7/result/content/0/text")],
        ),
        Scenario::new(
            "tools_of_a_call_are_those_of_this_call_alone",
            json!([
                {"do": "prompt", "text": "add", "tools": ["add"]},
                {"do": "prompt", "text": "add again"},
            ]),
            vec![call("c1", "add", json!({"a": 1, "b": 2})), text("Three."), text("I can't.")],
        ),
        Scenario::new(
            "a_tool_with_the_name_of_a_built_in_one_is_refused",
            json!([{"do": "prompt", "text": "add", "tools": ["add", "add"]}]),
            vec![],
        ),
        Scenario::new(
            "the_caller_s_tools_stand_behind_the_built_in_ones",
            go(),
            vec![call("c1", "add", json!({"a": 0.5, "b": 2})), text("Two and a half.")],
        )
        .with(json!({"tools": ["fails", "add", "waits"]})),
        Scenario::new(
            "the_tools_of_a_sandbox_stand_in_the_place_of_the_built_in_ones",
            go(),
            vec![call("c1", "add", json!({"a": 1, "b": 2})), text("Three.")],
        )
        .with(json!({"sandboxTools": ["add", "fails"]})),
    ]
}

fn secrets() -> Vec<Scenario> {
    vec![
        Scenario::new(
            "a_secret_is_not_told",
            json!([{"do": "prompt", "text": "tell"}, {"do": "shell", "text": "echo sk-standin"}]),
            vec![call("c1", "bash", json!({"command": "echo sk-standin"})), text("It is sk-standin.")],
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
    ]
}
