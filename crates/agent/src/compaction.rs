//! Compaction: when a conversation nearly fills the model's context window, its older part is replaced by a summary.
//!
//! This module only plans; the session asks the model and records the result. The rules for when and where to cut are those
//! of Flue 0.8.1. The prompts are worded by us.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;

use crate::conversation::CompactionEntry;
use crate::message::{AssistantMessage, ChatMessage, ContentBlock};
use crate::model::{Model, ModelInfo};
use crate::usage::TokenUsage;

/// The tokens that are kept free by default.
const RESERVE_TOKENS: u64 = 20_000;
/// The tokens of the newest messages that stay unchanged by default.
const KEEP_RECENT_TOKENS: u64 = 8_000;
/// The most tokens of a summary.
const MAX_SUMMARY_TOKENS: u64 = 16_000;
/// The most characters of a tool's answer that go into the request for a summary.
const MAX_RESULT_CHARS: usize = 2_000;
/// The number of characters that an image counts as.
const IMAGE_CHARS: usize = 4_800;

/// Options for compaction.
#[derive(Clone)]
pub struct CompactionOptions {
    /// Set to compact a conversation before it is too long. One that is too long is compacted in any case.
    pub enabled: bool,
    /// The tokens to keep free; `None`: 20,000, or less for a model with a small window or output.
    pub reserve_tokens: Option<u64>,
    /// The tokens of the newest messages that stay unchanged; `None`: 8,000.
    pub keep_recent_tokens: Option<u64>,
    /// The model that writes the summary; `None`: the session's.
    pub model: Option<Arc<dyn Model>>,
}

impl Default for CompactionOptions {
    fn default() -> Self {
        Self { enabled: true, reserve_tokens: None, keep_recent_tokens: None, model: None }
    }
}

/// The limits that decide when a conversation with a model is compacted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CompactionLimits {
    pub(crate) reserve_tokens: u64,
    pub(crate) keep_recent_tokens: u64,
    context_window: u64,
    enabled: bool,
}

impl CompactionLimits {
    pub(crate) fn new(options: &CompactionOptions, model: &ModelInfo) -> Self {
        let window = model.context_window;
        let most = u64::from(model.max_tokens);
        let capped = if most > 0 { RESERVE_TOKENS.min(most) } else { RESERVE_TOKENS };
        let usual = if window > 0 && capped * 2 >= window { (window / 3).max(1_024) } else { capped };
        Self {
            reserve_tokens: options.reserve_tokens.unwrap_or(usual),
            keep_recent_tokens: options.keep_recent_tokens.unwrap_or(KEEP_RECENT_TOKENS),
            context_window: window,
            enabled: options.enabled,
        }
    }

    /// Returns whether a conversation with this many tokens nearly fills the window.
    pub(crate) fn is_nearly_full(&self, tokens: u64) -> bool {
        self.enabled
            && self.context_window > 0
            && tokens > self.context_window.saturating_sub(self.reserve_tokens)
    }

    /// Returns the most tokens for the summary of whole turns.
    pub(crate) fn summary_tokens(&self) -> u32 {
        to_tokens(self.reserve_tokens / 5 * 4)
    }

    /// Returns the most tokens for the summary of the beginning of a turn.
    pub(crate) fn prefix_tokens(&self) -> u32 {
        to_tokens(self.reserve_tokens / 2)
    }
}

fn to_tokens(tokens: u64) -> u32 {
    u32::try_from(tokens.clamp(1, MAX_SUMMARY_TOKENS)).unwrap_or(u32::MAX)
}

/// A plan for compacting a conversation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CompactionPlan {
    /// The index of the first message that stays unchanged.
    pub(crate) first_kept: usize,
    /// The turns to summarise.
    pub(crate) older: Vec<ChatMessage>,
    /// The beginning of a turn that is too long to keep whole. This part gets its own summary.
    pub(crate) prefix: Vec<ChatMessage>,
    /// The estimated tokens of the conversation.
    pub(crate) tokens_before: u64,
    files: FileUse,
}

impl CompactionPlan {
    /// Plans a compaction that keeps the newest messages. `None`: there is nothing to summarise. `previous` is the summary
    /// that the messages begin with, if any.
    pub(crate) fn new(
        messages: &[ChatMessage],
        keep_recent_tokens: u64,
        previous: Option<&CompactionEntry>,
    ) -> Option<Self> {
        let start = usize::from(previous.is_some());
        let first_kept = first_kept(messages, start, keep_recent_tokens)?;
        let turn_start = match messages[first_kept] {
            ChatMessage::User(_) => first_kept,
            _ => last_user(&messages[start..=first_kept]).map_or(first_kept, |index| start + index),
        };
        let (older, prefix) = (&messages[start..turn_start], &messages[turn_start..first_kept]);
        let mut files = previous.map(FileUse::of_summary).unwrap_or_default();
        older.iter().chain(prefix).for_each(|message| files.add(message));
        Some(Self {
            first_kept,
            older: older.to_vec(),
            prefix: prefix.to_vec(),
            tokens_before: estimate(messages),
            files,
        })
    }

