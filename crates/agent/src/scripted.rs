//! A model in this process that says what was written down for it: the loop, agents and tools are tried with it without a
//! key and without a network.

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

/// One turn of a script.
#[derive(Debug, Clone)]
pub enum ScriptedTurn {
    /// The model says this.
    Say(ModelTurn),
    /// The model fails.
    Fail(ModelError),
    /// The model says this, and then its answer is cut.
    Cut(Vec<ModelEvent>),
    /// The model says this, and then nothing more; its answer does not end.
    Stall(Vec<ModelEvent>),
}

/// A model that says what was written down for it, a turn at a time, and keeps what it was asked. Clones are one model.
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
    /// The model says this and ends.
    pub fn text(text: &str) -> Self {
        Self::blocks(vec![ContentBlock::text(text)])
    }

    /// The model calls this tool. Several are one turn: see [`ScriptedTurn::and_call`].
    pub fn call(id: &str, tool: &str, arguments: Value) -> Self {
        Self::blocks(Vec::new()).and_call(id, tool, arguments)
    }

    /// The same turn with one more tool call.
    #[must_use]
    pub fn and_call(mut self, id: &str, tool: &str, arguments: Value) -> Self {
        if let Self::Say(turn) = &mut self {
            let call = ToolCall { id: id.to_owned(), name: tool.to_owned(), arguments };
            turn.content.push(ContentBlock::ToolCall(call));
            turn.stop_reason = StopReason::ToolUse;
        }
        self
    }

    /// The model says these pieces. It wants tools to be called if one of them is a call.
    pub fn blocks(content: Vec<ContentBlock>) -> Self {
        let calls = content.iter().any(|block| matches!(block, ContentBlock::ToolCall(_)));
        let stop_reason = if calls { StopReason::ToolUse } else { StopReason::Stop };
        let usage = TokenUsage { input: 10, output: 5, ..TokenUsage::default() };
        Self::Say(ModelTurn { content, stop_reason, usage })
    }
}

impl ScriptedModel {
    /// A model with the id `scripted` that says these turns.
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

    /// The same script as a model of these properties.
    #[must_use]
    pub fn with_info(self, info: ModelInfo) -> Self {
        Self { info, ..self }
    }

    /// Adds a turn at the end.
    pub fn push(&self, turn: ScriptedTurn) {
        self.lock().turns.push_back(turn);
    }

    /// Returns what it was asked so far, in order.
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

/// The events by which a turn arrives: each piece at once.
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
