//! The calls of envd, which runs in every sandbox.

use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use eyot::{ByteStream, Error, ErrorKind, PtySize, Result};
use futures_util::TryStreamExt;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};
use reqwest::{Body, Method, RequestBuilder, Response, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};

use super::api::State;
use super::client::{clean_text, refused, unreachable, whole, with_json, with_query};
use super::events::{ProcessEvent, ProcessEvents, StreamFailure, envelope};
use super::link::{ENVD_PORT, Link};
use super::shell::{LIFE, bash};

/// The time between two signs of life that envd is asked for, in seconds.
const KEEPALIVE_S: u64 = 10;
/// The silence after which somebody else is asked whether the sandbox still lives.
const SILENCE: Duration = Duration::from_secs(3 * KEEPALIVE_S);
/// The longest wait for an answer that is no stream, and for the start of a process.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
/// The longest wait for a sandbox to say which life it is in.
const LIFE_PATIENCE: Duration = Duration::from_secs(10);
/// The length of that answer from which on no more of it is read, in bytes.
const MAX_LIFE_BYTES: usize = 1024;

/// A user of the sandbox's system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SystemUser {
    /// The one whom commands run as.
    Own,
    /// The administrator.
    Root,
}

/// A process to start.
pub(super) struct ProcessRequest {
    pub argv: Vec<String>,
    pub env: BTreeMap<String, String>,
    pub user: SystemUser,
    pub stdin: bool,
    pub pty: Option<PtySize>,
}

impl ProcessRequest {
    /// Makes the request for a process of a user, without a command.
    pub fn of(user: SystemUser) -> Self {
        Self { argv: Vec::new(), env: BTreeMap::new(), user, stdin: false, pty: None }
    }
}

/// A body of a refusal in Connect's form.
#[derive(Default, Deserialize)]
#[serde(default)]
struct RpcErrorBody {
    code: String,
}

impl Link {
    /// Starts a process, with a tag if it is called later. Returns its number and its events.
    pub async fn start(&self, new: &ProcessRequest, tag: Option<&str>) -> Result<(u32, ProcessEvents)> {
        self.check()?;
        let request = self.start_request(new, tag)?;
        let started = async {
            let mut events = ProcessEvents::new(self.answered(request).await?);
            loop {
                if let ProcessEvent::Start(pid) = self.next_event(&mut events).await? {
                    return Ok((pid, events));
                }
            }
        };
        let late = Error::new(ErrorKind::Unavailable, "the sandbox does not answer");
        tokio::time::timeout(PATIENCE, started).await.unwrap_or(Err(late))
    }

    /// Waits for the next event of a process, unless its sandbox is gone.
    pub async fn next_event(&self, events: &mut ProcessEvents) -> Result<ProcessEvent> {
        match self.unless_gone(events.next()).await? {
            Ok(event) => Ok(event),
            Err(cut) => Err(self.cut(cut).await),
        }
    }

    /// Waits for what may never come. After each long silence it is looked whether the sandbox still lives.
    async fn unless_gone<T>(&self, awaited: impl Future<Output = T>) -> Result<T> {
        let mut awaited = pin!(awaited);
        loop {
            let come = tokio::select! {
                come = tokio::time::timeout(SILENCE, &mut awaited) => come,
                () = self.destroyed.cancelled() => return Err(Error::destroyed(&self.name)),
            };
            if let Ok(come) = come {
                return Ok(come);
            }
            let why = self.why(Error::new(ErrorKind::Timeout, "the sandbox is silent")).await;
            if why.kind() != ErrorKind::Timeout {
                return Err(why);
            }
        }
    }

    fn start_request(&self, new: &ProcessRequest, tag: Option<&str>) -> Result<RequestBuilder> {
        let (program, arguments) =
            new.argv.split_first().ok_or_else(|| Error::invalid("command", "is empty"))?;
        let mut message = json!({
            "process": { "cmd": program, "args": arguments, "envs": new.env, "cwd": "/" },
            "stdin": new.stdin,
        });
        if let Some(size) = new.pty {
            message["pty"] = json!({ "size": { "cols": size.cols, "rows": size.rows } });
        }
        if let Some(tag) = tag {
            message["tag"] = json!(tag);
        }
        let user = match new.user {
            SystemUser::Own => "user:",
            SystemUser::Root => "root:",
        };
        let request = self.request(Method::POST, "/process.Process/Start")?;
        Ok(request
            .header(CONTENT_TYPE, "application/connect+json")
            .header("Connect-Protocol-Version", "1")
            .header("Keepalive-Ping-Interval", KEEPALIVE_S.to_string())
            .header(AUTHORIZATION, format!("Basic {}", STANDARD.encode(user)))
            .body(envelope(message.to_string().as_bytes())))
    }

    /// Finds the reason of a failed call: the sandbox may have ended under it, or was put to sleep. A question that is not
    /// answered says nothing, and the sandbox counts as alive.
    pub async fn why(&self, failed: Error) -> Error {
        if self.destroyed.is_cancelled() {
            return Error::destroyed(&self.name);
        }
        match self.client.get(&self.id).await {
            Ok(None) => Error::destroyed(&self.name),
            Ok(Some((listed, _))) if listed.state == State::Paused => Error::sleeping(&self.name),
            Ok(Some(_)) if self.is_past().await => Error::sleeping(&self.name),
            Ok(Some(_)) | Err(_) => failed,
        }
    }

