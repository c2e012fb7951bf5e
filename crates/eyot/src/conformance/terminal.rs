//! Commands on a terminal: it is one, it has a size, keys that interrupt, and line ends as terminals have them.

use bytes::Bytes;

use super::check::{Check, Failure, after_a_word_ms, cases, ensure, ensure_eq, need_program, promptly};
use super::stdin::fed;
use super::tree::cleared;
use crate::exec::{ExecEvent, ExecOptions, ExecResult, ExecStream, Outcome, PtySize, Stdin};
use crate::sandbox::Sandbox;

cases! {
    a_command_on_a_terminal_sees_one_on_all_three_streams(workspace) needs [Shell, Pty];
    a_command_without_a_terminal_sees_none(workspace) needs [Shell];
    a_terminals_line_ends_are_carriage_return_and_line_feed(workspace) needs [Shell, Pty];
    both_streams_of_a_terminal_are_standard_output(workspace) needs [Shell, Pty];
    a_terminal_has_the_size_that_was_asked_for(workspace) needs [Shell, Pty];
    a_resize_is_seen_by_the_command(workspace) needs [Shell, Pty];
    the_interrupt_key_ends_the_command_by_sigint(workspace) needs [Shell, Pty];
    the_interrupt_key_reaches_the_foreground_and_not_the_shell(workspace) needs [Shell, Pty];
    the_end_of_file_key_ends_the_input(workspace) needs [Shell, Pty];
    a_terminal_without_input_reads_the_end_at_once(workspace) needs [Shell, Pty];
    bytes_for_a_terminal_are_typed_and_then_end(workspace) needs [Shell, Pty];
    what_is_typed_is_echoed_and_read_by_lines(workspace) needs [Shell, Pty];
    a_deadline_ends_a_command_on_a_terminal(workspace) needs [Shell, Pty, KillTree];
    a_signal_reaches_a_terminals_foreground(workspace) needs [Shell, Pty, Signals];
    a_terminal_that_something_holds_open_delays_nothing(workspace) needs [Shell, Pty];
}

fn terminal(rows: u16, cols: u16) -> ExecOptions {
    ExecOptions { pty: Some(PtySize { rows, cols }), ..ExecOptions::default() }
}

async fn on_a_terminal(sandbox: &Sandbox, line: &str) -> Check<ExecResult> {
    Ok(promptly("a command on a terminal", sandbox.exec(line, terminal(24, 80))).await??)
}

/// A command on a terminal and the keyboard in front of it.
async fn typed(
    sandbox: &Sandbox,
    line: &str,
) -> Check<(tokio::sync::mpsc::UnboundedSender<Bytes>, ExecStream)> {
    let (keys, input) = fed();
    let options = ExecOptions { stdin: Stdin::Stream(input), ..terminal(24, 80) };
    Ok((keys, sandbox.exec_stream(line, options).await?))
}

fn press(keys: &tokio::sync::mpsc::UnboundedSender<Bytes>, what: &'static str) -> Check {
    keys.send(Bytes::from(what)).map_err(|_| Failure::Broken("nobody reads the keyboard".to_owned()))
}

/// Reads the screen until it shows `text`.
async fn shows(stream: &mut ExecStream, text: &str) -> Check {
    let mut screen = Vec::new();
    while !String::from_utf8_lossy(&screen).contains(text) {
        match promptly(&format!("`{text}` on the screen"), stream.next()).await? {
            Some(Ok(ExecEvent::Stdout(bytes))) => screen.extend_from_slice(&bytes),
            other => ensure!(false, "{other:?} came instead of `{text}`"),
        }
    }
    Ok(())
}

async fn end(mut stream: ExecStream) -> Check<ExecResult> {
    while let Some(event) = promptly("the end", stream.next()).await? {
        if let ExecEvent::End(result) = event? {
            return Ok(result);
        }
    }
    Err(Failure::Broken("the stream stopped without an end".to_owned()))
}

async fn a_command_on_a_terminal_sees_one_on_all_three_streams(sandbox: Sandbox) -> Check {
    let line = "test -t 0 && test -t 1 && test -t 2 && echo terminal $TERM > found";
    ensure_eq!(on_a_terminal(&sandbox, line).await?.outcome, Outcome::Exited(0));
    let found = sandbox.read_text("found").await?;
    ensure!(found.len() > "terminal \n".len(), "TERM is not set");
    Ok(())
}

async fn a_command_without_a_terminal_sees_none(sandbox: Sandbox) -> Check {
    let line = "test -t 0 || test -t 1 || test -t 2 || echo none";
    ensure_eq!(super::check::output(&sandbox, line).await?, "none");
    Ok(())
}

async fn a_terminals_line_ends_are_carriage_return_and_line_feed(sandbox: Sandbox) -> Check {
    ensure_eq!(on_a_terminal(&sandbox, "echo one; echo two").await?.stdout_text(), "one\r\ntwo\r\n");
    Ok(())
}

async fn both_streams_of_a_terminal_are_standard_output(sandbox: Sandbox) -> Check {
    let result = on_a_terminal(&sandbox, "echo one; echo two >&2; exit 3").await?;
    ensure_eq!((result.outcome, result.stderr_bytes), (Outcome::Exited(3), 0));
    ensure_eq!(result.stdout_text(), "one\r\ntwo\r\n");
    Ok(())
}

