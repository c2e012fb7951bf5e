//! Conversations: their entries, and the messages that a model is sent.
//!
//! A conversation only grows. The answers of tool calls are added as they arrive, so that none is lost if the process is
//! killed. A model is sent the answers in the order of the calls.

use serde::{Deserialize, Serialize};

use crate::message::{AssistantMessage, ChatMessage, ContentBlock, ToolCall, ToolResultMessage, UserMessage};
use crate::usage::TokenUsage;

/// An entry of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum ConversationEntry {
    /// A message.
    Message {
        /// The message.
        message: ChatMessage,
        /// The operation that added it.
        source: MessageSource,
    },
    /// A summary that replaces the entries before `first_kept`.
    Compaction(CompactionEntry),
    /// A task was started. It has its own conversation.
    Task(TaskEntry),
    /// The end of a turn with tool calls was published. All of its calls have answers.
    TurnEnd,
}

/// A task that was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskEntry {
    /// The key of its conversation.
    pub key: String,
    /// The task's id.
    pub task_id: String,
}

/// A summary of the older part of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactionEntry {
    /// The summary.
    pub summary: String,
    /// The index of the first entry that the summary does not replace.
    pub first_kept: usize,
    /// The estimated tokens of the conversation before the compaction.
    pub tokens_before: u64,
    /// The files that had been read by then, but not written.
    pub read_files: Vec<String>,
    /// The files that had been written by then.
    pub modified_files: Vec<String>,
    /// The tokens that the summary took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenUsage>,
    /// The time, in milliseconds since 1970.
    pub timestamp: u64,
}

/// The operation that added a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MessageSource {
    /// A prompt.
    Prompt,
    /// A skill.
    Skill,
    /// A command of the caller.
    Shell,
    /// The runtime, when it asked the model again.
    Retry,
}

/// A conversation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Conversation {
    entries: Vec<ConversationEntry>,
}

/// A message for the model, and the index of its entry.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ShownMessage {
    pub(crate) message: ChatMessage,
    pub(crate) entry: usize,
}

impl Conversation {
    /// Creates a conversation from its entries.
    pub fn from_entries(entries: Vec<ConversationEntry>) -> Self {
        Self { entries }
    }

    /// Returns all entries, oldest first.
    pub fn entries(&self) -> &[ConversationEntry] {
        &self.entries
    }

    /// The entries from this number on.
    pub(crate) fn entries_from(&self, from: usize) -> &[ConversationEntry] {
        self.entries.get(from..).unwrap_or_default()
    }

    /// Adds an entry at the end.
    pub(crate) fn push(&mut self, entry: ConversationEntry) {
        self.entries.push(entry);
    }

    /// Returns the messages for a model: the last summary, and everything that it does not replace.
    pub fn messages(&self) -> Vec<ChatMessage> {
        self.shown().into_iter().map(|shown| shown.message).collect()
    }

    pub(crate) fn shown(&self) -> Vec<ShownMessage> {
        let (first, mut shown) = match self.last_compaction() {
            Some((entry, compaction)) => {
                let message = summary_message(compaction);
                (compaction.first_kept, vec![ShownMessage { message, entry }])
            }
            None => (0, Vec::new()),
        };
        let kept = self.entries.iter().enumerate().skip(first);
        shown.extend(kept.filter_map(|(entry, kept)| match kept {
            ConversationEntry::Message { message, .. } => {
                Some(ShownMessage { message: message.clone(), entry })
            }
            ConversationEntry::Compaction(_) | ConversationEntry::Task(_) | ConversationEntry::TurnEnd => {
                None
            }
        }));
        sort_results(&mut shown);
        shown
    }

    /// Returns the last summary, and the index of its entry.
    pub(crate) fn last_compaction(&self) -> Option<(usize, &CompactionEntry)> {
        let last = self.entries.iter().enumerate().rev();
        last.filter_map(|(index, entry)| match entry {
            ConversationEntry::Compaction(compaction) => Some((index, compaction)),
            ConversationEntry::Message { .. } | ConversationEntry::Task(_) | ConversationEntry::TurnEnd => {
                None
            }
        })
        .next()
    }

