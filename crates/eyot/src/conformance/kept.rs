//! Kept commands: they outlive clients and handles with their output, wait for a reader, and end when nobody comes back.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;

use super::Fixture;
use super::check::{
    Check, Disposable, Failure, after_a_word_ms, cases, ensure, ensure_eq, ensure_fails, need_program,
    output, promptly, sh,
};
use super::tree::cleared;
use crate::driver::KeptAttachment;
use crate::exec::{ExecResult, Outcome, PtySize, Signal};
use crate::kept::{KeepOptions, KeptControl, KeptEvent, KeptInfo, KeptPiece};
use crate::process::LogStream;
use crate::sandbox::Sandbox;

cases! {
    a_kept_command_tells_what_it_writes_in_numbered_pieces_and_its_end(workspace) needs [Shell, Processes];
    a_client_that_comes_back_reads_on_where_it_stopped(workspace) needs [Shell, Processes];
    a_kept_command_survives_the_handle_that_began_it(fixture) needs [Shell, Processes];
    of_two_clients_the_last_one_reads(workspace) needs [Shell, Processes];
    a_kept_command_waits_for_its_reader_and_loses_nothing(workspace) needs [Shell, Processes];
    output_that_is_not_kept_any_more_is_a_conflict(workspace) needs [Shell, Processes];
    a_kept_command_gets_its_whole_input(workspace) needs [Shell, Processes];
    a_kept_command_that_nobody_reads_is_killed(workspace) needs [Shell, Processes, KillTree];
    the_deadline_of_a_kept_command_needs_no_client(workspace) needs [Shell, Processes, KillTree];
    a_kept_command_is_killed_on_demand_and_its_end_is_told(workspace) needs [Shell, Processes, KillTree];
    a_kept_command_that_cannot_be_started_is_refused(workspace) needs [Argv, Processes];
    a_command_that_is_not_kept_is_not_found(workspace) needs [Processes];
    a_kept_terminal_is_found_again_as_it_was(workspace) needs [Shell, Processes, Pty];
    a_kept_terminal_goes_on_while_nobody_looks_and_keeps_the_last_of_it(workspace) needs [Shell, Processes, Pty];
    a_kept_terminal_is_signalled_and_has_a_size(workspace) needs [Shell, Processes, Pty, Signals];
    kept_terminals_are_listed_until_they_are_forgotten(sandbox) needs [Shell, Processes, Pty];
}

const LINGER_MS: u64 = 600_000;

fn options() -> KeepOptions {
    KeepOptions { linger_ms: LINGER_MS, ..KeepOptions::default() }
}

fn on_a_terminal() -> KeepOptions {
    KeepOptions { pty: Some(PtySize { rows: 24, cols: 80 }), ..options() }
}

/// Goes no further where a provider keeps no commands.
async fn need_kept(sandbox: &Sandbox) -> Check {
    match sandbox.kept_commands().await {
        Err(error) if error.is_unsupported_operation() => {
            Err(Failure::NotHere("the provider keeps no commands".to_owned()))
        }
        known => Ok(known.map(drop)?),
    }
}

async fn keep(sandbox: &Sandbox, line: &str, options: KeepOptions) -> Check<KeptAttachment> {
    need_kept(sandbox).await?;
    Ok(promptly("the start of a kept command", sandbox.keep(line, options)).await??)
}

async fn attach(sandbox: &Sandbox, id: &str, from: Option<u64>) -> Check<KeptAttachment> {
    Ok(promptly("an attachment", sandbox.attach(id, from)).await??)
}

async fn next(kept: &mut KeptAttachment) -> Check<Option<KeptEvent>> {
    Ok(promptly("an event of a kept command", kept.events.next()).await?.transpose()?)
}

async fn piece(kept: &mut KeptAttachment) -> Check<KeptPiece> {
    match next(kept).await? {
        Some(KeptEvent::Output(piece)) => Ok(piece),
        other => Err(Failure::Broken(format!("{other:?} came where output was due"))),
    }
}

/// Reads to the end: the output of both streams, and the result.
async fn rest(kept: &mut KeptAttachment) -> Check<(Vec<KeptPiece>, ExecResult)> {
    let mut pieces = Vec::new();
    loop {
        match next(kept).await? {
            Some(KeptEvent::Output(piece)) => pieces.push(piece),
            Some(KeptEvent::End(result)) => return Ok((pieces, *result)),
            None => return Err(Failure::Broken(format!("no end came after {} pieces", pieces.len()))),
        }
    }
}

fn text(pieces: &[KeptPiece], stream: LogStream) -> String {
    let of_it = pieces.iter().filter(|piece| piece.stream == stream);
    of_it.map(|piece| String::from_utf8_lossy(&piece.data).into_owned()).collect()
}