    /// Returns the files that were read but not written.
    pub(crate) fn read_files(&self) -> Vec<String> {
        self.files.read.difference(&self.files.modified).cloned().collect()
    }

    /// Returns the files that were written.
    pub(crate) fn modified_files(&self) -> Vec<String> {
        self.files.modified.iter().cloned().collect()
    }

    /// Joins the summaries that the model wrote.
    pub(crate) fn summary(&self, older: Option<&str>, prefix: Option<&str>) -> String {
        let mut summary = older.unwrap_or("No prior history.").to_owned();
        if let Some(prefix) = prefix {
            summary.push_str(&format!("\n\n---\n\n**Turn Context (split turn):**\n\n{prefix}"));
        }
        for (tag, files) in [("read-files", self.read_files()), ("modified-files", self.modified_files())] {
            if !files.is_empty() {
                summary.push_str(&format!("\n\n<{tag}>\n{}\n</{tag}>", files.join("\n")));
            }
        }
        summary
    }
}

fn last_user(messages: &[ChatMessage]) -> Option<usize> {
    messages.iter().rposition(|message| matches!(message, ChatMessage::User(_)))
}

/// Returns the index of the first message to keep: the newest messages fill `keep_tokens`, and an answer of a tool is not
/// separated from its call. `None`: all messages stay.
fn first_kept(messages: &[ChatMessage], start: usize, keep_tokens: u64) -> Option<usize> {
    let may_be_first = |index: &usize| !matches!(messages[*index], ChatMessage::ToolResult(_));
    let mut kept = 0;
    let full = (start..messages.len()).rev().find(|index| {
        kept += tokens_of(&messages[*index]);
        kept >= keep_tokens
    })?;
    let first = (full..messages.len()).find(may_be_first)?;
    (first > start).then_some(first)
}

/// Estimates the tokens of a conversation: the model's last count, plus an estimate of the messages after it.
pub(crate) fn estimate(messages: &[ChatMessage]) -> u64 {
    let counted = messages.iter().enumerate().rev().find_map(|(index, message)| match message {
        ChatMessage::Assistant(turn) if context_tokens(&turn.usage) > 0 => {
            Some((index, context_tokens(&turn.usage)))
        }
        _ => None,
    });
    let (from, tokens) = counted.map_or((0, 0), |(index, tokens)| (index + 1, tokens));
    tokens + messages[from..].iter().map(tokens_of).sum::<u64>()
}

/// Returns the tokens that a conversation had at the end of a turn.
pub(crate) fn context_tokens(usage: &TokenUsage) -> u64 {
    match usage.total_tokens {
        0 => usage.input + usage.output + usage.cache_read + usage.cache_write,
        total => total,
    }
}

/// Estimates the tokens of a message, with four characters per token.
fn tokens_of(message: &ChatMessage) -> u64 {
    let chars: usize = message.content().iter().map(chars_of).sum();
    (chars as u64).div_ceil(4)
}

fn chars_of(block: &ContentBlock) -> usize {
    let units = |text: &str| text.encode_utf16().count();
    match block {
        ContentBlock::Text { text, .. } => units(text),
        ContentBlock::Thinking { thinking, .. } => units(thinking),
        ContentBlock::ToolCall(call) => units(&call.name) + units(&call.arguments.to_string()),
        ContentBlock::Image { .. } => IMAGE_CHARS,
    }
}

/// The files that tool calls read and wrote.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct FileUse {
    read: BTreeSet<String>,
    modified: BTreeSet<String>,
}

impl FileUse {
    fn of_summary(summary: &CompactionEntry) -> Self {
        Self {
            read: summary.read_files.iter().cloned().collect(),
            modified: summary.modified_files.iter().cloned().collect(),
        }
    }

    fn add(&mut self, message: &ChatMessage) {
        let ChatMessage::Assistant(turn) = message else { return };
        for call in turn.tool_calls() {
            let Some(path) = call.arguments.get("path").and_then(Value::as_str) else { continue };
            match call.name.as_str() {
                "read" | "read_file" => drop(self.read.insert(path.to_owned())),
                "write" | "edit" | "write_file" => drop(self.modified.insert(path.to_owned())),
                _ => {}
            }
        }
    }
}

