//! Our runtime plays a scenario.

mod setup;
mod steps;

use std::sync::Arc;

use eyot_agent::standin::StandIn;
use eyot_agent::{AgentContext, AgentError, Agents, Harness, HarnessOptions, MemoryStore, init};
use libtest_mimic::Failed;
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::scenario::Scenario;
use setup::ScenarioModels;
use steps::{outcome, take};

/// Plays a scenario, and returns its events and the outcome of each step.
pub async fn play(scenario: &Scenario, stand_in: &StandIn) -> Result<Value, Failed> {
    let models = setup::models(scenario, stand_in)?;
    let server = setup::connect(scenario).await?;
    let options = setup::options(scenario, &models, server.as_ref()).await?;
    let played = match scenario.setup.get("run") {
        None => play_steps(scenario, options, &models).await,
        Some(payload) => play_run(scenario, options, models, payload.clone()).await,
    };
    if let Some(server) = server {
        server.close().await;
    }
    played
}

async fn play_steps(
    scenario: &Scenario,
    options: HarnessOptions,
    models: &ScenarioModels,
) -> Result<Value, Failed> {
    let harness = init(options).await?;
    let mut heard = harness.events();
    let mut outcomes = Vec::new();
    for step in &scenario.steps {
        outcomes.push(outcome(take(&harness, step, &models.other).await));
    }
    let mut events = Vec::new();
    while let Ok(event) = heard.try_recv() {
        events.push(serde_json::to_value(&*event)?);
    }
    Ok(json!({"events": events, "outcomes": outcomes}))
}

/// Plays the steps as a run of an agent.
async fn play_run(
    scenario: &Scenario,
    options: HarnessOptions,
    models: ScenarioModels,
    payload: Value,
) -> Result<Value, Failed> {
    let agents = Agents::new(Arc::new(MemoryStore::default()));
    let played = Arc::new((scenario.steps.clone(), models, Mutex::new(Vec::new())));
    let (handled, options) = (Arc::clone(&played), Arc::new(options));
    agents.register("worker", move |run| {
        let (played, options) = (Arc::clone(&handled), HarnessOptions::clone(&options));
        async move {
            let harness = run.init(options).await?;
            let (steps, models, outcomes) = &*played;
            for step in steps {
                if let Some(done) = step_of_run(&run, &harness, step, models).await? {
                    outcomes.lock().await.push(done);
                }
            }
            Ok(outcomes
                .lock()
                .await
                .last()
                .map_or(Value::Null, |last: &Value| last["result"]["text"].clone()))
        }
    })?;
    let mut run = agents.run("worker", "instance", payload).await?;
    let mut events = Vec::new();
    while let Some(event) = run.next_event().await {
        events.push(serde_json::to_value(&*event)?);
        if event.kind.name() == "run_end" {
            break;
        }
    }
    Ok(json!({"events": events, "outcomes": *played.2.lock().await}))
}

/// Takes a step of a run. Returns its outcome, if it has one.
async fn step_of_run(
    run: &AgentContext,
    harness: &Harness,
    step: &Value,
    models: &ScenarioModels,
) -> Result<Option<Value>, AgentError> {
    let text = step["text"].as_str().unwrap_or_default();
    match step["do"].as_str() {
        Some("log") => {
            let level = serde_json::from_value(step["level"].clone()).expect("a level");
            run.log(level, text, step["attributes"].as_object().cloned().unwrap_or_default());
            Ok(None)
        }
        Some("fail") => Err(eyot::Error::new(eyot::ErrorKind::Internal, text.to_owned()).into()),
        _ => Ok(Some(outcome(take(harness, step, &models.other).await))),
    }
}
