//! Limits of requests: the things that one may take into a sandbox, and as whom it acts there.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use reqwest::Method;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::ground::{DOMAIN, Ground, KEY, Made};

/// Answers each request with its head.
const ECHO: &str = r"
import socket
listener = socket.create_server(('127.0.0.1', 8000))
open('/tmp/ready', 'w').close()
while True:
    client, _ = listener.accept()
    head = b''
    while not head.endswith(b'\r\n\r\n'):
        head += client.recv(1)
    client.sendall(b'HTTP/1.1 200 OK\r\nConnection: X-Hop\r\nX-Hop: 1\r\nX-Kept: 1\r\nContent-Length: %d\r\n\r\n' % len(head) + head)
    client.close()
";

/// Runs a shell's line in the background of a sandbox.
async fn start(ground: &Ground, made: &Made, line: &str) {
    let message = json!({ "process": { "cmd": "/bin/sh", "args": ["-c", line, ECHO] } }).to_string();
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    let body = [&[0][..], &length, message.as_bytes()].concat();
    let request = ground.request(Method::POST, "/process.Process/Start", &Value::Null).body(body);
    let request = request.header("E2b-Sandbox-Id", &made.id).header("X-Access-Token", &made.token);
    assert_eq!(request.send().await.unwrap().status(), 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_key_and_no_token_goes_to_a_port_and_nothing_between_neighbours() {
    let ground = Ground::new().await;
    let made = ground.create(json!({ "templateID": "base" })).await;
    start(&ground, &made, "python3 -c \"$0\"").await;
    let host = format!("8000-{}.{DOMAIN}", made.id);
    let ask = |host: &str| {
        ground
            .request(Method::GET, "/a?b=1", &Value::Null)
            .header("Host", host)
            .header("X-Access-Token", &made.token)
            .header("Authorization", "Bearer of-the-program")
            .header("Cookie", format!("a={KEY}"))
            .header("E2b-Traffic-Access-Token", "t")
            .header("Proxy-Authorization", "Basic x")
            .header("Connection", "X-Secret")
            .header("X-Secret", "1")
            .header("X-Kept", "1")
            .send()
    };
    let mut answer = ask(&host).await.unwrap();
    while answer.status() == 502 {
        answer = ask(&host).await.unwrap();
    }
    assert_eq!(answer.status(), 200);
    assert!(answer.headers().contains_key("x-kept") && !answer.headers().contains_key("x-hop"));
    let seen = answer.text().await.unwrap().to_lowercase();
    assert!(seen.starts_with("get /a?b=1 http/1.1\r\n") && seen.contains("x-kept: 1\r\n"), "{seen}");
    assert!(seen.contains("authorization: bearer of-the-program\r\n"), "{seen}");
    for gone in [KEY, &made.token, "x-access-token", "e2b-traffic", "proxy-auth", "x-secret"] {
        assert!(!seen.contains(gone), "{gone}: {seen}");
    }
    let elsewhere = ask(&format!("8000-{}.another.test", made.id)).await.unwrap();
    assert_eq!(elsewhere.status(), 404);
    let killed = ground.send(Method::DELETE, &format!("/sandboxes/{}", made.id), &Value::Null).await;
    assert_eq!(killed.status(), 204);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_call_acts_on_files_as_another_user_than_is_named() {
    let ground = Ground::new().await;
    let made = ground.create(json!({ "templateID": "base" })).await;
    let calls = [
        ("MakeDir", json!({ "path": "/tmp/d" })),
        ("Move", json!({ "source": "/tmp/d", "destination": "/tmp/e" })),
        ("CreateWatcher", json!({ "path": "/tmp/e" })),
        ("Remove", json!({ "path": "/tmp/e" })),
    ];
    for (method, body) in &calls {
        let path = format!("/filesystem.Filesystem/{method}");
        assert_eq!(ground.envd(&made, "root", &path, body).await.status(), 501, "{method}");
        assert_eq!(ground.envd(&made, "user", &path, body).await.status(), 200, "{method}");
    }
    let killed = ground.send(Method::DELETE, &format!("/sandboxes/{}", made.id), &Value::Null).await;
    assert_eq!(killed.status(), 204);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_without_a_path_removes_and_moves_nothing() {
    let ground = Ground::new().await;
    let made = ground.create(json!({ "templateID": "base" })).await;
    let kept = json!({ "path": "/home/user/kept" });
    assert_eq!(ground.envd(&made, "user", "/filesystem.Filesystem/MakeDir", &kept).await.status(), 200);
    for (method, body) in [
        ("Remove", json!({})),
        ("MakeDir", json!({ "path": "" })),
        ("Move", json!({ "source": "", "destination": "/tmp/e" })),
        ("Move", json!({ "source": "kept", "destination": "" })),
    ] {
        let path = format!("/filesystem.Filesystem/{method}");
        assert_eq!(ground.envd(&made, "user", &path, &body).await.status(), 400, "{method}");
    }
    assert_eq!(ground.envd(&made, "user", "/filesystem.Filesystem/Stat", &kept).await.status(), 200);
    let killed = ground.send(Method::DELETE, &format!("/sandboxes/{}", made.id), &Value::Null).await;
    assert_eq!(killed.status(), 204);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_that_may_read_a_file_may_ask_for_its_head() {
    let ground = Ground::new().await;
    let made = ground.create(json!({ "templateID": "base" })).await;
    let signature = |operation: &str| {
        let signed = format!("/etc/passwd:{operation}::{}", made.token);
        let encoded = STANDARD_NO_PAD.encode(Sha256::digest(signed.as_bytes()));
        format!(
            "/files?path=%2Fetc%2Fpasswd&signature=v1_{}",
            encoded.replace('+', "%2B").replace('/', "%2F")
        )
    };
    for (operation, status) in [("read", 200), ("write", 401)] {
        for method in [Method::HEAD, Method::GET] {
            let request = ground.request(method.clone(), &signature(operation), &Value::Null);
            let answer = request.header("E2b-Sandbox-Id", &made.id).send().await.unwrap();
            assert_eq!(answer.status(), status, "{method} {operation}");
        }
    }
    let killed = ground.send(Method::DELETE, &format!("/sandboxes/{}", made.id), &Value::Null).await;
    assert_eq!(killed.status(), 204);
}
