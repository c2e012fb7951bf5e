//! Calls over both transports.

use axum::http::StatusCode;
use eyot_agent::{McpServerOptions, connect_mcp_server};
use eyot_tools::{ToolOutput, ToolProgress};
use serde_json::json;

use super::stub::{Reply, StubServer, endless, event, response};
use super::{TRANSPORTS, call, call_in, connect, context, options, until};

#[tokio::test]
async fn a_call_reaches_the_server_and_its_answer_comes_back() {
    for spoken in TRANSPORTS {
        let server = StubServer::start(|_| None);
        let connection = connect(&server, spoken).await;
        assert_eq!(connection.name(), "stub");
        let output = call(&connection, "mcp__stub__echo", json!({"a": [1]})).await;
        assert_eq!((output.as_text().as_str(), output.is_error), (r#"{"a":[1]}"#, false));
        let sent = server.messages("initialize").remove(0);
        assert_eq!(sent["params"]["clientInfo"]["name"], "eyot");
        assert_eq!(sent["params"]["capabilities"], json!({}));
        assert_eq!(server.messages("tools/call")[0]["params"]["name"], "echo");
        connection.close().await;
    }
}

#[tokio::test]
async fn headers_and_the_client_s_name_are_sent() {
    for spoken in TRANSPORTS {
        let server = StubServer::start(|_| None);
        let options = McpServerOptions {
            client_name: "mine".to_owned(),
            client_version: "7".to_owned(),
            ..options(&server, spoken).with_header("Authorization", "Bearer key")
        };
        let connection = connect_mcp_server("stub", options).await.unwrap();
        call(&connection, "mcp__stub__echo", json!({})).await;
        let info = json!({"name": "mine", "version": "7"});
        assert_eq!(server.messages("initialize")[0]["params"]["clientInfo"], info);
        connection.close().await;
        assert!(server.log().iter().all(|asked| asked.headers["authorization"] == "Bearer key"));
    }
}

#[tokio::test]
async fn what_the_server_calls_an_error_is_an_error_answer() {
    for spoken in TRANSPORTS {
        let server = StubServer::start(|asked| {
            let failed = json!({"content": [{"type": "text", "text": "the disk is full"}], "isError": true});
            match asked.message["params"]["arguments"]["how"].as_str()? {
                "tool" => Some(Reply::Result(failed)),
                _ => Some(Reply::Error(-32602, "no such city")),
            }
        });
        let connection = connect(&server, spoken).await;
        let output = call(&connection, "mcp__stub__echo", json!({"how": "tool"})).await;
        assert_eq!((output.as_text().as_str(), output.is_error), ("the disk is full", true));
        let output = call(&connection, "mcp__stub__echo", json!({"how": "protocol"})).await;
        let expected = "MCP server `stub` refused the call of `echo`: no such city (code -32602)";
        assert_eq!((output.as_text().as_str(), output.is_error), (expected, true));
    }
}

#[tokio::test]
async fn a_cancelled_call_ends_at_once_and_the_server_is_told() {
    for spoken in TRANSPORTS {
        let server = StubServer::start(never_answer);
        let connection = connect(&server, spoken).await;
        let context = context();
        let cancel = context.cancel.clone();
        let calling = call_in(&context, &connection, "mcp__stub__echo", json!({}));
        let cancelling = async {
            until(|| server.messages("tools/call").len() == 1).await;
            cancel.cancel();
        };
        let (output, ()) = tokio::join!(calling, cancelling);
        assert!(output.is_error && output.as_text().contains("`echo` was cancelled"), "{output:?}");
        told_to_stop(&server).await;
    }
}

#[tokio::test]
async fn a_call_that_is_dropped_is_cancelled_at_the_server_too() {
    for spoken in TRANSPORTS {
        let server = StubServer::start(never_answer);
        let connection = connect(&server, spoken).await;
        let calling = call(&connection, "mcp__stub__echo", json!({}));
        tokio::select! {
            output = calling => panic!("{output:?}"),
            () = until(|| server.messages("tools/call").len() == 1) => {}
        }
        told_to_stop(&server).await;
    }
}

#[tokio::test]
async fn a_call_out_of_time_is_an_error_answer_and_others_go_on() {
    for spoken in TRANSPORTS {
        let server = StubServer::start(|asked| {
            let is_slow = asked.message["params"]["arguments"]["slow"] == true;
            is_slow.then_some(Reply::Never)
        });
        let options = McpServerOptions { timeout_ms: 2_000, ..options(&server, spoken) };
        let connection = connect_mcp_server("stub", options).await.unwrap();
        let output = call(&connection, "mcp__stub__echo", json!({"slow": true})).await;
        assert!(output.is_error && output.as_text().contains("within 2 s"), "{output:?}");
        told_to_stop(&server).await;
        assert!(!call(&connection, "mcp__stub__echo", json!({})).await.is_error);
    }
}

#[tokio::test]
async fn calls_run_side_by_side() {
    for spoken in TRANSPORTS {
        let server = StubServer::start(|asked| {
            let is_slow = asked.message["params"]["arguments"]["slow"] == true;
            is_slow.then_some(Reply::Never)
        });
        let connection = connect(&server, spoken).await;
        let slow = call(&connection, "mcp__stub__echo", json!({"slow": true}));
        let quick = async {
            until(|| server.messages("tools/call").len() == 1).await;
            let calls =
                (0..8).map(|number| call(&connection, "mcp__stub__echo", json!({ "number": number })));
            for (number, output) in futures_util::future::join_all(calls).await.into_iter().enumerate() {
                assert_eq!(output.as_text(), json!({ "number": number }).to_string());
            }
        };
        tokio::select! {
            output = slow => panic!("{output:?}"),
            () = quick => {}
        }
    }
}

#[tokio::test]
async fn progress_is_reported() {
    for spoken in TRANSPORTS {
        let server = StubServer::start(|asked| {
            (asked.message["method"] == "tools/call").then(|| {
                let token = &asked.message["params"]["_meta"]["progressToken"];
                let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress",
                    "params": {"progressToken": token, "progress": 2, "total": 5}});
                let body = event("message", &progress.to_string());
                Reply::Raw(response(StatusCode::OK, "text/event-stream", endless(&body, ": go on\n\n")))
            })
        });
        let connection = connect(&server, spoken).await;
        let (heard, mut hear) = tokio::sync::mpsc::unbounded_channel();
        let context = context().with_progress(move |progress| drop(heard.send(progress)));
        tokio::select! {
            output = call_in(&context, &connection, "mcp__stub__echo", json!({})) => panic!("{output:?}"),
            progress = hear.recv() => assert_eq!(progress.unwrap(), ToolProgress::new(2, "2 of 5")),
        }
        connection.close().await;
    }
}