async fn a_kept_command_tells_what_it_writes_in_numbered_pieces_and_its_end(sandbox: Sandbox) -> Check {
    let mut kept = keep(&sandbox, "echo one; echo two >&2; exit 3", options()).await?;
    let (pieces, result) = rest(&mut kept).await?;
    ensure_eq!(text(&pieces, LogStream::Stdout), "one\n");
    ensure_eq!(text(&pieces, LogStream::Stderr), "two\n");
    let numbers: Vec<(u64, u64)> = pieces.iter().map(|piece| (piece.start, piece.end)).collect();
    ensure_eq!(numbers, [(1, 2), (2, 3)]);
    ensure_eq!((result.outcome, result.stdout_bytes, result.stderr_bytes), (Outcome::Exited(3), 4, 4));
    ensure_eq!(next(&mut kept).await?, None);
    Ok(())
}

async fn a_client_that_comes_back_reads_on_where_it_stopped(sandbox: Sandbox) -> Check {
    let line = "echo first; until [ -e go ]; do sleep 0.02; done; echo second; touch done; exit 4";
    let mut kept = keep(&sandbox, line, options()).await?;
    let first = piece(&mut kept).await?;
    let id = kept.info.id.clone();
    drop(kept);
    sh(&sandbox, "touch go; until [ -e done ]; do sleep 0.02; done").await?;
    let mut again = attach(&sandbox, &id, Some(first.end)).await?;
    let (pieces, result) = rest(&mut again).await?;
    ensure_eq!(text(&pieces, LogStream::Stdout), "second\n");
    ensure_eq!(result.outcome, Outcome::Exited(4));
    // All of it is there once more, and so is the end alone.
    let (pieces, _) = rest(&mut attach(&sandbox, &id, Some(1)).await?).await?;
    ensure_eq!(text(&pieces, LogStream::Stdout), "first\nsecond\n");
    let (pieces, _) = rest(&mut attach(&sandbox, &id, Some(3)).await?).await?;
    ensure!(pieces.is_empty(), "{pieces:?} came after the end");
    Ok(())
}

async fn a_kept_command_survives_the_handle_that_began_it(fixture: Arc<dyn Fixture>) -> Check {
    let provider = fixture.provider();
    let first = Sandbox::create(&*provider, fixture.spec()).await?;
    let second = Disposable(Sandbox::open(&*provider, first.id().as_str()).await?);
    let line = "echo first; until [ -e go ]; do sleep 0.02; done; echo second";
    let mut kept = keep(&first, line, options()).await?;
    ensure_eq!(piece(&mut kept).await?.start, 1);
    let id = kept.info.id.clone();
    drop((kept, first));
    let mut again = attach(&second.0, &id, Some(2)).await?;
    second.0.write("go", "").await?;
    let (pieces, result) = rest(&mut again).await?;
    ensure_eq!((text(&pieces, LogStream::Stdout).as_str(), result.outcome), ("second\n", Outcome::Exited(0)));
    Ok(second.0.destroy().await?)
}

async fn of_two_clients_the_last_one_reads(sandbox: Sandbox) -> Check {
    let mut first =
        keep(&sandbox, "echo on; until [ -e go ]; do sleep 0.02; done; echo off", options()).await?;
    ensure_eq!(piece(&mut first).await?.start, 1);
    let mut second = attach(&sandbox, &first.info.id, Some(2)).await?;
    ensure_eq!(next(&mut first).await?, None);
    sandbox.write("go", "").await?;
    let (pieces, _) = rest(&mut second).await?;
    ensure_eq!(text(&pieces, LogStream::Stdout), "off\n");
    Ok(())
}

async fn a_kept_command_waits_for_its_reader_and_loses_nothing(sandbox: Sandbox) -> Check {
    const BYTES: u64 = 6 << 20;
    let line = format!("echo on; head -c {BYTES} /dev/zero; touch written");
    let mut kept = keep(&sandbox, &line, options()).await?;
    let first = piece(&mut kept).await?;
    ensure_eq!(first.start, 1);
    let id = kept.info.id.clone();
    drop(kept);
    let mut again = attach(&sandbox, &id, Some(2)).await?;
    ensure!(!sandbox.exists("written").await?, "nobody has read it, and it is all written");
    let (pieces, result) = rest(&mut again).await?;
    // On a busy machine the first piece has more than the line.
    let read: usize = pieces.iter().chain([&first]).map(|piece| piece.data.len()).sum();
    ensure_eq!((read as u64, result.stdout_bytes), (BYTES + 3, BYTES + 3));
    let numbers: Vec<u64> = pieces.iter().map(|piece| piece.start).collect();
    ensure!(numbers.iter().copied().eq(2..2 + numbers.len() as u64), "the numbers are {numbers:?}");
    Ok(())
}

