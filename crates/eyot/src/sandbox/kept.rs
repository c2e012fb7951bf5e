//! Kept commands: begun as any command, read from where a client stopped, with a deadline that holds even if the backend does
//! not answer.

mod overdue;

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use tokio::time::{Instant, timeout};

use super::Sandbox;
use super::run::{ANSWER_MS, RunContext, shorten};
use crate::capabilities::Capability;
use crate::driver::{ExecRequest, KeepRequest, KeptAttachment};
use crate::error::Result;
use crate::exec::Command;
use crate::kept::{KeepOptions, KeptControl, KeptInfo};
use crate::observer::{ExecEndEvent, ExecStartEvent};
use overdue::{never_started, with_deadline};

impl Sandbox {
    /// Runs a command that outlives this handle and this process, and attaches to it. Refused for the same reasons as any
    /// other command, and with `quota` when the sandbox keeps 64 of its kind.
    pub async fn keep(
        &self,
        command: impl Into<Command> + Send,
        options: KeepOptions,
    ) -> Result<KeptAttachment> {
        self.check_kept("keep")?;
        let command = command.into();
        self.check_command("exec", &command, options.user.as_deref())?;
        if options.pty.is_some() {
            self.require(Capability::Pty, "exec", &["pty"])?;
        }
        let cwd = self.exec_cwd(options.cwd.as_deref())?;
        let env = self.exec_env(&options.env)?;
        let start =
            ExecStartEvent { sandbox: self.event().clone(), command: command.clone(), cwd: options.cwd };
        let subject = RunContext { sandbox: self.clone(), start };
        let shown = shorten(&command.to_string());
        let stdin = !options.stdin.is_empty() || options.pty.is_some();
        let exec = ExecRequest { command, cwd, env, user: options.user, stdin, pty: options.pty };
        let timeout_ms = options.timeout_ms.or(self.info().spec.limits.timeout_ms);
        let request = KeepRequest { exec, stdin: options.stdin, timeout_ms, linger_ms: options.linger_ms };
        subject.report_start().await?;
        let begun = Instant::now();
        let keeping = self.driver().keep(request);
        let patience = Duration::from_millis(timeout_ms.unwrap_or(u64::MAX).saturating_add(ANSWER_MS));
        let Ok(kept) = timeout(patience, keeping).await else {
            let unstarted = never_started(timeout_ms, begun.elapsed());
            subject.report_end(&unstarted).await?;
            return Ok(overdue::ended(unstarted));
        };
        let kept = kept.map_err(self.failed("run", &shown))?;
        self.notify_kept_end(&kept.info, subject.start);
        Ok(self.attached(kept))
    }

    /// Attaches to a kept command: its output from a position on, or from the first that is kept. A client that was attached
    /// is so no more. `not_found`: there is none of this id, or none any more; `conflict`: output is not kept any more from
    /// there on; `invalid`: there is no such position yet.
    pub async fn attach(&self, id: &str, from: Option<u64>) -> Result<KeptAttachment> {
        self.check_kept("attach")?;
        let kept = self.driver().attach(id, from).await.map_err(self.failed("attach to", id))?;
        Ok(self.attached(kept))
    }

    /// Every kept command that is on a terminal, and, where the provider knows them, every other; oldest first. This does not
    /// count as activity.
    pub async fn kept_commands(&self) -> Result<Vec<KeptInfo>> {
        self.check_kept("kept_commands")?;
        self.driver().kept_commands().await
    }

    /// Waits for the end of a kept command. This does not count as activity. `not_found`: there is none, or it was forgotten.
    pub async fn kept_end(&self, id: &str) -> Result<KeptInfo> {
        self.check_kept("kept_end")?;
        self.driver().kept_end(id).await.map_err(self.failed("wait for", id))
    }

    /// Kills, signals, resizes or forgets a kept command.
    pub async fn control_kept(&self, id: &str, control: KeptControl) -> Result<()> {
        self.check_kept("control_kept")?;
        if let KeptControl::Signal(signal) = control {
            signal.check()?;
            self.require(Capability::Signals, "control_kept", &["signal"])?;
        }
        self.driver().control_kept(id, control).await.map_err(self.failed("change", id))
    }

    fn check_kept(&self, operation: &str) -> Result<()> {
        self.check_alive()?;
        self.require(Capability::Processes, operation, &[])
    }

    fn attached(&self, kept: KeptAttachment) -> KeptAttachment {
        let KeptAttachment { info, events, input } = kept;
        let (sandbox, id) = (self.clone(), info.id.clone());
        let events =
            events.map(move |event| event.map_err(|error| sandbox.failed("read the output of", &id)(error)));
        let events = with_deadline(Arc::clone(self.driver()), &info, events.boxed());
        KeptAttachment { info, events, input }
    }

    /// Tells the observer of the end when it comes, as long as this process lives.
    fn notify_kept_end(&self, info: &KeptInfo, start: ExecStartEvent) {
        let Some(observer) = self.observer().cloned() else { return };
        let (driver, id) = (Arc::clone(self.driver()), info.id.clone());
        tokio::spawn(async move {
            let told = match driver.kept_end(&id).await {
                Ok(KeptInfo { result: Some(result), .. }) => {
                    observer.exec_ended(&ExecEndEvent { start, result }).await
                }
                Ok(_) => Ok(()),
                Err(error) => Err(error),
            };
            if let Err(error) = told {
                // The sandbox was destroyed, sleeps, or forgot it: nobody hears of an end then.
                tracing::debug!(%error, id, "nobody heard of a kept command's end");
            }
        });
    }
}
