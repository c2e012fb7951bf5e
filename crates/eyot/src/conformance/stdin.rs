//! A command's standard input: nothing, bytes or a stream; and that neither side waits for the
//! other for ever.

use bytes::Bytes;
use futures_util::{StreamExt, stream};
use tokio::sync::mpsc;

use super::check::{Check, cases, ensure, ensure_eq, promptly, sh};
use crate::driver::ByteStream;
use crate::error::{Error, ErrorKind};
use crate::exec::{Command, ExecEvent, ExecOptions, Outcome, Stdin};
use crate::sandbox::Sandbox;

cases! {
    without_input_a_command_reads_the_end_at_once(workspace) needs [Shell];
    a_program_without_a_shell_reads_the_end_at_once(workspace) needs [Argv];
    bytes_reach_the_command_untouched(workspace) needs [Shell];
    no_bytes_are_the_end_at_once(workspace) needs [Shell];
    a_streams_pieces_reach_the_command_as_they_come(workspace) needs [Shell];
    eight_mebibytes_through_a_command_come_back_whole(workspace) needs [Shell];
    a_command_that_reads_nothing_of_eight_mebibytes_ends_all_the_same(workspace) needs [Shell];
    a_command_that_stops_reading_ends_all_the_same(workspace) needs [Shell];
    an_input_that_stays_open_delays_no_end(workspace) needs [Shell];
    an_input_that_fails_cancels_the_command(workspace) needs [Shell];
    a_slow_reader_gets_everything(workspace) needs [Shell];
}

/// A stream that is written to while a command reads it. It ends when the sender is dropped.
pub(super) fn fed() -> (mpsc::UnboundedSender<Bytes>, ByteStream) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let next = async |mut receiver: mpsc::UnboundedReceiver<Bytes>| {
        receiver.recv().await.map(|bytes| (Ok(bytes), receiver))
    };
    (sender, stream::unfold(receiver, next).boxed())
}

fn reading(stdin: Stdin) -> ExecOptions {
    ExecOptions { stdin, max_output_bytes: Some(64 << 20), ..ExecOptions::default() }
}

fn bytes(content: impl Into<Bytes>) -> ExecOptions {
    reading(Stdin::Bytes(content.into()))
}

/// Bytes whose place can be told from their value.
fn pattern(length: usize) -> Bytes {
    (0..length).map(|index| (index % 251) as u8).collect()
}

async fn without_input_a_command_reads_the_end_at_once(sandbox: Sandbox) -> Check {
    let result = promptly("cat", sh(&sandbox, "cat; echo over")).await??;
    ensure_eq!(result.stdout_text(), "over\n");
    Ok(())
}

async fn a_program_without_a_shell_reads_the_end_at_once(sandbox: Sandbox) -> Check {
    let result = promptly("cat", sandbox.exec(Command::argv(["cat"]), ExecOptions::default())).await??;
    ensure_eq!((result.outcome, result.stdout_bytes), (Outcome::Exited(0), 0));
    Ok(())
}

async fn bytes_reach_the_command_untouched(sandbox: Sandbox) -> Check {
    let content = &b"\0\xff\x80a\r\n\x04\x03no end"[..];
    let result = promptly("cat", sandbox.exec("cat", bytes(content))).await??;
    ensure_eq!(&result.stdout[..], content);
    Ok(())
}

async fn no_bytes_are_the_end_at_once(sandbox: Sandbox) -> Check {
    let result = promptly("cat", sandbox.exec("cat; echo over", bytes(Bytes::new()))).await??;
    ensure_eq!(result.stdout_text(), "over\n");
    Ok(())
}

async fn a_streams_pieces_reach_the_command_as_they_come(sandbox: Sandbox) -> Check {
    let (sender, input) = fed();
    let mut running = sandbox.exec_stream("cat", reading(Stdin::Stream(input))).await?;
    for piece in ["one", "two"] {
        ensure!(sender.send(Bytes::from(piece)).is_ok(), "nobody reads the input any more");
        let event = promptly("an echo", running.next()).await?;
        let echoed = matches!(&event, Some(Ok(ExecEvent::Stdout(bytes))) if &bytes[..] == piece.as_bytes());
        ensure!(echoed, "{event:?} came for `{piece}`");
    }
    drop(sender);
    let end = promptly("the end", running.next()).await?;
    ensure!(matches!(&end, Some(Ok(ExecEvent::End(result))) if result.success()), "{end:?} was the end");
    Ok(())
}

async fn eight_mebibytes_through_a_command_come_back_whole(sandbox: Sandbox) -> Check {
    let content = pattern(8 << 20);
    let result = promptly("cat", sandbox.exec("cat", bytes(content.clone()))).await??;
    ensure!(result.stdout == content, "{} bytes came back, or other ones", result.stdout.len());
    let pieces: Vec<_> = content.chunks(100_000).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
    let input = Stdin::Stream(stream::iter(pieces).boxed());
    let streamed = promptly("cat", sandbox.exec("cat", reading(input))).await??;
    ensure!(streamed.stdout == content, "{} streamed bytes came back, or other ones", streamed.stdout.len());
    Ok(())
}

async fn a_command_that_reads_nothing_of_eight_mebibytes_ends_all_the_same(sandbox: Sandbox) -> Check {
    let result = promptly("true", sandbox.exec("echo done", bytes(pattern(8 << 20)))).await??;
    ensure_eq!((result.outcome, &result.stdout[..]), (Outcome::Exited(0), &b"done\n"[..]));
    Ok(())
}

async fn a_command_that_stops_reading_ends_all_the_same(sandbox: Sandbox) -> Check {
    let line = "head -c 3; exec <&-; head -c 1000000 /dev/zero; exit 3";
    let result = promptly("head", sandbox.exec(line, bytes(pattern(8 << 20)))).await??;
    ensure_eq!((result.outcome, result.stdout_bytes), (Outcome::Exited(3), 1_000_003));
    Ok(())
}

async fn an_input_that_stays_open_delays_no_end(sandbox: Sandbox) -> Check {
    let (sender, input) = fed();
    let result = promptly("a command", sandbox.exec("echo done", reading(Stdin::Stream(input)))).await??;
    ensure_eq!((result.outcome, &result.stdout[..]), (Outcome::Exited(0), &b"done\n"[..]));
    drop(sender);
    Ok(())
}

async fn an_input_that_fails_cancels_the_command(sandbox: Sandbox) -> Check {
    let broken = Err(Error::new(ErrorKind::Internal, "the source broke"));
    let input = stream::iter([Ok(Bytes::from("some")), broken]).boxed();
    let options = reading(Stdin::Stream(input));
    let result = promptly("the cancellation", sandbox.exec("cat; sleep 86400", options)).await??;
    ensure_eq!(result.outcome, Outcome::Cancelled);
    Ok(())
}

async fn a_slow_reader_gets_everything(sandbox: Sandbox) -> Check {
    let line = "sleep 0.3; head -c 100000 | wc -c; sleep 0.2; wc -c";
    let result = promptly("a slow reader", sandbox.exec(line, bytes(pattern(1_000_000)))).await??;
    let counts: Vec<u64> =
        result.stdout_text().split_whitespace().filter_map(|word| word.parse().ok()).collect();
    ensure!(counts.first() == Some(&100_000) && counts.len() == 2, "it counted {counts:?}");
    Ok(())
}
