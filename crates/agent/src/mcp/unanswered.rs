//! The reasons why a request has no answer.

use rmcp::service::ServiceError;
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
    if let Some(failure) = http_failure(error) {
        return failure.to_string();
    }
    match error {
        ServiceError::TransportSend(_) => "its session has expired, and it gives no new one".to_owned(),
        ServiceError::TransportClosed => http.take_failure().unwrap_or(HttpFailure::Ended).to_string(),
        _ => HttpFailure::Garbage.to_string(),
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
