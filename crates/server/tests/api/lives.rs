//! The header `Eyot-Life` ties a request to one life of a sandbox, and changes nothing else.

use eyot::wire::ExecAnswer;
use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::ground::{Ground, kind, value};

/// A sandbox with limits, and requests that are tied to its life.
struct Held {
    ground: Ground,
    id: String,
    life: String,
}

impl Held {
    async fn with(limits: Value) -> Self {
        let ground = Ground::new().await;
        let made = ground.post("/v1/sandboxes", json!({ "spec": { "name": "dev", "limits": limits } })).await;
        assert_eq!(made.status(), 201);
        let made = value(made).await;
        let text = |name: &str| made[name].as_str().unwrap().to_owned();
        assert!(!text("life").is_empty());
        Self { id: text("id"), life: text("life"), ground }
    }

    async fn ask(&self, life: &str, method: Method, path: &str, body: impl Into<reqwest::Body>) -> Response {
        let path = format!("/v1/sandboxes/{}/{path}", self.id);
        let asked = self.ground.request(method, path.trim_end_matches('/')).header("eyot-life", life);
        asked.header("content-type", "application/json").body(body).send().await.unwrap()
    }

    async fn held(&self, method: Method, path: &str, body: impl Into<reqwest::Body>) -> Response {
        self.ask(&self.life, method, path, body).await
    }

    async fn exec(&self, body: Value) -> ExecAnswer {
        let answer = self.held(Method::POST, "exec", body.to_string()).await;
        assert_eq!(answer.status(), 200);
        serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_life_that_is_held_on_to_switches_off_no_limit_on_files() {
    let held = Held::with(json!({ "max_file_bytes": 10 })).await;
    let put = async |path: &str, bytes: usize| {
        held.held(Method::PUT, &format!("files?path={path}"), vec![b'x'; bytes]).await
    };
    assert_eq!(put("edge", 10).await.status(), 200);
    for path in ["beyond", "edge", "beyond&mode=create_new", "edge&mode=append", "beyond&max_file_bytes=99"] {
        let refused = put(path, 11).await;
        assert_eq!(refused.status(), 413, "{path}");
        assert_eq!(kind(refused).await, "too_large", "{path}");
    }
    assert_eq!(held.held(Method::GET, "stat?path=beyond", "").await.status(), 404);
    // A command's files are not held to it, and are no more readable for that.
    held.exec(json!({ "command": "printf 12345678901 > large" })).await;
    assert_eq!(kind(held.held(Method::GET, "files?path=large", "").await).await, "too_large");
    let part = held.held(Method::GET, "files?path=large&offset=1&limit=10", "").await;
    assert_eq!(part.text().await.unwrap(), "2345678901");
    assert_eq!(kind(held.held(Method::GET, "files?path=large&limit=11", "").await).await, "too_large");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_life_that_is_held_on_to_makes_parents_as_without_it() {
    let held = Held::with(json!({})).await;
    for path in ["a/b/c/f", "a/d/f&mode=create_new", "a/e/f&mode=append"] {
        let written = held.held(Method::PUT, &format!("files?path={path}"), "x").await;
        assert_eq!(written.status(), 200, "{path}");
    }
    assert_eq!(kind(held.held(Method::POST, "mkdir?path=x/y", "").await).await, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_life_that_is_held_on_to_keeps_deadlines_and_caps_of_output() {
    let held = Held::with(json!({ "timeout_ms": 300, "max_output_bytes": 5 })).await;
    let long = held.exec(json!({ "command": "sleep 1000" })).await;
    assert_eq!(serde_json::to_value(long.outcome).unwrap(), "timed_out");
    let much = held.exec(json!({ "command": "printf 1234567890" })).await;
    assert_eq!((much.stdout.as_str(), much.stdout_truncated), ("12345", true));
    let streamed =
        held.held(Method::POST, "exec/stream", json!({ "command": "sleep 1000" }).to_string()).await;
    assert!(streamed.text().await.unwrap().contains("timed_out"));
    let beneath = held.held(Method::GET, "files?beneath=held&path=/etc/passwd", "").await;
    assert_eq!(kind(beneath).await, "permission");
}

/// Every call that wakes a sandbox without the header.
const CALLS: [(&str, &str, &str); 30] = [
    ("PATCH", "", r#"{"lifecycle":{"idle_timeout_ms":60000}}"#),
    ("GET", "usage", ""),
    ("POST", "exec", r#"{"command":"true"}"#),
    ("POST", "exec/stream", r#"{"command":"true"}"#),
    ("GET", "files?path=f", ""),
    ("PUT", "files?path=f", "x"),
    ("DELETE", "files?path=f", ""),
    ("GET", "stat?path=f", ""),
    ("GET", "exists?path=f", ""),
    ("GET", "list?path=.", ""),
    ("POST", "mkdir?path=d", ""),
    ("POST", "rename?from=f&to=g", ""),
    ("GET", "tree?path=.", ""),
    ("PUT", "tree?path=.", ""),
    ("GET", "glob?pattern=*&path=.", ""),
    ("GET", "grep?pattern=x&path=.", ""),
    ("GET", "watch?path=.", ""),
    ("POST", "processes", r#"{"command":"true"}"#),
    ("GET", "processes", ""),
    ("GET", "live", ""),
    ("GET", "processes/p1/wait", ""),
    ("GET", "processes/p1/wait?observe=true", ""),
    ("GET", "processes/p1/logs", ""),
    ("POST", "processes/p1/signal", "{}"),
    ("GET", "egress", ""),
    ("PUT", "egress", r#"{"allow":[]}"#),
    ("GET", "egress/decisions", ""),
    ("GET", "ports", ""),
    ("GET", "ports/80/connect", ""),
    ("GET", "exec/socket", ""),
];

#[tokio::test(flavor = "multi_thread")]
async fn every_call_in_another_life_is_refused_as_asleep_and_wakes_nothing() {
    let held = Held::with(json!({})).await;
    let slept = held.ground.post(&format!("/v1/sandboxes/{}/sleep", held.id), json!({})).await;
    assert_eq!(slept.status(), 204);
    let refused = async |life: &str| {
        for (method, path, body) in CALLS {
            let answer = held.ask(life, method.parse().unwrap(), path, body).await;
            let status = answer.status();
            let problem = value(answer).await;
            assert_eq!(
                (status.as_u16(), &problem["sleeping"]),
                (503, &true.into()),
                "{method} {path}: {problem}"
            );
        }
    };
    refused(&held.life).await;
    let seen = value(held.ground.get(&format!("/v1/sandboxes/{}", held.id)).await).await;
    assert_eq!(seen["status"], "sleeping", "{seen}");
    let woken = held.ground.post(&format!("/v1/sandboxes/{}/wake", held.id), json!({})).await;
    assert_eq!(woken.status(), 200);
    refused(&held.life).await;
}
