//! Faults that are injected between the driver and the bridge, and what the cases share that plan them.

use std::time::Duration;

use axum::extract::Request;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Json, Response};
use libtest_mimic::Trial;
use serde_json::json;

use crate::bodies::{broken, endless};
use crate::ground::Ground;
use crate::planned::PlannedFaults;

pub use crate::tried::{Tried, ensure, failed, within};

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

/// A case.
pub type NamedCase = (&'static str, fn() -> Tried);

/// The faults to come, and every request that came, as `METHOD path`.
#[derive(Clone, Default)]
pub struct Faults(PlannedFaults<(Method, Fault)>);

impl Faults {
    /// Plans a fault for the next request of a method whose path ends so.
    pub fn plan(&self, method: Method, end: &'static str, fault: Fault) {
        self.plan_times(method, end, fault, 1);
    }

    /// Plans it for the next requests.
    pub fn plan_times(&self, method: Method, end: &'static str, fault: Fault, times: usize) {
        self.0.plan_times(end, (method, fault), times);
    }

    fn take(&self, request: &Request) -> Option<Fault> {
        let (method, path) = (request.method(), request.uri().path());
        let call = format!("{method} {path}");
        let taken = self.0.take_where(&call, |end, (of, _)| method == of && path.ends_with(end));
        taken.map(|(_, fault)| fault)
    }

    /// Returns how often such a request came.
    pub fn count(&self, method: &str, end: &str) -> usize {
        self.0.count_where(|one| one.starts_with(method) && one.ends_with(end))
    }

    /// Waits until a request is held.
    pub async fn arrived(&self) {
        self.0.arrived().await;
    }

    /// Lets a held request go on.
    pub fn release(&self) {
        self.0.release();
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
                self.0.hold().await;
                next.run(request).await
            }
            Some(Fault::Cut(bytes)) => next.run(request).await.map(|body| broken(body, bytes)),
        }
    }
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

/// Returns the trials of a group of cases.
pub fn named(group: &str, cases: &[NamedCase]) -> Vec<Trial> {
    cases.iter().map(|(name, case)| Trial::test(format!("{group}::{name}"), *case)).collect()
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
