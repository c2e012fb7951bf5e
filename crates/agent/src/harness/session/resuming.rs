//! Resuming of operations that an earlier process left unfinished.

use serde_json::Value;

use super::operation::Operation;
use super::shell::SHELL_API;
use crate::budget::BudgetUsage;
use crate::conversation::{ConversationEntry, MessageSource};
use crate::event::AgentEventKind;
use crate::message::{AssistantMessage, ChatMessage, ToolCall, ToolResultMessage, timestamp_ms};
use crate::result_tools::{FINISH, GIVE_UP};
use crate::unfinished::{cut_turn, interrupted_call, interrupted_tool};
use crate::usage::TokenUsage;

impl Operation {
    /// Finishes the work that an earlier process left open in the conversation. A turn that was being written is reported as
    /// failed and asked for again later. Tool calls that were running are answered as interrupted.
    pub(super) fn close_interrupted_work(&self) {
        self.end_unfinished();
        let open = self.session.lock().unanswered_calls();
        for call in open {
            self.interrupt(call);
        }
        let untold = self.session.lock().untold_turn(self.from).cloned();
        match untold {
            Some(turn) if turn.api == SHELL_API => self.append(ConversationEntry::TurnEnd),
            Some(turn) => {
                self.count_turn(turn.usage);
                self.append_with_event(ConversationEntry::TurnEnd, turn_event(&turn));
            }
            None => {}
        }
    }

    /// Tells everybody of the end of the turn and of the tasks that a process before this one left in the session.
    fn end_unfinished(&self) {
        let path = self.scope.session_path();
        let Some(mut unfinished) = self.scope.journal().unfinished() else { return };
        let (was_answering, tasks) = (unfinished.take_turn(&path), unfinished.end_tasks(&path));
        drop(unfinished);
        for (origin, end) in tasks {
            if matches!(end, AgentEventKind::Turn { .. }) {
                self.count_turn(TokenUsage::default());
            }
            self.scope.at(origin).emit(end);
        }
        if was_answering {
            self.count_turn(TokenUsage::default());
            self.scope.emit(cut_turn());
        }
    }

    /// Counts a turn that a process before this one asked for, and whose end nobody had heard of.
    fn count_turn(&self, usage: TokenUsage) {
        self.session.harness.budget.restore(BudgetUsage { turns: 1, usage, ..BudgetUsage::default() });
    }

    fn interrupt(&self, call: ToolCall) {
        let content = interrupted_call(&call.name);
        let event = interrupted_tool(call.name.clone(), call.id.clone(), &content);
        let message = ChatMessage::ToolResult(ToolResultMessage {
            tool_call_id: call.id,
            tool_name: call.name,
            content,
            details: Value::Null,
            is_error: true,
            timestamp: timestamp_ms(),
        });
        let entry = ConversationEntry::Message { message, source: MessageSource::Retry };
        self.append_with_event(entry, event);
    }

    /// Returns whether an earlier process had finished the work: the model's last turn called no tools, or only `finish` or
    /// `give_up`, and those calls succeeded.
    pub(super) fn rests(&self) -> bool {
        let conversation = self.session.lock();
        let taken = conversation.answered_calls(self.from);
        let ends = |call: &ToolCall| [FINISH, GIVE_UP].contains(&call.name.as_str()) && taken.contains(call);
        self.is_resumed && conversation.last_turn(self.from).is_some_and(|turn| turn.tool_calls().all(ends))
    }
}

fn turn_event(turn: &AssistantMessage) -> AgentEventKind {
    AgentEventKind::Turn {
        duration_ms: 0,
        model: Some(turn.model.clone()),
        usage: Some(turn.usage),
        stop_reason: Some(turn.stop_reason),
        is_error: false,
        error: None,
    }
}
