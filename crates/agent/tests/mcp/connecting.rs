//! Errors of connecting, and their hints.

use std::time::Duration;

use axum::http::StatusCode;
use eyot::{Error, ErrorKind};
use eyot_agent::{McpServerOptions, McpTransport, connect_mcp_server};
use serde_json::json;

use super::stub::{Reply, StubServer, raw};
use super::{TRANSPORTS, connect, options};

async fn refused(options: McpServerOptions) -> Error {
    connect_mcp_server("docs", options).await.unwrap_err()
}

fn assert_says(error: &Error, kind: ErrorKind, sentence: &str, hint: &str) {
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().contains(sentence), "{error}");
    assert!(error.hint().unwrap_or_default().contains(hint), "{error}: {:?}", error.hint());
}

/// Starts a server that gives every request this answer.
fn answering(status: u16, content_type: &'static str, body: &'static str) -> StubServer {
    StubServer::start(move |_| {
        Some(Reply::Raw(raw(StatusCode::from_u16(status).unwrap(), content_type, body.to_owned())))
    })
}

#[tokio::test]
async fn what_is_no_url_is_refused() {
    for (url, reason) in [("", "not a url"), ("localhost:1/mcp", "must begin"), ("ftp://a/mcp", "must begin")]
    {
        assert_says(
            &refused(McpServerOptions::new(url)).await,
            ErrorKind::Invalid,
            reason,
            "http://localhost",
        );
    }
}

#[tokio::test]
async fn options_that_cannot_work_are_refused_before_anything_is_sent() {
    let server = StubServer::start(|_| None);
    let with_user = McpServerOptions::new(server.url("/mcp").replace("http://", "http://user:canary@"));
    let usual = || options(&server, TRANSPORTS[0]);
    for (options, reason) in [
        (McpServerOptions { timeout_ms: 0, ..usual() }, "`timeout_ms` must be at least 1"),
        (McpServerOptions { connect_timeout_ms: 0, ..usual() }, "`connect_timeout_ms` must be at least 1"),
        (with_user, "`url` of an MCP server must not hold a user or a password"),
        (usual().with_header("Content-Type", "x"), "`headers` must not set `content-type`"),
        (usual().with_header("a b", "x"), "`headers` has a name"),
        (usual().with_header("x-a", "1\n2"), "`headers` has a value for `x-a`"),
    ] {
        let error = refused(options).await;
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains(reason), "{error}");
    }
    assert!(server.log().is_empty());
}

#[tokio::test]
async fn nothing_that_answers_is_said() {
    let server = StubServer::start(|_| None);
    let offered = TRANSPORTS.map(|spoken| options(&server, spoken));
    drop(server);
    for options in offered {
        assert_says(&refused(options).await, ErrorKind::Unavailable, "connection refused", "running");
    }
}

