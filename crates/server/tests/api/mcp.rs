//! MCP beside the API.

use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::ground::{Ground, value};

/// Sends one message of a client. The answer is the last of the events.
pub async fn say(ground: &Ground, key: &str, session: Option<&str>, message: Value) -> Response {
    let request = ground
        .as_whom(key, Method::POST, "/mcp")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .body(serde_json::to_vec(&message).unwrap());
    let request = session.into_iter().fold(request, |request, id| request.header("mcp-session-id", id));
    request.send().await.unwrap()
}

pub async fn answer(response: Response) -> Value {
    let text = response.text().await.unwrap();
    let last = text
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .next_back()
        .unwrap_or_else(|| panic!("{text}"));
    serde_json::from_str(last).unwrap()
}

pub async fn session(ground: &Ground, key: &str) -> String {
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } } });
    let response = say(ground, key, None, hello).await;
    assert_eq!(response.status(), 200);
    let id = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let ready = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    assert_eq!(say(ground, key, Some(&id), ready).await.status(), 202);
    id
}

fn shell(command: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "shell", "arguments": { "command": command } } })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_acts_in_the_pool_of_its_key_and_its_sandboxes_stay() {
    let ground = Ground::new().await;
    let id = session(&ground, &ground.ours).await;
    let ran = answer(say(&ground, &ground.ours, Some(&id), shell("echo hello > f; cat f")).await).await;
    assert_eq!(ran["result"]["structuredContent"]["stdout"], "hello\n", "{ran}");
    let ended = ground.request(Method::DELETE, "/mcp").header("mcp-session-id", &id).send().await.unwrap();
    assert_eq!(ended.status(), 204);
    let read = value(ground.get("/v1/sandboxes").await).await;
    assert_eq!(read["sandboxes"][0]["name"], "default");
    let theirs = ground.as_whom(&ground.theirs, Method::GET, "/v1/sandboxes").send().await.unwrap();
    assert_eq!(value(theirs).await["sandboxes"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn n4_a_session_is_nobodys_but_its_keys() {
    let ground = Ground::new().await;
    let id = session(&ground, &ground.ours).await;
    let stolen = say(&ground, &ground.theirs, Some(&id), shell("true")).await;
    assert_eq!(stolen.status(), 404);
    assert_eq!(ground.bare(Method::POST, "/mcp").body("{}").send().await.unwrap().status(), 401);
    let elsewhere =
        ground.request(Method::POST, "/mcp").header("eyot-pool", "theirs").body("{}").send().await.unwrap();
    assert_eq!(elsewhere.status(), 404);
    ground.api.keys().revoke("ours").await.unwrap();
    assert_eq!(say(&ground, &ground.ours, Some(&id), shell("true")).await.status(), 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_without_a_session_acts_in_the_pool_of_its_key() {
    let ground = Ground::new().await;
    let mut call = shell("echo hello");
    call["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    for key in [&ground.ours, &ground.theirs] {
        let request = ground
            .as_whom(key, Method::POST, "/mcp")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", "shell");
        let answer = request.body(call.to_string()).send().await.unwrap();
        assert_eq!(answer.status(), 200);
        let text = answer.text().await.unwrap();
        assert!(text.contains("hello\\n"), "{text}");
        let list = ground.as_whom(key, Method::GET, "/v1/sandboxes").send().await.unwrap();
        assert_eq!(value(list).await["sandboxes"][0]["name"], "default");
    }
}
