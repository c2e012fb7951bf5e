//! A connection to a guest: many calls at once over one stream, until the stream or the guest's
//! good conduct ends.

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::Duration;

use eyot::{Error, ErrorKind, Result};
use tokio::io::{AsyncRead, AsyncWrite, ReadHalf};

use super::call::Call;
use super::connection_state::{ConnectionOwner, ConnectionState};
use super::fault::{Fault, Inquiry, Verdict};
use super::frames::FrameReader;
use super::handshake::{GuestFacts, RUNNING, SETTING_UP, shake_hands};
use super::local_stream::{LocalStream, ReceivedDescriptors};
use super::lock;
use super::reader::read_to_end;
use super::shape::CallShape;
use super::slot::Slot;
use super::table::TableFull;
use crate::protocol::{
    MAJOR, MAX_MESSAGE_BYTES, PASSES_DRAFTS, PASSES_FILES, Protections, Reply, Request, encode,
};

/// The time that a guest may show no sign of life while a call other than a command waits for it.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// The time that the reader may go on after writing has failed: the guest's last words may still be
/// on their way.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A connection to a guest. Clones share it. It ends when the last clone and the last call are
/// dropped.
///
/// At most 1,000 calls are open at a time, 64 of them file calls (32 that stream out, 16 that
/// stream in, 16 others). More calls wait. Dropping a call cancels it.
#[derive(Clone)]
pub struct Connection {
    owner: Arc<ConnectionOwner>,
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
        let (frames, facts) = shake_hands(&mut stream, client_nonce, guest_nonce, SETTING_UP).await?;
        Ok(Self::begin(stream, frames, facts, None))
    }

    /// Does the same with the socket of a guest on this machine, which may then pass descriptors of
    /// files.
    ///
    /// # Panics
    /// Outside of a Tokio runtime with I/O and time.
    pub async fn open_local(
        socket: UnixStream,
        client_nonce: [u8; 16],
        guest_nonce: [u8; 16],
    ) -> Result<Self> {
        Self::shake_hands_locally(socket, client_nonce, guest_nonce, SETTING_UP).await
    }

    /// Does the same with the socket of a guest on this machine that has been running.
    ///
    /// # Panics
    /// Outside of a Tokio runtime with I/O and time.
    pub async fn reopen_local(
        socket: UnixStream,
        client_nonce: [u8; 16],
        guest_nonce: [u8; 16],
    ) -> Result<Self> {
        Self::shake_hands_locally(socket, client_nonce, guest_nonce, RUNNING).await
    }

    async fn shake_hands_locally(
        socket: UnixStream,
        client_nonce: [u8; 16],
        guest_nonce: [u8; 16],
        patience: Duration,
    ) -> Result<Self> {
        let mut stream = LocalStream::new(socket).map_err(|error| {
            Error::new(ErrorKind::Internal, "the socket of the sandbox's guest can't be used")
                .with_source(error)
        })?;
        let received = stream.received();
        let (frames, facts) = shake_hands(&mut stream, client_nonce, guest_nonce, patience).await?;
        Ok(Self::begin(stream, frames, facts, Some(received)))
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
        let (frames, facts) = shake_hands(&mut stream, client_nonce, guest_nonce, RUNNING).await?;
        Ok(Self::begin(stream, frames, facts, None))
    }

    fn begin(
        stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
        frames: FrameReader,
        facts: GuestFacts,
        received: Option<Arc<ReceivedDescriptors>>,
    ) -> Self {
        let (read, write) = tokio::io::split(stream);
        let state = Arc::new(ConnectionState::new(write, received));
        tokio::spawn(read_task(Arc::clone(&state), read, frames));
        tokio::spawn(write_task(Arc::clone(&state)));
        Self { owner: Arc::new(ConnectionOwner { state, facts }) }
    }

    /// Returns the protections that the guest found around itself when it started. Only a guest in
    /// a container reports them; a guest whose maker set it up does not.
    pub fn protections(&self) -> Option<&Protections> {
        self.owner.facts.protections.as_ref()
    }

    /// Refuses what a guest can't do that knows less of the protocol than version 1.`minor`.
    pub(super) fn require(&self, minor: u16, operation: &str) -> Result<()> {
        let knows = self.owner.facts.minor;
        if knows >= minor {
            return Ok(());
        }
        let message = format!(
            "{operation} needs a guest that speaks protocol {MAJOR}.{minor}, and this sandbox's speaks {MAJOR}.{knows}"
        );
        let hint = "an older Eyot made the sandbox: put it to sleep and wake it, or create it anew";
        Err(Error::new(ErrorKind::Unsupported, message).with_hint(hint))
    }

    /// Tells whether the guest can pass descriptors of files on this connection.
    pub(super) fn passes_files(&self) -> bool {
        self.state().received.is_some() && self.owner.facts.minor >= PASSES_FILES
    }

    /// Tells whether it can also pass those of files that are being written.
    pub(super) fn passes_drafts(&self) -> bool {
        self.passes_files() && self.owner.facts.minor >= PASSES_DRAFTS
    }

    /// Closes the files that the guest has passed, and those that it will pass. They would keep the
    /// sandbox's disk in use. A read that has begun fails.
    pub fn revoke_files(&self) {
        self.state().passed_files.revoke();
    }

    /// Returns once the connection has ended, whatever the reason.
    pub fn closed(&self) -> impl Future<Output = ()> + Send + 'static {
        self.owner.state.closed.clone().cancelled_owned()
    }

    /// Tells whether the connection has ended, or can't be written to any more.
    pub fn is_closed(&self) -> bool {
        self.owner.state.is_closed()
    }

    /// Sets the kind and the sentence of the error for every call from now on that the connection's
    /// end settles, or that comes after it, whatever was seen on the stream. A destroyer of the
    /// sandbox calls this first.
    pub fn set_closed_error(&self, kind: ErrorKind, message: impl Into<String>) {
        self.owner.state.set_owner_reason(Fault::new(kind, message));
    }

    /// The same, asked for anew whenever a call fails: what became of a sandbox may change once
    /// more after the connection's end. The verdict must not block.
    pub fn set_verdict(&self, verdict: Verdict) {
        self.owner.state.set_owner_reason(Fault::Asked(verdict));
    }

    /// Sets the error for a stream that ends without a reason of the owner, while the guest kept to
    /// the protocol.
    pub fn set_stopped_error(&self, kind: ErrorKind, message: impl Into<String>) {
        self.owner.state.set_stopped(Fault::new(kind, message));
    }

    /// Sets the function that finds out why the stream ended, if the owner gave no reason and the
    /// guest kept to the protocol. Open calls settle when it is done, so it must not take for ever.
    pub fn set_inquiry(&self, inquiry: Inquiry) {
        self.owner.state.set_inquiry(inquiry);
    }

    /// Ends the connection; calls under way settle.
    pub fn close(&self) {
        self.owner.state.end(Fault::stopped());
    }

    /// Ends the connection; unless its owner has told another reason, it ended for this one.
    pub(super) fn close_for_good(&self, kind: ErrorKind, message: &str) {
        self.owner.state.set_default_owner_reason(|| Fault::new(kind, message));
        self.close();
    }

    /// Asks whether the guest is there.
    pub async fn ping(&self) -> Result<()> {
        self.ask(&Request::Ping).await.map(drop)
    }

    /// Returns an error once the guest has shown no sign of life for that long. A guest that is
    /// stopped must not hold up a caller for ever.
    pub(super) async fn silence(&self, patience: Duration) -> Error {
        loop {
            tokio::time::sleep(patience / 2).await;
            // After a pause of this process, or of the whole machine, an answer that is there comes after the end of
            // its time. The second question tells such a guest from one that is stopped.
            if self.is_late(patience / 4).await && self.is_late(patience / 4).await {
                return Error::new(ErrorKind::Unavailable, "the sandbox's guest does not answer")
                    .with_hint("it may be stopped or frozen");
            }
        }
    }

    /// Asks for a sign of life, and returns whether there was none for that long.
    async fn is_late(&self, patience: Duration) -> bool {
        match tokio::time::timeout(patience, self.ping()).await {
            Ok(Ok(())) => false,
            // Whoever waits hears of the connection's end.
            Ok(Err(_ended)) => std::future::pending().await,
            Err(_late) => true,
        }
    }

    /// Waits for something that the guest is at work on, as long as the guest shows signs of life.
    pub(super) async fn unless_silent<T>(&self, work: impl Future<Output = Result<T>>) -> Result<T> {
        tokio::select! {
            biased;
            done = work => done,
            error = self.silence(PATIENCE) => Err(error),
        }
    }

    /// Tells the guest that its sandbox is complete and outlives the stream it was made with.
    pub async fn adopt(&self) -> Result<()> {
        self.ask(&Request::Adopt).await.map(drop)
    }

    /// Has the guest kill everything and end, and fails unless the guest has said that everything has ended.
    pub async fn end_everything(&self) -> Result<()> {
        self.ask(&Request::Shutdown).await.map(drop)
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

    /// The same, with an error where the guest shows no sign of life.
    pub(super) async fn ask_unless_silent(&self, request: &Request) -> Result<Reply> {
        self.unless_silent(self.ask(request)).await
    }

    /// Begins a call.
    pub(super) async fn call(&self, request: &Request) -> Result<Call> {
        let message = encode(request);
        if message.len() > MAX_MESSAGE_BYTES {
            let sentence =
                format!("the request has {} bytes; the limit is {MAX_MESSAGE_BYTES}", message.len());
            return Err(Error::new(ErrorKind::TooLarge, sentence));
        }
        let shape = CallShape::of(request);
        let Some(permits) = self.state().lanes.enter(shape.lane).await else {
            return Err(self.error().with_no_effect());
        };
        let slot = Arc::new(Slot::new(shape, permits));
        let number = lock(&self.state().table).enter(&slot);
        let refused = |full| self.refusal(full).with_no_effect();
        let call = Call::new(Arc::clone(&self.owner), number.map_err(refused)?, slot);
        call.send_request(&message).await.map_err(Error::with_no_effect)?;
        Ok(call)
    }

    /// Returns the state that the tasks and the calls share.
    pub(super) fn state(&self) -> &ConnectionState {
        &self.owner.state
    }

    /// Why no call can succeed any more.
    pub(super) fn error(&self) -> Error {
        self.owner.state.error()
    }

    fn refusal(&self, full: TableFull) -> Error {
        match full {
            TableFull::Closed => self.error(),
            TableFull::Numbers => Error::new(
                ErrorKind::Unavailable,
                "the connection to the sandbox has used up its call numbers",
            ),
        }
    }
}

async fn read_task<S: AsyncRead>(state: Arc<ConnectionState>, stream: ReadHalf<S>, frames: FrameReader) {
    let closed = state.closed.clone();
    tokio::select! {
        fault = read_to_end(&state, stream, frames) => {
            tracing::debug!(?fault, "a connection to a guest ended");
            state.end_asking(fault).await;
        }
        () = closed.cancelled() => {}
    }
}

async fn write_task(state: Arc<ConnectionState>) {
    let Some(error) = state.send_queue.write_leftovers().await else {
        return;
    };
    tracing::debug!(%error, "a guest can't be written to any more");
    if tokio::time::timeout(LAST_WORDS, state.closed.cancelled()).await.is_ok() {
        return;
    }
    if state.is_asking() { state.closed.cancelled().await } else { state.end_asking(Fault::stopped()).await }
}
