//! A server's stream of events, with a bound on what one event can hold.

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use reqwest::Response;
use sse_stream::{Sse, SseStream};
use tokio_util::sync::CancellationToken;

use super::failure::{HttpFailure, MAX_MESSAGE_BYTES};

/// The events of a server.
pub(super) type EventStream = BoxStream<'static, Result<Sse, sse_stream::Error>>;

/// Reads the answer as events, until it ends or `stop` is cancelled. An event of more than [`MAX_MESSAGE_BYTES`] is an
/// error, found before it is held as a whole.
pub(super) fn events_of(response: Response, stop: CancellationToken) -> EventStream {
    let mut size = EventSize::default();
    let bytes = response.bytes_stream().map(move |chunk| -> Result<Bytes, HttpFailure> {
        let chunk = chunk.map_err(|error| HttpFailure::of_body(&error))?;
        size.add(&chunk)?;
        Ok(chunk)
    });
    SseStream::from_bytes_stream(bytes).take_until(stop.cancelled_owned()).boxed()
}

/// The size of the event that is being read.
#[derive(Default)]
struct EventSize {
    /// The bytes of its complete lines; comments do not stay.
    lines: usize,
    /// The bytes of the line that is not complete.
    line: usize,
    is_comment: bool,
    after_return: bool,
}

impl EventSize {
    /// Counts the next bytes.
    fn add(&mut self, bytes: &[u8]) -> Result<(), HttpFailure> {
        for byte in bytes {
            let ends_return = std::mem::replace(&mut self.after_return, *byte == b'\r') && *byte == b'\n';
            match byte {
                b'\n' if ends_return => {}
                b'\n' | b'\r' => self.end_line(),
                byte => {
                    self.is_comment |= self.line == 0 && *byte == b':';
                    self.line += 1;
                    if self.lines + self.line > MAX_MESSAGE_BYTES {
                        return Err(HttpFailure::TooLarge);
                    }
                }
            }
        }
        Ok(())
    }

    fn end_line(&mut self) {
        if self.line == 0 {
            self.lines = 0;
        } else if !self.is_comment {
            // The end of the line counts too: empty lines of data are kept as well.
            self.lines += self.line + 1;
        }
        (self.line, self.is_comment) = (0, false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HALF: usize = MAX_MESSAGE_BYTES / 2;

    fn add(size: &mut EventSize, line: &[u8], times: usize, end: &[u8]) -> Result<(), HttpFailure> {
        for _ in 0..times {
            size.add(line)?;
        }
        size.add(end)
    }

    #[test]
    fn an_event_is_too_large_whether_it_is_one_line_or_many() {
        let mut line = EventSize::default();
        assert_eq!(
            add(&mut line, &[b'x'; 1024], MAX_MESSAGE_BYTES / 1024 + 1, b""),
            Err(HttpFailure::TooLarge)
        );
        for end in [&b"\n"[..], b"\r\n", b"\r"] {
            let mut lines = EventSize::default();
            let one_line = [&b"data: x"[..], end].concat();
            assert_eq!(add(&mut lines, &one_line, MAX_MESSAGE_BYTES / 7, b""), Err(HttpFailure::TooLarge));
        }
    }

    #[test]
    fn events_and_comments_do_not_add_up() {
        for (begin, end) in [(&b"data: "[..], &b"\r\n\r\n"[..]), (b"data: ", b"\n\n"), (b": ", b"\n")] {
            let mut size = EventSize::default();
            for _ in 0..4 {
                size.add(begin).unwrap();
                add(&mut size, &[b'x'; 1024], HALF / 1024, end).unwrap();
            }
        }
    }
}
