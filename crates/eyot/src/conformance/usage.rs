//! A sandbox's use of resources: figures that can be right, and absent ones instead of invented
//! ones.

use std::sync::Arc;
use std::time::Duration;

use super::Fixture;
use super::check::{Check, Disposable, cases, ensure, ensure_eq, is_gone, output, promptly, until};
use crate::exec::Command;
use crate::sandbox::{Sandbox, StartOptions};

cases! {
    an_idle_sandbox_uses_little(sandbox) needs [Usage];
    processes_and_memory_are_counted(sandbox) needs [Shell, Usage];
    processor_time_grows_with_work(sandbox) needs [Shell, Usage];
    the_time_since_the_start_and_since_the_last_use_is_told(sandbox) needs [Usage];
    disk_use_grows_with_what_is_written(sandbox) needs [Usage];
    everything_that_runs_is_listed_whoever_started_it(sandbox) needs [Shell, Argv, Processes, LiveProcesses];
    looking_at_a_sandbox_does_not_keep_it_from_being_idle(fixture) needs [Usage, Deadlines];
    finding_a_sandbox_again_does_not_keep_it_from_being_idle(fixture) needs [Usage, Deadlines];
    an_idle_time_is_not_begun_anew_by_whoever_asks_for_it(sandbox) needs [Usage];
}

async fn an_idle_sandbox_uses_little(sandbox: Sandbox) -> Check {
    let usage = sandbox.usage().await?;
    ensure!(usage.processes.is_none_or(|count| count < 8), "{usage:?}");
    ensure!(usage.memory_bytes.is_none_or(|bytes| bytes < 256 << 20), "{usage:?}");
    ensure!(usage.uptime_ms.is_none_or(|uptime| uptime < 60_000), "{usage:?}");
    Ok(())
}

async fn processes_and_memory_are_counted(sandbox: Sandbox) -> Check {
    let before = sandbox.usage().await?;
    output(&sandbox, "for i in 1 2 3 4 5; do sleep 86450 >/dev/null 2>&1 & done").await?;
    let after = sandbox.usage().await?;
    if let (Some(before), Some(after)) = (before.processes, after.processes) {
        ensure!((before + 5..before + 12).contains(&after), "5 more than {before} processes are {after}");
    }
    ensure!(after.memory_bytes.is_none_or(|bytes| bytes > 100_000), "{after:?}");
    Ok(())
}

async fn processor_time_grows_with_work(sandbox: Sandbox) -> Check {
    let before = sandbox.usage().await?.cpu_ms;
    output(&sandbox, "i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done").await?;
    let after = sandbox.usage().await?.cpu_ms;
    if let (Some(before), Some(after)) = (before, after) {
        ensure!(after > before, "200,000 rounds took no time: {before} and {after} ms");
    }
    Ok(())
}

async fn the_time_since_the_start_and_since_the_last_use_is_told(sandbox: Sandbox) -> Check {
    let before = sandbox.usage().await?;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let after = sandbox.usage().await?;
    if let (Some(before), Some(after)) = (before.uptime_ms, after.uptime_ms) {
        ensure!((before + 250..before + 60_000).contains(&after), "300 ms later than {before} is {after}");
    }
    ensure!(after.idle_ms.is_none_or(|idle| idle < 60_000), "{after:?}");
    Ok(())
}

async fn disk_use_grows_with_what_is_written(sandbox: Sandbox) -> Check {
    let Some(before) = sandbox.usage().await?.disk_bytes else { return Ok(()) };
    sandbox.write("large", vec![7; 3_000_000]).await?;
    until("the growth", async || {
        let after = sandbox.usage().await?.disk_bytes;
        Ok(after.is_some_and(|after| after >= before + 2_900_000))
    })
    .await
}

async fn everything_that_runs_is_listed_whoever_started_it(sandbox: Sandbox) -> Check {
    let busy = ["sh", "-c", "sleep 86490 & while :; do :; done", "busy", "an argument"];
    let started = sandbox.start(Command::argv(busy), StartOptions::default()).await?;
    until("the shell", async || {
        let found = sandbox.live_processes().await?.processes;
        Ok(found.iter().any(|process| process.pid == started.pid && process.cpu_ms != Some(0))
            && found.iter().any(|process| process.command == "sleep 86490"))
    })
    .await?;
    let found = sandbox.live_processes().await?;
    ensure!(!found.truncated && found.processes.is_sorted_by_key(|process| process.pid), "{found:?}");
    let Some(shell) = found.processes.iter().find(|process| process.pid == started.pid) else {
        return Err(super::check::Failure::Broken(format!("{started:?} is not among {found:?}")));
    };
    ensure!(shell.command.ends_with(&busy.join(" ")), "{shell:?} is not {busy:?}");
    let user = output(&sandbox, "id -un >/dev/null 2>&1 && id -un || echo \"$USER\"").await?;
    ensure!(shell.user == user && shell.memory_bytes != Some(0), "{shell:?} is not {user}'s");
    let child = found.processes.iter().find(|process| process.command == "sleep 86490");
    ensure_eq!(child.map(|child| child.parent_pid), Some(started.pid));
    sandbox.kill(started.id, None).await?;
    until("the end of it all", async || {
        let found = sandbox.live_processes().await?.processes;
        Ok(found.iter().all(|process| process.pid != started.pid && !process.command.contains("86490")))
    })
    .await
}

async fn looking_at_a_sandbox_does_not_keep_it_from_being_idle(fixture: Arc<dyn Fixture>) -> Check {
    let mut spec = fixture.spec();
    spec.lifecycle.idle_timeout_ms = Some(500);
    let sandbox = Disposable(Sandbox::create(&*fixture.provider(), spec).await?);
    let end = async {
        loop {
            match sandbox.0.usage().await {
                Ok(_) => tokio::time::sleep(Duration::from_millis(50)).await,
                Err(error) => return error,
            }
        }
    };
    let error = promptly("the end of the idle sandbox", end).await?;
    ensure!(is_gone(&error), "{}: {error}", error.kind());
    Ok(())
}

async fn finding_a_sandbox_again_does_not_keep_it_from_being_idle(fixture: Arc<dyn Fixture>) -> Check {
    let provider = fixture.provider();
    let mut spec = fixture.spec();
    spec.lifecycle.idle_timeout_ms = Some(1_000);
    let sandbox = Disposable(Sandbox::create(&*provider, spec).await?);
    let end = async {
        loop {
            let found = Sandbox::open(&*provider, sandbox.0.id().as_str()).await;
            let seen = match &found {
                Ok(found) => found.usage().await.map(drop),
                Err(_) => found.map(drop),
            };
            match seen {
                Ok(()) => tokio::time::sleep(Duration::from_millis(50)).await,
                Err(error) => return error,
            }
        }
    };
    let error = promptly("the end of the idle sandbox", end).await?;
    ensure!(is_gone(&error), "{}: {error}", error.kind());
    Ok(())
}

async fn an_idle_time_is_not_begun_anew_by_whoever_asks_for_it(sandbox: Sandbox) -> Check {
    output(&sandbox, "true").await?;
    let Some(before) = sandbox.usage().await?.idle_ms else { return Ok(()) };
    tokio::time::sleep(Duration::from_millis(200)).await;
    sandbox.usage().await?;
    tokio::time::sleep(Duration::from_millis(200)).await;
    let after = sandbox.usage().await?.idle_ms;
    ensure!(
        after.is_some_and(|after| after >= before + 350),
        "400 ms after {before} it is idle for {after:?}"
    );
    Ok(())
}
