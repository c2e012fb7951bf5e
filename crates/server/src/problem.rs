//! Errors on the wire: problems by RFC 9457. The error's kind decides the status, and its sentence
//! is the detail.

use std::collections::BTreeMap;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use eyot::wire::{PROBLEM_JSON, Problem, Unsupported};
use eyot::{Error, ErrorKind, SandboxOperationUnsupported};
use utoipa::IntoResponses;
use utoipa::openapi::{self, Content, Ref, RefOr, ResponseBuilder};

/// An error in the form in which a handler returns it.
#[derive(Debug)]
pub struct Refusal {
    error: Error,
    status: StatusCode,
    no_sandbox: bool,
    place: Option<Box<FieldPlace>>,
}

/// The place in the request of the field that an error names.
#[derive(Debug)]
enum FieldPlace {
    /// In this object of the body.
    Within(&'static str),
    /// Under another name.
    Called { field: &'static str, name: &'static str },
}

impl Refusal {
    /// Refuses because there is no such sandbox. A sandbox of another key's pool is refused in the
    /// same words.
    pub fn no_sandbox(id_or_name: &str) -> Self {
        let message = format!("there is no sandbox `{id_or_name}`");
        let hint = "`eyot ls` shows those that are there; over HTTP, GET /v1/sandboxes";
        Self { no_sandbox: true, ..Error::new(ErrorKind::NotFound, message).with_hint(hint).into() }
    }

    /// Refuses because the request has no right key.
    pub fn unauthorized(sentence: &'static str) -> Self {
        let hint = "`eyot keys create NAME` on the server's host makes a key; put it into EYOT_API_KEY for `eyot` and the SDKs, over HTTP into `Authorization: Bearer KEY`";
        let error = Error::new(ErrorKind::Permission, sentence).with_hint(hint);
        Self { status: StatusCode::UNAUTHORIZED, ..error.into() }
    }

    /// Refuses with another status than that of the error's kind.
    pub fn with_status(error: Error, status: StatusCode) -> Self {
        Self { status, ..error.into() }
    }

    /// Refuses a request that is wrong as HTTP.
    pub fn of_status(status: StatusCode, sentence: &'static str) -> Self {
        Self { status, ..Error::new(ErrorKind::Invalid, sentence).into() }
    }

    /// Says that the field it names is one of the object `spec` of the request's body.
    pub fn in_spec(self) -> Self {
        Self { place: Some(Box::new(FieldPlace::Within("spec"))), ..self }
    }

    /// Calls a field as the request does.
    pub fn calling(self, field: &'static str, name: &'static str) -> Self {
        Self { place: Some(Box::new(FieldPlace::Called { field, name })), ..self }
    }

    /// Refuses a body that has not arrived in this time.
    pub fn slow(limit_ms: u64) -> Self {
        let message = format!("read the request: its body took longer than {limit_ms} ms");
        Self { status: StatusCode::REQUEST_TIMEOUT, ..Error::new(ErrorKind::Timeout, message).into() }
    }

    /// Tells whether the reason is that a sandbox sleeps.
    pub fn is_sleeping(&self) -> bool {
        self.error.is_sleeping()
    }

    fn fell_asleep(&self) -> Option<FellAsleep> {
        let before_it_began = self.error.had_no_effect();
        self.is_sleeping().then_some(FellAsleep { before_it_began })
    }

    /// Tells whether the reason is that there is no such sandbox.
    pub fn is_no_sandbox(&self) -> bool {
        self.no_sandbox
    }

    /// Finds the field that the error names first, in back quotes, as it stands in the request.
    fn field(&self) -> Option<String> {
        let rest =
            self.error.reason().strip_prefix('`').filter(|_| self.error.kind() == ErrorKind::Invalid)?;
        let (field, _) = rest.split_once('`')?;
        Some(match self.place.as_deref() {
            Some(FieldPlace::Within(object)) => format!("{object}.{field}"),
            Some(FieldPlace::Called { field: named, name }) if *named == field => (*name).to_owned(),
            _ => field.to_owned(),
        })
    }

    /// Returns the problem that is sent to the client.
    pub fn problem(&self) -> Problem {
        let (kind, detail) = (self.error.kind(), self.error.to_string());
        Problem {
            problem_type: format!("urn:eyot:problem:{kind}"),
            title: title(kind).to_owned(),
            status: self.status.as_u16(),
            field: self.field(),
            reason: self.error.reason().to_owned(),
            detail,
            kind: kind.to_string(),
            hint: self.error.hint().map(str::to_owned),
            sleeping: self.error.is_sleeping(),
            dead: self.error.is_dead(),
            sandbox: self.error.sleeping_sandbox().map(str::to_owned),
            no_sandbox: self.no_sandbox,
            unsupported: unsupported(&self.error),
        }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Self { status: status(error.kind()), error, no_sandbox: false, place: None }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        if self.error.kind() == ErrorKind::Internal {
            tracing::error!(error = %self.error, source = ?std::error::Error::source(&self.error), "a request failed");
        }
        let fell_asleep = self.fell_asleep();
        let problem = self.problem();
        let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&problem).unwrap_or_default();
        let kind = [(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON))];
        let mut response = (status, kind, body).into_response();
        if let Some(fell_asleep) = fell_asleep {
            response.extensions_mut().insert(fell_asleep);
        }
        response
    }
}

