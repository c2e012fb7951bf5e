//! Running commands. `exec` collects from the same events that `exec_stream` hands out; what can be refused is
//! refused before anything starts, and before an observer hears of it.

use std::collections::BTreeMap;

use async_trait::async_trait;
use futures_util::stream;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

use super::Sandbox;
use super::run::{CommandRun, LaunchOutcome, RunContext, RunOptions, launch, unstarted_result};
use crate::capabilities::Capability;
use crate::driver::{ExecRequest, ExecutionControl};
use crate::error::{Error, ErrorKind, Result};
use crate::exec::{
    Command, ExecControl, ExecEvent, ExecOptions, ExecResult, ExecStream, Outcome, PtySize, Signal, Stdin,
};
use crate::observer::ExecStartEvent;
use crate::path::ConfinedPath;
use crate::spec::{Limits, check_env};

/// The hint for a command as another user where there is none. Of the providers only native lacks
/// them, and only for an ordinary user.
const ONE_USER_HINT: &str = "leave the user out: every command runs as the sandbox's own user. Others need a range \
                             of ids, which a native sandbox has only where root made it (`sudo \"$(command -v eyot)\" create`)";

impl Sandbox {
    /// Runs a command to its end. What it exits with is a result; an error means that the sandbox could not do its part:
    /// `not_found` for a missing program or working directory, `permission` for one that may not be run, `invalid` for
    /// what no process could have, `unsupported` for an option that this provider lacks.
    ///
    /// Output beyond the cap is counted and dropped, never waited for. Dropping the future kills the process tree.
    pub async fn exec(&self, command: impl Into<Command> + Send, options: ExecOptions) -> Result<ExecResult> {
        self.check_alive()?;
        let cwd = self.exec_cwd(options.cwd.as_deref())?;
        self.exec_at(command.into(), cwd, options).await
    }

    /// Runs a command and hands out its events as they come: every byte, uncapped and in order, then exactly one
    /// [`ExecEvent::End`] with the same result as [`Sandbox::exec`]. Dropping the stream before the end kills the
    /// process tree, and no observer hears of an end then.
    ///
    /// A caller that does not take events holds up the command's writing, but neither its deadline
    /// nor its cancellation. The deadline counts until the end was taken.
    pub async fn exec_stream(
        &self,
        command: impl Into<Command> + Send,
        options: ExecOptions,
    ) -> Result<ExecStream> {
        self.check_alive()?;
        let cwd = self.exec_cwd(options.cwd.as_deref())?;
        self.exec_stream_at(command.into(), cwd, options).await
    }

    pub(crate) async fn exec_at(
        &self,
        command: Command,
        cwd: ConfinedPath,
        options: ExecOptions,
    ) -> Result<ExecResult> {
        let outcome = self.begin(command, cwd, options, None).await?;
        event_stream(outcome, CancellationToken::new()).collect(|_, _| {}).await
    }

    pub(crate) async fn exec_stream_at(
        &self,
        command: Command,
        cwd: ConfinedPath,
        options: ExecOptions,
    ) -> Result<ExecStream> {
        let expired = CancellationToken::new();
        let outcome = self.begin(command, cwd, options, Some(expired.clone())).await?;
        Ok(event_stream(outcome, expired))
    }

    /// Returns the directory in which a command starts: exactly the sandbox's own directory, or one
    /// that is resolved against it.
    pub(super) fn exec_cwd(&self, cwd: Option<&str>) -> Result<ConfinedPath> {
        match cwd {
            None | Some("") => self.confine(self.cwd().clone()),
            Some(path) => self.confine(self.resolve_path(path)?),
        }
    }

    /// The sandbox's variables with a call's own layered over them.
    pub(super) fn exec_env(&self, env: &BTreeMap<String, String>) -> Result<BTreeMap<String, String>> {
        check_env("env", env)?;
        let mut layered = self.inner.env.clone();
        layered.extend(env.iter().map(|(name, value)| (name.clone(), value.clone())));
        Ok(layered)
    }

