//! Skills of the workspace.

use serde_json::{Value, json};

use super::{call, text};
use crate::scenario::Difference::Differs;
use crate::scenario::Scenario;

fn files() -> Value {
    json!({"files": {
        "/home/user/.agents/skills/review-pr/SKILL.md":
            "---\nname: review-pr\ndescription: Reviews a change.\nallowed-tools: read grep\nmetadata:\n  version: \"1\"\n---\n\nRead it twice.\n",
        "/home/user/.agents/skills/count/SKILL.md": "---\nname: count\ndescription: >\n  Counts\n  things.\n---\nCount.\n",
        "/home/user/.agents/skills/empty/notes.txt": "no skill",
        "/home/user/.agents/skills/README.md": "no skill",
    }})
}

pub fn scenarios() -> Vec<Scenario> {
    vec![
        Scenario::new(
            "skills_of_the_workspace_are_listed_in_the_system_prompt",
            json!([{"do": "prompt", "text": "hello"}]),
            vec![text("Hello.")],
        )
        .with(files()),
        Scenario::new(
            "a_skill_is_run_with_arguments",
            json!([{"do": "skill", "text": "review-pr", "args": {"number": 7, "tags": ["a", "b"]}}]),
            vec![text("It is good.")],
        )
        .with(files()),
        Scenario::new(
            "a_skill_gives_a_result",
            json!([{"do": "skill", "text": "count", "args": {"of": "files"}, "result": "number"}]),
            vec![call("c1", "finish", json!({"n": 3}))],
        )
        .with(files()),
        Scenario::new(
            "a_skill_that_does_not_exist_is_an_error_with_the_names_of_the_others",
            json!([{"do": "skill", "text": "missing"}]),
            vec![],
        )
        .with(files())
        .except(
            "texts and names of errors",
            &[Differs("/events/1/error/message"), Differs("/outcomes/0/error/message")],
        ),
        Scenario::new(
            "a_skill_that_is_wrong_fails_the_run_before_its_model_is_asked",
            json!([{"do": "prompt", "text": "hello"}]),
            vec![],
        )
        .with(json!({"run": {}, "files": {"/home/user/.agents/skills/a/SKILL.md": "No front matter."}}))
        .except("texts and names of errors", &[Differs("/events/1/error/message")]),
        Scenario::new(
            "a_packaged_skill_is_run_with_its_instructions",
            json!([
                {"do": "skill", "text": "greet", "args": {"who": "Ada"}},
                {"do": "prompt", "text": "hello"},
            ]),
            vec![text("Hello, Ada."), text("Hello.")],
        )
        .with(json!({"skills": [{
            "name": "greet",
            "description": "Greets.",
            "files": {"SKILL.md": "---\nname: greet\ndescription: Greets.\n---\nSay hello.\n"},
        }]})),
    ]
}
