//! Sandboxes that sleep.

use eyot::Service;
use eyot_engine::PoolCreate;
use serde_json::json;

use crate::ground::{Ground, PORT, name, options, value};
use crate::server::PROGRAM;

#[tokio::test(flavor = "multi_thread")]
async fn n2_a_visit_wakes_a_sandbox_and_only_of_somebody_who_is_let_in() {
    let ground = Ground::new().await;
    let pool = ground.engine.pool(options(name("ours"))).unwrap();
    let command = format!("[ ! -f server.py ] || exec python3 server.py {PORT}");
    let service = Service { command, cwd: None, env: Default::default() };
    pool.create("dev", PoolCreate { services: vec![service], ..PoolCreate::default() }).await.unwrap();
    let sandbox = pool.get("dev").await.unwrap();
    sandbox.write("server.py", PROGRAM).await.unwrap();
    let id = sandbox.id().to_string();
    let preview = ground.preview("dev", PORT, json!({})).await;
    let status = async || {
        let told =
            ground.api(&ground.ours, reqwest::Method::GET, &format!("/v1/sandboxes/{id}"), &json!({})).await;
        value(told).await["status"].as_str().unwrap().to_owned()
    };
    for _ in 0..2 {
        assert_eq!(ground.post("/v1/sandboxes/dev/sleep", json!({})).await.status(), 204);
        assert_eq!(ground.get(&preview.host(), "/", &[]).await.status(), 401);
        assert_eq!(status().await, "sleeping");
        let seen = ground.get(&preview.host(), "/x", &[&preview.header()]).await;
        assert_eq!(seen.status(), 200, "{}", seen.text);
        assert_eq!(status().await, "running");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_woken_sandbox_without_services_says_why_nothing_listens() {
    let limits = eyot_server::api::PreviewLimits {
        after_wake: std::time::Duration::ZERO,
        ..eyot_server::api::PreviewLimits::default()
    };
    let options = eyot_server::api::ServeOptions { preview_limits: limits, ..Default::default() };
    let ground = Ground::with(options).await;
    let id = ground.serving("dev").await;
    let preview = ground.preview(&id, PORT, json!({})).await;
    assert_eq!(ground.post(&format!("/v1/sandboxes/{id}/sleep"), json!({})).await.status(), 204);
    let answer = ground.get(&preview.host(), "/", &[&preview.header()]).await;
    assert_eq!(answer.status(), 502);
    assert!(answer.body().contains("a wake starts nothing again but its services"), "{}", answer.text);
}
