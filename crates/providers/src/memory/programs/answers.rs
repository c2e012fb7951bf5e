//! UserAnswers to questions (`-i`), read from the standard input line by line.

use super::run::{Ending, ProgramRun};

/// The answers that have come and were not read yet.
#[derive(Debug, Default)]
pub(super) struct UserAnswers {
    waiting: Vec<u8>,
    has_ended: bool,
}

impl UserAnswers {
    /// Asks a question, and tells whether the answer is yes.
    pub(super) async fn ask(&mut self, run: &ProgramRun<'_>, question: &str) -> Result<bool, Ending> {
        run.write_error(format!("{}: {question}? ", run.name)).await?;
        loop {
            if let Some(end) = self.waiting.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.waiting.drain(..=end).collect();
                return Ok(matches!(line.first(), Some(b'y' | b'Y')));
            }
            if self.has_ended {
                return Ok(matches!(std::mem::take(&mut self.waiting).first(), Some(b'y' | b'Y')));
            }
            match run.read_input().await? {
                Some(more) => self.waiting.extend(more),
                None => self.has_ended = true,
            }
        }
    }
}
