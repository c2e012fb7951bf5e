//! Names that `diff -r` passes over, as shell patterns.

use crate::memory::programs::diff::pattern::is_match;

#[derive(Debug, Default)]
pub(super) struct Excludes(Vec<Vec<u8>>);

impl Excludes {
    pub(super) fn add(&mut self, pattern: &str) {
        self.0.push(pattern.as_bytes().to_vec());
    }

    /// Adds the patterns of a file, one a line.
    pub(super) fn add_lines(&mut self, bytes: &[u8]) {
        let lines = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
        self.0.extend(lines.filter(|line| !line.is_empty()).map(<[u8]>::to_vec));
    }

    pub(super) fn has(&self, name: &[u8]) -> bool {
        self.0.iter().any(|pattern| is_match(pattern, name))
    }
}
