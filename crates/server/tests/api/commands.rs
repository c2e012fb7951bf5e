//! Commands by plain requests.

use std::time::{Duration, Instant};

use eyot_server::api::ServeLimits;
use serde_json::json;

use crate::ground::{Ground, kind, value};

#[tokio::test(flavor = "multi_thread")]
async fn a_command_s_result_is_whole_and_what_is_no_text_comes_as_base64() {
    let ground = Ground::new().await;
    let id = ground.sandbox("dev").await;
    let path = format!("/v1/sandboxes/{id}/exec");
    let ran = ground.post(&path, json!({ "command": "cat; echo err >&2; exit 3", "stdin": "out\n" })).await;
    let result = value(ran).await;
    assert_eq!(result["stdout"], "out\n");
    assert_eq!(result["stderr"], "err\n");
    assert_eq!((&result["exit_code"], &result["outcome"]), (&json!(3), &json!({ "exited": 3 })));
    assert!(result.get("stdout_base64").is_none());
    let odd = value(ground.post(&path, json!({ "argv": ["printf", "\\377"] })).await).await;
    assert_eq!((&odd["stdout"], &odd["stdout_base64"]), (&json!("\u{fffd}"), &json!("/w==")));
    let late = value(ground.post(&path, json!({ "command": "sleep 60", "timeout_ms": 100 })).await).await;
    assert_eq!((&late["timed_out"], &late["exit_code"]), (&json!(true), &json!(124)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_result_says_whether_something_still_holds_the_output_open() {
    let ground = Ground::new().await;
    let id = ground.sandbox("dev").await;
    let path = format!("/v1/sandboxes/{id}/exec");
    for (line, stdout, output_open) in [
        ("exec > >(tee log) 2>&1; echo one", "one\n", false),
        ("sleep 86463 & echo now", "now\n", true),
        ("echo now", "now\n", false),
    ] {
        let result = value(ground.post(&path, json!({ "command": line })).await).await;
        assert_eq!(
            (&result["stdout"], &result["output_open"]),
            (&json!(stdout), &json!(output_open)),
            "{line}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_that_is_stopped_does_not_hold_a_deadline() {
    let ground = Ground::new().await;
    let id = ground.sandbox("dev").await;
    let stopped = ground.stop_guest(&id);
    for sandbox in [id.as_str(), "dev"] {
        let (path, begun) = (format!("/v1/sandboxes/{sandbox}/exec"), Instant::now());
        let answer = ground.post(&path, json!({ "command": "sleep 86464", "timeout_ms": 1500 })).await;
        assert!(begun.elapsed() < Duration::from_secs(4), "{sandbox}: {:?}", begun.elapsed());
        match answer.status().as_u16() {
            200 => {
                let result = value(answer).await;
                let told = (&result["timed_out"], &result["may_still_be_running"]);
                assert_eq!(told, (&json!(true), &json!(true)), "{sandbox}: {result}");
                assert!(begun.elapsed() < Duration::from_millis(2_500), "{sandbox}: {:?}", begun.elapsed());
            }
            // There was no connection yet, and there can be none.
            _ => assert_eq!(kind(answer).await, "unavailable", "{sandbox}"),
        }
    }
    drop(stopped);
    let path = format!("/v1/sandboxes/{id}/exec");
    let line = "while pgrep -x sleep >/dev/null; do :; done; echo hi";
    let result = value(ground.post(&path, json!({ "command": line, "timeout_ms": 60_000 })).await).await;
    assert_eq!(result["stdout"], "hi\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_goes_away_takes_its_command_with_it_and_no_started_process() {
    let ground = Ground::new().await;
    let id = ground.sandbox("dev").await;
    let started =
        ground.post(&format!("/v1/sandboxes/{id}/processes"), json!({ "command": "exec sleep 86461" })).await;
    assert_eq!(started.status(), 201);
    let path = format!("/v1/sandboxes/{id}/exec");
    let running = ground.post(&path, json!({ "command": "sleep 86462" }));
    let runs = async |what: &str| {
        let live = value(ground.get(&format!("/v1/sandboxes/{id}/live")).await).await;
        live["processes"].as_array().unwrap().iter().any(|process| process["command"] == what)
    };
    let seen = async {
        while !runs("sleep 86462").await {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::select! {
        ended = running => panic!("it ended: {ended:?}"),
        () = seen => {}
    }
    while runs("sleep 86462").await {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(runs("sleep 86461").await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_that_sleeps_is_woken_by_use_and_every_answer_says_when_it_ends() {
    let ground = Ground::new().await;
    let spec = json!({ "spec": { "name": "dev", "lifecycle": { "ttl_ms": 3_600_000 } } });
    let made = value(ground.post("/v1/sandboxes", spec).await).await;
    assert!(made["expires_at"].as_str().unwrap().ends_with('Z'), "{made}");
    assert_eq!(ground.post("/v1/sandboxes/dev/sleep", json!({})).await.status(), 204);
    let asleep = value(ground.get("/v1/sandboxes/dev").await).await;
    assert_eq!(asleep["status"], "sleeping");
    let ran = ground.post("/v1/sandboxes/dev/exec", json!({ "command": "echo up" })).await;
    assert_eq!(value(ran).await["stdout"], "up\n");
    let awake = value(ground.get("/v1/sandboxes/dev").await).await;
    assert_eq!((&awake["status"], &awake["expires_at"]), (&json!("running"), &made["expires_at"]));
    assert_ne!(awake["life"], made["life"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_more_is_kept_of_a_commands_output_than_the_server_keeps_of_anybodys() {
    let ground = Ground::limited(ServeLimits { max_output_bytes: 1000, ..ServeLimits::default() }).await;
    let spec = json!({ "name": "dev", "limits": { "max_output_bytes": 1_u64 << 40 } });
    assert_eq!(ground.post("/v1/sandboxes", json!({ "spec": spec })).await.status(), 201);
    for most in [json!(1_u64 << 50), serde_json::Value::Null] {
        let body = json!({ "command": "head -c 100000 /dev/zero", "max_output_bytes": most });
        let answer = value(ground.post("/v1/sandboxes/dev/exec", body).await).await;
        assert_eq!((&answer["stdout_bytes"], &answer["stdout_truncated"]), (&json!(100_000), &json!(true)));
        assert!(answer["stdout"].as_str().unwrap().len() < 2000);
    }
}
