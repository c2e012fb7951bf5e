//! Tools that the caller of a run answers itself.

use eyot_agent::{
    AgentEventKind, AgentRunOptions, ClientTool, ClientToolAnswer, RunFilter, RunHandle, RunRequest,
};
use futures_util::{FutureExt, StreamExt};
use serde_json::{Value, json};

use crate::ground::Ground;

fn weather() -> ClientTool {
    let schema = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    ClientTool { name: "weather".into(), description: "Says the weather.".into(), parameters: schema }
}

fn request(tools: Vec<ClientTool>, tool_timeout_ms: Option<u64>) -> RunRequest {
    RunRequest {
        agent: "talks".into(),
        instance_id: "i".into(),
        payload: json!({"call": "weather"}),
        options: AgentRunOptions { tools, tool_timeout_ms, ..AgentRunOptions::default() },
        ..RunRequest::default()
    }
}

/// Reads the events of a run to its end, and returns the result of its tool call.
async fn tool_result(mut run: RunHandle) -> (bool, Value) {
    let mut result = None;
    while let Some(event) = run.next_event().await {
        match &event.kind {
            AgentEventKind::ToolCall { is_error, result: told, .. } => {
                result = Some((*is_error, told.clone()))
            }
            AgentEventKind::RunEnd { is_error, .. } => {
                assert!(!is_error);
                break;
            }
            _ => {}
        }
    }
    let (is_error, result) = result.unwrap();
    (is_error, result["content"][0]["text"].clone())
}

#[tokio::test]
async fn a_call_waits_for_its_caller_and_the_first_answer_counts() {
    let ground = Ground::new().await;
    let mut changes = ground.agents.client_tool_changes();
    let run = ground.agents.begin(request(vec![weather()], None)).await.unwrap();
    let id = run.id().to_owned();
    changes.changed().await.unwrap();
    let waiting = ground.agents.client_tool_calls(&id);
    assert_eq!((waiting.len(), waiting[0].id.as_str(), waiting[0].tool.as_str()), (1, "call-1", "weather"));
    assert_eq!(waiting[0].arguments, json!({"city": "Rome"}));
    let answer = |content: &str| ClientToolAnswer { content: content.into(), is_error: false };
    let refused = ground.agents.answer_client_tool_call("run_other", "call-1", answer("no")).unwrap_err();
    assert_eq!(refused.kind(), eyot::ErrorKind::NotFound);
    ground.agents.answer_client_tool_call(&id, "call-1", answer("It rains.")).unwrap();
    ground.agents.answer_client_tool_call(&id, "call-1", answer("It snows.")).unwrap_err();
    assert_eq!(tool_result(run).await, (false, json!("It rains.")));
    assert!(ground.agents.client_tool_calls(&id).is_empty());
}

#[tokio::test]
async fn a_call_that_its_caller_fails_or_never_answers_is_an_error_for_the_model() {
    let ground = Ground::new().await;
    let run = ground.agents.begin(request(vec![weather()], Some(20))).await.unwrap();
    let (is_error, text) = tool_result(run).await;
    assert!(is_error && text.as_str().unwrap().contains("did not answer within 20 ms"), "{text}");

    let mut changes = ground.agents.client_tool_changes();
    let run = ground.agents.begin(request(vec![weather()], None)).await.unwrap();
    changes.changed().await.unwrap();
    let failed = ClientToolAnswer { content: "no network".into(), is_error: true };
    ground.agents.answer_client_tool_call(run.id(), "call-1", failed).unwrap();
    assert_eq!(tool_result(run).await, (true, json!("no network")));
}

#[tokio::test]
async fn a_call_of_an_aborted_run_waits_no_more() {
    let ground = Ground::new().await;
    let mut changes = ground.agents.client_tool_changes();
    let run = ground.agents.begin(request(vec![weather()], None)).await.unwrap();
    let id = run.id().to_owned();
    changes.changed().await.unwrap();
    ground.agents.abort(&id, "enough").await.unwrap();
    assert_eq!(run.result().await.unwrap_err().to_string(), "enough");
    assert!(ground.agents.client_tool_calls(&id).is_empty());
    ground.agents.abort(&id, "again").await.unwrap();
}

#[tokio::test]
async fn tools_that_are_none_are_refused_before_a_run_begins() {
    let ground = Ground::new().await;
    let named = |name: &str| ClientTool { name: name.into(), ..weather() };
    let scalar = ClientTool { parameters: json!({"type": "string"}), ..weather() };
    let many = |count: usize| (0..count).map(|number| named(&format!("t{number}"))).collect::<Vec<_>>();
    for (tools, timeout_ms) in [
        (vec![named("no spaces")], None),
        (vec![named("")], None),
        (vec![scalar], None),
        (vec![weather(), weather()], None),
        (many(129), None),
        (vec![weather()], Some(0)),
        (vec![weather()], Some(3_600_001)),
    ] {
        let error = ground.agents.begin(request(tools, timeout_ms)).await.unwrap_err();
        assert_eq!(error.kind(), eyot::ErrorKind::Invalid, "{error}");
    }
    assert!(ground.json("/admin/runs").await["items"].as_array().unwrap().is_empty());
    let run = ground.agents.begin(RunRequest { payload: json!({}), ..request(many(128), Some(3_600_000)) });
    run.await.unwrap().result().await.unwrap();
}

#[tokio::test]
async fn a_run_whose_caller_does_not_wait_for_its_begin_is_carried_out_all_the_same() {
    let ground = Ground::new().await;
    let begin = Box::pin(ground.agents.begin(RunRequest { payload: json!({}), ..request(Vec::new(), None) }));
    assert!(begin.now_or_never().is_none(), "it was dropped before its end");
    let run = loop {
        let runs = ground.agents.store().runs(RunFilter::default()).await.unwrap();
        match runs.first() {
            Some(run) => break run.run_id.clone(),
            None => tokio::task::yield_now().await,
        }
    };
    let events: Vec<_> = ground.agents.follow(&run, 0).await.unwrap().collect().await;
    let end = events.last().unwrap().as_ref().unwrap();
    assert!(matches!(end.kind, AgentEventKind::RunEnd { is_error: false, .. }), "{end:?}");
}