    /// Tells whether the sandbox has slept since this way to it was made, and was woken. Only its own answer counts.
    async fn is_past(&self) -> bool {
        let argv = bash(&format!("{LIFE}printf %s \"$life\"\n"), []);
        let request =
            self.start_request(&ProcessRequest { argv, ..ProcessRequest::of(SystemUser::Own) }, None);
        let Ok(request) = request else { return false };
        let Ok(response) = request.timeout(LIFE_PATIENCE).send().await else { return false };
        if !response.status().is_success() || self.life.is_empty() {
            return false;
        }
        let (mut events, mut told) = (ProcessEvents::new(response), Vec::new());
        loop {
            match events.next().await {
                Ok(ProcessEvent::Stdout(bytes)) if told.len() < MAX_LIFE_BYTES => {
                    told.extend_from_slice(&bytes);
                }
                Ok(ProcessEvent::End(_)) => return !told.is_empty() && told != self.life.as_bytes(),
                Ok(ProcessEvent::Start(_) | ProcessEvent::Other) => {}
                Ok(_) | Err(_) => return false,
            }
        }
    }

    /// Uploads a file, whose directory is there.
    pub async fn upload_file(&self, path: &str, content: ByteStream) -> Result<()> {
        let path = with_query("/files", &[("path", path), ("username", "user")]);
        let request = self.request(Method::POST, &path)?;
        let body = Body::wrap_stream(content.map_err(std::io::Error::other));
        let request = request.header(CONTENT_TYPE, "application/octet-stream").body(body);
        self.answered(request).await.map(drop)
    }

    /// Returns the variables of every command.
    pub async fn variables(&self) -> Result<BTreeMap<String, String>> {
        let response = self.answered(self.request(Method::GET, "/envs")?.timeout(PATIENCE)).await?;
        let bytes = whole(response).await?;
        serde_json::from_slice(&bytes).map_err(|error| {
            Error::new(ErrorKind::Unavailable, "the sandbox's answer can't be read").with_source(error)
        })
    }

    /// Calls a method that answers once.
    pub async fn call(&self, method: &str, message: &Value, patience: Option<Duration>) -> Result<Response> {
        let request = self.request(Method::POST, &format!("/process.Process/{method}"))?;
        let request = with_json(request.header("Connect-Protocol-Version", "1"), message);
        let request = match patience {
            Some(patience) => request.timeout(patience),
            None => request,
        };
        self.answered(request).await
    }

    fn request(&self, method: Method, path: &str) -> Result<RequestBuilder> {
        self.check()?;
        let request = self.client.http.request(method, format!("{}{path}", self.url));
        let request =
            request.header("E2b-Sandbox-Id", &self.id).header("E2b-Sandbox-Port", ENVD_PORT.to_string());
        let Some(token) = &self.token else { return Ok(request) };
        let wrong_token = || Error::new(ErrorKind::Unavailable, "E2B's answer can't be read");
        Ok(request.header("X-Access-Token", token.header().ok_or_else(wrong_token)?))
    }

    /// Sends a request once: envd's calls change something. Its refusals are told as what they are.
    async fn answered(&self, request: RequestBuilder) -> Result<Response> {
        let response = match self.unless_gone(request.send()).await? {
            Ok(response) => response,
            Err(error) => return Err(self.why(unreachable(error)).await),
        };
        match response.status() {
            status if status.is_success() => Ok(response),
            // The way to the sandbox, or the sandbox itself, may be gone.
            StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => {
                let failed = refused(response).await;
                Err(self.why(failed).await)
            }
            StatusCode::TOO_MANY_REQUESTS | StatusCode::INSUFFICIENT_STORAGE => Err(refused(response).await),
            _ => {
                let body = whole(response).await.unwrap_or_default();
                let told: RpcErrorBody = serde_json::from_slice(&body).unwrap_or_default();
                Err(self.cut(StreamFailure::Refused { code: told.code }).await)
            }
        }
    }

    /// Makes the error of a stream that gave no more.
    pub async fn cut(&self, cut: StreamFailure) -> Error {
        let code = match cut {
            StreamFailure::Broken(error) => return self.why(error).await,
            StreamFailure::Refused { code } => code,
        };
        // envd's own words may have the command in them, and are left out.
        let told = |kind, words: &str| {
            Error::new(kind, words).with_source(format!("envd said {}", clean_text(&code)))
        };
        match code.as_str() {
            "not_found" => told(ErrorKind::NotFound, "the sandbox has no such process"),
            "invalid_argument" => told(ErrorKind::Invalid, "the sandbox refused the command"),
            "permission_denied" => told(ErrorKind::Permission, "the sandbox refused it"),
            "unauthenticated" => told(ErrorKind::Permission, "the sandbox refused the token"),
            "resource_exhausted" => {
                told(ErrorKind::Unavailable, "E2B limits the rate of requests").with_no_effect()
            }
            "unimplemented" => told(ErrorKind::Unsupported, "the sandbox does not do that"),
            _ => self.why(told(ErrorKind::Unavailable, "the sandbox failed at it")).await,
        }
    }
}
