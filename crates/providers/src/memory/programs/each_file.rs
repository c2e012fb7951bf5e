//! Files that a program reads one after the other. One that can't be read is told of, and the others go on.

use super::read_bytes::{ReadBytes, ReadError};
use super::run::{Ending, ProgramRun};

/// The files that are left.
pub(super) struct EachFile<'a, 'r> {
    run: &'a ProgramRun<'r>,
    files: std::slice::Iter<'a, String>,
    /// Zero as long as every file could be read.
    pub status: i32,
}

impl<'a, 'r> EachFile<'a, 'r> {
    pub(super) fn new(run: &'a ProgramRun<'r>, files: &'a [String]) -> Self {
        Self { run, files: files.iter(), status: 0 }
    }

    /// Reads the next file that can be read, and complains of the others in these words.
    pub(super) async fn next(
        &mut self,
        words: impl Fn(&str, ReadError) -> String,
    ) -> Result<Option<ReadBytes>, Ending> {
        for file in self.files.by_ref() {
            match self.run.read(file).await? {
                Ok(bytes) => return Ok(Some(bytes)),
                Err(reason) => {
                    self.run.complain(words(file, reason)).await?;
                    self.status = 1;
                }
            }
        }
        Ok(None)
    }
}
