//! Carries the WebSocket of a preview: bytes both ways, unchanged. Only the ends of frames are
//! followed, so that the server can close the socket with a frame of its own.

use std::io;
use std::time::Duration;

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy, sink, split};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::limits::PlaceInUse;

/// The time that a browser has to end its side of a WebSocket that the guest has ended.
const LAST_WORDS: Duration = Duration::from_secs(10);
/// The same, if the server ends it.
const PARTING_WORDS: Duration = Duration::from_secs(1);
/// The size of the buffer that carries data, in bytes.
const PIECE_BYTES: usize = 16 << 10;
/// The first byte of a close frame that is the whole of its message.
const CLOSE: u8 = 0x88;

/// The events that end a WebSocket from outside.
pub(super) struct EndSignals {
    /// The grants of the port were revoked.
    pub revoked: CancellationToken,
    /// The server stops.
    pub stop: CancellationToken,
}

/// A close frame's code and reason.
type CloseReason = (u16, &'static str);

impl EndSignals {
    async fn come(&self) -> CloseReason {
        tokio::select! {
            () = self.revoked.cancelled() => (1008, "the preview was ended"),
            () = self.stop.cancelled() => (1001, "the server stops"),
        }
    }
}

/// Carries a WebSocket's bytes both ways until one side is gone, or it is ended from outside. Its
/// place is freed before the browser learns of the end.
pub(super) async fn carry(browser: OnUpgrade, guest: OnUpgrade, place: PlaceInUse, ends: EndSignals) {
    let (Ok(browser), Ok(guest)) = tokio::join!(browser, guest) else { return };
    let (mut from_browser, mut to_browser) = split(TokioIo::new(browser));
    let (from_guest, mut to_guest) = split(TokioIo::new(guest));
    let too_late = async {
        ends.come().await;
        sleep(PARTING_WORDS).await;
        Ok(None)
    };
    let ended = tokio::select! {
        ended = outwards(from_guest, &mut to_browser, &ends) => ended,
        ended = copy(&mut from_browser, &mut to_guest) => ended.map(|_| None),
        // A browser that does not read keeps nobody.
        ended = too_late => ended,
    };
    drop(place);
    let within =
        if ends.revoked.is_cancelled() || ends.stop.is_cancelled() { PARTING_WORDS } else { LAST_WORDS };
    let parting = async {
        if let Some(word) = ended? {
            to_browser.write_all(&close_frame(word)).await?;
        }
        to_browser.shutdown().await?;
        // A connection that is dropped with something unread is reset, and what was sent last is lost with it.
        copy(&mut from_browser, &mut sink()).await
    };
    if let Ok(Err(error)) = timeout(within, parting).await {
        tracing::debug!(%error, "a WebSocket of a preview broke");
    }
}

/// Carries the guest's bytes to the browser. If it is ended from outside between two frames, it
/// returns the code and the reason for the close frame.
async fn outwards(
    mut guest: impl AsyncRead + Unpin,
    browser: &mut (impl AsyncWrite + Unpin),
    ends: &EndSignals,
) -> io::Result<Option<CloseReason>> {
    let (mut buffer, mut frames) = (vec![0; PIECE_BYTES], Frames::default());
    loop {
        let read = tokio::select! {
            biased;
            word = ends.come() => return Ok(frames.are_whole().then_some(word)),
            read = guest.read(&mut buffer) => read?,
        };
        if read == 0 {
            return Ok(None);
        }
        frames.pass(&buffer[..read]);
        browser.write_all(&buffer[..read]).await?;
    }
}

/// Makes a server's close frame, which has no mask. The reason must have fewer than 124 bytes.
fn close_frame((code, reason): CloseReason) -> Vec<u8> {
    let length = u8::try_from(reason.len() + 2).unwrap_or(2);
    let mut frame = vec![CLOSE, length];
    frame.extend_from_slice(&code.to_be_bytes());
    frame.extend_from_slice(&reason.as_bytes()[..usize::from(length) - 2]);
    frame
}

/// The position in a stream of frames (RFC 6455, section 5.2).
#[derive(Default)]
struct Frames {
    /// The bytes of the current frame's head that have come.
    head: Vec<u8>,
    /// The number of bytes of the frame's content that are still to come.
    left: u64,
}

impl Frames {
    fn pass(&mut self, mut bytes: &[u8]) {
        while let [first, rest @ ..] = bytes {
            if self.left > 0 {
                let taken = usize::try_from(self.left).unwrap_or(usize::MAX).min(bytes.len());
                self.left -= taken as u64;
                bytes = &bytes[taken..];
                continue;
            }
            self.head.push(*first);
            bytes = rest;
            if self.head.len() == self.head_bytes() {
                self.left = self.content_bytes();
                self.head.clear();
            }
        }
    }

    /// Returns the length of the head, as far as it is known, in bytes.
    fn head_bytes(&self) -> usize {
        let Some(second) = self.head.get(1) else { return 2 };
        let mask = if second & 0x80 == 0 { 0 } else { 4 };
        2 + self.length_bytes() + mask
    }

    fn length_bytes(&self) -> usize {
        match self.head[1] & 0x7f {
            126 => 2,
            127 => 8,
            _ => 0,
        }
    }

    fn content_bytes(&self) -> u64 {
        match self.length_bytes() {
            0 => u64::from(self.head[1] & 0x7f),
            bytes => self.head[2..2 + bytes].iter().fold(0, |length, byte| length << 8 | u64::from(*byte)),
        }
    }

    fn are_whole(&self) -> bool {
        self.head.is_empty() && self.left == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_whole_at_their_ends_and_nowhere_else() {
        let short = [vec![0x81, 3], vec![b'x'; 3]].concat();
        let middle = [vec![0x82, 126, 1, 0], vec![0; 256]].concat();
        let long = [vec![0x82, 127, 0, 0, 0, 0, 0, 1, 0, 0], vec![0; 65536]].concat();
        let masked = [vec![0x81, 0x82, 1, 2, 3, 4], vec![b'y'; 2]].concat();
        let empty = vec![0x89, 0];
        let all = [short, middle, long, masked, empty];
        let ends: Vec<usize> = all
            .iter()
            .scan(0, |end, frame| {
                *end += frame.len();
                Some(*end)
            })
            .collect();
        let stream = all.concat();
        let mut frames = Frames::default();
        assert!(frames.are_whole());
        for (index, byte) in stream.iter().enumerate() {
            frames.pass(&[*byte]);
            assert_eq!(frames.are_whole(), ends.contains(&(index + 1)), "{index}");
        }
        let mut at_once = Frames::default();
        at_once.pass(&stream);
        assert!(at_once.are_whole());
        at_once.pass(&stream[..stream.len() - 1]);
        assert!(!at_once.are_whole());
    }

    #[test]
    fn a_close_frame_has_its_code_and_its_reason() {
        assert_eq!(close_frame((1001, "bye")), [0x88, 5, 0x03, 0xe9, b'b', b'y', b'e']);
    }
}
