//! WebSockets, server-sent events, large bodies, servers that fail.

use std::time::Duration;

use eyot_server::api::{PreviewLimits, ServeOptions};
use reqwest::Method;
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};

use crate::ground::{Ground, PORT, Preview, parts, request};

/// Requests a WebSocket. Returns the lines of the answer's head, and the connection behind it.
async fn socket(
    ground: &Ground,
    preview: &Preview,
    host: &str,
    path: &str,
) -> (Vec<String>, BufReader<tokio::net::TcpStream>) {
    let mut stream = ground.connection().await;
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\n{}\r\nOrigin: http://{host}\r\nConnection: keep-alive, Upgrade\r\n\
         Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        preview.header(),
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut stream = BufReader::new(stream);
    (head_of(&mut stream).await, stream)
}

async fn head_of(stream: &mut BufReader<tokio::net::TcpStream>) -> Vec<String> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.unwrap();
        match line.trim_end() {
            "" => return lines,
            line => lines.push(line.to_owned()),
        }
    }
}

async fn message(stream: &mut BufReader<tokio::net::TcpStream>) -> String {
    let mut start = [0; 2];
    stream.read_exact(&mut start).await.unwrap();
    assert_eq!(start[0], 0x81);
    let mut text = vec![0; start[1].into()];
    stream.read_exact(&mut text).await.unwrap();
    String::from_utf8(text).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn n2_a_websocket_goes_both_ways_with_the_same_host_as_all_else() {
    let ground = Ground::new().await;
    let id = ground.serving("dev").await;
    let preview = ground.preview(&id, PORT, json!({})).await;
    let (path_host, path) = parts(&preview.path_url);
    let path = format!("{}socket", path.split('?').next().unwrap());
    for (host, path) in [(preview.host(), "/socket".to_owned()), (path_host, path)] {
        let (head, mut stream) = socket(&ground, &preview, &host, &path).await;
        assert_eq!(head[0], "HTTP/1.1 101 Switching Protocols");
        let accepted = head.iter().any(|line| line.ends_with("s3pPLMBiTxaQ9kYGzzhZRbK+xOo="));
        assert!(accepted, "{head:?}");
        assert_eq!(message(&mut stream).await, format!("host: {host}"));
        for text in ["hi", "again"] {
            let mut frame = vec![0x81, 0x80 | u8::try_from(text.len()).unwrap(), 0, 0, 0, 0];
            frame.extend(text.bytes());
            stream.write_all(&frame).await.unwrap();
            assert_eq!(message(&mut stream).await, text);
        }
        stream.write_all(&[0x88, 0x80, 0, 0, 0, 0]).await.unwrap();
        assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 0);
    }
    let plain = ground.get(&preview.host(), "/x", &[&preview.header()]).await;
    assert!(plain.body().contains(&format!("host: {}\r\n", preview.host())), "{}", plain.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_arrives_when_it_is_told_and_not_when_all_have_been() {
    let ground = Ground::new().await;
    let id = ground.serving("dev").await;
    let preview = ground.preview(&id, PORT, json!({})).await;
    let mut stream = ground.connection().await;
    let asked = request("GET", &preview.host(), "/events", &[&preview.header(), "Accept: text/event-stream"]);
    stream.write_all(asked.as_bytes()).await.unwrap();
    let mut stream = BufReader::new(stream);
    let head = head_of(&mut stream).await;
    assert!(head.contains(&"content-type: text/event-stream".to_owned()), "{head:?}");
    let mut told = String::new();
    while !told.contains("data: first") {
        assert_ne!(stream.read_line(&mut told).await.unwrap(), 0, "{told}");
    }
    // The server waits for this before it goes on, so the first event can't have waited for the second.
    let released = ground.get(&preview.host(), "/release", &[&preview.header()]).await;
    assert_eq!(released.body(), "released");
    stream.read_to_string(&mut told).await.unwrap();
    assert!(told.contains("data: second"), "{told}");
}

/// Returns the code and the reason of the next close frame. The connection must end behind it.
async fn closed(stream: &mut BufReader<tokio::net::TcpStream>) -> (u16, String) {
    let mut start = [0; 4];
    stream.read_exact(&mut start).await.unwrap();
    assert_eq!(start[0], 0x88, "{start:?}");
    let mut reason = vec![0; usize::from(start[1]) - 2];
    stream.read_exact(&mut reason).await.unwrap();
    assert_eq!(stream.read(&mut [0; 8]).await.unwrap(), 0);
    (u16::from_be_bytes([start[2], start[3]]), String::from_utf8(reason).unwrap())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_stops_closes_websockets_by_a_frame_and_ends_event_streams_whole() {
    let ground = Ground::new().await;
    let id = ground.serving("dev").await;
    let preview = ground.preview(&id, PORT, json!({})).await;
    let (_, mut socket) = socket(&ground, &preview, &preview.host(), "/socket").await;
    message(&mut socket).await;
    let mut stream = ground.connection().await;
    let asked = request("GET", &preview.host(), "/events", &[&preview.header(), "Accept: text/event-stream"]);
    stream.write_all(asked.as_bytes()).await.unwrap();
    let (mut stream, mut told) = (BufReader::new(stream), String::new());
    while !told.contains("data: first") {
        assert_ne!(stream.read_line(&mut told).await.unwrap(), 0, "{told}");
    }
    ground.stop();
    assert_eq!(closed(&mut socket).await, (1001, "the server stops".to_owned()));
    stream.read_to_string(&mut told).await.unwrap();
    assert!(told.ends_with("\r\n0\r\n\r\n") && !told.contains("data: second"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_goes_in_and_comes_out_whole_with_and_without_a_length() {
    let ground = Ground::new().await;
    let id = ground.serving("dev").await;
    let preview = ground.preview(&id, PORT, json!({})).await;
    let body = "0123456789abcdef".repeat(64 * 1024);
    let length = format!("Content-Length: {}", body.len());
    let header = preview.header();
    let whole = request("PUT", &preview.host(), "/x", &[&header, &length]) + &body;
    assert!(ground.raw(whole).await.text.ends_with(&body));
    let chunks = format!("{:x}\r\n{body}\r\n0\r\n\r\n", body.len());
    let chunked = request("PUT", &preview.host(), "/x", &[&header, "Transfer-Encoding: chunked"]) + &chunks;
    assert!(ground.raw(chunked).await.text.ends_with(&body));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_not_there_or_makes_no_sense_is_said_to_be_so() {
    let limits = PreviewLimits { first_byte: Duration::from_secs(3), ..PreviewLimits::default() };
    let ground = Ground::with(ServeOptions { preview_limits: limits, ..ServeOptions::default() }).await;
    let id = ground.serving("dev").await;
    let empty = ground.preview(&id, 9, json!({ "public": true })).await;
    let nobody = ground.visit(&empty.url, &["Accept: text/html,*/*"]).await;
    assert_eq!((nobody.status(), nobody.header("content-type")), (502, Some("text/html; charset=utf-8")));
    assert!(nobody.body().contains("nothing listens on port 9"), "{}", nobody.text);
    let preview = ground.preview(&id, PORT, json!({ "public": true })).await;
    for (path, status, says) in [
        ("/garbage", 502, "no answer that can be read"),
        ("/switch", 502, "protocol"),
        ("/silent", 504, "has not answered"),
    ] {
        let answer = ground.get(&preview.host(), path, &[]).await;
        assert_eq!(answer.status(), status, "{path}: {}", answer.text);
        assert!(
            answer.body().contains(says) && answer.header("content-type") == Some("application/problem+json")
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_has_so_many_requests_at_once_and_one_more_when_one_has_ended() {
    let limits = PreviewLimits { per_sandbox: 2, ..PreviewLimits::default() };
    let ground = Ground::with(ServeOptions { preview_limits: limits, ..ServeOptions::default() }).await;
    let id = ground.serving("dev").await;
    let preview = ground.preview(&id, PORT, json!({})).await;
    let open = async || socket(&ground, &preview, &preview.host(), "/socket").await.1;
    let (mut first, _second) = (open().await, open().await);
    assert_eq!(ground.get(&preview.host(), "/x", &[&preview.header()]).await.status(), 429);
    first.write_all(&[0x88, 0x80, 0, 0, 0, 0]).await.unwrap();
    message(&mut first).await;
    assert_eq!(first.read(&mut [0; 8]).await.unwrap(), 0);
    assert_eq!(ground.get(&preview.host(), "/x", &[&preview.header()]).await.status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_under_way_is_cut_when_the_preview_is_ended() {
    let ground = Ground::new().await;
    let id = ground.serving("dev").await;
    let preview = ground.preview(&id, PORT, json!({})).await;
    let (_, mut socket) = socket(&ground, &preview, &preview.host(), "/socket").await;
    message(&mut socket).await;
    let mut events = BufReader::new(ground.connection().await);
    let asked = request("GET", &preview.host(), "/events", &[&preview.header()]);
    events.get_mut().write_all(asked.as_bytes()).await.unwrap();
    let mut told = String::new();
    while !told.contains("data: first") {
        assert_ne!(events.read_line(&mut told).await.unwrap(), 0, "{told}");
    }
    let path = format!("/v1/sandboxes/{id}/ports/{PORT}/preview");
    assert_eq!(ground.api(&ground.ours, Method::DELETE, &path, &json!({})).await.status(), 204);
    assert_eq!(closed(&mut socket).await, (1008, "the preview was ended".to_owned()));
    events.read_to_string(&mut told).await.unwrap();
    // Without the chunk that would say that it was all.
    assert!(!told.contains("second") && !told.ends_with("0\r\n\r\n"), "{told:?}");
}
