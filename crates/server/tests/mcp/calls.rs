//! Calls: the tools that clients are told of, their answers, their progress and their cancellation.

use futures_util::future::join_all;
use rmcp::ServiceError;
use rmcp::model::{ClientRequest, Request};
use rmcp::service::PeerRequestOptions;
use serde_json::json;

use super::client::{Client, Http, TOKEN, by_pipes, call, each_tool, request, shell, text};
use super::ground::{Ground, settled};

/// Counts the test's commands that still run, from inside the sandbox.
const SLEEPERS: &str = "for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline 2>/dev/null; echo; done | grep -c '^sleep 4242' || true";

/// Sends a call and leaves it running.
async fn begin(
    client: &Client,
    tool: &str,
    arguments: serde_json::Value,
) -> rmcp::service::RequestHandle<rmcp::RoleClient> {
    let call = ClientRequest::CallToolRequest(Request::new(request(tool, arguments)));
    client.send_cancellable_request(call, PeerRequestOptions::no_options()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_is_told_of_every_tool_with_schemas_and_can_call_each() {
    let ground = Ground::new();
    let (client, serving) = by_pipes(&ground.server()).await;
    assert_eq!(client.peer_info().unwrap().server_info.clone().unwrap().name, "eyot");
    let tools = client.list_all_tools().await.unwrap();
    for (name, arguments) in each_tool() {
        let tool = tools.iter().find(|tool| tool.name == name).unwrap();
        assert_eq!(tool.input_schema["type"], "object", "{name}");
        assert!(tool.output_schema.is_some() && tool.description.is_some(), "{name}");
        let answer = settled(call(&client, name, arguments)).await.unwrap();
        assert_ne!(answer.is_error, Some(true), "{name}: {answer:?}");
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&text(&answer)).unwrap(),
            answer.structured_content.unwrap()
        );
    }
    client.cancel().await.unwrap();
    settled(serving).await.unwrap().unwrap();
    assert_eq!(ground.count(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_goes_wrong_in_a_tool_is_a_result_and_a_tool_that_is_not_there_a_protocol_error() {
    let ground = Ground::new();
    let (client, _serving) = by_pipes(&ground.server()).await;
    let wrong = [
        ("shell", json!({ "command": "echo out; exit 3" }), "\"exit_code\":3"),
        ("shell", json!({ "command": 5 }), "`command` must be"),
        ("read_file", json!({ "path": "nowhere" }), "nowhere"),
        ("panics", json!({}), "on purpose"),
    ];
    for (name, arguments, says) in wrong {
        let answer = settled(call(&client, name, arguments)).await.unwrap();
        assert_eq!(answer.is_error, Some(true), "{name}: {answer:?}");
        assert!(text(&answer).contains(says), "{name}: {answer:?}");
    }
    let Err(ServiceError::McpError(error)) = call(&client, "nope", json!({})).await else {
        panic!("no error")
    };
    assert_eq!(error.code.0, -32602);
    assert!(error.message.contains("Unknown tool: nope") && error.message.contains("shell"), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_run_side_by_side_and_too_many_are_refused() {
    let ground = Ground::new();
    let (client, _serving) = by_pipes(&ground.server()).await;
    shell(&client, "mkfifo gate").await;
    let waiting = begin(&client, "shell", json!({ "command": "cat gate" })).await;
    shell(&client, "echo through > gate").await;
    let answer = settled(waiting.await_response()).await.unwrap();
    assert!(serde_json::to_string(&answer).unwrap().contains("through"));

    // Which of them is the one too many is left to chance; the others never end.
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..=eyot_server::mcp::MAX_CALLS {
        let call = begin(&client, "counts", json!({})).await;
        running.spawn(call.await_response());
    }
    let answer = settled(running.join_next()).await.unwrap().unwrap().unwrap();
    let answer = serde_json::to_string(&answer).unwrap();
    assert!(answer.contains("wait for one to end") && answer.contains("\"isError\":true"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancelled_call_kills_its_whole_tree_and_answers_nothing() {
    let ground = Ground::new();
    let server = ground.server();
    let http = Http::start(&server, |_| {}).await;
    let (by_pipes, _serving) = by_pipes(&server).await;
    for client in [by_pipes, http.connect(TOKEN).await] {
        let line = "setsid sleep 4242 & (sleep 4242 &); echo ready > ready; sleep 4242";
        let running = begin(&client, "shell", json!({ "command": line, "timeout_ms": 600_000 })).await;
        settled(async { while shell(&client, "cat ready 2>/dev/null || true").await != "ready\n" {} }).await;
        settled(async { while shell(&client, SLEEPERS).await != "3\n" {} }).await;
        running.cancel(Some("enough".to_owned())).await.unwrap();
        settled(async { while shell(&client, SLEEPERS).await != "0\n" {} }).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn progress_is_told_to_who_asks_a_few_times_a_second_and_not_after_the_answer() {
    let ground = Ground::new();
    let server = ground.server();
    let http = Http::start(&server, |_| {}).await;
    let (by_pipes, _serving) = by_pipes(&server).await;
    join_all([by_pipes, http.connect(TOKEN).await].map(async |client| {
        // rmcp's client gives every request a progress token.
        let running = begin(&client, "counts", json!({})).await;
        settled(client.service().news.notified()).await;
        let told = client.service().progress.lock().unwrap().clone();
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].message.as_ref().unwrap().ends_with("s: step 1000"), "{told:?}");
        assert!(told[0].progress >= 0.25 && told[0].progress_token == running.progress_token);

        // Every five seconds even though nothing happens, and always more.
        settled(client.service().news.notified()).await;
        let told = client.service().progress.lock().unwrap().clone();
        assert!(told.len() == 2 && told[1].progress > told[0].progress, "{told:?}");

        running.cancel(None).await.unwrap();
        shell(&client, "true").await;
        let count = client.service().progress.lock().unwrap().len();
        assert_eq!(count, 2, "something was told of a call that is over");
    }))
    .await;
}
