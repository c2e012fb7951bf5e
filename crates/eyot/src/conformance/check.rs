//! Helpers that the cases are written with: a sandbox that is gone afterwards, shell lines, and
//! checks that say what was wrong instead of panicking.

use std::future::Future;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use super::{Fixture, Verdict};
use crate::error::{Error, ErrorKind, Result};
use crate::exec::{ExecOptions, ExecResult};
use crate::process::{ProcessInfo, ProcessStatus};
use crate::sandbox::Sandbox;
use crate::spec::{SandboxName, SandboxSpec};

pub(super) use super::disposable::Disposable;

/// Empties the workspace and `/tmp`, and fails where something is left.
const EMPTY: &str = "for folder in . /tmp; do
    cd \"$folder\" && chmod -R u+rwx . 2>/dev/null
    rm -rf -- ..?* .[!.]* * && test -z \"$(ls -A)\" || exit
done";

/// The reason why a case did not hold.
#[derive(Debug)]
pub(super) enum Failure {
    /// The rule is broken.
    Broken(String),
    /// The rule can't be tried here.
    NotHere(String),
}

/// The result of a case.
pub(super) type Check<T = ()> = Result<T, Failure>;

impl From<Error> for Failure {
    /// Says where in the suite the call stands that failed: a `?` passes its own place on.
    #[track_caller]
    fn from(error: Error) -> Self {
        let call = std::panic::Location::caller();
        Self::Broken(format!("failed with {}: {error} ({}:{})", error.kind(), call.file(), call.line()))
    }
}

/// Lists the cases of a file: each a function and what it needs. It is given a `sandbox` of its own, a `workspace` that
/// is empty in a sandbox where others may have been tried, or the `fixture` if it makes its own.
macro_rules! cases {
    ($($name:ident($given:ident) needs [$($need:ident),*];)*) => {
        pub(super) fn cases() -> Vec<super::Case> {
            vec![$(super::Case {
                name: stringify!($name),
                needs: &[$(crate::capabilities::Capability::$need),*],
                run: |fixture| Box::pin(super::check::verdict(cases!(@$given fixture, $name))),
            }),*]
        }
    };
    (@sandbox $fixture:ident, $name:ident) => { super::check::in_a_sandbox($fixture, $name) };
    (@workspace $fixture:ident, $name:ident) => { super::check::in_a_workspace($fixture, $name) };
    (@fixture $fixture:ident, $name:ident) => { $name($fixture) };
}

/// Fails unless the condition holds; what follows says what was expected and what was found.
macro_rules! ensure {
    ($holds:expr, $($said:tt)+) => {
        if !$holds {
            return Err(super::check::Failure::Broken(format!("{} ({}:{})", format_args!($($said)+), file!(), line!())));
        }
    };
}

/// Fails unless both are equal.
macro_rules! ensure_eq {
    ($found:expr, $expected:expr) => {
        match (&$found, &$expected) {
            (found, expected) => {
                ensure!(found == expected, "{} is {found:?}, not {expected:?}", stringify!($found));
            }
        }
    };
}

/// Fails unless the result is an error of one of the kinds.
macro_rules! ensure_fails {
    ($result:expr, $($kind:ident)|+) => {
        match $result {
            Ok(_) => ensure!(false, "{} succeeded; {} was due", stringify!($result), stringify!($($kind)|+)),
            Err(error) => ensure!(
                matches!(error.kind(), $(crate::error::ErrorKind::$kind)|+),
                "{} failed with {} ({error}); {} was due", stringify!($result), error.kind(), stringify!($($kind)|+)
            ),
        }
    };
}

pub(super) use {cases, ensure, ensure_eq, ensure_fails};

/// A case's end as the harness wants it.
pub(super) async fn verdict(check: impl Future<Output = Check>) -> Result<Verdict, String> {
    match check.await {
        Ok(()) => Ok(Verdict::Holds),
        Err(Failure::NotHere(reason)) => Ok(Verdict::NotHere(reason)),
        Err(Failure::Broken(broken)) => Err(broken),
    }
}

/// Tries `case` in a sandbox that is made for it, and destroyed whatever comes of it.
pub(super) async fn in_a_sandbox<C, F>(fixture: Arc<dyn Fixture>, case: C) -> Check
where
    C: FnOnce(Sandbox) -> F,
    F: Future<Output = Check>,
{
    let spec = fixture.spec();
    with_spec(&*fixture, spec, case).await
}

/// The same with a spec of the case's own.
pub(super) async fn with_spec<C, F>(fixture: &dyn Fixture, spec: SandboxSpec, case: C) -> Check
where
    C: FnOnce(Sandbox) -> F,
    F: Future<Output = Check>,
{
    let sandbox = Disposable(Sandbox::create(&*fixture.provider(), spec).await?);
    let checked = case(sandbox.0.clone()).await;
    let destroyed = sandbox.0.destroy().await;
    checked?;
    Ok(destroyed?)
}

