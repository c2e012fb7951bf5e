//! The host ids that an administrator has given to users, for their own user namespaces:
//! `/etc/subuid` and `/etc/subgid`. No sandbox gets one of them.

use std::fs;
use std::io;
use std::ops::Range;

/// The ids of all users.
#[derive(Debug, Default)]
pub(crate) struct SubordinateIds(Vec<Range<u64>>);

impl SubordinateIds {
    /// Reads both files. One that does not exist gives no ids.
    pub(crate) fn read() -> io::Result<Self> {
        let mut all = Self::default();
        for file in ["/etc/subuid", "/etc/subgid"] {
            match fs::read_to_string(file) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                text => all.0.extend(Self::parse(&text?).0),
            }
        }
        Ok(all)
    }

    /// Parses lines of a name, the first id and the number of ids, with colons between. Other lines
    /// give none, as for the programs that use these files.
    pub(crate) fn parse(text: &str) -> Self {
        let parsed = text.lines().filter_map(|line| {
            let mut fields = line.trim().split(':').skip(1).map(|field| field.parse::<u64>().ok());
            let (first, count) = (fields.next()??, fields.next()??);
            Some(first..first.saturating_add(count))
        });
        Self(parsed.collect())
    }

    /// Tells whether users have any of these ids.
    pub(crate) fn have_any(&self, ids: &[Range<u32>]) -> bool {
        let meets = |ids: &Range<u32>, given: &Range<u64>| {
            u64::from(ids.start) < given.end && given.start < u64::from(ids.end)
        };
        ids.iter().any(|ids| self.0.iter().any(|given| meets(ids, given)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_read_off_every_line_that_gives_some() {
        let given = SubordinateIds::parse("joe:100000:65536\n\n# note\njim:x:1\n1001:200000:1\n");
        for (ids, expected) in [
            (99_000..100_000, false),
            (99_000..100_001, true),
            (165_535..165_536, true),
            (165_536..200_000, false),
            (200_000..300_000, true),
            (200_001..300_000, false),
        ] {
            assert_eq!(given.have_any(&[0..1, ids.clone()]), expected, "{ids:?}");
        }
    }
}