    /// Returns the tool calls of the last turn that have no answer: they were running when the process was killed.
    pub(crate) fn unanswered_calls(&self) -> Vec<ToolCall> {
        let mut answered = Vec::new();
        for entry in self.entries.iter().rev() {
            match entry {
                ConversationEntry::Message { message: ChatMessage::ToolResult(result), .. } => {
                    answered.push(result.tool_call_id.as_str());
                }
                ConversationEntry::Message { message: ChatMessage::Assistant(turn), .. } => {
                    let is_open = |call: &&ToolCall| !answered.contains(&call.id.as_str());
                    return turn.tool_calls().filter(is_open).cloned().collect();
                }
                ConversationEntry::Task(_) => {}
                _ => return Vec::new(),
            }
        }
        Vec::new()
    }

    /// Returns the last turn from this entry on, if its tools have answered but its end was not published.
    pub(crate) fn untold_turn(&self, from: usize) -> Option<&AssistantMessage> {
        let mut has_results = false;
        for entry in self.entries_from(from).iter().rev() {
            match entry {
                ConversationEntry::Message { message: ChatMessage::ToolResult(_), .. } => has_results = true,
                ConversationEntry::Message { message: ChatMessage::Assistant(turn), .. } => {
                    return Some(turn).filter(|_| has_results);
                }
                ConversationEntry::Task(_) => {}
                _ => return None,
            }
        }
        None
    }

    /// Returns the last turn from this entry on, unless the model was sent another message after it.
    pub(crate) fn last_turn(&self, from: usize) -> Option<&AssistantMessage> {
        let said = self.entries_from(from).iter().rev().find_map(|entry| match entry {
            ConversationEntry::Message { message: ChatMessage::ToolResult(_), .. } => None,
            ConversationEntry::Message { message, .. } => Some(message),
            _ => None,
        });
        match said {
            Some(ChatMessage::Assistant(turn)) => Some(turn),
            _ => None,
        }
    }

    /// Returns the tool calls from this entry on that succeeded.
    pub(crate) fn answered_calls(&self, from: usize) -> Vec<ToolCall> {
        let entries = self.entries_from(from);
        let messages = || {
            entries.iter().filter_map(|entry| match entry {
                ConversationEntry::Message { message, .. } => Some(message),
                _ => None,
            })
        };
        let was_answered = |call: &&ToolCall| {
            messages().filter_map(as_result).any(|result| result.tool_call_id == call.id && !result.is_error)
        };
        let calls = messages().filter_map(|message| match message {
            ChatMessage::Assistant(turn) => Some(turn.tool_calls()),
            _ => None,
        });
        calls.flatten().filter(was_answered).cloned().collect()
    }

    /// Returns the tokens that the entries from this index on took.
    pub(crate) fn usage_since(&self, entry: usize) -> TokenUsage {
        let spent = self.entries_from(entry).iter().filter_map(|entry| match entry {
            ConversationEntry::Message { message: ChatMessage::Assistant(turn), .. } => Some(turn.usage),
            ConversationEntry::Compaction(compaction) => compaction.usage,
            ConversationEntry::Message { .. } | ConversationEntry::Task(_) | ConversationEntry::TurnEnd => {
                None
            }
        });
        spent.fold(TokenUsage::default(), |sum, usage| sum + usage)
    }

    /// Returns the text of the model's last turn.
    pub(crate) fn last_text(&self) -> String {
        let mut turns = self.entries.iter().rev().filter_map(|entry| match entry {
            ConversationEntry::Message { message: ChatMessage::Assistant(turn), .. } => Some(turn.text()),
            _ => None,
        });
        turns.next().unwrap_or_default()
    }
}

fn summary_message(compaction: &CompactionEntry) -> ChatMessage {
    let text = format!("[Context Summary]\n\n{}", compaction.summary);
    ChatMessage::User(UserMessage {
        content: vec![ContentBlock::text(text)],
        timestamp: compaction.timestamp,
    })
}

