//! Commands whose output is streamed as server-sent events.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::ground::{Ground, kind, value};

/// The events of an answer as they come.
struct Events {
    response: Response,
    text: String,
}

struct Event {
    name: String,
    id: Option<u64>,
    data: Value,
}

impl Event {
    fn bytes(&self) -> Vec<u8> {
        BASE64_STANDARD.decode(self.data["data"].as_str().unwrap()).unwrap()
    }
}

impl Events {
    fn of(response: Response) -> Self {
        assert_eq!(
            (response.status().as_u16(), &response.headers()["content-type"]),
            (200, &"text/event-stream".parse().unwrap())
        );
        Self { response, text: String::new() }
    }

    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some((event, rest)) = self.text.split_once("\n\n") {
                let field = |name: &str| {
                    event.lines().find_map(|line| line.strip_prefix(name).map(|rest| rest.trim().to_owned()))
                };
                let event = field("event:").map(|name| Event {
                    name,
                    id: field("id:").map(|id| id.parse().unwrap()),
                    data: serde_json::from_str(&field("data:").unwrap()).unwrap(),
                });
                self.text = rest.to_owned();
                match event {
                    Some(event) => return Some(event),
                    None => continue,
                }
            }
            let chunk = self.response.chunk().await.unwrap()?;
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    async fn named(&mut self, name: &str) -> Event {
        loop {
            let event = self.next().await.unwrap_or_else(|| panic!("no event `{name}` came"));
            if event.name == name {
                return event;
            }
        }
    }
}

