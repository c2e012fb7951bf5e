//! Refusals as E2B's REST calls and envd's HTTP calls have them: a status, a code and a message.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use eyot::{Error, ErrorKind};
use serde_json::json;

/// The answer to a request that is not carried out.
#[derive(Debug)]
pub(super) struct E2bRefusal {
    pub status: StatusCode,
    pub message: String,
}

impl E2bRefusal {
    pub fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    /// Refuses a request for a sandbox that is not there.
    pub fn no_sandbox(id: &str) -> Self {
        Self::new(
            StatusCode::NOT_FOUND,
            format!("sandbox \"{id}\" doesn't exist or you don't have access to it"),
        )
    }
}

impl From<Error> for E2bRefusal {
    fn from(error: Error) -> Self {
        let status = match error.kind() {
            ErrorKind::Invalid
            | ErrorKind::IsDirectory
            | ErrorKind::NotDirectory
            | ErrorKind::Unsupported => StatusCode::BAD_REQUEST,
            ErrorKind::NotFound => StatusCode::NOT_FOUND,
            ErrorKind::AlreadyExists | ErrorKind::Conflict => StatusCode::CONFLICT,
            ErrorKind::Destroyed => StatusCode::BAD_GATEWAY,
            ErrorKind::Quota => StatusCode::INSUFFICIENT_STORAGE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self::new(status, error.to_string())
    }
}

impl IntoResponse for E2bRefusal {
    fn into_response(self) -> Response {
        let body = json!({ "code": self.status.as_u16(), "message": self.message });
        (self.status, Json(body)).into_response()
    }
}
