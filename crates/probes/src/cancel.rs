//! E3: cancelling before, during, and at the moment of completion.

use std::time::Duration;

use eyot::{CancellationToken, ExecEvent, ExecOptions, Outcome};

use crate::check::{Check, Failure, cases, ensure, ensure_eq, promptly, until};
use crate::world::Stage;

cases! {
    e03_what_was_cancelled_before_it_began_never_runs(stage);
    e03_a_cancel_during_output_keeps_what_there_was_and_kills_the_rest(stage);
    e03_a_cancel_about_the_moment_of_completion_is_one_or_the_other(stage);
    e03_a_dropped_call_kills_its_command(stage);
    e03_a_dropped_stream_kills_its_command(stage);
}

fn options(cancel: &CancellationToken) -> ExecOptions {
    ExecOptions { cancel: Some(cancel.clone()), ..ExecOptions::default() }
}

async fn is_running(stage: &Stage, number: u32) -> Check<bool> {
    let word = format!("sleep {number}");
    let listed = stage
        .output("for p in /proc/[0-9]*; do tr '\\0' ' ' < $p/cmdline; echo; done 2>/dev/null; true")
        .await?;
    Ok(listed.lines().any(|line| line.trim() == word))
}

async fn e03_what_was_cancelled_before_it_began_never_runs(stage: Stage) -> Check {
    let cancel = CancellationToken::new();
    cancel.cancel();
    let result = promptly("the call", stage.sandbox.exec("touch ran", options(&cancel))).await??;
    ensure_eq!(result.outcome, Outcome::Cancelled);
    ensure!(!stage.sandbox.exists("ran").await?, "it ran");
    Ok(())
}

async fn e03_a_cancel_during_output_keeps_what_there_was_and_kills_the_rest(stage: Stage) -> Check {
    let cancel = CancellationToken::new();
    let line = "echo begun; setsid sleep 5011 & yes";
    let mut events = stage.sandbox.exec_stream(line, options(&cancel)).await?;
    let result = loop {
        match promptly("an event", events.next()).await? {
            Some(Ok(ExecEvent::End(result))) => break result,
            Some(Ok(_)) => cancel.cancel(),
            Some(Err(error)) => return Err(error.into()),
            None => return Err(Failure::Broken("there was no end".to_owned())),
        }
    };
    ensure_eq!(result.outcome, Outcome::Cancelled);
    ensure!(result.stdout.starts_with(b"begun\n"), "what there was is lost");
    ensure!(!is_running(&stage, 5011).await?, "a part of it lives");
    Ok(())
}

async fn e03_a_cancel_about_the_moment_of_completion_is_one_or_the_other(stage: Stage) -> Check {
    for round in 0..40_u64 {
        let cancel = CancellationToken::new();
        let later = cancel.clone();
        let canceller = tokio::spawn(async move {
            tokio::time::sleep(Duration::from_micros(100 * round)).await;
            later.cancel();
        });
        let result = promptly("the call", stage.sandbox.exec("echo end", options(&cancel))).await??;
        match result.outcome {
            Outcome::Exited(0) => ensure_eq!(result.stdout_text(), "end\n"),
            Outcome::Cancelled => {}
            other => ensure!(false, "round {round}: {other:?}"),
        }
        canceller.await.map_err(std::io::Error::other)?;
    }
    stage.still_works().await
}

async fn e03_a_dropped_call_kills_its_command(stage: Stage) -> Check {
    let call = stage.sandbox.exec("echo x > begun; setsid sleep 5012 & sleep 5012", ExecOptions::default());
    let begun = until("the beginning", || async {
        Ok(stage.sandbox.exists("begun").await? && is_running(&stage, 5012).await?)
    });
    tokio::select! {
        ended = call => return Err(Failure::Broken(format!("it ended by itself: {ended:?}"))),
        begun = begun => begun?,
    }
    until("the kill", || async { Ok(!is_running(&stage, 5012).await?) }).await
}

async fn e03_a_dropped_stream_kills_its_command(stage: Stage) -> Check {
    let line = "setsid sleep 5013 & echo begun; sleep 5013";
    let mut events = stage.sandbox.exec_stream(line, ExecOptions::default()).await?;
    let first = promptly("the first event", events.next()).await?;
    ensure!(matches!(first, Some(Ok(ExecEvent::Stdout(_)))), "{first:?}");
    drop(events);
    until("the kill", || async { Ok(!is_running(&stage, 5013).await?) }).await
}
