//! A reader of frames. Small ones come many at a time through one buffer. The missing part of a
//! large one is read straight into its payload.

use std::io;

use tokio::io::{AsyncRead, AsyncReadExt};

use crate::protocol::{Frame, FrameError, HEADER_BYTES, Header};

/// The number of bytes that are read before it is known which frame they belong to.
const BUFFER_BYTES: usize = 16 * 1024;

/// The bytes of a stream that are no frame yet: less than [`BUFFER_BYTES`].
#[derive(Debug)]
pub(super) struct FrameReader {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

/// Why there is no frame.
#[derive(Debug)]
pub(super) enum FrameReadError {
    /// The stream ended, perhaps in the middle of one.
    Ended,
    /// The stream failed.
    Failed(io::Error),
    /// The bytes are none.
    Malformed(FrameError),
}

impl From<io::Error> for FrameReadError {
    fn from(error: io::Error) -> Self {
        Self::Failed(error)
    }
}

impl FrameReader {
    /// Nothing was read yet.
    pub(super) fn new() -> Self {
        Self { buffer: vec![0; BUFFER_BYTES], start: 0, end: 0 }
    }

    /// Tells whether every byte that was read belongs to a frame that was given out.
    pub(super) fn is_drained(&self) -> bool {
        self.start == self.end
    }

    /// The next frame. After an error there is no other. Dropping this in the middle loses the
    /// place in the stream.
    pub(super) async fn next(
        &mut self,
        stream: &mut (impl AsyncRead + Unpin),
    ) -> Result<Frame, FrameReadError> {
        let (header, length) = loop {
            match self.buffer[self.start..self.end].first_chunk::<HEADER_BYTES>() {
                Some(header) => break Header::from_bytes(header).map_err(FrameReadError::Malformed)?,
                None => self.fill(stream).await?,
            }
        };
        self.start += HEADER_BYTES;
        let mut payload = Vec::with_capacity(length);
        let buffered = length.min(self.end - self.start);
        payload.extend_from_slice(&self.buffer[self.start..self.start + buffered]);
        self.start += buffered;
        let mut rest = stream.take((length - buffered) as u64);
        while payload.len() < length {
            if rest.read_buf(&mut payload).await? == 0 {
                return Err(FrameReadError::Ended);
            }
        }
        Ok(Frame { header, payload })
    }

    /// Reads more bytes behind those in the buffer, which are fewer than a header.
    async fn fill(&mut self, stream: &mut (impl AsyncRead + Unpin)) -> Result<(), FrameReadError> {
        self.buffer.copy_within(self.start..self.end, 0);
        (self.start, self.end) = (0, self.end - self.start);
        match stream.read(&mut self.buffer[self.end..]).await? {
            0 => Err(FrameReadError::Ended),
            count => {
                self.end += count;
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::{Kind, MAX_PAYLOAD_BYTES};
    use tokio::io::AsyncWriteExt;

    fn frame(length: usize, call: u32) -> Frame {
        let payload = (0..length).map(|index| (index % 251) as u8).collect();
        Frame { header: Header { kind: Kind::Data, channel: 1, more: false, call }, payload }
    }

    async fn read_all(mut stream: impl AsyncRead + Unpin) -> (Vec<Frame>, FrameReadError) {
        let (mut frames, mut all) = (FrameReader::new(), Vec::new());
        loop {
            match frames.next(&mut stream).await {
                Ok(frame) => all.push(frame),
                Err(end) => return (all, end),
            }
        }
    }

    #[tokio::test]
    async fn frames_of_all_sizes_come_whole_however_the_stream_is_cut() {
        let lengths =
            [0, 1, 5, BUFFER_BYTES - HEADER_BYTES, BUFFER_BYTES, MAX_PAYLOAD_BYTES, 3, MAX_PAYLOAD_BYTES];
        let sent: Vec<Frame> = lengths.iter().zip(1..).map(|(length, call)| frame(*length, call)).collect();
        let bytes: Vec<u8> = sent
            .iter()
            .flat_map(|frame| [&frame.header.to_bytes(frame.payload.len())[..], &frame.payload].concat())
            .collect();
        for capacity in [7, 4096, BUFFER_BYTES, 1 << 20] {
            let (reader, mut writer) = tokio::io::duplex(capacity);
            let write = async {
                writer.write_all(&bytes).await.unwrap();
                drop(writer);
            };
            let ((received, end), ()) = tokio::join!(read_all(reader), write);
            assert!(received == sent && matches!(end, FrameReadError::Ended), "{capacity}");
        }
    }

    #[tokio::test]
    async fn a_stream_that_ends_in_a_frame_and_one_of_other_bytes_are_told_apart() {
        let header = frame(9, 1).header.to_bytes(9);
        assert!(matches!(read_all(&header[..5]).await.1, FrameReadError::Ended));
        assert!(matches!(read_all(&[&header[..], b"1234"].concat()[..]).await.1, FrameReadError::Ended));
        assert!(matches!(read_all(&[0xff; 12][..]).await.1, FrameReadError::Malformed(_)));
    }
}
