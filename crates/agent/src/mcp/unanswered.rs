//! The reasons why a request has no answer.

use rmcp::service::ServiceError;
use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::StreamableHttpError;

use super::failure::HttpFailure;
use super::http::McpHttpClient;

/// Returns whether the server may have begun with a call that failed like this.
pub(super) fn may_have_run(error: &ServiceError) -> bool {
    !matches!(
        http_failure(error),
        Some(HttpFailure::Unreachable(_) | HttpFailure::Refused { status: 400..=499, .. })
    )
}

/// Returns why a request has no answer, in words.
pub(super) fn reason(http: &McpHttpClient, error: &ServiceError) -> String {
    if let ServiceError::McpError(error) = error {
        return format!("{} (code {})", error.message, error.code.0);
    }
    if let Some(failure) = failure_of(http, error) {
        return failure.to_string();
    }
    match error {
        ServiceError::TransportSend(error) => unsent(error),
        _ => HttpFailure::Garbage.to_string(),
    }
}

/// Returns the failure of HTTP for which a request has no answer.
pub(super) fn failure_of(http: &McpHttpClient, error: &ServiceError) -> Option<HttpFailure> {
    match error {
        ServiceError::TransportClosed => Some(http.take_failure().unwrap_or(HttpFailure::Ended)),
        _ => http_failure(error).cloned(),
    }
}

/// Returns why rmcp could not send a message, where it was not HTTP that failed.
fn unsent(error: &DynamicTransportError) -> String {
    match error.error.downcast_ref::<StreamableHttpError<HttpFailure>>() {
        Some(StreamableHttpError::SessionExpired) => {
            "its session has expired, and it gives no new one".to_owned()
        }
        Some(StreamableHttpError::ReinitializationFailed(error)) => {
            format!("its session has expired, and it refuses a new one: {}", error.message)
        }
        _ => "the message could not be sent to it".to_owned(),
    }
}

fn http_failure(error: &ServiceError) -> Option<&HttpFailure> {
    let ServiceError::TransportSend(error) = error else { return None };
    match error.error.downcast_ref::<StreamableHttpError<HttpFailure>>() {
        Some(StreamableHttpError::Client(failure)) => Some(failure),
        Some(_) => None,
        None => error.error.downcast_ref::<HttpFailure>(),
    }
}
