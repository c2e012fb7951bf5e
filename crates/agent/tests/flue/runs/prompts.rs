//! Prompts, and the system prompt.

use eyot_agent::StopReason;
use eyot_agent::standin::StandInTurn;
use serde_json::json;

use super::{call, text};
use crate::scenario::Difference::{OnlyOurs, OnlyTheirs};
use crate::scenario::Scenario;

/// A PNG of one pixel, as base64.
pub const PIXEL: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

pub fn scenarios() -> Vec<Scenario> {
    [system_prompts(), conversations(), answers()].concat()
}

fn system_prompts() -> Vec<Scenario> {
    vec![
        Scenario::new(
            "the_system_prompt_has_agents_md_claude_md_and_the_folder",
            json!([{"do": "prompt", "text": "hello"}]),
            vec![text("Hello.")],
        )
        .with(json!({"files": {
            "/home/user/AGENTS.md": "\nUse tabs.\n\n",
            "/home/user/CLAUDE.md": "Use spaces.\n",
            "/home/user/b.txt": "b",
            "/home/user/.hidden": "",
            "/home/user/Zed/x": "",
            "/home/user/Zed/AGENTS.md": "Not me.",
        }})),
        Scenario::new(
            "an_agent_without_instructions_has_the_rest_of_the_system_prompt",
            json!([{"do": "prompt", "text": "hello"}]),
            vec![text("Hello.")],
        )
        .with(json!({"instructions": null})),
        Scenario::new(
            "another_working_directory_has_its_own_instructions_and_commands",
            json!([
                {"do": "prompt", "text": "hello"},
                {"do": "shell", "text": "pwd"},
                {"do": "shell", "text": "pwd", "cwd": "/tmp"},
            ]),
            vec![call("c1", "bash", json!({"command": "pwd; cat x"})), text("Hello.")],
        )
        .with(json!({
            "cwd": "sub",
            "files": {"/home/user/AGENTS.md": "Not me.", "/home/user/sub/AGENTS.md": "Me.", "/home/user/sub/x": "x\n"},
        })),
        Scenario::new(
            "an_empty_agents_md_leaves_its_place",
            json!([{"do": "prompt", "text": "hello"}]),
            vec![text("Hello.")],
        )
        .with(json!({"files": {"/home/user/AGENTS.md": "\n", "/home/user/CLAUDE.md": "Use spaces."}})),
    ]
}

fn conversations() -> Vec<Scenario> {
    vec![
        Scenario::new(
            "a_prompt_is_answered_and_the_next_one_has_both_before_it",
            json!([{"do": "prompt", "text": "hello"}, {"do": "prompt", "text": "and now?"}]),
            vec![text("Hello."), text("Nothing.")],
        ),
        Scenario::new(
            "a_command_of_the_caller_is_shown_to_the_model_without_its_variables",
            json!([
                {"do": "shell", "text": "echo from the caller; exit 2", "env": {"TOKEN": "secret"}},
                {"do": "prompt", "text": "what was that?"},
            ]),
            vec![text("A command.")],
        ),
        Scenario::new(
            "a_call_can_have_another_model_and_the_next_one_has_the_usual_one",
            json!([
                {"do": "prompt", "text": "hello", "model": "other"},
                {"do": "prompt", "text": "and now?"},
                {"do": "task", "text": "alone", "model": "other"},
            ]),
            vec![text("Other."), text("Usual."), text("Alone.")],
        ),
        Scenario::new(
            "letters_of_all_kinds_arrive_as_they_were_written",
            json!([{"do": "prompt", "text": "日本語 \u{1F600} é \u{2028} \" \\"}]),
            vec![
                call("c1", "bash", json!({"command": "printf '日本語 \u{1F600}\\n'"})),
                text("\u{1F600} \u{200d} é"),
            ],
        ),
        Scenario::new(
            "texts_and_calls_of_one_answer_keep_their_order",
            json!([{"do": "prompt", "text": "go"}]),
            vec![
                StandInTurn::empty()
                    .and_text("One. ")
                    .and_call("c1", "bash", json!({"command": "echo one"}))
                    .and_text("Two."),
                text("Done."),
            ],
        ),
    ]
}

fn answers() -> Vec<Scenario> {
    vec![
        Scenario::new(
            "reasoning_is_told_piece_by_piece_and_goes_back_to_the_model",
            json!([{"do": "prompt", "text": "think"}, {"do": "prompt", "text": "again"}]),
            vec![
                StandInTurn::empty().and_thinking("I should look at the files first.", "").and_call(
                    "c1",
                    "bash",
                    json!({"command": "ls"}),
                ),
                StandInTurn::empty().and_thinking("There are none.", "").and_text("There are no files."),
                text("Still none."),
            ],
        )
        .except("the end of reasoning", &[OnlyTheirs("/events/10"), OnlyOurs("/events/9")]),
        Scenario::new(
            "an_image_for_a_model_that_sees_none_becomes_a_note",
            json!([{
                "do": "prompt",
                "text": "look",
                "images": [{"type": "image", "data": PIXEL, "mimeType": "image/png"}],
            }]),
            vec![text("I see nothing.")],
        ),
        Scenario::new(
            "an_answer_that_reached_the_limit_is_the_answer",
            json!([{"do": "prompt", "text": "tell me all"}, {"do": "prompt", "text": "go on"}]),
            vec![text("It begins with").stopped_by(StopReason::Length), text("the end.")],
        ),
        Scenario::new(
            "an_answer_without_text_is_an_empty_answer",
            json!([{"do": "prompt", "text": "say nothing"}, {"do": "prompt", "text": "go on"}]),
            vec![StandInTurn::empty(), text("Well.")],
        ),
        Scenario::new(
            "a_text_before_and_after_tools_is_told_and_the_last_one_is_the_answer",
            json!([{"do": "prompt", "text": "go"}]),
            vec![
                text("First I look.").and_call("c1", "bash", json!({"command": "ls"})),
                text("One thing.\nAnother thing."),
            ],
        ),
    ]
}
