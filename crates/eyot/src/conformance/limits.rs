//! Limits that are said to be held: what goes beyond them is stopped inside, the outcome says so, and the sandbox works
//! on. A limit that `isolation()` does not call held is not tried.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Fixture;
use super::check::{Check, Failure, cases, ensure, ensure_eq, ensure_fails, output, sh, with_spec};
use crate::exec::{ExecOptions, ExitStatus, Outcome};
use crate::isolation::{DiskEnforcement, Enforcement, LimitsEnforced};
use crate::process::ProcessStatus;
use crate::sandbox::{Sandbox, StartOptions};
use crate::spec::{Limits, SandboxSpec};

cases! {
    a_command_that_needs_too_much_memory_ends_so_and_the_sandbox_works_on(fixture) needs [Shell];
    a_started_process_that_needs_too_much_memory_ends_so(fixture) needs [Shell, Processes];
    a_command_that_is_killed_has_not_run_out_of_memory(fixture) needs [Shell];
    more_processes_than_allowed_can_not_be_started(fixture) needs [Shell];
    a_busy_command_gets_no_more_processor_time_than_allowed(fixture) needs [Shell, Usage];
    a_disk_that_is_full_takes_no_more_and_the_sandbox_works_on(fixture) needs [Shell];
    memory_is_counted_as_the_limit_counts_it(fixture) needs [Shell, Usage];
}

/// Takes far more memory than any case allows: in the shell itself, and in a child of it.
const BOMBS: [&str; 2] = [
    "x=$(head -c 600000000 /dev/zero | tr '\\0' x); echo survived ${#x}",
    "head -c 600000000 /dev/zero | tail -n 1 > /dev/null; exit $?",
];

/// Tries a case in a sandbox with these limits, if the provider holds what it is about.
async fn limited<F: Future<Output = Check>>(
    fixture: &dyn Fixture,
    limits: Limits,
    is_held: fn(&LimitsEnforced) -> bool,
    case: impl FnOnce(Sandbox) -> F,
) -> Check {
    let spec = SandboxSpec { limits, ..fixture.spec() };
    with_spec(fixture, spec, async |sandbox: Sandbox| {
        if is_held(&sandbox.isolation().limits) {
            case(sandbox).await
        } else {
            Err(Failure::NotHere("this limit is not enforced here".to_owned()))
        }
    })
    .await
}

fn holds_memory(limits: &LimitsEnforced) -> bool {
    limits.memory == Enforcement::Cgroup
}

fn little_memory() -> Limits {
    Limits { memory_mib: Some(64), ..Limits::default() }
}

async fn a_command_that_needs_too_much_memory_ends_so_and_the_sandbox_works_on(
    fixture: Arc<dyn Fixture>,
) -> Check {
    limited(&*fixture, little_memory(), holds_memory, async |sandbox: Sandbox| {
        sandbox.write("kept", "before").await?;
        for line in BOMBS {
            let result = sh(&sandbox, line).await?;
            ensure!(result.outcome == Outcome::OutOfMemory, "`{line}`: {:?}", result.outcome);
            ensure_eq!(result.outcome.exit_code(), 137);
        }
        ensure_eq!(sandbox.read_text("kept").await?, "before");
        ensure_eq!(output(&sandbox, "echo fine").await?, "fine");
        Ok(())
    })
    .await
}

async fn a_started_process_that_needs_too_much_memory_ends_so(fixture: Arc<dyn Fixture>) -> Check {
    limited(&*fixture, little_memory(), holds_memory, async |sandbox: Sandbox| {
        let process = sandbox.start(BOMBS[0], StartOptions::default()).await?;
        let ended = sandbox.wait(process.id).await?;
        ensure_eq!(ended.status, ProcessStatus::Ended(ExitStatus::OutOfMemory));
        Ok(())
    })
    .await
}

async fn a_command_that_is_killed_has_not_run_out_of_memory(fixture: Arc<dyn Fixture>) -> Check {
    limited(&*fixture, little_memory(), holds_memory, async |sandbox: Sandbox| {
        // Kills that were explained before, or by nobody, do not explain this one.
        sh(&sandbox, &format!("({}); true", BOMBS[0])).await?;
        ensure_eq!(sh(&sandbox, "kill -9 $$").await?.outcome, Outcome::Signaled(9));
        ensure_eq!(sh(&sandbox, "exit 137").await?.outcome, Outcome::Exited(137));
        Ok(())
    })
    .await
}

