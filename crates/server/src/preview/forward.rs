//! Forwards a request to the server inside the sandbox, over a connection for this request alone,
//! and returns its answer.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::Request;
use axum::http::response::Parts;
use axum::http::{StatusCode, header};
use axum::response::Response;
use eyot::{Error, ErrorKind, Sandbox, SandboxName, TcpStream};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::address::Address;
use super::body::CuttableBody;
use super::limits::PlaceInUse;
use super::refusal::Denial;
use super::socket::{EndSignals, carry};
use super::{Previews, from_guest, to_guest};

/// The longest head of an answer, in bytes.
const MAX_HEAD_BYTES: usize = 64 << 10;

type Stream = Box<dyn TcpStream>;

impl Previews {
    /// Forwards a request and returns the answer of the server inside.
    pub(super) async fn forward(
        &self,
        address: &Address,
        pool: &SandboxName,
        mut request: Request,
        place: PlaceInUse,
    ) -> Result<Response, Denial> {
        let websocket = to_guest::wants_websocket(&request);
        let browser = websocket.then(|| hyper::upgrade::on(&mut request));
        let request = to_guest::rewritten(address, request, websocket)?;
        let stream = self.connected(address, pool).await?;
        let revoked = self.source.grants().revoked(&address.target);
        let mut response = tokio::select! {
            response = send(stream, request, self.limits.first_byte) => response?,
            () = revoked.cancelled() => return Err(Denial::unauthorized()),
        };
        let is_switched = response.status() == StatusCode::SWITCHING_PROTOCOLS;
        let guest = hyper::upgrade::on(&mut response);
        let (mut head, body) = response.into_parts();
        from_guest::rewrite(&mut head, address);
        if self.has_page && address.is_path() {
            from_guest::set_apart(&mut head);
        }
        match (is_switched, browser) {
            (true, Some(browser)) => {
                let ends = EndSignals { revoked, stop: self.stop.clone() };
                tokio::spawn(carry(browser, guest, place, ends));
                Ok(Response::from_parts(head, Body::empty()))
            }
            (true, None) => Err(unreadable("it changes the protocol, which nobody has asked for")),
            (false, _) => {
                // Such a stream has no end of its own; any other answer may end while the server stops.
                let stop = is_event_stream(&head).then(|| self.stop.clone());
                Ok(Response::from_parts(head, Body::new(CuttableBody::new(body, place, revoked, stop))))
            }
        }
    }

    /// Connects to the port. A sleeping sandbox is woken; a handle whose sandbox fell asleep is
    /// replaced.
    async fn connected(&self, address: &Address, pool: &SandboxName) -> Result<Stream, Denial> {
        let target = &address.target;
        let (sandbox, was_woken) = self.source.awake(pool, &target.sandbox).await?;
        match self.dialled(&sandbox, target.port, was_woken).await {
            Err(_) if !sandbox.is_connected() => {
                let (sandbox, was_woken) = self.source.awake(pool, &target.sandbox).await?;
                let dialled = self.dialled(&sandbox, target.port, was_woken).await;
                dialled.map_err(|error| not_connected(error, target.port, was_woken))
            }
            dialled => dialled.map_err(|error| not_connected(error, target.port, was_woken)),
        }
    }

    async fn dialled(&self, sandbox: &Sandbox, port: u16, was_woken: bool) -> Result<Stream, Error> {
        if was_woken {
            let limit_ms = u64::try_from(self.limits.after_wake.as_millis()).unwrap_or(u64::MAX);
            match sandbox.wait_for_port(port, limit_ms).await {
                // Then it says so when it is dialled.
                Err(error) if error.kind() == ErrorKind::Timeout => {}
                waited => waited?,
            }
        }
        let late = || Error::new(ErrorKind::Timeout, "it takes no connection");
        timeout(self.limits.connect, sandbox.dial(port)).await.map_err(|_| late())?
    }
}

fn not_connected(error: Error, port: u16, was_woken: bool) -> Denial {
    match error.kind() {
        ErrorKind::Unavailable if !error.is_sleeping() => {
            let woken = " The sandbox was asleep, and a wake starts nothing again but its services.";
            let why = if was_woken { woken } else { "" };
            Denial::bad_gateway(format!(
                "nothing listens on port {port} in the sandbox: start a server there, on 127.0.0.1 or 0.0.0.0, and ask again.{why}"
            ))
        }
        ErrorKind::Timeout => Denial::too_late(format!("port {port} in the sandbox takes no connection")),
        ErrorKind::Destroyed => Denial::gone(),
        _ => error.into(),
    }
}

fn is_event_stream(head: &Parts) -> bool {
    let kind = head.headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    kind.is_some_and(|kind| kind.trim_start().to_ascii_lowercase().starts_with("text/event-stream"))
}

fn unreadable(reason: &str) -> Denial {
    Denial::bad_gateway(format!("the server in the sandbox gave no answer that can be read: {reason}"))
}

/// Sends one request on its own connection.
async fn send(
    stream: Stream,
    request: Request,
    limit: Duration,
) -> Result<hyper::Response<Incoming>, Denial> {
    let progress = Arc::new(Notify::new());
    let moved = Arc::clone(&progress);
    let request = request.map(|body| {
        let noted = body.map_frame(move |frame| {
            moved.notify_one();
            frame
        });
        Body::new(noted)
    });
    let mut builder = hyper::client::conn::http1::Builder::new();
    builder.max_buf_size(MAX_HEAD_BYTES);
    let handshake = builder.handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(|error| unreadable(&error.to_string()))?;
    // A failure of the connection is its answer's failure.
    tokio::spawn(async move { drop(connection.with_upgrades().await) });
    let mut answer = std::pin::pin!(sender.send_request(request));
    loop {
        tokio::select! {
            answer = &mut answer => return answer.map_err(|error| unreadable(&error.to_string())),
            () = progress.notified() => {}
            () = sleep(limit) => {
                let seconds = limit.as_secs();
                return Err(Denial::too_late(format!("the server in the sandbox has not answered within {seconds} s")));
            }
        }
    }
}