async fn again(ground: &Ground, path: &str, behind: u64) -> Response {
    ground.request(Method::GET, path).header("last-event-id", behind).send().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn output_comes_as_it_is_written_each_piece_numbered_and_last_what_came_of_it() {
    let ground = Ground::new().await;
    let id = ground.sandbox("dev").await;
    let body =
        json!({ "command": "echo one; read line; echo $line >&2; printf '\\377'; exit 3", "stdin": "two\n" });
    let mut events = Events::of(ground.post(&format!("/v1/sandboxes/{id}/exec/stream"), body).await);
    let started = events.next().await.unwrap();
    assert!(started.name == "started" && started.data["exec"].as_str().unwrap().starts_with("ex_"));
    let (mut out, mut err, mut ids) = (Vec::new(), Vec::new(), Vec::new());
    let end = loop {
        let event = events.next().await.unwrap();
        ids.extend(event.id);
        match event.name.as_str() {
            "stdout" => out.extend(event.bytes()),
            "stderr" => err.extend(event.bytes()),
            _ => break event,
        }
    };
    assert_eq!((out.as_slice(), err.as_slice()), (b"one\n\xff".as_slice(), b"two\n".as_slice()));
    assert_eq!(ids, (1..=ids.len() as u64).collect::<Vec<_>>());
    assert_eq!(
        (end.name.as_str(), &end.data["outcome"], &end.data["stdout_bytes"]),
        ("end", &json!({ "exited": 3 }), &json!(5))
    );
    assert_eq!((&end.data["stdout"], &end.data["stdout_truncated"]), (&json!(""), &json!(false)));
    assert!(events.next().await.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_stream_refuses_a_last_event_id_that_is_no_number() {
    let ground = Ground::new().await;
    let id = ground.sandbox("dev").await;
    let started =
        value(ground.post(&format!("/v1/sandboxes/{id}/processes"), json!({ "command": "true" })).await)
            .await;
    let logs = format!("/v1/sandboxes/{id}/processes/{}/logs", started["id"]);
    let body = json!({ "command": "sleep 1000" });
    let mut events = Events::of(ground.post(&format!("/v1/sandboxes/{id}/exec/stream"), body).await);
    let exec = events.named("started").await.data["exec"].as_str().unwrap().to_owned();
    for path in ["/v1/events", &logs, &format!("/v1/sandboxes/{id}/exec/stream/{exec}")] {
        for junk in ["x", "-1", "1.5", ""] {
            let refused =
                ground.request(Method::GET, path).header("last-event-id", junk).send().await.unwrap();
            assert_eq!(refused.status(), 400, "{path} with {junk:?}");
            assert_eq!(value(refused).await["field"], "Last-Event-ID");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_whose_connection_broke_is_taken_up_behind_the_last_event_that_came() {
    let ground = Ground::new().await;
    let id = ground.sandbox("dev").await;
    let path = format!("/v1/sandboxes/{id}/exec/stream");
    let body = json!({ "command": "echo first; until test -e go; do read -t 0.1 x <> <(:) || true; done; echo second" });
    let mut events = Events::of(ground.post(&path, body).await);
    let exec = events.named("started").await.data["exec"].as_str().unwrap().to_owned();
    let first = events.named("stdout").await;
    assert_eq!(first.bytes(), b"first\n");
    drop(events);
    let wrote = ground
        .request(Method::PUT, &format!("/v1/sandboxes/{id}/files?path=go"))
        .body("")
        .send()
        .await
        .unwrap();
    assert!(wrote.status().is_success(), "{}", wrote.status());
    let mut rest = Events::of(again(&ground, &format!("{path}/{exec}"), first.id.unwrap()).await);
    let second = rest.next().await.unwrap();
    assert_eq!((second.id, second.bytes()), (Some(2), b"second\n".to_vec()));
    assert_eq!(rest.named("end").await.data["exit_code"], 0);
    // All of it is there once more, and so is the end alone.
    let mut whole = Events::of(ground.get(&format!("{path}/{exec}")).await);
    assert_eq!(whole.next().await.unwrap().bytes(), b"first\n");
    let mut end = Events::of(again(&ground, &format!("{path}/{exec}"), 2).await);
    assert_eq!(end.next().await.unwrap().name, "end");
    assert_eq!(kind(again(&ground, &format!("{path}/{exec}"), 99).await).await, "invalid");
    assert_eq!(kind(ground.get(&format!("{path}/ex_0")).await).await, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_kept_any_more_is_said_and_not_left_out() {
    let ground = Ground::new().await;
    let id = ground.sandbox("dev").await;
    let path = format!("/v1/sandboxes/{id}/exec/stream");
    let body = json!({ "command": "head -c 3000000 /dev/zero" });
    let mut events = Events::of(ground.post(&path, body).await);
    let exec = events.named("started").await.data["exec"].as_str().unwrap().to_owned();
    let end = events.named("end").await;
    assert_eq!(end.data["stdout_bytes"], 3_000_000);
    assert_eq!(kind(again(&ground, &format!("{path}/{exec}"), 1).await).await, "conflict");
    let before_the_end = end.id.unwrap() - 1;
    let mut rest = Events::of(again(&ground, &format!("{path}/{exec}"), before_the_end).await);
    assert_eq!(rest.next().await.unwrap().name, "end");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_that_nobody_reads_any_more_is_killed_and_so_is_one_that_is_to_end() {
    let ground = Ground::new().await;
    let id = ground.sandbox("dev").await;
    let path = format!("/v1/sandboxes/{id}/exec/stream");
    let mut left = Events::of(
        ground
            .post(
                &format!("{path}?linger_ms=0"),
                json!({ "command": "trap 'touch gone' EXIT; echo on; sleep 86471" }),
            )
            .await,
    );
    left.named("stdout").await;
    drop(left);
    let runs = async |what: &str| {
        let live = value(ground.get(&format!("/v1/sandboxes/{id}/live")).await).await;
        live["processes"].as_array().unwrap().iter().any(|process| process["command"] == what)
    };
    let gone = async {
        while runs("sleep 86471").await {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), gone).await.unwrap();
    let mut ended = Events::of(ground.post(&path, json!({ "command": "echo on; sleep 86472" })).await);
    let exec = ended.named("started").await.data["exec"].as_str().unwrap().to_owned();
    ended.named("stdout").await;
    let asked = ground.request(Method::DELETE, &format!("{path}/{exec}")).send().await.unwrap();
    assert_eq!(asked.status(), 204);
    assert_eq!(ended.named("end").await.data["outcome"], "cancelled");
}

#[tokio::test(flavor = "multi_thread")]
async fn another_tenant_has_no_such_stream_and_a_wrong_request_starts_nothing() {
    let ground = Ground::new().await;
    let id = ground.sandbox("dev").await;
    let path = format!("/v1/sandboxes/{id}/exec/stream");
    let mut events = Events::of(ground.post(&path, json!({ "command": "cat" })).await);
    let exec = events.named("started").await.data["exec"].as_str().unwrap().to_owned();
    for method in [Method::GET, Method::DELETE] {
        let refused = ground.as_whom(&ground.theirs, method, &format!("{path}/{exec}")).send().await.unwrap();
        assert_eq!(kind(refused).await, "not_found");
    }
    let other = ground.sandbox("other").await;
    assert_eq!(
        kind(ground.get(&format!("/v1/sandboxes/{other}/exec/stream/{exec}")).await).await,
        "not_found"
    );
    for wrong in [
        json!({}),
        json!({ "command": "cat", "stdin_follows": true }),
        json!({ "command": "cat", "pty": { "rows": 1, "cols": 1 } }),
    ] {
        assert_eq!(kind(ground.post(&path, wrong).await).await, "invalid");
    }
    assert_eq!(
        kind(ground.post(&format!("{path}?linger_ms=600001"), json!({ "command": "true" })).await).await,
        "invalid"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_that_is_stopped_does_not_hold_the_deadline_of_a_stream() {
    let ground = Ground::new().await;
    let id = ground.sandbox("dev").await;
    let path = format!("/v1/sandboxes/{id}/exec/stream");
    let body = json!({ "command": "echo on; sleep 86466", "timeout_ms": 1500 });
    let begun = std::time::Instant::now();
    let mut before = Events::of(ground.post(&path, body.clone()).await);
    before.named("stdout").await;
    let stopped = ground.stop_guest(&id);
    let after = async { Events::of(ground.post(&path, body).await).named("end").await };
    let (before, after) = tokio::join!(before.named("end"), after);
    assert!(begun.elapsed() < std::time::Duration::from_secs(4), "{:?}", begun.elapsed());
    for end in [before, after] {
        let told = (&end.data["timed_out"], &end.data["may_still_be_running"]);
        assert_eq!(told, (&json!(true), &json!(true)), "{}", end.data);
    }
    drop(stopped);
    let line = "while pgrep -x sleep >/dev/null; do :; done; echo hi";
    let body = json!({ "command": line, "timeout_ms": 60_000 });
    let result = value(ground.post(&format!("/v1/sandboxes/{id}/exec"), body).await).await;
    assert_eq!(result["stdout"], "hi\n");
}
