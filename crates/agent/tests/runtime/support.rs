//! Support for the tests: a harness over a sandbox in memory, and access to its events.

use std::sync::Arc;

use eyot_agent::{
    AgentEvent, AgentSandbox, CallEvents, ChatMessage, Harness, HarnessOptions, ModelRequest, ScriptedModel,
    ScriptedTurn, Session, init,
};
use eyot_providers::memory::MemoryProvider;

pub(crate) struct Agent {
    pub(crate) model: ScriptedModel,
    pub(crate) harness: Harness,
    pub(crate) session: Session,
}

/// Creates an agent in a sandbox in memory, whose model plays these turns.
pub(crate) async fn agent(turns: impl IntoIterator<Item = ScriptedTurn>) -> Agent {
    agent_with(turns, in_memory()).await
}

/// Creates such an agent with these options. The model is always the script's.
pub(crate) async fn agent_with(
    turns: impl IntoIterator<Item = ScriptedTurn>,
    options: HarnessOptions,
) -> Agent {
    let model = ScriptedModel::new(turns);
    let shown = options.model.clone().unwrap_or_else(|| Arc::new(model.clone()));
    let harness = init(HarnessOptions { model: Some(shown), ..options }).await.expect("a harness");
    let session = harness.session().await.expect("a session");
    Agent { model, harness, session }
}

pub(crate) fn in_memory() -> HarnessOptions {
    let sandbox = AgentSandbox::of_provider(Arc::new(MemoryProvider::default()));
    HarnessOptions { sandbox, ..HarnessOptions::default() }
}

/// Returns the names of the events so far.
pub(crate) fn names(events: &mut CallEvents) -> Vec<&'static str> {
    all(events).iter().map(|event| event.kind.name()).collect()
}

/// Returns the events so far.
pub(crate) fn all(events: &mut CallEvents) -> Vec<Arc<AgentEvent>> {
    std::iter::from_fn(|| events.try_next()).collect()
}

/// Returns the texts of the tools' answers in a request, in order.
pub(crate) fn tool_results(request: &ModelRequest) -> Vec<(String, bool)> {
    let results = request.messages.iter().filter_map(|message| match message {
        ChatMessage::ToolResult(result) => {
            let text = result.content[0].as_text().unwrap_or_default().to_owned();
            Some((text, result.is_error))
        }
        _ => None,
    });
    results.collect()
}

/// Returns the last text in a request.
pub(crate) fn last_text(request: &ModelRequest) -> String {
    let last = request.messages.last().expect("a message");
    last.content()[0].as_text().unwrap_or_default().to_owned()
}