/// The instructions for the model that writes a summary.
pub(crate) const SUMMARY_INSTRUCTIONS: &str = "You write summaries of conversations between a user and an AI agent that \
    works with tools. You are given such a conversation as text. Do not continue it and do not answer anything in it. \
    Write only the summary, in the format that is asked for.";

const SUMMARY_FORMAT: &str = "\
    ## Goal\n[What the user wants; one line for each goal]\n\n\
    ## Constraints & Preferences\n- [What the user asked to be kept to, or \"(none)\"]\n\n\
    ## Progress\n### Done\n- [x] [What is finished]\n\n### In Progress\n- [ ] [What is being worked on]\n\n\
    ### Blocked\n- [What stands in the way, if anything]\n\n\
    ## Key Decisions\n- **[Decision]**: [Why]\n\n\
    ## Next Steps\n1. [What comes next, in order]\n\n\
    ## Critical Context\n- [Facts that are needed to go on, or \"(none)\"]\n\n\
    Be brief. Keep paths, names of functions and the words of errors exactly as they are.";

/// Returns the prompt for a summary of whole turns. A previous summary is updated.
pub(crate) fn summary_request(messages: &[ChatMessage], previous: Option<&str>) -> String {
    let conversation = as_text(messages);
    match previous {
        None => format!(
            "<conversation>\n{conversation}\n</conversation>\n\nSummarize this conversation so that another agent can go \
             on with the work. Use this format:\n\n{SUMMARY_FORMAT}"
        ),
        Some(previous) => format!(
            "<conversation>\n{conversation}\n</conversation>\n\n<previous-summary>\n{previous}\n</previous-summary>\n\n\
             The conversation above continues the one that the previous summary is about. Bring the summary up to date: \
             keep everything that still matters, add what is new, and move what is finished to \"Done\". Use this \
             format:\n\n{SUMMARY_FORMAT}"
        ),
    }
}

/// Returns the prompt for a summary of the beginning of a turn.
pub(crate) fn prefix_request(messages: &[ChatMessage]) -> String {
    format!(
        "<conversation>\n{}\n</conversation>\n\nThis is the beginning of a turn that is too long to be kept whole; its end \
         is kept. Summarize what is needed to understand the end. Use this format:\n\n\
         ## Original Request\n[What the user asked for]\n\n\
         ## Early Progress\n- [What was decided and done]\n\n\
         ## Context for the End\n- [What is needed to understand it]\n\nBe brief.",
        as_text(messages)
    )
}

/// Renders a conversation as text, so that the model does not try to continue it.
fn as_text(messages: &[ChatMessage]) -> String {
    messages.iter().flat_map(paragraphs).collect::<Vec<_>>().join("\n\n")
}

fn paragraphs(message: &ChatMessage) -> Vec<String> {
    let texts = |content: &[ContentBlock]| {
        content.iter().filter_map(ContentBlock::as_text).collect::<Vec<_>>().join("")
    };
    let labelled = |label: &str, text: String| (!text.is_empty()).then(|| format!("[{label}]: {text}"));
    match message {
        ChatMessage::User(message) => labelled("User", texts(&message.content)).into_iter().collect(),
        ChatMessage::ToolResult(message) => {
            labelled("Tool result", shortened(&texts(&message.content))).into_iter().collect()
        }
        ChatMessage::Assistant(turn) => {
            let thinking = turn.content.iter().filter_map(|block| match block {
                ContentBlock::Thinking { thinking, .. } => Some(thinking.as_str()),
                _ => None,
            });
            let calls: Vec<String> = turn.tool_calls().map(call_as_text).collect();
            let parts = [
                labelled("Assistant thinking", thinking.collect::<Vec<_>>().join("\n")),
                labelled("Assistant", turn.text()),
                labelled("Assistant tool calls", calls.join("; ")),
            ];
            parts.into_iter().flatten().collect()
        }
    }
}

fn call_as_text(call: &crate::message::ToolCall) -> String {
    let arguments = match &call.arguments {
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| format!("{name}={value}"));
            fields.collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    };
    format!("{}({arguments})", call.name)
}

/// Shortens a text to [`MAX_RESULT_CHARS`] characters. Those of UTF-16 are counted, as elsewhere.
fn shortened(text: &str) -> String {
    let mut units = 0;
    let end = text.char_indices().find_map(|(end, char)| {
        units += char.len_utf16();
        (units > MAX_RESULT_CHARS).then_some(end)
    });
    match end {
        None => text.to_owned(),
        Some(end) => {
            let left = text[end..].encode_utf16().count();
            format!("{}\n\n[... {left} more characters truncated]", &text[..end])
        }
    }
}

