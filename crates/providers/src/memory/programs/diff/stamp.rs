//! The time of a file, as the head of a difference shows it.

use std::time::SystemTime;

const SECONDS_OF_A_DAY: u64 = 24 * 60 * 60;

/// Writes a time in UTC: `2024-02-29 12:34:56.000000000 +0000`.
pub(super) fn stamp(time: SystemTime) -> String {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let (year, month, day) = date(since.as_secs() / SECONDS_OF_A_DAY);
    let second = since.as_secs() % SECONDS_OF_A_DAY;
    format!(
        "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}.{:09} +0000",
        second / 3600,
        second / 60 % 60,
        second % 60,
        since.subsec_nanos()
    )
}

/// The date that is so many days behind 1970-01-01.
fn date(days: u64) -> (u64, u64, u64) {
    let is_leap =
        |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    // In 400 years there are always as many days.
    let (mut year, mut left) = (1970 + days / 146_097 * 400, days % 146_097);
    loop {
        let length = if is_leap(year) { 366 } else { 365 };
        if left < length {
            break;
        }
        left -= length;
        year += 1;
    }
    let february = if is_leap(year) { 29 } else { 28 };
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if left < length {
            break;
        }
        left -= length;
        month += 1;
    }
    (year, month, left + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_time_is_shown_in_utc() {
        let at = |seconds| stamp(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01 00:00:00.000000000 +0000");
        assert_eq!(at(951_868_799), "2000-02-29 23:59:59.000000000 +0000");
        assert_eq!(at(1_735_689_599), "2024-12-31 23:59:59.000000000 +0000");
        assert_eq!(at(4_107_542_400), "2100-03-01 00:00:00.000000000 +0000");
    }
}
