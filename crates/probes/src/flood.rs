//! E1: output without end, in every shape.

use std::io::Write;

use eyot::{Bytes, ExecEvent, ExecOptions, Outcome, Stdin};
use futures_util::{StreamExt, stream};

use crate::check::{Check, Failure, cases, ensure, ensure_eq, promptly, slow};
use crate::world::Stage;

cases! {
    e01_a_flood_on_both_streams_is_counted_and_kept_in_flat_memory(stage);
    e01_a_stream_hands_out_every_byte_of_a_flood(stage);
    e01_a_reader_that_never_reads_holds_up_nobody_else(stage);
    e01_pieces_of_one_byte_arrive_whole_and_in_order(stage);
    e01_bytes_that_are_no_text_arrive_untouched(stage);
    e01_input_that_nobody_reads_and_that_never_ends_does_no_harm(stage);
}

/// Writes every byte there is to both streams, byte by byte (or the bytes that are no text, at
/// once).
pub fn probe(arguments: &[String]) {
    let (mut stdout, mut stderr) = (std::io::stdout(), std::io::stderr());
    let bytes: Vec<u8> = match arguments.first().map(String::as_str) {
        Some("odd") => [0, 0xff, 0xfe, b'\n', 0, 0xc3, 0x28, 0xed, 0xa0, 0x80, b'\r', b'x'].to_vec(),
        _ => (0..=255).cycle().take(2_560).collect(),
    };
    for byte in bytes {
        let written =
            [stdout.write_all(&[byte]), stdout.flush(), stderr.write_all(&[255 - byte]), stderr.flush()];
        if written.iter().any(Result::is_err) {
            return;
        }
    }
}

fn flood_mib() -> u64 {
    if slow() { 1024 } else { 64 }
}

fn flood() -> String {
    let mib = flood_mib();
    format!("head -c {mib}M /dev/zero & head -c {mib}M /dev/zero >&2; wait")
}

/// The most memory that this process ever had, in MiB.
fn most_memory_mib() -> Check<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().nth(1)).and_then(|text| text.parse::<u64>().ok());
    kib.map(|kib| kib / 1024).ok_or_else(|| Failure::Broken("there is no VmHWM".to_owned()))
}

async fn e01_a_flood_on_both_streams_is_counted_and_kept_in_flat_memory(stage: Stage) -> Check {
    let before = most_memory_mib()?;
    let result = promptly("the flood", stage.sandbox.exec(flood(), ExecOptions::default())).await??;
    ensure_eq!(result.outcome, Outcome::Exited(0));
    let all = flood_mib() << 20;
    ensure_eq!((result.stdout_bytes, result.stderr_bytes), (all, all));
    ensure_eq!((result.stdout.len(), result.stderr.len()), (1 << 20, 1 << 20));
    ensure!(result.stdout_truncated() && result.stderr_truncated(), "the flags are wrong");
    // Other cases run beside this one, so the bound is generous. A flood that is kept whole would
    // take twice its size.
    let grown = most_memory_mib()? - before;
    ensure!(grown < 96, "the memory grew by {grown} MiB");
    Ok(())
}

async fn e01_a_stream_hands_out_every_byte_of_a_flood(stage: Stage) -> Check {
    let mut events = stage.sandbox.exec_stream(flood(), ExecOptions::default()).await?;
    let (mut stdout, mut stderr) = (0, 0);
    let counted = async {
        while let Some(event) = events.next().await {
            match event? {
                ExecEvent::Stdout(bytes) => stdout += bytes.len() as u64,
                ExecEvent::Stderr(bytes) => stderr += bytes.len() as u64,
                ExecEvent::End(result) => return Ok(Some(result)),
            }
        }
        Ok::<_, eyot::Error>(None)
    };
    let result = promptly("the flood", counted).await??;
    ensure_eq!((stdout, stderr), (flood_mib() << 20, flood_mib() << 20));
    let totals = result.map(|result| (result.stdout_bytes, result.stderr_bytes));
    ensure_eq!(totals, Some((stdout, stderr)));
    Ok(())
}

async fn e01_a_reader_that_never_reads_holds_up_nobody_else(stage: Stage) -> Check {
    let mut unread = Vec::new();
    for _ in 0..4 {
        unread.push(stage.sandbox.exec_stream("yes | head -c 512M", ExecOptions::default()).await?);
    }
    for _ in 0..5 {
        stage.still_works().await?;
        promptly("a write", stage.sandbox.write("file", vec![b'x'; 4 << 20])).await??;
        ensure_eq!(promptly("a read", stage.sandbox.read("file")).await??.len(), 4 << 20);
    }
    drop(unread);
    stage.still_works().await
}

async fn e01_pieces_of_one_byte_arrive_whole_and_in_order(stage: Stage) -> Check {
    let expected: Vec<u8> = (0..=255).cycle().take(2_560).collect();
    let result =
        promptly("the command", stage.sandbox.exec(Stage::attack(&["bytes"]), ExecOptions::default()))
            .await??;
    ensure!(result.stdout == expected, "stdout is mixed: {} bytes", result.stdout.len());
    let mirrored: Vec<u8> = expected.iter().map(|byte| 255 - byte).collect();
    ensure!(result.stderr == mirrored, "stderr is mixed: {} bytes", result.stderr.len());
    // And the other way round, by way of the input.
    let pieces: Vec<_> = expected.iter().map(|byte| Ok(Bytes::copy_from_slice(&[*byte]))).collect();
    let options =
        ExecOptions { stdin: Stdin::Stream(stream::iter(pieces).boxed()), ..ExecOptions::default() };
    let result = promptly("cat", stage.sandbox.exec("cat", options)).await??;
    ensure!(result.stdout == expected, "the input is mixed: {} bytes", result.stdout.len());
    Ok(())
}

async fn e01_bytes_that_are_no_text_arrive_untouched(stage: Stage) -> Check {
    let attack = Stage::attack(&["bytes", "odd"]);
    let result = promptly("the command", stage.sandbox.exec(attack, ExecOptions::default())).await??;
    let expected = [0, 0xff, 0xfe, b'\n', 0, 0xc3, 0x28, 0xed, 0xa0, 0x80, b'\r', b'x'];
    ensure_eq!(&result.stdout[..], &expected[..]);
    ensure!(!result.stdout_truncated(), "nothing was cut");
    Ok(())
}

async fn e01_input_that_nobody_reads_and_that_never_ends_does_no_harm(stage: Stage) -> Check {
    let endless = || Stdin::Stream(stream::repeat_with(|| Ok(Bytes::from_static(&[b'x'; 64 << 10]))).boxed());
    for line in ["exit 3", "exec <&-; sleep 0.3; exit 3", "head -c 10 > /dev/null; exit 3"] {
        let options = ExecOptions { stdin: endless(), ..ExecOptions::default() };
        let result = promptly(line, stage.sandbox.exec(line, options)).await??;
        ensure_eq!(result.outcome, Outcome::Exited(3));
    }
    stage.still_works().await
}
