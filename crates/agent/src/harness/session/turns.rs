//! The agent loop: ask the model, run the tools that it calls, and repeat until it calls none.

use std::collections::HashSet;
use std::time::Instant;

use futures_util::StreamExt;

use super::operation::{Operation, elapsed_ms};
use super::prompt::PromptCall;
use super::tool_batch::tool_start;
use crate::compaction::{CompactionLimits, context_tokens, is_silent_overflow};
use crate::conversation::ConversationEntry;
use crate::event::{AgentEventKind, CompactionReason};
use crate::failure::{AgentError, AgentResult};
use crate::message::{AssistantMessage, ChatMessage, ContentBlock, StopReason, timestamp_ms};
use crate::model::{ModelError, ModelErrorKind, ModelEvent, ModelInfo, ModelRequest, ModelStream, ModelTurn};
use crate::redaction::RedactedPieces;
use crate::usage::TokenUsage;

/// The most times that a turn is repeated after its answer was cut off.
const MAX_CUTS: usize = 2;

/// The failure of a turn.
pub(super) enum TurnFailure {
    Aborted,
    Refused(AssistantMessage),
    /// The model failed, before or after it had begun to answer.
    Model {
        error: ModelError,
        had_begun: bool,
    },
}

impl TurnFailure {
    /// The tokens that the turn took all the same, with their price.
    pub(super) fn usage(&self, model: &ModelInfo) -> Option<TokenUsage> {
        match self {
            Self::Aborted => None,
            Self::Refused(turn) => Some(turn.usage),
            Self::Model { error, .. } => spent(error, model),
        }
    }
}

impl Operation {
    /// Lets the model work until it calls no more tools, or has given its result.
    pub(super) async fn run_turns(&self, call: &PromptCall) -> AgentResult<()> {
        let (mut cuts, mut was_shortened) = (0, false);
        loop {
            self.abort.check()?;
            self.session.harness.budget.begin_turn().map_err(AgentError::Budget)?;
            let started = Instant::now();
            let failure = match self.ask(call).await {
                Ok(turn) => {
                    cuts = 0;
                    if self.take_turn(call, turn, started).await? {
                        return Ok(());
                    }
                    continue;
                }
                Err(failure) => failure,
            };
            self.session.harness.budget.charge(failure.usage(call.model.info()).unwrap_or_default());
            self.scope.emit(failed_turn(call.model.info(), &failure, started));
            match failure {
                TurnFailure::Aborted => return Err(self.abort.error()),
                TurnFailure::Refused(turn) => return Err(AgentError::Refused(turn.text())),
                TurnFailure::Model { error, .. }
                    if error.kind == ModelErrorKind::ContextOverflow && !was_shortened =>
                {
                    was_shortened = true;
                    // The same conversation would be too long again.
                    if !self.compact_overflow(&call.model).await? {
                        return Err(AgentError::Model { asked: call.asked.clone(), source: error });
                    }
                }
                TurnFailure::Model { error, had_begun: true }
                    if error.kind.is_transient() && cuts < MAX_CUTS =>
                {
                    cuts += 1;
                }
                TurnFailure::Model { error, .. } => {
                    return Err(AgentError::Model { asked: call.asked.clone(), source: error });
                }
            }
        }
    }

    /// Adds a turn to the conversation and runs its tools. Returns whether it was the last turn.
    async fn take_turn(
        &self,
        call: &PromptCall,
        turn: AssistantMessage,
        started: Instant,
    ) -> AgentResult<bool> {
        self.session.harness.budget.charge(turn.usage);
        let tool_calls: Vec<_> = turn.tool_calls().cloned().collect();
        let usage = turn.usage;
        let is_too_long = is_silent_overflow(&turn, call.model.info().context_window);
        let ended = ended_turn(&turn, started);
        let message = ChatMessage::Assistant(turn);
        let entry = ConversationEntry::Message { message, source: call.source };
        let mut is_last = true;
        if tool_calls.is_empty() {
            self.append_with_event(entry, ended);
        } else {
            self.session.lock().push(entry.clone());
            let starts = tool_calls.iter().map(tool_start).collect();
            self.scope.emit_all_with_entry(starts, &self.session.key, entry);
            // A tool has side effects, so the start of its call is recorded before it runs.
            self.scope.journal().written().await?;
            is_last = self.run_tools(call, tool_calls).await;
            self.append_with_event(ConversationEntry::TurnEnd, with_duration(ended, started));
            self.abort.check()?;
        }
        let limits = CompactionLimits::new(&self.session.config.compaction, call.model.info());
        if is_too_long {
            self.compact_or_log(&call.model, CompactionReason::Overflow).await;
        } else if limits.is_nearly_full(context_tokens(&usage)) {
            self.compact_or_log(&call.model, CompactionReason::Threshold).await;
        }
        Ok(is_last)
    }

