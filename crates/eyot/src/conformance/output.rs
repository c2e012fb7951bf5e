//! A command's output: bytes untouched, streams apart, the beginning kept up to the cap and all of it counted; and the
//! same as events while the command runs.

use std::sync::Arc;
use std::time::Duration;

use super::Fixture;
use super::check::{
    Check, Failure, cases, ensure, ensure_eq, need_program, output, promptly, sh, slowness, until, with_spec,
};
use super::tree::{alive, cleared};
use crate::exec::{ExecEvent, ExecOptions, ExecResult, ExecStream, Outcome};
use crate::sandbox::Sandbox;

cases! {
    bytes_that_are_no_text_come_back_untouched(workspace) needs [Shell];
    a_last_line_without_its_end_stays_without_it(workspace) needs [Shell];
    output_in_one_byte_pieces_arrives_whole_and_in_order(workspace) needs [Shell];
    floods_on_both_streams_are_drained_and_counted(workspace) needs [Shell];
    output_of_exactly_the_cap_is_whole_and_one_byte_more_is_cut(workspace) needs [Shell];
    a_cap_of_zero_keeps_nothing_and_counts_everything(workspace) needs [Shell];
    without_a_cap_of_its_own_a_command_keeps_one_mebibyte(workspace) needs [Shell];
    the_specs_cap_holds_unless_the_call_names_one(fixture) needs [Shell];
    a_streams_events_are_every_byte_and_then_one_end_with_the_result(workspace) needs [Shell];
    a_stream_hands_out_output_while_the_command_runs(workspace) needs [Shell];
    a_stream_of_a_command_that_cannot_start_fails_at_once(workspace) needs [Shell];
    dropping_a_stream_kills_the_tree(workspace) needs [Shell, KillTree];
    dropping_the_future_of_a_command_kills_the_tree(workspace) needs [Shell, KillTree];
    a_stream_that_nobody_reads_holds_up_only_its_own_command(workspace) needs [Shell];
    the_duration_is_the_commands_own(workspace) needs [Shell];
    what_a_process_substitution_writes_is_output(workspace) needs [Shell];
    a_lot_of_output_through_a_process_substitution_is_whole(workspace) needs [Shell];
    a_plain_command_leaves_no_output_open(workspace) needs [Shell];
    a_quiet_background_child_delays_nothing_and_leaves_the_output_open(workspace) needs [Shell];
    a_background_child_that_never_stops_writing_is_cut_off(workspace) needs [Shell];
    a_killed_command_leaves_no_output_open(workspace) needs [Shell, KillTree];
}

fn capped(bytes: u64) -> ExecOptions {
    ExecOptions { max_output_bytes: Some(bytes), ..ExecOptions::default() }
}

/// Everything that a stream says: both outputs and the end.
async fn drained(mut stream: ExecStream) -> Check<(Vec<u8>, Vec<u8>, ExecResult)> {
    let (mut stdout, mut stderr, mut end) = (Vec::new(), Vec::new(), None);
    while let Some(event) = stream.next().await {
        ensure!(end.is_none(), "something came after the end: {event:?}");
        match event? {
            ExecEvent::Stdout(bytes) => stdout.extend_from_slice(&bytes),
            ExecEvent::Stderr(bytes) => stderr.extend_from_slice(&bytes),
            ExecEvent::End(result) => end = Some(result),
        }
    }
    let end = end.ok_or_else(|| Failure::Broken("the stream stopped without an end".to_owned()))?;
    Ok((stdout, stderr, end))
}

async fn bytes_that_are_no_text_come_back_untouched(sandbox: Sandbox) -> Check {
    let result = sh(&sandbox, r"printf '\377\000\200a\r\n\033'; printf '\000\376' >&2").await?;
    ensure_eq!(&result.stdout[..], b"\xff\0\x80a\r\n\x1b");
    ensure_eq!(&result.stderr[..], b"\0\xfe");
    ensure_eq!(result.stdout_text(), "\u{fffd}\0\u{fffd}a\r\n\u{1b}");
    Ok(())
}

async fn a_last_line_without_its_end_stays_without_it(sandbox: Sandbox) -> Check {
    let result = sh(&sandbox, "printf out; printf err >&2").await?;
    ensure_eq!((&result.stdout[..], &result.stderr[..]), (&b"out"[..], &b"err"[..]));
    let silent = sh(&sandbox, "true").await?;
    ensure_eq!((silent.stdout_bytes, silent.stderr_bytes), (0, 0));
    Ok(())
}

async fn output_in_one_byte_pieces_arrives_whole_and_in_order(sandbox: Sandbox) -> Check {
    let line = "i=0; while [ $i -lt 3000 ]; do printf $((i % 10)); i=$((i + 1)); done";
    let expected: String = (0..3000).map(|index| char::from(b'0' + (index % 10) as u8)).collect();
    ensure_eq!(sh(&sandbox, line).await?.stdout_text(), expected);
    Ok(())
}