#[tokio::test]
async fn an_enormous_answer_is_clipped() {
    for spoken in TRANSPORTS {
        let server = StubServer::start(|asked| {
            (asked.message["method"] == "tools/call").then(|| {
                let text = format!("begin{}end", "x".repeat(8 << 20));
                Reply::Result(json!({"content": [{"type": "text", "text": text}]}))
            })
        });
        let connection = connect(&server, spoken).await;
        let output = call(&connection, "mcp__stub__echo", json!({})).await;
        let text = output.as_text();
        assert!(
            !output.is_error && text.len() < 80 << 10 && text.starts_with("begin") && text.ends_with("end")
        );
    }
}

fn never_answer(asked: &super::stub::Asked) -> Option<Reply> {
    (asked.message["method"] == "tools/call").then_some(Reply::Never)
}

async fn told_to_stop(server: &StubServer) {
    until(|| !server.messages("notifications/cancelled").is_empty()).await;
    let call = server.messages("tools/call").remove(0);
    assert_eq!(server.messages("notifications/cancelled")[0]["params"]["requestId"], call["id"]);
}

#[tokio::test]
async fn content_of_an_unknown_kind_is_shown_as_json() {
    let server = StubServer::start(|asked| {
        (asked.message["method"] == "tools/call").then(|| {
            let film = json!({"type": "film", "frames": 3});
            Reply::Result(json!({"content": [{"type": "text", "text": "a film"}, film], "isError": true}))
        })
    });
    let connection = connect(&server, TRANSPORTS[0]).await;
    let output = call(&connection, "mcp__stub__echo", json!({})).await;
    let expected = "a film\n\n{\"frames\":3,\"type\":\"film\"}";
    assert_eq!((output.as_text().as_str(), output.is_error), (expected, true));
}

#[tokio::test]
async fn an_image_in_an_answer_is_named_and_comes_along() {
    const PNG: &str = "iVBORw0KGgo=";
    let server = StubServer::start(|asked| {
        let image = json!({"type": "image", "mimeType": "image/png", "data": PNG});
        let resource = json!({"uri": "a://b", "mimeType": "image/gif", "blob": "R0lGODlh"});
        let sound = json!({"type": "audio", "mimeType": "audio/wav", "data": "QUI="});
        let content = json!([
            image, {"type": "text", "text": "a dog"}, {"type": "resource", "resource": resource}, sound,
            {"type": "film"},
        ]);
        let content = match asked.message["params"]["arguments"]["kinds"].as_str() {
            Some("known") => json!(content.as_array().unwrap()[..4]),
            _ => content,
        };
        (asked.message["method"] == "tools/call").then(|| Reply::Result(json!({ "content": content })))
    });
    for spoken in TRANSPORTS {
        let connection = connect(&server, spoken).await;
        for kinds in ["known", "unknown"] {
            let output = call(&connection, "mcp__stub__echo", json!({ "kinds": kinds })).await;
            assert!(
                output
                    .as_text()
                    .starts_with("[Image: image/png, 12 base64 chars]\n\na dog\n\n[Resource: a://b, ")
            );
            let images: Vec<_> = output.content[1..].iter().collect();
            let image = |data: &str, kind: &str| ToolOutput::text("").and_image(data, kind).content.remove(1);
            assert_eq!(images, [&image(PNG, "image/png"), &image("R0lGODlh", "image/gif")], "{kinds}");
        }
    }
}