/// Sorts the answers after each turn into the order of its calls.
fn sort_results(shown: &mut [ShownMessage]) {
    let mut from = 0;
    while from < shown.len() {
        let ChatMessage::Assistant(turn) = &shown[from].message else {
            from += 1;
            continue;
        };
        let calls: Vec<String> = turn.tool_calls().map(|call| call.id.clone()).collect();
        let rest = &mut shown[from + 1..];
        let count = rest.iter().take_while(|next| as_result(&next.message).is_some()).count();
        rest[..count].sort_by_key(|next| {
            let id = as_result(&next.message).map(|result| result.tool_call_id.as_str());
            calls.iter().position(|call| Some(call.as_str()) == id)
        });
        from += 1 + count;
    }
}

fn as_result(message: &ChatMessage) -> Option<&ToolResultMessage> {
    match message {
        ChatMessage::ToolResult(result) => Some(result),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::message::StopReason;

    fn entry(message: ChatMessage) -> ConversationEntry {
        ConversationEntry::Message { message, source: MessageSource::Prompt }
    }

    fn turn(calls: &[&str]) -> ConversationEntry {
        let call = |id: &&str| {
            ContentBlock::ToolCall(ToolCall {
                id: (*id).to_owned(),
                name: "bash".into(),
                arguments: json!({}),
            })
        };
        entry(ChatMessage::Assistant(AssistantMessage {
            content: calls.iter().map(call).collect(),
            api: String::new(),
            provider: String::new(),
            model: String::new(),
            usage: TokenUsage { output: 1, ..TokenUsage::default() },
            stop_reason: StopReason::ToolUse,
            error_message: None,
            timestamp: 0,
        }))
    }

    fn result(id: &str) -> ConversationEntry {
        entry(ChatMessage::ToolResult(ToolResultMessage {
            tool_call_id: id.to_owned(),
            tool_name: "bash".into(),
            content: Vec::new(),
            details: Value::Null,
            is_error: false,
            timestamp: 0,
        }))
    }

    fn shown_ids(conversation: &Conversation) -> Vec<String> {
        let ids = conversation.messages().into_iter().filter_map(|message| match message {
            ChatMessage::ToolResult(result) => Some(result.tool_call_id),
            _ => None,
        });
        ids.collect()
    }

    #[test]
    fn answers_are_shown_in_the_order_of_the_calls_however_they_came() {
        let entries = vec![turn(&["a", "b", "c"]), result("c"), result("a"), result("b"), turn(&[])];
        let conversation = Conversation::from_entries(entries);
        assert_eq!(shown_ids(&conversation), ["a", "b", "c"]);
        assert!(conversation.unanswered_calls().is_empty());
        assert_eq!(conversation.usage_since(1).output, 1);
    }

    #[test]
    fn the_calls_without_an_answer_are_those_of_the_last_turn() {
        let conversation = Conversation::from_entries(vec![turn(&["a", "b"]), result("b")]);
        let open: Vec<String> = conversation.unanswered_calls().into_iter().map(|call| call.id).collect();
        assert_eq!(open, ["a"]);
        let with_user = vec![turn(&["a"]), entry(ChatMessage::user("go on"))];
        assert!(Conversation::from_entries(with_user).unanswered_calls().is_empty());
    }

    #[test]
    fn a_summary_takes_the_place_of_what_is_before_the_first_kept_entry() {
        let mut conversation = Conversation::from_entries(vec![
            entry(ChatMessage::user("old")),
            turn(&[]),
            entry(ChatMessage::user("new")),
        ]);
        conversation.push(ConversationEntry::Compaction(CompactionEntry {
            summary: "it was old".into(),
            first_kept: 2,
            tokens_before: 9,
            read_files: Vec::new(),
            modified_files: Vec::new(),
            usage: None,
            timestamp: 0,
        }));
        let texts: Vec<String> = conversation
            .messages()
            .iter()
            .map(|message| message.content()[0].as_text().unwrap_or_default().to_owned())
            .collect();
        assert_eq!(texts, ["[Context Summary]\n\nit was old", "new"]);
    }
}
