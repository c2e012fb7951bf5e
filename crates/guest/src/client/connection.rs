//! A connection to a guest: many calls at once over one stream, until the stream or the guest's
//! good conduct ends.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use eyot::{CancellationToken, Error, ErrorKind, Result};
use tokio::io::{AsyncRead, AsyncWrite, ReadHalf};

use super::call::Call;
use super::fault::{Fault, Inquiry, Verdict, Violation};
use super::frames::Frames;
use super::handshake::{RUNNING, SETTING_UP, shake_hands};
use super::lanes::Lanes;
use super::lock;
use super::outbox::{Outbox, Undeliverable};
use super::reader::read_to_end;
use super::shape::Shape;
use super::slot::Slot;
use super::table::{Full, Table};
use crate::protocol::{MAX_MESSAGE_BYTES, Protections, Reply, Request, encode};

/// The time that a guest may show no sign of life to a call that it answers at once.
const PATIENCE: Duration = Duration::from_secs(10);
/// The time that the reader may go on after writing has failed: the guest's last words may still be
/// on their way.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A connection to a guest. Clones are the same connection; it ends when the last clone and the
/// last call are dropped.
///
/// At most 1,000 calls are open at a time, 64 of them file calls (32 that stream out, 16 that
/// stream in, 16 others); more wait. Dropping a call cancels it.
#[derive(Clone)]
pub struct Connection {
    owner: Arc<Owner>,
}

struct Owner {
    shared: Arc<Shared>,
    protections: Option<Protections>,
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.shared.end(Fault::stopped());
    }
}

/// The state that the tasks and the calls of a connection share.
pub(super) struct Shared {
    pub(super) table: Mutex<Table>,
    pub(super) outbox: Outbox,
    lanes: Lanes,
    closed: CancellationToken,
    ending: Mutex<Ending>,
}

#[derive(Default)]
struct Ending {
    /// The reason that the owner gave.
    told: Option<Fault>,
    /// The meaning that the owner gave to a plain end of the stream.
    stopped: Option<Fault>,
    /// The reason seen on the stream.
    seen: Option<Fault>,
    /// Finds out why the stream has ended, where nobody told.
    inquiry: Option<Inquiry>,
    /// It is being found out.
    asking: bool,
}

impl Ending {
    /// The reason that calls are told, if there is one yet.
    fn reason(&self) -> Option<&Fault> {
        let seen = match &self.seen {
            Some(seen) if seen.is_stop() => self.stopped.as_ref().or(self.seen.as_ref()),
            other => other.as_ref(),
        };
        self.told.as_ref().or(seen)
    }
}

impl Connection {
    /// Shakes hands with the guest at the other end of `stream` and begins. Within 10 s it succeeds
    /// or fails: `conflict` when the guest speaks another major version, `permission` when the
    /// guest does not know `guest_nonce` or does not accept `client_nonce`, `unavailable` when it
    /// stops, keeps silent or talks nonsense.
    ///
    /// # Panics
    /// Outside of a Tokio runtime with I/O and time.
    pub async fn open(
        mut stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        client_nonce: [u8; 16],
        guest_nonce: [u8; 16],
    ) -> Result<Self> {
        let (frames, protections) = shake_hands(&mut stream, client_nonce, guest_nonce, SETTING_UP).await?;
        Ok(Self::begin(stream, frames, protections))
    }

    /// The same to a guest that has been running and so answers at once: within 2 s.
    ///
    /// # Panics
    /// Outside of a Tokio runtime with I/O and time.
    pub async fn reopen(
        mut stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        client_nonce: [u8; 16],
        guest_nonce: [u8; 16],
    ) -> Result<Self> {
        let (frames, protections) = shake_hands(&mut stream, client_nonce, guest_nonce, RUNNING).await?;
        Ok(Self::begin(stream, frames, protections))
    }

    fn begin(
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        frames: Frames,
        protections: Option<Protections>,
    ) -> Self {
        let (read, write) = tokio::io::split(stream);
        let shared = Arc::new(Shared {
            table: Mutex::new(Table::new()),
            outbox: Outbox::new(write),
            lanes: Lanes::new(),
            closed: CancellationToken::new(),
            ending: Mutex::new(Ending::default()),
        });
        tokio::spawn(read_task(Arc::clone(&shared), read, frames));
        tokio::spawn(write_task(Arc::clone(&shared)));
        Self { owner: Arc::new(Owner { shared, protections }) }
    }

