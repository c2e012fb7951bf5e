//! What a sandbox uses: figures that can be right, and absent ones instead of invented ones.

use std::time::Duration;

use super::check::{Check, cases, ensure, output, until};
use crate::sandbox::Sandbox;

cases! {
    an_idle_sandbox_uses_little(sandbox) needs [Usage];
    processes_and_memory_are_counted(sandbox) needs [Shell, Usage];
    processor_time_grows_with_work(sandbox) needs [Shell, Usage];
    the_time_since_the_start_and_since_the_last_use_is_told(sandbox) needs [Usage];
    disk_use_grows_with_what_is_written(sandbox) needs [Usage];
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
