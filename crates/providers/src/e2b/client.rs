//! E2B's REST calls: the key, retries within the vendor's limits, and the meaning of refusals.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;
use eyot::{Error, ErrorKind, Result};
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use reqwest::redirect::Policy;
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};

use super::answer::AnswerSource;
use super::api::{EnvdAccess, ListedSandbox, RefusalBody, State};
use super::options::E2bOptions;
use super::record::{CREATE, OWNER};

/// The most times that a call is sent.
const MAX_TRIES: u32 = 4;
/// The wait before the second try, where E2B names none; each later one is twice as long.
pub(crate) const FIRST_WAIT: Duration = Duration::from_millis(200);
/// The longest wait that E2B may ask for, in seconds. A call whose turn comes later fails.
const MAX_WAIT_S: u64 = 30;
/// The longest wait for an answer to a REST call.
const PATIENCE: Duration = Duration::from_secs(60);
/// The longest wait for a connection.
const CONNECT_PATIENCE: Duration = Duration::from_secs(10);
/// The characters of a refusal's message that are told.
const MESSAGE_CHARS: usize = 200;
/// The longest answer that is read whole, in bytes. A page of a list has the metadata of a hundred sandboxes.
const MAX_ANSWER_BYTES: usize = 16 << 20;
const ANSWERS: AnswerSource = AnswerSource { name: "E2B", max_bytes: MAX_ANSWER_BYTES };
/// The sandboxes on a page of a list.
const PAGE: &str = "100";
/// The most pages of a list that are read.
const MAX_PAGES: usize = 1000;

/// A client of the REST calls.
#[derive(Debug, Clone)]
pub(super) struct E2bClient {
    pub http: reqwest::Client,
    pub options: E2bOptions,
}

/// The request for a new sandbox.
pub(super) struct CreateCall {
    pub template: String,
    pub timeout_s: u64,
    pub metadata: BTreeMap<String, String>,
    pub variables: BTreeMap<String, String>,
    pub internet: bool,
    /// A text of this create alone: E2B makes one sandbox for all requests with it.
    pub idempotency_key: String,
}

impl E2bClient {
    pub fn new(options: E2bOptions) -> Result<Self> {
        let http = reqwest::Client::builder()
            .connect_timeout(CONNECT_PATIENCE)
            // The key is for the address that was named, and for no other.
            .redirect(Policy::none())
            .build()
            .map_err(|error| Error::new(ErrorKind::Internal, "prepare requests to E2B").with_source(error))?;
        Ok(Self { http, options })
    }

    /// Makes a sandbox. One whose answer does not come is asked for again, and killed if that does not help.
    pub async fn create(&self, new: &CreateCall) -> Result<EnvdAccess> {
        let mut is_open = false;
        let mut made = self.create_once(new, &mut is_open).await;
        if made.is_err() && is_open {
            // The key of the create makes it the same sandbox.
            made = self.create_once(new, &mut is_open).await;
        }
        match made {
            Err(error) if is_open => Err(self.without_sandbox(new, error).await),
            made => made,
        }
    }

    /// Kills what a create without an answer has made, and nothing else, and returns the error of the create.
    async fn without_sandbox(&self, new: &CreateCall, error: Error) -> Error {
        let killed = async {
            let own = [(OWNER, self.options.owner.as_str()), (CREATE, new.idempotency_key.as_str())];
            for left in self.list(&own).await? {
                self.kill(&left.id).await?;
            }
            Ok::<(), Error>(())
        };
        match killed.await {
            Ok(()) => error.with_no_effect(),
            Err(unknown) => {
                tracing::warn!(error = %unknown, "look for what a create without an answer has made");
                // The last try may have been refused or not sent, and an earlier one have made it.
                Error::new(ErrorKind::Unavailable, error.to_string())
                    .with_hint("E2B may have made the sandbox; its list shows it")
                    .with_source(error)
            }
        }
    }

    async fn create_once(&self, new: &CreateCall, is_open: &mut bool) -> Result<EnvdAccess> {
        let mut metadata = new.metadata.clone();
        metadata.insert(CREATE.to_owned(), new.idempotency_key.clone());
        let body = json!({
            "templateID": new.template,
            "timeout": new.timeout_s,
            "metadata": metadata,
            "envVars": new.variables,
            "allow_internet_access": new.internet,
        });
        let make = || -> Result<RequestBuilder> {
            let request = self.request(Method::POST, "/v2/sandboxes")?;
            Ok(with_json(request.header("Idempotency-Key", &new.idempotency_key), &body))
        };
        let answer = self.send_noting(make, is_open).await?;
        ANSWERS.read(answer).await.inspect_err(|_| *is_open = true)
    }

    /// Returns what there is of a sandbox, and the means to reach it.
    pub async fn get(&self, id: &str) -> Result<Option<(ListedSandbox, EnvdAccess)>> {
        let path = format!("/sandboxes/{id}");
        let answer = self.send(|| self.request(Method::GET, &path)).await;
        match answer {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
            Ok(response) => {
                let body: Value = ANSWERS.read(response).await?;
                let wrong = |error: serde_json::Error| ANSWERS.unreadable().with_source(error);
                let listed = serde_json::from_value(body.clone()).map_err(wrong)?;
                Ok(Some((listed, serde_json::from_value(body).map_err(wrong)?)))
            }
        }
    }

