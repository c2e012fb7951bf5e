//! Access by HTTP, tried as a web page, as another user and as a broken client.

use eyot::{CancellationToken, ErrorKind};
use eyot_server::mcp::{HttpOptions, MAX_MESSAGE_BYTES, Tokens, serve_http};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::client::{Http, TOKEN};
use super::ground::{Ground, settled};

#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub session: Option<String>,
    pub head: String,
    pub body: String,
}

fn message() -> String {
    let client = json!({ "name": "test", "version": "1" });
    let params = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params }).to_string()
}

/// Opens a session without a client.
pub async fn initialize(http: &Http, token: &str) -> Answer {
    post(http, &[("authorization", format!("Bearer {token}"))], &message()).await
}

/// Sends a POST with these headers beside those that every client sends.
pub async fn post(http: &Http, headers: &[(&str, String)], body: &str) -> Answer {
    let host = ("host", http.address.clone());
    let mut all = vec![
        ("accept", "application/json, text/event-stream".to_owned()),
        ("content-type", "application/json".to_owned()),
        ("content-length", body.len().to_string()),
    ];
    if !headers.iter().any(|(name, _)| *name == "host") {
        all.push(host);
    }
    all.extend_from_slice(headers);
    raw(http, "POST /mcp", &all, body).await
}

/// Ends a session as a client does.
pub async fn delete(http: &Http, token: &str, session: &str) -> Answer {
    let headers = [
        ("host", http.address.clone()),
        ("authorization", format!("Bearer {token}")),
        ("mcp-session-id", session.to_owned()),
    ];
    raw(http, "DELETE /mcp", &headers, "").await
}

/// Sends a request written by hand: clients would add what is missing and drop what is doubled.
async fn raw(http: &Http, line: &str, headers: &[(&str, String)], body: &str) -> Answer {
    let mut stream = TcpStream::connect(&http.address).await.unwrap();
    let mut request = format!("{line} HTTP/1.1\r\nconnection: close\r\n");
    for (name, value) in headers {
        request.push_str(&format!("{name}: {value}\r\n"));
    }
    request.push_str("\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    // The server may have answered, and closed, before it has read all.
    drop(stream.write_all(body.as_bytes()).await);
    let mut answer = Vec::new();
    drop(settled(stream.read_to_end(&mut answer)).await);
    let answer = String::from_utf8(answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let session = head.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).map(str::to_owned);
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0);
    Answer { status, session, head: head.to_owned(), body: body.to_owned() }
}

