//! Parts of a started process's log: by bytes, by lines, by stream, and on from where a reader stopped.

use futures_util::StreamExt;

use super::check::{Check, cases, ensure, ensure_eq, ensure_fails, need_program, promptly};
use crate::process::{Log, LogChunk, LogQuery, LogRange, LogStream, ProcessId};
use crate::sandbox::{Sandbox, StartOptions};

cases! {
    the_last_lines_of_a_log_are_whole_and_counted_exactly(workspace) needs [Shell, Processes];
    lines_of_both_streams_count_by_where_they_end(workspace) needs [Shell, Processes];
    long_lines_and_bytes_that_are_no_text_are_counted_rightly(workspace) needs [Shell, Processes];
    an_answer_says_what_it_covers_of_a_log(workspace) needs [Shell, Processes];
    a_limit_ends_a_log_and_one_that_is_followed(workspace) needs [Shell, Processes];
    two_tails_at_once_are_invalid(workspace) needs [Shell, Processes];
    a_reader_goes_on_where_it_stopped_and_neither_loses_nor_repeats_a_byte(workspace) needs [Shell, Processes];
    a_tail_that_is_followed_goes_on_with_what_comes(workspace) needs [Shell, Processes];
    a_noisy_stream_does_not_push_the_other_out_of_the_log(workspace) needs [Shell, Processes];
    bytes_that_are_no_longer_kept_are_counted(workspace) needs [Shell, Processes];
    a_followed_log_holds_what_a_process_substitution_wrote(workspace) needs [Shell, Processes];
}

/// Runs a line as a process to its end.
async fn ended(sandbox: &Sandbox, line: &str) -> Check<ProcessId> {
    let process = sandbox.start(line, StartOptions::default()).await?.id;
    promptly("the end of a process", sandbox.wait(process)).await??;
    Ok(process)
}

async fn open(sandbox: &Sandbox, process: ProcessId, query: LogQuery) -> Check<Log> {
    Ok(promptly("a log", sandbox.logs(process, query)).await??)
}

async fn chunks(log: &mut Log) -> Check<Vec<LogChunk>> {
    let mut all = Vec::new();
    while let Some(chunk) = promptly("a piece of a log", log.next()).await? {
        all.push(chunk?);
    }
    Ok(all)
}

/// The bytes of a part of a log.
async fn bytes(sandbox: &Sandbox, process: ProcessId, query: LogQuery) -> Check<Vec<u8>> {
    let all = chunks(&mut open(sandbox, process, query).await?).await?;
    Ok(all.iter().flat_map(|chunk| chunk.data.to_vec()).collect())
}

async fn text(sandbox: &Sandbox, process: ProcessId, query: LogQuery) -> Check<String> {
    Ok(String::from_utf8_lossy(&bytes(sandbox, process, query).await?).into_owned())
}

fn last(lines: u64) -> LogQuery {
    LogQuery { tail_lines: Some(lines), ..LogQuery::default() }
}

async fn the_last_lines_of_a_log_are_whole_and_counted_exactly(sandbox: Sandbox) -> Check {
    let process = ended(&sandbox, "printf 'one\\r\\n\\ntwo\\nthree'").await?;
    let tails = ["", "three", "two\nthree", "\ntwo\nthree", "one\r\n\ntwo\nthree", "one\r\n\ntwo\nthree"];
    for (lines, tail) in (0..).zip(tails) {
        let found = text(&sandbox, process, last(lines)).await?;
        ensure!(found == tail, "the last {lines} lines are {found:?}, not {tail:?}");
    }
    let process = ended(&sandbox, "seq 1 1000").await?;
    ensure_eq!(text(&sandbox, process, last(3)).await?, "998\n999\n1000\n");
    ensure_eq!(text(&sandbox, process, last(u64::MAX)).await?.lines().count(), 1000);
    let process = ended(&sandbox, "true").await?;
    ensure_eq!(text(&sandbox, process, last(5)).await?, "");
    Ok(())
}