    /// Lists the sandboxes with these metadata, page by page.
    pub async fn list(&self, metadata: &[(&str, &str)]) -> Result<Vec<ListedSandbox>> {
        let pair = |(key, value): &(&str, &str)| format!("{}={}", encoded(key), encoded(value));
        let metadata: Vec<String> = metadata.iter().map(pair).collect();
        let (metadata, mut all, mut next) = (metadata.join("&"), Vec::new(), None::<String>);
        for _ in 0..MAX_PAGES {
            let make = || -> Result<RequestBuilder> {
                let mut query = vec![("state", "running,paused"), ("limit", PAGE)];
                if !metadata.is_empty() {
                    query.push(("metadata", &metadata));
                }
                if let Some(next) = &next {
                    query.push(("nextToken", next));
                }
                self.request(Method::GET, &with_query("/v2/sandboxes", &query))
            };
            let response = self.send(make).await?;
            let after = text(response.headers(), "x-next-token");
            all.extend(ANSWERS.read::<Vec<ListedSandbox>>(response).await?);
            if after.is_none() {
                return Ok(all);
            }
            if after == next {
                return Err(ANSWERS.unreadable().with_source("a page of the list leads to itself"));
            }
            next = after;
        }
        Err(ANSWERS.unreadable().with_source(format!("the list has more than {MAX_PAGES} pages")))
    }

    /// Pauses a sandbox: its files are kept, and its processes end. One that is paused is fine.
    pub async fn pause(&self, id: &str) -> Result<()> {
        let path = format!("/sandboxes/{id}/pause");
        let body = json!({ "memory": false });
        match self.send(|| Ok(with_json(self.request(Method::POST, &path)?, &body))).await {
            Err(error) if error.kind() == ErrorKind::Conflict => match self.get(id).await? {
                Some((listed, _)) if listed.state == State::Paused => Ok(()),
                // It is busy with something else.
                _ => Err(error),
            },
            paused => paused.map(drop),
        }
    }

    /// Resumes a sandbox that is paused, and gives one that runs as much time if it has less.
    pub async fn connect(&self, id: &str, timeout_s: u64) -> Result<()> {
        let path = format!("/v2/sandboxes/{id}/connect");
        let body = json!({ "timeout": timeout_s });
        self.send(|| Ok(with_json(self.request(Method::POST, &path)?, &body))).await.map(drop)
    }

    /// Kills a sandbox. One that is gone is fine.
    pub async fn kill(&self, id: &str) -> Result<()> {
        let path = format!("/sandboxes/{id}");
        match self.send(|| self.request(Method::DELETE, &path)).await {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    fn request(&self, method: Method, path: &str) -> Result<RequestBuilder> {
        let no_key = || {
            Error::new(ErrorKind::Permission, "E2B needs a key")
                .with_hint("set E2B_API_KEY in the environment")
                .with_no_effect()
        };
        let wrong_key = || Error::invalid("E2B_API_KEY", "has what no header can carry");
        let key = self.options.api_key.as_ref().ok_or_else(no_key)?.header().ok_or_else(wrong_key)?;
        let url = format!("{}{path}", self.options.api_url().trim_end_matches('/'));
        Ok(self.http.request(method, url).timeout(PATIENCE).header("X-API-Key", key))
    }

    /// Sends a call that may be sent again: each one here asks for a state, or has a key of its own.
    async fn send(&self, make: impl Fn() -> Result<RequestBuilder>) -> Result<Response> {
        self.send_noting(make, &mut false).await
    }

    /// Sends such a call, and sets `is_open` if a try may have had an effect that no answer tells of.
    async fn send_noting(
        &self,
        make: impl Fn() -> Result<RequestBuilder>,
        is_open: &mut bool,
    ) -> Result<Response> {
        let mut wait = FIRST_WAIT;
        for tries in 1.. {
            let sent = make()?.send().await;
            let (error, asked) = match sent {
                Ok(response) if response.status().is_success() => return Ok(response),
                Ok(response) => {
                    let (retries, asked) = (may_retry(&response), retry_after(response.headers()));
                    let error = refused(response).await;
                    if !retries {
                        *is_open |= may_have_had_effect(&error);
                        return Err(error);
                    }
                    (error, asked)
                }
                Err(error) => (unreachable(error), None),
            };
            *is_open |= may_have_had_effect(&error);
            let waits = asked.unwrap_or(wait);
            if gives_up(tries, waits) {
                return Err(error);
            }
            tokio::time::sleep(waits).await;
            wait *= 2;
        }
        Err(ANSWERS.unreadable())
    }
}

fn may_have_had_effect(error: &Error) -> bool {
    error.kind() == ErrorKind::Unavailable && !error.had_no_effect()
}

/// Tells whether a call that has failed so many times is not sent again, since it would have to wait for so long.
pub(crate) fn gives_up(tries: u32, wait: Duration) -> bool {
    tries >= MAX_TRIES || wait > Duration::from_secs(MAX_WAIT_S)
}

/// Tells whether a refused call may be sent again: the server's word, else the status.
fn may_retry(response: &Response) -> bool {
    match text(response.headers(), "should-retry").as_deref() {
        Some(word) => word.eq_ignore_ascii_case("true"),
        None => matches!(
            response.status(),
            StatusCode::TOO_MANY_REQUESTS
                | StatusCode::BAD_GATEWAY
                | StatusCode::SERVICE_UNAVAILABLE
                | StatusCode::GATEWAY_TIMEOUT
        ),
    }
}

/// Returns the wait that a server asks for.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    text(headers, "retry-after")?.parse().ok().map(Duration::from_secs)
}

fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    headers.get(name).and_then(|value| value.to_str().ok()).map(|text| text.trim().to_owned())
}

