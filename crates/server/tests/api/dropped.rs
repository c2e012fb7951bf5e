//! Requests whose client has gone. Each is dropped at each of its awaits in turn, in process. The
//! same sandbox can be used at once after each.

use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Method, Request, StatusCode};
use eyot::conformance::{MAX_AWAITS, dropped_after};
use eyot_server::api::router;
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use serde_json::{Value, json};

use crate::ground::Ground;

/// A bound for waits: an event that has not come by then never comes.
const HANG: Duration = Duration::from_secs(20);

/// The API without a connection in between: a request is a future.
struct Server<'a> {
    router: TowerToHyperService<Router>,
    ground: &'a Ground,
}

impl<'a> Server<'a> {
    fn new(ground: &'a Ground) -> Self {
        Self { router: TowerToHyperService::new(router(&ground.api)), ground }
    }

    /// Sends a request and reads the answer to its end.
    async fn ask(&self, (method, path, body): &Asked) -> (StatusCode, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let request = Request::builder()
            .method(method)
            .uri(path.as_str())
            .header("authorization", format!("Bearer {}", self.ground.ours))
            .header("content-length", body.len())
            .body(Body::from(body))
            .unwrap();
        let response = self.router.call(request).await.unwrap();
        let status = response.status();
        let bytes = to_bytes(response.into_body(), 16 << 20).await.unwrap();
        (status, serde_json::from_slice(&bytes).unwrap_or_default())
    }

    /// Asserts that the sandbox `dev` wakes if it sleeps, and runs commands.
    async fn is_usable(&self, after: &str) {
        let asked = post("/v1/sandboxes/dev/exec", json!({ "command": "echo up" }));
        let used = async {
            loop {
                let (status, result) = self.ask(&asked).await;
                // A sleep that was dropped may be carried out now, and end the command that had begun.
                if result["sleeping"] != json!(true) {
                    return (status, result);
                }
            }
        };
        let answer = tokio::time::timeout(HANG, used).await;
        let (status, result) = answer.unwrap_or_else(|_| panic!("{after}: `dev` hangs"));
        assert_eq!((status.as_u16(), &result["stdout"]), (200, &json!("up\n")), "{after}: {result}");
    }
}

type Asked = (Method, String, Value);

fn post(path: &str, body: Value) -> Asked {
    (Method::POST, path.to_owned(), body)
}

fn get(path: &str) -> Asked {
    (Method::GET, path.to_owned(), Value::Null)
}

/// Drops the request at its first await, the next one at its second, and so on until one is
/// answered. Calls `between` after each.
async fn dropped_everywhere(server: &Server<'_>, asked: &Asked, between: impl AsyncFn(&str)) {
    for awaits in 1..=MAX_AWAITS {
        let told = format!("{} {}, dropped at await {awaits}", asked.0, asked.1);
        let call = dropped_after(awaits, server.ask(asked));
        let answered = tokio::time::timeout(HANG, call).await.unwrap_or_else(|_| panic!("{told}: it hangs"));
        between(&told).await;
        if let Some((status, answer)) = answered {
            assert!(status.is_success(), "{told}: {status} {answer}");
            return;
        }
    }
    panic!("{} {} goes on after {MAX_AWAITS} awaits", asked.0, asked.1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_dropped_at_any_await_leaves_its_sandbox_usable() {
    let ground = Ground::new().await;
    ground.sandbox("dev").await;
    let server = Server::new(&ground);
    let upload = (Method::PUT, "/v1/sandboxes/dev/files?path=new/file".to_owned(), json!({ "a": 1 }));
    let patch = (Method::PATCH, "/v1/sandboxes/dev".to_owned(), json!({ "labels": { "a": "1" } }));
    let deadlines = json!({ "lifecycle": { "idle_timeout_ms": 3_600_000, "on_idle": "sleep" } });
    let asked = [
        post("/v1/sandboxes/dev/exec", json!({ "command": "echo x" })),
        post("/v1/sandboxes/dev/exec", json!({ "command": "sleep 1000", "timeout_ms": 1 })),
        post("/v1/sandboxes/dev/exec/stream?linger_ms=0", json!({ "command": "echo x" })),
        upload,
        get("/v1/sandboxes/dev/files?path=/etc/passwd"),
        get("/v1/sandboxes/dev/list?path=/"),
        post("/v1/sandboxes/dev/processes", json!({ "command": "true" })),
        post("/v1/sandboxes/dev/terminals", json!({ "command": "true", "size": { "rows": 24, "cols": 80 } })),
        patch,
        (Method::PATCH, "/v1/sandboxes/dev".to_owned(), deadlines),
        get("/v1/sandboxes/dev"),
        get("/v1/sandboxes/dev/usage"),
        get("/v1/sandboxes"),
        post("/v1/sandboxes/dev/open", Value::Null),
    ];
    for asked in asked {
        dropped_everywhere(&server, &asked, async |told| server.is_usable(told).await).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sleep_a_wake_or_a_use_of_a_sleeping_sandbox_that_is_dropped_at_any_await_locks_nothing() {
    let ground = Ground::new().await;
    ground.sandbox("dev").await;
    let server = Server::new(&ground);
    let sleep = post("/v1/sandboxes/dev/sleep", Value::Null);
    dropped_everywhere(&server, &sleep, async |told| server.is_usable(told).await).await;
    for asked in [
        post("/v1/sandboxes/dev/wake", Value::Null),
        post("/v1/sandboxes/dev/exec", json!({ "command": "echo x" })),
        get("/v1/sandboxes/dev/files?path=/etc/passwd"),
        (Method::PATCH, "/v1/sandboxes/dev".to_owned(), json!({ "lifecycle": { "ttl_ms": 86_400_000 } })),
    ] {
        assert_eq!(server.ask(&sleep).await.0, 204);
        dropped_everywhere(&server, &asked, async |told| {
            server.is_usable(told).await;
            assert_eq!(server.ask(&sleep).await.0, 204, "{told}");
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_create_or_a_delete_that_is_dropped_at_any_await_leaves_the_name_usable() {
    let ground = Ground::new().await;
    let server = Server::new(&ground);
    let create = post("/v1/sandboxes", json!({ "spec": { "name": "dev" }, "get_or_create": true }));
    let delete = (Method::DELETE, "/v1/sandboxes/dev".to_owned(), Value::Null);
    let made = async |told: &str| {
        let answer = tokio::time::timeout(HANG, server.ask(&create)).await;
        let (status, made) = answer.unwrap_or_else(|_| panic!("{told}: `dev` hangs"));
        assert!(status.is_success(), "{told}: {status} {made}");
    };
    dropped_everywhere(&server, &create, async |told| {
        made(told).await;
        server.is_usable(told).await;
        assert_eq!(server.ask(&delete).await.0, 204, "{told}");
    })
    .await;
    made("at first").await;
    dropped_everywhere(&server, &delete, async |told| {
        let (status, answer) = server.ask(&delete).await;
        assert!(matches!(status.as_u16(), 204 | 404), "{told}: {status} {answer}");
        made(told).await;
        server.is_usable(told).await;
    })
    .await;
}
