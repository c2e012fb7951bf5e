//! Servers that die, restart, or forget their sessions.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use axum::http::StatusCode;
use serde_json::json;

use super::stub::{Asked, Reply, StubServer, raw};
use super::{TRANSPORTS, call, connect, until};

/// Returns no answer for a call with the argument `hang`.
fn unless_it_hangs(asked: &Asked) -> Option<Reply> {
    let hangs = asked.message["params"]["arguments"]["hang"] == true;
    hangs.then_some(Reply::Never)
}

#[tokio::test]
async fn a_server_that_dies_gives_an_error_answer_and_the_next_call_finds_the_new_one() {
    for spoken in TRANSPORTS {
        let server = StubServer::start(unless_it_hangs);
        let connection = connect(&server, spoken).await;
        let calling = call(&connection, "mcp__stub__echo", json!({"hang": true}));
        let dying = async {
            until(|| server.messages("tools/call").len() == 1).await;
            server.kill()
        };
        let (output, address) = tokio::join!(calling, dying);
        let text = output.as_text();
        assert!(
            output.is_error && text.contains("It may have been carried out or not"),
            "{spoken:?}: {text}"
        );

        let output = call(&connection, "mcp__stub__echo", json!({})).await;
        let text = output.as_text();
        assert!(output.is_error && text.contains("connection refused"), "{spoken:?}: {text}");

        let _server = StubServer::start_at(address, "/message", restarted());
        let output = call(&connection, "mcp__stub__echo", json!({"n": 1})).await;
        assert_eq!((output.as_text().as_str(), output.is_error), (r#"{"n":1}"#, false), "{spoken:?}");
        connection.close().await;
    }
}

/// Refuses the sessions of the previous server.
fn restarted() -> impl Fn(&Asked) -> Option<Reply> + Send + Sync {
    let has_session = AtomicBool::new(false);
    move |asked| {
        let begins = asked.message["method"] == "initialize";
        let is_known = has_session.fetch_or(begins, Ordering::SeqCst) || begins || asked.path != "/mcp";
        let refusal = || raw(StatusCode::NOT_FOUND, "text/plain", "no such session".to_owned());
        (!is_known).then(|| Reply::Raw(refusal()))
    }
}

/// Starts a server that forgets its sessions on demand, and then answers with this status.
fn forgetful(status: u16, forgets: Arc<AtomicUsize>) -> StubServer {
    StubServer::start(move |asked| {
        let forgets_now = asked.message["method"] == "tools/call"
            && forgets.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
        let id = &asked.message["id"];
        let error =
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32000, "message": "No valid session ID"}});
        let status = StatusCode::from_u16(status).unwrap();
        forgets_now.then(|| Reply::Raw(raw(status, "application/json", error.to_string())))
    })
}

#[tokio::test]
async fn an_expired_session_is_replaced_within_the_call() {
    // The protocol requires 404. Servers that follow the SDK's example send 400 with this code.
    for status in [404, 400] {
        let forgets = Arc::new(AtomicUsize::new(0));
        let server = forgetful(status, forgets.clone());
        let connection = connect(&server, TRANSPORTS[0]).await;
        forgets.store(1, Ordering::SeqCst);
        let output = call(&connection, "mcp__stub__echo", json!({"n": 1})).await;
        assert_eq!((output.as_text().as_str(), output.is_error), (r#"{"n":1}"#, false));
        assert_eq!(server.messages("initialize").len(), 2);
    }
}

#[tokio::test]
async fn a_session_that_expires_again_at_once_is_an_error_answer() {
    let forgets = Arc::new(AtomicUsize::new(0));
    let server = forgetful(404, forgets.clone());
    let connection = connect(&server, TRANSPORTS[0]).await;
    forgets.store(2, Ordering::SeqCst);
    let output = call(&connection, "mcp__stub__echo", json!({})).await;
    assert!(output.is_error && output.as_text().contains("session has expired"), "{output:?}");
    assert_eq!(server.messages("initialize").len(), 2);
    assert!(!call(&connection, "mcp__stub__echo", json!({})).await.is_error);
}

#[tokio::test]
async fn a_stream_that_the_server_forgot_is_opened_again_by_the_next_call() {
    let server = StubServer::start(|_| None);
    let connection = connect(&server, TRANSPORTS[1]).await;
    server.forget_streams();
    let output = call(&connection, "mcp__stub__echo", json!({})).await;
    assert!(output.is_error && output.as_text().contains("It was not carried out"), "{output:?}");
    let output = call(&connection, "mcp__stub__echo", json!({"n": 1})).await;
    assert_eq!(output.as_text(), r#"{"n":1}"#);
}

#[tokio::test]
async fn a_closed_connection_answers_with_an_error() {
    for spoken in TRANSPORTS {
        let server = StubServer::start(unless_it_hangs);
        let connection = connect(&server, spoken).await;
        let calling = call(&connection, "mcp__stub__echo", json!({"hang": true}));
        let closing = async {
            until(|| server.messages("tools/call").len() == 1).await;
            connection.close().await;
        };
        let (output, ()) = tokio::join!(calling, closing);
        let expected = "the connection to MCP server `stub` is closed";
        assert_eq!((output.as_text().as_str(), output.is_error), (expected, true));
        assert_eq!(call(&connection, "mcp__stub__echo", json!({})).await.as_text(), expected);
        connection.close().await;
        assert_eq!(server.messages("initialize").len(), 1);
    }
}
