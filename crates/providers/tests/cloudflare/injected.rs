//! Faults that are injected between the driver and the bridge, and what the cases share that plan them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Json, Response};
use eyot::Error;
use futures_util::StreamExt;
use libtest_mimic::{Failed, Trial};
use serde_json::json;
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
    /// It is refused with these words about the key.
    KeyTold,
    /// It is carried out once it is released.
    Held,
}

/// A fault for the next requests of a method whose path ends so.
struct Planned {
    method: Method,
    end: &'static str,
    fault: Fault,
    times: usize,
}

/// A case.
pub type NamedCase = (&'static str, fn() -> Tried);
pub type Tried = Result<(), Failed>;

/// The faults to come.
#[derive(Clone, Default)]
pub struct Faults {
    planned: Arc<Mutex<VecDeque<Planned>>>,
    /// Every request that came, as `METHOD path`.
    asked: Arc<Mutex<Vec<String>>>,
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
    pub fn plan(&self, method: Method, end: &'static str, fault: Fault) {
        self.plan_times(method, end, fault, 1);
    }

    pub fn plan_times(&self, method: Method, end: &'static str, fault: Fault, times: usize) {
        locked(&self.planned).push_back(Planned { method, end, fault, times });
    }

    fn take(&self, request: &Request) -> Option<Fault> {
        let path = request.uri().path();
        locked(&self.asked).push(format!("{} {path}", request.method()));
        let mut planned = locked(&self.planned);
        let fits = |plan: &&mut Planned| {
            request.method() == plan.method && path.ends_with(plan.end) && plan.times > 0
        };
        let plan = planned.iter_mut().find(fits)?;
        plan.times -= 1;
        Some(plan.fault)
    }

    /// Returns how often such a request came.
    pub fn count(&self, method: &str, end: &str) -> usize {
        locked(&self.asked).iter().filter(|one| one.starts_with(method) && one.ends_with(end)).count()
    }

    /// Waits until a request is held.
    pub async fn arrived(&self) {
        pass_one(&self.held.arrived).await;
    }

    /// Lets a held request go on.
    pub fn release(&self) {
        self.held.released.add_permits(1);
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
                let elsewhere = format!("http://127.0.0.1:{port}/v1/sandbox");
                (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, elsewhere)]).into_response()
            }
            Some(Fault::Endless) => endless().into_response(),
            Some(Fault::KeyTold) => {
                let shown = request.headers().get(header::AUTHORIZATION).cloned();
                let words =
                    shown.and_then(|value| value.to_str().map(str::to_owned).ok()).unwrap_or_default();
                (StatusCode::UNAUTHORIZED, Json(json!({ "error": words, "code": "unauthorized" })))
                    .into_response()
            }
            Some(Fault::Held) => {
                self.held.arrived.add_permits(1);
                pass_one(&self.held.released).await;
                next.run(request).await
            }
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
    // So that it is not over before the cut.
    let rest = futures_util::stream::once(async { Err(std::io::Error::other("the connection is cut")) });
    Body::from_stream(pieces.chain(rest))
}

/// Returns a stand-in for so many containers, whose clock is decades behind, and the faults of its requests.
pub fn ground(most: usize) -> (Ground, Faults) {
    let faults = Faults::default();
    let passed = faults.clone();
    let around = |router: axum::Router| {
        router.layer(from_fn(move |request, next| {
            let passed = passed.clone();
            async move {
                let mut response = passed.pass(request, next).await;
                let long_ago = HeaderValue::from_static("Thu, 01 Jan 1998 00:00:00 GMT");
                response.headers_mut().insert(header::DATE, long_ago);
                response
            }
        }))
    };
    (Ground::with(most, around), faults)
}

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

/// Waits for what may take this long.
pub async fn within<T>(seconds: u64, work: impl Future<Output = T>) -> Result<T, Failed> {
    let late = |_| Failed::from(format!("it took longer than {seconds} s"));
    tokio::time::timeout(Duration::from_secs(seconds), work).await.map_err(late)
}

/// Waits until the stand-in has no container.
pub async fn empty(ground: &Ground) -> Tried {
    let waited = async {
        while !ground.bridge.containers.ids().await.is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within(20, waited).await?;
    without_records(ground).await
}

/// Waits until no record of a sandbox is left, not even of one that is being made or removed.
pub async fn without_records(ground: &Ground) -> Tried {
    let is_record = |entry: std::io::Result<std::fs::DirEntry>| {
        entry.is_ok_and(|entry| entry.path().extension().is_some_and(|kind| kind == "json"))
    };
    let folder = ground.options().records;
    let is_left = || std::fs::read_dir(&folder).is_ok_and(|mut entries| entries.any(is_record));
    let waited = async {
        while is_left() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    within(20, waited).await
}
