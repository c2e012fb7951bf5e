//! The headers and the query of the url stay secret: they are in nothing that is shown, logged or answered.

use std::io;
use std::sync::{Arc, Mutex};

use axum::http::StatusCode;
use eyot_agent::{McpServerOptions, connect_mcp_server};
use serde_json::json;
use tracing_subscriber::fmt::MakeWriter;

use super::stub::{Reply, StubServer, raw};
use super::{TRANSPORTS, call, options};

const CANARY: &str = "canary-0123456789";

/// The log of a test.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Log {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

fn secret(options: McpServerOptions) -> McpServerOptions {
    let url = format!("{}?key={CANARY}-in-url", options.url);
    let options = McpServerOptions { url, ..options };
    options
        .with_header("Authorization", format!("Bearer {CANARY}"))
        .with_header("x-team", format!("{CANARY}-team"))
}

#[tokio::test]
async fn no_secret_is_shown_logged_or_answered() {
    let log = Log::default();
    let subscriber =
        tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_writer(log.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let mut shown = Vec::new();
    for spoken in TRANSPORTS {
        // The server repeats every header and the url: in answers, in MCP errors, in refusals and in redirects.
        let server = StubServer::start(|asked| {
            let seen = format!("{} {:?}", asked.path, asked.headers);
            match asked.message["params"]["arguments"]["how"].as_str()? {
                "answer" => Some(Reply::Result(json!({"content": [{"type": "text", "text": seen}]}))),
                "error" => Some(Reply::Error(-1, Box::leak(seen.into_boxed_str()))),
                "refusal" => {
                    Some(Reply::Raw(raw(StatusCode::FORBIDDEN, "text/plain", format!("data: {seen}\n\n"))))
                }
                _ => Some(Reply::Raw(raw(StatusCode::OK, "text/plain", "data: nonsense\n\n".to_owned()))),
            }
        });
        let options = secret(options(&server, spoken));
        shown.push(format!("{options:?}"));
        let connection = connect_mcp_server("stub", options.clone()).await.unwrap();
        shown.push(format!("{connection:?}"));
        for how in ["answer", "error", "refusal", "nonsense"] {
            let output = call(&connection, "mcp__stub__echo", json!({ "how": how })).await;
            shown.push(format!("{how}: {output:?}"));
        }
        drop(server);
        shown.push(format!("{:?}", call(&connection, "mcp__stub__echo", json!({})).await));
        connection.close().await;
        let error = connect_mcp_server("stub", options).await.unwrap_err();
        shown.push(format!("{error} {error:?} {:?}", error.hint()));

        let server = StubServer::start(|asked| {
            let seen = format!("{} {:?}", asked.path, asked.headers);
            Some(Reply::Raw(raw(StatusCode::BAD_REQUEST, "text/plain", seen + "\n\n")))
        });
        let error = connect_mcp_server("stub", secret(super::options(&server, spoken))).await.unwrap_err();
        shown.push(format!("{error} {error:?} {:?}", error.hint()));
    }
    let answered = shown.iter().filter(|shown| shown.contains("<redacted>")).count();
    assert!(answered >= 5, "{shown:#?}");
    for shown in shown {
        // Answers are redacted only for credentials, and `x-team` is not one.
        assert!(!shown.replace(&format!("{CANARY}-team"), "").contains(CANARY), "{shown}");
    }
    let log =
        String::from_utf8(log.0.lock().unwrap().clone()).unwrap().replace(&format!("{CANARY}-team"), "");
    assert!(log.contains("rmcp"), "{}", log.len());
    let leaks: Vec<&str> = log.lines().filter(|line| line.contains(CANARY)).collect();
    assert!(leaks.is_empty(), "{leaks:#?}");
}

#[tokio::test]
async fn a_credential_that_is_written_with_escapes_is_hidden_too() {
    const KEY: &str = "canary/0123/456789";
    let escaped = || KEY.replace('/', "\\/");
    for spoken in TRANSPORTS {
        let server = StubServer::start(move |asked| {
            let id = &asked.message["id"];
            let key = escaped();
            let result = match asked.message["method"].as_str()? {
                "tools/list" => format!(
                    r#"{{"tools":[{{"name":"echo","description":"for {key}","inputSchema":{{"type":"object"}}}}]}}"#
                ),
                "tools/call" => format!(
                    r#"{{"content":[{{"type":"text","text":"{key}"}},{{"type":"film","of":"{key}"}}]}}"#
                ),
                _ => return None,
            };
            let message = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#);
            let (kind, body) = if asked.path == "/mcp" {
                ("application/json", message)
            } else {
                ("text/event-stream", format!("data: {message}\n\n"))
            };
            Some(Reply::Raw(raw(StatusCode::OK, kind, body)))
        });
        let options = options(&server, spoken).with_header("authorization", format!("Bearer {KEY}"));
        let connection = connect_mcp_server("stub", options).await.unwrap();
        let description = connection.tools()[0].description();
        assert!(description.contains("redacted") && !description.contains(KEY), "{description}");
        let output = call(&connection, "mcp__stub__echo", json!({})).await;
        let text = output.as_text();
        assert!(text.matches("redacted").count() == 2 && !text.contains(KEY), "{text}");
    }
}
