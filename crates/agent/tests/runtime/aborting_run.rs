//! Runs that are aborted.

use std::sync::Arc;

use eyot_agent::{
    AgentError, Agents, HarnessOptions, MemoryStore, PromptOptions, RunStatus, ScriptedModel, ScriptedTurn,
};
use serde_json::json;

#[tokio::test]
async fn a_run_that_is_aborted_ends_with_the_reason() {
    let store = Arc::new(MemoryStore::default());
    let agents = Agents::new(store.clone());
    agents
        .register("waits", async |run| {
            let model = ScriptedModel::new([ScriptedTurn::Stall(Vec::new())]);
            let options = HarnessOptions { model: Some(Arc::new(model)), ..HarnessOptions::default() };
            let session = run.init(options).await?.session().await?;
            session.prompt("go", PromptOptions::default()).await.map(|answer| json!(answer.text))
        })
        .unwrap();
    let mut run = agents.run("waits", "i", json!({})).await.unwrap();
    let id = run.id().to_owned();
    while run.next_event().await.is_some_and(|event| event.kind.name() != "operation_start") {}
    run.abort("enough");
    assert!(matches!(run.result().await.unwrap_err(), AgentError::Aborted(reason) if reason == "enough"));
    let kept = eyot_agent::AgentStore::run(store.as_ref(), &id).await.unwrap().unwrap();
    assert_eq!((kept.status, kept.error.unwrap().message.as_str()), (RunStatus::Errored, "enough"));
}
