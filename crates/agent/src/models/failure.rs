//! Failures of providers: an HTTP status, a vendor's error body or a broken connection becomes a [`ModelError`].
//!
//! A vendor's typed fields (`error.type`, `error.code`) decide first, then the status. For some overlong conversations vendors
//! send no type: [`OVERFLOW_TEXTS`] lists the texts that they send instead, with their sources.

use std::time::{Duration, SystemTime};

use reqwest::StatusCode;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use serde_json::Value;

use crate::http::reason;
use crate::model::{ModelError, ModelErrorKind};
use crate::redaction::redact;

/// The most characters of a vendor's message that an error contains.
const MOST_MESSAGE_CHARS: usize = 2000;

/// The names in `error.type` and `error.code` that are more precise than the status. All are Anthropic's or OpenAI's, except
/// for `exceed_context_size_error`, which is llama.cpp's.
const TYPED: &[(&str, ModelErrorKind)] = &[
    ("context_length_exceeded", ModelErrorKind::ContextOverflow),
    ("exceed_context_size_error", ModelErrorKind::ContextOverflow),
    ("request_too_large", ModelErrorKind::ContextOverflow),
    ("string_above_max_length", ModelErrorKind::ContextOverflow),
    ("authentication_error", ModelErrorKind::Unauthorized),
    ("permission_error", ModelErrorKind::Unauthorized),
    ("billing_error", ModelErrorKind::Unauthorized),
    ("invalid_api_key", ModelErrorKind::Unauthorized),
    ("insufficient_quota", ModelErrorKind::Unauthorized),
    ("not_found_error", ModelErrorKind::NotFound),
    ("model_not_found", ModelErrorKind::NotFound),
    ("rate_limit_error", ModelErrorKind::RateLimited),
    ("rate_limit_exceeded", ModelErrorKind::RateLimited),
    ("overloaded_error", ModelErrorKind::Overloaded),
    ("server_is_overloaded", ModelErrorKind::Overloaded),
    ("slow_down", ModelErrorKind::Overloaded),
    ("service_unavailable", ModelErrorKind::Overloaded),
    ("timeout_error", ModelErrorKind::Timeout),
    ("api_error", ModelErrorKind::Unavailable),
    ("server_error", ModelErrorKind::Unavailable),
    ("internal_server_error", ModelErrorKind::Unavailable),
    ("vector_store_timeout", ModelErrorKind::Timeout),
];

/// Parts of vendors' messages that report an overlong conversation, in lower case. They apply to refused requests without a
/// typed reason.
const OVERFLOW_TEXTS: &[&str] = &[
    // Anthropic's Messages: `invalid_request_error`, "prompt is too long: 215000 tokens > 200000 maximum".
    "prompt is too long",
    // Anthropic's Messages: "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000".
    "exceed context limit",
    // OpenAI's responses, where `code` is missing behind some proxies: "Your input exceeds the context window of this model".
    "exceeds the context window",
    // vLLM and OpenRouter: "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens".
    "maximum context length is",
    // llama.cpp before it had a type: "the request exceeds the available context size".
    "exceeds the available context size",
    // LM Studio: "tokens to keep from the initial prompt is greater than the context length".
    "greater than the context length",
    // Ollama: "prompt too long; exceeded max context length".
    "exceeded max context length",
];

/// Returns the failure of an answer with this status.
pub(super) fn of_status(status: StatusCode, headers: &HeaderMap, body: &str) -> ModelError {
    let body: Value = serde_json::from_str(body).unwrap_or(Value::Null);
    let vendor = VendorError::read(&body);
    let kind = match vendor.typed_kind().unwrap_or_else(|| kind_of_status(status)) {
        ModelErrorKind::Invalid if vendor.says_overflow() => ModelErrorKind::ContextOverflow,
        kind => kind,
    };
    let message = match vendor.message {
        "" => format!("the provider answered {}", status.as_u16()),
        message => format!("the provider answered {}: {message}", status.as_u16()),
    };
    error(kind, &message).with_retry_after(retry_after(headers, SystemTime::now()))
}

/// Returns the failure that an event in a stream reports.
pub(super) fn of_stream(event: &Value) -> ModelError {
    let vendor = VendorError::read(event);
    let kind = match vendor.typed_kind().unwrap_or(ModelErrorKind::Invalid) {
        ModelErrorKind::Invalid if vendor.says_overflow() => ModelErrorKind::ContextOverflow,
        ModelErrorKind::Invalid if !vendor.is_request_wrong() => ModelErrorKind::Unavailable,
        kind => kind,
    };
    let reason = [vendor.message, vendor.kind, vendor.code].into_iter().find(|part| !part.is_empty());
    error(kind, &format!("the provider broke off its answer: {}", reason.unwrap_or("it gave no reason")))
}