    /// Asks the model for a turn, and publishes its pieces.
    async fn ask(&self, call: &PromptCall) -> Result<AssistantMessage, TurnFailure> {
        let request = ModelRequest {
            system_prompt: Some(self.session.config.context.system_prompt.clone()),
            messages: self.session.lock().messages(),
            tools: call.toolbox.declarations(),
            max_tokens: None,
            thinking: call.thinking,
            session_id: Some(self.session.harness.affinity_key(&self.session.name)),
        };
        let answered = tokio::select! {
            biased;
            () = self.abort.aborted() => return Err(TurnFailure::Aborted),
            answered = call.model.stream(request) => answered,
        };
        let stream = answered.map_err(|error| TurnFailure::Model { error, had_begun: false })?;
        let turn = self.listen(stream).await?;
        let message = message_of(turn, call.model.info());
        match message.stop_reason {
            StopReason::Refusal => Err(TurnFailure::Refused(message)),
            _ => Ok(message),
        }
    }

    async fn listen(&self, mut stream: ModelStream) -> Result<ModelTurn, TurnFailure> {
        let (mut had_begun, mut text, mut thinking) =
            (false, RedactedPieces::default(), RedactedPieces::default());
        loop {
            let next = tokio::select! {
                biased;
                () = self.abort.aborted() => return Err(TurnFailure::Aborted),
                next = stream.next() => next,
            };
            let event = match next {
                Some(Ok(ModelEvent::Done(turn))) => {
                    self.tell_text(text.finish());
                    return Ok(turn);
                }
                Some(Ok(event)) => event,
                Some(Err(error)) => return Err(TurnFailure::Model { error, had_begun }),
                None => return Err(TurnFailure::Model { error: ModelError::cut(), had_begun: true }),
            };
            had_begun = true;
            match event {
                ModelEvent::TextDelta(piece) => self.tell_text(text.push(&piece)),
                ModelEvent::ThinkingDelta(piece) => self.tell_thinking(thinking.push(&piece)),
                ModelEvent::ThinkingStart => self.scope.emit(AgentEventKind::ThinkingStart),
                ModelEvent::ThinkingEnd(content) => {
                    self.tell_thinking(thinking.finish());
                    self.scope.emit(AgentEventKind::ThinkingEnd { content });
                }
                // Tool calls are published when they run.
                ModelEvent::ToolCallStart { .. } | ModelEvent::ToolCallDelta { .. } | ModelEvent::Done(_) => {
                }
            }
        }
    }

    fn tell_text(&self, text: String) {
        if !text.is_empty() {
            self.scope.emit(AgentEventKind::TextDelta { text });
        }
    }

    fn tell_thinking(&self, delta: String) {
        if !delta.is_empty() {
            self.scope.emit(AgentEventKind::ThinkingDelta { delta });
        }
    }
}

/// The tokens that a failed turn took, with their price. `None`: nobody said that it took any.
fn spent(error: &ModelError, model: &ModelInfo) -> Option<TokenUsage> {
    (*error.usage != TokenUsage::default()).then(|| error.usage.priced(&model.prices))
}

pub(super) fn message_of(turn: ModelTurn, model: &ModelInfo) -> AssistantMessage {
    AssistantMessage {
        content: with_unique_ids(turn.content),
        api: model.api.as_str().to_owned(),
        provider: model.provider.clone(),
        model: model.id.clone(),
        usage: turn.usage.priced(&model.prices),
        stop_reason: turn.stop_reason,
        error_message: None,
        timestamp: timestamp_ms(),
    }
}

/// Gives each tool call of a turn an id of its own. Some servers of models name every call alike, and a call's answer, its
/// events and its place in the store are found by its id.
fn with_unique_ids(mut content: Vec<ContentBlock>) -> Vec<ContentBlock> {
    let mut taken: HashSet<String> = HashSet::new();
    for block in &mut content {
        let ContentBlock::ToolCall(call) = block else { continue };
        let original = call.id.clone();
        let mut number = 2;
        while !taken.insert(call.id.clone()) {
            call.id = format!("{original}_{number}");
            number += 1;
        }
    }
    content
}

pub(super) fn ended_turn(turn: &AssistantMessage, started: Instant) -> AgentEventKind {
    AgentEventKind::Turn {
        duration_ms: elapsed_ms(started),
        model: Some(turn.model.clone()),
        usage: Some(turn.usage),
        stop_reason: Some(turn.stop_reason),
        is_error: false,
        error: None,
    }
}

/// Returns the event with the duration until now.
fn with_duration(event: AgentEventKind, started: Instant) -> AgentEventKind {
    match event {
        AgentEventKind::Turn { model, usage, stop_reason, is_error, error, .. } => {
            let duration_ms = elapsed_ms(started);
            AgentEventKind::Turn { duration_ms, model, usage, stop_reason, is_error, error }
        }
        other => other,
    }
}

pub(super) fn failed_turn(model: &ModelInfo, failure: &TurnFailure, started: Instant) -> AgentEventKind {
    let (stop_reason, error) = match failure {
        TurnFailure::Aborted => (StopReason::Aborted, "the turn was aborted".to_owned()),
        TurnFailure::Refused(_) => (StopReason::Refusal, "the model refused".to_owned()),
        TurnFailure::Model { error, .. } => (StopReason::Error, error.to_string()),
    };
    AgentEventKind::Turn {
        duration_ms: elapsed_ms(started),
        model: Some(model.id.clone()),
        usage: failure.usage(model),
        stop_reason: Some(stop_reason),
        is_error: true,
        error: Some(error),
    }
}
