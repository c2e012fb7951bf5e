//! Changes to an existing sandbox, and creates of one sandbox by several clients.

use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::ground::{Ground, kind, value};

async fn patch(ground: &Ground, sandbox: &str, body: Value) -> Response {
    let body = serde_json::to_vec(&body).unwrap();
    ground.request(Method::PATCH, &format!("/v1/sandboxes/{sandbox}")).body(body).send().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn labels_deadlines_and_rules_are_changed_and_what_is_absent_stays() {
    let ground = Ground::new().await;
    let spec = json!({ "name": "dev", "labels": { "a": "1", "b": "2" }, "network": "egress", "lifecycle": { "idle_timeout_ms": 3_600_000 } });
    let made = value(ground.post("/v1/sandboxes", json!({ "spec": spec })).await).await;
    assert_eq!((&made["expires_at"], &made["status"]), (&Value::Null, &json!("running")));
    let changed = patch(&ground, "dev", json!({ "labels": { "a": null, "c": "3" } })).await;
    assert_eq!(value(changed).await["labels"], json!({ "b": "2", "c": "3" }));
    let changed = value(patch(&ground, "dev", json!({ "lifecycle": { "ttl_ms": 86_400_000 } })).await).await;
    assert!(changed["expires_at"].is_string(), "{changed}");
    assert_eq!((&changed["idle_timeout_ms"], &changed["labels"]["c"]), (&json!(3_600_000), &json!("3")));
    let changed = patch(
        &ground,
        "dev",
        json!({ "lifecycle": { "ttl_ms": null }, "egress": { "allow": ["example.com"] } }),
    )
    .await;
    assert_eq!(value(changed).await["expires_at"], Value::Null);
    let rules = value(ground.get("/v1/sandboxes/dev/egress").await).await;
    assert_eq!(rules["allow"], json!(["example.com"]));
    let found = value(ground.get("/v1/sandboxes?label=c=3").await).await;
    assert_eq!(found["sandboxes"][0]["name"], "dev");
    let opened = value(ground.request(Method::POST, "/v1/sandboxes/dev/open").send().await.unwrap()).await;
    assert_eq!(
        (&opened["labels"], &opened["idle_timeout_ms"]),
        (&json!({ "b": "2", "c": "3" }), &json!(3_600_000))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_that_is_wrong_changes_nothing() {
    let ground = Ground::new().await;
    ground.sandbox("dev").await;
    for wrong in [
        json!({ "labels": { "x": "1" }, "lifecycle": { "ttl_ms": 0 } }),
        json!({ "labels": { "x": "1" }, "lifecycle": { "ttl_ms": 1 } }),
        json!({ "labels": { "x": "1", "": "2" } }),
        json!({ "labels": { "x": "1" }, "egress": { "allow": ["example.com"] } }),
        json!({ "labels": { "x": "1" }, "name": "other" }),
        json!({ "labels": "x" }),
    ] {
        assert_eq!(kind(patch(&ground, "dev", wrong.clone()).await).await, "invalid", "{wrong}");
    }
    let left = value(ground.get("/v1/sandboxes/dev").await).await;
    assert_eq!((&left["labels"], &left["expires_at"]), (&json!({}), &Value::Null));
    assert_eq!(kind(patch(&ground, "none", json!({})).await).await, "not_found");
    let theirs = ground.as_whom(
        &ground.theirs,
        Method::PATCH,
        &format!("/v1/sandboxes/{}", left["id"].as_str().unwrap()),
    );
    assert_eq!(kind(theirs.body("{}").send().await.unwrap()).await, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn of_many_who_want_a_sandbox_at_once_one_makes_it_and_all_get_it() {
    let ground = Ground::new().await;
    let body = json!({ "spec": { "name": "shared" }, "get_or_create": true });
    let asked = (0..8).map(|_| ground.post("/v1/sandboxes", body.clone()));
    let answers = futures_util::future::join_all(asked).await;
    let made = answers.iter().filter(|answer| answer.status() == 201).count();
    assert_eq!((made, answers.iter().filter(|answer| answer.status() == 200).count()), (1, 7));
    let mut ids = Vec::new();
    for answer in answers {
        let answer = value(answer).await;
        assert_eq!(answer["status"], "running");
        ids.push(answer["id"].clone());
    }
    ids.dedup();
    assert_eq!(ids.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_changed_ends_no_preview() {
    let ground = Ground::new().await;
    ground.sandbox("dev").await;
    let made = value(ground.post("/v1/sandboxes/dev/ports/8000/preview", json!({})).await).await;
    patch(&ground, "dev", json!({ "labels": { "a": "1" } })).await;
    let path = format!("/preview/{}/8000/", made["sandbox"].as_str().unwrap());
    let seen = ground.bare(Method::GET, &path).header("eyot-preview-token", made["token"].as_str().unwrap());
    // Nothing listens there, which only those hear who are let in.
    assert_eq!(seen.send().await.unwrap().status(), 502);
}
