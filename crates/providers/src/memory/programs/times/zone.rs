//! The zone that `TZ` names: a name of the IANA base, a rule like `XYZ5`, or nothing that is known.

use std::collections::HashMap;

use jiff::tz::{TimeZone, TimeZoneDatabase};

use super::Moment;

const FOLDER: &str = "/usr/share/zoneinfo/";

/// A zone, with the name that it shows where it has none of its own.
#[derive(Debug, Clone)]
pub(in crate::memory::programs) struct Zone {
    pub(super) rules: TimeZone,
    name: Option<String>,
}

impl Zone {
    pub(in crate::memory::programs) fn utc() -> Self {
        Self { rules: TimeZone::UTC, name: None }
    }

    /// The zone of a program's environment; without one it is UTC.
    pub(in crate::memory::programs) fn of(env: &HashMap<String, String>) -> Self {
        env.get("TZ").map_or_else(Self::utc, |name| Self::named(name))
    }

    /// The zone of a name. A name that is not known is UTC under that name, as in the C library.
    pub(in crate::memory::programs) fn named(name: &str) -> Self {
        let name = name.strip_prefix(':').unwrap_or(name);
        let name = name.strip_prefix(FOLDER).unwrap_or(name);
        if matches!(name, "" | "UTC" | "UTC0") {
            return Self::utc();
        }
        let known = TimeZoneDatabase::bundled().get(name).ok();
        let exact = known.filter(|zone| zone.iana_name() == Some(name));
        if let Some(rules) = exact.or_else(|| TimeZone::posix(name).ok()) {
            return Self { rules, name: None };
        }
        let letters = name.bytes().take_while(u8::is_ascii_alphabetic).count();
        let shown = if letters >= 3 { &name[..letters] } else { "" };
        Self { rules: TimeZone::UTC, name: Some(shown.to_owned()) }
    }

    /// The seconds that it is east of UTC at a time, and its name then.
    pub(super) fn at(&self, moment: Moment) -> (i32, String) {
        let info = self.rules.to_offset_info(moment.timestamp());
        let name = self.name.clone().unwrap_or_else(|| info.abbreviation().to_owned());
        (info.offset().seconds(), name)
    }
}
