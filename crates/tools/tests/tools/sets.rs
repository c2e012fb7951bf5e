//! Lists of tools: clashes, choices, and the forms in which they are shown.

use eyot::ErrorKind;
use eyot_tools::{ToolDef, ToolFormat, ToolOutput, Toolset, toolset};
use serde_json::{Value, json};

fn named(name: &str) -> ToolDef {
    ToolDef::new(name, "Mine.", json!({ "type": "object" }), async |_, _| Ok(ToolOutput::text(""))).unwrap()
}

#[test]
fn a_clash_of_names_is_refused() {
    let pool = || toolset("pool").unwrap();
    let refused = pool().with(named("shell")).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::AlreadyExists);
    assert_eq!(refused.to_string(), "add tool `shell` to toolset `pool`: the name is taken");
    assert!(Toolset::new("mine", [named("a"), named("a")]).is_err());
    assert!(pool().and(pool()).is_err());
    let more = pool().with(named("mine")).unwrap();
    assert_eq!(more.names().last(), Some(&"mine"));
}

#[test]
fn only_some_tools_may_be_shown_and_a_name_that_is_none_is_told() {
    let some = toolset("pool").unwrap().only(&["glob", "shell"]).unwrap();
    assert_eq!(some.names(), ["shell", "glob"]);
    let refused = toolset("pool").unwrap().only(&["shell", "bash"]).unwrap_err();
    assert_eq!(refused.to_string(), "toolset `pool` has no tool `bash`");
    assert!(refused.hint().unwrap().starts_with("it has: `shell`, `read_file`"));
}

#[test]
fn an_unknown_toolset_is_told_with_those_that_there_are() {
    let refused = toolset("pol").unwrap_err();
    assert_eq!(
        (refused.kind(), refused.to_string().as_str()),
        (ErrorKind::NotFound, "there is no toolset `pol`")
    );
    assert!(refused.hint().unwrap().contains("`pool`"));
}

#[test]
fn each_api_gets_the_form_that_it_takes() {
    let tools = Toolset::new("mine", [named("a").with_anthropic_type("bash_20250124")]).unwrap();
    let schema = json!({ "type": "object" });
    let forms = [
        (ToolFormat::Anthropic, json!([{ "type": "bash_20250124", "name": "a" }])),
        (
            ToolFormat::OpenAi,
            json!([{ "type": "function",
                     "function": { "name": "a", "description": "Mine.", "parameters": schema } }]),
        ),
        (
            ToolFormat::OpenAiResponses,
            json!([{ "type": "function", "name": "a", "description": "Mine.", "parameters": schema,
                     "strict": false }]),
        ),
        (ToolFormat::Mcp, json!([{ "name": "a", "description": "Mine.", "inputSchema": schema }])),
    ];
    for (format, expected) in forms {
        assert_eq!(tools.schemas(format), expected);
    }
}

/// Nothing taken away from what was declared: names, types, defaults, what is required.
#[test]
fn the_toolset_pool_has_the_names_types_and_defaults_that_were_declared_for_it() {
    let declared: Vec<Value> = serde_json::from_str(include_str!("declared.json")).unwrap();
    let tools = toolset("pool").unwrap();
    let names: Vec<_> = declared.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(tools.names(), names);
    for tool in &declared {
        let name = tool["name"].as_str().unwrap();
        let (declared, schema) = (&tool["inputSchema"], tools.get(name).unwrap().input_schema());
        assert_eq!(schema.get("required"), declared.get("required"), "{name}");
        let (properties, shown) = (&declared["properties"].as_object().unwrap(), &schema["properties"]);
        assert_eq!(shown.as_object().unwrap().len(), properties.len(), "{name}");
        for (property, declared) in properties.iter() {
            for (key, value) in declared.as_object().unwrap() {
                assert_eq!(&shown[property][key], value, "{name}.{property}.{key}");
            }
        }
    }
}
