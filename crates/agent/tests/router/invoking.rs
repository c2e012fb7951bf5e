//! The three ways to start an agent.

use serde_json::{Value, json};

use crate::ground::{Ground, frames};

#[tokio::test]
async fn a_caller_that_waits_gets_the_result_and_the_id_of_the_run() {
    let ground = Ground::new().await;
    let answer = ground.invoke("/agents/echo/i", json!({"n": 1}), |request| request).await;
    let id = answer.headers()["x-flue-run-id"].to_str().unwrap().to_owned();
    assert_eq!(answer.status(), 200);
    let body: Value = answer.json().await.unwrap();
    assert_eq!(body, json!({"result": {"n": 1}, "_meta": {"runId": id}}));
    let run = ground.json(&format!("/runs/{id}")).await;
    assert_eq!((&run["status"], &run["isError"]), (&json!("completed"), &json!(false)));
    let nothing = ground.invoke("/agents/nothing/i", json!({}), |request| request).await;
    assert_eq!(nothing.json::<Value>().await.unwrap()["result"], Value::Null);
}

#[tokio::test]
async fn a_webhook_is_answered_at_once_even_if_it_takes_events() {
    let ground = Ground::new().await;
    let with = |request: reqwest::RequestBuilder| {
        request.header("x-webhook", "true").header("accept", "text/event-stream")
    };
    let answer = ground.invoke("/agents/steps/i", json!({"lines": 1}), with).await;
    let id = answer.headers()["x-flue-run-id"].to_str().unwrap().to_owned();
    assert_eq!(answer.status(), 202);
    assert_eq!(answer.json::<Value>().await.unwrap(), json!({"status": "accepted", "runId": id}));
    assert_eq!(ground.json(&format!("/runs/{id}")).await["status"], "active");
    ground.steps.add_permits(1);
    assert_eq!(frames(&ground.stream(&id, None).await).last().unwrap().0, "run_end");
}

#[tokio::test]
async fn a_caller_that_takes_events_gets_them_with_one_idle_before_the_end() {
    let ground = Ground::new().await;
    let with = |request: reqwest::RequestBuilder| request.header("accept", "text/event-stream");
    let answer = ground.invoke("/agents/echo/i", json!({}), with).await;
    assert_eq!(answer.headers()["content-type"], "text/event-stream");
    assert_eq!(answer.headers()["cache-control"], "no-cache");
    assert!(answer.headers()["x-flue-run-id"].to_str().unwrap().starts_with("run_"));
    let told = frames(&answer.text().await.unwrap());
    let kinds: Vec<&str> = told.iter().map(|(kind, ..)| kind.as_str()).collect();
    assert_eq!(kinds, ["run_start", "idle", "run_end"]);
    assert!(
        told.iter()
            .enumerate()
            .all(|(number, (_, id, data))| { *id == number as u64 && data["eventIndex"] == number })
    );

    // A session has told it already.
    let answer = ground.invoke("/agents/talks/i", json!({}), with).await;
    let told = frames(&answer.text().await.unwrap());
    assert_eq!(told.iter().filter(|(kind, ..)| kind == "idle").count(), 1);
    // Those who wait hear of no idle that the run does not tell itself.
    let id = ground.leave("/agents/echo/i", json!({})).await;
    assert!(frames(&ground.stream(&id, None).await).iter().all(|(kind, ..)| kind != "idle"));
}

#[tokio::test]
async fn a_run_that_fails_while_it_is_followed_ends_with_its_failure() {
    let ground = Ground::new().await;
    let with = |request: reqwest::RequestBuilder| request.header("accept", "text/event-stream");
    let answer = ground.invoke("/agents/fails/i", json!({}), with).await;
    assert_eq!(answer.status(), 200);
    let (kind, _, end) = frames(&answer.text().await.unwrap()).pop().unwrap();
    assert_eq!((kind.as_str(), &end["isError"], &end["result"]), ("run_end", &json!(true), &Value::Null));
    assert_eq!(end["error"], json!({"name": "Error", "message": "a secret of the inside"}));
}

#[tokio::test]
async fn a_run_goes_on_when_its_caller_leaves() {
    let ground = Ground::new().await;
    let with = |request: reqwest::RequestBuilder| request.header("accept", "text/event-stream");
    let mut answer = ground.invoke("/agents/steps/i", json!({"lines": 1}), with).await;
    let id = answer.headers()["x-flue-run-id"].to_str().unwrap().to_owned();
    assert!(answer.chunk().await.unwrap().is_some());
    drop(answer);
    ground.steps.add_permits(1);
    let told = frames(&ground.stream(&id, None).await);
    assert_eq!(told.last().unwrap().2["result"], 1);
}

#[tokio::test]
async fn a_body_that_is_nothing_is_an_empty_object() {
    let ground = Ground::new().await;
    let result = async |request: reqwest::RequestBuilder| {
        request.send().await.unwrap().json::<Value>().await.unwrap()["result"].clone()
    };
    let post = || ground.request(reqwest::Method::POST, "/agents/echo/i");
    assert_eq!(result(post()).await, json!({}));
    assert_eq!(
        result(post().header("content-type", "text/plain").header("content-length", "0")).await,
        json!({})
    );
    assert_eq!(result(post().header("content-type", "application/json").body("  ")).await, json!({}));
    let json = post().header("content-type", "Application/JSON; charset=utf-8").body("[1]");
    assert_eq!(result(json).await, json!([1]));
}