async fn floods_on_both_streams_are_drained_and_counted(sandbox: Sandbox) -> Check {
    let line = "head -c 5000000 /dev/zero & head -c 4000000 /dev/zero >&2 & wait";
    let result = promptly("a flood", sandbox.exec(line, capped(1000))).await??;
    ensure_eq!((result.stdout_bytes, result.stderr_bytes), (5_000_000, 4_000_000));
    ensure_eq!((result.stdout.len(), result.stderr.len()), (1000, 1000));
    ensure!(result.stdout_truncated() && result.stderr_truncated(), "a cut was not reported");
    ensure_eq!(result.outcome, Outcome::Exited(0));
    Ok(())
}

async fn output_of_exactly_the_cap_is_whole_and_one_byte_more_is_cut(sandbox: Sandbox) -> Check {
    let result = sandbox.exec("printf 12345; printf 123456 >&2", capped(5)).await?;
    ensure_eq!((&result.stdout[..], result.stdout_truncated()), (&b"12345"[..], false));
    ensure_eq!((&result.stderr[..], result.stderr_truncated()), (&b"12345"[..], true));
    ensure_eq!(result.stderr_bytes, 6);
    Ok(())
}

async fn a_cap_of_zero_keeps_nothing_and_counts_everything(sandbox: Sandbox) -> Check {
    let result = sandbox.exec("printf 12345", capped(0)).await?;
    ensure_eq!((result.stdout.len(), result.stdout_bytes, result.stdout_truncated()), (0, 5, true));
    ensure!(!result.stderr_truncated(), "an empty stream was cut");
    Ok(())
}

async fn without_a_cap_of_its_own_a_command_keeps_one_mebibyte(sandbox: Sandbox) -> Check {
    let at_cap = sh(&sandbox, "head -c 1048576 /dev/zero").await?;
    ensure_eq!((at_cap.stdout.len(), at_cap.stdout_truncated()), (1 << 20, false));
    let beyond = sh(&sandbox, "head -c 1048577 /dev/zero").await?;
    ensure_eq!((beyond.stdout.len(), beyond.stdout_bytes), (1 << 20, (1 << 20) + 1));
    Ok(())
}

async fn the_specs_cap_holds_unless_the_call_names_one(fixture: Arc<dyn Fixture>) -> Check {
    let mut spec = fixture.spec();
    spec.limits.max_output_bytes = Some(3);
    with_spec(&*fixture, spec, async |sandbox: Sandbox| {
        ensure_eq!(sh(&sandbox, "printf 12345").await?.stdout_text(), "123");
        ensure_eq!(sandbox.exec("printf 12345", capped(4)).await?.stdout_text(), "1234");
        Ok(())
    })
    .await
}

async fn a_streams_events_are_every_byte_and_then_one_end_with_the_result(sandbox: Sandbox) -> Check {
    let line = "head -c 300000 /dev/zero; printf err >&2; exit 4";
    let (stdout, stderr, end) = drained(sandbox.exec_stream(line, capped(10)).await?).await?;
    ensure_eq!((stdout.len(), &stderr[..]), (300_000, &b"err"[..]));
    ensure_eq!((end.outcome, end.stdout.len(), end.stdout_bytes), (Outcome::Exited(4), 10, 300_000));
    Ok(())
}

async fn a_stream_hands_out_output_while_the_command_runs(sandbox: Sandbox) -> Check {
    let line = "printf ready; while [ ! -e go ]; do sleep 0.01; done; printf done";
    let mut stream = sandbox.exec_stream(line, ExecOptions::default()).await?;
    let first = promptly("the first output", stream.next()).await?;
    ensure!(
        matches!(&first, Some(Ok(ExecEvent::Stdout(bytes))) if &bytes[..] == b"ready"),
        "{first:?} came first"
    );
    sandbox.write("go", "").await?;
    let (rest, _, end) = promptly("the end", drained(stream)).await??;
    ensure_eq!(&rest[..], b"done");
    ensure_eq!(end.stdout_text(), "readydone");
    Ok(())
}

async fn a_stream_of_a_command_that_cannot_start_fails_at_once(sandbox: Sandbox) -> Check {
    let options = ExecOptions { cwd: Some("missing".to_owned()), ..ExecOptions::default() };
    let failed = sandbox.exec_stream("true", options).await.map(drop);
    super::check::ensure_fails!(failed, NotFound);
    Ok(())
}

async fn dropping_a_stream_kills_the_tree(sandbox: Sandbox) -> Check {
    let line = "setsid sleep 86401 & echo ready; sleep 86401";
    let mut stream = sandbox.exec_stream(line, ExecOptions::default()).await?;
    promptly("the first output", stream.next()).await?;
    until("the start of its child", async || Ok(alive(&sandbox, "86401").await? >= 2)).await?;
    drop(stream);
    cleared(&sandbox, "86401").await
}

async fn dropping_the_future_of_a_command_kills_the_tree(sandbox: Sandbox) -> Check {
    let line = "setsid sleep 86402 & touch started; sleep 86402";
    let run = sandbox.exec(line, ExecOptions::default());
    let started = until("its start", async || Ok(sandbox.exists("started").await?));
    tokio::select! {
        ended = run => ensure!(false, "it ended by itself: {ended:?}"),
        checked = started => checked?,
    }
    cleared(&sandbox, "86402").await
}

