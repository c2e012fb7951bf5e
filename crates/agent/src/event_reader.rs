//! Streams of server-sent events, read as the HTML standard says: a line that says nothing known is passed over. What one event
//! may hold has a bound, which is found out before the event is held as a whole.

use std::collections::VecDeque;

use bytes::Bytes;
use futures_util::stream::{self, BoxStream};
use futures_util::{Stream, StreamExt};
use sse_stream::Sse;

/// The most bytes of one event: 16 MiB.
pub(crate) const MAX_EVENT_BYTES: usize = 16 << 20;

/// Reads the events of a body. A failure ends them; that of an event which is too long is `too_long`.
pub(crate) fn read_events<E: Send + 'static>(
    pieces: impl Stream<Item = Result<Bytes, E>> + Send + 'static,
    too_long: impl Fn() -> E + Send + Sync + 'static,
) -> BoxStream<'static, Result<Sse, E>> {
    let body = EventBody { pieces: Some(pieces.boxed()), reader: SseReader::default(), failure: None };
    stream::unfold((body, too_long), async |(mut body, too_long)| {
        let next = body.next(&too_long).await?;
        Some((next, (body, too_long)))
    })
    .boxed()
}

struct EventBody<E> {
    /// `None`: nothing more is to be read.
    pieces: Option<BoxStream<'static, Result<Bytes, E>>>,
    reader: SseReader,
    /// The failure behind the events that came before it.
    failure: Option<E>,
}

impl<E> EventBody<E> {
    async fn next(&mut self, too_long: &impl Fn() -> E) -> Option<Result<Sse, E>> {
        loop {
            if let Some(event) = self.reader.events.pop_front() {
                return Some(Ok(event));
            }
            let Some(pieces) = &mut self.pieces else { return self.failure.take().map(Err) };
            match pieces.next().await {
                Some(Ok(piece)) if self.reader.read(&piece) => {}
                Some(Ok(_)) => (self.pieces, self.failure) = (None, Some(too_long())),
                Some(Err(failure)) => (self.pieces, self.failure) = (None, Some(failure)),
                None => {
                    self.pieces = None;
                    // The last event may have no empty line behind it.
                    self.reader.end_event();
                }
            }
        }
    }
}

/// The event that is being read, and those that are complete.
#[derive(Default)]
struct SseReader {
    events: VecDeque<Sse>,
    event: Option<Sse>,
    /// The bytes of the event's complete lines; comments do not stay.
    lines: usize,
    /// The line that is not complete.
    line: Vec<u8>,
    after_return: bool,
    is_inside: bool,
}

impl SseReader {
    /// Reads the next bytes. `false`: an event is too long.
    fn read(&mut self, mut bytes: &[u8]) -> bool {
        while let Some(first) = bytes.first() {
            if std::mem::take(&mut self.after_return) && *first == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let (line, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
            if self.lines + self.line.len() + line.len() > MAX_EVENT_BYTES {
                return false;
            }
            self.line.extend_from_slice(line);
            let Some(end) = rest.first() else { break };
            self.after_return = *end == b'\r';
            bytes = &rest[1..];
            self.end_line();
        }
        true
    }

    fn end_line(&mut self) {
        let whole = std::mem::take(&mut self.line);
        let is_first = !std::mem::replace(&mut self.is_inside, true);
        let line = if is_first { whole.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(&whole) } else { &whole };
        if line.is_empty() {
            self.end_event();
            return;
        }
        if line[0] == b':' {
            return;
        }
        // The end of the line counts too: empty lines of data are kept as well.
        self.lines += line.len() + 1;
        let colon = line.iter().position(|byte| *byte == b':');
        let (name, value) = line.split_at(colon.unwrap_or(line.len()));
        let value = value.strip_prefix(b":").unwrap_or(value);
        self.add(name, value.strip_prefix(b" ").unwrap_or(value));
    }

    fn add(&mut self, name: &[u8], value: &[u8]) {
        let text = || String::from_utf8_lossy(value).into_owned();
        match name {
            b"data" => {
                let data = &mut self.event.get_or_insert_default().data;
                *data = Some(match data.take() {
                    Some(before) => before + "\n" + &text(),
                    None => text(),
                });
            }
            b"event" => self.event.get_or_insert_default().event = Some(text()),
            b"id" if !value.contains(&0) => self.event.get_or_insert_default().id = Some(text()),
            b"retry" if value.iter().all(u8::is_ascii_digit) => {
                if let Ok(time) = text().parse() {
                    self.event.get_or_insert_default().retry = Some(time);
                }
            }
            _ => {}
        }
    }

    fn end_event(&mut self) {
        self.lines = 0;
        self.events.extend(self.event.take());
    }
}

#[cfg(test)]
mod tests {
    use futures_util::future::ready;

