//! The memory that files take which are held together.

use super::frozen::{FrozenFiles, SharedContents};

/// The files that are held together, each content counted once.
#[derive(Debug, Default)]
pub(super) struct CountedFiles {
    contents: SharedContents,
    table_bytes: u64,
}

impl CountedFiles {
    /// Adds files.
    pub(super) fn add(&mut self, files: &FrozenFiles) {
        self.contents.add(files);
        self.table_bytes += files.table_bytes();
    }

    /// Takes out files that were added.
    pub(super) fn remove(&mut self, files: &FrozenFiles) {
        self.contents.remove(files);
        self.table_bytes -= files.table_bytes();
    }

    /// Returns the bytes of all.
    pub(super) fn bytes(&self) -> u64 {
        self.contents.bytes().saturating_add(self.table_bytes)
    }
}

/// Returns the bytes that files add to those below them, and those that they share with them.
pub(super) fn sizes(files: &FrozenFiles, below: Option<&FrozenFiles>) -> (u64, u64) {
    let mut contents = SharedContents::default();
    contents.add(files);
    let whole = contents.bytes() + files.table_bytes();
    let Some(below) = below else { return (whole, 0) };
    let mut both = SharedContents::default();
    both.add(below);
    let before = both.bytes();
    both.add(files);
    // Each snapshot has its own names.
    let own = both.bytes() - before + files.table_bytes().saturating_sub(below.table_bytes());
    (own, whole - own)
}