    /// Returns the protections that the guest found around itself when it started. Only a guest in
    /// a container reports them; a guest whose maker set it up does not.
    pub fn protections(&self) -> Option<&Protections> {
        self.owner.protections.as_ref()
    }

    /// Returns once the connection has ended, whatever the reason.
    pub fn closed(&self) -> impl Future<Output = ()> + Send + 'static {
        self.owner.shared.closed.clone().cancelled_owned()
    }

    /// Tells whether the connection has ended, or can't be written to any more.
    pub fn is_closed(&self) -> bool {
        self.owner.shared.closed.is_cancelled() || self.owner.shared.outbox.is_closed()
    }

    /// From now on, calls that the connection's end settles, and calls that come after it, fail
    /// with this kind and sentence, whatever was seen on the stream. Whoever destroys a sandbox
    /// says so here first.
    pub fn set_closed_error(&self, kind: ErrorKind, message: impl Into<String>) {
        lock(&self.owner.shared.ending).told = Some(Fault::new(kind, message));
    }

    /// The same, asked for anew whenever a call fails: what became of a sandbox may change once
    /// more after the connection's end. The verdict must not block.
    pub fn set_verdict(&self, verdict: Verdict) {
        lock(&self.owner.shared.ending).told = Some(Fault::Asked(verdict));
    }

    /// Sets the error for a stream that ends without a reason of the owner, while the guest kept to
    /// the protocol.
    pub fn set_stopped_error(&self, kind: ErrorKind, message: impl Into<String>) {
        lock(&self.owner.shared.ending).stopped = Some(Fault::new(kind, message));
    }

    /// Sets the function that finds out why the stream ended, if the owner gave no reason and the
    /// guest kept to the protocol. Open calls settle when it is done, so it must not take for ever.
    pub fn set_inquiry(&self, inquiry: Inquiry) {
        lock(&self.owner.shared.ending).inquiry = Some(inquiry);
    }

    /// Ends the connection; calls under way settle.
    pub fn close(&self) {
        self.owner.shared.end(Fault::stopped());
    }

    /// Ends the connection; unless its owner has told another reason, it ended for this one.
    pub(super) fn close_for_good(&self, kind: ErrorKind, message: &str) {
        lock(&self.owner.shared.ending).told.get_or_insert_with(|| Fault::new(kind, message));
        self.close();
    }

    /// Asks whether the guest is there.
    pub async fn ping(&self) -> Result<()> {
        self.ask(&Request::Ping).await.map(drop)
    }

    /// Returns, with the error of it, once the guest has shown no sign of life for that long; never
    /// if it has shown one. A guest that is stopped must hold nobody for ever.
    pub(super) async fn silence(&self, patience: Duration) -> Error {
        tokio::time::sleep(patience / 2).await;
        match tokio::time::timeout(patience / 2, self.ping()).await {
            Ok(_answered_or_ended) => std::future::pending().await,
            Err(_late) => Error::new(ErrorKind::Unavailable, "the sandbox's guest does not answer")
                .with_hint("it may be stopped or frozen"),
        }
    }

    /// Makes a call that a guest answers at once, if it answers at all.
    pub(super) async fn ask_promptly(&self, request: &Request) -> Result<Reply> {
        tokio::select! {
            biased;
            reply = self.ask(request) => reply,
            error = self.silence(PATIENCE) => Err(error),
        }
    }

    /// Tells the guest that its sandbox is complete and outlives the stream it was made with.
    pub async fn adopt(&self) -> Result<()> {
        self.ask(&Request::Adopt).await.map(drop)
    }

    /// Has the guest kill everything and end. A connection that ends meanwhile is a success: that
    /// was asked for.
    pub async fn shutdown(&self) -> Result<()> {
        match self.ask(&Request::Shutdown).await {
            Err(_) if self.is_closed() => Ok(()),
            outcome => outcome.map(drop),
        }
    }

    /// Makes a call that takes and gives no data, and returns its reply.
    pub(super) async fn ask(&self, request: &Request) -> Result<Reply> {
        self.call(request).await?.reply().await
    }

    /// Begins a call.
    pub(super) async fn call(&self, request: &Request) -> Result<Call> {
        let message = encode(request);
        if message.len() > MAX_MESSAGE_BYTES {
            let sentence =
                format!("the request has {} bytes; the limit is {MAX_MESSAGE_BYTES}", message.len());
            return Err(Error::new(ErrorKind::TooLarge, sentence));
        }
        let shape = Shape::of(request);
        let Some(permits) = self.shared().lanes.enter(shape.lane).await else {
            return Err(self.error().with_nothing_begun());
        };
        let slot = Arc::new(Slot::new(shape, permits));
        let number = lock(&self.shared().table).enter(&slot);
        let refused = |full| self.refusal(full).with_nothing_begun();
        let call = Call::new(self.clone(), number.map_err(refused)?, slot);
        call.send_request(&message).await.map_err(Error::with_nothing_begun)?;
        Ok(call)
    }

    /// Returns the state that the tasks and the calls share.
    pub(super) fn shared(&self) -> &Shared {
        &self.owner.shared
    }

    /// Why no call can succeed any more.
    pub(super) fn error(&self) -> Error {
        // Without a reason yet, writing has failed and the reader is about to see the end.
        let reason = lock(&self.shared().ending).reason().cloned();
        reason.unwrap_or(Fault::Stopped).error()
    }

    fn refusal(&self, full: Full) -> Error {
        match full {
            Full::Closed => self.error(),
            Full::Numbers => Error::new(
                ErrorKind::Unavailable,
                "the connection to the sandbox has used up its call numbers",
            ),
        }
    }
}