/// Marks an answer so that the server may repeat its request: the sandbox slept when it was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FellAsleep {
    /// Set if the request has had no effect.
    pub before_it_began: bool,
}

/// The responses that the API's document declares for every refusal.
pub struct Problems;

impl IntoResponses for Problems {
    fn responses() -> BTreeMap<String, RefOr<openapi::Response>> {
        let content = || Content::new(Some(Ref::from_schema_name("Problem")));
        let meanings = [
            ("4XX", "Refused. The problem says why, and what can be done."),
            ("503", "Not now: the sandbox sleeps or is dead, or the provider cannot be reached."),
        ];
        let described = |(status, meaning): (&str, &str)| {
            let response = ResponseBuilder::new().description(meaning).content(PROBLEM_JSON, content());
            (status.to_owned(), RefOr::T(response.build()))
        };
        meanings.map(described).into()
    }
}

/// Returns the HTTP status of a kind of error.
pub fn status(kind: ErrorKind) -> StatusCode {
    match kind {
        ErrorKind::Invalid => StatusCode::BAD_REQUEST,
        ErrorKind::Permission => StatusCode::FORBIDDEN,
        ErrorKind::NotFound => StatusCode::NOT_FOUND,
        ErrorKind::AlreadyExists
        | ErrorKind::IsDirectory
        | ErrorKind::NotDirectory
        | ErrorKind::Conflict
        | ErrorKind::Cancelled => StatusCode::CONFLICT,
        ErrorKind::Destroyed => StatusCode::GONE,
        ErrorKind::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorKind::Unsupported => StatusCode::UNPROCESSABLE_ENTITY,
        ErrorKind::Quota => StatusCode::TOO_MANY_REQUESTS,
        ErrorKind::Unavailable | ErrorKind::Setup => StatusCode::SERVICE_UNAVAILABLE,
        ErrorKind::Timeout => StatusCode::GATEWAY_TIMEOUT,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

fn title(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Invalid => "The request is wrong",
        ErrorKind::NotFound => "Not found",
        ErrorKind::AlreadyExists => "Already there",
        ErrorKind::IsDirectory => "A directory where a file was needed",
        ErrorKind::NotDirectory => "No directory where one was needed",
        ErrorKind::Permission => "Not permitted",
        ErrorKind::TooLarge => "Too large",
        ErrorKind::Quota => "A quota is used up",
        ErrorKind::Unsupported => "Not supported",
        ErrorKind::Destroyed => "Destroyed",
        ErrorKind::Unavailable => "Not available",
        ErrorKind::Timeout => "Timed out",
        ErrorKind::Cancelled => "Cancelled",
        ErrorKind::Conflict => "Conflict",
        ErrorKind::Setup => "The sandbox could not be set up",
        _ => "Internal error",
    }
}

fn unsupported(error: &Error) -> Option<Unsupported> {
    let source = std::error::Error::source(error)?.downcast_ref::<SandboxOperationUnsupported>()?;
    let SandboxOperationUnsupported { operation, provider, options } = source.clone();
    Some(Unsupported { operation, provider, options })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_problem_says_what_failed_and_why_and_names_the_field() {
        let error = Error::invalid("limits.pids", "must be at least 1").context("create sandbox");
        let problem = Refusal::from(error.with_hint("leave it out")).problem();
        assert_eq!((problem.status, problem.kind.as_str()), (400, "invalid"));
        assert_eq!(problem.detail, "create sandbox: `limits.pids` must be at least 1");
        assert_eq!(problem.reason, "`limits.pids` must be at least 1");
        assert_eq!(problem.field.as_deref(), Some("limits.pids"));
        assert_eq!(problem.hint.as_deref(), Some("leave it out"));
    }

    #[test]
    fn only_a_defect_is_an_internal_server_error() {
        for kind in ErrorKind::ALL {
            assert_eq!(status(kind).as_u16() == 500, kind == ErrorKind::Internal, "{kind}");
        }
    }

    #[test]
    fn a_sleeping_sandbox_says_so() {
        let problem = Refusal::from(Error::sleeping("dev").context("read `a`")).problem();
        assert!(problem.sleeping && problem.status == 503);
        let text = serde_json::to_string(&Refusal::no_sandbox("x").problem()).unwrap();
        assert!(text.contains("\"no_sandbox\":true") && !text.contains("sleeping"), "{text}");
    }
}
