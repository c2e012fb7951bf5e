//! Redaction: keeps the values of variables and registered secrets out of events.

use std::sync::{PoisonError, RwLock};

use serde_json::{Map, Value};

use crate::credentials::{MIN_SECRET_BYTES, REDACTED, hidden, names_credential, secret_forms};
use crate::event::{AgentEventKind, LogLevel};

static SECRETS: RwLock<Vec<String>> = RwLock::new(Vec::new());

/// Registers a value in each of its forms, if its name is that of a credential.
pub(crate) fn register_named(name: &str, value: &str) {
    if names_credential(name) {
        secret_forms(value).iter().for_each(|form| register_secret(form));
    }
}

/// Registers a secret, such as a key. From now on, no event of this process shows it. A secret of less than eight bytes is
/// ignored.
pub fn register_secret(secret: &str) {
    let is_known = || {
        let secrets = SECRETS.read().unwrap_or_else(PoisonError::into_inner);
        secrets.iter().any(|known| known == secret)
    };
    // A key is registered at each turn, and known at all but the first.
    if secret.len() < MIN_SECRET_BYTES || is_known() {
        return;
    }
    let mut secrets = SECRETS.write().unwrap_or_else(PoisonError::into_inner);
    if !secrets.iter().any(|known| known == secret) {
        secrets.push(secret.to_owned());
        // Longer secrets go first, because they may contain shorter ones.
        secrets.sort_by_key(|known| std::cmp::Reverse(known.len()));
    }
}

/// Returns a text without registered secrets.
pub(crate) fn redact(text: String) -> String {
    let secrets = SECRETS.read().unwrap_or_else(PoisonError::into_inner);
    hidden(text, &secrets)
}

/// Returns a value without registered secrets.
pub(crate) fn redact_value(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(redact(text)),
        Value::Array(items) => Value::Array(items.into_iter().map(redact_value).collect()),
        Value::Object(fields) => {
            let fields = fields.into_iter().map(|(name, value)| (redact(name), redact_value(value)));
            Value::Object(fields.collect())
        }
        other => other,
    }
}

/// Returns an event without registered secrets.
pub(crate) fn redact_event(kind: AgentEventKind) -> AgentEventKind {
    let secrets = SECRETS.read().unwrap_or_else(PoisonError::into_inner);
    let is_clean = |text: &str| !secrets.iter().any(|secret| text.contains(secret.as_str()));
    // Most events are pieces of text.
    match &kind {
        _ if secrets.is_empty() => return kind,
        AgentEventKind::TextDelta { text } | AgentEventKind::ThinkingDelta { delta: text }
            if is_clean(text) =>
        {
            return kind;
        }
        _ => {}
    }
    let Ok(value) = serde_json::to_value(&kind) else { return kind };
    if !has_secret(&value, &secrets) {
        return kind;
    }
    drop(secrets);
    serde_json::from_value(redact_value(value)).unwrap_or(AgentEventKind::Log {
        level: LogLevel::Warn,
        message: "an event is left out: a secret is in an unexpected part of it".to_owned(),
        attributes: Map::new(),
    })
}

fn has_secret(value: &Value, secrets: &[String]) -> bool {
    let in_text = |text: &str| secrets.iter().any(|secret| text.contains(secret.as_str()));
    match value {
        Value::String(text) => in_text(text),
        Value::Array(items) => items.iter().any(|item| has_secret(item, secrets)),
        Value::Object(fields) => {
            fields.iter().any(|(name, value)| in_text(name) || has_secret(value, secrets))
        }
        _ => false,
    }
}

/// A redactor for text that comes in pieces. The end of a piece is held back while it may be the beginning of a secret.
#[derive(Debug, Default)]
pub(crate) struct RedactedPieces {
    held: String,
}

impl RedactedPieces {
    /// Takes a piece, and returns the text that may be shown now.
    pub(crate) fn push(&mut self, piece: &str) -> String {
        self.held.push_str(piece);
        let text = redact(std::mem::take(&mut self.held));
        let secrets = SECRETS.read().unwrap_or_else(PoisonError::into_inner);
        let held = secrets.iter().map(|secret| common_end(&text, secret)).max().unwrap_or_default();
        let (shown, held) = text.split_at(text.len() - held);
        held.clone_into(&mut self.held);
        shown.to_owned()
    }

    /// Returns the text that was held back, at the end of all pieces.
    pub(crate) fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }
}

/// Returns the length of the longest end of a text that may be the beginning of a secret.
fn common_end(text: &str, secret: &str) -> usize {
    let longest = text.len().min(secret.len().saturating_sub(1));
    let is_common = |length: &usize| {
        text.is_char_boundary(text.len() - length) && secret.starts_with(&text[text.len() - length..])
    };
    (1..=longest).rev().find(is_common).unwrap_or_default()
}

/// Returns the arguments of a tool call for events, without the values of variables.
pub(crate) fn shown_arguments(arguments: &Value) -> Value {
    let mut arguments = arguments.clone();
    if let Some(env) = arguments.get_mut("env").and_then(Value::as_object_mut) {
        let names = env.keys().cloned().map(|name| (name, Value::String(REDACTED.to_owned())));
        *env = names.collect::<Map<_, _>>();
    }
    arguments
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_values_of_variables_are_not_shown() {
        let shown = shown_arguments(&json!({"command": "true", "env": {"TOKEN": "anything"}}));
        assert_eq!(shown, json!({"command": "true", "env": {"TOKEN": "<redacted>"}}));
    }

    #[test]
    fn a_registered_secret_is_in_no_event_and_a_short_text_is_no_secret() {
        register_secret("canary-7d1f");
        register_secret("x");
        let result = json!({"text": "a canary-7d1f!", "list": [{"canary-7d1f": "x"}]});
        let event = AgentEventKind::RunEnd { result, is_error: false, error: None, duration_ms: 1 };
        let AgentEventKind::RunEnd { result, .. } = redact_event(event) else { panic!() };
        assert_eq!(result, json!({"text": "a <redacted>!", "list": [{"<redacted>": "x"}]}));
    }

    #[test]
    fn a_secret_that_comes_in_pieces_is_not_shown_either() {
        register_secret("canary-90ab");
        let mut pieces = RedactedPieces::default();
        let shown: Vec<String> =
            ["it is ca", "nary-", "90ab, not can", "dy"].iter().map(|piece| pieces.push(piece)).collect();
        assert_eq!(shown, ["it is ", "", "<redacted>, not ", "candy"]);
        assert_eq!(pieces.push("the end is ca"), "the end is ");
        assert_eq!(pieces.finish(), "ca");
    }
}