/// Tries `case` in a sandbox where others may have been tried before it, with an empty workspace.
pub(super) async fn in_a_workspace<C, F>(fixture: Arc<dyn Fixture>, case: C) -> Check
where
    C: FnOnce(Sandbox) -> F,
    F: Future<Output = Check>,
{
    let Some(reused) = fixture.reused() else { return in_a_sandbox(fixture, case).await };
    let sandbox = match reused.take() {
        Some(sandbox) => sandbox,
        None => Disposable(Sandbox::create(&*fixture.provider(), fixture.spec()).await?),
    };
    let checked = case(sandbox.0.clone()).await;
    if !matches!(checked, Err(Failure::Broken(_))) && is_clean(&sandbox.0).await {
        reused.give(sandbox);
    }
    checked
}

/// Tells whether another case can be tried in it: nothing runs there, and what was left is removed.
async fn is_clean(sandbox: &Sandbox) -> bool {
    let is_quiet = |all: Vec<ProcessInfo>| all.iter().all(|process| process.status != ProcessStatus::Running);
    sandbox.processes().await.is_ok_and(is_quiet)
        && sh(sandbox, EMPTY).await.is_ok_and(|emptied| emptied.success())
}

/// A name that no other case uses.
pub(super) fn unique_name() -> SandboxName {
    crate::spec::SandboxId::generate().default_name()
}

/// Runs a shell line to its end.
pub(super) async fn sh(sandbox: &Sandbox, line: &str) -> Result<ExecResult> {
    sandbox.exec(line, ExecOptions::default()).await
}

/// Runs a shell line that must succeed, and returns what it printed, without the last line end.
pub(super) async fn output(sandbox: &Sandbox, line: &str) -> Check<String> {
    let result = sh(sandbox, line).await?;
    ensure!(result.success(), "`{line}` ended with {:?}: {}", result.outcome, result.stderr_text());
    let text = result.stdout_text();
    Ok(text.strip_suffix('\n').map(str::to_owned).unwrap_or(text))
}

/// Goes no further where a program is missing inside.
pub(super) async fn need_program(sandbox: &Sandbox, program: &str) -> Check {
    if sh(sandbox, &format!("command -v {program}")).await?.success() {
        Ok(())
    } else {
        Err(Failure::NotHere(format!("there is no `{program}` in the sandbox")))
    }
}

/// Tells whether the shell inside takes every name that Linux does: bytes that are no text, and line ends.
pub(super) async fn takes_odd_names(sandbox: &Sandbox) -> Check<bool> {
    let line = "mkdir .probe && : > .probe/\"$(printf 'a\\nb\\377')\"; ls .probe | od -An -tx1; rm -r .probe";
    let listed = sh(sandbox, line).await?.stdout_text();
    Ok(listed.split_whitespace().collect::<String>() == "610a62ff0a")
}

/// A deadline that comes after a command has said a word, in milliseconds.
pub(super) fn after_a_word_ms() -> u64 {
    1_000 * u64::from(slowness())
}

/// The factor by which this machine may be slower than usual, by `EYOT_SLOWNESS`: 1 unless it says
/// otherwise. An emulated processor needs more; so every patience, and every deadline by which
/// something must have begun, is that much longer.
pub(super) fn slowness() -> u32 {
    static SLOWNESS: LazyLock<u32> = LazyLock::new(|| {
        let said = std::env::var("EYOT_SLOWNESS").ok().and_then(|said| said.parse().ok());
        said.unwrap_or(1).max(1)
    });
    *SLOWNESS
}

/// Waits until something holds, asking again and again; a failure says what was waited for.
pub(super) async fn until<F: Future<Output = Check<bool>>>(
    what: &str,
    mut holds: impl FnMut() -> F,
) -> Check {
    let patience = Duration::from_secs(15) * slowness();
    let given_up = tokio::time::Instant::now() + patience;
    while !holds().await? {
        ensure!(tokio::time::Instant::now() < given_up, "{what} did not happen within {patience:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

/// Fails unless something is done before it is obviously hanging.
pub(super) async fn promptly<T>(what: &str, work: impl Future<Output = T>) -> Check<T> {
    let prompt = Duration::from_secs(10) * slowness();
    let late = |_| Failure::Broken(format!("{what} was not done within {prompt:?}"));
    tokio::time::timeout(prompt, work).await.map_err(late)
}

/// Returns whether an error says that a sandbox is gone or does not answer.
pub(super) fn is_gone(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Destroyed | ErrorKind::Unavailable | ErrorKind::NotFound)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_fails_is_told_with_its_place_in_the_suite() {
        fn fails() -> Check {
            Err(Error::new(ErrorKind::NotFound, "no such file"))?;
            Ok(())
        }
        let Err(Failure::Broken(told)) = fails() else { panic!("it did not fail") };
        assert!(
            told.starts_with("failed with not_found: no such file (") && told.contains("check.rs:"),
            "{told}"
        );
    }
}
