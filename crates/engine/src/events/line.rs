//! An event as a line, and whether a line is what it says it is.

use std::io;

use serde::Serialize;
use sha2::{Digest, Sha256};

use super::event::{Event, EventHash, EventKind, NewEvent};

/// No line is longer, in bytes: the texts of an event are cut, and JSON makes at most six bytes of one.
pub(super) const MAX_LINE_BYTES: usize = 256 * 1024;

/// The end of a line: `,"hash":"`, 64 digits, `"}`.
const HASH_BEGINS: &[u8] = b",\"hash\":\"";
const HASH_ENDS: &[u8] = b"\"}";
const HASH_DIGITS: usize = 64;
/// The beginning of the line of event 0.
const FIRST_BEGINS: &str = "{\"seq\":0";

/// The part of an event that the hash is computed over: all but the hash.
#[derive(Serialize)]
struct Body<'a> {
    seq: u64,
    time_ms: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pool: &'a Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sandbox: &'a Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sandbox_id: &'a Option<String>,
    #[serde(flatten)]
    kind: &'a EventKind,
    reason: &'a str,
    previous: EventHash,
}

/// The event with its number, and its line with the line's end.
pub(super) fn encode(
    seq: u64,
    time_ms: i64,
    new: NewEvent,
    previous: EventHash,
) -> io::Result<(Event, Vec<u8>)> {
    let NewEvent { pool, sandbox, sandbox_id, reason, kind } = new;
    let body = Body {
        seq,
        time_ms,
        pool: &pool,
        sandbox: &sandbox,
        sandbox_id: &sandbox_id,
        kind: &kind,
        reason: &reason,
        previous,
    };
    let mut line = serde_json::to_vec(&body)?;
    let hash = hash(&[&line]);
    line.pop();
    line.extend_from_slice(HASH_BEGINS);
    line.extend_from_slice(hash.to_string().as_bytes());
    line.extend_from_slice(HASH_ENDS);
    line.push(b'\n');
    Ok((Event { seq, time_ms, pool, sandbox, sandbox_id, kind, reason, previous, hash }, line))
}

/// The part of a line between its number and the hash of the event before it, of which a database makes the line.
pub(super) fn middle(time_ms: i64, new: NewEvent) -> io::Result<String> {
    let (_, line) = encode(0, time_ms, new, EventHash::ZERO)?;
    let line = String::from_utf8(line).map_err(io::Error::other)?;
    let begins = line.strip_prefix(FIRST_BEGINS);
    let ends = EventHash::ZERO.to_string() + "\"";
    let middle = begins.and_then(|rest| rest.rsplit_once(&ends)).map(|(middle, _)| middle.to_owned());
    middle.ok_or_else(|| io::Error::other("an event's line has another form"))
}

/// A fault of a single line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineError {
    /// It is no event's line at all.
    NoEvent,
    /// It is the line of an event, and its hash is another one than it says.
    Changed,
}

/// The event of a line (without the line's end) whose hash is not checked.
pub(super) fn decode(line: &[u8]) -> Result<Event, LineError> {
    serde_json::from_slice(line).map_err(|_| LineError::NoEvent)
}

/// Returns whether the line begins as that of an event with a number below this one: what can be
/// passed over without a look.
pub(super) fn has_seq_below(line: &[u8], seq: u64) -> bool {
    let digits = line.strip_prefix(b"{\"seq\":").unwrap_or_default();
    let digits = digits.split(|byte| !byte.is_ascii_digit()).next().unwrap_or_default();
    std::str::from_utf8(digits)
        .ok()
        .and_then(|digits| digits.parse::<u64>().ok())
        .is_some_and(|found| found < seq)
}

/// The event of a line whose hash is right.
pub(super) fn check(line: &[u8]) -> Result<Event, LineError> {
    let event = decode(line)?;
    let end = HASH_BEGINS.len() + HASH_DIGITS + HASH_ENDS.len();
    let (body, end) = line.split_at_checked(line.len().saturating_sub(end)).unwrap_or_default();
    // The bytes are what counts, not what they mean: two hashes in one line, or spaces, would be a line of somebody else.
    let is_hash = end.starts_with(HASH_BEGINS) && end.ends_with(HASH_ENDS);
    if is_hash && hash(&[body, b"}"]) == event.hash { Ok(event) } else { Err(LineError::Changed) }
}

fn hash(parts: &[&[u8]]) -> EventHash {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part);
    }
    EventHash::new(hasher.finalize().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line() -> (Event, Vec<u8>) {
        let kind = EventKind::FileWritten { path: "/w/ä\n\"".to_owned(), size: 3 };
        let new = NewEvent::new(kind, "a write was called").in_pool("p").of_sandbox("box", "sb_1");
        encode(7, 1_700_000_000_000, new, EventHash::ZERO).unwrap()
    }

    #[test]
    fn a_line_is_one_json_object_with_the_hash_last_and_reads_as_the_event_that_was_written() {
        let (event, line) = line();
        let text = String::from_utf8(line.clone()).unwrap();
        assert!(
            text.starts_with(r#"{"seq":7,"time_ms":1700000000000,"pool":"p","sandbox":"box","#),
            "{text}"
        );
        assert!(
            text.contains(r#""kind":"file_written","path":"/w/ä\n\"","size":3,"reason":"a write"#),
            "{text}"
        );
        assert!(text.ends_with(&format!(",\"hash\":\"{}\"}}\n", event.hash)), "{text}");
        assert_eq!(check(text.trim_end().as_bytes()), Ok(event));
    }

    #[test]
    fn the_hash_is_sha_256_of_the_line_without_it() {
        let (event, line) = line();
        let text = String::from_utf8(line).unwrap();
        let without = text.trim_end().replace(&format!(",\"hash\":\"{}\"", event.hash), "");
        assert_eq!(event.hash, EventHash::new(Sha256::digest(without).into()));
    }

    #[test]
    fn no_byte_of_a_line_can_be_changed_unseen() {
        let (_, line) = line();
        let line = line.strip_suffix(b"\n").unwrap();
        for index in 0..line.len() {
            let mut changed = line.to_vec();
            changed[index] ^= 1;
            assert!(check(&changed).is_err(), "byte {index}: {}", String::from_utf8_lossy(&changed));
        }
    }

    #[test]
    fn the_longest_texts_in_the_worst_writing_stay_below_the_longest_line() {
        let worst = || "\u{1}".repeat(1 << 20);
        let kind = EventKind::Transferred {
            from: worst(),
            from_path: worst(),
            to_path: worst(),
            files: u64::MAX,
            bytes: u64::MAX,
        };
        let new = NewEvent::new(kind, worst()).in_pool(worst()).of_sandbox(worst(), worst());
        let (_, line) = encode(u64::MAX, i64::MIN, new.checked().unwrap(), EventHash::ZERO).unwrap();
        assert!(line.len() < MAX_LINE_BYTES, "{}", line.len());
    }

    #[test]
    fn a_kind_of_a_later_version_is_read_as_unknown_and_its_hash_still_counts() {
        let body = format!(
            r#"{{"seq":1,"time_ms":1,"kind":"teleported","to":["mars"],"reason":"r","previous":"{}"}}"#,
            EventHash::ZERO
        );
        let hash = hash(&[body.as_bytes()]);
        let line = format!("{},\"hash\":\"{hash}\"}}", body.strip_suffix('}').unwrap());
        assert_eq!(check(line.as_bytes()).unwrap().kind, EventKind::Unknown);
        assert_eq!(check(line.replace("mars", "moon").as_bytes()), Err(LineError::Changed));
    }
}
