//! Tasks: sessions that end with their work.

use eyot_agent::{
    AgentError, AgentEventKind, CallHandle, HarnessOptions, ModelEvent, PromptOptions, ScriptedModel,
    ScriptedTurn, Subagent, TaskOptions,
};
use serde_json::json;
use std::sync::Arc;

use crate::support::{agent, agent_with, all, in_memory, tool_results};

#[tokio::test]
async fn a_task_has_a_conversation_of_its_own_and_only_its_answer_comes_back() {
    let agent = agent([
        ScriptedTurn::call("1", "task", json!({"prompt": "look around", "cwd": "/tmp"})),
        ScriptedTurn::text("I looked."),
        ScriptedTurn::text("It looked."),
    ])
    .await;
    let call = agent.session.prompt("go", PromptOptions::default());
    let mut events = call.events();
    call.await.unwrap();
    let requests = agent.model.requests();
    assert_eq!(requests[1].messages.len(), 1);
    assert!(requests[1].system_prompt.as_ref().unwrap().contains("Working directory: /tmp"));
    assert_eq!(tool_results(&requests[2])[0].0, "I looked.");
    let events = all(&mut events);
    let names: Vec<&str> = events.iter().map(|event| event.kind.name()).collect();
    let expected = [
        "operation_start",
        "tool_start",
        "task_start",
        "operation_start",
        "text_delta",
        "turn",
        "operation",
        "idle",
        "task",
        "tool_call",
        "turn",
        "text_delta",
        "turn",
        "operation",
        "idle",
    ];
    assert_eq!(names, expected);
    let (start, inside) = (&events[2], &events[4]);
    assert_eq!(start.task_id, inside.task_id);
    assert_eq!(
        (start.session.as_deref(), inside.parent_session.as_deref()),
        (Some("default"), Some("default"))
    );
    assert!(inside.session.as_ref().unwrap().starts_with("task:default:"));
    assert!(matches!(&start.kind, AgentEventKind::TaskStart { cwd: Some(cwd), .. } if cwd == "/tmp"));
}

#[tokio::test]
async fn a_subagent_has_its_own_instructions_and_model_and_an_unknown_one_is_an_answer() {
    let helper = ScriptedModel::new([ScriptedTurn::text("helped")]);
    let subagent = Subagent {
        name: "helper".into(),
        instructions: Some("Be brief.".into()),
        model: Some(Arc::new(helper.clone())),
        ..Subagent::default()
    };
    let options =
        HarnessOptions { subagents: vec![subagent], instructions: Some("Be long.".into()), ..in_memory() };
    let turns = [
        ScriptedTurn::call("1", "task", json!({"prompt": "help", "agent": "helper"})).and_call(
            "2",
            "task",
            json!({"prompt": "help", "agent": "nobody"}),
        ),
        ScriptedTurn::text("ok"),
    ];
    let agent = agent_with(turns, options).await;
    agent.session.prompt("go", PromptOptions::default()).await.unwrap();
    let system = helper.requests()[0].system_prompt.clone().unwrap();
    assert!(system.contains("Be brief.") && !system.contains("Be long."), "{system}");
    let results = tool_results(&agent.model.requests()[1]);
    let miss = "Subagent \"nobody\" is not declared. Available subagents: helper.";
    assert_eq!(results, [("helped".into(), false), (miss.into(), false)]);
    let error =
        agent.session.task("x", TaskOptions { agent: Some("nobody".into()), ..TaskOptions::default() });
    assert_eq!(error.await.unwrap_err().to_string(), miss);
}

#[tokio::test]
async fn tasks_are_nested_four_deep_and_the_fifth_is_an_answer() {
    let deeper = || ScriptedTurn::call("1", "task", json!({"prompt": "deeper"}));
    let mut turns: Vec<ScriptedTurn> = (0..5).map(|_| deeper()).collect();
    turns.extend((0..5).map(|_| ScriptedTurn::text("up")));
    let agent = agent(turns).await;
    assert_eq!(agent.session.prompt("go", PromptOptions::default()).await.unwrap().text, "up");
    let refused = tool_results(&agent.model.requests()[5]);
    assert_eq!(refused, [("Maximum task depth (4) exceeded.".into(), true)]);
}

#[tokio::test]
async fn a_task_that_fails_is_an_answer() {
    let turns = [ScriptedTurn::call("1", "task", json!({"prompt": "try", "cwd": "/none"}))];
    let agent = agent(turns).await;
    agent.model.push(ScriptedTurn::Fail(eyot_agent::ModelError::new(
        eyot_agent::ModelErrorKind::Unauthorized,
        "no key",
    )));
    agent.model.push(ScriptedTurn::text("ok"));
    agent.session.prompt("go", PromptOptions::default()).await.unwrap();
    let results = tool_results(&agent.model.requests()[2]);
    assert_eq!(results, [("prompt failed: no key".into(), true)]);
}

/// The kinds of the events of a call that is aborted when the model of its task has said something.
async fn aborted_in_its_task<T: Send + 'static>(mut call: CallHandle<T>) -> Vec<&'static str> {
    let (mut events, abort) = (call.events(), call.aborter());
    let mut kinds = Vec::new();
    let ended = tokio::select! {
        ended = &mut call => ended.err(),
        () = async {
            while let Some(event) = events.next().await {
                kinds.push(event.kind.name());
                if event.kind.name() == "text_delta" {
                    abort("enough");
                }
            }
        } => None,
    };
    assert!(matches!(ended, Some(AgentError::Aborted(_))), "{ended:?}");
    while let Some(event) = events.try_next() {
        kinds.push(event.kind.name());
    }
    kinds
}

fn stalled() -> ScriptedTurn {
    ScriptedTurn::Stall(vec![ModelEvent::TextDelta("half".into())])
}

#[tokio::test]
async fn the_end_of_an_aborted_task_is_told_before_that_of_its_call() {
    let turn = ScriptedTurn::call("1", "task", json!({"prompt": "look"}));
    let agent = agent([turn, stalled()]).await;
    let kinds = aborted_in_its_task(agent.session.prompt("go", PromptOptions::default())).await;
    let expected = [
        "operation_start",
        "tool_start",
        "task_start",
        "operation_start",
        "text_delta",
        "turn",
        "operation",
        "idle",
        "task",
        "tool_call",
        "turn",
        "operation",
        "idle",
    ];
    assert_eq!(kinds, expected);
}

#[tokio::test]
async fn a_task_of_the_caller_s_own_ends_before_its_aborted_call() {
    let agent = agent([stalled()]).await;
    let kinds = aborted_in_its_task(agent.session.task("look", TaskOptions::default())).await;
    let inside = ["operation_start", "text_delta", "turn", "operation", "idle"];
    assert_eq!(kinds[..2], ["operation_start", "task_start"]);
    assert_eq!(kinds[2..7], inside);
    assert_eq!(kinds[7..], ["task", "operation", "idle"]);
}
