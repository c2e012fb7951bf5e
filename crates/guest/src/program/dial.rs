//! A call that is a connection to a port on the sandbox's loopback.

use std::io;
use std::os::fd::AsFd;
use std::sync::Arc;

use super::call_handle::GuestCall;
use super::failure::failure;
use super::input_writer::InputWriter;
use super::output_stream::{OutputStream, ReadOutcome};
use super::poll::{Poll, PollToken};
use super::sys;
use crate::protocol::{CHANNEL_MAIN, Event, Failure, MAX_PAYLOAD_BYTES, Reply};

/// A connection to a port.
pub struct Dial {
    handle: GuestCall,
    id: u32,
    port: u16,
    poll: Arc<Poll>,
    tried_v6: bool,
    writer: InputWriter,
    reader: Option<OutputStream>,
    connected: bool,
    client_ended: bool,
}

/// The end of the call, if it ended.
pub type DialEnd = Option<Result<Reply, Failure>>;

impl Dial {
    /// Begins to connect, to IPv4 first.
    ///
    /// # Errors
    /// `unavailable` when nothing listens, `quota` when no socket can be made.
    pub fn new(handle: GuestCall, id: u32, port: u16, poll: Arc<Poll>) -> Result<Self, Failure> {
        let (writer, tried_v6) = match connect(id, port, false, &poll) {
            Ok(writer) => (writer, false),
            Err(_) => (connect(id, port, true, &poll).map_err(|error| refused(port, &error))?, true),
        };
        let (reader, connected, client_ended) = (None, false, false);
        Ok(Self { handle, id, port, poll, tried_v6, writer, reader, connected, client_ended })
    }

    /// The call.
    pub fn handle(&self) -> &GuestCall {
        &self.handle
    }

    /// The socket takes bytes, or the connect settled.
    pub fn on_writable(&mut self) -> DialEnd {
        if self.connected { self.write() } else { self.settle_connect() }
    }

    fn settle_connect(&mut self) -> DialEnd {
        let result = sys::connect_result(self.writer.fd().as_fd());
        match result.and_then(|()| self.open()) {
            Ok(()) => self.write(),
            Err(_) if !self.tried_v6 => self.try_v6(),
            Err(error) => Some(Err(refused(self.port, &error))),
        }
    }

    fn try_v6(&mut self) -> DialEnd {
        self.tried_v6 = true;
        match connect(self.id, self.port, true, &self.poll) {
            Ok(mut writer) => {
                // What the client sent already belongs to the call, not to the address.
                writer.take_queue_of(&mut self.writer);
                self.writer = writer;
                None
            }
            Err(error) => Some(Err(refused(self.port, &error))),
        }
    }

    fn open(&mut self) -> io::Result<()> {
        let reading_end = self.writer.fd().try_clone()?;
        let token = PollToken::DialRead(self.id);
        self.reader = Some(OutputStream::new(reading_end, Arc::clone(&self.poll), token, CHANNEL_MAIN)?);
        self.connected = true;
        self.handle.event(&Event::Opened(None));
        Ok(())
    }

    /// The other side sent bytes, or its end.
    pub fn on_readable(&mut self, buffer: &mut [u8]) -> DialEnd {
        let reader = self.reader.as_mut()?;
        let limit = reader.credit.min(MAX_PAYLOAD_BYTES as u64) as usize;
        if limit == 0 || self.handle.is_full() {
            reader.watch(false);
            return None;
        }
        match reader.take(&mut buffer[..limit]) {
            ReadOutcome::Bytes(count) => {
                reader.credit -= count as u64;
                self.handle.data(CHANNEL_MAIN, &[&buffer[..count]]);
            }
            ReadOutcome::Nothing => {}
            ReadOutcome::End => {
                self.reader = None;
                self.handle.end(CHANNEL_MAIN);
            }
        }
        self.ending()
    }

    /// The client takes so many bytes more, or the connection has room again.
    pub fn grant(&mut self, bytes: u32) {
        if let Some(reader) = self.reader.as_mut() {
            reader.credit = reader.credit.saturating_add(u64::from(bytes));
            reader.watch(true);
        }
    }

    /// Takes what the client sent. `None`: more than was granted.
    pub fn accept(&mut self, bytes: &[u8]) -> Option<DialEnd> {
        self.writer.accept(bytes).then(|| self.write_if_connected())
    }

    /// The client sends no more.
    pub fn end(&mut self) -> DialEnd {
        self.writer.end(&[]);
        self.write_if_connected()
    }

    fn write_if_connected(&mut self) -> DialEnd {
        if self.connected { self.write() } else { None }
    }

    fn write(&mut self) -> DialEnd {
        if let Some(bytes) = self.writer.write() {
            self.handle.grant(CHANNEL_MAIN, bytes);
        }
        if self.writer.is_finished() && !self.client_ended {
            self.client_ended = true;
            // It fails when the other side has closed, which comes to the same.
            drop(sys::shut_down_writing(self.writer.fd().as_fd()));
        }
        self.ending()
    }

    /// Over when both sides have ended, or one has and the other can't be reached any more.
    fn ending(&self) -> DialEnd {
        let over = self.connected && self.reader.is_none() && (self.client_ended || self.writer.is_broken());
        over.then_some(Ok(Reply::Done))
    }
}

fn connect(id: u32, port: u16, v6: bool, poll: &Arc<Poll>) -> io::Result<InputWriter> {
    let socket = sys::connect_loopback(port, v6)?;
    let mut writer = InputWriter::new(socket, Arc::clone(poll), PollToken::DialWrite(id));
    writer.watch_for_connect()?;
    Ok(writer)
}

fn refused(port: u16, error: &io::Error) -> Failure {
    match error.raw_os_error() {
        Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::ENOBUFS) => {
            failure("quota", format!("dial port {port}: {error}"))
        }
        Some(libc::ECONNREFUSED) => failure("unavailable", format!("nothing listens on port {port}")),
        // Without IPv6 the second attempt says this; the first one was refused.
        Some(libc::EAFNOSUPPORT | libc::EADDRNOTAVAIL | libc::ENETUNREACH) => {
            failure("unavailable", format!("nothing listens on port {port}"))
        }
        _ => failure("unavailable", format!("dial port {port}: {error}")),
    }
}
