//! The lists of the admin routes.

use serde_json::{Value, json};

use crate::ground::Ground;

/// Reads all pages of a list.
async fn pages(ground: &Ground, path: &str) -> Vec<Vec<Value>> {
    let (mut pages, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = ground.json(&format!("{path}&cursor={cursor}")).await;
        pages.push(page["items"].as_array().unwrap().clone());
        match page["nextCursor"].as_str() {
            Some(next) => cursor = next.to_owned(),
            None => return pages,
        }
    }
}

#[tokio::test]
async fn agents_are_listed_with_their_triggers() {
    let ground = Ground::new().await;
    let list = ground.json("/admin/agents").await;
    let items = list["items"].as_array().unwrap();
    assert!(items.contains(&json!({"name": "echo", "triggers": {"webhook": true}})));
    assert!(items.contains(&json!({"name": "hidden", "triggers": {}})));
    assert_eq!(list["nextCursor"], Value::Null);
}

#[tokio::test]
async fn instances_are_listed_by_name_a_page_at_a_time() {
    let ground = Ground::new().await;
    for instance in ["c", "a", "b", "a", "%2F"] {
        ground.invoke(&format!("/agents/echo/{instance}"), json!({}), |request| request).await;
    }
    ground.invoke("/agents/nothing/z", json!({}), |request| request).await;
    let pages = pages(&ground, "/admin/agents/echo/instances?limit=3").await;
    let ids = pages.iter().map(|page| page.iter().map(|item| item["instanceId"].as_str().unwrap()).collect());
    assert_eq!(ids.collect::<Vec<Vec<_>>>(), [vec!["/", "a", "b"], vec!["c"]]);
    assert_eq!(pages[1][0], json!({"agentName": "echo", "instanceId": "c"}));
    let wrong = ground.json("/admin/agents/echo/instances?cursor=%F0%9F%98%80").await;
    assert_eq!(wrong["items"].as_array().unwrap().len(), 4, "a cursor that is none is passed over");
    assert_eq!(ground.get("/admin/agents/nobody/instances").await.status(), 404);
}

#[tokio::test]
async fn runs_are_listed_newest_first_a_page_at_a_time_and_by_state() {
    let ground = Ground::new().await;
    let mut ids = Vec::new();
    for instance in ["a", "b", "a"] {
        let answer = ground.invoke(&format!("/agents/echo/{instance}"), json!({}), |request| request).await;
        ids.insert(0, answer.headers()["x-flue-run-id"].to_str().unwrap().to_owned());
    }
    let failed = ground.leave("/agents/fails/a", json!({})).await;
    ground.stream(&failed, None).await;
    let listed = |pages: Vec<Vec<Value>>| -> Vec<String> {
        pages.concat().iter().map(|run| run["runId"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(listed(pages(&ground, "/admin/runs?limit=2&agentName=echo").await), ids);
    assert_eq!(listed(pages(&ground, "/admin/runs?status=errored").await), [failed]);
    let of_a = pages(&ground, "/admin/agents/echo/instances/a/runs?limit=1").await;
    assert_eq!(of_a.len(), 2);
    assert_eq!(listed(of_a), [ids[0].clone(), ids[2].clone()]);
    assert_eq!(pages(&ground, "/admin/runs?limit=1000&cursor=nonsense").await.len(), 1);
    assert_eq!(ground.get("/admin/runs?agentName=nobody").await.status(), 404);
    let run = &pages(&ground, "/admin/runs?limit=2&agentName=echo").await[0][0];
    let names: Vec<&String> = run.as_object().unwrap().keys().collect();
    let all = ["agentName", "durationMs", "endedAt", "instanceId", "isError", "runId", "startedAt", "status"];
    assert_eq!(names, all);
}

#[tokio::test]
async fn where_there_is_nothing_the_answer_is_plain_text() {
    let ground = Ground::new().await;
    let answer = ground.get("/admin/nothing").await;
    assert_eq!(answer.status(), 404);
    assert_eq!(answer.text().await.unwrap(), "404 Not Found");
}

#[tokio::test]
async fn both_routers_describe_themselves() {
    let ground = Ground::new().await;
    for (path, title, routes, base) in [
        ("/openapi.json", "Flue Public API", 4, "/"),
        ("/agents/openapi.json", "Flue Public API", 4, "/"),
        ("/admin/openapi.json", "Flue Admin API", 7, "/admin"),
    ] {
        let document = ground.json(path).await;
        assert_eq!(document["info"]["title"], title);
        assert_eq!(document["paths"].as_object().unwrap().len(), routes, "{path}");
        assert_eq!(document["servers"], json!([{"url": base}]), "{path}");
    }
}
