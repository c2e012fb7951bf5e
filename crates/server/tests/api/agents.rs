//! Agents behind keys: who starts what, who sees what, and tools that a run's caller answers itself.

use std::sync::Arc;

use eyot_agent::{
    AgentContext, AgentResult, AgentSandbox, Agents, HarnessOptions, MemoryStore, PromptOptions,
    ScriptedModel, ScriptedTurn,
};
use eyot_server::api::ServeLimits;
use reqwest::{Method, Response};
use serde_json::{Value, json};

use crate::ground::{Ground, kind, value};

/// The agents of the tests' server.
pub fn agents() -> Agents {
    let agents = Agents::new(Arc::new(MemoryStore::default())).with_max_active_runs_per_pool(2);
    agents.register_webhook("echo", async |context: AgentContext| Ok(context.payload().clone())).unwrap();
    agents.register("hidden", async |_| Ok(Value::Null)).unwrap();
    agents.register_webhook("asks", ask).unwrap();
    // The agent of the document's examples.
    agents.register_webhook("reviewer", ask).unwrap();
    agents
}

/// Asks its caller for the weather, and returns what the model was told and how many messages the model knew.
async fn ask(context: AgentContext) -> AgentResult<Value> {
    let call = ScriptedTurn::call("call_1", "weather", json!({"city": "Rome"}));
    let model = ScriptedModel::new([call, ScriptedTurn::text("Done.")]);
    let options = HarnessOptions {
        model: Some(Arc::new(model.clone())),
        sandbox: AgentSandbox::None,
        ..HarnessOptions::default()
    };
    let session = context.init(options).await?.session().await?;
    session.prompt("go", PromptOptions::default()).await?;
    Ok(json!({"messages": model.requests()[0].messages.len()}))
}

fn weather() -> Value {
    json!({"name": "weather", "description": "Says the weather.", "parameters": {"type": "object"}})
}

async fn begin(ground: &Ground, key: &str, path: &str, body: Value) -> Response {
    let body = serde_json::to_vec(&body).unwrap();
    let request = ground.as_whom(key, Method::POST, path).header("content-type", "application/json");
    request.body(body).send().await.unwrap()
}

/// Begins a run of the instance `i` that asks its caller, and returns its id.
async fn asking(ground: &Ground, key: &str) -> String {
    asking_of(ground, key, "i").await
}

async fn asking_of(ground: &Ground, key: &str, instance: &str) -> String {
    let path = format!("/v1/agents/asks/{instance}/runs");
    let answer = begin(ground, key, &path, json!({"tools": [weather()]})).await;
    assert_eq!(answer.status(), 202);
    value(answer).await["id"].as_str().unwrap().to_owned()
}

/// The frames of a stream up to and with the first of this type.
async fn until(stream: &mut Response, kind: &str) -> Vec<(String, String, Value)> {
    let mut text = String::new();
    let mut told = Vec::new();
    loop {
        while let Some((frame, rest)) = text.split_once("\n\n") {
            let field = |name: &str| {
                let line = frame.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
                line.unwrap_or_default().to_owned()
            };
            let data = serde_json::from_str(&field("data")).unwrap_or_default();
            let frame = (field("event"), field("id"), data);
            let is_it = frame.0 == kind;
            told.push(frame);
            text = rest.to_owned();
            if is_it {
                return told;
            }
        }
        let piece = stream.chunk().await.unwrap().expect("the stream goes on");
        text.push_str(std::str::from_utf8(&piece).unwrap());
    }
}

async fn stream(ground: &Ground, key: &str, run: &str, last: Option<&str>) -> Response {
    let request = ground.as_whom(key, Method::GET, &format!("/v1/runs/{run}/stream"));
    let request = match last {
        Some(last) => request.header("last-event-id", last),
        None => request,
    };
    request.send().await.unwrap()
}

/// Begins a run whose call `call_1` waits for its caller, and returns its id.
pub async fn waiting_run(ground: &Ground, key: &str) -> String {
    let run = asking(ground, key).await;
    until(&mut stream(ground, key, &run, None).await, "tool_request").await;
    run
}

