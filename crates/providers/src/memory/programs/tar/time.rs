//! Times on the command line and in lists. The sandbox has the time zone UTC.

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// A time as text, in the words of `strftime`.
pub(in crate::memory::programs) fn shown(seconds: i64, format: &str) -> String {
    let time = Timestamp::from_second(seconds).unwrap_or_default();
    Zoned::new(time, TimeZone::UTC).strftime(format).to_string()
}

/// Reads `@SECONDS`, a date, or a date with a time.
pub(super) fn seconds(text: &str) -> Option<i64> {
    if let Some(seconds) = text.strip_prefix('@') {
        return seconds.parse().ok();
    }
    let text = text.trim();
    if let Ok(time) = text.parse::<Timestamp>() {
        return Some(time.as_second());
    }
    let civil = text.strip_suffix("UTC").or_else(|| text.strip_suffix('Z')).unwrap_or(text).trim();
    let date = || civil.parse::<Date>().ok().map(DateTime::from);
    let time = civil.parse::<DateTime>().ok().or_else(date)?;
    Some(time.to_zoned(TimeZone::UTC).ok()?.timestamp().as_second())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_the_usual_ways() {
        for text in
            ["@86400", "1970-01-02", "1970-01-02 00:00:00", "1970-01-02T00:00:00Z", "1970-01-02 00:00 UTC"]
        {
            assert_eq!(seconds(text), Some(86400), "{text}");
        }
        assert_eq!(seconds("soon"), None);
        assert_eq!(shown(86400, "%Y-%m-%d %H:%M"), "1970-01-02 00:00");
    }
}
