//! Durations and moments as people write and read them: `500ms`, `10s`, `1.5h`, `1h 30m`; `2026-11-20 18:29:13`.

use std::str::FromStr;
use std::time::{Duration, UNIX_EPOCH};

use eyot::internal::now_ms;
use serde::Deserialize;

/// Parses `500ms`, `10s`, `2m`, `1.5h`, `1h30m` or `7d` into milliseconds. A unit is needed, since a
/// bare number could mean anything.
pub fn parse_ms(text: &str) -> Result<u64, String> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        let seconds = if text.bytes().all(|byte| byte == b'0') { "30" } else { text };
        return Err(format!("`{text}` has no unit; write {seconds}s for seconds, or 500ms, 2m, 1.5h, 7d"));
    }
    let duration = fraction(text).or_else(|| humantime::parse_duration(text).ok());
    let duration = duration
        .ok_or_else(|| format!("`{text}` is not a valid duration; write 500ms, 10s, 2m, 1.5h or 7d"))?;
    u64::try_from(duration.as_millis()).map_err(|_| format!("`{text}` is too long"))
}

/// Parses the time that a command may take. Nothing is refused: to others it means no limit.
pub fn parse_timeout_ms(text: &str) -> Result<u64, String> {
    if text == "0" || parse_ms(text) == Ok(0) {
        return Err(format!(
            "`{text}` is no time; leave the option out for no limit, or write 30s, 10m or 1.5h"
        ));
    }
    parse_ms(text)
}

/// Parses a time that can't be left out for none.
pub fn parse_some_ms(text: &str) -> Result<u64, String> {
    let parsed = if text == "0" { Ok(0) } else { parse_ms(text) };
    match parsed {
        Ok(0) => Err("it can't be no time; write 30s, 10m or 1.5h".to_owned()),
        parsed => parsed,
    }
}

/// The time after which a sandbox ends, in milliseconds and longer than nothing. `None`: never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct DeadlineArg(pub Option<u64>);

impl FromStr for DeadlineArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "never" {
            return Ok(Self(None));
        }
        match parse_ms(text) {
            Ok(0) => Err(format!("`{text}` would end it at once; write 30s, 10m or 1.5h, or never")),
            Ok(ms) if ms > eyot::Limits::MAX => Err(format!("`{text}` is too long; write never for none")),
            Ok(ms) => Ok(Self(Some(ms))),
            Err(reason) => Err(format!("{reason}, or never")),
        }
    }
}

impl TryFrom<String> for DeadlineArg {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// Parses a number with a decimal point and one unit: `1.5h`.
fn fraction(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_at(text.find(|character: char| character.is_ascii_alphabetic())?);
    let number = number.trim_end();
    let is_decimal = number.contains('.') && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let unit = humantime::parse_duration(&format!("1{unit}")).ok().filter(|_| is_decimal)?;
    Duration::try_from_secs_f64((number.parse::<f64>().ok()? * unit.as_secs_f64() * 1e6).round() / 1e6).ok()
}

/// Renders a duration by its largest unit alone: `3s`, `12m`, `5h`, `9d`.
pub fn age(milliseconds: u64) -> String {
    let seconds = milliseconds / 1000;
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m", seconds / 60),
        3600..86_400 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// Returns the milliseconds since `moment_ms` (since 1970, UTC); 0 if that is in the future.
pub fn since(moment_ms: i64) -> u64 {
    u64::try_from(now_ms().saturating_sub(moment_ms)).unwrap_or_default()
}

/// Renders a moment, in milliseconds since 1970, as `2026-11-20 18:29:13` (UTC).
pub fn moment(moment_ms: i64) -> String {
    let since_1970 = Duration::from_millis(u64::try_from(moment_ms).unwrap_or_default());
    // The formatter refuses years beyond 9999, which a damaged state file may hold.
    let shown = UNIX_EPOCH.checked_add(since_1970.min(Duration::from_secs(253_402_300_799)));
    let text = humantime::format_rfc3339_seconds(shown.unwrap_or(UNIX_EPOCH)).to_string();
    text.replace('T', " ").trim_end_matches('Z').to_owned()
}

/// Renders milliseconds as a person writes them: `1m 30s`.
pub fn humane(milliseconds: u64) -> String {
    const UNITS: [(u64, &str); 5] =
        [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1000, "s"), (1, "ms")];
    let mut left = milliseconds;
    let mut parts = Vec::new();
    for (unit, name) in UNITS {
        if left >= unit {
            parts.push(format!("{}{name}", left / unit));
            left %= unit;
        }
    }
    if parts.is_empty() { "0s".to_owned() } else { parts.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_needs_a_unit() {
        for (text, expected) in [
            ("500ms", 500),
            ("10s", 10_000),
            ("2m", 120_000),
            ("1h30m", 5_400_000),
            ("0s", 0),
            ("1 h", 3_600_000),
        ] {
            assert_eq!(parse_ms(text), Ok(expected), "{text}");
        }
        for text in ["", "10", "-1s", "ten", "s", "99999999999999999999y", "1.5", "1.2.3s", "-1.5h", ".h"] {
            assert!(parse_ms(text).is_err(), "{text}");
        }
        assert!(parse_ms("10").unwrap_err().contains("write 10s"));
    }

    #[test]
    fn a_duration_may_have_a_decimal_point() {
        for (text, expected) in [("1.5h", 5_400_000), ("0.25s", 250), ("2.5 m", 150_000), ("0.1s", 100)] {
            assert_eq!(parse_ms(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_duration_is_told_in_the_units_in_which_it_is_typed() {
        for (milliseconds, told) in
            [(0, "0s"), (1, "1ms"), (93_784_005, "1d 2h 3m 4s 5ms"), (3_600_000, "1h")]
        {
            assert_eq!(humane(milliseconds), told);
            assert_eq!(parse_ms(told), Ok(milliseconds));
        }
    }

    #[test]
    fn a_deadline_is_a_duration_or_never() {
        assert_eq!("1.5h".parse(), Ok(DeadlineArg(Some(5_400_000))));
        assert_eq!("never".parse(), Ok(DeadlineArg(None)));
        for wrong in ["soon", "0s", "10", "900000000y"] {
            assert!(wrong.parse::<DeadlineArg>().unwrap_err().contains("never"), "{wrong}");
        }
    }

    #[test]
    fn an_age_is_shown_in_its_largest_unit() {
        let shown: Vec<String> = [0, 59_999, 60_000, 3_599_999, 3_600_000, 172_800_000].map(age).into();
        assert_eq!(shown, ["0s", "59s", "1m", "59m", "1h", "2d"]);
    }

    #[test]
    fn a_moment_is_shown_in_utc_to_the_second() {
        assert_eq!(moment(1_763_663_353_123), "2025-11-20 18:29:13");
        assert_eq!(moment(i64::MAX), "9999-12-31 23:59:59");
        assert_eq!(moment(-5), "1970-01-01 00:00:00");
    }
}
