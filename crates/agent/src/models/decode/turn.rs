//! A builder for turns: it collects the pieces in the order in which they begin, and creates their events.

use crate::message::{ContentBlock, StopReason, ToolCall};
use crate::model::{ModelEvent, ModelTurn};
use crate::usage::TokenUsage;

/// The text in place of reasoning that the provider withholds.
const REDACTED_THINKING: &str = "[Reasoning redacted]";

/// A builder for a turn. A piece is identified by a number from its API.
#[derive(Default)]
pub(super) struct TurnBuilder {
    pieces: Vec<TurnPiece>,
    events: Vec<ModelEvent>,
    usage: TokenUsage,
    is_refusal: bool,
}

struct TurnPiece {
    number: u64,
    content: PieceContent,
}

enum PieceContent {
    Text { text: String, signature: Option<String> },
    Thinking { text: String, signature: String, redacted: bool, is_open: bool },
    Call { id: String, name: String, json: String },
}

impl TurnBuilder {
    /// Returns the events since the last call.
    pub(super) fn take_events(&mut self) -> Vec<ModelEvent> {
        std::mem::take(&mut self.events)
    }

    /// Returns the tokens that the turn took so far.
    pub(super) fn usage_mut(&mut self) -> &mut TokenUsage {
        &mut self.usage
    }

    /// The tokens that the turn took so far, with their sum.
    pub(super) fn usage(&self) -> TokenUsage {
        self.usage.with_total()
    }

    /// Marks the text as the model's refusal.
    pub(super) fn refuse(&mut self) {
        self.is_refusal = true;
    }

    /// Adds text to a piece, and begins the piece if it is new.
    pub(super) fn add_text(&mut self, number: u64, delta: &str) {
        if delta.is_empty() {
            return;
        }
        match self.find(number) {
            Some(PieceContent::Text { text, .. }) => text.push_str(delta),
            Some(_) => return,
            None => self.begin(number, PieceContent::Text { text: delta.to_owned(), signature: None }),
        }
        self.events.push(ModelEvent::TextDelta(delta.to_owned()));
    }

    /// Sets the signature of a text.
    pub(super) fn sign_text(&mut self, number: u64, sign: String) {
        if let Some(PieceContent::Text { signature, .. }) = self.find(number) {
            *signature = Some(sign);
        }
    }

    /// Begins reasoning.
    pub(super) fn begin_thinking(&mut self, number: u64) {
        if self.find(number).is_some() {
            return;
        }
        let (text, signature) = (String::new(), String::new());
        self.begin(number, PieceContent::Thinking { text, signature, redacted: false, is_open: true });
        self.events.push(ModelEvent::ThinkingStart);
    }

    /// Adds a whole piece of reasoning whose text the provider withholds.
    pub(super) fn add_redacted_thinking(&mut self, number: u64, data: &str) {
        let (text, signature) = (REDACTED_THINKING.to_owned(), data.to_owned());
        self.begin(number, PieceContent::Thinking { text, signature, redacted: true, is_open: true });
        self.events.push(ModelEvent::ThinkingStart);
    }

    /// Adds to the text of reasoning.
    pub(super) fn add_thinking(&mut self, number: u64, delta: &str) {
        if let Some(PieceContent::Thinking { text, .. }) = self.find(number).filter(|_| !delta.is_empty()) {
            text.push_str(delta);
            self.events.push(ModelEvent::ThinkingDelta(delta.to_owned()));
        }
    }

    /// Adds to the signature of reasoning.
    pub(super) fn add_signature(&mut self, number: u64, delta: &str) {
        if let Some(PieceContent::Thinking { signature, .. }) = self.find(number) {
            signature.push_str(delta);
        }
    }

    /// Sets the whole text of reasoning, for APIs that repeat it at the end.
    pub(super) fn set_thinking(&mut self, number: u64, whole: &str) {
        if let Some(PieceContent::Thinking { text, .. }) = self.find(number).filter(|_| !whole.is_empty()) {
            whole.clone_into(text);
        }
    }

