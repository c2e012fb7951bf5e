//! Names of sandboxes: NAME, POOL/NAME or the id.

use eyot_server::api::ServeLimits;
use reqwest::Method;
use serde_json::json;

use crate::ground::{Ground, kind, value};

#[tokio::test(flavor = "multi_thread")]
async fn a_request_names_a_sandbox_by_its_name_its_pool_and_name_or_its_id() {
    let ground = Ground::new().await;
    let id = ground.sandbox("dev").await;
    for named in ["dev", "ours%2Fdev", &id] {
        let found = value(ground.get(&format!("/v1/sandboxes/{named}")).await).await;
        assert_eq!((&found["id"], &found["pool"]), (&json!(id), &json!("ours")), "{named}");
        let body = json!({ "command": "echo hi" });
        let ran = value(ground.post(&format!("/v1/sandboxes/{named}/exec"), body).await).await;
        assert_eq!(ran["stdout"], "hi\n", "{named}: {ran}");
        for tool in ["/v1/toolsets/pool/shell", "/tool/shell"] {
            let body = json!({ "sandbox": named.replace("%2F", "/"), "command": "hostname" });
            let called = value(ground.post(tool, body).await).await;
            assert!(called.to_string().contains("dev"), "{named}: {called}");
        }
    }
    let body = serde_json::to_vec(&json!({ "spec": { "name": "dev" } })).unwrap();
    ground.as_whom(&ground.theirs, Method::POST, "/v1/sandboxes").body(body).send().await.unwrap();
    // Another tenant's is not there, and a call of a tool makes none in its place.
    assert_eq!(kind(ground.get("/v1/sandboxes/theirs%2Fdev").await).await, "not_found");
    let body = json!({ "sandbox": "theirs/dev", "command": "true" });
    let refused = value(ground.post("/tool/shell", body).await).await;
    assert!(refused["error"].as_str().unwrap().contains("this pool, which is `ours`"), "{refused}");
    assert_eq!(value(ground.get("/v1/sandboxes").await).await["sandboxes"].as_array().unwrap().len(), 1);
    let two = ground.get("/v1/sandboxes/ours%2Fdev?pool=theirs").await;
    assert_eq!(kind(two).await, "invalid");
    let moved = json!({ "from": "ours/dev", "to": id, "from_path": "/workspace/f", "to_path": "g" });
    ground.post("/v1/sandboxes/dev/exec", json!({ "command": "echo hi > /workspace/f" })).await;
    assert_eq!(value(ground.post("/v1/pools/ours/transfer", moved).await).await["files"], 1);
    let gone = ground.request(Method::DELETE, "/v1/sandboxes/ours%2Fdev").send().await.unwrap();
    assert_eq!(gone.status(), 204);
}

#[tokio::test(flavor = "multi_thread")]
async fn events_are_those_of_one_sandbox_when_the_query_names_it() {
    let ground = Ground::limited(ServeLimits::default()).await;
    let id = ground.sandbox("dev").await;
    ground.sandbox("web").await;
    let events = async |query: &str| ground.get(&format!("/v1/events?{query}")).await.text().await.unwrap();
    for named in ["dev".to_owned(), "ours/dev".to_owned(), id] {
        let told = events(&format!("sandbox={named}")).await;
        assert!(told.contains("\"sandbox\":\"dev\"") && !told.contains("\"web\""), "{named}: {told}");
    }
    assert!(!events("sandbox=other").await.contains("data:"));
    assert!(events("sandbox=ours/dev&pool=ours").await.contains("data:"));
    for (query, expected) in [
        ("sandbox=theirs/dev", "not_found"),
        ("sandbox=theirs/dev&pool=ours", "invalid"),
        ("sandbox=A", "invalid"),
    ] {
        assert_eq!(kind(ground.get(&format!("/v1/events?{query}")).await).await, expected, "{query}");
    }
}