async fn lines_of_both_streams_count_by_where_they_end(sandbox: Sandbox) -> Check {
    let line =
        "printf 'a\\nb'; sleep 0.2; printf 'x\\n' >&2; sleep 0.2; printf 'c\\n'; sleep 0.2; printf y >&2";
    let process = ended(&sandbox, line).await?;
    // The line `bc` ended after `x`, though it began before.
    for (lines, tail) in (0..).zip(["", "y", "bc\ny", "bx\nc\ny", "a\nbx\nc\ny", "a\nbx\nc\ny"]) {
        let found = text(&sandbox, process, last(lines)).await?;
        ensure!(found == tail, "the last {lines} lines are {found:?}, not {tail:?}");
    }
    let only = LogQuery { stream: Some(LogStream::Stderr), ..last(1) };
    ensure_eq!(text(&sandbox, process, only).await?, "y");
    Ok(())
}

async fn long_lines_and_bytes_that_are_no_text_are_counted_rightly(sandbox: Sandbox) -> Check {
    let line = "for i in 1 2 3; do head -c 10000 /dev/zero | tr '\\0' 'x'; printf '\\377\\n'; done";
    let process = ended(&sandbox, line).await?;
    let found = bytes(&sandbox, process, last(2)).await?;
    let expected = [vec![b'x'; 10_000], vec![0xff, b'\n']].concat().repeat(2);
    ensure!(found == expected, "the last two lines have {} bytes, not {}", found.len(), expected.len());
    Ok(())
}

async fn an_answer_says_what_it_covers_of_a_log(sandbox: Sandbox) -> Check {
    let process = ended(&sandbox, "printf abcdef; sleep 0.2; printf XY >&2").await?;
    let range = |start, total_bytes| LogRange { start, end: 8, total_bytes, dropped_bytes: 0 };
    let stderr = LogQuery { stream: Some(LogStream::Stderr), ..LogQuery::default() };
    for (query, expected) in [
        (LogQuery::default(), range(0, 8)),
        (LogQuery { offset: 3, ..LogQuery::default() }, range(3, 8)),
        (LogQuery { offset: 90, ..LogQuery::default() }, range(8, 8)),
        (LogQuery { tail_bytes: Some(3), ..LogQuery::default() }, range(5, 8)),
        (last(1), range(6, 8)),
        (stderr, range(6, 2)),
    ] {
        let mut log = open(&sandbox, process, query).await?;
        ensure!(log.range == expected, "{query:?} covers {:?}, not {expected:?}", log.range);
        let first = chunks(&mut log).await?.first().map(|chunk| chunk.offset);
        ensure!(first.is_none_or(|first| first == expected.start), "{query:?} begins at {first:?}");
    }
    let all = chunks(&mut open(&sandbox, process, stderr).await?).await?;
    ensure_eq!(all.iter().map(|chunk| (chunk.offset, chunk.stream_offset)).collect::<Vec<_>>(), [(6, 0)]);
    Ok(())
}

async fn a_limit_ends_a_log_and_one_that_is_followed(sandbox: Sandbox) -> Check {
    let process = ended(&sandbox, "printf abcdef").await?;
    for (limit, expected) in [(0, ""), (1, "a"), (6, "abcdef"), (7, "abcdef")] {
        let query = LogQuery { limit_bytes: Some(limit), ..LogQuery::default() };
        ensure_eq!(text(&sandbox, process, query).await?, expected);
        let offset = LogQuery { offset: 2, ..query };
        ensure_eq!(text(&sandbox, process, offset).await?.len() as u64, limit.min(4));
    }
    let running = sandbox.start("printf 123456; exec sleep 86480", StartOptions::default()).await?.id;
    let query = LogQuery { limit_bytes: Some(4), follow: true, ..LogQuery::default() };
    ensure_eq!(text(&sandbox, running, query).await?, "1234");
    Ok(sandbox.kill(running, None).await?)
}

async fn two_tails_at_once_are_invalid(sandbox: Sandbox) -> Check {
    let process = ended(&sandbox, "true").await?;
    let query = LogQuery { tail_bytes: Some(1), ..last(1) };
    ensure_fails!(sandbox.logs(process, query).await.map(drop), Invalid);
    Ok(())
}