    /// Begins a tool call, unless it has begun.
    pub(super) fn begin_call(&mut self, number: u64, id: &str, name: &str) {
        if self.find(number).is_none() {
            let call = PieceContent::Call { id: id.to_owned(), name: name.to_owned(), json: String::new() };
            self.begin(number, call);
            self.events.push(ModelEvent::ToolCallStart { id: id.to_owned(), name: name.to_owned() });
        }
    }

    /// Adds to the JSON text of a call's arguments.
    pub(super) fn add_arguments(&mut self, number: u64, delta: &str) {
        if let Some(PieceContent::Call { id, json, .. }) = self.find(number).filter(|_| !delta.is_empty()) {
            json.push_str(delta);
            let id = id.clone();
            self.events.push(ModelEvent::ToolCallDelta { id, json: delta.to_owned() });
        }
    }

    /// Sets the whole JSON text of a call's arguments, for APIs that repeat it at the end.
    pub(super) fn set_arguments(&mut self, number: u64, whole: &str) {
        let Some(PieceContent::Call { json, .. }) = self.find(number) else { return };
        match whole.strip_prefix(json.as_str()).map(str::to_owned) {
            Some(rest) => self.add_arguments(number, &rest),
            None => whole.clone_into(json),
        }
    }

    /// Completes a piece.
    pub(super) fn end_piece(&mut self, number: u64) {
        if let Some(PieceContent::Thinking { text, is_open, .. }) = self.find(number) {
            let text = std::mem::take(is_open).then(|| text.clone());
            self.events.extend(text.map(ModelEvent::ThinkingEnd));
        }
    }

    /// Returns whether a piece has begun.
    pub(super) fn has(&self, number: u64) -> bool {
        self.pieces.iter().any(|piece| piece.number == number)
    }

    /// Completes the turn.
    pub(super) fn end(&mut self, stop_reason: StopReason) {
        if stop_reason == StopReason::Length && self.pieces.last().is_some_and(TurnPiece::is_bare_call) {
            // The model was about to write arguments: the tool must not run without them.
            self.pieces.pop();
        }
        let numbers: Vec<_> = self.pieces.iter().map(|piece| piece.number).collect();
        numbers.into_iter().for_each(|number| self.end_piece(number));
        let content: Vec<_> = self.pieces.drain(..).filter_map(|piece| piece.content.into_block()).collect();
        let has_calls = content.iter().any(|block| matches!(block, ContentBlock::ToolCall(_)));
        let stop_reason = match stop_reason {
            StopReason::Stop if self.is_refusal => StopReason::Refusal,
            // Some servers end a turn that has tool calls like any other.
            StopReason::Stop if has_calls => StopReason::ToolUse,
            other => other,
        };
        let usage = self.usage();
        self.events.push(ModelEvent::Done(ModelTurn { content, stop_reason, usage }));
    }

    fn begin(&mut self, number: u64, content: PieceContent) {
        self.pieces.push(TurnPiece { number, content });
    }

    /// Returns the piece with a number. This is usually the last one.
    fn find(&mut self, number: u64) -> Option<&mut PieceContent> {
        let piece = self.pieces.iter_mut().rev().find(|piece| piece.number == number);
        piece.map(|piece| &mut piece.content)
    }
}

impl TurnPiece {
    /// Returns whether it is a call without any argument.
    fn is_bare_call(&self) -> bool {
        matches!(&self.content, PieceContent::Call { json, .. } if json.trim().is_empty())
    }
}

impl PieceContent {
    /// Returns the finished piece, or `None` if it is empty.
    fn into_block(self) -> Option<ContentBlock> {
        match self {
            Self::Text { text, signature } => Some(ContentBlock::Text { text, text_signature: signature }),
            Self::Thinking { text, signature, .. } if text.is_empty() && signature.is_empty() => None,
            Self::Thinking { text, signature, redacted, .. } => Some(ContentBlock::Thinking {
                thinking: text,
                thinking_signature: (!signature.is_empty()).then_some(signature),
                redacted,
            }),
            Self::Call { id, name, json } => {
                let arguments = ToolCall::parse_arguments(&json);
                Some(ContentBlock::ToolCall(ToolCall { id, name, arguments }))
            }
        }
    }
}
