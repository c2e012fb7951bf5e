//! The pauses of work that shares its thread: a command is ended in one of them, and others go on.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::run::{BYTES_AT_ONCE, Ending, ProgramRun};

/// The longest time between two pauses, as far as the work asks for them.
const TIME_AT_ONCE: Duration = Duration::from_millis(2);
/// The steps between two looks at the clock.
const STEPS_AT_ONCE: usize = 1024;

/// The time of the last pause.
pub(super) struct Pace {
    began: Instant,
    /// In microseconds since it began.
    last: AtomicU64,
}

impl Pace {
    pub(super) fn new() -> Self {
        Self { began: Instant::now(), last: AtomicU64::new(0) }
    }

    /// Pauses if the last pause was a while ago.
    pub(super) async fn pause(&self) {
        let micros = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let now = micros(self.began.elapsed());
        if now.saturating_sub(self.last.load(Ordering::Relaxed)) >= micros(TIME_AT_ONCE) {
            self.last.store(now, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    }
}

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
