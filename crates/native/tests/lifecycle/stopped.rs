//! A guest that is stopped (`SIGSTOP`) from outside. It answers no call, but no deadline may wait
//! for it.

use std::time::{Duration, Instant};

use eyot::{
    ByteRange, CancellationToken, ErrorKind, ExecEvent, ExecOptions, ExecResult, KILL_CONFIRM_MS, Outcome,
    Sandbox, SandboxSpec, StartOptions,
};
use futures_util::StreamExt;
use libtest_mimic::{Failed, Trial};
use rustix::process::{Pid, Signal, kill_process};

use crate::state::State;
use crate::{ensure, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("a_stopped_guest_does_not_hold_the_deadline_of_a_command_that_is_to_start", not_started),
        trial("a_stopped_guest_does_not_hold_the_deadline_of_a_command_that_runs", running),
        trial("a_stopped_guest_does_not_hold_waits_and_stops_of_processes", processes),
        trial("a_stopped_guest_does_not_hold_calls_without_a_deadline_for_ever", without_a_deadline),
        trial("a_stopped_guest_is_not_waited_for_when_its_sandbox_is_opened_or_asked", asked),
    ]
}

/// The limit for a call with a deadline of 1.5 s.
const PROMPT: Duration = Duration::from_millis(2_500);

/// A process that is stopped until this is dropped.
struct Stopped(Pid);

impl Stopped {
    fn new(pid: i32) -> Result<Self, Failed> {
        let pid = Pid::from_raw(pid).ok_or("not a process number")?;
        kill_process(pid, Signal::STOP)?;
        let stopped = Self(pid);
        loop {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_pid()))?;
            if stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T')) {
                return Ok(stopped);
            }
            std::thread::yield_now();
        }
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        kill_process(self.0, Signal::CONT).expect("the guest is there");
    }
}

fn within(timeout_ms: u64) -> ExecOptions {
    ExecOptions { timeout_ms: Some(timeout_ms), ..ExecOptions::default() }
}

/// Runs a command as a stream and returns its end.
async fn end_of(sandbox: &Sandbox, line: &str, options: ExecOptions) -> Result<ExecResult, Failed> {
    let mut stream = sandbox.exec_stream(line, options).await?;
    loop {
        match stream.next().await.ok_or("the stream has no end")?? {
            ExecEvent::End(result) => return Ok(result),
            ExecEvent::Stdout(_) | ExecEvent::Stderr(_) => {}
        }
    }
}

fn given_up(result: &ExecResult, outcome: Outcome, begun: Instant) -> Result<(), Failed> {
    let took = begun.elapsed();
    ensure(took < PROMPT, format!("it took {took:?}: {result:?}"))?;
    ensure(result.outcome == outcome && result.may_still_be_running, format!("{result:?}"))
}

/// Checks that the sandbox works as before, and that nothing of abandoned calls is left in it.
async fn goes_on(state: &State, sandbox: Sandbox) -> Result<(), Failed> {
    let hi = sandbox.exec("echo hi", ExecOptions::default()).await?;
    ensure(hi.stdout_text() == "hi\n", format!("{hi:?}"))?;
    let cleared = sandbox.exec("while pgrep -x sleep >/dev/null; do :; done", within(60_000)).await?;
    ensure(cleared.success(), "what was given up runs on")?;
    sandbox.destroy().await?;
    state.assert_empty()
}

async fn not_started() -> Result<(), Failed> {
    let state = State::new()?;
    let sandbox = Sandbox::create(&*state.provider()?, SandboxSpec::default()).await?;
    let stopped = Stopped::new(state.guest_of(sandbox.id().as_str())?)?;
    let begun = Instant::now();
    given_up(&sandbox.exec("sleep 1000", within(1_500)).await?, Outcome::TimedOut, begun)?;
    let begun = Instant::now();
    given_up(&end_of(&sandbox, "sleep 1000", within(1_500)).await?, Outcome::TimedOut, begun)?;
    let (begun, cancel) = (Instant::now(), CancellationToken::new());
    let options = ExecOptions { cancel: Some(cancel.clone()), ..ExecOptions::default() };
    let (result, ()) = tokio::join!(sandbox.exec("sleep 1000", options), async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        cancel.cancel();
    });
    given_up(&result?, Outcome::Cancelled, begun)?;
    drop(stopped);
    goes_on(&state, sandbox).await
}

async fn running() -> Result<(), Failed> {
    let state = State::new()?;
    let sandbox = Sandbox::create(&*state.provider()?, SandboxSpec::default()).await?;
    let guest = state.guest_of(sandbox.id().as_str())?;
    let begun = Instant::now();
    let mut stream = sandbox.exec_stream("echo begun; sleep 1000", within(1_500)).await?;
    let first = stream.next().await;
    ensure(matches!(first, Some(Ok(ExecEvent::Stdout(_)))), format!("{first:?}"))?;
    let stopped = Stopped::new(guest)?;
    let Some(Ok(ExecEvent::End(result))) = stream.next().await else { return Err("an end was due".into()) };
    given_up(&result, Outcome::TimedOut, begun)?;
    ensure(result.stdout_text() == "begun\n", format!("{result:?}"))?;
    drop(stopped);
    goes_on(&state, sandbox).await
}

