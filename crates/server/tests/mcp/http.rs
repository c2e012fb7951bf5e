//! Sessions by HTTP: their owners and their end.

use std::time::Duration;

use eyot::SandboxSpec;
use rmcp::model::{ClientRequest, Request};
use rmcp::service::PeerRequestOptions;
use serde_json::{Value, json};

use super::access::{Answer, delete, initialize, post};
use super::client::{Http, OTHER_TOKEN, TOKEN, call, each_tool, request, shell};
use super::ground::{Ground, settled};

#[tokio::test(flavor = "multi_thread")]
async fn every_tool_works_by_http_and_deleting_the_session_destroys_its_sandboxes() {
    let ground = Ground::new();
    let http = Http::start(&ground.server(), |_| {}).await;
    let client = http.connect(TOKEN).await;
    for (name, arguments) in each_tool() {
        let answer = settled(call(&client, name, arguments)).await.unwrap();
        assert_ne!(answer.is_error, Some(true), "{name}: {answer:?}");
    }
    assert_eq!(ground.count(), 2);
    client.cancel().await.unwrap();
    ground.until_count(0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_sessions_do_not_see_each_others_sandboxes() {
    let ground = Ground::new();
    let http = Http::start(&ground.server(), |_| {}).await;
    let (one, two) = (http.connect(TOKEN).await, http.connect(TOKEN).await);
    shell(&one, "echo secret > mine").await;
    assert_eq!(shell(&two, "ls").await, "");
    let answer = call(&two, "sandbox_list", json!({})).await.unwrap().structured_content.unwrap();
    assert_eq!(answer["sandboxes"].as_array().unwrap().len(), 1, "{answer}");
    assert_eq!(ground.count(), 2);
    one.cancel().await.unwrap();
    ground.until_count(1).await;
    assert_eq!(shell(&two, "echo still here").await, "still here\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shared_pool_is_the_same_for_all_sessions_and_stays() {
    let ground = Ground::new();
    let (server, pool) = ground.shared();
    let http = Http::start(&server, |_| {}).await;
    let (one, two) = (http.connect(TOKEN).await, http.connect(OTHER_TOKEN).await);
    shell(&one, "echo ours > file").await;
    assert_eq!(shell(&two, "cat file").await, "ours\n");
    one.cancel().await.unwrap();
    two.cancel().await.unwrap();
    http.stop.cancel();
    settled(http.serving).await.unwrap().unwrap();
    assert_eq!(ground.count(), 1);
    pool.close().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_belongs_to_the_token_that_opened_it() {
    let ground = Ground::new();
    let http = Http::start(&ground.server(), |_| {}).await;
    let opened = initialize(&http, TOKEN).await;
    let session = opened.session.clone().unwrap();
    let ping = json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" }).to_string();
    let by = async |token: &str, session: &str| {
        let headers = [("authorization", format!("Bearer {token}")), ("mcp-session-id", session.to_owned())];
        post(&http, &headers, &ping).await
    };
    assert_eq!(by(TOKEN, &session).await.status, 200);
    let (others, nobodys) = (by(OTHER_TOKEN, &session).await, by(OTHER_TOKEN, "no-such-session").await);
    assert_eq!((others.status, &others.body), (404, &nobodys.body));
    assert_eq!(nobodys.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_nobody_uses_ends_but_not_in_the_middle_of_a_call() {
    let ground = Ground::new();
    let timeout = Duration::from_secs(3);
    let http = Http::start(&ground.server(), |options| options.session_timeout = timeout).await;
    let opened = initialize(&http, TOKEN).await;
    let session = opened.session.unwrap();
    let headers = [("authorization", format!("Bearer {TOKEN}")), ("mcp-session-id", session)];
    let params = json!({ "name": "shell", "arguments": { "command": "sleep 5; echo done" } });
    let call = json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": params }).to_string();
    let answer = post(&http, &headers, &call).await;
    assert!(answer.body.contains("done"), "{answer:?}");
    ground.until_count(0).await;
    assert_eq!(post(&http, &headers, &call).await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn there_are_so_many_sessions_and_no_more() {
    let ground = Ground::new();
    let http = Http::start(&ground.server(), |options| options.max_sessions = 2).await;
    let (one, _two) = (http.connect(TOKEN).await, initialize(&http, TOKEN).await);
    assert_eq!(initialize(&http, TOKEN).await.status, 503);
    one.cancel().await.unwrap();
    settled(async { while initialize(&http, TOKEN).await.status != 200 {} }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_stopped_cuts_calls_short_and_leaves_nothing() {
    let ground = Ground::new();
    let http = Http::start(&ground.server(), |_| {}).await;
    let client = http.connect(TOKEN).await;
    shell(&client, "true").await;
    let line = request("shell", json!({ "command": "sleep 4242", "timeout_ms": 600_000 }));
    let running = ClientRequest::CallToolRequest(Request::new(line));
    client.send_cancellable_request(running, PeerRequestOptions::no_options()).await.unwrap();
    http.stop.cancel();
    settled(http.serving).await.unwrap().unwrap();
    assert_eq!(ground.count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_ends_its_session_is_answered_as_it_expects() {
    let ground = Ground::new();
    let http = Http::start(&ground.server(), |_| {}).await;
    let session = initialize(&http, TOKEN).await.session.unwrap();
    assert_eq!(delete(&http, TOKEN, &session).await.status, 204);
    settled(async { while delete(&http, TOKEN, &session).await.status != 404 {} }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_method_of_something_that_is_not_declared_is_not_found() {
    let ground = Ground::new();
    let http = Http::start(&ground.server(), |_| {}).await;
    let session = initialize(&http, TOKEN).await.session.unwrap();
    let headers = [("authorization", format!("Bearer {TOKEN}")), ("mcp-session-id", session)];
    let reference =
        json!({ "ref": { "type": "ref/prompt", "name": "a" }, "argument": { "name": "b", "value": "" } });
    for (method, params) in [
        ("resources/list", json!({})),
        ("resources/templates/list", json!({})),
        ("prompts/list", json!({})),
        ("completion/complete", reference),
    ] {
        let message = json!({ "jsonrpc": "2.0", "id": 2, "method": method, "params": params });
        let answer = post(&http, &headers, &message.to_string()).await;
        assert!(answer.body.contains("-32601"), "{method}: {answer:?}");
    }
}

/// Sends a request of this revision without a session.
async fn ask(http: &Http, token: &str, version: &str, more: &[(&str, &str)], body: Value) -> Answer {
    let mut message =
        json!({ "jsonrpc": "2.0", "id": 1, "method": body["method"], "params": body["params"] });
    message["params"]["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientInfo": { "name": "t", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let mut headers = vec![
        ("authorization", format!("Bearer {token}")),
        ("mcp-protocol-version", version.to_owned()),
        ("mcp-method", body["method"].as_str().unwrap().to_owned()),
    ];
    headers.extend(body["params"]["name"].as_str().map(|name| ("mcp-name", name.to_owned())));
    headers.extend(more.iter().map(|(name, value)| (*name, (*value).to_owned())));
    post(http, &headers, &message.to_string()).await
}

fn shell_call(command: &str) -> Value {
    json!({ "method": "tools/call", "params": { "name": "shell", "arguments": { "command": command } } })
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_without_a_session_share_the_sandboxes_of_their_token_and_pool_while_they_come() {
    let ground = Ground::new();
    let timeout = Duration::from_secs(5);
    let http = Http::start(&ground.server(), |options| options.session_timeout = timeout).await;
    let run = async |token: &str, more: &[(&str, &str)], line: &str| {
        let answer = ask(&http, token, "2026-07-28", more, shell_call(line)).await;
        assert_eq!((answer.status, answer.session.as_deref()), (200, None), "{answer:?}");
        answer.body
    };
    run(TOKEN, &[], "echo secret > mine").await;
    assert!(run(TOKEN, &[], "cat mine").await.contains("secret"));
    for (token, more) in [(OTHER_TOKEN, [].as_slice()), (TOKEN, [("eyot-pool", "two")].as_slice())] {
        assert!(!run(token, more, "cat mine").await.contains("secret"), "{token} {more:?}");
    }
    assert_eq!(ground.count(), 3);
    ground.until_count(0).await;
    let wrong = ask(&http, TOKEN, "2026-07-28", &[("eyot-pool", "No Name")], shell_call("true")).await;
    assert_eq!(wrong.status, 400, "{wrong:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_without_a_session_have_the_limits_of_sessions_and_end_with_the_server() {
    let ground = Ground::new();
    let http = Http::start(&ground.server(), |options| options.max_sessions = 1).await;
    assert_eq!(ask(&http, TOKEN, "2026-07-28", &[], shell_call("true")).await.status, 200);
    assert_eq!(
        ask(&http, TOKEN, "2026-07-28", &[("eyot-pool", "two")], shell_call("true")).await.status,
        503
    );
    http.stop.cancel();
    settled(http.serving).await.unwrap().unwrap();
    assert_eq!(ground.count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_learns_the_revisions_and_what_its_sandboxes_reach() {
    let ground = Ground::new();
    let http = Http::start(&ground.server().with_template(SandboxSpec::default()), |_| {}).await;
    let found =
        ask(&http, TOKEN, "2026-07-28", &[], json!({ "method": "server/discover", "params": {} })).await;
    let opened = initialize(&http, TOKEN).await;
    assert!(found.body.contains("2026-07-28") && found.body.contains("2025-06-18"), "{found:?}");
    for answer in [found, opened] {
        assert!(answer.body.contains("They have no network"), "{answer:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn in_a_revision_with_sessions_nothing_is_called_without_one() {
    let ground = Ground::new();
    let http = Http::start(&ground.server(), |_| {}).await;
    let answer = ask(&http, TOKEN, "2025-11-25", &[], shell_call("true")).await;
    assert!(answer.body.contains("\"error\""), "{answer:?}");
    assert_eq!(ground.count(), 0);
}
