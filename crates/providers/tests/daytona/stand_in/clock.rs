//! The vendor's clock.

use std::time::{Duration, SystemTime};

/// Returns the time of a clock that is wrong by so many seconds, as the vendor writes it.
pub fn stamp(skew_s: i64) -> String {
    let now = SystemTime::now();
    let skew = Duration::from_secs(skew_s.unsigned_abs());
    let told = if skew_s < 0 { now - skew } else { now + skew };
    let since = told.duration_since(SystemTime::UNIX_EPOCH).expect("a time after 1970");
    let (days, seconds) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = date(days);
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z", since.subsec_millis())
}

/// Returns the date of a day after 1970.
fn date(mut days: u64) -> (u64, u64, u64) {
    let is_leap =
        |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    while days >= 365 + u64::from(is_leap(year)) {
        days -= 365 + u64::from(is_leap(year));
        year += 1;
    }
    let february = 28 + u64::from(is_leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1)
}