async fn processes() -> Result<(), Failed> {
    let state = State::new()?;
    let sandbox = Sandbox::create(&*state.provider()?, SandboxSpec::default()).await?;
    let process = sandbox.start("exec sleep 1000", StartOptions::default()).await?.id;
    let stopped = Stopped::new(state.guest_of(sandbox.id().as_str())?)?;
    let begun = Instant::now();
    let stopping = async {
        let stop = sandbox.stop(process, 1_500).await;
        (stop, begun.elapsed())
    };
    let waiting = async {
        let waits =
            tokio::join!(sandbox.wait_for_line(process, "never", 1_500), sandbox.wait_for_port(1, 1_500));
        (waits, begun.elapsed())
    };
    let ((stop, stop_took), ((line, port), waits_took)) = tokio::join!(stopping, waiting);
    ensure(waits_took < PROMPT, format!("the waits took {waits_took:?}"))?;
    ensure(stop_took < Duration::from_millis(KILL_CONFIRM_MS), format!("the stop took {stop_took:?}"))?;
    for (what, error) in [("stop", stop.err()), ("line", line.err()), ("port", port.err())] {
        let kind = error.as_ref().map(eyot::Error::kind);
        ensure(
            matches!(kind, Some(ErrorKind::Timeout | ErrorKind::Unavailable)),
            format!("{what}: {error:?}"),
        )?;
    }
    drop(stopped);
    sandbox.stop(process, 1_500).await?;
    goes_on(&state, sandbox).await
}

/// Returns how long a call took, and its error.
async fn timed<T>(call: impl Future<Output = eyot::Result<T>>) -> (Duration, Option<eyot::Error>) {
    let begun = Instant::now();
    let error = call.await.err();
    (begun.elapsed(), error)
}

async fn without_a_deadline() -> Result<(), Failed> {
    let state = State::new()?;
    let sandbox = Sandbox::create(&*state.provider()?, SandboxSpec::default()).await?;
    let process = sandbox.start("exec sleep 1000", StartOptions::default()).await?.id;
    // More than a guest passes for the host to read itself.
    sandbox.write("big", vec![0; 16 << 20]).await?;
    let mut half_read = sandbox.read_stream("big", ByteRange::default()).await?;
    half_read.next().await.ok_or("the file is empty")??;
    let stopped = Stopped::new(state.guest_of(sandbox.id().as_str())?)?;
    let rest = async {
        while let Some(piece) = half_read.next().await {
            piece?;
        }
        Ok::<(), eyot::Error>(())
    };
    let workspace = sandbox.workspace();
    let (read, rest, write, list, exists, glob, wait, dial) = tokio::join!(
        timed(sandbox.read("big")),
        timed(rest),
        timed(sandbox.write("new", "x")),
        timed(sandbox.list(".")),
        timed(sandbox.exists("big")),
        timed(workspace.list_files(".")),
        timed(sandbox.wait(process)),
        timed(sandbox.dial(80))
    );
    let calls = [
        ("read", read),
        ("the rest of a stream", rest),
        ("write", write),
        ("list", list),
        ("exists", exists),
        ("list_files", glob),
        ("wait", wait),
        ("dial", dial),
    ];
    for (what, (took, error)) in calls {
        let kind = error.as_ref().map(eyot::Error::kind);
        ensure(kind == Some(ErrorKind::Unavailable), format!("{what}: {error:?}"))?;
        ensure(took < Duration::from_secs(20), format!("{what} took {took:?}: {error:?}"))?;
    }
    drop(stopped);
    sandbox.stop(process, 1_500).await?;
    goes_on(&state, sandbox).await
}

async fn asked() -> Result<(), Failed> {
    let state = State::new()?;
    let sandbox = Sandbox::create(&*state.provider()?, SandboxSpec::default()).await?;
    let id = sandbox.id().to_string();
    let stopped = Stopped::new(state.guest_of(&id)?)?;
    let provider = state.provider()?;
    let begun = Instant::now();
    let opened = Sandbox::open(&*provider, &id).await.map(drop).err();
    ensure(begun.elapsed() < Duration::from_secs(5), format!("an open took {:?}", begun.elapsed()))?;
    let begun = Instant::now();
    let (usage, live, processes) =
        tokio::join!(sandbox.usage(), sandbox.live_processes(), sandbox.processes());
    ensure(begun.elapsed() < Duration::from_secs(15), format!("asking took {:?}", begun.elapsed()))?;
    for error in [opened, usage.err(), live.err(), processes.err()] {
        let kind = error.as_ref().map(eyot::Error::kind);
        ensure(kind == Some(ErrorKind::Unavailable), format!("{error:?}"))?;
    }
    drop(stopped);
    goes_on(&state, sandbox).await
}
