//! The end of a sandbox while others use it, and a guest that was killed from outside.

use std::time::Duration;

use reqwest::{Method, Response, StatusCode};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::ground::{Ground, value};

async fn exec(ground: &Ground, command: &str) -> Response {
    ground.post("/v1/sandboxes/dev/exec", json!({ "command": command })).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_use_right_after_a_sleep_wakes_the_sandbox_every_time() {
    let ground = Ground::new().await;
    ground.sandbox("dev").await;
    for round in 0..20 {
        assert_eq!(ground.post("/v1/sandboxes/dev/sleep", Value::Null).await.status(), 204);
        let (ran, read) =
            tokio::join!(exec(&ground, "echo up"), ground.get("/v1/sandboxes/dev/files?path=/etc/passwd"));
        assert_eq!((ran.status(), read.status()), (StatusCode::OK, StatusCode::OK), "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_delete_that_races_with_uses_sleeps_wakes_and_other_deletes_is_no_internal_error() {
    let ground = Ground::new().await;
    for round in 0..25 {
        ground.sandbox("dev").await;
        let delete = || ground.request(Method::DELETE, "/v1/sandboxes/dev").send();
        let (ran, slept, used, first, woken, second) = tokio::join!(
            exec(&ground, "sleep 1000"),
            ground.post("/v1/sandboxes/dev/sleep", Value::Null),
            exec(&ground, "echo x > f"),
            delete(),
            ground.post("/v1/sandboxes/dev/wake", Value::Null),
            delete(),
        );
        for answer in [ran, slept, used, first.unwrap(), woken, second.unwrap()] {
            let (status, url) = (answer.status().as_u16(), answer.url().path().to_owned());
            let fine = matches!(status, 200 | 204 | 404 | 409 | 410 | 503);
            assert!(fine, "round {round}: {url} answered {status}: {}", value(answer).await);
        }
        // Whoever came last may have found it gone.
        let gone = delete().await.unwrap().status();
        assert!(matches!(gone.as_u16(), 204 | 404), "round {round}: {gone}");
        for folder in ["sandboxes", "trash", "names", "blocks"] {
            let left: Vec<_> = std::fs::read_dir(ground.state().join(folder)).unwrap().collect();
            assert!(left.is_empty(), "round {round}: {folder}/ holds {left:?}");
        }
    }
}

/// Kills the guest of the sandbox with this id, as a process on the host can.
fn kill_guest(ground: &Ground, id: &str) {
    let ready = std::fs::read_link(ground.state().join("sandboxes").join(id).join("ready")).unwrap();
    let pid = ready.to_str().unwrap().split(' ').next().unwrap().parse().unwrap();
    kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
}

async fn status(ground: &Ground) -> Value {
    value(ground.get("/v1/sandboxes/dev").await).await["status"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_whose_guest_was_killed_from_outside_is_dead_and_a_wake_or_a_use_brings_it_back() {
    let ground = Ground::new().await;
    let spec = json!({ "spec": { "name": "dev", "lifecycle": { "ttl_ms": 86_400_000 } } });
    let id = value(ground.post("/v1/sandboxes", spec).await).await["id"].as_str().unwrap().to_owned();
    assert_eq!(exec(&ground, "echo kept > note").await.status(), 200);
    for way_back in ["wake", "exec", "files"] {
        let running = exec(&ground, "touch begun; sleep 1000");
        let killed = async {
            while ground.get("/v1/sandboxes/dev/files?path=begun").await.status() != 200 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            kill_guest(&ground, &id);
        };
        let (ran, ()) = tokio::join!(running, killed);
        let problem = value(ran).await;
        assert_eq!((&problem["status"], &problem["kind"]), (&json!(503), &json!("unavailable")), "{problem}");
        assert_eq!((&problem["sleeping"], &problem["dead"]), (&json!(true), &json!(true)), "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains("its guest ended unexpectedly"), "{problem}");
        // Its connection breaks while its processes are still on their way out.
        while status(&ground).await != "dead" {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        match way_back {
            "wake" => assert_eq!(ground.post("/v1/sandboxes/dev/wake", Value::Null).await.status(), 200),
            "exec" => assert_eq!(exec(&ground, "rm begun").await.status(), 200),
            _ => assert_eq!(ground.get("/v1/sandboxes/dev/files?path=note").await.status(), 200),
        }
        assert_eq!(status(&ground).await, "running");
        assert_eq!(value(exec(&ground, "rm -f begun; cat note").await).await["stdout"], "kept\n");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_sandbox_is_listed_as_damaged_and_can_be_deleted() {
    let ground = Ground::new().await;
    let id = ground.sandbox("dev").await;
    let record = ground.state().join("sandboxes").join(&id).join("sandbox.json");
    std::fs::write(record, "").unwrap();
    assert_eq!(status(&ground).await, "damaged");
    let listed = value(ground.get("/v1/sandboxes").await).await;
    assert_eq!(
        (&listed["sandboxes"][0]["name"], &listed["sandboxes"][0]["status"]),
        (&json!("dev"), &json!("damaged"))
    );
    let wake = ground.post("/v1/sandboxes/dev/wake", Value::Null).await;
    assert_eq!(wake.status(), 409);
    assert!(value(wake).await["detail"].as_str().unwrap().contains("is damaged"));
    assert_eq!(ground.request(Method::DELETE, "/v1/sandboxes/dev").send().await.unwrap().status(), 204);
    assert!(!ground.state().join("sandboxes").join(&id).exists());
    ground.sandbox("dev").await;
}
