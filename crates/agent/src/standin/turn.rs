//! The turns that a stand-in plays.

use std::time::Duration;

use serde_json::{Value, json};

use crate::message::StopReason;
use crate::usage::TokenUsage;

/// An answer of a stand-in.
///
/// ```
/// use eyot_agent::standin::StandInTurn;
/// use serde_json::json;
///
/// let turns = [
///     StandInTurn::overloaded(),
///     StandInTurn::text("I look.").and_call("c1", "read", json!({"path": "a.txt"})),
///     StandInTurn::text("It is empty."),
/// ];
/// ```
#[derive(Debug, Clone)]
pub struct StandInTurn {
    pub(super) pieces: Vec<StandInPiece>,
    pub(super) stop_reason: StopReason,
    pub(super) usage: TokenUsage,
    pub(super) frame_delay: Duration,
    pub(super) ending: TurnEnding,
    /// The failure to return instead of an answer.
    pub(super) failure: Option<StandInFailure>,
}

/// A piece of an answer.
#[derive(Debug, Clone)]
pub(super) enum StandInPiece {
    Text(String),
    /// A text with `phase: commentary`.
    Commentary(String),
    Thinking {
        text: String,
        signature: String,
    },
    RedactedThinking(String),
    Call {
        id: String,
        name: String,
        arguments: String,
    },
}

/// The end of an answer.
#[derive(Debug, Clone)]
pub(super) enum TurnEnding {
    Whole,
    /// The connection breaks in the middle of the last piece.
    Cut,
    /// The answer ends in the middle of the last piece, as if that were its end.
    Unfinished,
    /// An error with this type comes in the middle of the last piece.
    Error(String),
}

/// A failure in place of an answer.
#[derive(Debug, Clone)]
pub(super) struct StandInFailure {
    pub(super) status: u16,
    pub(super) headers: Vec<(&'static str, String)>,
    pub(super) body: Value,
}

impl StandInTurn {
    /// Creates an answer that is one text.
    pub fn text(text: &str) -> Self {
        Self::empty().and_text(text)
    }

    /// Creates an answer that is one tool call.
    pub fn call(id: &str, tool: &str, arguments: Value) -> Self {
        Self::empty().and_call(id, tool, arguments)
    }

    /// Creates an answer without pieces.
    pub fn empty() -> Self {
        Self {
            pieces: Vec::new(),
            stop_reason: StopReason::Stop,
            usage: TokenUsage { input: 10, output: 5, ..TokenUsage::default() },
            frame_delay: Duration::ZERO,
            ending: TurnEnding::Whole,
            failure: None,
        }
    }

    /// Returns this answer with one more text.
    #[must_use]
    pub fn and_text(self, text: &str) -> Self {
        self.and(StandInPiece::Text(text.to_owned()))
    }

    /// The same answer with one more text that is said before the work is done. OpenAI's responses mark it; for the other APIs it
    /// is a text.
    #[must_use]
    pub fn and_commentary(self, text: &str) -> Self {
        self.and(StandInPiece::Commentary(text.to_owned()))
    }

    /// Returns this answer with reasoning. Chat completions have no signature.
    #[must_use]
    pub fn and_thinking(self, text: &str, signature: &str) -> Self {
        self.and(StandInPiece::Thinking { text: text.to_owned(), signature: signature.to_owned() })
    }

    /// Returns this answer with reasoning whose text is withheld. Only Anthropic's API has this; others leave it out.
    #[must_use]
    pub fn and_redacted_thinking(self, data: &str) -> Self {
        self.and(StandInPiece::RedactedThinking(data.to_owned()))
    }

    /// Returns this answer with one more tool call.
    #[must_use]
    pub fn and_call(self, id: &str, tool: &str, arguments: Value) -> Self {
        self.and_raw_call(id, tool, &arguments.to_string())
    }

    /// Returns this answer with a tool call whose arguments are this text, even if it is not JSON.
    #[must_use]
    pub fn and_raw_call(self, id: &str, tool: &str, arguments: &str) -> Self {
        let (id, name, arguments) = (id.to_owned(), tool.to_owned(), arguments.to_owned());
        Self { stop_reason: StopReason::ToolUse, ..self.and(StandInPiece::Call { id, name, arguments }) }
    }

    /// Returns this answer with another stop reason, such as [`StopReason::Length`] or [`StopReason::Refusal`].
    #[must_use]
    pub fn stopped_by(self, stop_reason: StopReason) -> Self {
        Self { stop_reason, ..self }
    }

    /// Returns this answer with these token counts.
    #[must_use]
    pub fn with_usage(self, usage: TokenUsage) -> Self {
        Self { usage, ..self }
    }

    /// Returns this answer with a delay before each frame.
    #[must_use]
    pub fn slowed(self, frame_delay: Duration) -> Self {
        Self { frame_delay, ..self }
    }

    /// Returns this answer with a connection that breaks in the middle of the last piece, such as a text or the arguments of
    /// a tool call.
    #[must_use]
    pub fn cut(self) -> Self {
        Self { ending: TurnEnding::Cut, ..self }
    }

    /// Returns this answer with an end in the middle of the last piece. The connection ends well, but the reason for the end of
    /// the turn is missing.
    #[must_use]
    pub fn unfinished(self) -> Self {
        Self { ending: TurnEnding::Unfinished, ..self }
    }

    /// Returns this answer with an error in the middle of the last piece. The type is for example `overloaded_error`.
    #[must_use]
    pub fn broken_by(self, error_type: &str) -> Self {
        Self { ending: TurnEnding::Error(error_type.to_owned()), ..self }
    }

    /// Creates a failure with this status, and an error with this type and message.
    pub fn failure(status: u16, error_type: &str, message: &str) -> Self {
        let body = json!({
            "type": "error",
            "error": {"type": error_type, "code": error_type, "message": message, "param": null},
        });
        let failure = StandInFailure { status, headers: Vec::new(), body };
        Self { failure: Some(failure), ..Self::empty() }
    }

    /// Creates the failure of an overloaded provider (529).
    pub fn overloaded() -> Self {
        Self::failure(529, "overloaded_error", "Overloaded")
    }

    /// Creates the failure for too many requests (429), with a time to wait.
    pub fn rate_limited(retry_after: Duration) -> Self {
        let milliseconds = retry_after.as_millis().to_string();
        Self::failure(429, "rate_limit_error", "Too many requests")
            .with_header("retry-after-ms", milliseconds)
    }

    /// Creates the failure of a provider's own error (500).
    pub fn server_error() -> Self {
        Self::failure(500, "api_error", "Internal server error")
    }

    /// Returns this failure with a header.
    #[must_use]
    pub fn with_header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        if let Some(failure) = &mut self.failure {
            failure.headers.push((name, value.into()));
        }
        self
    }

    fn and(mut self, piece: StandInPiece) -> Self {
        self.pieces.push(piece);
        self
    }
}

/// Splits a text into the pieces to send.
pub(super) fn chunks(text: &str) -> impl Iterator<Item = String> {
    let characters: Vec<char> = text.chars().collect();
    let size = (characters.len() / 3).clamp(1, 20);
    characters.chunks(size).map(String::from_iter).collect::<Vec<_>>().into_iter()
}
