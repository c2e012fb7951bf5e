//! Deadlines: exact, never early, with the output so far; 124 and its sentence only in the flat form.

use std::sync::Arc;

use super::Fixture;
use super::check::{
    Check, after_a_word_ms, cases, ensure, ensure_eq, output, promptly, sh, slowness, with_spec,
};
use super::tree::cleared;
use crate::exec::{ExecEvent, ExecOptions, ExecResult, Outcome};
use crate::sandbox::Sandbox;

cases! {
    a_deadline_ends_a_command_with_its_output_so_far(workspace) needs [Shell];
    a_deadline_is_never_early(workspace) needs [Shell];
    a_deadline_flattens_to_124_and_adds_its_sentence_only_there(workspace) needs [Shell];
    a_deadline_of_zero_runs_nothing(workspace) needs [Shell];
    a_deadline_of_one_millisecond_is_exact(workspace) needs [Shell];
    a_deadline_of_2_to_the_53_is_none(workspace) needs [Shell];
    a_deadline_in_a_flood_is_kept(workspace) needs [Shell];
    a_command_that_catches_every_signal_is_timed_out_all_the_same(workspace) needs [Shell];
    a_command_that_ends_in_time_is_not_timed_out(workspace) needs [Shell];
    a_command_that_exits_with_124_is_not_timed_out(workspace) needs [Shell];
    the_specs_deadline_holds_unless_the_call_names_one(fixture) needs [Shell];
    a_streamed_command_is_timed_out_even_if_nobody_reads(workspace) needs [Shell, KillTree];
}

async fn timed(sandbox: &Sandbox, line: &str, timeout_ms: u64) -> Check<ExecResult> {
    let options = ExecOptions { timeout_ms: Some(timeout_ms), ..ExecOptions::default() };
    Ok(promptly("a deadline", sandbox.exec(line, options)).await??)
}

async fn a_deadline_ends_a_command_with_its_output_so_far(sandbox: Sandbox) -> Check {
    let deadline = after_a_word_ms();
    let result = timed(&sandbox, "echo out; echo err >&2; sleep 86400", deadline).await?;
    ensure_eq!(result.outcome, Outcome::TimedOut);
    ensure_eq!((&result.stdout[..], &result.stderr[..]), (&b"out\n"[..], &b"err\n"[..]));
    ensure_eq!(result.timeout_ms, Some(deadline));
    ensure!(!result.may_still_be_running, "the kill was not confirmed");
    ensure_eq!(output(&sandbox, "echo next").await?, "next");
    Ok(())
}

async fn a_deadline_is_never_early(sandbox: Sandbox) -> Check {
    for timeout_ms in [1, 7, 50, 150] {
        let result = timed(&sandbox, "sleep 86400", timeout_ms).await?;
        ensure_eq!(result.outcome, Outcome::TimedOut);
        ensure!(
            result.duration_ms >= timeout_ms,
            "{timeout_ms} ms were over after {} ms",
            result.duration_ms
        );
    }
    Ok(())
}

async fn a_deadline_flattens_to_124_and_adds_its_sentence_only_there(sandbox: Sandbox) -> Check {
    let deadline = after_a_word_ms();
    let result = timed(&sandbox, "printf half >&2; sleep 86400", deadline).await?;
    let flat = result.flatten();
    ensure_eq!((flat.exit_code, flat.timed_out, flat.aborted), (124, true, false));
    let sentence = flat.stderr.strip_prefix("half\n").unwrap_or_default();
    ensure!(sentence.contains(&deadline.to_string()), "stderr is {:?}", flat.stderr);
    ensure_eq!(&result.stderr[..], b"half");
    Ok(())
}

async fn a_deadline_of_zero_runs_nothing(sandbox: Sandbox) -> Check {
    let result = timed(&sandbox, "touch made", 0).await?;
    ensure_eq!((result.outcome, result.timeout_ms), (Outcome::TimedOut, Some(0)));
    ensure!(!sandbox.exists("made").await?, "the command ran");
    Ok(())
}

async fn a_deadline_of_one_millisecond_is_exact(sandbox: Sandbox) -> Check {
    for _ in 0..20 {
        let result = timed(&sandbox, "sleep 86403", 1).await?;
        ensure_eq!(result.outcome, Outcome::TimedOut);
        ensure!(!result.may_still_be_running, "the kill was not confirmed");
    }
    if sandbox.capabilities().has(crate::Capability::KillTree) {
        cleared(&sandbox, "86403").await
    } else {
        Ok(())
    }
}

async fn a_deadline_of_2_to_the_53_is_none(sandbox: Sandbox) -> Check {
    for timeout_ms in [1 << 53, u64::MAX] {
        let result = timed(&sandbox, "echo fine", timeout_ms).await?;
        ensure_eq!((result.outcome, &result.stdout[..]), (Outcome::Exited(0), &b"fine\n"[..]));
    }
    Ok(())
}

async fn a_deadline_in_a_flood_is_kept(sandbox: Sandbox) -> Check {
    let result = timed(&sandbox, "yes & yes >&2", 300 * u64::from(slowness())).await?;
    ensure_eq!(result.outcome, Outcome::TimedOut);
    ensure!(result.stdout_bytes > 0 && result.stderr_bytes > 0, "nothing of the flood arrived");
    Ok(())
}

async fn a_command_that_catches_every_signal_is_timed_out_all_the_same(sandbox: Sandbox) -> Check {
    let line = "trap 'exit 5' TERM INT HUP; trap '' PIPE; while :; do sleep 0.05; done";
    ensure_eq!(timed(&sandbox, line, 300).await?.outcome, Outcome::TimedOut);
    Ok(())
}

async fn a_command_that_ends_in_time_is_not_timed_out(sandbox: Sandbox) -> Check {
    let result = timed(&sandbox, "echo done; exit 6", 60_000).await?;
    ensure_eq!((result.outcome, result.timeout_ms), (Outcome::Exited(6), Some(60_000)));
    Ok(())
}

async fn a_command_that_exits_with_124_is_not_timed_out(sandbox: Sandbox) -> Check {
    let flat = timed(&sandbox, "exit 124", 60_000).await?.flatten();
    ensure_eq!((flat.exit_code, flat.timed_out, flat.stderr.as_str()), (124, false, ""));
    Ok(())
}

async fn the_specs_deadline_holds_unless_the_call_names_one(fixture: Arc<dyn Fixture>) -> Check {
    let mut spec = fixture.spec();
    spec.limits.timeout_ms = Some(200);
    with_spec(&*fixture, spec, async |sandbox: Sandbox| {
        let result = promptly("the spec's deadline", sh(&sandbox, "sleep 86400")).await??;
        ensure_eq!((result.outcome, result.timeout_ms), (Outcome::TimedOut, Some(200)));
        ensure_eq!(timed(&sandbox, "sleep 0.5", 20_000).await?.outcome, Outcome::Exited(0));
        Ok(())
    })
    .await
}

async fn a_streamed_command_is_timed_out_even_if_nobody_reads(sandbox: Sandbox) -> Check {
    let options = ExecOptions { timeout_ms: Some(300), ..ExecOptions::default() };
    let mut stream = sandbox.exec_stream("sleep 86404 & yes", options).await?;
    cleared(&sandbox, "86404").await?;
    let end = loop {
        match promptly("the end", stream.next()).await? {
            Some(Ok(ExecEvent::End(result))) => break result,
            Some(Ok(_)) => {}
            other => ensure!(false, "{other:?} came instead of the end"),
        }
    };
    ensure_eq!(end.outcome, Outcome::TimedOut);
    Ok(())
}
