//! The stream to a guest on this machine: bytes both ways, and descriptors that the guest passes
//! beside its bytes. Other streams carry bytes alone.

use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, recvmsg};
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::UnixStream;

use super::lock;

/// The most descriptors that may wait for the message they belong to. A read can end in the middle
/// of one such message, and the next read can begin another one.
const MOST_WAITING: usize = 2;

/// A socket to a guest on this machine.
pub(super) struct LocalStream {
    socket: UnixStream,
    received: Arc<ReceivedDescriptors>,
}

/// The descriptors that were received before the message they belong to was read.
#[derive(Debug, Default)]
pub(super) struct ReceivedDescriptors(Mutex<WaitingDescriptors>);

#[derive(Debug, Default)]
struct WaitingDescriptors {
    waiting: VecDeque<OwnedFd>,
    is_excessive: bool,
}

impl ReceivedDescriptors {
    /// Takes the descriptor of the message that was just read.
    pub(super) fn take(&self) -> Option<OwnedFd> {
        lock(&self.0).waiting.pop_front()
    }

    /// Tells whether descriptors wait for a message.
    pub(super) fn any_waits(&self) -> bool {
        !lock(&self.0).waiting.is_empty()
    }

    /// Tells whether the guest passed more descriptors than a client takes.
    pub(super) fn is_excessive(&self) -> bool {
        lock(&self.0).is_excessive
    }

    /// Closes what waits, and what comes.
    pub(super) fn close(&self) {
        let mut received = lock(&self.0);
        received.is_excessive = true;
        received.waiting.clear();
    }

    /// Takes in what one read brought. More than one descriptor is closed, and nothing more is taken.
    fn add(&self, descriptors: Vec<OwnedFd>, is_cut: bool) {
        let mut received = lock(&self.0);
        let count = received.waiting.len() + descriptors.len();
        if is_cut || received.is_excessive || descriptors.len() > 1 || count > MOST_WAITING {
            received.is_excessive = true;
            received.waiting.clear();
            return;
        }
        received.waiting.extend(descriptors);
    }
}

/// The result of one read.
struct LocalRead {
    count: usize,
    has_descriptor: bool,
}

impl LocalStream {
    /// The stream of a connected socket.
    pub(super) fn new(socket: std::os::unix::net::UnixStream) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self { socket: UnixStream::from_std(socket)?, received: Arc::default() })
    }

    /// Returns the descriptors that reading the stream brings.
    pub(super) fn received(&self) -> Arc<ReceivedDescriptors> {
        Arc::clone(&self.received)
    }

    /// Reads what is there.
    fn receive(&self, space: &mut [u8]) -> io::Result<LocalRead> {
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut room);
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT;
        let message = recvmsg(&self.socket, &mut [IoSliceMut::new(space)], &mut control, flags)?;
        let mut descriptors = Vec::new();
        for part in control.drain() {
            if let RecvAncillaryMessage::ScmRights(passed) = part {
                descriptors.extend(passed);
            }
        }
        let is_cut = message.flags.contains(ReturnFlags::CTRUNC);
        let has_descriptor = is_cut || !descriptors.is_empty();
        if has_descriptor {
            self.received.add(descriptors, is_cut);
        }
        if self.received.is_excessive() {
            // The reader asks why.
            return Err(io::ErrorKind::InvalidData.into());
        }
        Ok(LocalRead { count: message.bytes, has_descriptor })
    }

    /// Reads if the socket is ready. Where nothing is left the socket is not ready any more, which
    /// spares another read to find that out. The kernel ends a read behind a message with a
    /// descriptor, so only a short read without one says so.
    fn try_read(&self, space: &mut [u8]) -> io::Result<usize> {
        let mut count = None;
        let tried = self.socket.try_io(Interest::READABLE, || {
            let read = self.receive(space)?;
            count = Some(read.count);
            let is_empty = read.count > 0 && read.count < space.len() && !read.has_descriptor;
            if is_empty { Err(io::ErrorKind::WouldBlock.into()) } else { Ok(()) }
        });
        count.map_or_else(|| tried.map(|()| 0), Ok)
    }
}

impl AsyncRead for LocalStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            ready!(self.socket.poll_read_ready(context))?;
            match self.try_read(buffer.initialize_unfilled()) {
                Ok(count) => {
                    buffer.advance(count);
                    return Poll::Ready(Ok(()));
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }
}

impl AsyncWrite for LocalStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.socket).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.socket).poll_shutdown(context)
    }
}