    use super::*;

    async fn read(pieces: &[&[u8]]) -> Vec<Result<Sse, &'static str>> {
        let pieces: Vec<_> = pieces.iter().map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
        read_events(stream::iter(pieces), || "too long").collect().await
    }

    fn data(events: &[Result<Sse, &'static str>]) -> Vec<String> {
        events.iter().map(|event| event.as_ref().unwrap().data.clone().unwrap_or_default()).collect()
    }

    #[tokio::test]
    async fn lines_that_say_nothing_known_are_passed_over() {
        let body = b"\xEF\xBB\xBF: hello\nid: 1\nid: 2\nwhat: is this\ndata\nevent: a\nevent: b\nretry: soon\ndata: x\n\n\
            : only a comment\n\nretry: 5\n\ndata:y\xFF\n";
        let events = read(&[body]).await;
        let first = events[0].as_ref().unwrap();
        assert_eq!((first.event.as_deref(), first.id.as_deref(), first.retry), (Some("b"), Some("2"), None));
        assert_eq!(events[1].as_ref().unwrap().retry, Some(5));
        assert_eq!(data(&events), ["\nx", "", "y\u{FFFD}"]);
    }

    #[tokio::test]
    async fn lines_end_in_three_ways_and_anywhere_in_a_piece() {
        for end in ["\n", "\r", "\r\n"] {
            let body = format!("data: a{end}data: b{end}{end}data: c{end}{end}");
            for at in 0..body.len() {
                let (begin, rest) = body.as_bytes().split_at(at);
                assert_eq!(data(&read(&[begin, rest]).await), ["a\nb", "c"], "{end:?} {at}");
            }
        }
    }

    #[tokio::test]
    async fn events_before_a_failure_are_given() {
        let pieces = stream::iter([Ok(Bytes::from("data: a\n\ndata: b\n\ndata: c\n")), Err("broken")]);
        let events: Vec<_> = read_events(pieces, || "too long").collect().await;
        assert_eq!(data(&events[..2]), ["a", "b"]);
        assert_eq!(events[2].as_ref().err(), Some(&"broken"));
        assert_eq!(events.len(), 3);
    }

    #[tokio::test]
    async fn an_event_without_an_end_is_given_up_and_many_small_ones_are_not() {
        let repeat = |begin: &'static str, piece: &str, times: usize| {
            let piece = Bytes::from(piece.repeat((1 << 20) / piece.len()));
            let pieces = stream::iter(std::iter::once(Bytes::from(begin)).chain(vec![piece; times])).map(Ok);
            read_events(pieces, || "too long").filter(|event| ready(event.is_err())).count()
        };
        for (begin, piece) in [("data: ", "x"), (": ", "x"), ("id: 1\n", "data: x\r\n")] {
            assert_eq!(repeat(begin, piece, 20).await, 1, "{piece:?}");
        }
        for piece in ["data: xxxxx\n\n", ": xxxxx\n"] {
            assert_eq!(repeat("", piece, 18).await, 0, "{piece:?}");
        }
    }
}
