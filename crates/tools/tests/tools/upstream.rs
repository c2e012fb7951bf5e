//! The declarations of the tools that were taken over, held against what their upstreams declare, word for word.

use eyot::{Capabilities, Capability, ErrorKind};
use eyot_tools::{
    AnthropicToolsOptions, ToolFormat, Toolset, WorkspaceTool, WorkspaceToolsOptions, anthropic_tools,
    toolset, workspace_tools,
};
use serde_json::{Value, json};

/// Returns what a toolset declares, as the files of the upstreams have it.
fn declared(tools: &Toolset) -> Vec<Value> {
    let of = |tool: &Value| {
        json!({
            "name": tool["name"], "description": tool["description"], "parameters": tool["input_schema"],
        })
    };
    tools.schemas(ToolFormat::Anthropic).as_array().unwrap().iter().map(of).collect()
}

fn same(got: &[Value], expected: &str) {
    let expected: Vec<Value> = serde_json::from_str(expected).unwrap();
    for (got, expected) in got.iter().zip(&expected) {
        assert_eq!(got, expected);
    }
    assert_eq!(got.len(), expected.len());
}

fn all_of_workspace(capabilities: &Capabilities) -> eyot::Result<Toolset> {
    let options = WorkspaceToolsOptions {
        allow: Some(WorkspaceTool::ALL.to_vec()),
        ..WorkspaceToolsOptions::default()
    };
    workspace_tools(options, capabilities)
}

#[test]
fn coding_declares_what_flue_declares() {
    same(&declared(&toolset("coding").unwrap()), include_str!("flue.json"));
}

#[test]
fn workspace_declares_what_anvia_declares() {
    let capabilities = Capabilities::new([Capability::Processes, Capability::Dial]);
    same(&declared(&all_of_workspace(&capabilities).unwrap()), include_str!("anvia.json"));
}

#[test]
fn workspace_has_four_tools_in_their_order_unless_others_are_asked_for() {
    let names: Vec<_> = toolset("workspace").unwrap().names().iter().map(ToString::to_string).collect();
    assert_eq!(names, ["exec_command", "read_file", "write_file", "list_files"]);
}

#[test]
fn workspace_tools_that_the_sandboxes_have_nothing_for_are_refused_when_they_are_asked_for() {
    let refused = |capabilities: &[Capability]| {
        let capabilities = Capabilities::new(capabilities.iter().copied());
        all_of_workspace(&capabilities).unwrap_err()
    };
    let no_ports = refused(&[Capability::Processes]);
    assert_eq!(no_ports.kind(), ErrorKind::Unsupported);
    assert_eq!(no_ports.to_string(), "The sandbox session does not support published port tools.");
    let no_processes = refused(&[Capability::Dial]);
    assert_eq!(no_processes.to_string(), "The sandbox session does not support managed process tools.");
}

#[test]
fn anthropics_api_is_told_type_and_name_alone() {
    let tools = anthropic_tools(AnthropicToolsOptions::default()).unwrap();
    let expected = json!([
        { "type": "bash_20250124", "name": "bash" },
        { "type": "text_editor_20250728", "name": "str_replace_based_edit_tool" },
    ]);
    assert_eq!(tools.schemas(ToolFormat::Anthropic), expected);
    for format in [ToolFormat::OpenAi, ToolFormat::OpenAiResponses, ToolFormat::Mcp] {
        assert!(tools.schemas(format).to_string().contains("\"insert_text\""), "{format:?}");
    }
}
