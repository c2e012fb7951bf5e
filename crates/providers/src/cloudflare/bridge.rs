//! The calls of the bridge: the key, and retries within its limits. Each call may be sent again: it asks for a state, or
//! makes what has a name of its own, or is a script that does nothing twice.

use std::time::Duration;

use eyot::{Error, ErrorKind, Result};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};
use reqwest::redirect::Policy;
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use super::answer::{read, refused, unreachable, unreadable, whole};
use super::options::CloudflareOptions;
use super::options::checked;
use crate::e2b::Secret;
use crate::e2b::vendor::{FIRST_WAIT, gives_up, retry_after};

/// The longest wait for an answer: a container may have to be started.
const PATIENCE: Duration = Duration::from_secs(120);
/// The longest wait for a connection.
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);
/// The code of a failed call about a session.
const SESSION_ERROR: &str = "session_error";
/// The most letters of a sandbox's id.
const MAX_ID_CHARS: usize = 128;

/// A client of the bridge.
#[derive(Debug, Clone)]
pub(super) struct BridgeClient {
    pub http: reqwest::Client,
    url: Option<String>,
    bearer: Option<Secret>,
}

#[derive(Deserialize)]
struct NewBridgeId {
    id: String,
}

/// Tells whether a text can be the bridge's id of a sandbox: `a` to `z` and `2` to `7`.
pub(super) fn is_bridge_id(text: &str) -> bool {
    let is_digit = |byte: u8| byte.is_ascii_lowercase() || (b'2'..=b'7').contains(&byte);
    (1..=MAX_ID_CHARS).contains(&text.len()) && text.bytes().all(is_digit)
}

impl BridgeClient {
    pub fn new(options: &CloudflareOptions) -> Result<Self> {
        let http = reqwest::Client::builder()
            .connect_timeout(CONNECT_PATIENCE)
            // A terminal is a WebSocket, which these have.
            .http1_only()
            // The key is for the address that was named, and for no other.
            .redirect(Policy::none())
            .build()
            .map_err(|error| {
                Error::new(ErrorKind::Internal, "prepare requests to the bridge").with_source(error)
            })?;
        let bearer = options.api_key.as_ref().map(|key| key.with_prefix("Bearer "));
        let url = options.url.as_deref().map(checked).transpose()?;
        Ok(Self { http, url, bearer })
    }

    /// Asks the bridge whether it is there, with the key.
    pub async fn check(&self) -> Result<u64> {
        let stats: Value = read(self.send(|| self.request(Method::GET, "/v1/pool/stats")).await?).await?;
        stats["assigned"].as_u64().ok_or_else(unreadable)
    }

    /// Asks for the id of a new sandbox. The bridge makes nothing before the first call with it.
    pub async fn new_id(&self) -> Result<String> {
        let new: NewBridgeId = read(self.send(|| self.request(Method::POST, "/v1/sandbox")).await?).await?;
        if is_bridge_id(&new.id) { Ok(new.id) } else { Err(unreadable().with_source("it has no id")) }
    }

    /// Runs a program that does nothing twice, and returns the events of its end.
    pub async fn exec(&self, id: &str, argv: &[&str], timeout_ms: u64) -> Result<Vec<u8>> {
        let (path, body) =
            (format!("/v1/sandbox/{id}/exec"), json!({ "argv": argv, "timeout_ms": timeout_ms }));
        // An answer that breaks off is a failed try like any other.
        let events = self.tried(|| self.json(&path, &body), async |answer| whole(answer).await).await?;
        Ok(events.to_vec())
    }

    /// Writes a file in the workspace. `name` is one that needs no escape.
    pub async fn put(&self, id: &str, name: &str, content: &'static [u8]) -> Result<()> {
        let path = format!("/v1/sandbox/{id}/file/workspace/{name}");
        let make = || {
            let request = self.request(Method::PUT, &path)?;
            Ok(request.header(CONTENT_TYPE, "application/octet-stream").body(content))
        };
        self.send(make).await.map(drop)
    }

    /// Makes a session with this name, once: the bridge has one of a name, and refuses a second call.
    pub async fn begin_session(&self, id: &str, session: &str) -> Result<(), FailedTry> {
        let (path, body) = (format!("/v1/sandbox/{id}/session"), json!({ "id": session, "cwd": "/" }));
        self.once(self.json(&path, &body)?).await.map(drop)
    }

    /// Ends a session. Returns whether the bridge says that it did: it does not tell a session that is not there from one that it
    /// could not end.
    pub async fn end_session(&self, id: &str, session: &str) -> Result<bool> {
        let path = format!("/v1/sandbox/{id}/session/{session}");
        match self.once(self.request(Method::DELETE, &path)?).await {
            Err(failed) if failed.code == SESSION_ERROR => Ok(false),
            ended => ended.map(|_| true).map_err(|failed| failed.error),
        }
    }

