//! Skills of the workspace.

use serde_json::{Map, Value, json};

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
    [known(), vec![of_all_forms()], WRONG.map(|(name, text)| wrong(name, text)).to_vec()].concat()
}

/// Front matters that are wrong.
const WRONG: [(&str, &str); 10] = [
    ("a_skill_without_front_matter_is_wrong", "Do it."),
    ("a_skill_without_a_description_is_wrong", "---\nname: skill\n---\nDo it."),
    ("a_skill_with_an_empty_description_is_wrong", "---\nname: skill\ndescription: \" \"\n---\nDo it."),
    ("a_skill_with_another_name_than_its_folder_is_wrong", "---\nname: other\ndescription: d\n---\nDo it."),
    ("a_skill_with_capital_letters_in_its_name_is_wrong", "---\nname: Skill\ndescription: d\n---\nDo it."),
    ("a_skill_whose_front_matter_is_no_yaml_is_wrong", "---\nname: [\n---\nDo it."),
    ("a_skill_whose_front_matter_is_a_list_is_wrong", "---\n- name\n---\nDo it."),
    (
        "a_skill_with_a_number_in_its_metadata_is_wrong",
        "---\nname: skill\ndescription: d\nmetadata:\n  version: 1\n---\nDo it.",
    ),
    (
        "a_skill_with_a_list_of_tools_is_wrong",
        "---\nname: skill\ndescription: d\nallowed-tools:\n  - read\n---\nDo it.",
    ),
    (
        "a_skill_with_an_empty_license_is_wrong",
        "---\nname: skill\ndescription: d\nlicense: \"\"\n---\nDo it.",
    ),
];

/// A wrong skill fails the run before its model is asked.
fn wrong(name: &'static str, text: &str) -> Scenario {
    Scenario::new(name, json!([{"do": "prompt", "text": "hello"}]), vec![])
        .with(json!({"run": {}, "files": {"/home/user/.agents/skills/skill/SKILL.md": text}}))
        .except("texts and names of errors", &[Differs("/events/1/error/message")])
}

/// Skills in forms that are all right.
fn of_all_forms() -> Scenario {
    let forms = [
        ("a", "---\r\nname: a\r\ndescription: Lines of Windows.\r\n---\r\nDo it.\r\n"),
        ("b", "---  \nname: b\ndescription: Spaces behind the marks.\n---  \nDo it."),
        ("c", "---\nname: c\ndescription: Nothing behind it.\n---"),
        (
            "d-1",
            "---\nname: d-1\ndescription: '  Spaces around it.  '\nlicense: MIT\ncompatibility: Any.\n---\nDo it.\n---\n",
        ),
        (
            "e",
            "---\nname: e\ndescription: |\n  Two\n  lines.\nmetadata: {}\nallowed-tools: ' '\nmore: [1, 2]\n---\nDo it.",
        ),
        (
            "f",
            "---\nname: f\ndescription: \"Quotes: \\\"yes\\\"\"\nlicense:\nmetadata:\n  a: \"1\"\n---\n\n\nDo it.",
        ),
    ];
    let path = |name: &str| format!("/home/user/.agents/skills/{name}/SKILL.md");
    let files: Map<String, Value> = forms.iter().map(|(name, text)| (path(name), json!(text))).collect();
    Scenario::new(
        "skills_of_all_forms_are_listed",
        json!([{"do": "prompt", "text": "hello"}]),
        vec![text("Hello.")],
    )
    .with(json!({ "files": files }))
}

fn known() -> Vec<Scenario> {
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
