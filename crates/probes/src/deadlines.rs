//! E2: deadlines at their edges.

use eyot::{ExecOptions, ExecResult, Outcome};

use crate::check::{Check, cases, ensure, ensure_eq, promptly};
use crate::world::Stage;

cases! {
    e02_a_deadline_of_nothing_runs_nothing(stage);
    e02_a_deadline_of_one_millisecond_is_exact_and_leaves_nothing(stage);
    e02_the_longest_deadline_is_none(stage);
    e02_a_deadline_during_a_flood_and_a_silence_is_never_early(stage);
    e02_a_deadline_while_a_child_holds_the_pipes_kills_it(stage);
    e02_a_command_that_ends_about_its_deadline_has_one_of_two_outcomes(stage);
}

async fn exec(stage: &Stage, line: &str, timeout_ms: u64) -> Check<ExecResult> {
    let options = ExecOptions { timeout_ms: Some(timeout_ms), ..ExecOptions::default() };
    Ok(promptly(line, stage.sandbox.exec(line, options)).await??)
}

async fn e02_a_deadline_of_nothing_runs_nothing(stage: Stage) -> Check {
    let result = exec(&stage, "touch ran; sleep 100", 0).await?;
    ensure_eq!(result.outcome, Outcome::TimedOut);
    ensure_eq!(result.flatten().exit_code, 124);
    ensure!(!stage.sandbox.exists("ran").await?, "it ran");
    Ok(())
}

async fn ensure_nothing_runs(stage: &Stage, word: &str) -> Check {
    let running = stage
        .output(&format!(
            "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c '[{}]{}' || true",
            &word[..1],
            &word[1..]
        ))
        .await?;
    ensure_eq!(running, "0");
    Ok(())
}

async fn e02_a_deadline_of_one_millisecond_is_exact_and_leaves_nothing(stage: Stage) -> Check {
    for _ in 0..30 {
        let result = exec(&stage, "sleep 4711", 1).await?;
        ensure_eq!(result.outcome, Outcome::TimedOut);
        ensure!(!result.may_still_be_running, "the kill was not confirmed");
    }
    ensure_nothing_runs(&stage, "sleep 4711").await
}

async fn e02_the_longest_deadline_is_none(stage: Stage) -> Check {
    for timeout_ms in [1 << 53, u64::MAX] {
        let result = exec(&stage, "echo fine", timeout_ms).await?;
        ensure_eq!((result.outcome, result.stdout_text()), (Outcome::Exited(0), "fine\n".to_owned()));
    }
    Ok(())
}

async fn e02_a_deadline_during_a_flood_and_a_silence_is_never_early(stage: Stage) -> Check {
    for line in [
        "exec yes",
        "yes >&2",
        "exec sleep 4712",
        "echo some; trap '' TERM INT HUP; while :; do sleep 4712; done",
    ] {
        let result = exec(&stage, line, 300).await?;
        ensure_eq!(result.outcome, Outcome::TimedOut);
        ensure!(result.duration_ms >= 300, "{line}: {} ms is early", result.duration_ms);
        ensure!(!result.may_still_be_running, "{line}: the kill was not confirmed");
    }
    ensure_nothing_runs(&stage, "sleep 4712").await?;
    ensure_nothing_runs(&stage, "yes").await
}

async fn e02_a_deadline_while_a_child_holds_the_pipes_kills_it(stage: Stage) -> Check {
    // The shell waits for a child that ignores everything. Then the shell is gone, and only the
    // child holds the pipe.
    let result = exec(&stage, "(trap '' TERM; sleep 4713) & sleep 4713", 300).await?;
    ensure_eq!(result.outcome, Outcome::TimedOut);
    ensure_nothing_runs(&stage, "sleep 4713").await?;
    // The command itself ended in time; what holds its pipes is not waited for, and lives.
    let result = exec(&stage, "(exec sleep 4714) & exit 5", 10_000).await?;
    ensure_eq!(result.outcome, Outcome::Exited(5));
    ensure!(result.duration_ms < 9_000, "the child delayed the end: {} ms", result.duration_ms);
    Ok(())
}

async fn e02_a_command_that_ends_about_its_deadline_has_one_of_two_outcomes(stage: Stage) -> Check {
    for tenth in 0..40 {
        let line = format!("sleep 0.0{:02}; echo end", tenth % 20);
        let result = exec(&stage, &line, 10).await?;
        match result.outcome {
            Outcome::Exited(0) => ensure_eq!(result.stdout_text(), "end\n"),
            Outcome::TimedOut => ensure!(result.duration_ms >= 10, "{} ms is early", result.duration_ms),
            other => ensure!(false, "{line} ended with {other:?}"),
        }
    }
    stage.still_works().await
}
