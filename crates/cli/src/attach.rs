//! Attaches a command to our own terminal or pipes: bytes are passed both ways as they come,
//! signals and sizes are passed on, and we exit with the command's exit code. `run`, `exec` and
//! `sh` share it.

use std::collections::BTreeMap;
use std::io;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use eyot::{
    CancellationToken, Command, Error, ErrorKind, ExecEvent, ExecOptions, ExecResult, ExecStream, PtySize,
    Sandbox, Signal, Stdin,
};

use crate::args::TerminalArgs;
use crate::command_end::CommandEnd;
use crate::command_hint::{package_hint, shell_hint};
use crate::errors::{COMMAND_NOT_FOUND, FAILED, Failure, NOT_EXECUTABLE};
use crate::output::Output;
use crate::signals::{SignalEvent, Signals};
use crate::stdio::{Sink, stdin_stream};
use crate::terminal::{self, RawMode};

/// A command, and how to run it.
pub struct Attachment {
    /// The command.
    pub command: Command,
    /// The working directory.
    pub cwd: Option<String>,
    /// The variables.
    pub env: BTreeMap<String, String>,
    /// The user that runs it.
    pub user: Option<String>,
    /// The deadline in milliseconds.
    pub timeout_ms: Option<u64>,
    /// With `--json`: the number of bytes to keep of each stream.
    pub max_output_bytes: Option<u64>,
    /// The terminal options.
    pub terminal: TerminalArgs,
}

/// The plan for what is passed between our terminal and the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct AttachPlan {
    stdin: bool,
    pty: Option<PtySize>,
    raw: bool,
}

fn plan(
    terminal: TerminalArgs,
    stdin_is_terminal: bool,
    size: Option<PtySize>,
) -> Result<AttachPlan, Failure> {
    if terminal.interactive && terminal.tty && !stdin_is_terminal {
        // A terminal has no end of input that every program would notice.
        return Err(Failure::usage("`-it` needs a terminal, and the input is not one")
            .hint("`-i` alone passes the input on; `-t` alone gives the command a terminal without input"));
    }
    let stdin = terminal.interactive || !(stdin_is_terminal || terminal.tty);
    Ok(AttachPlan {
        stdin,
        pty: terminal.tty.then(|| size.unwrap_or_default()),
        raw: terminal.tty && stdin && stdin_is_terminal,
    })
}

/// Runs the command to its end and returns our exit code.
pub async fn run(
    sandbox: &Sandbox,
    attachment: Attachment,
    signals: &mut Signals,
    output: Output,
) -> Result<u8, Failure> {
    let hint = package_hint(&attachment.command, sandbox.info());
    let ended = run_to_end(sandbox, attachment, signals, output).await?;
    if output.json {
        print_result(sandbox, &ended.result, output)?;
    } else {
        ended.explain();
        if let Some(hint) = hint.filter(|_| ended.exit_code() != 0) {
            output.note(hint);
        }
    }
    Ok(ended.exit_code())
}

async fn run_to_end(
    sandbox: &Sandbox,
    attachment: Attachment,
    signals: &mut Signals,
    output: Output,
) -> Result<CommandEnd, Failure> {
    let plan = plan(attachment.terminal, terminal::stdin_is_terminal(), terminal::size())?;
    let cancel = CancellationToken::new();
    let (cwd, user) = (attachment.cwd.clone(), attachment.user.clone());
    let hint = shell_hint(&attachment.command);
    let (command, options) = request(attachment, plan, &cancel, output)?;
    let raw = plan
        .raw
        .then(RawMode::enter)
        .transpose()
        .map_err(|error| Failure::host("use the terminal", error))?;
    let session = AttachedCommand {
        plan,
        cancel,
        sinks: (!output.json).then(Sinks::new).transpose()?,
        pending: None,
        interrupts: 0,
        killed_for: None,
    };
    let ended = session.start_and_follow(sandbox, command, options, signals).await;
    drop(raw);
    match ended {
        Err(Failure::Error { error, .. }) => {
            Err(not_started(sandbox, cwd.as_deref(), user.as_deref(), hint, error).await)
        }
        other => other,
    }
}