/// Encodes a text for a query.
fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte);
    let escaped = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(escaped).collect()
}

/// Gives a request a body of JSON.
pub(super) fn with_json(request: RequestBuilder, body: &Value) -> RequestBuilder {
    request.header(CONTENT_TYPE, "application/json").body(body.to_string())
}

/// Adds a query to a path.
pub(super) fn with_query(path: &str, query: &[(&str, &str)]) -> String {
    let pairs: Vec<_> = query.iter().map(|(key, value)| format!("{key}={}", encoded(value))).collect();
    format!("{path}?{}", pairs.join("&"))
}

/// Reads an answer whole. One past the limit is `unavailable`.
pub(super) async fn whole(response: Response) -> Result<Bytes> {
    ANSWERS.whole(response).await
}

/// Makes the error of a call that did not reach E2B, or whose answer did not come. Addresses are left out.
pub(super) fn unreachable(error: reqwest::Error) -> Error {
    ANSWERS.unreachable(error)
}

/// Returns a text of the vendor's as it may be shown: short, and without control characters.
pub(crate) fn clean_text(text: &str) -> String {
    text.chars().filter(|char| !char.is_control()).take(MESSAGE_CHARS).collect()
}

/// Makes the error of a refusal.
pub(super) async fn refused(response: Response) -> Error {
    let (status, asked) = (response.status(), retry_after(response.headers()));
    let body = whole(response).await.unwrap_or_default();
    let message =
        serde_json::from_slice::<RefusalBody>(&body).map(|refusal| refusal.message).unwrap_or_default();
    let message = clean_text(&message);
    let said =
        |reason: &str| if message.is_empty() { reason.to_owned() } else { format!("{reason}: {message}") };
    match status {
        StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
            // Its own words may say of the key what nobody is to read.
            Error::new(ErrorKind::Permission, "E2B refused the key")
                .with_hint("E2B_API_KEY must have the key of a team that may do this")
        }
        StatusCode::NOT_FOUND => Error::new(ErrorKind::NotFound, said("E2B does not have it")),
        StatusCode::TOO_MANY_REQUESTS => {
            let when = asked.map_or("later".to_owned(), |wait| format!("in {} s", wait.as_secs()));
            Error::new(ErrorKind::Unavailable, said("E2B limits the rate of requests"))
                .with_no_effect()
                .with_hint(format!("try again {when}"))
        }
        StatusCode::CONFLICT => Error::new(ErrorKind::Conflict, said("E2B refused it")),
        StatusCode::INSUFFICIENT_STORAGE => Error::new(ErrorKind::Quota, said("the sandbox's disk is full")),
        status if status.is_server_error() => {
            Error::new(ErrorKind::Unavailable, said(&format!("E2B answered {}", status.as_u16())))
        }
        _ => Error::new(ErrorKind::Invalid, said("E2B refused it")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_encoded_byte_by_byte() {
        let query = with_query("/a", &[("metadata", "k=v&ü"), ("limit", "5")]);
        assert_eq!(query, "/a?metadata=k%3Dv%26%C3%BC&limit=5");
    }

    #[test]
    fn a_call_is_sent_as_often_as_allowed_and_waits_no_longer_than_allowed() {
        let longest = Duration::from_secs(MAX_WAIT_S);
        assert!(!gives_up(MAX_TRIES - 1, longest));
        assert!(gives_up(MAX_TRIES, longest));
        assert!(gives_up(1, longest + Duration::from_secs(1)));
    }

    #[test]
    fn a_text_as_long_as_the_limit_is_shown_whole_and_one_character_more_is_not() {
        let longest = "ü".repeat(MESSAGE_CHARS);
        assert_eq!(clean_text(&longest), longest);
        assert_eq!(clean_text(&format!("{longest}x\n")), longest);
        assert_eq!(clean_text("a\u{1b}[31m\nb"), "a[31mb");
    }

    #[test]
    fn a_wait_is_read_in_whole_seconds() {
        let headers = |value: &'static str| {
            HeaderMap::from_iter([(
                "retry-after".parse().unwrap(),
                reqwest::header::HeaderValue::from_static(value),
            )])
        };
        assert_eq!(retry_after(&headers("7")), Some(Duration::from_secs(7)));
        assert_eq!(retry_after(&headers("soon")), None);
    }
}