    /// Refuses a command that can't be run here, whatever becomes of it.
    pub(super) fn check_command(&self, operation: &str, command: &Command, user: Option<&str>) -> Result<()> {
        command.validate()?;
        let form = match command {
            Command::Shell(_) => (Capability::Shell, "shell"),
            Command::Argv(_) => (Capability::Argv, "argv"),
        };
        self.require(form.0, operation, &[form.1])?;
        match user {
            Some(_) => self
                .require(Capability::Users, operation, &["user"])
                .map_err(|error| error.with_hint(ONE_USER_HINT)),
            None => Ok(()),
        }
    }

    async fn begin(
        &self,
        command: Command,
        cwd: ConfinedPath,
        options: ExecOptions,
        expired: Option<CancellationToken>,
    ) -> Result<LaunchOutcome> {
        self.check_alive()?;
        self.check_command("exec", &command, options.user.as_deref())?;
        if options.pty.is_some() {
            self.require(Capability::Pty, "exec", &["pty"])?;
        }
        let env = self.exec_env(&options.env)?;
        let run_options = self.run_options(&options, expired);
        if let Some(outcome) = outcome_without_start(&run_options) {
            return Ok(LaunchOutcome::Ended(unstarted_result(outcome, run_options.timeout_ms)));
        }
        let start =
            ExecStartEvent { sandbox: self.event().clone(), command: command.clone(), cwd: options.cwd };
        let stdin = !matches!(options.stdin, Stdin::Closed);
        let request = ExecRequest { command, cwd, env, user: options.user, stdin, pty: options.pty };
        let subject = RunContext { sandbox: self.clone(), start };
        subject.report_start().await?;
        let launched = launch(subject.clone(), request, options.stdin, run_options).await?;
        if let LaunchOutcome::Ended(result) = &launched {
            subject.report_end(result).await?;
        }
        Ok(launched)
    }

    fn run_options(&self, options: &ExecOptions, expired: Option<CancellationToken>) -> RunOptions {
        let limits = &self.info().spec.limits;
        let max_output_bytes = options.max_output_bytes.or(limits.max_output_bytes);
        RunOptions {
            timeout_ms: options.timeout_ms.or(limits.timeout_ms),
            max_output_bytes: max_output_bytes.unwrap_or(Limits::DEFAULT_MAX_OUTPUT_BYTES),
            cancel: options.cancel.clone(),
            expired,
        }
    }
}

/// Returns the events of a command that was launched, with its control.
fn event_stream(outcome: LaunchOutcome, expired: CancellationToken) -> ExecStream {
    match outcome {
        LaunchOutcome::Running(run) => {
            let control = run.control().unwrap_or_else(|| Arc::new(EndedControl));
            let next = async |mut run: CommandRun| run.next().await.map(|event| (event, run));
            ExecStream {
                events: Box::pin(stream::unfold(run, next)),
                control: ExecControl { control, expired },
            }
        }
        LaunchOutcome::Ended(result) => ExecStream {
            events: Box::pin(stream::once(async { Ok(ExecEvent::End(result)) })),
            control: ExecControl { control: Arc::new(EndedControl), expired },
        },
    }
}

/// Returns the outcome of a command that need not even be started: the caller cancelled already, or
/// gave it no time at all.
fn outcome_without_start(run_options: &RunOptions) -> Option<Outcome> {
    if run_options.cancel.as_ref().is_some_and(|cancel| cancel.is_cancelled()) {
        return Some(Outcome::Cancelled);
    }
    (run_options.timeout_ms == Some(0)).then_some(Outcome::TimedOut)
}

/// The control of a command that does not run.
struct EndedControl;

#[async_trait]
impl ExecutionControl for EndedControl {
    async fn kill(&self) -> Result<()> {
        Ok(())
    }

    async fn signal(&self, Signal(number): Signal) -> Result<()> {
        Err(Error::new(ErrorKind::NotFound, format!("send signal {number}: the command does not run")))
    }

    async fn resize(&self, PtySize { .. }: PtySize) -> Result<()> {
        Err(Error::new(ErrorKind::NotFound, "resize a terminal: the command does not run"))
    }
}