async fn output_that_is_not_kept_any_more_is_a_conflict(sandbox: Sandbox) -> Check {
    let mut kept = keep(&sandbox, "head -c 4000000 /dev/zero", options()).await?;
    let (pieces, _) = rest(&mut kept).await?;
    let Some(last) = pieces.last() else { return Err(Failure::Broken("nothing was written".to_owned())) };
    let id = &kept.info.id;
    ensure_fails!(sandbox.attach(id, Some(1)).await, Conflict);
    ensure_fails!(sandbox.attach(id, Some(last.end + 2)).await, Invalid);
    let again = rest(&mut attach(&sandbox, id, Some(last.start)).await?).await?;
    ensure_eq!(again.0.as_slice(), std::slice::from_ref(last));
    Ok(())
}

async fn a_kept_command_gets_its_whole_input(sandbox: Sandbox) -> Check {
    need_program(&sandbox, "wc").await?;
    for bytes in [0, 3, 1 << 20] {
        let options = KeepOptions { stdin: Bytes::from(vec![b'x'; bytes]), ..options() };
        let (pieces, _) = rest(&mut keep(&sandbox, "wc -c", options).await?).await?;
        ensure_eq!(text(&pieces, LogStream::Stdout).trim(), bytes.to_string());
    }
    Ok(())
}

async fn a_kept_command_that_nobody_reads_is_killed(sandbox: Sandbox) -> Check {
    let kept = KeepOptions { linger_ms: 0, ..options() };
    let mut kept = keep(&sandbox, "echo on; setsid sleep 86471 & sleep 86471", kept).await?;
    ensure_eq!(piece(&mut kept).await?.start, 1);
    let id = kept.info.id.clone();
    drop(kept);
    cleared(&sandbox, "86471").await?;
    ensure_fails!(sandbox.attach(&id, Some(2)).await, NotFound);
    Ok(())
}

async fn the_deadline_of_a_kept_command_needs_no_client(sandbox: Sandbox) -> Check {
    let options = KeepOptions { timeout_ms: Some(after_a_word_ms()), ..options() };
    let kept = keep(&sandbox, "echo out; setsid sleep 86472 & sleep 86472", options).await?;
    let id = kept.info.id.clone();
    drop(kept);
    let ended = promptly("the deadline", sandbox.kept_end(&id)).await??;
    ensure_eq!(ended.result.map(|result| result.outcome), Some(Outcome::TimedOut));
    cleared(&sandbox, "86472").await?;
    let (pieces, result) = rest(&mut attach(&sandbox, &id, Some(1)).await?).await?;
    ensure_eq!(text(&pieces, LogStream::Stdout), "out\n");
    ensure_eq!((result.outcome, result.may_still_be_running), (Outcome::TimedOut, false));
    Ok(())
}

async fn a_kept_command_is_killed_on_demand_and_its_end_is_told(sandbox: Sandbox) -> Check {
    // It waits for its reader, who does not come.
    let mut kept = keep(&sandbox, "echo on; sleep 86473 & yes", options()).await?;
    ensure_eq!(piece(&mut kept).await?.start, 1);
    let id = kept.info.id.clone();
    drop(kept);
    promptly("a kill", sandbox.control_kept(&id, KeptControl::Kill)).await??;
    let ended = promptly("the end", sandbox.kept_end(&id)).await??;
    ensure_eq!(ended.result.map(|result| result.outcome), Some(Outcome::Cancelled));
    cleared(&sandbox, "86473").await?;
    let (_, result) = rest(&mut attach(&sandbox, &id, Some(2)).await?).await?;
    ensure_eq!(result.outcome, Outcome::Cancelled);
    sandbox.control_kept(&id, KeptControl::Kill).await?;
    sandbox.control_kept(&id, KeptControl::Forget).await?;
    ensure_fails!(sandbox.attach(&id, None).await, NotFound);
    Ok(())
}

async fn a_kept_command_that_cannot_be_started_is_refused(sandbox: Sandbox) -> Check {
    need_kept(&sandbox).await?;
    let missing = crate::exec::Command::argv(["no-such-program-at-all"]);
    ensure_fails!(sandbox.keep(missing, options()).await, NotFound);
    let nowhere = KeepOptions { cwd: Some("missing".to_owned()), ..options() };
    ensure_fails!(sandbox.keep(crate::exec::Command::argv(["true"]), nowhere).await, NotFound);
    Ok(())
}

async fn a_command_that_is_not_kept_is_not_found(sandbox: Sandbox) -> Check {
    need_kept(&sandbox).await?;
    for id in ["ex_0", "tm_0"] {
        ensure_fails!(sandbox.attach(id, None).await, NotFound);
        ensure_fails!(sandbox.control_kept(id, KeptControl::Kill).await, NotFound);
        ensure_fails!(sandbox.kept_end(id).await, NotFound);
    }
    Ok(())
}

