//! A connection leaves nothing behind: no task in the client, and no session at the server.

use axum::http::Method;
use eyot_agent::{McpServerOptions, connect_mcp_server};
use serde_json::json;
use tokio::runtime::Handle;

use super::stub::{Reply, StubServer};
use super::{TRANSPORTS, call, connect, options, until};

fn tasks() -> usize {
    Handle::current().metrics().num_alive_tasks()
}

#[tokio::test]
async fn close_ends_the_session_and_every_task() {
    for spoken in TRANSPORTS {
        let server = StubServer::start(|_| None);
        let before = tasks();
        let connection = connect(&server, spoken).await;
        call(&connection, "mcp__stub__echo", json!({})).await;
        assert!(tasks() > before);
        connection.close().await;
        if spoken == TRANSPORTS[0] {
            assert_eq!(server.log().last().unwrap().method, Method::DELETE);
        }
        until(|| tasks() == before).await;
    }
}

#[tokio::test]
async fn a_connection_that_is_dropped_is_closed_though_its_tools_live() {
    for spoken in TRANSPORTS {
        let server = StubServer::start(|_| None);
        let before = tasks();
        let connection = connect(&server, spoken).await;
        let kept = connection.tools().to_vec();
        drop(connection);
        until(|| tasks() == before).await;
        if spoken == TRANSPORTS[0] {
            until(|| server.log().iter().any(|asked| asked.method == Method::DELETE)).await;
        }
        drop(kept);
    }
}

#[tokio::test]
async fn a_connection_that_fails_leaves_nothing() {
    for spoken in TRANSPORTS {
        let server =
            StubServer::start(|asked| (asked.message["method"] == "initialize").then_some(Reply::Never));
        let before = tasks();
        let slow = McpServerOptions { connect_timeout_ms: 200, ..options(&server, spoken) };
        connect_mcp_server("stub", slow).await.unwrap_err();
        until(|| tasks() == before).await;
        // The same for a connection that its caller gives up.
        let connecting = connect_mcp_server("stub", options(&server, spoken));
        let tried = server.messages("initialize").len();
        tokio::select! {
            connected = connecting => panic!("{connected:?}"),
            () = until(|| server.messages("initialize").len() > tried) => {}
        }
        until(|| tasks() == before).await;
        // The same for a connection whose list of tools is wrong.
        let server = StubServer::start(|_| None);
        let wrong = McpServerOptions { tools: Some(vec!["x".to_owned()]), ..options(&server, spoken) };
        connect_mcp_server("stub", wrong).await.unwrap_err();
        until(|| tasks() == before).await;
    }
}

#[tokio::test]
async fn calls_that_are_given_up_leave_nothing() {
    for spoken in TRANSPORTS {
        let server =
            StubServer::start(|asked| (asked.message["method"] == "tools/call").then_some(Reply::Never));
        let before = tasks();
        let options = McpServerOptions { timeout_ms: 50, ..options(&server, spoken) };
        let connection = connect_mcp_server("stub", options).await.unwrap();
        for _ in 0..5 {
            assert!(call(&connection, "mcp__stub__echo", json!({})).await.is_error);
        }
        connection.close().await;
        until(|| tasks() == before).await;
    }
}