/// The failure of an answer that ended for a reason that does not say that it is complete.
pub(super) fn of_end(reason: &str) -> ModelError {
    error(ModelErrorKind::Cut, &format!("the model's answer was not finished; its server says `{reason}`"))
}

/// Returns the failure of a connection. Of the address it has the host and the port alone: the rest may contain a password.
pub(super) fn of_request(failure: &reqwest::Error) -> ModelError {
    let cause = reason(failure);
    if failure.is_builder() {
        return error(ModelErrorKind::Invalid, "the request can't be sent: a header or the address is wrong");
    }
    if failure.is_connect() || failure.is_request() {
        let place = failure.url().map(|url| format!(" at {}", url.origin().ascii_serialization()));
        let place = place.unwrap_or_default();
        return error(ModelErrorKind::Unreachable, &format!("the provider{place} can't be reached: {cause}"));
    }
    if failure.is_timeout() {
        return error(ModelErrorKind::Timeout, "the provider did not answer in time");
    }
    error(ModelErrorKind::Cut, &format!("the model's answer was cut: {cause}"))
}

fn error(kind: ModelErrorKind, message: &str) -> ModelError {
    // A secret that is cut would not be found.
    let short: String = redact(message.to_owned()).chars().take(MOST_MESSAGE_CHARS).collect();
    ModelError::new(kind, short)
}

fn kind_of_status(status: StatusCode) -> ModelErrorKind {
    match status.as_u16() {
        401..=403 => ModelErrorKind::Unauthorized,
        404 => ModelErrorKind::NotFound,
        408 | 504 => ModelErrorKind::Timeout,
        413 => ModelErrorKind::ContextOverflow,
        429 => ModelErrorKind::RateLimited,
        503 | 529 => ModelErrorKind::Overloaded,
        500..=599 => ModelErrorKind::Unavailable,
        400..=499 => ModelErrorKind::Invalid,
        _ => ModelErrorKind::Malformed,
    }
}

/// Returns the time to wait that an answer asks for: `retry-after-ms`, or `retry-after` in seconds or as a date.
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    // More than a `Duration` can hold is the most that it can.
    let time = |seconds: f64| {
        (seconds >= 0.0).then(|| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
    };
    let ms = text("retry-after-ms").and_then(|ms| ms.parse::<f64>().ok());
    if let Some(wait) = ms.and_then(|ms| time(ms / 1000.0)) {
        return Some(wait);
    }
    let after = text(RETRY_AFTER.as_str())?;
    match after.parse::<f64>() {
        Ok(seconds) => time(seconds),
        Err(_) => {
            let at = httpdate::parse_http_date(after).ok()?;
            Some(at.duration_since(now).unwrap_or_default())
        }
    }
}

/// A vendor's error. OpenAI and Anthropic use the same fields, under `error` or at the top.
struct VendorError<'a> {
    kind: &'a str,
    code: &'a str,
    message: &'a str,
}

impl<'a> VendorError<'a> {
    fn read(body: &'a Value) -> Self {
        let fields = if body["error"].is_object() { &body["error"] } else { body };
        let text = |name: &str| fields[name].as_str().unwrap_or_default();
        // Ollama and others send only `{"error": "..."}`.
        let message = body["error"].as_str().unwrap_or_else(|| text("message"));
        Self { kind: text("type"), code: text("code"), message }
    }

    fn typed_kind(&self) -> Option<ModelErrorKind> {
        let kind = |name: &str| TYPED.iter().find(|(typed, _)| *typed == name).map(|(_, kind)| *kind);
        kind(self.code).or_else(|| kind(self.kind))
    }

    /// Returns whether the vendor reports that the request itself is wrong.
    fn is_request_wrong(&self) -> bool {
        self.kind == "invalid_request_error" || !self.code.is_empty()
    }