async fn press(kept: &mut KeptAttachment, keys: &'static str) -> Check {
    match &mut kept.input {
        Some(input) => Ok(promptly("keys", input.write(Bytes::from(keys))).await??),
        None => Err(Failure::Broken("the terminal has no keyboard".to_owned())),
    }
}

/// Reads the screen until it shows `text`, and returns it.
async fn shows(kept: &mut KeptAttachment, text: &str) -> Check<String> {
    let mut screen = String::new();
    while !screen.contains(text) {
        screen.push_str(&String::from_utf8_lossy(&piece(kept).await?.data));
    }
    Ok(screen)
}

async fn a_kept_terminal_is_found_again_as_it_was(sandbox: Sandbox) -> Check {
    let line = "stty -echo; echo ready; read one; echo \"<$one>\"; read two; echo \"<$one-$two>\"; exit 5";
    let mut kept = keep(&sandbox, line, on_a_terminal()).await?;
    shows(&mut kept, "ready").await?;
    press(&mut kept, "a\r").await?;
    shows(&mut kept, "<a>").await?;
    let id = kept.info.id.clone();
    drop(kept);
    let mut again = attach(&sandbox, &id, None).await?;
    let screen = shows(&mut again, "<a>").await?;
    ensure!(screen.contains("ready"), "the screen shows {screen:?}");
    press(&mut again, "b\r").await?;
    let (pieces, result) = rest(&mut again).await?;
    let screen = text(&pieces, LogStream::Stdout);
    ensure!(screen.contains("<a-b>"), "the screen shows {screen:?}");
    ensure_eq!((result.outcome, result.stderr_bytes), (Outcome::Exited(5), 0));
    Ok(())
}

async fn a_kept_terminal_goes_on_while_nobody_looks_and_keeps_the_last_of_it(sandbox: Sandbox) -> Check {
    let line = "echo ready; until [ -e go ]; do sleep 0.02; done; \
        head -c 1000000 /dev/zero | tr '\\0' x; echo over; touch written; read end";
    let mut kept = keep(&sandbox, line, on_a_terminal()).await?;
    shows(&mut kept, "ready").await?;
    let id = kept.info.id.clone();
    drop(kept);
    output(&sandbox, "touch go; until [ -e written ]; do sleep 0.02; done").await?;
    let mut again = attach(&sandbox, &id, None).await?;
    let screen = shows(&mut again, "over").await?;
    ensure!((250_000..300_000).contains(&screen.len()), "{} bytes are kept", screen.len());
    sandbox.control_kept(&id, KeptControl::Forget).await?;
    Ok(())
}

async fn a_kept_terminal_is_signalled_and_has_a_size(sandbox: Sandbox) -> Check {
    need_program(&sandbox, "stty").await?;
    let line = "trap 'stty size' WINCH; echo ready; while :; do sleep 0.02; done";
    let mut kept = keep(&sandbox, line, on_a_terminal()).await?;
    shows(&mut kept, "ready").await?;
    let id = kept.info.id.clone();
    sandbox.control_kept(&id, KeptControl::Resize(PtySize { rows: 50, cols: 120 })).await?;
    shows(&mut kept, "50 120").await?;
    ensure_fails!(sandbox.control_kept(&id, KeptControl::Signal(Signal(0))).await, Invalid);
    sandbox.control_kept(&id, KeptControl::Signal(Signal::KILL)).await?;
    let (_, result) = rest(&mut kept).await?;
    ensure_eq!(result.outcome, Outcome::Signaled(9));
    Ok(())
}

async fn kept_terminals_are_listed_until_they_are_forgotten(sandbox: Sandbox) -> Check {
    need_kept(&sandbox).await?;
    let terminals = async || -> Check<Vec<KeptInfo>> {
        let all = sandbox.kept_commands().await?;
        Ok(all.into_iter().filter(|kept| kept.is_terminal).collect())
    };
    ensure!(terminals().await?.is_empty(), "a new sandbox has terminals");
    let first = keep(&sandbox, "sleep 86474", on_a_terminal()).await?;
    let second = keep(&sandbox, "exit 2", on_a_terminal()).await?;
    promptly("the end", sandbox.kept_end(&second.info.id)).await??;
    let listed = terminals().await?;
    let ids: Vec<&str> = listed.iter().map(|kept| kept.id.as_str()).collect();
    ensure_eq!(ids, [&first.info.id, &second.info.id]);
    ensure_eq!((listed[0].command.as_str(), listed[0].is_attached), ("sleep 86474", true));
    let ended = listed[1].result.as_ref().map(|result| result.outcome);
    ensure_eq!(ended, Some(Outcome::Exited(2)));
    for id in [&first.info.id, &second.info.id] {
        sandbox.control_kept(id, KeptControl::Forget).await?;
    }
    ensure!(terminals().await?.is_empty(), "forgotten terminals are listed");
    cleared(&sandbox, "86474").await
}