async fn a_stream_that_nobody_reads_holds_up_only_its_own_command(sandbox: Sandbox) -> Check {
    let flood = "head -c 20000000 /dev/zero; echo end >&2";
    let unread = sandbox.exec_stream(flood, capped(10)).await?;
    tokio::time::sleep(Duration::from_millis(100)).await;
    let other = promptly("another command", sandbox.exec("head -c 3000000 /dev/zero", capped(10))).await??;
    ensure_eq!(other.stdout_bytes, 3_000_000);
    sandbox.write("file", vec![7; 500_000]).await?;
    ensure_eq!(promptly("a read", sandbox.read("file")).await??.len(), 500_000);
    let (stdout, stderr, _) = promptly("the flood", drained(unread)).await??;
    ensure_eq!((stdout.len(), &stderr[..]), (20_000_000, &b"end\n"[..]));
    Ok(())
}

async fn the_duration_is_the_commands_own(sandbox: Sandbox) -> Check {
    let result = sh(&sandbox, "sleep 0.2").await?;
    ensure!((200..10_000).contains(&result.duration_ms), "0.2 s took {} ms", result.duration_ms);
    ensure_eq!(output(&sandbox, "echo next").await?, "next");
    Ok(())
}

async fn what_a_process_substitution_writes_is_output(sandbox: Sandbox) -> Check {
    need_program(&sandbox, "bash").await?;
    let lines = [
        "exec > >(tee log) 2>&1; echo one",
        "echo one | tee >(cat) >/dev/null",
        "exec 2> >(sed s/two/one/); echo two >&2",
    ];
    for line in lines {
        for round in 0..40 {
            let result = promptly("the result", sh(&sandbox, line)).await??;
            ensure!(result.stdout_text() == "one\n", "round {round} of `{line}` gave {result:?}");
        }
    }
    let stream = sandbox.exec_stream("exec > >(cat); echo one; exit 3", ExecOptions::default()).await?;
    let (stdout, _, end) = drained(stream).await?;
    ensure_eq!((&stdout[..], end.outcome, end.output_open), (&b"one\n"[..], Outcome::Exited(3), false));
    Ok(())
}

async fn a_lot_of_output_through_a_process_substitution_is_whole(sandbox: Sandbox) -> Check {
    need_program(&sandbox, "bash").await?;
    for _ in 0..5 {
        let result = promptly("the result", sh(&sandbox, "head -c 204800 /dev/zero > >(cat)")).await??;
        ensure_eq!((result.stdout.len(), result.stdout_bytes, result.output_open), (204_800, 204_800, false));
    }
    Ok(())
}

async fn a_plain_command_leaves_no_output_open(sandbox: Sandbox) -> Check {
    // The child has let go of the output when its shell ends.
    let elsewhere = "(exec >/dev/null 2>&1; touch there; sleep 86408) & until [ -e there ]; do :; done";
    for line in ["true", "echo a; echo b >&2", "exit 3", "kill -9 $$", elsewhere] {
        ensure!(!sh(&sandbox, line).await?.output_open, "`{line}` left its output open");
    }
    Ok(())
}

async fn a_quiet_background_child_delays_nothing_and_leaves_the_output_open(sandbox: Sandbox) -> Check {
    let line = "(until [ -e go ]; do sleep 0.05; done; echo late; echo late > said) & echo now";
    let result = promptly("the result", sh(&sandbox, line)).await??;
    ensure_eq!((result.stdout_text().as_str(), result.output_open), ("now\n", true));
    sandbox.write("go", "").await?;
    until("what it does after it wrote", async || Ok(sandbox.exists("said").await?)).await
}

async fn a_background_child_that_never_stops_writing_is_cut_off(sandbox: Sandbox) -> Check {
    let line = "(until [ -e enough ]; do echo more; done) & echo now";
    let result = promptly("the result", sh(&sandbox, line)).await??;
    ensure!(result.output_open, "the child was waited for");
    ensure!(result.stdout_text().lines().any(|line| line == "now"), "the command's own output is lost");
    ensure!(
        result.duration_ms < 5_000 * u64::from(slowness()),
        "it was listened to for {} ms",
        result.duration_ms
    );
    sandbox.write("enough", "").await?;
    Ok(())
}

async fn a_killed_command_leaves_no_output_open(sandbox: Sandbox) -> Check {
    let deadline = super::check::after_a_word_ms();
    let options = ExecOptions { timeout_ms: Some(deadline), ..ExecOptions::default() };
    let line = "(while :; do sleep 86406; done) & echo out; sleep 86406";
    let result = promptly("the deadline", sandbox.exec(line, options)).await??;
    ensure_eq!((result.outcome, result.output_open), (Outcome::TimedOut, false));
    ensure_eq!(result.stdout_text(), "out\n");
    Ok(())
}