/// Returns whether the conversation was too long although the model reported no failure: its token count exceeds the
/// context window.
pub(crate) fn is_silent_overflow(turn: &AssistantMessage, context_window: u64) -> bool {
    let read = turn.usage.input + turn.usage.cache_read;
    context_window > 0 && read > context_window
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::message::{StopReason, ToolCall, ToolResultMessage};
    use crate::model::{ModelApi, ModelInfo};
    use crate::usage::TokenPrices;

    fn model(context_window: u64, max_tokens: u32) -> ModelInfo {
        ModelInfo {
            id: "m".into(),
            provider: "p".into(),
            api: ModelApi::InProcess,
            context_window,
            max_tokens,
            reasoning: false,
            images: false,
            prices: TokenPrices::default(),
        }
    }

    fn limits(context_window: u64, max_tokens: u32) -> CompactionLimits {
        CompactionLimits::new(&CompactionOptions::default(), &model(context_window, max_tokens))
    }

    fn turn(content: Vec<ContentBlock>) -> ChatMessage {
        ChatMessage::Assistant(AssistantMessage {
            content,
            api: String::new(),
            provider: String::new(),
            model: String::new(),
            usage: TokenUsage::default(),
            stop_reason: StopReason::Stop,
            error_message: None,
            timestamp: 0,
        })
    }

    fn call(name: &str, path: &str) -> ContentBlock {
        let arguments = json!({"path": path});
        ContentBlock::ToolCall(ToolCall { id: "c".into(), name: name.into(), arguments })
    }

    fn result(text: &str) -> ChatMessage {
        ChatMessage::ToolResult(ToolResultMessage {
            tool_call_id: "c".into(),
            tool_name: "read".into(),
            content: vec![ContentBlock::text(text)],
            details: Value::Null,
            is_error: false,
            timestamp: 0,
        })
    }

    #[test]
    fn the_reserve_is_20000_tokens_but_no_more_than_the_model_writes_and_a_third_of_a_small_window() {
        assert_eq!(limits(200_000, 64_000).reserve_tokens, 20_000);
        assert_eq!(limits(200_000, 4_096).reserve_tokens, 4_096);
        assert_eq!(limits(30_000, 64_000).reserve_tokens, 10_000);
        assert!(limits(200_000, 64_000).is_nearly_full(180_001));
        assert!(!limits(200_000, 64_000).is_nearly_full(180_000));
        assert!(!limits(0, 64_000).is_nearly_full(u64::MAX));
    }

    #[test]
    fn the_newest_messages_stay_and_no_answer_is_parted_from_its_call() {
        let long = "x".repeat(400);
        let messages = [
            ChatMessage::user("first"),
            turn(vec![ContentBlock::text(long.clone())]),
            ChatMessage::user("second"),
            turn(vec![call("read", "a.txt")]),
            result(&long),
            turn(vec![ContentBlock::text("done")]),
        ];
        let plan = CompactionPlan::new(&messages, 50, None).unwrap();
        // The kept tokens end within the answer, so the next message is the first to stay.
        assert_eq!((plan.first_kept, plan.older.len(), plan.prefix.len()), (5, 2, 3));
        assert_eq!(plan.read_files(), ["a.txt"]);
        assert!(CompactionPlan::new(&messages, 1_000_000, None).is_none());
        assert!(CompactionPlan::new(&[], 1, None).is_none());
    }

    #[test]
    fn a_file_that_was_written_is_not_among_those_that_were_only_read() {
        let messages = [
            ChatMessage::user("go"),
            turn(vec![call("read", "a"), call("edit", "a"), call("read", "b")]),
            ChatMessage::user("next"),
            turn(vec![ContentBlock::text("y".repeat(80))]),
        ];
        let plan = CompactionPlan::new(&messages, 10, None).unwrap();
        assert_eq!((plan.read_files(), plan.modified_files()), (vec!["b".to_owned()], vec!["a".to_owned()]));
        let summary = plan.summary(Some("S"), Some("P"));
        let expected = "S\n\n---\n\n**Turn Context (split turn):**\n\nP\n\n<read-files>\nb\n</read-files>\n\n\
                        <modified-files>\na\n</modified-files>";
        assert_eq!(summary, expected);
    }

    #[test]
    fn a_long_answer_of_a_tool_is_shortened_for_the_summary() {
        let text = as_text(&[result(&"é".repeat(2_001))]);
        assert!(text.ends_with("é\n\n[... 1 more characters truncated]"), "{}", &text[text.len() - 60..]);
    }
}
