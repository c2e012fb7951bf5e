//! A server that is told to stop: streams without an end are closed at once with the reason, and
//! commands may finish.

use std::time::Duration;

use eyot_server::api::ServeLimits;
use reqwest::{Method, Response};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::ground::{Ground, value};
use crate::sockets::{closed, connected, started, told};

/// Starts a server that gives answers this long to end.
async fn draining(drain: Duration) -> Ground {
    let drain_timeout_ms = drain.as_millis().try_into().unwrap();
    Ground::limited(ServeLimits { drain_timeout_ms, ..ServeLimits::default() }).await
}

const AN_HOUR: Duration = Duration::from_secs(3600);

/// Returns the reason in the last event of a stream, which must be a problem.
async fn last_word(what: &str, stream: Response) -> String {
    let text = stream.text().await.unwrap();
    let (_, last) = text.rsplit_once("event: problem\n").unwrap_or_else(|| panic!("{what}: {text}"));
    let problem: Value = serde_json::from_str(last.trim().strip_prefix("data: ").unwrap()).unwrap();
    assert_eq!(problem["kind"], "unavailable", "{what}: {problem}");
    problem["reason"].as_str().unwrap().to_owned()
}

/// Starts a process that outlives its call.
async fn process(ground: &Ground, id: &str, command: &str) -> String {
    let path = format!("/v1/sandboxes/{id}/processes");
    let process = value(ground.post(&path, json!({ "command": command })).await).await;
    process["id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_without_an_end_are_ended_at_once_by_an_event_that_says_why() {
    let mut ground = draining(AN_HOUR).await;
    let spec = json!({ "spec": { "name": "dev", "network": "egress" } });
    let id = value(ground.post("/v1/sandboxes", spec).await).await["id"].as_str().unwrap().to_owned();
    let sleep = process(&ground, &id, "echo begun; exec sleep 1000").await;
    let of_sandbox = |rest: &str| format!("/v1/sandboxes/{id}/{rest}");
    let mut streams = Vec::new();
    for path in [
        "/v1/events?follow=true".to_owned(),
        of_sandbox("watch?path=."),
        of_sandbox(&format!("processes/{sleep}/logs?follow=true")),
        of_sandbox("egress/decisions?follow=true"),
    ] {
        let stream = ground.get(&path).await;
        assert_eq!(stream.status(), 200, "{path}");
        streams.push((path, stream));
    }
    let waiting = ground.request(Method::GET, &of_sandbox(&format!("processes/{sleep}/wait"))).send();
    let waiting = tokio::spawn(waiting);
    let in_flight = format!("eyot_http_requests_in_flight {}\n", streams.len() + 2);
    while !ground.metrics().await.text().await.unwrap().contains(&in_flight) {
        tokio::task::yield_now().await;
    }
    ground.stop();
    for (path, stream) in streams {
        assert_eq!(last_word(&path, stream).await, "the server stops", "{path}");
    }
    let waited = waiting.await.unwrap().unwrap();
    assert_eq!((waited.status().as_u16(), &value(waited).await["reason"]), (503, &"the server stops".into()));
    ground.ended().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sockets_without_an_end_are_closed_at_once_by_a_frame_that_says_why() {
    let mut ground = draining(AN_HOUR).await;
    let id = ground.sandbox("dev").await;
    process(&ground, &id, "exec python3 -m http.server 8000 --bind 127.0.0.1").await;
    let ready = "until (exec 3<>/dev/tcp/127.0.0.1/8000) 2>/dev/null; do sleep 0.05; done";
    let body = json!({ "argv": ["bash", "-c", ready] });
    assert_eq!(ground.post(&format!("/v1/sandboxes/{id}/exec"), body).await.status(), 200);
    let size = json!({ "size": { "rows": 24, "cols": 80 } });
    let mut sockets = Vec::new();
    for _ in 0..2 {
        let opened = ground.post(&format!("/v1/sandboxes/{id}/terminals"), size.clone()).await;
        let terminal = value(opened).await["id"].as_str().unwrap().to_owned();
        let mut terminal = connected(&ground, &id, &format!("terminals/{terminal}/socket")).await;
        assert_eq!(told(&mut terminal).await, Some(json!("started")));
        sockets.push(("terminal", terminal));
        sockets.push(("port", connected(&ground, &id, "ports/8000/connect").await));
    }
    // A client that reads nothing keeps nobody.
    let deaf = sockets.split_off(2);
    ground.stop();
    for (what, socket) in &mut sockets {
        // By 1001 a terminal would say that another client has connected.
        let code = if *what == "terminal" { 1012 } else { 1001 };
        assert_eq!(closed(socket).await, (code, "the server stops".to_owned()), "{what}");
    }
    ground.ended().await;
    drop(deaf);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_may_end_while_the_server_stops_and_its_socket_tells_what_came_of_it() {
    let mut ground = draining(AN_HOUR).await;
    let command = json!({ "command": "read line; echo $line; exit 3", "stdin_follows": true });
    let mut socket = started(&ground, command).await;
    ground.stop();
    while tokio::net::TcpStream::connect(ground.address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    use futures_util::SinkExt;
    socket.send(Message::binary("late\n")).await.unwrap();
    let end = loop {
        let event = told(&mut socket).await.expect("it closed without an end");
        if let Some(end) = event.get("end") {
            break end.clone();
        }
    };
    assert_eq!(end["outcome"], json!({ "exited": 3 }), "{end}");
    drop(socket);
    ground.ended().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_outlasts_the_stop_is_cut_by_a_frame_that_says_why() {
    let mut ground = draining(Duration::from_millis(200)).await;
    let mut socket = started(&ground, json!({ "command": "sleep 1000" })).await;
    ground.stop();
    assert_eq!(closed(&mut socket).await, (1001, "the server stops".to_owned()));
    ground.ended().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_of_mcp_that_listens_does_not_hold_up_the_stop() {
    let mut ground = draining(AN_HOUR).await;
    let both = "application/json, text/event-stream";
    let initialize = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } } });
    let asked = ground.request(Method::POST, "/mcp").header("accept", both);
    let opened =
        asked.header("content-type", "application/json").body(initialize.to_string()).send().await.unwrap();
    assert_eq!(opened.status(), 200);
    let session = opened.headers()["mcp-session-id"].clone();
    drop(opened.text().await);
    let asked = ground.request(Method::GET, "/mcp").header("accept", "text/event-stream");
    let listening = asked.header("mcp-session-id", session).send().await.unwrap();
    assert_eq!(listening.status(), 200);
    ground.stop();
    drop(listening.text().await);
    ground.ended().await;
}