async fn more_processes_than_allowed_can_not_be_started(fixture: Arc<dyn Fixture>) -> Check {
    let limits = Limits { pids: Some(24), ..Limits::default() };
    let is_held = |limits: &LimitsEnforced| limits.pids != Enforcement::None;
    limited(&*fixture, limits, is_held, async |sandbox: Sandbox| {
        // A shell that gives up leaves its children behind: all are to end with the deadline.
        let line =
            "(i=0; while [ $i -lt 100 ]; do sleep 86400 & i=$((i + 1)); done; echo all); exec sleep 86400";
        let options = ExecOptions { timeout_ms: Some(3_000), ..ExecOptions::default() };
        // A shell may try again and again to start one.
        let result = sandbox.exec(line, options).await?;
        ensure!(!result.stdout_text().contains("all"), "100 processes were started: {:?}", result.outcome);
        ensure_eq!(output(&sandbox, "echo fine").await?, "fine");
        Ok(())
    })
    .await
}

async fn a_busy_command_gets_no_more_processor_time_than_allowed(fixture: Arc<dyn Fixture>) -> Check {
    let limits = Limits { cpus: Some(0.25), ..Limits::default() };
    let is_held = |limits: &LimitsEnforced| limits.cpus == Enforcement::Cgroup;
    limited(&*fixture, limits, is_held, async |sandbox: Sandbox| {
        let Some(before) = sandbox.usage().await?.cpu_ms else { return Ok(()) };
        let begun = Instant::now();
        let options = ExecOptions { timeout_ms: Some(2_000), ..ExecOptions::default() };
        sandbox.exec("while :; do :; done & while :; do :; done", options).await?;
        let after = sandbox.usage().await?.cpu_ms.unwrap_or_default();
        // A quarter is allowed; without the limit two loops use up to twice the time.
        let most = begun.elapsed() / 2 + Duration::from_millis(200);
        let used = Duration::from_millis(after.saturating_sub(before));
        ensure!(used < most, "{used:?} of {:?}", begun.elapsed());
        Ok(())
    })
    .await
}

async fn a_disk_that_is_full_takes_no_more_and_the_sandbox_works_on(fixture: Arc<dyn Fixture>) -> Check {
    let limits = Limits { disk_mib: Some(32), ..Limits::default() };
    let is_held = |limits: &LimitsEnforced| limits.disk == DiskEnforcement::Quota;
    limited(&*fixture, limits, is_held, async |sandbox: Sandbox| {
        sandbox.write("ten", vec![7_u8; 10 << 20]).await?;
        for folder in ["/workspace", "/tmp"] {
            let result = sh(&sandbox, &format!("head -c 64M /dev/zero > {folder}/full")).await?;
            ensure!(!result.success(), "64 MiB fit into 32: {result:?}");
            ensure!(result.stderr_text().to_lowercase().contains("no space"), "{result:?}");
            ensure_fails!(sandbox.write("more", vec![7_u8; 10 << 20]).await, Quota);
            output(&sandbox, &format!("rm {folder}/full")).await?;
        }
        ensure_eq!(sandbox.read("ten").await?.len(), 10 << 20);
        sandbox.write("ten more", vec![7_u8; 10 << 20]).await?;
        ensure_eq!(output(&sandbox, "echo fine").await?, "fine");
        Ok(())
    })
    .await
}

async fn memory_is_counted_as_the_limit_counts_it(fixture: Arc<dyn Fixture>) -> Check {
    limited(&*fixture, little_memory(), holds_memory, async |sandbox: Sandbox| {
        output(&sandbox, "head -c 20000000 /dev/zero > /dev/shm/held").await?;
        let usage = sandbox.usage().await?;
        ensure!(usage.memory_bytes.is_none_or(|bytes| (18_000_000..64 << 20).contains(&bytes)), "{usage:?}");
        output(&sandbox, "rm /dev/shm/held").await?;
        let usage = sandbox.usage().await?;
        ensure!(usage.memory_peak_bytes.is_none_or(|bytes| bytes >= 18_000_000), "{usage:?}");
        Ok(())
    })
    .await
}
