//! What stands around a script: its input comes in front of it, the mark of its end behind it.

use std::sync::Arc;

use async_trait::async_trait;
use bashkit::{Builtin, BuiltinContext, Command, CommandContext, CommandStatus, ExecResult};
use tokio_util::sync::CancellationToken;

use crate::memory::end_mark::EndMark;
use crate::memory::input::JobInput;

pub(super) struct End {
    pub mark: Arc<EndMark>,
    pub input: Option<Arc<JobInput>>,
}

// A streaming command: the other kind would wait for the end of the input first.
#[async_trait]
impl Command for End {
    async fn execute(&self, context: CommandContext<'_>) -> bashkit::Result<CommandStatus> {
        let status = context.args.first().and_then(|status| status.parse().ok()).unwrap_or(0);
        self.mark.set_status(status);
        // An input that stays open delays no end.
        if let Some(input) = &self.input {
            input.close();
        }
        Ok(CommandStatus::success())
    }
}

pub(super) struct WriteMark(pub Arc<EndMark>);

// It writes as the shell's own programs do, so that the mark comes behind what they wrote.
#[async_trait]
impl Builtin for WriteMark {
    async fn execute(&self, _: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        Ok(ExecResult { stderr: self.0.text().into(), ..ExecResult::ok(self.0.text()) })
    }
}

pub(super) struct InputProgram {
    pub input: Arc<JobInput>,
    pub stop: CancellationToken,
}

#[async_trait]
impl Command for InputProgram {
    async fn execute(&self, context: CommandContext<'_>) -> bashkit::Result<CommandStatus> {
        loop {
            let bytes = tokio::select! {
                () = self.stop.cancelled() => None,
                bytes = self.input.next() => bytes,
            };
            let Some(bytes) = bytes else { return Ok(CommandStatus::success()) };
            if let Err(error) = context.stdout.write_all(&bytes).await {
                self.input.close();
                return Err(error);
            }
        }
    }
}
