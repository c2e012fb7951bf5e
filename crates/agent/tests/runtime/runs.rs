//! Runs: what they leave behind, and what is told of their end.

use std::sync::{Arc, Weak};

use eyot::{ErrorKind, Result};
use eyot_agent::{
    AgentError, AgentEvent, AgentStore, Agents, HarnessOptions, MemoryStore, ModelEvent, PromptOptions,
    RunHandle, ScriptedModel, ScriptedTurn,
};
use eyot_tools::{ToolDef, ToolOutput};
use serde_json::json;

use crate::support::{agent_with, in_memory};

async fn rest_of(run: &mut RunHandle) -> Vec<Arc<AgentEvent>> {
    let mut events = Vec::new();
    while let Some(event) = run.next_event().await {
        events.push(event);
    }
    events
}

/// A tool that holds this.
fn holding(held: Arc<()>) -> Result<ToolDef> {
    ToolDef::new("hold", "Holds something.", json!({"type": "object"}), move |_, _: serde_json::Value| {
        let held = Arc::clone(&held);
        async move {
            drop(held);
            Ok(ToolOutput::text("held"))
        }
    })
}

#[tokio::test]
async fn nothing_of_a_run_is_left_in_memory_after_its_end() {
    let agents = Agents::new(Arc::new(MemoryStore::default()));
    let held = Arc::new(());
    let weak: Weak<()> = Arc::downgrade(&held);
    let once = std::sync::Mutex::new(Some(held));
    agents
        .register("holds", move |run| {
            let held = once.lock().unwrap().take().expect("one run");
            async move {
                let model = ScriptedModel::new([
                    ScriptedTurn::call("1", "hold", json!({})),
                    ScriptedTurn::text("ok"),
                ]);
                let tools = vec![holding(held)?];
                let options = HarnessOptions { model: Some(Arc::new(model)), tools, ..in_memory() };
                let session = run.init(options).await?.session().await?;
                session.prompt("go", PromptOptions::default()).await.map(|answer| json!(answer.text))
            }
        })
        .unwrap();
    let mut run = agents.run("holds", "i", json!({})).await.unwrap();
    // The events end when the last part of the run lets go of its journal.
    assert_eq!(rest_of(&mut run).await.last().unwrap().kind.name(), "run_end");
    assert!(weak.upgrade().is_none());
}

#[tokio::test]
async fn a_call_that_a_handler_leaves_ends_before_its_run_does() {
    let store = Arc::new(MemoryStore::default());
    let agents = Agents::new(store.clone());
    agents
        .register("leaves", async |run| {
            let model = ScriptedModel::new([ScriptedTurn::Stall(vec![ModelEvent::TextDelta("half".into())])]);
            let options = HarnessOptions { model: Some(Arc::new(model)), ..in_memory() };
            let session = run.init(options).await?.session().await?;
            let call = session.prompt("go", PromptOptions::default());
            let mut events = call.events();
            tokio::select! {
                answer = call => drop(answer?),
                _ = async { while events.next().await.is_some_and(|event| event.kind.name() != "text_delta") {} } => {}
            }
            Ok(json!("left"))
        })
        .unwrap();
    let mut run = agents.run("leaves", "i", json!({})).await.unwrap();
    let names: Vec<&str> = rest_of(&mut run).await.iter().map(|event| event.kind.name()).collect();
    assert_eq!(names, ["run_start", "operation_start", "text_delta", "turn", "operation", "idle", "run_end"]);
    let kept = store.events(run.id(), 0, 100).await.unwrap();
    assert_eq!(kept.last().unwrap().kind.name(), "run_end");
    assert_eq!(run.result().await.unwrap(), json!("left"));
}

#[tokio::test]
async fn a_call_hears_of_its_own_harness_alone() {
    let agents = Agents::new(Arc::new(MemoryStore::default()));
    agents
        .register("two", async |run| {
            let mut heard = Vec::new();
            let mut harnesses = Vec::new();
            for name in ["one", "other"] {
                let model = ScriptedModel::new([ScriptedTurn::text(name)]);
                let name = Some(name.to_owned());
                let options = HarnessOptions { name, model: Some(Arc::new(model)), ..in_memory() };
                harnesses.push(run.init(options).await?.session().await?);
            }
            let calls = [0, 1].map(|at| harnesses[at].prompt("go", PromptOptions::default()));
            let mut events = calls.each_ref().map(|call| call.events());
            for call in calls {
                call.await?;
            }
            while let Some(event) = events[0].try_next() {
                heard.push(event.harness.clone());
            }
            Ok(json!(heard))
        })
        .unwrap();
    let run = agents.run("two", "i", json!({})).await.unwrap();
    let heard = run.result().await.unwrap();
    assert!(!heard.as_array().unwrap().is_empty());
    assert!(heard.as_array().unwrap().iter().all(|harness| harness == "one"), "{heard}");
}

#[tokio::test]
async fn a_session_that_is_deleted_in_the_middle_of_a_call_leaves_nothing() {
    let store = Arc::new(MemoryStore::default());
    let options = HarnessOptions { store: Some(store.clone()), ..in_memory() };
    let turn = ScriptedTurn::call("1", "bash", json!({"command": "sleep 60"}));
    let agent = agent_with([turn], options).await;
    let call = agent.session.prompt("go", PromptOptions::default());
    let mut events = call.events();
    let delete = async {
        while events.next().await.is_some_and(|event| event.kind.name() != "tool_start") {}
        agent.session.delete().await.unwrap();
    };
    let (ended, ()) = tokio::join!(call, delete);
    assert!(matches!(ended.unwrap_err(), AgentError::Aborted(_)));
    let again = agent.harness.existing_session("default").await.err().unwrap();
    assert_eq!(again.kind(), ErrorKind::NotFound);
}
