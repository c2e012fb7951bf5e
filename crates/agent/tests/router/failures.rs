//! Each type of error with its status, in the envelope.

use eyot_agent::RouterOptions;
use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::ground::Ground;

/// Returns the status and the type of a failure, and checks its envelope.
async fn failure(answer: Response) -> (u16, String, Value) {
    let status = answer.status().as_u16();
    assert_eq!(answer.headers()["content-type"], "application/json");
    let body: Value = answer.json().await.unwrap();
    let error = body["error"].clone();
    assert_eq!(body.as_object().unwrap().len(), 1);
    assert!(error["message"].is_string() && error["details"].is_string(), "{error}");
    (status, error["type"].as_str().unwrap().to_owned(), error)
}

async fn expect(answer: Response, status: u16, kind: &str) -> Value {
    let (got, told, error) = failure(answer).await;
    assert_eq!((got, told.as_str()), (status, kind));
    error
}

#[tokio::test]
async fn other_methods_are_refused_with_those_that_there_are() {
    let ground = Ground::new().await;
    for (method, path, allowed) in [
        (Method::GET, "/agents/echo/i", "POST"),
        (Method::PUT, "/agents/nobody/i", "POST"),
        (Method::POST, "/runs/run_1", "GET"),
        (Method::DELETE, "/runs/run_1/events", "GET"),
        (Method::PATCH, "/runs/run_1/stream", "GET"),
    ] {
        let answer = ground.request(method, path).send().await.unwrap();
        assert_eq!(answer.headers()["allow"], allowed, "{path}");
        expect(answer, 405, "method_not_allowed").await;
    }
}

#[tokio::test]
async fn an_agent_that_there_is_not_and_one_that_is_not_offered_are_not_found() {
    let ground = Ground::new().await;
    let error =
        expect(ground.invoke("/agents/nobody/i", json!({}), |r| r).await, 404, "agent_not_found").await;
    assert_eq!(error["dev"], Value::Null);
    let error =
        expect(ground.invoke("/agents/hidden/i", json!({}), |r| r).await, 404, "agent_not_webhook").await;
    assert_eq!(error["dev"], Value::Null);
}

#[tokio::test]
async fn a_local_server_starts_every_agent_and_helps_their_author() {
    let ground = Ground::with(RouterOptions { is_local: true, ..RouterOptions::default() }).await;
    let answer = ground.invoke("/agents/hidden/i", json!({}), |r| r).await;
    assert_eq!(answer.json::<Value>().await.unwrap()["result"], "hidden");
    let error =
        expect(ground.invoke("/agents/nobody/i", json!({}), |r| r).await, 404, "agent_not_found").await;
    assert!(error["dev"].as_str().unwrap().contains("echo, fails, hidden"), "{error}");
}

#[tokio::test]
async fn a_wrong_body_is_refused_under_the_id_of_a_run_that_never_was() {
    let ground = Ground::new().await;
    let post = || ground.request(Method::POST, "/agents/echo/i");
    for (request, status, kind) in [
        (post().header("content-type", "text/plain").body("hi"), 415, "unsupported_media_type"),
        (post().body("hi"), 415, "unsupported_media_type"),
        (post().header("content-type", "application/json").body("{bad"), 400, "invalid_json"),
    ] {
        let answer = request.send().await.unwrap();
        let id = answer.headers()["x-flue-run-id"].to_str().unwrap().to_owned();
        expect(answer, status, kind).await;
        expect(ground.get(&format!("/runs/{id}")).await, 404, "run_not_found").await;
    }
}

#[tokio::test]
async fn an_empty_name_is_refused() {
    let ground = Ground::new().await;
    for path in ["/agents/%20/i", "/agents/echo/%20%09"] {
        expect(ground.invoke(path, json!({}), |r| r).await, 400, "invalid_request").await;
    }
}

#[tokio::test]
async fn a_run_that_fails_tells_its_caller_nothing_of_why_and_not_its_id() {
    let ground = Ground::new().await;
    let answer = ground.invoke("/agents/fails/i", json!({}), |r| r).await;
    assert!(!answer.headers().contains_key("x-flue-run-id"));
    let error = expect(answer, 500, "internal_error").await;
    assert!(!error.to_string().contains("secret"), "{error}");
}

#[tokio::test]
async fn wrong_parameters_are_named_one_by_one() {
    let ground = Ground::new().await;
    let id = ground.leave("/agents/echo/i", json!({})).await;
    let path = format!("/runs/{id}/events?after=-1&limit=0&types=turn,nonsense");
    let error = expect(ground.get(&path).await, 400, "validation_failed").await;
    let named: Vec<&Value> =
        error["meta"]["issues"].as_array().unwrap().iter().map(|issue| &issue["path"][0]).collect();
    assert_eq!(named, ["after", "types", "limit"]);
    for path in ["/admin/runs?limit=1001", "/admin/runs?status=done", "/admin/agents/echo/instances?limit=x"]
    {
        expect(ground.get(path).await, 400, "validation_failed").await;
    }
}

#[tokio::test]
async fn a_run_that_there_is_not_is_not_found() {
    let ground = Ground::new().await;
    for path in ["/runs/run_x", "/runs/run_x/events", "/runs/run_x/stream", "/admin/runs/run_x"] {
        expect(ground.get(path).await, 404, "run_not_found").await;
    }
}

#[tokio::test]
async fn as_many_runs_of_a_pool_are_active_as_may_be() {
    let ground = Ground::new().await;
    let agents = ground.agents.clone().with_max_active_runs_per_pool(2);
    let begin = async |pool: &str| {
        let request = eyot_agent::RunRequest {
            agent: "steps".into(),
            instance_id: "i".into(),
            pool: Some(pool.into()),
            payload: json!({"lines": 1}),
            ..eyot_agent::RunRequest::default()
        };
        agents.begin(request).await
    };
    let first = begin("p").await.unwrap();
    let _second = begin("p").await.unwrap();
    assert_eq!(begin("p").await.unwrap_err().kind(), eyot::ErrorKind::Quota);
    let _other = begin("q").await.unwrap();
    first.abort("enough");
    ground.steps.add_permits(3);
    first.result().await.ok();
    begin("p").await.unwrap();
}