impl Shared {
    /// The call that a frame of the guest names.
    pub(super) fn named(&self, call: u32) -> Result<Arc<Slot>, Violation> {
        lock(&self.table).named(call)
    }

    /// Ends the connection and settles every call; the first reason counts.
    pub(super) fn end(&self, fault: Fault) {
        let fault = {
            let mut ending = lock(&self.ending);
            let seen = ending.seen.get_or_insert(fault).clone();
            ending.reason().cloned().unwrap_or(seen)
        };
        self.lanes.close();
        let slots = lock(&self.table).close();
        for slot in slots {
            slot.fail(fault.error());
        }
        self.outbox.close();
        self.closed.cancel();
    }

    /// Tells whether the reader is finding out why the stream has ended.
    fn is_asking(&self) -> bool {
        lock(&self.ending).asking
    }

    /// The same, once it is known what the end of the stream means.
    async fn end_asking(&self, fault: Fault) {
        let inquiry = match &mut *lock(&self.ending) {
            Ending { told: None, inquiry, asking, .. } if fault.is_stop() => {
                *asking = inquiry.is_some();
                inquiry.take()
            }
            _ => None,
        };
        if let Some(inquiry) = inquiry {
            let verdict = inquiry().await;
            lock(&self.ending).stopped = Some(Fault::Asked(verdict));
        }
        self.end(fault);
    }

    /// Ends the connection because of what can't be delivered.
    pub(super) fn end_undeliverable(&self, why: Undeliverable) {
        match why {
            Undeliverable::Closed => {}
            Undeliverable::NotRead => self.end(Fault::broken("it does not read what it is sent")),
        }
    }
}

async fn read_task<S: AsyncRead>(shared: Arc<Shared>, stream: ReadHalf<S>, frames: Frames) {
    let closed = shared.closed.clone();
    tokio::select! {
        fault = read_to_end(&shared, stream, frames) => {
            tracing::debug!(?fault, "a connection to a guest ended");
            shared.end_asking(fault).await;
        }
        () = closed.cancelled() => {}
    }
}

async fn write_task(shared: Arc<Shared>) {
    let Some(error) = shared.outbox.write_leftovers().await else {
        return;
    };
    tracing::debug!(%error, "a guest can't be written to any more");
    if tokio::time::timeout(LAST_WORDS, shared.closed.cancelled()).await.is_ok() {
        return;
    }
    if shared.is_asking() {
        shared.closed.cancelled().await
    } else {
        shared.end_asking(Fault::stopped()).await
    }
}
