//! Conversion of a conversation for a model, whichever models it was held with.

use std::collections::{HashMap, HashSet};

use super::WireModel;
use crate::message::{
    AssistantMessage, ChatMessage, ContentBlock, StopReason, ToolCall, ToolResultMessage, UserMessage,
};

/// The text in place of a user's images, for a model without vision.
const USER_IMAGE: &str = "(image omitted: model does not support images)";
/// The text in place of a tool's images, for a model without vision.
const TOOL_IMAGE: &str = "(tool image omitted: model does not support images)";
/// The answer for a tool call that was never answered.
const NO_RESULT: &str = "No result provided";

/// Makes a conversation acceptable to a model: images that it can't see become a note, reasoning of another model becomes text
/// or is left out, reasoning at the end of a turn is left out, ids of another model's tool calls are rewritten by `rewrite_id`, turns that failed are left out, each tool
/// call has an answer, and each answer has its tool call.
pub(super) fn readable(
    model: &WireModel,
    messages: &[ChatMessage],
    rewrite_id: impl Fn(&str) -> String,
) -> Vec<ChatMessage> {
    let mut history =
        ReadableHistory { model, rewrite_id, new_ids: HashMap::new(), open: Vec::new(), done: Vec::new() };
    for message in messages {
        history.add(message);
    }
    history.answer_open_calls();
    history.done
}

struct ReadableHistory<'a, F> {
    model: &'a WireModel,
    rewrite_id: F,
    /// The rewritten ids by the old ones.
    new_ids: HashMap<String, String>,
    /// The calls of the last turn that have no answer yet.
    open: Vec<ToolCall>,
    done: Vec<ChatMessage>,
}

impl<F: Fn(&str) -> String> ReadableHistory<'_, F> {
    fn add(&mut self, message: &ChatMessage) {
        match message {
            ChatMessage::User(said) => {
                self.answer_open_calls();
                let content = self.visible(&said.content, USER_IMAGE);
                self.done.push(ChatMessage::User(UserMessage { content, ..said.clone() }));
            }
            ChatMessage::Assistant(said) => self.add_turn(said),
            ChatMessage::ToolResult(result) => self.add_result(result),
        }
    }

    fn add_turn(&mut self, said: &AssistantMessage) {
        self.answer_open_calls();
        if matches!(said.stop_reason, StopReason::Error | StopReason::Aborted) {
            return;
        }
        let is_own = is_same_model(self.model, said);
        let mut content: Vec<_> = said.content.iter().filter_map(|block| self.block(block, is_own)).collect();
        // The APIs refuse a turn that ends in reasoning. One inside of a tool loop ends with a call.
        while content.last().is_some_and(says_nothing) {
            content.pop();
        }
        if content.is_empty() {
            return;
        }
        let mut seen = HashSet::new();
        let calls = content.iter().filter_map(|block| match block {
            ContentBlock::ToolCall(call) if seen.insert(call.id.clone()) => Some(call.clone()),
            _ => None,
        });
        self.open = calls.collect();
        self.done.push(ChatMessage::Assistant(AssistantMessage { content, ..said.clone() }));
    }

    fn block(&mut self, block: &ContentBlock, is_own: bool) -> Option<ContentBlock> {
        match block {
            ContentBlock::Thinking { redacted: true, .. } => is_own.then(|| block.clone()),
            ContentBlock::Thinking { thinking, thinking_signature, .. } => {
                let is_signed =
                    thinking_signature.as_deref().is_some_and(|signature| !signature.trim().is_empty());
                if is_own && is_signed {
                    return Some(block.clone());
                }
                (!thinking.trim().is_empty()).then(|| ContentBlock::text(thinking.clone()))
            }
            ContentBlock::ToolCall(call) if !is_own => {
                let id = (self.rewrite_id)(&call.id);
                self.new_ids.insert(call.id.clone(), id.clone());
                Some(ContentBlock::ToolCall(ToolCall { id, ..call.clone() }))
            }
            ContentBlock::ToolCall(_) | ContentBlock::Text { .. } | ContentBlock::Image { .. } => {
                Some(block.clone())
            }
        }
    }

    fn add_result(&mut self, result: &ToolResultMessage) {
        let new_id = self.new_ids.get(&result.tool_call_id);
        let is_its_call = |call: &ToolCall| call.id == result.tool_call_id || Some(&call.id) == new_id;
        let Some(at) = self.open.iter().position(is_its_call) else { return };
        let tool_call_id = self.open.remove(at).id;
        let content = self.visible(&result.content, TOOL_IMAGE);
        let result = ToolResultMessage { tool_call_id, content, ..result.clone() };
        self.done.push(ChatMessage::ToolResult(result));
    }

    /// Answers the calls without an answer, because APIs require one for each call.
    fn answer_open_calls(&mut self) {
        for call in std::mem::take(&mut self.open) {
            self.done.push(ChatMessage::ToolResult(ToolResultMessage {
                tool_call_id: call.id,
                tool_name: call.name,
                content: vec![ContentBlock::text(NO_RESULT)],
                details: serde_json::Value::Null,
                is_error: true,
                timestamp: 0,
            }));
        }
    }

    /// Returns the pieces for the model. For a model without vision, adjacent images become one note.
    fn visible(&self, content: &[ContentBlock], note: &str) -> Vec<ContentBlock> {
        let mut seen: Vec<ContentBlock> = Vec::with_capacity(content.len());
        for block in content {
            let is_image = matches!(block, ContentBlock::Image { .. });
            if !is_image || self.model.info.images {
                seen.push(block.clone());
            } else if seen.last().and_then(ContentBlock::as_text) != Some(note) {
                seen.push(ContentBlock::text(note));
            }
        }
        seen
    }
}

/// Returns whether a piece is nothing that a turn can end with.
fn says_nothing(block: &ContentBlock) -> bool {
    matches!(block, ContentBlock::Thinking { .. })
        || block.as_text().is_some_and(|text| text.trim().is_empty())
}

/// Returns whether this model wrote the turn, so that its ids and its reasoning can go back unchanged.
pub(super) fn is_same_model(model: &WireModel, said: &AssistantMessage) -> bool {
    said.provider == model.info.provider && said.api == model.info.api.as_str() && said.model == model.info.id
}
