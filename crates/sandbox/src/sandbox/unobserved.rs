//! Small commands of Eyot's own. No observer hears of them: no caller asked for them.

use futures_util::StreamExt;

use super::Sandbox;
use super::collect::ended_without_result;
use crate::driver::{ExecRequest, ExecutionEvent};
use crate::error::Result;
use crate::exec::{Command, ExitStatus};

impl Sandbox {
    /// Runs a program from `/` to its end, and says whether it exited with 0. What it prints is dropped.
    pub(crate) async fn run_unobserved(&self, argv: Vec<&str>) -> Result<bool> {
        self.check_alive()?;
        let command = Command::argv(argv);
        self.check_command("exec", &command, None)?;
        let cwd = self.resolve_path("/")?.into();
        let env = self.inner.env.clone();
        let request = ExecRequest { command, cwd, env, user: None, stdin: false, pty: None };
        let mut events = self.driver().exec(request).await?.events;
        while let Some(event) = events.next().await {
            if let ExecutionEvent::Exit { status, .. } = event? {
                return Ok(status == ExitStatus::Exited(0));
            }
        }
        Err(ended_without_result())
    }
}
