//! The size that an event may have in a store.

use serde_json::{Value, json};

use crate::event::{AgentEvent, AgentEventKind};

/// The most bytes of JSON that a stored event has. Its largest fields are cut until it fits.
pub(crate) const MAX_STORED_EVENT_BYTES: usize = 256 << 10;
/// The characters that a field that was cut begins with.
const PREVIEW_CHARS: usize = 1024;

/// A field that may be cut.
enum LongField<'a> {
    Json(&'a mut Value),
    Text(&'a mut String),
}

/// Returns the event as a store keeps it.
pub(crate) fn stored_event(event: &AgentEvent) -> AgentEvent {
    let mut event = event.clone();
    // Each pass cuts one field, and an event has four fields at most that can be long.
    for _ in 0..4 {
        if size_of(&event) <= MAX_STORED_EVENT_BYTES {
            break;
        }
        let Some(longest) = long_fields(&mut event.kind).into_iter().max_by_key(LongField::size) else {
            break;
        };
        longest.cut();
    }
    event
}

fn size_of(value: &impl serde::Serialize) -> usize {
    serde_json::to_vec(value).map_or(0, |json| json.len())
}

fn long_fields(kind: &mut AgentEventKind) -> Vec<LongField<'_>> {
    match kind {
        AgentEventKind::RunStart { payload, .. } => vec![LongField::Json(payload)],
        AgentEventKind::RunEnd { result, .. }
        | AgentEventKind::ToolCall { result, .. }
        | AgentEventKind::Operation { result, .. } => vec![LongField::Json(result)],
        AgentEventKind::ToolStart { args, .. } => vec![LongField::Json(args)],
        AgentEventKind::TextDelta { text } => vec![LongField::Text(text)],
        AgentEventKind::ThinkingDelta { delta } => vec![LongField::Text(delta)],
        AgentEventKind::ThinkingEnd { content } => vec![LongField::Text(content)],
        AgentEventKind::TaskStart { prompt, .. } => vec![LongField::Text(prompt)],
        AgentEventKind::Task { result: Some(result), .. } => vec![LongField::Text(result)],
        AgentEventKind::Log { message, .. } => vec![LongField::Text(message)],
        _ => Vec::new(),
    }
}

impl LongField<'_> {
    fn size(&self) -> usize {
        match self {
            Self::Json(value) => size_of(value),
            Self::Text(text) => text.len(),
        }
    }

    fn cut(self) {
        let preview = |text: &str| text.chars().take(PREVIEW_CHARS).collect::<String>();
        match self {
            Self::Json(value) => {
                let text = value.to_string();
                let (size, preview) = (text.len(), preview(&text));
                *value = json!({"truncated": true, "originalSize": size, "preview": preview});
            }
            Self::Text(text) => *text = format!("{}… [truncated: {} bytes]", preview(text), text.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_at_the_limit_stays_as_it_is_and_a_longer_one_is_cut() {
        let of = |length: usize| AgentEvent::of_kind(AgentEventKind::TextDelta { text: "x".repeat(length) });
        let room = MAX_STORED_EVENT_BYTES - size_of(&of(0));
        assert_eq!(stored_event(&of(room)), of(room));
        let AgentEventKind::TextDelta { text } = stored_event(&of(room + 1)).kind else { panic!() };
        assert!(text.starts_with("xxx") && text.ends_with(&format!("[truncated: {} bytes]", room + 1)));
        assert!(text.len() < 2 * PREVIEW_CHARS);
    }

    #[test]
    fn a_long_result_says_its_size_and_how_it_begins() {
        let long = json!({"content": "y".repeat(MAX_STORED_EVENT_BYTES)});
        let call = AgentEventKind::ToolCall {
            tool_name: "t".into(),
            tool_call_id: "1".into(),
            is_error: false,
            result: long.clone(),
            duration_ms: 0,
        };
        let AgentEventKind::ToolCall { result, .. } = stored_event(&AgentEvent::of_kind(call)).kind else {
            panic!()
        };
        assert_eq!(
            (&result["truncated"], &result["originalSize"]),
            (&json!(true), &json!(long.to_string().len()))
        );
        assert!(result["preview"].as_str().is_some_and(|preview| preview.starts_with("{\"content\":\"yyy")));
    }
}
