//! Reasons for a request without an answer.

use rmcp::service::ServiceError;
use rmcp::transport::DynamicTransportError;
use rmcp::transport::streamable_http_client::StreamableHttpError;

use super::failure::HttpFailure;
use super::http::McpHttpClient;

/// Returns whether the server may have begun a call that failed with this error.
pub(super) fn may_have_run(error: &ServiceError) -> bool {
    !matches!(
        http_failure(error),
        Some(HttpFailure::Unreachable(_) | HttpFailure::Refused { status: 400..=499, .. })
    )
}

/// Returns the reason for a missing answer as text.
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
        _ => http_failure(error).cloned().inspect(|told| http.forget(told)),
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

#[cfg(test)]
mod tests {
    use reqwest::Url;
    use reqwest::header::HeaderMap;
    use rmcp::RoleClient;
    use tokio_util::sync::CancellationToken;

    use super::*;
    use crate::mcp::secrets::ConnectionSecrets;
    use crate::mcp::sse::SseTransport;

    #[test]
    fn a_failure_that_was_told_explains_no_later_end() {
        let url = Url::parse("http://127.0.0.1/mcp").unwrap();
        let (secrets, stop) = (ConnectionSecrets::default(), CancellationToken::new());
        let http = McpHttpClient::new(url, HeaderMap::new(), secrets, stop).unwrap();
        let refusal = http.note(HttpFailure::Refused { status: 403, said: None });
        let unsent = DynamicTransportError::new::<SseTransport, RoleClient>(refusal);
        assert!(reason(&http, &ServiceError::TransportSend(unsent)).contains("403"));
        assert_eq!(reason(&http, &ServiceError::TransportClosed), HttpFailure::Ended.to_string());
    }
}
