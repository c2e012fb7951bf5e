//! Output that is written in pieces, with pauses between them.

use super::run::{BYTES_AT_ONCE, Ending, ProgramRun};

/// The steps between two looks at the clock.
const STEPS_AT_ONCE: usize = 1024;

/// Output that is written in pieces, however the parts of it come. There is a pause between them.
pub(super) struct PacedOutput<'a, 'r> {
    pub run: &'a ProgramRun<'r>,
    waiting: Vec<u8>,
    steps: usize,
}

impl<'a, 'r> PacedOutput<'a, 'r> {
    pub(super) fn new(run: &'a ProgramRun<'r>) -> Self {
        Self { run, waiting: Vec::new(), steps: 0 }
    }

    /// Counts a step that may write nothing.
    pub(super) async fn step(&mut self) {
        self.steps += 1;
        if self.steps.is_multiple_of(STEPS_AT_ONCE) {
            self.run.breathe().await;
        }
    }

    /// Writes some bytes, perhaps later.
    pub(super) async fn add(&mut self, bytes: &[u8]) -> Result<(), Ending> {
        self.step().await;
        if self.waiting.len() + bytes.len() > BYTES_AT_ONCE {
            self.flush().await?;
        }
        if bytes.len() > BYTES_AT_ONCE {
            for piece in bytes.chunks(BYTES_AT_ONCE) {
                self.run.print(piece).await?;
                self.run.breathe().await;
            }
            return Ok(());
        }
        self.waiting.extend_from_slice(bytes);
        Ok(())
    }

    /// Writes everything that waits.
    pub(super) async fn flush(&mut self) -> Result<(), Ending> {
        self.run.breathe().await;
        if self.waiting.is_empty() {
            return Ok(());
        }
        self.run.print(&self.waiting).await?;
        self.waiting.clear();
        Ok(())
    }
}
