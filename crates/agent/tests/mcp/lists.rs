//! Lists of tools: pages, names, schemas, and the selection of tools.

use eyot::ErrorKind;
use eyot_agent::{McpServerOptions, connect_mcp_server};
use serde_json::{Value, json};

use super::stub::{Reply, StubServer, tool};
use super::{TRANSPORTS, call, connect, options};

/// Starts a server whose list of tools has these pages, by cursor.
fn listing(page: impl Fn(Option<&str>) -> Value + Send + Sync + 'static) -> StubServer {
    StubServer::start(move |asked| {
        (asked.message["method"] == "tools/list")
            .then(|| Reply::Result(page(asked.message["params"]["cursor"].as_str())))
    })
}

fn tools(names: &[&str]) -> Vec<Value> {
    names.iter().map(|name| tool(name)).collect()
}

#[tokio::test]
async fn every_page_is_read() {
    for spoken in TRANSPORTS {
        let server = listing(|cursor| match cursor {
            None => json!({"tools": tools(&["a"]), "nextCursor": "1"}),
            Some("1") => json!({"tools": [], "nextCursor": "2"}),
            _ => json!({"tools": tools(&["b", "c"])}),
        });
        let connection = connect(&server, spoken).await;
        let names: Vec<&str> = connection.tools().iter().map(eyot_tools::ToolDef::name).collect();
        assert_eq!(names, ["mcp__stub__a", "mcp__stub__b", "mcp__stub__c"]);
    }
}

#[tokio::test]
async fn a_list_without_an_end_is_refused() {
    for (server, reason) in [
        (listing(|_| json!({"tools": tools(&["a"]), "nextCursor": "1"})), "already read"),
        (
            listing(|cursor| {
                let page: usize = cursor.map_or(0, |cursor| cursor.parse().unwrap());
                let many: Vec<Value> = (0..500).map(|number| tool(&format!("t{page}_{number}"))).collect();
                json!({"tools": many, "nextCursor": (page + 1).to_string()})
            }),
            "more than 2000 tools",
        ),
        (
            listing(|cursor| {
                let page: usize = cursor.map_or(0, |cursor| cursor.parse().unwrap());
                let large = json!({"name": format!("t{page}"), "description": "x".repeat(6 << 20), "inputSchema": {}});
                json!({"tools": [large], "nextCursor": (page + 1).to_string()})
            }),
            "more than 16 MiB",
        ),
    ] {
        let error = connect_mcp_server("stub", options(&server, TRANSPORTS[0])).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooLarge, "{error}");
        assert!(error.to_string().contains(reason), "{error}");
    }
}

#[tokio::test]
async fn two_tools_of_one_name_are_refused() {
    let server = listing(|_| json!({"tools": tools(&["read.file", "read/file"])}));
    let error = connect_mcp_server("my files", options(&server, TRANSPORTS[0])).await.unwrap_err();
    let expected =
        "MCP tools from server \"my files\" produced duplicate tool name \"mcp__my_files__read_file\".";
    assert_eq!(error.to_string(), expected);
    let options =
        McpServerOptions { tools: Some(vec!["read/file".to_owned()]), ..options(&server, TRANSPORTS[0]) };
    assert_eq!(connect_mcp_server("my files", options).await.unwrap().tools().len(), 1);
}

#[tokio::test]
async fn only_the_tools_that_are_asked_for_are_offered() {
    let server = listing(|_| json!({"tools": tools(&["a", "b"])}));
    let choose = |names: &[&str]| McpServerOptions {
        tools: Some(names.iter().map(|name| (*name).to_owned()).collect()),
        ..options(&server, TRANSPORTS[0])
    };
    let connection = connect_mcp_server("stub", choose(&["b"])).await.unwrap();
    assert_eq!(connection.tools().len(), 1);
    assert_eq!(connection.tools()[0].name(), "mcp__stub__b");
    assert!(connect_mcp_server("stub", choose(&[])).await.unwrap().tools().is_empty());
    let error = connect_mcp_server("stub", choose(&["b", "c"])).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "`tools` names `c`, which MCP server `stub` does not have; it has `a`, `b`"
    );
}

#[tokio::test]
async fn a_tool_with_a_long_name_is_called_by_its_own() {
    let server = listing(|_| json!({"tools": tools(&[&"n".repeat(90), &format!("{}m", "n".repeat(89))])}));
    let connection = connect(&server, TRANSPORTS[0]).await;
    let tool = &connection.tools()[1];
    assert!(tool.name().len() <= eyot_tools::MAX_TOOL_NAME_BYTES);
    assert!(tool.description().contains("Its name here is shortened."), "{}", tool.description());
    call(&connection, tool.name(), json!({})).await;
    assert_eq!(server.messages("tools/call")[0]["params"]["name"], format!("{}m", "n".repeat(89)));
}

#[tokio::test]
async fn a_server_without_tools_has_none() {
    let server = StubServer::start(|asked| match asked.message["method"].as_str()? {
        "initialize" => Some(Reply::Result(json!({
            "protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"},
        }))),
        "tools/list" => Some(Reply::Error(-32601, "Method not found")),
        _ => None,
    });
    assert!(connect(&server, TRANSPORTS[0]).await.tools().is_empty());
}

#[tokio::test]
async fn arguments_are_checked_before_they_are_sent() {
    let server = listing(|_| {
        let schema =
            json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
        json!({"tools": [{"name": "weather", "title": "Weather", "inputSchema": schema}]})
    });
    let connection = connect(&server, TRANSPORTS[0]).await;
    let expected = "MCP tool \"weather\" from server \"stub\". Title: Weather.";
    assert_eq!(connection.tools()[0].description(), expected);
    let output = call(&connection, "mcp__stub__weather", json!({"city": 1})).await;
    assert!(output.is_error && output.as_text().contains("city"), "{output:?}");
    assert!(server.messages("tools/call").is_empty());
}
