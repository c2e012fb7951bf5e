//! Runs and their events.

use serde_json::{Value, json};

use crate::ground::Ground;

#[tokio::test]
async fn a_run_says_what_came_of_it_and_not_what_it_was_given() {
    let ground = Ground::new().await;
    let id = ground.leave("/agents/steps/i", json!({"lines": 1})).await;
    let run = ground.json(&format!("/runs/{id}")).await;
    let names: Vec<&String> = run.as_object().unwrap().keys().collect();
    assert_eq!(names, ["agentName", "instanceId", "runId", "startedAt", "status"]);
    ground.steps.add_permits(1);
    ground.stream(&id, None).await;
    let run = ground.json(&format!("/runs/{id}")).await;
    assert_eq!(
        (&run["status"], &run["isError"], &run["result"]),
        (&json!("completed"), &json!(false), &json!(1))
    );
    assert!(run["endedAt"].is_string() && run["durationMs"].is_u64() && run["payload"].is_null());

    let id = ground.leave("/agents/fails/i", json!({})).await;
    ground.stream(&id, None).await;
    let run = ground.json(&format!("/runs/{id}")).await;
    assert_eq!((&run["status"], &run["isError"]), (&json!("errored"), &json!(true)));
    assert_eq!(run["error"]["message"], "a secret of the inside");
}

#[tokio::test]
async fn events_are_read_behind_a_number_by_type_and_at_most_so_many() {
    let ground = Ground::new().await;
    ground.steps.add_permits(150);
    let id = ground.leave("/agents/steps/i", json!({"lines": 150})).await;
    ground.stream(&id, None).await;
    let numbers = async |query: &str| -> Vec<u64> {
        let list = ground.json(&format!("/runs/{id}/events{query}")).await;
        let events = list["events"].as_array().unwrap();
        events.iter().map(|event| event["eventIndex"].as_u64().unwrap()).collect()
    };
    assert_eq!(numbers("").await, (0..100).collect::<Vec<_>>());
    assert_eq!(numbers("?after=0&limit=2").await, [1, 2]);
    assert_eq!(numbers("?after=150").await, [151]);
    assert_eq!(numbers("?types=run_start,run_end").await, [0, 151]);
    assert_eq!(numbers("?types=log&limit=1&after=7").await, [8]);
    assert_eq!(numbers("?types=,&limit=1000").await.len(), 152);
    assert_eq!(numbers("?after=9999").await, Vec::<u64>::new());
}

#[tokio::test]
async fn a_caller_sees_the_runs_of_its_own_pools_only() {
    let ground = Ground::new().await;
    let ours = ground.run_as("ours", "/agents/echo/i").await;
    let theirs = ground.run_as("theirs", "/agents/echo/i").await;
    for path in ["", "/events"] {
        assert_eq!(ground.get_as("ours", &format!("/runs/{ours}{path}")).await.0, 200);
        let (status, other) = ground.get_as("ours", &format!("/runs/{theirs}{path}")).await;
        let (_, none) = ground.get_as("ours", &format!("/runs/run_none{path}")).await;
        assert_eq!(status, 404);
        let masked = |error: &Value, id: &str| error.to_string().replace(id, "ID");
        assert_eq!(masked(&other, &theirs), masked(&none, "run_none"));
    }
    let (_, list) = ground.get_as("ours", "/admin/runs").await;
    let ids: Vec<&str> =
        list["items"].as_array().unwrap().iter().map(|run| run["runId"].as_str().unwrap()).collect();
    assert_eq!(ids, [ours.as_str()]);
    let (_, both) = ground.get_as("ours,theirs", "/admin/runs").await;
    assert_eq!(both["items"].as_array().unwrap().len(), 2);
}