    fn says_overflow(&self) -> bool {
        let said = self.message.to_lowercase();
        OVERFLOW_TEXTS.iter().any(|text| said.contains(text))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kind(status: u16, body: &Value) -> ModelErrorKind {
        of_status(StatusCode::from_u16(status).unwrap(), &HeaderMap::new(), &body.to_string()).kind
    }

    #[test]
    fn typed_fields_decide_before_the_status() {
        let typed = |kind: &str, code: &str| json!({"error": {"type": kind, "code": code, "message": "m"}});
        assert_eq!(
            kind(400, &typed("invalid_request_error", "context_length_exceeded")),
            ModelErrorKind::ContextOverflow
        );
        assert_eq!(
            kind(429, &typed("insufficient_quota", "insufficient_quota")),
            ModelErrorKind::Unauthorized
        );
        assert_eq!(
            kind(401, &typed("invalid_request_error", "invalid_api_key")),
            ModelErrorKind::Unauthorized
        );
        assert_eq!(kind(200 + 300, &typed("overloaded_error", "")), ModelErrorKind::Overloaded);
    }

    #[test]
    fn a_status_alone_decides_where_no_field_does() {
        let kinds = [
            (400, ModelErrorKind::Invalid),
            (401, ModelErrorKind::Unauthorized),
            (403, ModelErrorKind::Unauthorized),
            (404, ModelErrorKind::NotFound),
            (413, ModelErrorKind::ContextOverflow),
            (429, ModelErrorKind::RateLimited),
            (500, ModelErrorKind::Unavailable),
            (502, ModelErrorKind::Unavailable),
            (503, ModelErrorKind::Overloaded),
            (529, ModelErrorKind::Overloaded),
        ];
        for (status, expected) in kinds {
            assert_eq!(kind(status, &Value::Null), expected, "{status}");
        }
    }

    #[test]
    fn a_conversation_that_is_too_long_is_known_by_the_vendors_text_where_there_is_no_type() {
        let body = |message: &str| json!({"error": {"type": "invalid_request_error", "message": message}});
        let long = body("prompt is too long: 215000 tokens > 200000 maximum");
        assert_eq!(kind(400, &long), ModelErrorKind::ContextOverflow);
        assert_eq!(kind(400, &body("tools.0.name: too long")), ModelErrorKind::Invalid);
        // The status has priority over the text: this is a rate limit.
        assert_eq!(kind(429, &long), ModelErrorKind::RateLimited);
    }

    #[test]
    fn a_secret_at_the_end_of_what_is_repeated_is_hidden_too() {
        crate::redaction::register_secret("canary-key-at-the-end");
        let long = format!("{} canary-key-at-the-end", "x".repeat(MOST_MESSAGE_CHARS - 56));
        let failure = of_stream(&json!({"error": {"type": "api_error", "message": long}}));
        assert!(!failure.message.contains("canary"), "{failure}");
        assert!(failure.message.chars().count() <= MOST_MESSAGE_CHARS);
    }

    #[test]
    fn an_error_in_a_stream_is_known_by_its_type() {
        let of =
            |kind: &str| of_stream(&json!({"type": "error", "error": {"type": kind, "message": "m"}})).kind;
        assert_eq!(of("overloaded_error"), ModelErrorKind::Overloaded);
        assert_eq!(of("rate_limit_error"), ModelErrorKind::RateLimited);
        assert_eq!(of("api_error"), ModelErrorKind::Unavailable);
        assert_eq!(of("invalid_request_error"), ModelErrorKind::Invalid);
        assert_eq!(of("something_new"), ModelErrorKind::Unavailable);
    }

    #[test]
    fn the_time_to_wait_is_read_in_each_of_its_forms() {
        let wait = |name: &'static str, value: &str| {
            let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
            let headers = HeaderMap::from_iter([(name.parse().unwrap(), value.parse().unwrap())]);
            retry_after(&headers, now).map(|wait| wait.as_millis())
        };
        assert_eq!(wait("retry-after", "7"), Some(7000));
        assert_eq!(wait("retry-after", "0.5"), Some(500));
        assert_eq!(wait("retry-after-ms", "250"), Some(250));
        assert_eq!(wait("retry-after", "Sun, 06 Nov 1994 08:49:40 GMT"), Some(3000));
        assert_eq!(wait("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT"), Some(0));
        assert_eq!(wait("retry-after", "soon"), None);
        assert_eq!(wait("retry-after", "-1"), None);
        // A time that is no time at all is one that is too long, and not one that was not said.
        assert!(wait("retry-after", "1e400").is_some_and(|wait| wait > 1 << 60));
        let both = HeaderMap::from_iter([
            ("retry-after-ms".parse().unwrap(), "-1".parse().unwrap()),
            (RETRY_AFTER, "7".parse().unwrap()),
        ]);
        assert_eq!(retry_after(&both, SystemTime::now()), Some(Duration::from_secs(7)));
    }
}
