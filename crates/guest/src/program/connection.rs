//! A client's connection: its handshake, its frames put together to messages, and its open calls.

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Arc;

use super::call_handle::GuestCall;
use super::call_ids::CallIds;
use super::failure::failure;
use super::file_call::FileCall;
use super::outbox::Outbox;
use super::wire;
use crate::protocol::{
    Decoder, Event, Failure, Frame, GuestConfig, Hello, Kind, MAJOR, MAX_CALLS, MAX_MESSAGE_BYTES, MINOR,
    Message, Protections, Request, Welcome, decode,
};

/// The most bytes of unfinished messages in one connection.
const MOST_PARTIAL_BYTES: usize = 16 << 20;

/// The minor version of the protocol from which on clients know [`Event::Ending`].
const KNOWS_ENDING: u16 = 1;

/// An open call.
#[derive(Debug, Clone)]
pub enum Call {
    /// A command, by its number.
    Command(u32),
    /// A process that is being started, by its command's number.
    Starting(u32),
    /// Waits for a process. With `is_look` it does not count as use of the sandbox.
    Wait { process: u32, is_look: bool },
    /// Waits for a tree to be dead, by its command's number.
    Killing(u32),
    /// Reads a process's log.
    Logs(u32),
    /// Reads the output of a kept command, by its number.
    Attached(u32),
    /// Waits for the end of a kept command.
    AwaitingKept(u32),
    /// Feeds a kept command, by its command's number.
    Feeding(u32),
    /// A connection to a port, by its number.
    Dial(u32),
    /// Served by a worker.
    File(Arc<FileCall>),
    /// Holds the other calls back.
    Holding,
}

impl Call {
    /// Tells whether the sandbox's files may be in use for it.
    pub fn may_use_files(&self) -> bool {
        match self {
            Self::Wait { .. } | Self::Logs(_) | Self::Attached(_) | Self::AwaitingKept(_) => false,
            Self::File(file) => !file.is_done(),
            Self::Command(_) | Self::Starting(_) | Self::Killing(_) | Self::Feeding(_) => true,
            Self::Dial(_) | Self::Holding => true,
        }
    }
}

/// A connection.
pub struct Connection {
    /// The connection's number.
    pub id: u32,
    /// The bytes that are still to be sent.
    pub outbox: Arc<Outbox>,
    /// It is the maker's own stream.
    pub is_makers: bool,
    /// The decoder of arriving bytes.
    pub decoder: Decoder,
    /// The open calls.
    pub calls: HashMap<u32, Call>,
    /// It did more than look how the sandbox is.
    pub has_used: bool,
    /// The minor version of the client that has greeted.
    client_minor: Option<u16>,
    ids: CallIds,
    partial: HashMap<u32, Vec<u8>>,
    partial_bytes: usize,
}

impl Connection {
    /// One that has said nothing yet.
    pub fn new(id: u32, outbox: Arc<Outbox>, is_makers: bool) -> Self {
        Self {
            id,
            outbox,
            is_makers,
            decoder: Decoder::new(),
            calls: HashMap::new(),
            has_used: false,
            client_minor: None,
            ids: CallIds::default(),
            partial: HashMap::new(),
            partial_bytes: 0,
        }
    }

    /// The call with that number.
    pub fn handle(&self, call: u32) -> GuestCall {
        GuestCall::new(self.id, call, Arc::clone(&self.outbox))
    }

    /// Tells whether the client has proved itself.
    pub fn has_greeted(&self) -> bool {
        self.client_minor.is_some()
    }

    /// Tells a client which of its open calls were begun, because no other will be: it may make
    /// those again elsewhere.
    pub fn say_what_was_begun(&self) {
        if self.client_minor.is_some_and(|minor| minor >= KNOWS_ENDING) {
            let begun = Event::Ending(self.calls.keys().copied().collect());
            self.outbox.append(|out| wire::push_message(out, Kind::Event, 0, &begun));
            self.outbox.flush();
        }
    }

