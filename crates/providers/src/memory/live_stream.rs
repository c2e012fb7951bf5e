//! One stream of what a command writes, on its way to whoever reads it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use bashkit::{CommandContext, CommandStatus};
use bytes::Bytes;
use eyot::LogStream;

use super::end_mark::Mark;
use super::not_found::without_guess;
use super::odd_names::NameDecoder;
use super::running_job::RunningJob;

pub(super) struct LiveStream {
    running: Arc<RunningJob>,
    stream: LogStream,
    written: Mutex<WrittenStream>,
}

impl LiveStream {
    pub(super) fn new(
        running: Arc<RunningJob>,
        stream: LogStream,
        mark: Mark,
        names: Option<NameDecoder>,
    ) -> Self {
        Self { running, stream, written: Mutex::new(WrittenStream { mark, names }) }
    }

    /// Passes on what was written, once there is room for it.
    pub(super) async fn pass(&self, bytes: Vec<u8>) {
        let (before, is_mark) = self.lock().pass(bytes);
        self.running.take(self.stream, before).await;
        if is_mark {
            self.lock().mark.set_through();
        }
    }

    /// Passes on what is left at the end.
    pub(super) async fn finish(&self) {
        let held = self.lock().finish();
        self.running.take(self.stream, held).await;
    }

    fn lock(&self) -> MutexGuard<'_, WrittenStream> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct WrittenStream {
    mark: Mark,
    /// For a line that has such names.
    names: Option<NameDecoder>,
}

impl WrittenStream {
    /// Takes what was written. Returns what to pass on, and whether the mark of the end was there.
    fn pass(&mut self, bytes: Vec<u8>) -> (Bytes, bool) {
        let (before, is_mark) = self.mark.pass(bytes);
        let before = without_guess(before);
        let before = match &mut self.names {
            Some(names) => names.take(&before),
            None => before,
        };
        (before.into(), is_mark)
    }

    /// Returns what is left at the end.
    fn finish(&mut self) -> Bytes {
        let held = without_guess(self.mark.take_held());
        match &mut self.names {
            Some(names) => [names.take(&held), names.finish()].concat().into(),
            None => held.into(),
        }
    }
}

/// The program that passes on the output of a command in the background.
pub(super) struct PassOutput(pub Arc<LiveStream>);

#[async_trait]
impl bashkit::Command for PassOutput {
    async fn execute(&self, context: CommandContext<'_>) -> bashkit::Result<CommandStatus> {
        while let Some(bytes) = context.stdin.read_chunk().await? {
            self.0.pass(bytes).await;
        }
        Ok(CommandStatus::success())
    }
}
