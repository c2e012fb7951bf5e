//! Running programs, with their name in the error.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::log;

/// Runs a command to its end; anything but success is an error that shows it.
pub fn run(command: &mut Command) -> Result<(), String> {
    let shown = format!("{command:?}");
    match log::redirect(command).and_then(|()| command.status()) {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{shown}: {status}")),
        Err(error) => Err(format!("{shown}: {error}")),
    }
}

/// The same command, ended when it takes longer than this. It stays in the terminal's process
/// group, so ^C ends it, too.
pub fn limited(command: &Command, limit: Duration) -> Command {
    let mut limited = Command::new("timeout");
    limited.args(["--foreground", "--kill-after=10"]).arg(limit.as_secs().to_string());
    limited.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => limited.env(name, value),
            None => limited.env_remove(name),
        };
    }
    command.get_current_dir().iter().for_each(|folder| {
        limited.current_dir(folder);
    });
    limited
}

/// Does all of it, and gives everything that failed in one error.
pub fn all_of(results: impl IntoIterator<Item = Result<(), String>>) -> Result<(), String> {
    let failed: Vec<String> = results.into_iter().filter_map(Result::err).collect();
    if failed.is_empty() { Ok(()) } else { Err(failed.join("\nxtask: ")) }
}

/// A command's standard output.
pub fn output(command: &mut Command) -> Result<String, String> {
    let shown = format!("{command:?}");
    let output = log::redirect_errors(command.stderr(Stdio::inherit())).and_then(|()| command.output());
    let output = output.map_err(|error| format!("{shown}: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(format!("{shown}: {}", output.status))
    }
}

/// The cargo that runs this task.
pub fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(root());
    cargo
}

/// The repository.
pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).parent().map(PathBuf::from).unwrap_or_default()
}

/// Returns the directory in which cargo builds.
pub fn target_directory() -> Result<PathBuf, String> {
    let metadata = output(cargo().args(["metadata", "--no-deps", "--format-version=1"]))?;
    let metadata: serde_json::Value = serde_json::from_str(&metadata).map_err(|error| error.to_string())?;
    metadata["target_directory"]
        .as_str()
        .map(PathBuf::from)
        .ok_or("cargo names no target directory".to_owned())
}

/// Tells whether this process is root.
pub fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout.starts_with(b"0\n"))
}

/// Tells whether a program is on the path.
pub fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}
