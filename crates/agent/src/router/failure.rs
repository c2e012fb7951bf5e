//! Failures of a route, in Flue's envelope: `{"error": {"type", "message", "details"}}`.

use axum::Json;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use eyot::{Error, ErrorKind};
use serde::Serialize;
use serde_json::{Value, json};

use crate::failure::AgentError;

/// The header that names a run.
pub(super) const RUN_ID: HeaderName = HeaderName::from_static("x-flue-run-id");

/// A failure of a route.
#[derive(Debug)]
pub struct RouteFailure {
    status: StatusCode,
    error: Box<FailureBody>,
    headers: Vec<(HeaderName, String)>,
}

/// The body of a failure, as on the wire.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct FailureBody {
    /// The kind of the failure, which programs may rely on.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The failure, in one sentence.
    message: String,
    /// Advice for the caller.
    details: String,
    /// Advice for the author of the agents. Only a local server gives it.
    #[serde(skip_serializing_if = "String::is_empty")]
    #[schema(required = false)]
    dev: String,
    /// Data about the failure.
    #[serde(skip_serializing_if = "Value::is_null")]
    #[schema(value_type = Object, required = false)]
    meta: Value,
}

/// The envelope of a failure.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct FailureEnvelope {
    error: FailureBody,
}

/// One thing that is wrong with a parameter.
#[derive(Debug, Serialize)]
pub(super) struct Issue {
    pub(super) path: [&'static str; 1],
    pub(super) message: String,
}

impl RouteFailure {
    fn new(status: StatusCode, kind: &'static str, message: String, details: impl Into<String>) -> Self {
        let (details, dev, meta) = (details.into(), String::new(), Value::Null);
        Self {
            status,
            error: Box::new(FailureBody { kind, message, details, dev, meta }),
            headers: Vec::new(),
        }
    }

    /// The failure of a route that has other methods only.
    pub(super) fn method_not_allowed(allowed: &'static str) -> Self {
        let message = "This path does not take the method of the request.".to_owned();
        let failure = Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "method_not_allowed",
            message,
            format!("It takes {allowed} only."),
        );
        failure.with_header(header::ALLOW, allowed)
    }

    pub(super) fn unsupported_media_type(received: Option<&str>) -> Self {
        let sent = match received {
            Some(received) => format!("The request has the Content-Type \"{received}\"."),
            None => "The request has no Content-Type.".to_owned(),
        };
        let details = format!(
            "{sent} Send JSON with \"Content-Type: application/json\", or leave out both the body and the header."
        );
        let message = "The body of the request must be application/json.".to_owned();
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", message, details)
    }

    pub(super) fn invalid_json(why: &str) -> Self {
        let message = "The body of the request is not valid JSON.".to_owned();
        Self::new(StatusCode::BAD_REQUEST, "invalid_json", message, format!("The parser says: {why}"))
    }

    pub(super) fn agent_not_found(name: &str, others: &[String]) -> Self {
        let message = format!("There is no agent \"{name}\".");
        let failure =
            Self::new(StatusCode::NOT_FOUND, "agent_not_found", message, "Check the name of the agent.");
        let others = if others.is_empty() { "none".to_owned() } else { others.join(", ") };
        failure.with_dev(format!("There are: {others}."))
    }

    pub(super) fn agent_not_webhook(name: &str) -> Self {
        let message = format!("The agent \"{name}\" can't be started over HTTP.");
        Self::new(
            StatusCode::NOT_FOUND,
            "agent_not_webhook",
            message,
            "Its author offers it with `webhook: true`.",
        )
    }

    pub(super) fn run_not_found(id: &str) -> Self {
        let message = format!("There is no run \"{id}\".");
        let details = "Check its id. An agent's instance keeps its last 50 runs that have ended.";
        Self::new(StatusCode::NOT_FOUND, "run_not_found", message, details)
    }

    pub(super) fn invalid_request(details: &str) -> Self {
        let message = "The request is wrong.".to_owned();
        Self::new(StatusCode::BAD_REQUEST, "invalid_request", message, details)
    }

    pub(super) fn validation_failed(issues: &[Issue]) -> Self {
        let message = "A parameter of the request is wrong.".to_owned();
        let details: Vec<&str> = issues.iter().map(|issue| issue.message.as_str()).collect();
        let mut failure = Self::new(StatusCode::BAD_REQUEST, "validation_failed", message, details.join(" "));
        failure.error.meta = json!({"issues": issues});
        failure
    }

    pub(super) fn too_large() -> Self {
        let message = "The body of the request is too large.".to_owned();
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "payload_too_large", message, "Send less.")
    }

    /// A failure that is told to the log and not to the caller.
    pub(super) fn internal(error: &dyn std::error::Error) -> Self {
        tracing::error!(%error, "a request about agents failed");
        let message = "An internal error occurred.".to_owned();
        let details = "The server met an error that it did not expect. Its log says more.";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", message, details)
    }

    /// The failure of a run. Its reason is told to the agents' author: a stranger reads it with the run, if it is theirs.
    pub(super) fn of_run(error: &AgentError) -> Self {
        tracing::warn!(%error, "a run failed");
        let message = "The run failed.".to_owned();
        let details = "GET /admin/runs lists the runs, and GET /runs/ID says why one failed.";
        let failure = Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", message, details);
        failure.with_dev(error.to_string())
    }

    /// The same failure with what helps the agents' author.
    pub(super) fn with_dev(mut self, dev: String) -> Self {
        self.error.dev = dev;
        self
    }

    /// The same failure without what only the agents' author may read, unless the server is local.
    pub(super) fn shown(mut self, is_local: bool) -> Self {
        if !is_local {
            self.error.dev.clear();
        }
        self
    }

    pub(super) fn with_header(mut self, name: HeaderName, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }
}

impl From<Error> for RouteFailure {
    fn from(error: Error) -> Self {
        let details = error.hint().unwrap_or("Try again later.").to_owned();
        match error.kind() {
            ErrorKind::Quota => Self::new(StatusCode::TOO_MANY_REQUESTS, "quota", error.to_string(), details),
            ErrorKind::Unavailable => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", error.to_string(), details)
            }
            // What a request says is checked before: the agent's file, or the settings, are wrong.
            ErrorKind::Invalid | ErrorKind::Unsupported => {
                tracing::warn!(%error, "an agent can't be used");
                let message = "The agent can't be used as it is set up.".to_owned();
                let details = "Its author finds the reason in the server's log, and in GET /v1/agents.";
                let failure = Self::new(StatusCode::SERVICE_UNAVAILABLE, "agent_unusable", message, details);
                failure.with_dev(error.to_string())
            }
            _ => Self::internal(&error),
        }
    }
}

impl IntoResponse for RouteFailure {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(FailureEnvelope { error: *self.error })).into_response();
        for (name, value) in self.headers {
            if let Ok(value) = HeaderValue::from_str(&value) {
                response.headers_mut().insert(name, value);
            }
        }
        response
    }
}

/// Answers a request that no route takes.
pub async fn route_not_found(method: Method, uri: Uri) -> RouteFailure {
    let message = format!("No route takes {method} {}.", uri.path());
    let details = "Agents are started by POST /agents/NAME/ID.";
    RouteFailure::new(StatusCode::NOT_FOUND, "route_not_found", message, details)
}

/// The answer of the admin routes where they have nothing, which is plain text.
pub(super) async fn nothing_here() -> (StatusCode, &'static str) {
    (StatusCode::NOT_FOUND, "404 Not Found")
}
