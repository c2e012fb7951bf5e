//! A blocking reader of bytes that arrive asynchronously.

use std::io::{self, Read};
use std::sync::Arc;

use bytes::{Buf, Bytes};
use eyot_image::{Digest, Progress};
use tokio::sync::mpsc;

/// A reader of pieces. An empty piece is the end; a sender that is dropped before that is an error.
pub(crate) struct PieceReader {
    receiver: mpsc::Receiver<io::Result<Bytes>>,
    now: Bytes,
    ended: bool,
    id: Digest,
    progress: Arc<dyn Progress>,
}

impl PieceReader {
    /// Makes a reader. It reports every byte to `progress`, as part of the blob `id`.
    pub(crate) fn new(
        receiver: mpsc::Receiver<io::Result<Bytes>>,
        id: Digest,
        progress: Arc<dyn Progress>,
    ) -> Self {
        Self { receiver, now: Bytes::new(), ended: false, id, progress }
    }

    fn receive(&mut self) -> io::Result<()> {
        self.now =
            self.receiver.blocking_recv().unwrap_or_else(|| Err(io::ErrorKind::UnexpectedEof.into()))?;
        self.ended = self.now.is_empty();
        if self.ended {
            self.progress.finish(&self.id);
        }
        Ok(())
    }
}

impl Read for PieceReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.now.is_empty() && !self.ended {
            self.receive()?;
        }
        let count = self.now.len().min(into.len());
        self.now.copy_to_slice(&mut into[..count]);
        self.progress.advance(&self.id, count as u64);
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use eyot_image::NoProgress;

    use super::*;

    fn read(pieces: Vec<io::Result<Bytes>>) -> io::Result<String> {
        let (sender, receiver) = mpsc::channel(8);
        for piece in pieces {
            sender.try_send(piece).expect("room for it");
        }
        drop(sender);
        let mut text = String::new();
        PieceReader::new(receiver, Digest::of(b"x"), Arc::new(NoProgress)).read_to_string(&mut text)?;
        Ok(text)
    }

    #[test]
    fn only_an_empty_piece_is_the_end() {
        let piece = |text: &'static str| Ok(Bytes::from_static(text.as_bytes()));
        assert_eq!(read(vec![piece("ab"), piece("c"), piece("")]).expect("a text"), "abc");
        let cut = read(vec![piece("ab")]).expect_err("nobody said that it ends");
        assert_eq!(cut.kind(), io::ErrorKind::UnexpectedEof);
        let failed = read(vec![piece("ab"), Err(io::ErrorKind::ConnectionReset.into()), piece("")]);
        assert_eq!(failed.expect_err("it broke").kind(), io::ErrorKind::ConnectionReset);
    }
}
