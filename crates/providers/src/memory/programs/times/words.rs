//! Times that people write: `2024-01-31 + 1 month`, `next friday`, `@0`.

use jiff::Zoned;
use parse_datetime::{ParsedDateTime, parse_datetime_at_date};

use super::{Moment, Zone};

/// The longest text that is read as a time.
const MAX_BYTES: usize = 1024;

/// A text that is no time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::memory::programs) struct NoTime;

/// Reads a time as it is meant now, in a zone.
///
/// # Errors
/// The text is no time.
pub(in crate::memory::programs) fn read_time(text: &str, now: Moment, zone: &Zone) -> Result<Moment, NoTime> {
    if text.len() > MAX_BYTES {
        return Err(NoTime);
    }
    let (zone, text) = match own_zone(text)? {
        Some((zone, text)) => (zone, text),
        None => (zone.clone(), text),
    };
    let text = if text.trim().is_empty() { "today 00:00".to_owned() } else { offsets_after_times(text)? };
    let parsed = parse_datetime_at_date(now.in_zone(&zone.rules), &text).map_err(|_| NoTime)?;
    let nanos = u32::try_from(parsed.subsec_nanosecond()).map_err(|_| NoTime)?;
    let seconds = match &parsed {
        ParsedDateTime::InRange(time) => seconds_of(time),
        ParsedDateTime::Extended(time) => time.unix_seconds(),
    };
    Ok(Moment { seconds, nanos })
}

/// The whole seconds at or before a time.
fn seconds_of(time: &Zoned) -> i64 {
    let time = time.timestamp();
    time.as_second() - i64::from(time.subsec_nanosecond() < 0)
}

/// Reads the zone that a text may begin with: `TZ="Europe/Berlin" 12:00`.
fn own_zone(text: &str) -> Result<Option<(Zone, &str)>, NoTime> {
    let Some(rest) = text.trim_start().strip_prefix("TZ=\"") else { return Ok(None) };
    let mut name = String::new();
    let mut letters = rest.char_indices();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '"' => return Ok(Some((Zone::named(&name), &rest[at + 1..]))),
            '\\' => match letters.next() {
                Some((_, letter @ ('\\' | '"'))) => name.push(letter),
                _ => return Err(NoTime),
            },
            letter => name.push(letter),
        }
    }
    Err(NoTime)
}

/// Writes the number behind a time as the offset of its zone, which it is: `10:00 + 1 hour` is ten
/// o'clock one hour east of UTC, and an hour later.
fn offsets_after_times(text: &str) -> Result<String, NoTime> {
    let mut out = String::with_capacity(text.len() + 4);
    let mut rest = text;
    while let Some(end) = end_of_time(rest) {
        out.push_str(&rest[..end]);
        rest = &rest[end..];
        let trimmed = rest.trim_start();
        let Some(sign @ ('+' | '-')) = trimmed.chars().next() else { continue };
        let number = trimmed[1..].trim_start();
        let digits = number.bytes().take_while(u8::is_ascii_digit).count();
        // What has colons of its own is read rightly.
        if digits == 0 || number[digits..].starts_with(':') {
            continue;
        }
        let value: u32 = number[..digits].parse().map_err(|_| NoTime)?;
        let (hours, minutes) = if digits <= 2 { (value, 0) } else { (value / 100, value % 100) };
        if hours * 60 + minutes > 24 * 60 {
            return Err(NoTime);
        }
        out += &format!("{sign}{hours:02}:{minutes:02}");
        rest = &number[digits..];
    }
    Ok(out + rest)
}

/// The end of the first time of the day in a text, like `10:00:59.5`.
fn end_of_time(text: &str) -> Option<usize> {
    let colon = text.find(':')?;
    let is_time = text[..colon].ends_with(|letter: char| letter.is_ascii_digit());
    let more = text[colon + 1..]
        .bytes()
        .take_while(|byte| byte.is_ascii_digit() || matches!(byte, b':' | b'.' | b','))
        .count();
    if is_time || more > 0 {
        return Some(colon + 1 + more);
    }
    end_of_time(&text[colon + 1..]).map(|end| colon + 1 + end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::programs::times::format_time;

    /// Reads a time at noon of 2024-01-31, a Wednesday.
    fn read(text: &str, zone: &str) -> String {
        let zone = Zone::named(zone);
        match read_time(text, Moment { seconds: 1_706_702_400, nanos: 0 }, &zone) {
            Ok(moment) => format_time("%F %T", moment, &zone),
            Err(NoTime) => "wrong".to_owned(),
        }
    }

    #[test]
    fn times_are_read_as_gnu_reads_them() {
        for (text, time) in [
            ("2024-01-31 + 1 month", "2024-03-02 00:00:00"),
            ("2024-12-25 +2 weeks 3 days", "2025-01-11 00:00:00"),
            ("yesterday", "2024-01-30 12:00:00"),
            ("next friday", "2024-02-02 00:00:00"),
            ("@0", "1970-01-01 00:00:00"),
            ("", "2024-01-31 00:00:00"),
            ("1 Jan 2024", "2024-01-01 00:00:00"),
            ("TZ=\"America/New_York\" 2024-01-01 12:00", "2024-01-01 17:00:00"),
            ("12345-01-01", "+12345-01-01 00:00:00"),
            ("nonsense", "wrong"),
            ("2024-13-01", "wrong"),
            ("TZ=\"x", "wrong"),
        ] {
            assert_eq!(read(text, "UTC"), time, "{text}");
        }
        assert_eq!(read(&"9".repeat(2000), "UTC"), "wrong");
    }

    #[test]
    fn a_number_behind_a_time_is_the_offset_of_its_zone() {
        assert_eq!(read("2024-01-01 10:00 + 1 hour", "UTC"), "2024-01-01 10:00:00");
        assert_eq!(read("2024-01-01 10:00 -3 hours", "UTC"), "2024-01-01 14:00:00");
        assert_eq!(read("2024-01-01 10:00 +0530", "UTC"), "2024-01-01 04:30:00");
        assert_eq!(read("2024-01-01 10:00 UTC -3 hours", "UTC"), "2024-01-01 07:00:00");
        assert_eq!(read("2024-01-01 10:00 +9999 hours", "UTC"), "wrong");
    }

    #[test]
    fn times_are_those_of_the_zone() {
        assert_eq!(read("2024-07-01 12:00Z", "EST5EDT"), "2024-07-01 08:00:00");
        assert_eq!(read("2024-07-01 12:00", "XYZ5"), "2024-07-01 12:00:00");
    }
}
