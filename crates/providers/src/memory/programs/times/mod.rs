//! Points in time as programs read and print them. The clock is the host's, the zones are built in:
//! no zone file of the host is read.

mod format;
mod words;
mod zone;

use std::time::{Duration, SystemTime};

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

pub(super) use format::format_time;
pub(super) use words::read_time;
pub(super) use zone::Zone;

/// A point in time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment {
    /// Seconds since the beginning of 1970, below it negative.
    pub seconds: i64,
    pub nanos: u32,
}

impl Moment {
    pub(super) fn now() -> Self {
        SystemTime::now().into()
    }

    /// The time as files keep it, unless they can't.
    pub(super) fn system_time(self) -> Option<SystemTime> {
        let whole = Duration::from_secs(self.seconds.unsigned_abs());
        let whole = if self.seconds < 0 {
            SystemTime::UNIX_EPOCH.checked_sub(whole)
        } else {
            SystemTime::UNIX_EPOCH.checked_add(whole)
        };
        whole?.checked_add(Duration::from_nanos(self.nanos.into()))
    }

    /// The nearest time that the calendar of `jiff` has.
    fn timestamp(self) -> Timestamp {
        let nanos = i32::try_from(self.nanos).unwrap_or_default();
        let nearest = if self.seconds < 0 { Timestamp::MIN } else { Timestamp::MAX };
        Timestamp::new(self.seconds, nanos).unwrap_or(nearest)
    }

    fn in_zone(self, zone: &TimeZone) -> Zoned {
        self.timestamp().to_zoned(zone.clone())
    }
}

impl From<SystemTime> for Moment {
    fn from(time: SystemTime) -> Self {
        match time.duration_since(SystemTime::UNIX_EPOCH) {
            Ok(since) => Self {
                seconds: i64::try_from(since.as_secs()).unwrap_or(i64::MAX),
                nanos: since.subsec_nanos(),
            },
            Err(before) => {
                let before = before.duration();
                let seconds = -i64::try_from(before.as_secs()).unwrap_or(i64::MAX);
                match before.subsec_nanos() {
                    0 => Self { seconds, nanos: 0 },
                    nanos => Self { seconds: seconds - 1, nanos: 1_000_000_000 - nanos },
                }
            }
        }
    }
}