    /// Removes a sandbox. One that is gone is fine.
    pub async fn delete(&self, id: &str) -> Result<()> {
        let path = format!("/v1/sandbox/{id}");
        self.send(|| self.request(Method::DELETE, &path)).await.map(drop)
    }

    fn json(&self, path: &str, body: &Value) -> Result<RequestBuilder> {
        let request = self.request(Method::POST, path)?;
        Ok(request.header(CONTENT_TYPE, "application/json").body(body.to_string()))
    }

    /// Makes a request with the key.
    pub fn request(&self, method: Method, path: &str) -> Result<RequestBuilder> {
        let no_url = || {
            Error::new(ErrorKind::Setup, "Cloudflare needs the address of a bridge")
                .with_hint("set CLOUDFLARE_SANDBOX_WORKER_URL in the environment, or the option `url`")
                .with_no_effect()
        };
        let url = format!("{}{path}", self.url.as_ref().ok_or_else(no_url)?);
        let url = reqwest::Url::parse(&url).map_err(|error| Error::invalid("url", error))?;
        let request = self.http.request(method, url).timeout(PATIENCE);
        let Some(bearer) = &self.bearer else { return Ok(request) };
        let wrong_key = || Error::invalid("CLOUDFLARE_SANDBOX_API_KEY", "has what no header can carry");
        Ok(request.header(AUTHORIZATION, bearer.header().ok_or_else(wrong_key)?))
    }

    /// Sends a call once.
    async fn once(&self, request: RequestBuilder) -> Result<Response, FailedTry> {
        let response = request.send().await.map_err(|error| FailedTry::from(unreachable(error)))?;
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let (asked, (error, code)) = (retry_after(response.headers()), refused(response).await);
        Err(FailedTry { error, code, asked, may_retry: may_retry(status) })
    }

    /// Sends a call until it is answered, within limits.
    async fn send(&self, make: impl Fn() -> Result<RequestBuilder>) -> Result<Response> {
        self.tried(make, async |answer| Ok(answer)).await
    }

    /// Sends a call until it is answered and its answer is read, within limits.
    async fn tried<T>(
        &self,
        make: impl Fn() -> Result<RequestBuilder>,
        read: impl AsyncFn(Response) -> Result<T>,
    ) -> Result<T> {
        let (mut wait, mut is_open) = (FIRST_WAIT, false);
        for tries in 1.. {
            let failed = match self.once(make()?).await {
                Ok(answer) => match read(answer).await {
                    Ok(read) => return Ok(read),
                    Err(error) => FailedTry::from(error),
                },
                Err(failed) => failed,
            };
            // What an earlier try has done is done, whatever becomes of the last one.
            is_open |= failed.is_open();
            match failed.pause(tries, wait) {
                Some(pause) => tokio::time::sleep(pause).await,
                None => return Err(failed.error.with_unknown_effect_if(is_open)),
            }
            wait *= 2;
        }
        Err(unreadable())
    }
}

/// A call that has failed once.
#[derive(Debug)]
pub(super) struct FailedTry {
    pub error: Error,
    /// The bridge's code of the refusal.
    code: String,
    /// The wait that the bridge asks for.
    asked: Option<Duration>,
    may_retry: bool,
}

impl From<Error> for FailedTry {
    fn from(error: Error) -> Self {
        let may_retry = error.kind() == ErrorKind::Unavailable;
        Self { error, code: String::new(), asked: None, may_retry }
    }
}

impl FailedTry {
    /// Tells whether the call may have had an effect all the same.
    pub fn is_open(&self) -> bool {
        self.may_retry && !self.error.had_no_effect()
    }

    /// Returns the pause before the next try, of which so many were made; `None`: there is none. `usual` is the pause where the
    /// bridge names none.
    pub fn pause(&self, tries: u32, usual: Duration) -> Option<Duration> {
        let pause = self.asked.unwrap_or(usual);
        (self.may_retry && !gives_up(tries, pause)).then_some(pause)
    }
}

fn may_retry(status: StatusCode) -> bool {
    status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_has_only_what_no_path_needs_to_escape() {
        assert!(is_bridge_id("mfrggzdfmy2tqnrz") && is_bridge_id(&"a".repeat(MAX_ID_CHARS)));
        for wrong in ["", "a/b", "..", "a1", "A", "a-b", "a%2e", &"a".repeat(MAX_ID_CHARS + 1)] {
            assert!(!is_bridge_id(wrong), "{wrong}");
        }
    }
}
