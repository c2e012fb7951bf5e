//! Helpers for tests: sandboxes that are removed afterwards, shell lines, and the Engine's own
//! client.

use std::process::Command as Process;
use std::time::Duration;

use eyot::{ExecOptions, Sandbox, SandboxProvider, SandboxSpec};
use libtest_mimic::Failed;

use crate::engine::TestEngine;

/// The result of a test.
pub type Check<T = ()> = Result<T, Failed>;

/// Fails unless the condition holds, with a message.
macro_rules! ensure {
    ($holds:expr, $($said:tt)+) => {
        if !$holds {
            return Err(format!("{} ({}:{})", format_args!($($said)+), file!(), line!()).into());
        }
    };
}

/// Fails unless both are equal.
macro_rules! ensure_eq {
    ($found:expr, $expected:expr) => {
        match (&$found, &$expected) {
            (found, expected) => {
                ensure!(found == expected, "{} is {found:?}, not {expected:?}", stringify!($found))
            }
        }
    };
}

/// Fails unless the result is an error of this kind. Returns the error.
macro_rules! refused {
    ($result:expr, $kind:ident) => {
        match $result {
            Ok(_) => {
                return Err(format!("{} succeeded ({}:{})", stringify!($result), file!(), line!()).into())
            }
            Err(error) => {
                ensure!(
                    error.kind() == eyot::ErrorKind::$kind,
                    "{} is {}, not {}",
                    error,
                    error.kind(),
                    stringify!($kind)
                );
                error
            }
        }
    };
}

pub(crate) use {ensure, ensure_eq, refused};

/// Runs a test with a sandbox, and removes the sandbox whatever the outcome.
pub async fn with_sandbox<T>(
    engine: &TestEngine,
    spec: SandboxSpec,
    test: impl AsyncFnOnce(&Sandbox) -> Check<T>,
) -> Check<T> {
    let sandbox = Sandbox::create(&*engine.provider, spec).await?;
    let came_to = test(&sandbox).await;
    let removed = engine.provider.remove(sandbox.id().as_str()).await;
    match removed {
        Err(error) if error.kind() == eyot::ErrorKind::NotFound => {}
        other => other?,
    }
    came_to
}

/// Runs a shell line that must succeed. Returns its output without the last line end.
pub async fn output(sandbox: &Sandbox, line: &str) -> Check<String> {
    output_as(sandbox, None, line).await
}

/// Runs a shell line as a user. It must succeed. Returns its output without the last line end.
pub async fn output_as(sandbox: &Sandbox, user: Option<&str>, line: &str) -> Check<String> {
    let options = ExecOptions { user: user.map(str::to_owned), ..ExecOptions::default() };
    let result = sandbox.exec(line, options).await?;
    ensure!(result.success(), "`{line}` ended with {:?}: {}", result.outcome, result.stderr_text());
    Ok(result.stdout_text().trim_end_matches('\n').to_owned())
}

/// Runs the Engine's own client, which must succeed. Returns its output.
pub fn docker(arguments: &[&str]) -> Check<String> {
    let output = Process::new("docker").args(arguments).output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(output.status.success(), "docker {arguments:?}: {said}");
    Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}

/// Returns a part of the Engine's description of a sandbox's container, by a Go template.
pub fn inspected(sandbox: &Sandbox, template: &str) -> Check<String> {
    docker(&["inspect", "--format", template, &format!("eyot-{}", sandbox.name())])
}

/// Waits until a condition holds, by checking it repeatedly.
pub async fn until(what: &str, mut holds: impl AsyncFnMut() -> Check<bool>) -> Check {
    let given_up = tokio::time::Instant::now() + Duration::from_secs(60);
    while !holds().await? {
        ensure!(tokio::time::Instant::now() < given_up, "{what} did not happen within a minute");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}