fn request(
    attachment: Attachment,
    plan: AttachPlan,
    cancel: &CancellationToken,
    output: Output,
) -> Result<(Command, ExecOptions), Failure> {
    let mut env = attachment.env;
    if let (Some(_), Some(kind)) = (plan.pty, terminal::kind()) {
        env.entry("TERM".to_owned()).or_insert(kind);
    }
    let stdin = if plan.stdin { Stdin::Stream(stdin_stream()?) } else { Stdin::Closed };
    let options = ExecOptions {
        cwd: attachment.cwd,
        env,
        user: attachment.user,
        stdin,
        timeout_ms: attachment.timeout_ms,
        // What is passed on as it comes need not be kept.
        max_output_bytes: if output.json { attachment.max_output_bytes } else { Some(0) },
        cancel: Some(cancel.clone()),
        pty: plan.pty,
    };
    Ok((attachment.command, options))
}

/// Adds a shell's exit code to the error of a command that could not be started: 127 if there is no
/// such program, 126 if it may not be executed. A missing working directory or user is neither.
/// `hint` is what to write instead of a missing program.
pub async fn not_started(
    sandbox: &Sandbox,
    cwd: Option<&str>,
    user: Option<&str>,
    hint: Option<String>,
    error: Error,
) -> Failure {
    let is_the_program =
        async || is_directory(sandbox, cwd.unwrap_or(".")).await && is_user(sandbox, user).await;
    let code = match error.kind() {
        ErrorKind::NotFound if is_the_program().await => COMMAND_NOT_FOUND,
        ErrorKind::Permission => NOT_EXECUTABLE,
        _ => FAILED,
    };
    let failure = Failure::with_code(error, code);
    match hint.filter(|_| code == COMMAND_NOT_FOUND) {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

async fn is_directory(sandbox: &Sandbox, path: &str) -> bool {
    sandbox.stat(path).await.is_ok_and(|stat| stat.is_directory)
}

/// Tells whether commands can run as this user.
async fn is_user(sandbox: &Sandbox, user: Option<&str>) -> bool {
    let Some(user) = user else { return true };
    let options = ExecOptions { user: Some(user.to_owned()), ..ExecOptions::default() };
    sandbox.exec(":", options).await.is_ok()
}

struct Sinks {
    stdout: Sink,
    stderr: Sink,
}

impl Sinks {
    fn new() -> io::Result<Self> {
        Ok(Self { stdout: Sink::stdout()?, stderr: Sink::stderr()? })
    }

    async fn write(&mut self, pending: &mut Pending) -> io::Result<()> {
        match pending {
            Pending::Stdout(bytes) => self.stdout.write(bytes).await,
            Pending::Stderr(bytes) => self.stderr.write(bytes).await,
        }
    }
}

/// Output of the command that was not passed on yet.
enum Pending {
    Stdout(Bytes),
    Stderr(Bytes),
}

enum AttachStep {
    Signal(SignalEvent),
    Event(Option<eyot::Result<ExecEvent>>),
    Written(io::Result<()>),
}

struct AttachedCommand {
    plan: AttachPlan,
    cancel: CancellationToken,
    /// `None`: the output is not passed on.
    sinks: Option<Sinks>,
    pending: Option<Pending>,
    interrupts: u32,
    killed_for: Option<i32>,
}

impl AttachedCommand {
    async fn start_and_follow(
        mut self,
        sandbox: &Sandbox,
        command: Command,
        options: ExecOptions,
        signals: &mut Signals,
    ) -> Result<CommandEnd, Failure> {
        let mut stream = sandbox.exec_stream(command, options).await?;
        loop {
            match self.step(&mut stream, signals).await {
                AttachStep::Signal(event) => self.on_signal(event, &stream).await,
                AttachStep::Written(written) => {
                    written?;
                    self.pending = None;
                }
                AttachStep::Event(Some(Ok(ExecEvent::End(result)))) => {
                    return Ok(self.end_with(result));
                }
                AttachStep::Event(Some(Ok(event))) => self.pass_on(event),
                AttachStep::Event(Some(Err(error))) => return Err(error.into()),
                AttachStep::Event(None) => {
                    return Err(Error::new(ErrorKind::Internal, "follow the command: no end").into());
                }
            }
        }
    }

    /// Waits for the next step: signals first, then the end of the pending write, and only then the
    /// next event.
    async fn step(&mut self, stream: &mut ExecStream, signals: &mut Signals) -> AttachStep {
        let (pending, sinks) = (&mut self.pending, &mut self.sinks);
        let work = async {
            match (pending, sinks) {
                (Some(pending), Some(sinks)) => AttachStep::Written(sinks.write(pending).await),
                _ => AttachStep::Event(stream.next().await),
            }
        };
        tokio::select! {
            biased;
            signal = signals.next() => AttachStep::Signal(signal),
            step = work => step,
        }
    }

    fn end_with(self, result: ExecResult) -> CommandEnd {
        let may_be_interrupted = self.interrupts > 0 || self.plan.pty.is_some();
        CommandEnd { result, killed_for: self.killed_for, may_be_interrupted }
    }

    fn pass_on(&mut self, event: ExecEvent) {
        if self.sinks.is_some() {
            self.pending = match event {
                ExecEvent::Stdout(bytes) => Some(Pending::Stdout(bytes)),
                ExecEvent::Stderr(bytes) => Some(Pending::Stderr(bytes)),
                ExecEvent::End(_) => None,
            };
        }
    }

    /// Passes the first Ctrl-C on to the command, if the provider has signals. The second one, and every other signal that ends
    /// us, kills its tree.
    async fn on_signal(&mut self, event: SignalEvent, stream: &ExecStream) {
        let passed_on = match event {
            SignalEvent::Resize => match (self.plan.pty, terminal::size()) {
                (Some(_), Some(size)) => stream.resize(size).await,
                _ => Ok(()),
            },
            SignalEvent::Interrupt if self.interrupts == 0 => {
                self.interrupts += 1;
                match stream.signal(Signal::INT).await {
                    // Where there are no signals, a Ctrl-C is the end.
                    Err(error) if error.kind() == ErrorKind::Unsupported => self.kill_for(2),
                    passed_on => passed_on,
                }
            }
            SignalEvent::Interrupt => self.kill_for(2),
            SignalEvent::Terminate(number) => self.kill_for(number),
        };
        if let Err(error) = passed_on {
            // The command may just have ended; what came of it follows.
            tracing::debug!(?event, %error, "a signal was not passed on");
        }
    }

    fn kill_for(&mut self, signal: i32) -> eyot::Result<()> {
        self.killed_for.get_or_insert(signal);
        self.cancel.cancel();
        // Nobody may be reading what is still to be written.
        self.sinks = None;
        self.pending = None;
        Ok(())
    }
}

fn print_result(sandbox: &Sandbox, result: &ExecResult, output: Output) -> Result<(), Failure> {
    let flat = result.flatten();
    let mut value =
        serde_json::to_value(&flat).map_err(|error| Failure::host("write the result", error.into()))?;
    value["outcome"] = serde_json::to_value(result.outcome)
        .map_err(|error| Failure::host("write the result", error.into()))?;
    for (field, bytes) in [("stdout_base64", &result.stdout), ("stderr_base64", &result.stderr)] {
        if std::str::from_utf8(bytes).is_err() {
            value[field] = STANDARD.encode(bytes).into();
        }
    }
    value["output_open"] = result.output_open.into();
    value["may_still_be_running"] = result.may_still_be_running.into();
    value["sandbox_id"] = sandbox.id().as_str().into();
    value["sandbox_name"] = sandbox.name().as_str().into();
    output.value(&value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: PtySize = PtySize { rows: 50, cols: 132 };

    fn planned(interactive: bool, tty: bool, stdin_is_terminal: bool) -> (bool, bool, bool) {
        let plan = plan(TerminalArgs { interactive, tty }, stdin_is_terminal, Some(SIZE)).ok().unwrap();
        (plan.stdin, plan.pty.is_some(), plan.raw)
    }

    #[test]
    fn a_pipe_is_passed_on_unasked_and_a_terminal_only_with_i() {
        assert_eq!(planned(false, false, false), (true, false, false));
        assert_eq!(planned(false, false, true), (false, false, false));
        assert_eq!(planned(true, false, true), (true, false, false));
    }

    #[test]
    fn our_terminal_is_raw_only_if_its_keys_go_to_a_terminal_inside() {
        assert_eq!(planned(true, true, true), (true, true, true));
        assert_eq!(planned(false, true, true), (false, true, false));
        assert_eq!(planned(false, true, false), (false, true, false));
    }

    #[test]
    fn a_terminal_inside_is_as_large_as_ours_or_24_by_80() {
        let terminal = TerminalArgs { interactive: true, tty: true };
        let size = |size| plan(terminal, true, size).ok().unwrap().pty;
        assert_eq!(size(Some(SIZE)), Some(SIZE));
        assert_eq!(size(None), Some(PtySize { rows: 24, cols: 80 }));
    }
}
