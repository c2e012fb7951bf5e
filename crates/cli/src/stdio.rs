//! Our own stdin, stdout and stderr, read and written without blocking the runtime: signals and
//! deadlines must work while a reader is slow or nobody types. They are never made non-blocking,
//! since the program that started us shares them. Instead, every call first asks whether it would
//! wait.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use bytes::{Buf, Bytes};
use eyot::{ByteStream, Error, ErrorKind};
use futures_util::{Stream, StreamExt};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, dup, read, write};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// The number of bytes that a ready pipe takes without waiting: `PIPE_BUF` on Linux.
const WRITE_CHUNK: usize = 4096;
const READ_CHUNK: usize = 64 * 1024;

/// A descriptor, and the way to wait for it.
struct Pollable {
    fd: OwnedFd,
    interest: Interest,
    flags: PollFlags,
    waiting: Waiting,
}

enum Waiting {
    /// No call had to wait yet.
    NotYet,
    /// The descriptor is registered with the event loop.
    Registered(AsyncFd<OwnedFd>),
    /// A file or a device that is always ready.
    Never,
}

impl Pollable {
    fn readable(fd: impl AsFd) -> io::Result<Self> {
        Self::new(fd, Interest::READABLE, PollFlags::IN)
    }

    fn writable(fd: impl AsFd) -> io::Result<Self> {
        Self::new(fd, Interest::WRITABLE, PollFlags::OUT)
    }

    /// Is ready once the other end is closed, which the kernel tells whatever it is asked for.
    fn closed(fd: impl AsFd) -> io::Result<Self> {
        Self::new(fd, Interest::READABLE | Interest::ERROR, PollFlags::empty())
    }

    fn new(fd: impl AsFd, interest: Interest, flags: PollFlags) -> io::Result<Self> {
        Ok(Self { fd: dup(fd)?, interest, flags, waiting: Waiting::NotYet })
    }

    fn is_ready(&self) -> io::Result<bool> {
        let mut asked = [PollFd::new(&self.fd, self.flags)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        match poll(&mut asked, Some(&now)) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    /// Waits until a call would not wait. The future may be dropped.
    async fn ready(&mut self) -> io::Result<()> {
        loop {
            if self.is_ready()? {
                return Ok(());
            }
            self.register()?;
            let Waiting::Registered(registered) = &self.waiting else {
                return Ok(());
            };
            let mut guard = registered.ready(self.interest).await?;
            if self.is_ready()? {
                return Ok(());
            }
            guard.clear_ready();
        }
    }

    fn register(&mut self) -> io::Result<()> {
        if matches!(self.waiting, Waiting::NotYet) {
            self.waiting = register(dup(&self.fd)?, self.interest)?;
        }
        Ok(())
    }
}

#[expect(
    deprecated,
    reason = "the replacement is unsafe for types that may change their descriptor; OwnedFd does not"
)]
fn register(fd: OwnedFd, interest: Interest) -> io::Result<Waiting> {
    match AsyncFd::with_interest(fd, interest) {
        Ok(registered) => Ok(Waiting::Registered(registered)),
        // epoll refuses what is always ready.
        Err(error) if error.raw_os_error() == Some(Errno::PERM.raw_os_error()) => Ok(Waiting::Never),
        Err(error) => Err(error),
    }
}

/// Our stdout or stderr.
pub struct Sink {
    out: Pollable,
    end: Pollable,
}

impl Sink {
    /// Opens our standard output.
    pub fn stdout() -> io::Result<Self> {
        Self::new(io::stdout())
    }

    /// Opens our standard error.
    pub fn stderr() -> io::Result<Self> {
        Self::new(io::stderr())
    }

    fn new(fd: impl AsFd) -> io::Result<Self> {
        Ok(Self { out: Pollable::writable(&fd)?, end: Pollable::closed(fd)? })
    }

    /// Returns the next item of a stream that is printed here. Fails with a broken pipe as soon as
    /// nobody reads on: the next item, whose write would fail, may be a long time in coming.
    pub async fn next_of<S: Stream + Unpin>(&mut self, items: &mut S) -> io::Result<Option<S::Item>> {
        tokio::select! {
            biased;
            item = items.next() => Ok(item),
            closed = self.closed() => closed.and(Err(io::ErrorKind::BrokenPipe.into())),
        }
    }

    /// Waits until the other end is closed: for ever if that can't happen, as for a file.
    async fn closed(&mut self) -> io::Result<()> {
        self.end.register()?;
        match self.end.waiting {
            Waiting::Never => std::future::pending().await,
            _ => self.end.ready().await,
        }
    }

    /// Writes all of the bytes. If the future is dropped halfway, `bytes` holds exactly the
    /// unwritten rest.
    pub async fn write(&mut self, bytes: &mut Bytes) -> io::Result<()> {
        while !bytes.is_empty() {
            self.out.ready().await?;
            match write(&self.out.fd, &bytes[..bytes.len().min(WRITE_CHUNK)]) {
                Ok(written) => bytes.advance(written),
                Err(Errno::INTR | Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

/// Streams our standard input, to its end, as it comes.
pub fn stdin_stream() -> io::Result<ByteStream> {
    let stdin = Pollable::readable(io::stdin())?;
    let stream = futures_util::stream::unfold(stdin, |mut stdin| async move {
        match read_some(&mut stdin).await {
            Ok(bytes) if bytes.is_empty() => None,
            Ok(bytes) => Some((Ok(bytes), stdin)),
            Err(error) => Some((Err(unreadable(error)), stdin)),
        }
    });
    Ok(Box::pin(stream.fuse()))
}

/// Reads the next bytes; none at the end.
async fn read_some(stdin: &mut Pollable) -> io::Result<Bytes> {
    let mut buffer = vec![0; READ_CHUNK];
    loop {
        stdin.ready().await?;
        match read(&stdin.fd, &mut buffer) {
            Ok(count) => {
                buffer.truncate(count);
                return Ok(buffer.into());
            }
            Err(Errno::INTR | Errno::AGAIN) => {}
            // The terminal was hung up.
            Err(Errno::IO) => return Ok(Bytes::new()),
            Err(error) => return Err(error.into()),
        }
    }
}

fn unreadable(error: io::Error) -> Error {
    Error::new(ErrorKind::Internal, "read our standard input: it can't be read").with_source(error)
}
