//! Measures copies between two sandboxes beside `tar | tar` on the host: of a tree of many files,
//! and of one large file; and the most memory that this process used for them.

use std::path::Path;
use std::process::Command as HostCommand;
use std::time::Instant;

use eyot::{ExecOptions, Sandbox, SandboxProvider, SandboxSpec};
use eyot_engine::{Transfer, transfer};
use serde::Serialize;

use super::rounds::quietly;
use crate::errors::Failure;

/// The measurement of one copy.
#[derive(Debug, Clone, Serialize)]
pub struct MeasuredCopy {
    /// The name of the copied tree.
    pub what: &'static str,
    /// The number of files, and of their bytes.
    pub files: u64,
    pub bytes: u64,
    /// The time between two sandboxes, in milliseconds.
    pub transfer_ms: f64,
    /// The time of `tar | tar` from one directory of the host to another, in milliseconds.
    pub tar_ms: f64,
    /// The most additional memory of this process during the copy, in KiB.
    pub memory_kib: u64,
}

/// The trees to copy: a name, and the shell command that makes the tree as `t`.
const SUBJECTS: [(&str, &str); 2] = [
    (
        "a tree of 10,000 files",
        "mkdir t && cd t && for d in $(seq 100); do mkdir $d; for f in $(seq 100); do echo $d/$f > $d/$f; done; done",
    ),
    ("a file of 1 GiB", "mkdir t && head -c 1073741824 /dev/urandom > t/file"),
];

/// Copies each tree. `folder` is for the benchmark's files.
pub async fn measure(
    provider: &dyn SandboxProvider,
    folder: &Path,
    done: &dyn Fn(),
) -> Result<Vec<MeasuredCopy>, Failure> {
    let mut copied = Vec::new();
    for (what, line) in SUBJECTS {
        let from = Sandbox::create(provider, SandboxSpec::default()).await?;
        let to = Sandbox::create(provider, SandboxSpec::default()).await?;
        let result = copy(&from, &to, folder, (what, line)).await;
        from.destroy().await?;
        to.destroy().await?;
        copied.push(result?);
        done();
    }
    Ok(copied)
}

async fn copy(
    from: &Sandbox,
    to: &Sandbox,
    folder: &Path,
    (what, line): (&'static str, &str),
) -> Result<MeasuredCopy, Failure> {
    let made = from.exec(line, ExecOptions::default()).await?;
    if !made.success() {
        let message = format!("make {what}: {}", made.stderr_text());
        return Err(eyot::Error::new(eyot::ErrorKind::Internal, message).into());
    }
    let before = memory_kib("VmRSS")?;
    forget_the_peak()?;
    let since = Instant::now();
    let whole = Transfer { from_path: "t".to_owned(), to_path: "t".to_owned(), recursive: true };
    let moved = transfer(from, to, &whole).await?;
    let transfer_ms = since.elapsed().as_secs_f64() * 1e3;
    let memory_kib = memory_kib("VmHWM")?.saturating_sub(before);
    let tar_ms = on_the_host(folder, line)?;
    Ok(MeasuredCopy { what, files: moved.files, bytes: moved.bytes, transfer_ms, tar_ms, memory_kib })
}

fn on_the_host(folder: &Path, line: &str) -> Result<f64, Failure> {
    let own = tempfile::tempdir_in(folder).map_err(|error| Failure::host("make a folder", error))?;
    let shell = |line: &str| {
        let mut command = HostCommand::new("bash");
        command.args(["-o", "pipefail", "-ec", line]).current_dir(own.path());
        quietly(&mut command)
    };
    shell("mkdir from to")?;
    shell(&format!("cd from && {line}"))?;
    let since = Instant::now();
    shell("tar -C from -cf - t | tar -C to -xf -")?;
    Ok(since.elapsed().as_secs_f64() * 1e3)
}

fn memory_kib(field: &str) -> Result<u64, Failure> {
    let cannot = |error| Failure::host("read how much memory this process has", error);
    let text = std::fs::read_to_string("/proc/self/status").map_err(cannot)?;
    let line = text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    let number = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
    number.ok_or_else(|| cannot(std::io::ErrorKind::InvalidData.into()))
}

fn forget_the_peak() -> Result<(), Failure> {
    std::fs::write("/proc/self/clear_refs", "5")
        .map_err(|error| Failure::host("reset the peak of this process's memory", error))
}
