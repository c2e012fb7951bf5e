//! Tools over HTTP.

use reqwest::Method;
use serde_json::json;

use crate::ground::{Ground, kind, value};

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_is_declared_and_called_and_its_failure_is_an_answer() {
    let ground = Ground::new().await;
    let declared = value(ground.get("/v1/toolsets/pool?format=anthropic").await).await;
    assert!(declared.as_array().unwrap().iter().any(|tool| tool["name"] == "shell"), "{declared}");
    let body = json!({ "command": "echo from $(hostname)" });
    let called = value(ground.post("/v1/toolsets/pool/shell", body).await).await;
    assert!(
        called["is_error"] == false && called["content"][0].as_str().unwrap().contains("from "),
        "{called}"
    );
    let wrong = value(ground.post("/v1/toolsets/pool/shell", json!({})).await).await;
    assert_eq!(wrong["is_error"], true);
    assert_eq!(kind(ground.post("/v1/toolsets/nope/shell", json!({})).await).await, "not_found");
    assert_eq!(kind(ground.post("/v1/toolsets/pool/nope", json!({})).await).await, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_seeds_own_door_is_the_toolset_pool_in_the_keys_pool() {
    let ground = Ground::new().await;
    let body = json!({ "sandbox": "builder", "command": "pwd" });
    let called = value(ground.post("/tool/shell", body.clone()).await).await;
    assert_eq!((&called["stdout"], &called["exit_code"]), (&json!("/home/user\n"), &json!(0)), "{called}");
    let wrote = value(ground.post("/tool/write_file", json!({ "path": "a", "content": "hi" })).await).await;
    assert_eq!(wrote, json!({ "ok": true, "size": 2 }));
    let failed = value(ground.post("/tool/read_file", json!({ "path": "absent" })).await).await;
    assert!(failed["error"].as_str().unwrap().contains("absent"), "{failed}");
    let listed = value(ground.get("/v1/sandboxes").await).await;
    let names: Vec<_> = listed["sandboxes"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["builder", "default"]);
    let elsewhere = ground
        .request(Method::POST, "/tool/shell")
        .header("eyot-pool", "theirs")
        .body(serde_json::to_vec(&body).unwrap());
    assert_eq!(kind(elsewhere.send().await.unwrap()).await, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_happened_in_a_keys_pools_is_told_in_order_and_nothing_of_others() {
    let ground = Ground::new().await;
    ground.sandbox("dev").await;
    let body = serde_json::to_vec(&json!({ "spec": { "name": "hidden" } })).unwrap();
    ground.as_whom(&ground.theirs, Method::POST, "/v1/sandboxes").body(body).send().await.unwrap();
    ground.post("/v1/sandboxes/dev/exec", json!({ "command": "true" })).await;
    let told = ground.get("/v1/events").await.text().await.unwrap();
    assert!(told.contains("\"kind\":\"created\"") && told.contains("\"sandbox\":\"dev\""), "{told}");
    assert!(!told.contains("hidden") && !told.contains("theirs"), "{told}");
    let ids: Vec<u64> = told.lines().filter_map(|line| line.strip_prefix("id: ")?.parse().ok()).collect();
    assert!(ids.len() >= 2 && ids.is_sorted(), "{told}");
    let rest =
        ground.request(Method::GET, "/v1/events").header("last-event-id", ids[0]).send().await.unwrap();
    assert!(!rest.text().await.unwrap().contains("\"kind\":\"created\""));
    assert_eq!(kind(ground.get("/v1/events?pool=theirs").await).await, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pools_sandbox_is_made_once_and_nobody_elses() {
    let ground = Ground::new().await;
    let put = async |path: &str, body: serde_json::Value| {
        let body = serde_json::to_vec(&body).unwrap();
        ground.request(Method::PUT, path).body(body).send().await.unwrap()
    };
    let service = json!({ "services": [{ "command": "exec sleep 1000" }] });
    let made = value(put("/v1/pools/ours/sandboxes/web", service).await).await;
    let expected = json!({ "sandbox": "web", "created": true, "image": "host", "differs": [] });
    assert_eq!(made, expected);
    let again = value(put("/v1/pools/ours/sandboxes/web", json!({ "image": "other" })).await).await;
    assert_eq!((&again["created"], &again["differs"]), (&json!(false), &json!(["image"])));
    for (path, body, wanted) in [
        ("/v1/pools/ours/sandboxes/host", json!({ "image": "/etc" }), "permission"),
        ("/v1/pools/ours/sandboxes/No%20Name", json!({}), "invalid"),
        ("/v1/pools/ours/sandboxes/web", json!({ "imag": "x" }), "invalid"),
        ("/v1/pools/theirs/sandboxes/web", json!({}), "not_found"),
    ] {
        assert_eq!(kind(put(path, body).await).await, wanted, "{path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pool_is_listed_moved_between_and_closed() {
    let ground = Ground::new().await;
    ground.post("/tool/shell", json!({ "sandbox": "a", "command": "echo moved > f" })).await;
    let moved = json!({ "from": "a", "to": "b", "from_path": "f", "to_path": "g" });
    assert_eq!(
        value(ground.post("/v1/pools/ours/transfer", moved).await).await,
        json!({ "files": 1, "bytes": 6 })
    );
    let pool = value(ground.get("/v1/pools/ours").await).await;
    let names: Vec<_> = pool["sandboxes"].as_array().unwrap().iter().map(|one| one["name"].clone()).collect();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(value(ground.get("/v1/pools").await).await, json!({ "pools": ["ours"] }));
    assert_eq!(kind(ground.get("/v1/pools/theirs").await).await, "not_found");
    assert_eq!(ground.request(Method::DELETE, "/v1/pools/ours").send().await.unwrap().status(), 204);
    assert_eq!(value(ground.get("/v1/sandboxes").await).await["sandboxes"], json!([]));
}
