//! The time of day, as it is written down.

use std::time::{SystemTime, UNIX_EPOCH};

/// Now, in milliseconds since 1970 (UTC), by the host's clock, which may be set back.
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
