//! Measures many live sandboxes: the memory of each, and whether creating and using them becomes
//! slower.

use std::path::Path;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use eyot::{Command, ExecOptions, Sandbox, SandboxProvider, SandboxSpec};
use serde::Serialize;

use super::items::quantile;
use super::memory::available_kib;
use crate::errors::Failure;

/// The costs of many idle sandboxes.
#[derive(Debug, Clone, Serialize)]
pub struct Crowd {
    /// The number of live sandboxes.
    pub live: usize,
    /// The available memory of the host that each sandbox took, in KiB: with its processes, kernel
    /// memory and network namespace.
    pub memory_each_kib: f64,
    /// Creates per second with no live sandbox, two at a time.
    pub creates_per_second_alone: f64,
    /// Creates per second with all of them live.
    pub creates_per_second_in_crowd: f64,
    /// Median of `exec /bin/true` in the first hundred sandboxes, in microseconds, with all of them
    /// live.
    pub exec_first_hundred_p50_us: f64,
    /// The same in the last hundred.
    pub exec_last_hundred_p50_us: f64,
    /// Median of `eyot ls` as a process, in milliseconds, with all of them live.
    pub ls_p50_ms: f64,
    /// The same of `eyot top --once`.
    pub top_p50_ms: f64,
}

/// The program `eyot` over the state folder of a crowd.
pub struct CrowdProgram<'a> {
    /// The program.
    pub eyot: &'a Path,
    /// The state folder.
    pub state: &'a Path,
}

impl CrowdProgram<'_> {
    /// Returns the median time of a command as a process, in milliseconds.
    async fn p50_ms(&self, arguments: &[&str]) -> Result<f64, Failure> {
        let mut times = Vec::new();
        for _ in 0..PROGRAM_RUNS {
            let mut command = tokio::process::Command::new(self.eyot);
            command.args(arguments).arg("--state").arg(self.state).stdin(Stdio::null());
            let since = Instant::now();
            let ran = command.output().await.map_err(|error| Failure::host("run this program", error))?;
            times.push(since.elapsed().as_secs_f64() * 1e3);
            if !ran.status.success() {
                let error = String::from_utf8_lossy(&ran.stderr).into_owned();
                return Err(Failure::host(arguments.join(" "), std::io::Error::other(error)));
            }
        }
        Ok(quantile(&times, 0.5))
    }
}

/// The number of sandboxes that are created to measure a rate.
const SAMPLE: usize = 100;
/// The number of times that each command is run as a process.
const PROGRAM_RUNS: usize = 11;
/// The number of sandboxes that are created at once.
const MAKERS: usize = 2;

/// Creates `live` sandboxes, measures, and destroys them. Calls `done` after each create.
pub async fn measure(
    provider: &dyn SandboxProvider,
    program: CrowdProgram<'_>,
    live: usize,
    done: &dyn Fn(),
) -> Result<Crowd, Failure> {
    let (alone, _) = made_at_once(provider, SAMPLE, done).await.map(timed_destroy)?.await?;
    let before = available_kib()?;
    let (_, crowd) = made_at_once(provider, live, done).await?;
    let memory_each_kib = (before - available_kib()?) / live.max(1) as f64;
    let (in_crowd, _) = made_at_once(provider, SAMPLE, done).await.map(timed_destroy)?.await?;
    let exec_first_hundred_p50_us = exec_p50(crowd.iter().take(SAMPLE)).await?;
    let exec_last_hundred_p50_us = exec_p50(crowd.iter().rev().take(SAMPLE)).await?;
    let ls_p50_ms = program.p50_ms(&["ls"]).await?;
    let top_p50_ms = program.p50_ms(&["top", "--once"]).await?;
    destroy(&crowd).await?;
    Ok(Crowd {
        live,
        memory_each_kib,
        creates_per_second_alone: alone,
        creates_per_second_in_crowd: in_crowd,
        exec_first_hundred_p50_us,
        exec_last_hundred_p50_us,
        ls_p50_ms,
        top_p50_ms,
    })
}

async fn timed_destroy((rate, made): (f64, Vec<Sandbox>)) -> Result<(f64, ()), Failure> {
    destroy(&made).await?;
    Ok((rate, ()))
}

/// Creates `count` sandboxes, a few at once. Returns the rate per second, and the sandboxes in the
/// order of their creation.
async fn made_at_once(
    provider: &dyn SandboxProvider,
    count: usize,
    done: &dyn Fn(),
) -> Result<(f64, Vec<Sandbox>), Failure> {
    let left = AtomicUsize::new(count);
    let take = || left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
    let since = Instant::now();
    let maker = || async {
        let mut made = Vec::new();
        while take() {
            made.push((Sandbox::create(provider, SandboxSpec::default()).await?, since.elapsed()));
            done();
        }
        Ok::<_, Failure>(made)
    };
    let made = futures_util::future::try_join_all((0..MAKERS).map(|_| maker())).await?;
    let rate = count as f64 / since.elapsed().as_secs_f64();
    let mut made: Vec<_> = made.into_iter().flatten().collect();
    made.sort_by_key(|(_, at)| *at);
    Ok((rate, made.into_iter().map(|(sandbox, _)| sandbox).collect()))
}

async fn exec_p50(sandboxes: impl Iterator<Item = &Sandbox>) -> Result<f64, Failure> {
    let mut times = Vec::new();
    for sandbox in sandboxes {
        // The first command of a sandbox finds cold caches, which is another row.
        sandbox.exec(Command::argv(["/bin/true"]), ExecOptions::default()).await?;
        let since = Instant::now();
        sandbox.exec(Command::argv(["/bin/true"]), ExecOptions::default()).await?;
        times.push(since.elapsed().as_secs_f64() * 1e6);
    }
    Ok(quantile(&times, 0.5))
}

async fn destroy(sandboxes: &[Sandbox]) -> Result<(), Failure> {
    for sandbox in sandboxes {
        sandbox.destroy().await?;
    }
    Ok(())
}