#[tokio::test]
async fn refusals_say_what_to_change() {
    for spoken in TRANSPORTS {
        let server = answering(404, "text/html", "<h1>Not Found</h1>");
        assert_says(
            &refused(options(&server, spoken)).await,
            ErrorKind::NotFound,
            "HTTP 404",
            "is `url` right",
        );
        let server = answering(401, "application/json", r#"{"error":"invalid_token"}"#);
        let error = refused(options(&server, spoken)).await;
        assert_says(
            &error,
            ErrorKind::Permission,
            "HTTP 401: {\"error\":\"invalid_token\"}",
            "`authorization`",
        );
        let given = options(&server, spoken).with_header("authorization", "Bearer canary");
        assert_says(&refused(given).await, ErrorKind::Permission, "HTTP 401", "does not accept the given");
        let server = answering(503, "text/plain", "down  for\nmaintenance");
        let error = refused(options(&server, spoken)).await;
        assert_says(&error, ErrorKind::Unavailable, "HTTP 503: down for maintenance", "log");
        let server = answering(200, "text/html", "<h1>Welcome</h1>");
        assert_says(
            &refused(options(&server, spoken)).await,
            ErrorKind::Invalid,
            "`text/html`",
            "is `url` right",
        );
    }
}

#[tokio::test]
async fn a_server_of_the_other_transport_is_recognized() {
    let server = StubServer::start(|asked| {
        let is_streamable = asked.path == "/mcp" && asked.message["method"] == "initialize";
        is_streamable.then(|| Reply::Raw(raw(StatusCode::NOT_FOUND, "text/plain", String::new())))
    });
    let error = refused(McpServerOptions::new(server.url("/sse"))).await;
    assert_says(&error, ErrorKind::Invalid, "HTTP 405", "use `transport: sse`");
    let sse = McpServerOptions { transport: McpTransport::Sse, ..McpServerOptions::new(server.url("/mcp")) };
    assert_says(&refused(sse).await, ErrorKind::Invalid, "HTTP 405", "use `transport: http`");
}

#[tokio::test]
async fn a_server_that_refuses_the_handshake_is_quoted() {
    let server = StubServer::start(|_| Some(Reply::Error(-32000, "too many clients")));
    assert_says(
        &refused(options(&server, TRANSPORTS[0])).await,
        ErrorKind::Unavailable,
        "too many clients",
        "",
    );
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up() {
    for spoken in TRANSPORTS {
        let server =
            StubServer::start(|asked| (asked.message["method"] == "initialize").then_some(Reply::Never));
        let options = McpServerOptions { connect_timeout_ms: 300, ..options(&server, spoken) };
        let error = tokio::time::timeout(Duration::from_secs(10), refused(options)).await.unwrap();
        assert_says(&error, ErrorKind::Timeout, "no answer within 0.3 s", "transport");
    }
}

#[tokio::test]
async fn a_redirect_within_the_server_is_followed_and_another_one_is_not() {
    let other = StubServer::start(|_| None);
    let target = other.url("/mcp?key=canary");
    let server = StubServer::start(move |asked| {
        let (status, location) = match asked.path.as_str() {
            "/mcp" => (StatusCode::TEMPORARY_REDIRECT, "/mcp/".to_owned()),
            "/away" => (StatusCode::TEMPORARY_REDIRECT, target.clone()),
            "/moved" => (StatusCode::MOVED_PERMANENTLY, "/mcp/".to_owned()),
            _ => return None,
        };
        let mut response = raw(status, "text/plain", String::new());
        response.headers_mut().insert("location", location.parse().unwrap());
        Some(Reply::Raw(response))
    });
    connect(&server, TRANSPORTS[0]).await;
    let at = |path: &str| McpServerOptions::new(server.url(path)).with_header("x-key", "canary");
    let error = refused(at("/away")).await;
    assert_says(
        &error,
        ErrorKind::Invalid,
        &format!("redirects to `{}`", other.url("/mcp")),
        "if it is the right",
    );
    assert!(other.log().is_empty());
    assert_says(&refused(at("/moved")).await, ErrorKind::Invalid, "redirects to", "as `url`");
}

#[test]
fn options_are_read_from_front_matter() {
    let options = json!({"url": "http://a/mcp", "transport": "http", "headers": {"x": "y"}, "tools": ["t"]});
    let options: McpServerOptions = serde_json::from_value(options).unwrap();
    let expected =
        McpServerOptions { tools: Some(vec!["t".to_owned()]), ..McpServerOptions::new("http://a/mcp") };
    assert_eq!(options, expected.with_header("x", "y"));
    for (transport, expected) in
        [("streamable-http", McpTransport::StreamableHttp), ("sse", McpTransport::Sse)]
    {
        assert_eq!(serde_json::from_value::<McpTransport>(json!(transport)).unwrap(), expected);
    }
    assert!(serde_json::from_value::<McpServerOptions>(json!({"adress": "x"})).is_err());
}

#[tokio::test]
async fn a_list_that_is_refused_has_the_kind_of_its_refusal() {
    for spoken in TRANSPORTS {
        let server = StubServer::start(|asked| {
            let refusal = raw(StatusCode::UNAUTHORIZED, "application/json", r#"{"error":"no"}"#.to_owned());
            (asked.message["method"] == "tools/list").then_some(Reply::Raw(refusal))
        });
        if spoken == TRANSPORTS[0] {
            let error = refused(options(&server, spoken)).await;
            assert_says(
                &error,
                ErrorKind::Permission,
                "list the tools of MCP server `docs`",
                "`authorization`",
            );
            assert!(error.to_string().contains("HTTP 401"), "{error}");
        }
        let server = StubServer::start(|asked| {
            (asked.message["method"] == "tools/list").then(|| {
                let body = super::stub::endless("data: ", "x");
                Reply::Raw(super::stub::response(StatusCode::OK, "text/event-stream", body))
            })
        });
        let error = refused(options(&server, spoken)).await;
        assert_says(&error, ErrorKind::TooLarge, "more than 16 MiB", "");
    }
}
