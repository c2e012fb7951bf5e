//! Faults that are injected between the driver and the service, and what the cases share that plan them.

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{Method, StatusCode, header};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use eyot::{ExecOptions, Sandbox};
use futures_util::StreamExt;
use libtest_mimic::Trial;

use crate::bodies::{cut, endless};
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

/// A case.
pub type NamedCase = (&'static str, fn() -> Tried);

/// The faults to come, and every request that came, as `METHOD path`.
#[derive(Clone, Default)]
pub struct Faults(PlannedFaults<(Method, Fault)>);

impl Faults {
    /// Plans a fault for the next request of a method whose path begins so.
    pub fn plan(&self, method: Method, path: &'static str, fault: Fault) {
        self.0.plan(path, (method, fault));
    }

    fn take(&self, request: &Request) -> Option<Fault> {
        let (method, path) = (request.method(), request.uri().path());
        let call = format!("{method} {path}");
        let taken = self.0.take_where(&call, |begin, (of, _)| method == of && path.starts_with(begin));
        taken.map(|(_, fault)| fault)
    }

    pub fn count(&self, asked: &str) -> usize {
        self.0.count_where(|one| one.starts_with(asked))
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
                let elsewhere = format!("http://127.0.0.1:{port}/v2/sandboxes");
                (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, elsewhere)]).into_response()
            }
            Some(Fault::Empty) => ([(header::CONTENT_TYPE, "application/json")], "[]").into_response(),
            Some(Fault::Said(status, body)) => {
                (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
            }
            Some(Fault::Held) => {
                self.0.hold().await;
                next.run(request).await
            }
            Some(Fault::AnswerHeld) => {
                let answer = next.run(request).await;
                self.0.hold().await;
                answer
            }
            Some(Fault::Silent) => {
                self.0.arrive();
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
