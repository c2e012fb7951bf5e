//! Connects streams of the runtime with the blocking reads and writes of tar. A pipe holds only a
//! few buffers, so neither side gets far ahead of the other.

use std::io::{self, Read, Write};

use bytes::{Buf, Bytes};
use eyot::{ByteStream, Error, ErrorKind};
use futures_util::StreamExt;
use tokio::sync::mpsc::{Receiver, Sender, channel};

const BUFFERS: usize = 8;

/// A blocking reader of the stream that is given to `feed`. It must be read on another thread than
/// the runtime's.
pub struct StreamReader {
    chunks: Receiver<Bytes>,
    current: Bytes,
    ended: Receiver<()>,
}

/// The other end of a [`StreamReader`].
pub struct Feeder {
    chunks: Sender<Bytes>,
    ended: Sender<()>,
}

/// Makes a reader, and the other end that feeds it.
pub fn reader() -> (Feeder, StreamReader) {
    let (chunks, received) = channel(BUFFERS);
    // A message on this one says that the end is the stream's own and not a feeder that was given up.
    let (ended, has_ended) = channel(1);
    (Feeder { chunks, ended }, StreamReader { chunks: received, current: Bytes::new(), ended: has_ended })
}

impl Feeder {
    /// Passes the whole stream on. It is no error if the reader is gone.
    pub async fn feed(self, mut stream: ByteStream) -> Result<(), Error> {
        while let Some(bytes) = stream.next().await {
            if self.chunks.send(bytes?).await.is_err() {
                return Ok(());
            }
        }
        // The reader may have gone away at the last moment; what it says counts.
        self.ended.send(()).await.or(Ok(()))
    }
}

impl Read for StreamReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.current.is_empty() {
            match self.chunks.blocking_recv() {
                Some(bytes) => self.current = bytes,
                None if self.ended.blocking_recv().is_some() => {
                    self.ended.close();
                    return Ok(0);
                }
                // Asked again after the end, or the stream broke off.
                None => return Err(io::ErrorKind::UnexpectedEof.into()),
            }
        }
        let count = self.current.len().min(buffer.len());
        self.current.copy_to_slice(&mut buffer[..count]);
        Ok(count)
    }
}

/// A blocking writer whose bytes come out as a stream. Unless [`StreamWriter::finish`] is called,
/// the stream ends with an error, so that a part is not taken for the whole.
pub struct StreamWriter {
    chunks: Sender<Result<Bytes, Error>>,
    finished: bool,
}

/// Makes a writer, and the stream of the written bytes.
pub fn writer() -> (StreamWriter, ByteStream) {
    let (chunks, received) = channel(BUFFERS);
    let stream = futures_util::stream::unfold(received, |mut received: Receiver<_>| async move {
        received.recv().await.map(|chunk| (chunk, received))
    });
    (StreamWriter { chunks, finished: false }, Box::pin(stream.fuse()))
}

impl StreamWriter {
    /// Ends the stream: everything was written.
    pub fn finish(mut self) {
        self.finished = true;
    }
}

impl Write for StreamWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let sent = self.chunks.blocking_send(Ok(Bytes::copy_from_slice(bytes)));
        sent.map(|()| bytes.len()).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for StreamWriter {
    fn drop(&mut self) {
        if !self.finished {
            let broken = Error::new(ErrorKind::Cancelled, "what was to be copied broke off");
            // If nobody listens, nobody takes it for the whole.
            drop(self.chunks.blocking_send(Err(broken)));
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::TryStreamExt;

    use super::*;

    fn stream(chunks: Vec<Result<Bytes, Error>>) -> ByteStream {
        Box::pin(futures_util::stream::iter(chunks))
    }

    #[tokio::test]
    async fn what_is_fed_is_read_in_order_to_the_end() {
        let (feeder, mut reader) = reader();
        let chunks = (0..100u8).map(|byte| Ok(Bytes::from(vec![byte; 3]))).collect();
        let thread = tokio::task::spawn_blocking(move || {
            let mut read = Vec::new();
            reader.read_to_end(&mut read).map(|_| read)
        });
        feeder.feed(stream(chunks)).await.unwrap();
        let expected: Vec<u8> = (0..100).flat_map(|byte| [byte; 3]).collect();
        assert_eq!(thread.await.unwrap().unwrap(), expected);
    }

    #[tokio::test]
    async fn a_stream_that_breaks_off_is_an_error_to_its_reader() {
        let (feeder, mut reader) = reader();
        let broken = Error::new(ErrorKind::Unavailable, "gone");
        let thread = tokio::task::spawn_blocking(move || reader.read_to_end(&mut Vec::new()));
        assert!(feeder.feed(stream(vec![Ok(Bytes::from_static(b"x")), Err(broken)])).await.is_err());
        assert_eq!(thread.await.unwrap().unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
    }

    #[tokio::test]
    async fn a_writer_that_is_dropped_before_it_has_finished_ends_its_stream_with_an_error() {
        for finished in [true, false] {
            let (mut writer, stream) = writer();
            let thread = tokio::task::spawn_blocking(move || {
                writer.write_all(b"half").unwrap();
                if finished {
                    writer.finish();
                }
            });
            assert_eq!(stream.try_collect::<Vec<Bytes>>().await.is_ok(), finished);
            thread.await.unwrap();
        }
    }
}
