//! Messages that come in several frames, put together within bounds.

use std::collections::HashMap;

use super::fault::Violation;
use crate::protocol::{Frame, Kind, MAX_MESSAGE_BYTES};

/// The most bytes of unfinished messages in all calls of a connection together. It is twice the
/// need of the file calls that may answer in several frames at the same time.
const MAX_WAITING_BYTES: usize = 16 * MAX_MESSAGE_BYTES;

/// The beginnings of messages whose ends have not come yet.
#[derive(Debug, Default)]
pub(super) struct Assembly {
    begun: HashMap<(u32, u8), Vec<u8>>,
    waiting_bytes: usize,
}

impl Assembly {
    /// Takes in one frame of a message of at most `max_bytes`; gives the message when that was its
    /// last.
    pub(super) fn add(&mut self, frame: Frame, max_bytes: usize) -> Result<Option<Vec<u8>>, Violation> {
        let Frame { header, payload } = frame;
        let key = (header.call, header.kind as u8);
        if header.more && payload.is_empty() {
            return Err(Violation::new("an empty part of a message"));
        }
        let begun = self.begun.get(&key).map_or(0, Vec::len);
        if begun + payload.len() > max_bytes {
            return Err(Violation::new(format!("a message of more than {max_bytes} bytes")));
        }
        if begun == 0 && !header.more {
            return Ok(Some(payload));
        }
        self.waiting_bytes += payload.len();
        if self.waiting_bytes > MAX_WAITING_BYTES {
            return Err(Violation::new("too many messages that are not finished"));
        }
        self.begun.entry(key).or_default().extend_from_slice(&payload);
        Ok(if header.more { None } else { self.take(&key) })
    }

    fn take(&mut self, key: &(u32, u8)) -> Option<Vec<u8>> {
        let message = self.begun.remove(key)?;
        self.waiting_bytes -= message.len();
        Some(message)
    }

    /// Tells whether a call ended in the middle of another message of its own.
    pub(super) fn is_midway(&self, call: u32) -> bool {
        [Kind::Reply, Kind::Failure, Kind::Event]
            .iter()
            .any(|kind| self.begun.contains_key(&(call, *kind as u8)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::Header;

    fn part(call: u32, more: bool, payload: &[u8]) -> Frame {
        Frame { header: Header { kind: Kind::Reply, channel: 0, more, call }, payload: payload.to_vec() }
    }

    #[test]
    fn parts_of_two_calls_are_kept_apart() {
        let mut assembly = Assembly::default();
        assert_eq!(assembly.add(part(1, true, b"a"), 9), Ok(None));
        assert_eq!(assembly.add(part(2, true, b"x"), 9), Ok(None));
        assert!(assembly.is_midway(1));
        assert_eq!(assembly.add(part(1, false, b"b"), 9), Ok(Some(b"ab".to_vec())));
        assert_eq!(assembly.add(part(2, false, b"y"), 9), Ok(Some(b"xy".to_vec())));
        assert!(!assembly.is_midway(1) && assembly.waiting_bytes == 0);
    }

    #[test]
    fn a_message_beyond_its_limit_is_refused_at_the_part_that_crosses_it() {
        let mut assembly = Assembly::default();
        assert_eq!(assembly.add(part(1, true, b"abc"), 4), Ok(None));
        assert!(assembly.add(part(1, true, b"de"), 4).is_err());
    }

    #[test]
    fn all_unfinished_messages_together_are_bounded() {
        let mut assembly = Assembly::default();
        let piece = vec![0; 60_000];
        let refused = (1..=u32::MAX).find(|call| assembly.add(part(*call, true, &piece), 1 << 20).is_err());
        assert!(refused.is_some() && assembly.waiting_bytes <= MAX_WAITING_BYTES + piece.len());
    }
}
