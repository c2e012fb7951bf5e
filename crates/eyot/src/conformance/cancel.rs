//! Cancellation: before, during, at the moment of the end and after it. The outcome is `Cancelled`, never a success that
//! the caller had given up, and nothing is left running.

use std::time::Duration;

use super::check::{Check, cases, ensure, ensure_eq, output, promptly, until};
use super::tree::cleared;
use crate::exec::{ExecEvent, ExecOptions, ExecResult, Outcome};
use crate::sandbox::Sandbox;
use crate::{CancellationToken, Result};

cases! {
    a_command_that_was_cancelled_before_never_starts(workspace) needs [Shell];
    a_cancelled_command_ends_at_once_with_its_output_so_far(workspace) needs [Shell];
    a_cancelled_command_leaves_nothing_running(workspace) needs [Shell, KillTree];
    a_cancellation_at_the_moment_of_the_end_is_one_or_the_other(workspace) needs [Shell];
    a_cancellation_after_the_end_changes_nothing(workspace) needs [Shell];
    a_cancellation_ends_its_own_command_and_no_other(workspace) needs [Shell];
    a_cancelled_stream_ends_with_its_result(workspace) needs [Shell];
}

async fn cancellable(sandbox: &Sandbox, line: &str, cancel: &CancellationToken) -> Result<ExecResult> {
    let options = ExecOptions { cancel: Some(cancel.clone()), ..ExecOptions::default() };
    sandbox.exec(line, options).await
}

/// Runs a line that makes the file `started`, and cancels it then.
async fn cancelled_when_started(sandbox: &Sandbox, line: &str) -> Check<ExecResult> {
    let cancel = CancellationToken::new();
    let (result, started) = promptly("the cancellation", async {
        tokio::join!(cancellable(sandbox, line, &cancel), async {
            let started = until("its start", async || Ok(sandbox.exists("started").await?)).await;
            cancel.cancel();
            started
        })
    })
    .await?;
    started?;
    Ok(result?)
}

async fn a_command_that_was_cancelled_before_never_starts(sandbox: Sandbox) -> Check {
    let cancel = CancellationToken::new();
    cancel.cancel();
    let result = cancellable(&sandbox, "touch made", &cancel).await?;
    ensure_eq!((result.outcome, result.may_still_be_running), (Outcome::Cancelled, false));
    ensure!(!sandbox.exists("made").await?, "the command ran");
    Ok(())
}

async fn a_cancelled_command_ends_at_once_with_its_output_so_far(sandbox: Sandbox) -> Check {
    let line = "echo out; echo err >&2; touch started; sleep 86400";
    let result = cancelled_when_started(&sandbox, line).await?;
    ensure_eq!((result.outcome, result.may_still_be_running), (Outcome::Cancelled, false));
    ensure_eq!((&result.stdout[..], &result.stderr[..]), (&b"out\n"[..], &b"err\n"[..]));
    let flat = result.flatten();
    ensure_eq!((flat.aborted, flat.timed_out, flat.exit_code), (true, false, 130));
    ensure_eq!(flat.stderr, "err\n");
    Ok(())
}

async fn a_cancelled_command_leaves_nothing_running(sandbox: Sandbox) -> Check {
    let line = "trap '' TERM; setsid sleep 86405 & (sleep 86405 &); touch started; sleep 86405";
    cancelled_when_started(&sandbox, line).await?;
    cleared(&sandbox, "86405").await
}

async fn a_cancellation_at_the_moment_of_the_end_is_one_or_the_other(sandbox: Sandbox) -> Check {
    for round in 0..40_u64 {
        let cancel = CancellationToken::new();
        let later = async {
            tokio::time::sleep(Duration::from_micros(round * 150)).await;
            cancel.cancel();
        };
        let both = async { tokio::join!(cancellable(&sandbox, "echo x", &cancel), later) };
        let (result, ()) = promptly("the cancellation", both).await?;
        let result = result?;
        let whole = result.outcome == Outcome::Exited(0) && &result.stdout[..] == b"x\n";
        ensure!(whole || result.outcome == Outcome::Cancelled, "round {round} came to {result:?}");
        ensure!(!result.may_still_be_running, "the kill of round {round} was not confirmed");
    }
    ensure_eq!(output(&sandbox, "echo fine").await?, "fine");
    Ok(())
}

async fn a_cancellation_after_the_end_changes_nothing(sandbox: Sandbox) -> Check {
    let cancel = CancellationToken::new();
    let result = cancellable(&sandbox, "sleep 0.3 && touch made & echo done", &cancel).await?;
    cancel.cancel();
    ensure_eq!((result.outcome, &result.stdout[..]), (Outcome::Exited(0), &b"done\n"[..]));
    until("what the background child does", async || Ok(sandbox.exists("made").await?)).await
}

async fn a_cancellation_ends_its_own_command_and_no_other(sandbox: Sandbox) -> Check {
    let line = "while [ ! -e go ]; do sleep 0.02; done; echo went";
    let cancelled = async {
        let result = cancelled_when_started(&sandbox, "touch started; sleep 86400").await;
        sandbox.write("go", "").await?;
        result
    };
    let (other, cancelled) =
        promptly("both", async { tokio::join!(output(&sandbox, line), cancelled) }).await?;
    ensure_eq!(cancelled?.outcome, Outcome::Cancelled);
    ensure_eq!(other?, "went");
    Ok(())
}

async fn a_cancelled_stream_ends_with_its_result(sandbox: Sandbox) -> Check {
    let cancel = CancellationToken::new();
    let options = ExecOptions { cancel: Some(cancel.clone()), ..ExecOptions::default() };
    let mut stream = sandbox.exec_stream("echo out; sleep 86400", options).await?;
    let first = promptly("the first output", stream.next()).await?;
    ensure!(matches!(&first, Some(Ok(ExecEvent::Stdout(_)))), "{first:?} came first");
    cancel.cancel();
    let end = promptly("the end", stream.next()).await?;
    let Some(Ok(ExecEvent::End(result))) = end else {
        return Err(super::check::Failure::Broken(format!("{end:?} came instead of the end")));
    };
    ensure_eq!((result.outcome, &result.stdout[..]), (Outcome::Cancelled, &b"out\n"[..]));
    ensure!(stream.next().await.is_none(), "something came after the end");
    Ok(())
}