async fn a_terminal_has_the_size_that_was_asked_for(sandbox: Sandbox) -> Check {
    need_program(&sandbox, "stty").await?;
    let result = promptly("stty", sandbox.exec("stty size", terminal(40, 132))).await??;
    ensure_eq!(result.stdout_text(), "40 132\r\n");
    Ok(())
}

async fn a_resize_is_seen_by_the_command(sandbox: Sandbox) -> Check {
    need_program(&sandbox, "stty").await?;
    let line = "trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.02; done";
    let mut stream = sandbox.exec_stream(line, terminal(24, 80)).await?;
    shows(&mut stream, "ready").await?;
    stream.resize(PtySize { rows: 50, cols: 120 }).await?;
    let screen = end(stream).await?.stdout_text();
    ensure!(screen.ends_with("50 120\r\n"), "the screen shows {screen:?}");
    Ok(())
}

async fn the_interrupt_key_ends_the_command_by_sigint(sandbox: Sandbox) -> Check {
    let (keys, mut stream) = typed(&sandbox, "echo ready; exec sleep 86440").await?;
    shows(&mut stream, "ready").await?;
    press(&keys, "\u{3}")?;
    ensure_eq!(end(stream).await?.outcome, Outcome::Signaled(2));
    Ok(())
}

async fn the_interrupt_key_reaches_the_foreground_and_not_the_shell(sandbox: Sandbox) -> Check {
    // The child speaks: when it does, the shell waits for it.
    let line = "trap 'echo interrupted' INT; sh -c 'echo ready; exec sleep 86441'; echo over";
    let (keys, mut stream) = typed(&sandbox, line).await?;
    shows(&mut stream, "ready").await?;
    press(&keys, "\u{3}")?;
    let result = end(stream).await?;
    ensure_eq!(result.outcome, Outcome::Exited(0));
    ensure!(
        result.stdout_text().contains("interrupted\r\nover"),
        "the screen shows {:?}",
        result.stdout_text()
    );
    Ok(())
}

async fn the_end_of_file_key_ends_the_input(sandbox: Sandbox) -> Check {
    let (keys, mut stream) = typed(&sandbox, "echo ready; cat; echo over").await?;
    shows(&mut stream, "ready").await?;
    press(&keys, "\u{4}")?;
    let result = end(stream).await?;
    ensure!(result.stdout_text().ends_with("over\r\n"), "the screen shows {:?}", result.stdout_text());
    Ok(())
}

async fn a_terminal_without_input_reads_the_end_at_once(sandbox: Sandbox) -> Check {
    let screen = on_a_terminal(&sandbox, "cat; echo over").await?.stdout_text();
    ensure!(screen.ends_with("over\r\n"), "the screen shows {screen:?}");
    Ok(())
}

async fn bytes_for_a_terminal_are_typed_and_then_end(sandbox: Sandbox) -> Check {
    let options = ExecOptions { stdin: Stdin::Bytes(Bytes::from("one\ntwo\n")), ..terminal(24, 80) };
    let result = promptly("cat", sandbox.exec("stty -echo; cat | rev; echo over", options)).await??;
    ensure!(result.stdout_text().contains("eno\r\nowt\r\n"), "the screen shows {:?}", result.stdout_text());
    Ok(())
}

async fn what_is_typed_is_echoed_and_read_by_lines(sandbox: Sandbox) -> Check {
    let (keys, mut stream) = typed(&sandbox, "echo ready; read -r word; echo \"<$word>\"").await?;
    shows(&mut stream, "ready").await?;
    press(&keys, "hellp\u{7f}o\r")?;
    let screen = end(stream).await?.stdout_text();
    ensure!(screen.contains("hellp") && screen.ends_with("<hello>\r\n"), "the screen shows {screen:?}");
    Ok(())
}

async fn a_deadline_ends_a_command_on_a_terminal(sandbox: Sandbox) -> Check {
    let options = ExecOptions { timeout_ms: Some(after_a_word_ms()), ..terminal(24, 80) };
    let line = "trap '' INT TERM HUP; echo out; setsid sleep 86442 & sleep 86442; sleep 86442";
    let result = promptly("the deadline", sandbox.exec(line, options)).await??;
    ensure_eq!((result.outcome, result.stdout_text().as_str()), (Outcome::TimedOut, "out\r\n"));
    cleared(&sandbox, "86442").await
}

async fn a_signal_reaches_a_terminals_foreground(sandbox: Sandbox) -> Check {
    let mut stream = sandbox.exec_stream("echo ready; exec sleep 86443", terminal(24, 80)).await?;
    shows(&mut stream, "ready").await?;
    stream.signal(crate::Signal::TERM).await?;
    ensure_eq!(end(stream).await?.outcome, Outcome::Signaled(15));
    Ok(())
}

async fn a_terminal_that_something_holds_open_delays_nothing(sandbox: Sandbox) -> Check {
    let result = on_a_terminal(&sandbox, "trap '' HUP; sleep 86444 & echo now").await?;
    ensure_eq!((result.stdout_text().as_str(), result.output_open), ("now\r\n", true));
    let result = on_a_terminal(&sandbox, "echo now").await?;
    ensure_eq!((result.stdout_text().as_str(), result.output_open), ("now\r\n", false));
    Ok(())
}
