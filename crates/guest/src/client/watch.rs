//! The changes at a watched path, as a stream of events. Paths are checked, because programs that
//! mirror a tree join them to paths of the host.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use eyot::{MAX_NAME_BYTES, Result, WatchEvent, WatchEventKind};
use futures_util::{Stream, stream::BoxStream};

use super::call::Call;
use super::connection::Connection;
use super::convert::text_and_bytes;
use super::fault::Fault;
use crate::protocol::{WatchKind, WatchRecord, decode};

/// The longest path: that of a directory that a call can name, and a name in it.
const MAX_PATH_BYTES: usize = eyot::MAX_PATH_BYTES + 1 + MAX_NAME_BYTES;

/// The events of one piece after the other, then the call's error if it has one.
struct WatchEvents {
    call: Option<Call>,
    connection: Connection,
    ready: VecDeque<WatchEvent>,
}

/// The events of a call that has been opened. Dropping the stream cancels the call.
pub(super) fn events_of(call: Call, connection: Connection) -> BoxStream<'static, Result<WatchEvent>> {
    Box::pin(WatchEvents { call: Some(call), connection, ready: VecDeque::new() })
}

impl Stream for WatchEvents {
    type Item = Result<WatchEvent>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Poll::Ready(Some(Ok(event)));
            }
            let Some(call) = &self.call else {
                return Poll::Ready(None);
            };
            let Some(piece) = ready!(call.poll_piece(context)) else {
                let end = ready!(call.poll_reply(context));
                self.call = None;
                return Poll::Ready(end.err().map(Err));
            };
            match decode::<Vec<WatchRecord>>(&piece.bytes).and_then(events) {
                Ok(events) => self.ready = events,
                Err(what) => {
                    self.connection.state().end(Fault::broken(&what));
                    self.call = None;
                    return Poll::Ready(Some(Err(self.connection.error())));
                }
            }
        }
    }
}

fn events(records: Vec<WatchRecord>) -> Result<VecDeque<WatchEvent>, String> {
    records.into_iter().map(event).collect()
}

fn event(record: WatchRecord) -> Result<WatchEvent, String> {
    let WatchRecord { kind, path, from, directory } = record;
    check_path(&path)?;
    let kind = match (kind, from) {
        (WatchKind::Created, None) => WatchEventKind::Created,
        (WatchKind::Modified, None) => WatchEventKind::Modified,
        (WatchKind::Removed, None) => WatchEventKind::Removed,
        (WatchKind::Overflow, None) if path.is_empty() => WatchEventKind::Overflow,
        (WatchKind::Renamed, Some(from)) if !from.is_empty() && !path.is_empty() => {
            check_path(&from)?;
            let (from, from_bytes) = text_and_bytes(from);
            WatchEventKind::Renamed { from, from_bytes }
        }
        (kind, _) => return Err(format!("an event {kind:?} that can't be")),
    };
    let (path, path_bytes) = text_and_bytes(path);
    Ok(WatchEvent { kind, path, path_bytes, is_directory: directory })
}

fn check_path(path: &[u8]) -> Result<(), String> {
    let bad =
        |name: &[u8]| matches!(name, b"" | b"." | b"..") || name.contains(&0) || name.len() > MAX_NAME_BYTES;
    if path.len() > MAX_PATH_BYTES || (!path.is_empty() && path.split(|byte| *byte == b'/').any(bad)) {
        Err("an event with a path that no file can have".to_owned())
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: WatchKind, path: &[u8], from: Option<&[u8]>) -> WatchRecord {
        WatchRecord { kind, path: path.to_vec(), from: from.map(<[u8]>::to_vec), directory: false }
    }

    #[test]
    fn n6_paths_that_lead_out_of_the_place_are_refused() {
        for path in [&b"/etc/passwd"[..], b"..", b"a/../../b", b"a//b", b"a/", b"a\0", &[b'x'; 256]] {
            assert!(event(record(WatchKind::Created, path, None)).is_err(), "{path:?}");
            assert!(event(record(WatchKind::Renamed, b"a", Some(path))).is_err(), "{path:?}");
        }
        for path in [&b""[..], b"a", b"a/b", b"...", b"new\nline", b"\xff"] {
            assert!(event(record(WatchKind::Removed, path, None)).is_ok(), "{path:?}");
        }
    }

    #[test]
    fn n6_an_event_that_contradicts_itself_is_refused() {
        assert!(event(record(WatchKind::Renamed, b"a", None)).is_err());
        assert!(event(record(WatchKind::Created, b"a", Some(b"b"))).is_err());
        assert!(event(record(WatchKind::Overflow, b"a", None)).is_err());
    }

    #[test]
    fn bytes_that_are_no_text_are_kept_beside_it() {
        let event = event(record(WatchKind::Renamed, b"\xffb", Some(b"\xffa"))).unwrap();
        assert_eq!((event.path.as_str(), event.path_bytes.as_deref()), ("\u{fffd}b", Some(&b"\xffb"[..])));
        let from = WatchEventKind::Renamed { from: "\u{fffd}a".into(), from_bytes: Some(b"\xffa".to_vec()) };
        assert_eq!(event.kind, from);
    }
}