    /// The first frame: the client's proof, and the guest's.
    ///
    /// # Errors
    /// `conflict` for another major version, `permission` for another nonce.
    pub fn greet(
        &mut self,
        frame: &Frame,
        config: &GuestConfig,
        protections: Option<&Protections>,
    ) -> Result<(), Failure> {
        if frame.header.kind != Kind::Hello {
            return Err(failure("invalid", "the first message must be a greeting"));
        }
        let hello: Hello = read(&frame.payload)?;
        if hello.major != MAJOR {
            let message =
                format!("the client speaks version {} of the protocol, the guest {MAJOR}", hello.major);
            return Err(failure("conflict", message));
        }
        if !equal_in_constant_time(&hello.nonce, &config.client_nonce) {
            return Err(failure("permission", "the nonce is not this sandbox's"));
        }
        self.client_minor = Some(hello.minor);
        let nonce = config.guest_nonce;
        let welcome = Welcome { major: MAJOR, minor: MINOR, nonce, protections: protections.cloned() };
        self.outbox.append(|out| wire::push_message(out, Kind::Welcome, 0, &welcome));
        Ok(())
    }

    /// A piece of a request; the request, once it is whole.
    ///
    /// # Errors
    /// `invalid` for a number that was used, too many calls, too many bytes, or what is no request.
    pub fn assemble(&mut self, frame: Frame) -> Result<Option<Request>, Failure> {
        let call = frame.header.call;
        let begun = self.partial.remove(&call);
        if begun.is_none() {
            self.begin(call)?;
        }
        let mut bytes = begun.unwrap_or_default();
        self.partial_bytes -= bytes.len();
        if bytes.is_empty() {
            bytes = frame.payload;
        } else {
            bytes.extend_from_slice(&frame.payload);
        }
        if bytes.len() > MAX_MESSAGE_BYTES || self.partial_bytes + bytes.len() > MOST_PARTIAL_BYTES {
            return Err(failure("invalid", format!("a request of more than {MAX_MESSAGE_BYTES} bytes")));
        }
        if !frame.header.more {
            return read(&bytes).map(Some);
        }
        self.partial_bytes += bytes.len();
        self.partial.insert(call, bytes);
        Ok(None)
    }

    fn begin(&mut self, call: u32) -> Result<(), Failure> {
        if !self.ids.begin(call) {
            return Err(failure("invalid", format!("call {call} can't begin: the number is 0 or was used")));
        }
        if self.calls.len() + self.partial.len() >= MAX_CALLS {
            self.calls.retain(|_, call| !matches!(call, Call::File(file) if file.is_done()));
        }
        if self.calls.len() + self.partial.len() >= MAX_CALLS {
            return Err(failure("invalid", format!("more than {MAX_CALLS} calls at once")));
        }
        Ok(())
    }

    /// The open call that a frame is for; `None`: it has ended, and the frame crossed its answer on
    /// the way.
    ///
    /// # Errors
    /// `invalid` for a number under which nothing ever began.
    pub fn open_call(&self, call: u32) -> Result<Option<Call>, Failure> {
        match self.calls.get(&call) {
            Some(open) => Ok(Some(open.clone())),
            None if self.ids.was_used(call) && !self.partial.contains_key(&call) => Ok(None),
            None => Err(failure("invalid", format!("call {call} never began"))),
        }
    }

    /// Returns the number of watched paths.
    pub fn watches(&self) -> usize {
        self.calls.values().filter(|call| matches!(call, Call::File(file) if file.is_watch())).count()
    }

    /// Tells whether a call is being served that counts as activity as long as it lasts. A followed
    /// log, a watched path and a connection to a port count only when bytes flow.
    pub fn is_busy(&self) -> bool {
        self.calls.values().any(|call| match call {
            Call::Command(_) | Call::Starting(_) | Call::Killing(_) | Call::Holding => true,
            Call::Wait { is_look, .. } => !is_look,
            // A kept command is busy by itself as long as it runs.
            Call::Attached(_) | Call::AwaitingKept(_) | Call::Feeding(_) => false,
            Call::Logs(_) | Call::Dial(_) => false,
            Call::File(file) => file.is_busy(),
        })
    }
}

/// The message in these bytes.
///
/// # Errors
/// `invalid`.
pub fn read<M: Message>(bytes: &[u8]) -> Result<M, Failure> {
    decode(bytes).map_err(|reason| failure("invalid", reason))
}

fn equal_in_constant_time(a: &[u8; 16], b: &[u8; 16]) -> bool {
    let difference = a.iter().zip(b).fold(0, |difference, (a, b)| black_box(difference | (a ^ b)));
    black_box(difference) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonces_are_equal_only_if_every_byte_is() {
        let nonce = [7; 16];
        assert!(equal_in_constant_time(&nonce, &nonce));
        for index in 0..16 {
            let mut other = nonce;
            other[index] ^= 0x80;
            assert!(!equal_in_constant_time(&nonce, &other));
        }
    }
}
