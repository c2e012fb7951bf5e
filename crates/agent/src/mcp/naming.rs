//! The names, descriptions and schemas under which a server's tools are offered to a model.

use eyot::{Error, Result};
use eyot_tools::{MAX_TOOL_NAME_BYTES, clip};
use rmcp::model::Tool;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

const PREFIX: &str = "mcp__";
const SEPARATOR: &str = "__";
/// The length of the digest that makes a shortened name unique.
const DIGEST_LETTERS: usize = 8;
/// The longest server part of a shortened name.
const MAX_SERVER_LETTERS: usize = 20;

/// Returns the name of a tool as a model sees it, and whether it is shortened. Different names stay different when they are
/// shortened.
pub(super) fn tool_name(server: &str, tool: &str) -> (String, bool) {
    let (server, tool) = (sanitized(server), sanitized(tool));
    let whole = format!("{PREFIX}{server}{SEPARATOR}{tool}");
    if whole.len() <= MAX_TOOL_NAME_BYTES {
        return (whole, false);
    }
    let digest = hex::encode(Sha256::digest(&whole));
    let server = &server[..server.len().min(MAX_SERVER_LETTERS)];
    let room = MAX_TOOL_NAME_BYTES - PREFIX.len() - server.len() - SEPARATOR.len() - 1 - DIGEST_LETTERS;
    let tool = &tool[..tool.len().min(room)];
    (format!("{PREFIX}{server}{SEPARATOR}{tool}_{}", &digest[..DIGEST_LETTERS]), true)
}

/// Returns the part with other characters than letters, digits, `_` and `-` replaced, and with no `_` at the ends.
fn sanitized(part: &str) -> String {
    // A character outside of Unicode's first plane becomes two `_`, as in the reference, which counts in UTF-16.
    let letters = part.chars().flat_map(|letter| {
        let is_good = letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
        std::iter::repeat_n(if is_good { letter } else { '_' }, if is_good { 1 } else { letter.len_utf16() })
    });
    let letters: String = letters.collect();
    match letters.trim_matches('_') {
        "" => "unnamed".to_owned(),
        part => part.to_owned(),
    }
}

/// Returns the description of a tool as a model reads it.
pub(super) fn description(server: &str, tool: &Tool, is_shortened: bool) -> String {
    let mut parts = vec![format!("MCP tool \"{}\" from server \"{server}\".", tool.name)];
    if is_shortened {
        parts.push("Its name here is shortened.".to_owned());
    }
    let title = tool.title.as_deref().or_else(|| tool.annotations.as_ref()?.title.as_deref());
    if let Some(title) = title.filter(|title| !title.is_empty() && *title != tool.name) {
        parts.push(format!("Title: {title}."));
    }
    if let Some(description) = tool.description.as_deref().filter(|description| !description.is_empty()) {
        parts.push(description.to_owned());
    }
    clip(&parts.join(" "), |_| "the server's description is too long".to_owned())
}

/// Returns the schema of a tool's arguments, with the fields that every model API requires.
pub(super) fn input_schema(server: &str, tool: &Tool) -> Result<Value> {
    let mut schema: Map<String, Value> = tool.input_schema.as_ref().clone();
    let kind = schema.entry("type").or_insert_with(|| json!("object"));
    if kind.is_null() {
        *kind = json!("object");
    }
    if kind != "object" {
        let name = &tool.name;
        let refusal =
            format!("MCP server `{server}` declares a tool `{name}` whose arguments are not an object");
        let hint = "leave this tool out: list the others in `tools`";
        return Err(Error::new(eyot::ErrorKind::Invalid, refusal).with_hint(hint));
    }
    let properties = schema.entry("properties").or_insert_with(|| json!({}));
    if properties.is_null() {
        *properties = json!({});
    }
    if schema.get("required").is_some_and(Value::is_null) {
        schema.remove("required");
    }
    Ok(Value::Object(schema))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn tool(name: &str, schema: Value) -> Tool {
        let schema = schema.as_object().unwrap().clone();
        Tool::new(name.to_owned(), "does it", Arc::new(schema))
    }

    #[test]
    fn parts_of_names_are_sanitized() {
        for (server, name, expected) in [
            ("files", "read", "mcp__files__read"),
            ("my files.v2", "read/all", "mcp__my_files_v2__read_all"),
            ("_a_", "__b-c__", "mcp__a__b-c"),
            ("", "…", "mcp__unnamed__unnamed"),
            ("s", "a👍b", "mcp__s__a__b"),
        ] {
            assert_eq!(tool_name(server, name), (expected.to_owned(), false));
        }
    }

    #[test]
    fn long_names_are_shortened_and_stay_apart() {
        let long = "x".repeat(100);
        let server = "y".repeat(100);
        let names: Vec<String> = [
            ("s", format!("{long}1")),
            ("s", format!("{long}2")),
            (server.as_str(), "a".to_owned()),
            (server.as_str(), "b".to_owned()),
        ]
        .iter()
        .map(|(server, tool)| tool_name(server, tool))
        .map(|(name, is_shortened)| {
            assert!(is_shortened && name.len() <= MAX_TOOL_NAME_BYTES, "{name}");
            name
        })
        .collect();
        let distinct: std::collections::BTreeSet<_> = names.iter().collect();
        assert_eq!(distinct.len(), names.len());
        assert!(names[2].starts_with("mcp__yyyyyyyyyyyyyyyyyyyy__a_"), "{}", names[2]);
        let exact = "z".repeat(MAX_TOOL_NAME_BYTES - "mcp__s__".len());
        assert_eq!(tool_name("s", &exact), (format!("mcp__s__{exact}"), false));
    }

    #[test]
    fn descriptions_name_tool_server_and_title() {
        let mut weather = tool("get weather", json!({}));
        assert_eq!(
            description("my server", &weather, false),
            "MCP tool \"get weather\" from server \"my server\". does it"
        );
        weather.title = Some("Weather".to_owned());
        weather.description = None;
        assert_eq!(
            description("s", &weather, true),
            "MCP tool \"get weather\" from server \"s\". Its name here is shortened. Title: Weather."
        );
        weather.title = Some("get weather".to_owned());
        assert_eq!(description("s", &weather, false), "MCP tool \"get weather\" from server \"s\".");
    }

    #[test]
    fn schemas_get_a_type_and_properties() {
        let plain = json!({"type": "object", "properties": {}});
        assert_eq!(input_schema("s", &tool("t", json!({}))).unwrap(), plain);
        assert_eq!(
            input_schema("s", &tool("t", json!({"properties": null, "required": null}))).unwrap(),
            plain
        );
        let own = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "$schema": "x"});
        assert_eq!(input_schema("s", &tool("t", own.clone())).unwrap(), own);
        let error = input_schema("s", &tool("t", json!({"type": "string"}))).unwrap_err();
        assert!(error.to_string().contains("`t`"), "{error}");
    }
}
