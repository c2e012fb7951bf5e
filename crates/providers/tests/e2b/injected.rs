//! Faults that are injected between the driver and the service, and what the cases share that plan them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{Method, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use eyot::{Error, ExecOptions, Sandbox};
use futures_util::StreamExt;
use libtest_mimic::{Failed, Trial};
use tokio::sync::Semaphore;

use crate::ground::Ground;

/// A fault of one request.
#[derive(Clone, Copy)]
pub enum Fault {
    /// It is refused with this status, and perhaps told when to come again, in seconds.
    Refused(StatusCode, Option<u32>),
    /// It is carried out, and its answer is lost.
    AnswerLost,
    /// The answer is cut off after so many bytes.
    Cut(usize),
    /// It is sent to the port of another server.
    Redirected(u16),
    /// The answer never ends.
    Endless,
    /// The answer is an empty list.
    Empty,
    /// The answer is this status and this JSON, and nothing is done.
    Said(StatusCode, &'static str),
    /// It is carried out once it is released.
    Held,
    /// It is carried out, and its answer comes once it is released.
    AnswerHeld,
    /// It is never answered.
    Silent,
    /// The process that it starts is told to have ended with 1 instead of 0.
    EndsWithOne,
    /// The process that it starts prints a mebibyte without a line's end, and nothing more.
    Flood,
    /// The answer is an empty page, and the next one is this page again.
    SamePage,
}

/// A fault for the next request of a method and a path.
type Planned = (Method, &'static str, Fault);
/// A case.
pub type NamedCase = (&'static str, fn() -> Tried);

/// The faults to come.
#[derive(Clone, Default)]
pub struct Faults {
    planned: Arc<Mutex<VecDeque<Planned>>>,
    /// Every request that came, as `METHOD path`.
    asked: Arc<Mutex<Vec<String>>>,
    /// Has a permit for each request that is held, from the time at which it is.
    held: Arc<Turnstile>,
}

/// The way of held requests.
struct Turnstile {
    arrived: Semaphore,
    released: Semaphore,
}

impl Default for Turnstile {
    fn default() -> Self {
        Self { arrived: Semaphore::new(0), released: Semaphore::new(0) }
    }
}

async fn pass_one(gate: &Semaphore) {
    gate.acquire().await.expect("it is never closed").forget();
}

fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().expect("no case panics while it holds it")
}

impl Faults {
    pub fn plan(&self, method: Method, path: &'static str, fault: Fault) {
        locked(&self.planned).push_back((method, path, fault));
    }

    fn take(&self, request: &Request) -> Option<Fault> {
        let path = request.uri().path();
        locked(&self.asked).push(format!("{} {path}", request.method()));
        let mut planned = locked(&self.planned);
        let at = planned
            .iter()
            .position(|(method, begin, _)| request.method() == method && path.starts_with(begin))?;
        planned.remove(at).map(|(_, _, fault)| fault)
    }

    pub fn count(&self, asked: &str) -> usize {
        locked(&self.asked).iter().filter(|one| one.starts_with(asked)).count()
    }

    /// Waits until a request is held.
    pub async fn arrived(&self) {
        pass_one(&self.held.arrived).await;
    }

    /// Lets a held request go on.
    pub fn release(&self) {
        self.held.released.add_permits(1);
    }

    async fn hold(&self) {
        self.held.arrived.add_permits(1);
        pass_one(&self.held.released).await;
    }

    async fn pass(self, request: Request, next: Next) -> Response {
        match self.take(&request) {
            None => next.run(request).await,
            Some(Fault::Refused(status, None)) => status.into_response(),
            Some(Fault::Refused(status, Some(wait_s))) => {
                (status, [(header::RETRY_AFTER, wait_s.to_string())]).into_response()
            }
            Some(Fault::AnswerLost) => {
                drop(next.run(request).await);
                StatusCode::BAD_GATEWAY.into_response()
            }
            Some(Fault::Redirected(port)) => {
                let elsewhere = format!("http://127.0.0.1:{port}/v2/sandboxes");
                (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, elsewhere)]).into_response()
            }
            Some(Fault::Empty) => ([(header::CONTENT_TYPE, "application/json")], "[]").into_response(),
            Some(Fault::Said(status, body)) => {
                (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
            }
            Some(Fault::Held) => {
                self.hold().await;
                next.run(request).await
            }
            Some(Fault::AnswerHeld) => {
                let answer = next.run(request).await;
                self.hold().await;
                answer
            }
            Some(Fault::Silent) => {
                self.held.arrived.add_permits(1);
                std::future::pending().await
            }
            Some(Fault::EndsWithOne) => next.run(request).await.map(ends_with_one),
            Some(Fault::Flood) => flood().into_response(),
            Some(Fault::SamePage) => {
                let headers = [("content-type", "application/json"), ("x-next-token", "same")];
                (headers, "[]").into_response()
            }
            Some(Fault::Endless) => endless().into_response(),
            Some(Fault::Cut(bytes)) => next.run(request).await.map(|body| cut(body, bytes)),
        }
    }
}

/// Returns spaces, as many as are read.
fn endless() -> Body {
    const PIECE: &[u8] = &[b' '; 64 << 10];
    Body::from_stream(futures_util::stream::repeat_with(|| {
        Ok::<_, std::io::Error>(Bytes::from_static(PIECE))
    }))
}

/// Returns the beginning of a body, and then a connection that breaks.
fn cut(body: Body, bytes: usize) -> Body {
    let mut left = bytes;
    let pieces = body.into_data_stream().map(move |piece| {
        let piece = piece.map_err(std::io::Error::other)?;
        if left == 0 {
            return Err(std::io::Error::other("the connection is cut"));
        }
        let kept: Bytes = piece.slice(..piece.len().min(left));
        left -= kept.len();
        Ok(kept)
    });
    Body::from_stream(pieces)
}

/// Returns the events of a process whose exit code is another.
fn ends_with_one(body: Body) -> Body {
    let changed = |piece: Result<Bytes, axum::Error>| -> Result<Bytes, std::io::Error> {
        let piece = piece.map_err(std::io::Error::other)?;
        // One event is one piece, and of JSON but for its header.
        let (header, message) = piece.split_at(5);
        let message = String::from_utf8_lossy(message).replace("\"exitCode\":0", "\"exitCode\":1");
        Ok([header, message.as_bytes()].concat().into())
    };
    Body::from_stream(body.into_data_stream().map(changed))
}

/// Returns the events of a process that prints a line without an end.
fn flood() -> Body {
    let event = |message: String| {
        let length = u32::try_from(message.len()).expect("it is short");
        Bytes::from([&[0][..], &length.to_be_bytes(), message.as_bytes()].concat())
    };
    let start = event(r#"{"event":{"start":{"pid":1}}}"#.to_owned());
    let piece = event(format!(r#"{{"event":{{"data":{{"stdout":"{}"}}}}}}"#, "eHh4".repeat(1 << 14)));
    let pieces = std::iter::once(start).chain(std::iter::repeat_n(piece, 22)).map(Ok::<_, std::io::Error>);
    Body::from_stream(futures_util::stream::iter(pieces).chain(futures_util::stream::pending()))
}

pub fn ground(clock_skew_s: i64) -> (Ground, Faults) {
    let faults = Faults::default();
    let passed = faults.clone();
    let around =
        |router: axum::Router| router.layer(from_fn(move |request, next| passed.clone().pass(request, next)));
    (Ground::with(clock_skew_s, around), faults)
}

pub type Tried = Result<(), Failed>;

pub fn ensure(holds: bool, otherwise: impl Into<String>) -> Tried {
    if holds { Ok(()) } else { Err(otherwise.into().into()) }
}

/// Returns the error that was due.
pub fn failed<T>(result: eyot::Result<T>) -> Result<Error, Failed> {
    result.err().ok_or_else(|| "it succeeded; an error was due".into())
}

/// Returns the trials of a group of cases.
pub fn named(group: &str, cases: &[NamedCase]) -> Vec<Trial> {
    cases.iter().map(|(name, case)| Trial::test(format!("{group}::{name}"), *case)).collect()
}

/// Waits until no process in a sandbox has this text in its command line.
pub async fn ends(sandbox: &Sandbox, text: &str) -> Tried {
    // The pattern does not fit itself.
    let pattern = format!("[{}]{}", &text[..1], &text[1..]);
    let line = format!(
        "timeout 15 sh -c 'while cat /proc/[0-9]*/cmdline 2>/dev/null | tr \\\\0 \" \" | grep -q \"$0\"; do sleep 0.05; done' '{pattern}'"
    );
    let waited = sandbox.exec(line, ExecOptions::default()).await?;
    ensure(waited.success(), format!("`{text}` runs on: {waited:?}"))
}

/// Waits for what may take this long.
pub async fn within<T>(seconds: u64, work: impl Future<Output = T>) -> Result<T, Failed> {
    let late = |_| Failed::from(format!("it took longer than {seconds} s"));
    tokio::time::timeout(Duration::from_secs(seconds), work).await.map_err(late)
}
