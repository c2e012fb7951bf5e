//! Transitions of sandboxes: one at a time, to their end, and again if they fail.

use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::{Value, json};

use crate::ground::{Ground, value};

fn template() -> Value {
    json!({ "templateID": "base" })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_that_fails_leaves_the_sandbox_to_be_killed_again() {
    let ground = Ground::new().await;
    let made = ground.create(template()).await;
    ground.lives.failures.store(1, std::sync::atomic::Ordering::Relaxed);
    let path = format!("/sandboxes/{}", made.id);
    assert!(ground.send(Method::DELETE, &path, &Value::Null).await.status().is_server_error());
    assert!(ground.lists(&made.id).await);
    assert_eq!(ground.send(Method::DELETE, &path, &Value::Null).await.status(), 204);
    assert!(!ground.lists(&made.id).await);
    assert_eq!(ground.send(Method::DELETE, &path, &Value::Null).await.status(), 404);
    assert!(eyot::SandboxProvider::list(&*ground.lives).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kill_waits_for_a_pause_that_is_under_way() {
    let ground = Ground::new().await;
    let made = ground.create(template()).await;
    let path = format!("/sandboxes/{}", made.id);
    ground.lives.sleeps.close();
    let pause = tokio::spawn(ground.request(Method::POST, &format!("{path}/pause"), &json!({})).send());
    ground.lives.sleeps.arrived.acquire().await.unwrap().forget();
    let mut kill = tokio::spawn(ground.request(Method::DELETE, &path, &Value::Null).send());
    let early = tokio::time::timeout(Duration::from_millis(500), &mut kill).await;
    assert!(early.is_err(), "it did not wait: {early:?}");
    ground.lives.sleeps.release();
    assert_eq!(pause.await.unwrap().unwrap().status(), 204);
    assert_eq!(kill.await.unwrap().unwrap().status(), 204);
    assert_eq!(ground.log(), ["slept", "destroy"]);
    assert!(eyot::SandboxProvider::list(&*ground.lives).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pause_whose_client_has_gone_comes_to_its_end() {
    let ground = Ground::new().await;
    let made = ground.create(template()).await;
    let path = format!("/sandboxes/{}", made.id);
    ground.lives.sleeps.close();
    let pause = tokio::spawn(ground.request(Method::POST, &format!("{path}/pause"), &json!({})).send());
    ground.lives.sleeps.arrived.acquire().await.unwrap().forget();
    pause.abort();
    assert!(pause.await.unwrap_err().is_cancelled());
    // The server hears of it before the pause goes on.
    tokio::time::sleep(Duration::from_millis(300)).await;
    ground.lives.sleeps.release();
    let connected = ground.send(Method::POST, &format!("{path}/connect"), &json!({ "timeout": 60 })).await;
    assert_eq!((connected.status().as_u16(), ground.log()), (201, vec!["slept"]));
    assert_eq!(ground.send(Method::DELETE, &path, &Value::Null).await.status(), 204);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sandbox_whose_kill_fails_at_its_end_is_killed_later() {
    let ground = Ground::new().await;
    ground.lives.failures.store(1, std::sync::atomic::Ordering::Relaxed);
    let made = ground.create(json!({ "templateID": "base", "timeout": 1 })).await;
    let begun = Instant::now();
    while ground.lists(&made.id).await {
        assert!(begun.elapsed() < Duration::from_secs(30), "it is still there");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(ground.log(), ["destroy", "destroy"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_creates_with_one_key_at_once_make_one_sandbox() {
    let ground = Ground::new().await;
    ground.lives.creates.close();
    let create = |key: &str| {
        let request = ground.request(Method::POST, "/v2/sandboxes", &template());
        tokio::spawn(request.header("Idempotency-Key", key).send())
    };
    let (one, other) = (create("k1"), create("k1"));
    ground.lives.creates.arrived.acquire().await.unwrap().forget();
    // One with another key waits for neither.
    let third = create("k2");
    ground.lives.creates.arrived.acquire().await.unwrap().forget();
    for _ in 0..3 {
        ground.lives.creates.release();
    }
    let mut ids = Vec::new();
    for made in [one, other, third] {
        let made = made.await.unwrap().unwrap();
        assert_eq!(made.status(), 201);
        ids.push(value(made).await["sandboxID"].as_str().unwrap().to_owned());
    }
    assert!(ids[0] == ids[1] && ids[0] != ids[2], "{ids:?}");
    assert_eq!(eyot::SandboxProvider::list(&*ground.lives).await.unwrap().len(), 2);
    for id in &ids[1..] {
        let killed = ground.send(Method::DELETE, &format!("/sandboxes/{id}"), &Value::Null).await;
        assert_eq!(killed.status(), 204);
    }
}
