//! A model in this process that plays a script, to test the agent loop, agents and tools without a key and without a
//! network.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use serde_json::Value;

use crate::message::{ContentBlock, StopReason, ToolCall};
use crate::model::{
    DEFAULT_MAX_TOKENS, Model, ModelApi, ModelError, ModelErrorKind, ModelEvent, ModelInfo, ModelRequest,
    ModelStream, ModelTurn,
};
use crate::usage::{TokenPrices, TokenUsage};

/// A turn of a script.
#[derive(Debug, Clone)]
pub enum ScriptedTurn {
    /// The model answers with this turn.
    Say(ModelTurn),
    /// The model fails.
    Fail(ModelError),
    /// The answer is cut off after these events.
    Cut(Vec<ModelEvent>),
    /// The answer stalls after these events and never ends.
    Stall(Vec<ModelEvent>),
}

/// A model that plays a script, one turn per request, and records the requests. Clones are one model.
#[derive(Clone)]
pub struct ScriptedModel {
    info: ModelInfo,
    state: Arc<Mutex<ScriptState>>,
}

#[derive(Default)]
struct ScriptState {
    turns: VecDeque<ScriptedTurn>,
    requests: Vec<ModelRequest>,
}

impl ScriptedTurn {
    /// Creates a turn that is one text.
    pub fn text(text: &str) -> Self {
        Self::blocks(vec![ContentBlock::text(text)])
    }

    /// Creates a turn with one tool call. [`ScriptedTurn::and_call`] adds more.
    pub fn call(id: &str, tool: &str, arguments: Value) -> Self {
        Self::blocks(Vec::new()).and_call(id, tool, arguments)
    }

    /// Returns this turn with one more tool call.
    #[must_use]
    pub fn and_call(mut self, id: &str, tool: &str, arguments: Value) -> Self {
        if let Self::Say(turn) = &mut self {
            let call = ToolCall { id: id.to_owned(), name: tool.to_owned(), arguments };
            turn.content.push(ContentBlock::ToolCall(call));
            turn.stop_reason = StopReason::ToolUse;
        }
        self
    }

    /// Creates a turn of these pieces. With a tool call among them, its stop reason is tool use.
    pub fn blocks(content: Vec<ContentBlock>) -> Self {
        let calls = content.iter().any(|block| matches!(block, ContentBlock::ToolCall(_)));
        let stop_reason = if calls { StopReason::ToolUse } else { StopReason::Stop };
        let usage = TokenUsage { input: 10, output: 5, ..TokenUsage::default() };
        Self::Say(ModelTurn { content, stop_reason, usage })
    }
}

impl ScriptedModel {
    /// Creates a model with the id `scripted` that plays these turns.
    pub fn new(turns: impl IntoIterator<Item = ScriptedTurn>) -> Self {
        let info = ModelInfo {
            id: "scripted".to_owned(),
            provider: "eyot".to_owned(),
            api: ModelApi::InProcess,
            context_window: 0,
            max_tokens: DEFAULT_MAX_TOKENS,
            reasoning: false,
            images: true,
            prices: TokenPrices::default(),
        };
        let state = ScriptState { turns: turns.into_iter().collect(), requests: Vec::new() };
        Self { info, state: Arc::new(Mutex::new(state)) }
    }

    /// Returns this model with other facts.
    #[must_use]
    pub fn with_info(self, info: ModelInfo) -> Self {
        Self { info, ..self }
    }

    /// Adds a turn at the end.
    pub fn push(&self, turn: ScriptedTurn) {
        self.lock().turns.push_back(turn);
    }

    /// Returns the requests so far, in order.
    pub fn requests(&self) -> Vec<ModelRequest> {
        self.lock().requests.clone()
    }

    fn lock(&self) -> MutexGuard<'_, ScriptState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self, request: ModelRequest) -> Option<ScriptedTurn> {
        let mut state = self.lock();
        state.requests.push(request);
        state.turns.pop_front()
    }
}

#[async_trait]
impl Model for ScriptedModel {
    fn info(&self) -> &ModelInfo {
        &self.info
    }

    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        match self.next(request) {
            Some(ScriptedTurn::Say(turn)) => Ok(stream::iter(events(turn).into_iter().map(Ok)).boxed()),
            Some(ScriptedTurn::Fail(error)) => Err(error),
            Some(ScriptedTurn::Cut(events)) => Ok(stream::iter(events.into_iter().map(Ok)).boxed()),
            Some(ScriptedTurn::Stall(events)) => {
                Ok(stream::iter(events.into_iter().map(Ok)).chain(stream::pending()).boxed())
            }
            None => Err(ModelError::new(ModelErrorKind::Invalid, "the script has no more turns")),
        }
    }
}

/// Returns the events of a turn, with each piece as a whole.
fn events(turn: ModelTurn) -> Vec<ModelEvent> {
    let mut events = Vec::new();
    for block in &turn.content {
        match block {
            ContentBlock::Text { text, .. } => events.push(ModelEvent::TextDelta(text.clone())),
            ContentBlock::Thinking { thinking, .. } => events.extend([
                ModelEvent::ThinkingStart,
                ModelEvent::ThinkingDelta(thinking.clone()),
                ModelEvent::ThinkingEnd(thinking.clone()),
            ]),
            ContentBlock::ToolCall(call) => {
                let (id, name) = (call.id.clone(), call.name.clone());
                events.push(ModelEvent::ToolCallStart { id: id.clone(), name });
                events.push(ModelEvent::ToolCallDelta { id, json: call.arguments.to_string() });
            }
            ContentBlock::Image { .. } => {}
        }
    }
    events.push(ModelEvent::Done(turn));
    events
}