async fn a_reader_goes_on_where_it_stopped_and_neither_loses_nor_repeats_a_byte(sandbox: Sandbox) -> Check {
    let line = "i=0; while [ $i -lt 2000 ]; do echo out$i; echo err$i >&2; i=$((i + 1)); done";
    let process = sandbox.start(line, StartOptions::default()).await?.id;
    let (mut offset, mut texts) = (0, [Vec::new(), Vec::new()]);
    loop {
        let is_over =
            sandbox.processes().await?.iter().any(|info| info.id == process && info.ended_ms.is_some());
        let mut log = open(&sandbox, process, LogQuery { offset, ..LogQuery::default() }).await?;
        for chunk in chunks(&mut log).await? {
            ensure!(chunk.offset >= offset, "{} comes after {offset}", chunk.offset);
            let text = &mut texts[usize::from(chunk.stream == LogStream::Stderr)];
            ensure_eq!(chunk.stream_offset, text.len() as u64);
            text.extend_from_slice(&chunk.data);
            offset = chunk.offset + chunk.data.len() as u64;
        }
        ensure_eq!(offset, log.range.end);
        if is_over {
            break;
        }
    }
    for (text, word) in texts.iter().zip(["out", "err"]) {
        let expected: String = (0..2000).map(|number| format!("{word}{number}\n")).collect();
        ensure!(*text == expected.as_bytes(), "{word} has {} bytes, not {}", text.len(), expected.len());
    }
    Ok(())
}

async fn a_tail_that_is_followed_goes_on_with_what_comes(sandbox: Sandbox) -> Check {
    let line = "printf 'a\\nb\\nc'; touch there; while [ ! -e go ]; do sleep 0.02; done; printf 'd\\ne\\n'";
    let process = sandbox.start(line, StartOptions::default()).await?.id;
    super::check::until("the beginning", async || Ok(sandbox.exists("there").await?)).await?;
    let first = LogQuery { offset: 4, limit_bytes: Some(1), follow: true, ..LogQuery::default() };
    ensure_eq!(text(&sandbox, process, first).await?, "c");
    let mut log = open(&sandbox, process, LogQuery { follow: true, ..last(2) }).await?;
    sandbox.write("go", "").await?;
    let all = chunks(&mut log).await?;
    let found: Vec<u8> = all.iter().flat_map(|chunk| chunk.data.to_vec()).collect();
    ensure_eq!(String::from_utf8_lossy(&found), "b\ncd\ne\n");
    Ok(())
}

async fn a_noisy_stream_does_not_push_the_other_out_of_the_log(sandbox: Sandbox) -> Check {
    let process = ended(&sandbox, "seq 1 20000 >&2; head -c 5000000 /dev/zero").await?;
    let only = |stream| LogQuery { stream: Some(stream), ..LogQuery::default() };
    let quiet: String = (1..=20_000).map(|number| format!("{number}\n")).collect();
    let found = text(&sandbox, process, only(LogStream::Stderr)).await?;
    ensure!(found == quiet, "{} bytes of the quiet stream are kept, not {}", found.len(), quiet.len());
    let noisy = open(&sandbox, process, only(LogStream::Stdout)).await?.range;
    ensure!(noisy.dropped_bytes > 3_000_000 && noisy.dropped_bytes < 4_800_000, "{noisy:?}");
    Ok(())
}

async fn bytes_that_are_no_longer_kept_are_counted(sandbox: Sandbox) -> Check {
    let process = ended(&sandbox, "head -c 3000000 /dev/zero; printf end").await?;
    let mut log = open(&sandbox, process, LogQuery::default()).await?;
    let range = log.range;
    let all = chunks(&mut log).await?;
    let kept: u64 = all.iter().map(|chunk| chunk.data.len() as u64).sum();
    ensure_eq!((range.total_bytes, range.dropped_bytes + kept, range.end), (3_000_003, 3_000_003, 3_000_003));
    ensure_eq!(
        all.first().map(|chunk| (chunk.offset, chunk.stream_offset)),
        Some((range.start, range.start))
    );
    let tail = open(&sandbox, process, LogQuery { tail_bytes: Some(3), ..LogQuery::default() }).await?.range;
    ensure_eq!((tail.start, tail.dropped_bytes), (3_000_000, range.dropped_bytes));
    Ok(())
}

async fn a_followed_log_holds_what_a_process_substitution_wrote(sandbox: Sandbox) -> Check {
    need_program(&sandbox, "bash").await?;
    for _ in 0..10 {
        let process = sandbox.start("exec > >(tee log) 2>&1; echo one", StartOptions::default()).await?.id;
        let follow = LogQuery { follow: true, ..LogQuery::default() };
        ensure_eq!(text(&sandbox, process, follow).await?, "one\n");
        promptly("the end of a process", sandbox.wait(process)).await??;
        ensure_eq!(text(&sandbox, process, LogQuery::default()).await?, "one\n");
    }
    Ok(())
}