/// Answers the call of a run that asks, once it waits, and waits for the end of the run.
async fn finish(ground: &Ground, key: &str, run: &str) -> Value {
    let mut following = stream(ground, key, run, None).await;
    until(&mut following, "tool_request").await;
    let path = format!("/v1/runs/{run}/tool_calls/call_1");
    assert_eq!(begin(ground, key, &path, json!({"content": "It rains."})).await.status(), 204);
    until(&mut following, "run_end").await.pop().unwrap().2
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_asks_its_caller_over_the_stream_and_a_new_stream_asks_again() {
    let ground = Ground::new().await;
    let run = asking(&ground, &ground.ours).await;
    let mut following = stream(&ground, &ground.ours, &run, None).await;
    let told = until(&mut following, "tool_request").await;
    let (_, id, call) = told.last().unwrap();
    assert_eq!((id.as_str(), &call["id"], &call["tool"]), ("", &json!("call_1"), &json!("weather")));
    assert_eq!(call["arguments"], json!({"city": "Rome"}));
    drop(following);
    let waiting = value(ground.get(&format!("/v1/runs/{run}/tool_calls")).await).await;
    assert_eq!(waiting["tool_calls"][0], *call);

    let mut again = stream(&ground, &ground.ours, &run, Some("1")).await;
    let told = until(&mut again, "tool_request").await;
    assert!(told.iter().all(|(kind, id, _)| kind == "tool_request" || id.parse::<u64>().unwrap() > 1));
    let path = format!("/v1/runs/{run}/tool_calls/call_1");
    for (body, status) in [
        (json!({}), 400),
        (json!({"content": 1}), 400),
        (json!({"content": "It rains."}), 204),
        (json!({"content": "It snows."}), 404),
    ] {
        assert_eq!(ground.post(&path, body).await.status(), status);
    }
    let rest = until(&mut again, "run_end").await;
    let answer = rest.iter().find(|(kind, ..)| kind == "tool_call").unwrap();
    assert_eq!(answer.2["result"]["content"][0]["text"], "It rains.");
    assert_eq!(again.chunk().await.unwrap(), None, "the stream ends behind the end");
    let run = value(ground.get(&format!("/v1/runs/{run}")).await).await;
    assert_eq!(
        (&run["status"], &run["pool"], &run["interrupted"]),
        (&json!("completed"), &json!("ours"), &json!(false))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn n4_another_tenants_run_is_not_there_and_says_the_same_as_none() {
    let ground = Ground::new().await;
    let run = asking(&ground, &ground.ours).await;
    let ask = async |method: &Method, path: &str, id: &str| {
        let path = path.replace("RUN", id);
        let answer = begin_as(&ground, method.clone(), &path).await;
        let status = answer.status().as_u16();
        (status, answer.text().await.unwrap().replace(id, "RUN"))
    };
    for (method, path) in [
        (Method::GET, "/runs/RUN"),
        (Method::GET, "/runs/RUN/events"),
        (Method::GET, "/runs/RUN/stream"),
        (Method::GET, "/admin/runs/RUN"),
        (Method::GET, "/admin/runs/RUN/events"),
        (Method::GET, "/admin/runs/RUN/stream"),
        (Method::GET, "/v1/runs/RUN"),
        (Method::GET, "/v1/runs/RUN/events"),
        (Method::GET, "/v1/runs/RUN/stream"),
        (Method::GET, "/v1/runs/RUN/tool_calls"),
        (Method::POST, "/v1/runs/RUN/abort"),
        (Method::POST, "/v1/runs/RUN/resume"),
        (Method::POST, "/v1/runs/RUN/tool_calls/call_1"),
    ] {
        let (theirs, none) = (ask(&method, path, &run).await, ask(&method, path, "run_none").await);
        assert_eq!((theirs.0, &theirs), (404, &none), "{method} {path}");
    }
    for list in
        ["/v1/runs", "/admin/runs", "/admin/agents/asks/instances", "/admin/agents/asks/instances/i/runs"]
    {
        let answer = ground.as_whom(&ground.theirs, Method::GET, list).send().await.unwrap();
        let list = value(answer).await;
        let items = list.get("runs").or_else(|| list.get("items")).unwrap();
        assert_eq!(items, &json!([]));
    }
    for path in ["/v1/runs?pool=ours", "/agents/echo/i?pool=ours"] {
        let method = if path.starts_with("/v1") { Method::GET } else { Method::POST };
        let refused = ground.as_whom(&ground.theirs, method, path).send().await.unwrap();
        assert_eq!(refused.status(), 404, "{path}");
    }
    assert_eq!(value(ground.get("/v1/runs").await).await["runs"].as_array().unwrap().len(), 1);
}

/// Sends a request of the other tenant, with a body where one is needed.
async fn begin_as(ground: &Ground, method: Method, path: &str) -> Response {
    let request = ground.as_whom(&ground.theirs, method.clone(), path);
    let request = match method {
        Method::GET => request,
        _ => request.header("content-type", "application/json").body(
            r#"{"content": "no"}"#
                .replace("content", if path.ends_with("abort") { "reason" } else { "content" }),
        ),
    };
    request.send().await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn n4_an_instance_of_one_pool_shares_no_conversation_with_that_of_another() {
    let ground = Ground::new().await;
    let messages = async |key: &str| {
        let run = asking(&ground, key).await;
        let end = finish(&ground, key, &run).await;
        end["result"]["messages"].as_u64().unwrap()
    };
    let first = messages(&ground.ours).await;
    assert_eq!(messages(&ground.theirs).await, first);
    assert!(messages(&ground.ours).await > first, "our instance goes on with its conversation");
}

#[tokio::test(flavor = "multi_thread")]
async fn n4_agents_need_a_key_and_the_refusal_has_flue_s_envelope_on_flue_s_routes() {
    let ground = Ground::new().await;
    for (method, path) in [
        (Method::POST, "/agents/echo/i"),
        (Method::GET, "/runs/run_1"),
        (Method::GET, "/admin/runs"),
        (Method::POST, "/agents/echo/openapi.json"),
    ] {
        let answer = ground.bare(method, path).send().await.unwrap();
        assert_eq!(
            (answer.status().as_u16(), &answer.headers()["content-type"]),
            (401, &"application/json".parse().unwrap())
        );
        assert!(answer.headers().contains_key("www-authenticate"));
        let error = value(answer).await["error"].clone();
        assert_eq!(error["type"], "permission");
        assert!(error["message"].is_string() && error["details"].is_string());
    }
    let answer = ground.bare(Method::GET, "/v1/runs").send().await.unwrap();
    assert_eq!(answer.status(), 401);
    kind(answer).await;
    for document in ["/openapi.json", "/agents/openapi.json", "/admin/openapi.json", "/v1/openapi.json"] {
        let answer = ground.bare(Method::GET, document).send().await.unwrap();
        assert_eq!(answer.status(), 200, "{document} has nothing of anybody");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_starts_the_agents_that_are_offered_and_no_others() {
    let ground = Ground::new().await;
    let listed = value(ground.get("/v1/agents").await).await;
    let names: Vec<&str> =
        listed["agents"].as_array().unwrap().iter().map(|agent| agent["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["asks", "echo", "hidden", "reviewer"]);
    let refused = ground.post("/v1/agents/hidden/i/runs", json!({})).await;
    assert_eq!((refused.status().as_u16(), kind(refused).await.as_str()), (403, "permission"));
    let refused = ground.post("/v1/agents/nobody/i/runs", json!({})).await;
    assert_eq!((refused.status().as_u16(), kind(refused).await.as_str()), (404, "not_found"));
    assert_eq!(
        value(ground.post("/agents/hidden/i", json!({})).await).await["error"]["type"],
        "agent_not_webhook"
    );
    let answer = ground.post("/agents/echo/i", json!({"n": 1})).await;
    assert_eq!(value(answer).await["result"], json!({"n": 1}));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_path_of_flue_s_without_a_route_is_refused_in_the_envelope() {
    let ground = Ground::new().await;
    for path in ["/agents", "/agents/echo", "/agents/echo/i/j", "/runs", "/runs/run_1/nothing"] {
        let answer = ground.get(path).await;
        assert_eq!(answer.status(), 404, "{path}");
        assert_eq!(value(answer).await["error"]["type"], "route_not_found", "{path}");
    }
    assert_eq!(kind(ground.get("/nothing").await).await, "not_found");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_aborted_and_one_that_has_ended_is_not_gone_on_with() {
    let ground = Ground::new().await;
    let run = asking(&ground, &ground.ours).await;
    let path = |what: &str| format!("/v1/runs/{run}/{what}");
    let refused = ground.post(&path("resume"), json!({})).await;
    assert_eq!((refused.status().as_u16(), kind(refused).await.as_str()), (409, "conflict"));
    assert_eq!(ground.post(&path("abort"), json!({"reason": "enough"})).await.status(), 204);
    let mut following = stream(&ground, &ground.ours, &run, None).await;
    let end = until(&mut following, "run_end").await.pop().unwrap().2;
    assert_eq!((&end["error"]["name"], &end["error"]["message"]), (&json!("AbortError"), &json!("enough")));
    assert_eq!(ground.post(&path("abort"), json!({})).await.status(), 204);
    let refused = ground.post(&path("resume"), json!({})).await;
    assert!(value(refused).await["detail"].as_str().unwrap().contains("has ended"));
    let run = value(ground.get(&format!("/v1/runs/{run}")).await).await;
    assert_eq!((&run["status"], &run["error"]["message"]), (&json!("errored"), &json!("enough")));
}

#[tokio::test(flavor = "multi_thread")]
async fn more_runs_of_a_pool_than_may_be_active_are_refused() {
    let ground = Ground::new().await;
    asking(&ground, &ground.ours).await;
    let second = asking_of(&ground, &ground.ours, "j").await;
    let refused = ground.post("/v1/agents/echo/i/runs", json!({})).await;
    assert_eq!((refused.status().as_u16(), kind(refused).await.as_str()), (429, "quota"));
    let refused = ground.post("/agents/echo/i", json!({})).await;
    assert_eq!(
        (refused.status().as_u16(), value(refused).await["error"]["type"].clone()),
        (429, json!("quota"))
    );
    let other = begin(&ground, &ground.theirs, "/agents/echo/i", json!({})).await;
    assert_eq!(other.status(), 200);
    ground.post(&format!("/v1/runs/{second}/abort"), json!({})).await;
    until(&mut stream(&ground, &ground.ours, &second, None).await, "run_end").await;
    while ground.post("/agents/echo/i", json!({})).await.status() != 200 {
        // Its place is given back a moment after its end was told.
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_requests_are_refused_with_the_field() {
    let ground = Ground::with_limits_of_json(64 << 10).await;
    let refused = async |answer: Response, field: &str| {
        let status = answer.status().as_u16();
        let problem = value(answer).await;
        assert_eq!((status, problem["field"].as_str()), (400, Some(field)), "{problem}");
    };
    for (body, field) in [
        (json!({"nonsense": 1}), "nonsense"),
        (json!({"tool_timeout_ms": 0}), "tool_timeout_ms"),
        (json!({"tools": [weather(), weather()]}), "tools"),
    ] {
        refused(ground.post("/v1/agents/echo/i/runs", body).await, field).await;
    }
    for (query, field) in [("limit=0", "limit"), ("limit=1001", "limit"), ("cursor=x", "cursor")] {
        refused(ground.get(&format!("/v1/runs?{query}")).await, field).await;
    }
    refused(ground.get("/v1/runs/run_1/events?types=nonsense").await, "types").await;
    let long = json!({"text": "x".repeat(64 << 10)});
    let answer = ground.post("/agents/echo/i", long).await;
    assert_eq!(
        (answer.status().as_u16(), value(answer).await["error"]["type"].clone()),
        (413, json!("payload_too_large"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_listed_a_page_at_a_time_with_filters_and_their_events_by_type() {
    let ground = Ground::new().await;
    for instance in ["a", "b", "a"] {
        ground.post(&format!("/agents/echo/{instance}"), json!({})).await;
    }
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = value(ground.get(&format!("/v1/runs?limit=2{cursor}")).await).await;
        seen.extend(
            page["runs"].as_array().unwrap().iter().map(|run| run["instance"].as_str().unwrap().to_owned()),
        );
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(seen, ["a", "b", "a"]);
    let of = async |query: &str| {
        value(ground.get(&format!("/v1/runs?{query}")).await).await["runs"].as_array().unwrap().clone()
    };
    assert_eq!(of("instance=b&agent=echo&status=completed&pool=ours").await.len(), 1);
    assert!(of("status=active").await.is_empty() && of("agent=asks").await.is_empty());
    let run = &of("instance=b").await[0];
    assert!(run["payload"].is_null() && run["result"].is_null() && run["ended_ms"].is_u64());
    let path = format!("/v1/runs/{}/events?types=run_end", run["id"].as_str().unwrap());
    let events = value(ground.get(&path).await).await;
    assert_eq!(events["events"][0]["type"], "run_end");
}

impl Ground {
    async fn with_limits_of_json(max_json_bytes: usize) -> Self {
        Self::limited(ServeLimits { max_json_bytes, ..ServeLimits::default() }).await
    }
}