fn bearer() -> (&'static str, String) {
    ("authorization", format!("Bearer {TOKEN}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn n4_without_the_right_token_nobody_gets_in_and_is_told_how() {
    let ground = Ground::new();
    let http = Http::start(&ground.server(), |_| {}).await;
    let missing = post(&http, &[], &message()).await;
    assert_eq!(missing.status, 401);
    assert!(missing.head.contains("www-authenticate: Bearer realm=\"eyot\"\r\n"), "{missing:?}");
    let wrong = [
        "Bearer wrong",
        "Bearer",
        "Basic YTpi",
        "bearer a-token-of-the-test",
        "Bearer a-token-of-the-tests x",
    ];
    for value in wrong {
        let answer = post(&http, &[("authorization", value.to_owned())], &message()).await;
        assert_eq!((answer.status, answer.session.as_deref()), (401, None), "{value}");
        assert!(answer.head.contains("www-authenticate: "), "{answer:?}");
    }
    let twice = post(&http, &[bearer(), bearer()], &message()).await;
    assert_eq!(twice.status, 401);
    let in_url = raw(&http, &format!("GET /mcp?token={TOKEN}"), &[("host", http.address.clone())], "").await;
    assert_eq!(in_url.status, 401);
    assert_eq!(initialize(&http, TOKEN).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn n3_a_web_page_is_refused_by_its_origin_and_a_rebound_name_by_its_host() {
    let ground = Ground::new();
    let http = Http::start(&ground.server(), |options| {
        options.allowed_hosts.push("box.example".parse().unwrap());
        options.allowed_origins.push("https://app.example".parse().unwrap());
    })
    .await;
    let with = async |name: &'static str, value: &str| {
        post(&http, &[bearer(), (name, value.to_owned())], &message()).await.status
    };
    for origin in
        ["http://evil.com", "null", "http://localhost", "http://127.0.0.1:7070", "https://app.example:8443"]
    {
        assert_eq!(with("origin", origin).await, 403, "{origin}");
    }
    for host in ["evil.com", "127.0.0.1.evil.com", "evil.com:80", "10.0.0.1"] {
        assert_eq!(with("host", host).await, 403, "{host}");
    }
    // Before the token is looked at, and for every method and path.
    let stranger = [("host", "evil.com".to_owned())];
    for line in ["GET /mcp", "DELETE /mcp", "OPTIONS /mcp", "GET /", "POST /mcp"] {
        assert_eq!(raw(&http, line, &stranger, "").await.status, 403, "{line}");
    }
    assert_eq!(with("origin", "https://app.example").await, 200);
    assert_eq!(with("host", "box.example:7070").await, 200);
    assert_eq!(with("host", "localhost:1").await, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_origin_that_is_let_in_may_ask_before_it_sends_and_read_the_answer() {
    let ground = Ground::new();
    let http = Http::start(&ground.server(), |options| {
        options.allowed_origins.push("https://app.example".parse().unwrap());
    })
    .await;
    let asks = [
        ("host", http.address.clone()),
        ("origin", "https://app.example".to_owned()),
        ("access-control-request-method", "POST".to_owned()),
        ("access-control-request-headers", "authorization,mcp-session-id".to_owned()),
    ];
    let answer = raw(&http, "OPTIONS /mcp", &asks, "").await;
    assert_eq!(answer.status, 200);
    assert!(answer.head.contains("access-control-allow-origin: https://app.example"), "{answer:?}");
    let answer = post(&http, &[bearer(), ("origin", "https://app.example".to_owned())], &message()).await;
    assert!(answer.head.contains("access-control-expose-headers: mcp-session-id"), "{answer:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn n5_a_message_that_is_too_large_or_broken_is_refused_in_words() {
    let ground = Ground::new();
    let http = Http::start(&ground.server(), |_| {}).await;
    let large = format!("\"{}\"", "x".repeat(MAX_MESSAGE_BYTES));
    assert_eq!(post(&http, &[bearer()], &large).await.status, 413);
    // Without a length, only reading it shows.
    let chunk = format!("{:x}\r\n{large}\r\n0\r\n\r\n", large.len());
    let headers = [
        ("host", http.address.clone()),
        bearer(),
        ("accept", "application/json, text/event-stream".to_owned()),
        ("content-type", "application/json".to_owned()),
        ("transfer-encoding", "chunked".to_owned()),
    ];
    assert_eq!(raw(&http, "POST /mcp", &headers, &chunk).await.status, 413);
    let broken = post(&http, &[bearer()], "{").await;
    assert!(broken.status == 400 && broken.body.contains("-32700"), "{broken:?}");
    let header = "x".repeat(1 << 20);
    assert!(matches!(post(&http, &[bearer(), ("x", header)], &message()).await.status, 431 | 0));
    assert_eq!(
        raw(&http, "GET /elsewhere", &[("host", http.address.clone()), bearer()], "").await.status,
        404
    );
    assert_eq!(initialize(&http, TOKEN).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn beyond_loopback_a_token_that_was_made_up_is_not_enough() {
    let ground = Ground::new();
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let options = HttpOptions::new(Tokens::generate().unwrap().0);
    let served = settled(serve_http(&ground.server(), listener, options, CancellationToken::new())).await;
    assert_eq!(served.unwrap_err().kind(), ErrorKind::Invalid);
}
