//! Programs that are run without a shell: the outcome, input, deadline and cancellation, for a provider that has no shell
//! as for one that has.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::join_all;
use futures_util::{StreamExt, stream};
use tokio_util::sync::CancellationToken;

use super::Fixture;
use super::check::{
    Check, Disposable, Failure, cases, ensure, ensure_eq, is_gone, promptly, slowness, until,
};
use crate::error::{ErrorKind, Result};
use crate::exec::{Command, ExecEvent, ExecOptions, ExecResult, Outcome, Stdin};
use crate::sandbox::Sandbox;

cases! {
    a_program_s_exit_code_and_its_two_streams_come_back(workspace) needs [Argv];
    a_program_reads_its_input_and_then_the_end(workspace) needs [Argv];
    twenty_programs_at_once_mix_nothing_up(workspace) needs [Argv];
    a_deadline_ends_a_program_with_its_output_so_far(workspace) needs [Argv];
    a_cancelled_program_ends_at_once_with_its_output_so_far(workspace) needs [Argv];
    a_destroy_settles_the_programs_that_run(fixture) needs [Argv];
}

/// Runs a program that must be there.
async fn run(sandbox: &Sandbox, argv: &[&str], options: ExecOptions) -> Check<ExecResult> {
    let ran = promptly(argv[0], sandbox.exec(Command::argv(argv.iter().copied()), options)).await?;
    begun(ran, argv[0])
}

/// Goes no further where the program is missing inside.
fn begun<T>(result: Result<T>, program: &str) -> Check<T> {
    match result {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Err(Failure::NotHere(format!("there is no `{program}` in the sandbox")))
        }
        begun => Ok(begun?),
    }
}

/// An input that never comes to an end.
fn endless(first: &'static str) -> Stdin {
    let first = stream::once(async move { Ok(Bytes::from_static(first.as_bytes())) });
    Stdin::Stream(first.chain(stream::pending()).boxed())
}

async fn a_program_s_exit_code_and_its_two_streams_come_back(sandbox: Sandbox) -> Check {
    let printed = run(&sandbox, &["echo", "a  b", "c"], ExecOptions::default()).await?;
    ensure_eq!(printed.outcome, Outcome::Exited(0));
    ensure_eq!((printed.stdout_text().as_str(), printed.stderr_text().as_str()), ("a  b c\n", ""));
    let failed = run(&sandbox, &["cat", "missing"], ExecOptions::default()).await?;
    ensure_eq!(failed.outcome, Outcome::Exited(1));
    ensure!(failed.stdout.is_empty() && failed.stderr_text().contains("missing"), "it said {failed:?}");
    Ok(())
}

async fn a_program_reads_its_input_and_then_the_end(sandbox: Sandbox) -> Check {
    let text: String = (0..100_000).map(|number| format!("{number}\n")).collect();
    let options = ExecOptions { stdin: Stdin::Bytes(text.clone().into()), ..ExecOptions::default() };
    let copied = run(&sandbox, &["cat"], options).await?;
    ensure!(copied.success() && copied.stdout == text, "{} bytes came back", copied.stdout.len());
    Ok(())
}

async fn twenty_programs_at_once_mix_nothing_up(sandbox: Sandbox) -> Check {
    let all = (0..20).map(async |number: usize| {
        let text = number.to_string().repeat(10_000);
        let options = ExecOptions { stdin: Stdin::Bytes(text.clone().into()), ..ExecOptions::default() };
        let copied = run(&sandbox, &["cat"], options).await?;
        ensure!(copied.stdout == text, "the input of program {number} did not come back");
        Ok(())
    });
    join_all(all).await.into_iter().collect()
}

async fn a_deadline_ends_a_program_with_its_output_so_far(sandbox: Sandbox) -> Check {
    let timeout_ms = Some(u64::from(500 * slowness()));
    let options = ExecOptions { stdin: endless("so far"), timeout_ms, ..ExecOptions::default() };
    let ended = run(&sandbox, &["cat"], options).await?;
    ensure_eq!(ended.outcome, Outcome::TimedOut);
    ensure_eq!(ended.stdout_text(), "so far");
    ensure!(!ended.may_still_be_running, "its kill was not confirmed");
    Ok(())
}

async fn a_cancelled_program_ends_at_once_with_its_output_so_far(sandbox: Sandbox) -> Check {
    let cancel = CancellationToken::new();
    let options =
        ExecOptions { stdin: endless("so far"), cancel: Some(cancel.clone()), ..ExecOptions::default() };
    let mut events = begun(sandbox.exec_stream(Command::argv(["cat"]), options).await, "cat")?;
    let mut ended = None;
    while let Some(event) = promptly("a cancelled program", events.next()).await? {
        match event? {
            ExecEvent::End(result) => ended = Some(result),
            _ => cancel.cancel(),
        }
    }
    let ended = ended.ok_or_else(|| Failure::Broken("its events had no end".to_owned()))?;
    ensure_eq!((ended.outcome, ended.stdout_text().as_str()), (Outcome::Cancelled, "so far"));
    ensure!(!ended.may_still_be_running, "its kill was not confirmed");
    Ok(())
}

async fn a_destroy_settles_the_programs_that_run(fixture: Arc<dyn Fixture>) -> Check {
    let sandbox = Disposable(Sandbox::create(&*fixture.provider(), fixture.spec()).await?);
    let handle = sandbox.0.clone();
    let running = tokio::spawn(async move {
        let options = ExecOptions { stdin: endless("so far"), ..ExecOptions::default() };
        handle.exec(Command::argv(["tee", "note"]), options).await
    });
    until("its start", async || Ok(sandbox.0.exists("note").await?)).await?;
    promptly("the destroy", sandbox.0.destroy()).await??;
    let settled = promptly("the program", running).await?;
    match settled.map_err(|error| Failure::Broken(error.to_string()))? {
        Ok(result) => ensure!(!result.success(), "it came to {result:?}"),
        Err(error) => ensure!(is_gone(&error), "it failed with {}: {error}", error.kind()),
    }
    Ok(())
}
