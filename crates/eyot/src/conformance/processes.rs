//! Started processes: they outlive the call and the handle, their log has offsets, they end when they are killed.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures_util::StreamExt;

use super::Fixture;
use super::check::{Check, Disposable, cases, ensure, ensure_eq, ensure_fails, output, promptly, until};
use super::tree::{alive, cleared};
use crate::capabilities::Capability;
use crate::error::ErrorKind;
use crate::exec::{Command, ExecOptions, ExitStatus, PtySize, Signal};
use crate::process::{LogChunk, LogQuery, LogStream, MAX_STDIN_BYTES, ProcessId, ProcessInfo, ProcessStatus};
use crate::sandbox::{Sandbox, StartOptions};

cases! {
    a_started_process_runs_on_and_its_end_is_waited_for(workspace) needs [Shell, Processes];
    a_started_process_tells_when_and_how_it_ended(workspace) needs [Shell, Processes];
    a_started_process_reads_the_end_at_once_and_has_its_own_directory_and_variables(workspace) needs [Shell, Processes];
    a_process_that_cannot_be_started_is_refused_and_not_listed(sandbox) needs [Argv, Processes];
    a_start_is_refused_as_a_command_is_and_uses_up_no_number(sandbox) needs [Argv, Processes];
    processes_are_listed_oldest_first_and_no_number_is_used_twice(sandbox) needs [Shell, Processes];
    a_process_that_nobody_started_is_not_found(workspace) needs [Processes];
    a_log_has_both_streams_in_the_order_of_their_arrival(workspace) needs [Shell, Processes];
    a_log_can_be_read_by_stream_by_offset_and_from_its_end(workspace) needs [Shell, Processes];
    a_followed_log_goes_on_until_the_process_ends(workspace) needs [Shell, Processes];
    a_followed_log_of_an_ended_process_ends(workspace) needs [Shell, Processes];
    a_long_log_keeps_its_end_and_says_where_that_begins(workspace) needs [Shell, Processes];
    a_kill_without_a_signal_kills_the_whole_tree(workspace) needs [Shell, Processes, KillTree];
    a_kill_returns_when_nothing_of_the_tree_is_left(workspace) needs [Shell, Processes, KillTree];
    a_signal_reaches_the_process_and_is_how_it_ended(workspace) needs [Shell, Processes, Signals];
    a_signal_can_be_caught_by_the_process(workspace) needs [Shell, Processes, Signals];
    a_signal_that_does_not_exist_is_invalid(workspace) needs [Shell, Processes];
    killing_a_process_that_has_ended_is_fine(workspace) needs [Shell, Processes];
    a_stop_is_polite_and_then_kills_the_whole_tree(workspace) needs [Shell, Processes, Signals, KillTree];
    a_line_of_a_log_is_waited_for_past_ones_included(workspace) needs [Shell, Processes];
    a_wait_for_a_line_ends_with_the_process_and_with_its_time(workspace) needs [Shell, Processes];
    a_process_survives_the_handle_that_started_it(fixture) needs [Shell, Processes];
    a_process_outlives_the_deadline_of_other_commands(workspace) needs [Shell, Processes, KillTree];
    a_process_is_killed_with_its_tree_at_its_deadline(workspace) needs [Shell, Processes, KillTree];
    a_process_that_ends_in_time_is_not_timed_out(workspace) needs [Shell, Processes];
    a_process_reads_the_input_of_its_start_and_then_the_end(workspace) needs [Shell, Processes];
    a_process_reads_what_is_written_to_it_later_until_that_ends(workspace) needs [Shell, Processes];
    input_of_64_kib_is_taken_and_a_byte_more_is_refused(workspace) needs [Shell, Processes];
    a_process_that_reads_nothing_is_given_no_more_than_it_can_hold(workspace) needs [Shell, Processes];
    a_process_on_a_terminal_is_typed_to(workspace) needs [Shell, Processes, Pty];
}

const EVERYTHING: LogQuery = LogQuery {
    stream: None,
    offset: 0,
    tail_bytes: None,
    tail_lines: None,
    limit_bytes: None,
    follow: false,
};

async fn start(sandbox: &Sandbox, line: &str) -> Check<ProcessInfo> {
    Ok(sandbox.start(line, StartOptions::default()).await?)
}

async fn wait(sandbox: &Sandbox, process: ProcessId) -> Check<ExitStatus> {
    let info = promptly("the end of a process", sandbox.wait(process)).await??;
    match info.status {
        ProcessStatus::Ended(status) => Ok(status),
        ProcessStatus::Running => {
            Err(super::check::Failure::Broken(format!("{process} was waited for and runs")))
        }
    }
}

/// A log's pieces, neighbours of one stream joined.
async fn log(sandbox: &Sandbox, process: ProcessId, query: LogQuery) -> Check<Vec<LogChunk>> {
    let mut chunks = promptly("a log", sandbox.logs(process, query)).await??;
    let mut joined: Vec<LogChunk> = Vec::new();
    while let Some(chunk) = promptly("a piece of a log", chunks.next()).await? {
        let chunk = chunk?;
        match joined.last_mut() {
            Some(last)
                if last.stream == chunk.stream && last.offset + last.data.len() as u64 == chunk.offset =>
            {
                last.data = [&last.data[..], &chunk.data[..]].concat().into();
            }
            _ => joined.push(chunk),
        }
    }
    Ok(joined)
}

fn text(chunks: &[LogChunk]) -> String {
    chunks.iter().map(|chunk| String::from_utf8_lossy(&chunk.data).into_owned()).collect()
}

/// Runs a line as a process to its end.
async fn ended(sandbox: &Sandbox, line: &str) -> Check<ProcessId> {
    let process = start(sandbox, line).await?.id;
    wait(sandbox, process).await?;
    Ok(process)
}

async fn a_started_process_runs_on_and_its_end_is_waited_for(sandbox: Sandbox) -> Check {
    let info =
        promptly("the start", start(&sandbox, "while [ ! -e go ]; do sleep 0.02; done; exit 4")).await??;
    ensure_eq!((info.status, info.ended_ms), (ProcessStatus::Running, None));
    ensure!(info.pid > 1 && info.command.contains("exit 4"), "it is {info:?}");
    let known = sandbox.processes().await?;
    ensure!(known.contains(&info), "{info:?} is not among {known:?}");
    sandbox.write("go", "").await?;
    ensure_eq!(wait(&sandbox, info.id).await?, ExitStatus::Exited(4));
    Ok(())
}

async fn a_started_process_tells_when_and_how_it_ended(sandbox: Sandbox) -> Check {
    let process = ended(&sandbox, "sleep 0.1; exit 3").await?;
    let known = sandbox.processes().await?;
    let Some(info) = known.iter().find(|info| info.id == process) else {
        return Err(super::check::Failure::Broken(format!("{process} is not among {known:?}")));
    };
    ensure_eq!(info.status, ProcessStatus::Ended(ExitStatus::Exited(3)));
    let lasted = info.ended_ms.map(|ended| ended - info.started_ms);
    ensure!(lasted.is_some_and(|lasted| (90..10_000).contains(&lasted)), "it lasted {lasted:?} ms");
    ensure_eq!(promptly("another wait", sandbox.wait(process)).await??, *info);
    Ok(())
}

async fn a_started_process_reads_the_end_at_once_and_has_its_own_directory_and_variables(
    sandbox: Sandbox,
) -> Check {
    output(&sandbox, "mkdir deep").await?;
    let env = BTreeMap::from([("WORD".to_owned(), "a 'b' $c".to_owned())]);
    let options = StartOptions { cwd: Some("deep".to_owned()), env, ..StartOptions::default() };
    let process = sandbox.start("cat; pwd; echo \"$WORD\"", options).await?.id;
    wait(&sandbox, process).await?;
    let expected = format!("{}/deep\na 'b' $c\n", sandbox.cwd());
    ensure_eq!(text(&log(&sandbox, process, EVERYTHING).await?), expected);
    Ok(())
}

async fn a_process_that_cannot_be_started_is_refused_and_not_listed(sandbox: Sandbox) -> Check {
    let missing = Command::argv(["no-such-program-at-all"]);
    ensure_fails!(sandbox.start(missing, StartOptions::default()).await, NotFound);
    let nowhere = StartOptions { cwd: Some("missing".to_owned()), ..StartOptions::default() };
    ensure_fails!(sandbox.start(Command::argv(["true"]), nowhere).await, NotFound);
    ensure_fails!(sandbox.start(" ", StartOptions::default()).await, Invalid);
    ensure_eq!(sandbox.processes().await?, []);
    Ok(())
}

async fn a_start_is_refused_as_a_command_is_and_uses_up_no_number(sandbox: Sandbox) -> Check {
    let begin = async || sandbox.start(Command::argv(["true"]), StartOptions::default()).await;
    let first = begin().await?.id;
    sandbox.write("data", "no program").await?;
    for word in ["no-such-program-at-all", "/no/such/program", "./data", "/"] {
        let program = Command::argv([word]);
        let command =
            sandbox.exec(program.clone(), ExecOptions::default()).await.map_err(|error| error.kind());
        let process = sandbox.start(program, StartOptions::default()).await.map_err(|error| error.kind());
        ensure!(process.is_err(), "`{word}` was started");
        ensure_eq!((word, process.err()), (word, command.err()));
    }
    ensure_eq!(begin().await?.id, ProcessId(first.0 + 1));
    Ok(())
}

async fn processes_are_listed_oldest_first_and_no_number_is_used_twice(sandbox: Sandbox) -> Check {
    let mut ids = Vec::new();
    for index in 0..5 {
        ids.push(ended(&sandbox, &format!("exit {index}")).await?);
    }
    let listed: Vec<ProcessId> = sandbox.processes().await?.iter().map(|info| info.id).collect();
    ensure_eq!(listed, ids);
    ensure!(ids.windows(2).all(|pair| pair[0] < pair[1]), "the numbers are {ids:?}");
    Ok(())
}

async fn a_process_that_nobody_started_is_not_found(sandbox: Sandbox) -> Check {
    let nobody = ProcessId(4_000_000_000);
    ensure_fails!(sandbox.wait(nobody).await, NotFound);
    ensure_fails!(sandbox.kill(nobody, None).await, NotFound);
    if sandbox.capabilities().has(Capability::Signals) {
        ensure_fails!(sandbox.kill(nobody, Some(Signal::TERM)).await, NotFound);
    }
    ensure_fails!(sandbox.logs(nobody, EVERYTHING).await.map(drop), NotFound);
    Ok(())
}

async fn a_log_has_both_streams_in_the_order_of_their_arrival(sandbox: Sandbox) -> Check {
    let line = "printf one; sleep 0.2; printf two >&2; sleep 0.2; printf '\\377\\000'";
    let process = ended(&sandbox, line).await?;
    let chunks = log(&sandbox, process, EVERYTHING).await?;
    let found: Vec<_> = chunks.iter().map(|chunk| (chunk.stream, chunk.offset, &chunk.data[..])).collect();
    let expected = [
        (LogStream::Stdout, 0, &b"one"[..]),
        (LogStream::Stderr, 3, &b"two"[..]),
        (LogStream::Stdout, 6, &b"\xff\0"[..]),
    ];
    ensure_eq!(found, expected);
    Ok(())
}

async fn a_log_can_be_read_by_stream_by_offset_and_from_its_end(sandbox: Sandbox) -> Check {
    let process = ended(&sandbox, "printf abcdef; sleep 0.2; printf XY >&2").await?;
    let queries = [
        (LogQuery { stream: Some(LogStream::Stdout), ..EVERYTHING }, "abcdef"),
        (LogQuery { stream: Some(LogStream::Stderr), ..EVERYTHING }, "XY"),
        (LogQuery { offset: 4, ..EVERYTHING }, "efXY"),
        (LogQuery { offset: 8, ..EVERYTHING }, ""),
        (LogQuery { offset: 900, ..EVERYTHING }, ""),
        (LogQuery { tail_bytes: Some(3), ..EVERYTHING }, "fXY"),
        (LogQuery { tail_bytes: Some(0), ..EVERYTHING }, ""),
        (LogQuery { tail_bytes: Some(1 << 40), ..EVERYTHING }, "abcdefXY"),
        (LogQuery { stream: Some(LogStream::Stdout), tail_bytes: Some(2), ..EVERYTHING }, "ef"),
    ];
    for (query, expected) in queries {
        let found = text(&log(&sandbox, process, query).await?);
        ensure!(found == expected, "{query:?} gives {found:?}, not {expected:?}");
    }
    Ok(())
}

async fn a_followed_log_goes_on_until_the_process_ends(sandbox: Sandbox) -> Check {
    let line = "printf first; while [ ! -e go ]; do sleep 0.02; done; printf second; printf third >&2";
    let process = start(&sandbox, line).await?.id;
    let mut chunks = sandbox.logs(process, LogQuery { follow: true, ..EVERYTHING }).await?;
    let first = promptly("the first piece", chunks.next()).await?;
    ensure!(matches!(&first, Some(Ok(chunk)) if &chunk.data[..] == b"first"), "{first:?} came first");
    sandbox.write("go", "").await?;
    let mut rest = 0;
    while let Some(chunk) = promptly("the rest", chunks.next()).await? {
        rest += chunk?.data.len();
    }
    ensure_eq!(rest, "secondthird".len());
    ensure_eq!(wait(&sandbox, process).await?, ExitStatus::Exited(0));
    Ok(())
}

async fn a_followed_log_of_an_ended_process_ends(sandbox: Sandbox) -> Check {
    let process = ended(&sandbox, "printf all").await?;
    let query = LogQuery { follow: true, ..EVERYTHING };
    ensure_eq!(text(&log(&sandbox, process, query).await?), "all");
    ensure_eq!(text(&log(&sandbox, process, LogQuery { tail_bytes: Some(1), ..query }).await?), "l");
    Ok(())
}

async fn a_long_log_keeps_its_end_and_says_where_that_begins(sandbox: Sandbox) -> Check {
    let process = ended(&sandbox, "head -c 3000000 /dev/zero; printf end").await?;
    let chunks = log(&sandbox, process, EVERYTHING).await?;
    let Some(last) = chunks.last() else {
        return Err(super::check::Failure::Broken("nothing of the log was kept".to_owned()));
    };
    ensure_eq!(last.offset + last.data.len() as u64, 3_000_003);
    ensure!(last.data.ends_with(b"\0end"), "it does not end with the end");
    let kept: usize = chunks.iter().map(|chunk| chunk.data.len()).sum();
    ensure!((900_000..=2 << 20).contains(&kept), "{kept} bytes were kept");
    Ok(())
}

async fn a_kill_without_a_signal_kills_the_whole_tree(sandbox: Sandbox) -> Check {
    let line = "trap '' TERM; setsid sleep 86430 & (sleep 86430 &); sleep 86430";
    let process = start(&sandbox, line).await?.id;
    until("its children", async || Ok(alive(&sandbox, "86430").await? >= 3)).await?;
    sandbox.kill(process, None).await?;
    ensure_eq!(wait(&sandbox, process).await?, ExitStatus::Signaled(9));
    cleared(&sandbox, "86430").await
}

async fn a_kill_returns_when_nothing_of_the_tree_is_left(sandbox: Sandbox) -> Check {
    // More than one look: whoever only orders it is sometimes quick enough.
    for round in 0..8 {
        let children = "for i in 1 2 3 4 5 6; do setsid sleep 1000 & echo $! >> pids; done; echo up";
        let line = if round % 2 == 0 { format!("{children}; wait") } else { children.to_owned() };
        let process = start(&sandbox, &line).await?.id;
        sandbox.wait_for_line(process, "up", 30_000).await?;
        if round % 2 == 1 {
            wait(&sandbox, process).await?;
        }
        sandbox.kill(process, None).await?;
        // A process that nobody has buried yet is dead too.
        let left =
            "for pid in $(cat pids); do grep -s '^State:' /proc/$pid/status | grep -v Z; done; rm pids";
        ensure_eq!(output(&sandbox, left).await?, "");
    }
    Ok(())
}

async fn a_signal_reaches_the_process_and_is_how_it_ended(sandbox: Sandbox) -> Check {
    for signal in [Signal::TERM, Signal::INT, Signal::KILL, Signal::HUP] {
        let process = sandbox.start(Command::argv(["sleep", "86431"]), StartOptions::default()).await?.id;
        sandbox.kill(process, Some(signal)).await?;
        ensure_eq!(wait(&sandbox, process).await?, ExitStatus::Signaled(signal.0));
    }
    Ok(())
}

async fn a_signal_can_be_caught_by_the_process(sandbox: Sandbox) -> Check {
    let line = "trap 'echo caught; exit 6' TERM; touch ready; while :; do sleep 0.05; done";
    let process = start(&sandbox, line).await?.id;
    until("its trap", async || Ok(sandbox.exists("ready").await?)).await?;
    sandbox.kill(process, Some(Signal::TERM)).await?;
    ensure_eq!(wait(&sandbox, process).await?, ExitStatus::Exited(6));
    // The signal went to the group, and a shell may say so of its `sleep`.
    let said = text(&log(&sandbox, process, EVERYTHING).await?);
    ensure!(said.ends_with("caught\n"), "the log is {said:?}");
    Ok(())
}

async fn a_signal_that_does_not_exist_is_invalid(sandbox: Sandbox) -> Check {
    let process = start(&sandbox, "sleep 86434").await?.id;
    for number in [0, -1, 65, i32::MAX, i32::MIN] {
        ensure_fails!(sandbox.kill(process, Some(Signal(number))).await, Invalid);
    }
    sandbox.kill(process, None).await?;
    ensure_eq!(wait(&sandbox, process).await?, ExitStatus::Signaled(9));
    Ok(())
}

async fn killing_a_process_that_has_ended_is_fine(sandbox: Sandbox) -> Check {
    let process = ended(&sandbox, "exit 2").await?;
    sandbox.kill(process, None).await?;
    if sandbox.capabilities().has(Capability::Signals) {
        sandbox.kill(process, Some(Signal::TERM)).await?;
    }
    ensure_eq!(wait(&sandbox, process).await?, ExitStatus::Exited(2));
    Ok(())
}

async fn a_stop_is_polite_and_then_kills_the_whole_tree(sandbox: Sandbox) -> Check {
    let polite = start(&sandbox, "trap 'exit 7' TERM; echo up; while :; do sleep 0.02; done").await?;
    sandbox.wait_for_line(polite.id, "up", 60_000).await?;
    let ended = promptly("a polite end", sandbox.stop(polite.id, 60_000)).await??;
    ensure_eq!(ended.status, ProcessStatus::Ended(ExitStatus::Exited(7)));
    let deaf = start(
        &sandbox,
        "trap '' TERM; (trap '' TERM; exec sleep 86411) & echo up; while :; do sleep 1; done",
    )
    .await?;
    sandbox.wait_for_line(deaf.id, "up", 60_000).await?;
    let ended = promptly("an end by force", sandbox.stop(deaf.id, 50)).await??;
    ensure!(matches!(ended.status, ProcessStatus::Ended(_)), "{ended:?}");
    cleared(&sandbox, "86411").await?;
    // Stopping what has ended is fine.
    sandbox.stop(deaf.id, 50).await?;
    Ok(())
}

async fn a_line_of_a_log_is_waited_for_past_ones_included(sandbox: Sandbox) -> Check {
    let line = "echo first; echo 'ready: 80' >&2; until [ -e go ]; do sleep 0.02; done; printf 'no end'";
    let process = start(&sandbox, line).await?.id;
    for _ in 0..2 {
        let found = promptly("a line", sandbox.wait_for_line(process, "ready", 60_000)).await??;
        ensure_eq!(found, "ready: 80");
    }
    let (found, ()) = tokio::join!(sandbox.wait_for_line(process, "no end", 60_000), async {
        sandbox.write("go", "").await.unwrap_or_default();
    });
    ensure_eq!(found?, "no end");
    Ok(())
}

async fn a_wait_for_a_line_ends_with_the_process_and_with_its_time(sandbox: Sandbox) -> Check {
    let short = start(&sandbox, "echo a").await?.id;
    ensure_fails!(promptly("a line", sandbox.wait_for_line(short, "b", 60_000)).await?, Conflict);
    let long = start(&sandbox, "echo a; sleep 86412").await?.id;
    ensure_fails!(promptly("a line", sandbox.wait_for_line(long, "b", 50)).await?, Timeout);
    Ok(())
}

async fn a_process_survives_the_handle_that_started_it(fixture: Arc<dyn Fixture>) -> Check {
    let provider = fixture.provider();
    let first = Sandbox::create(&*provider, fixture.spec()).await?;
    let id = first.id().to_string();
    let line = "echo before; while [ ! -e go ]; do sleep 0.02; done; echo after";
    let process = start(&first, line).await?.id;
    drop(first);
    let second = Disposable(Sandbox::open(&*provider, &id).await?);
    let known = second.0.processes().await?;
    ensure!(
        known.iter().any(|info| info.id == process && info.status == ProcessStatus::Running),
        "{known:?}"
    );
    second.0.write("go", "").await?;
    ensure_eq!(wait(&second.0, process).await?, ExitStatus::Exited(0));
    ensure_eq!(text(&log(&second.0, process, EVERYTHING).await?), "before\nafter\n");
    Ok(second.0.destroy().await?)
}

async fn a_process_outlives_the_deadline_of_other_commands(sandbox: Sandbox) -> Check {
    let process = start(&sandbox, "sleep 86432").await?.id;
    let options = crate::ExecOptions { timeout_ms: Some(100), ..crate::ExecOptions::default() };
    ensure_eq!(sandbox.exec("sleep 86433", options).await?.outcome, crate::Outcome::TimedOut);
    let known = sandbox.processes().await?;
    ensure!(
        known.iter().any(|info| info.id == process && info.status == ProcessStatus::Running),
        "{known:?}"
    );
    sandbox.kill(process, None).await?;
    cleared(&sandbox, "86432").await
}

async fn a_process_is_killed_with_its_tree_at_its_deadline(sandbox: Sandbox) -> Check {
    let options = StartOptions { timeout_ms: Some(500), ..StartOptions::default() };
    let line = "echo begun; setsid sleep 86407 & exec sleep 86407";
    let process = sandbox.start(line, options).await?;
    ensure!(!process.timed_out, "it is {process:?}");
    let ended = promptly("the end of a process", sandbox.wait(process.id)).await??;
    ensure_eq!((ended.status, ended.timed_out), (ProcessStatus::Ended(ExitStatus::Signaled(9)), true));
    cleared(&sandbox, "sleep 86407").await?;
    ensure_eq!(text(&log(&sandbox, process.id, EVERYTHING).await?), "begun\n");
    Ok(())
}

async fn a_process_that_ends_in_time_is_not_timed_out(sandbox: Sandbox) -> Check {
    let options = StartOptions { timeout_ms: Some(60_000), ..StartOptions::default() };
    let process = sandbox.start("exit 3", options).await?;
    let ended = promptly("the end of a process", sandbox.wait(process.id)).await??;
    ensure_eq!((ended.status, ended.timed_out), (ProcessStatus::Ended(ExitStatus::Exited(3)), false));
    Ok(())
}

async fn a_process_reads_the_input_of_its_start_and_then_the_end(sandbox: Sandbox) -> Check {
    let options = StartOptions { stdin: "one\ntwo".into(), ..StartOptions::default() };
    let process = sandbox.start("cat; echo .", options).await?.id;
    ensure_eq!(wait(&sandbox, process).await?, ExitStatus::Exited(0));
    ensure_eq!(text(&log(&sandbox, process, EVERYTHING).await?), "one\ntwo.\n");
    ensure_fails!(sandbox.write_stdin(process, "more", false).await, Conflict);
    Ok(())
}

async fn a_process_reads_what_is_written_to_it_later_until_that_ends(sandbox: Sandbox) -> Check {
    let options = StartOptions { stdin: "one\n".into(), stdin_follows: true, ..StartOptions::default() };
    let line = "while read -r word; do echo got $word; done; echo end";
    let process = sandbox.start(line, options).await?.id;
    promptly("the first line", sandbox.wait_for_line(process, "got one", 30_000)).await??;
    sandbox.write_stdin(process, "two\n", false).await?;
    promptly("the second line", sandbox.wait_for_line(process, "got two", 30_000)).await??;
    sandbox.write_stdin(process, "three\n", true).await?;
    ensure_eq!(wait(&sandbox, process).await?, ExitStatus::Exited(0));
    ensure_eq!(text(&log(&sandbox, process, EVERYTHING).await?), "got one\ngot two\ngot three\nend\n");
    ensure_fails!(sandbox.write_stdin(process, "four\n", false).await, Conflict);
    ensure_fails!(sandbox.write_stdin(ProcessId(999), "x", false).await, NotFound);
    Ok(())
}

async fn input_of_64_kib_is_taken_and_a_byte_more_is_refused(sandbox: Sandbox) -> Check {
    let input = |bytes: usize| StartOptions { stdin: vec![b'x'; bytes].into(), ..StartOptions::default() };
    let process = sandbox.start("wc -c", input(MAX_STDIN_BYTES)).await?.id;
    ensure_eq!(wait(&sandbox, process).await?, ExitStatus::Exited(0));
    ensure_eq!(text(&log(&sandbox, process, EVERYTHING).await?).trim(), MAX_STDIN_BYTES.to_string());
    let known = sandbox.processes().await?.len();
    ensure_fails!(sandbox.start("wc -c", input(MAX_STDIN_BYTES + 1)).await, Invalid);
    ensure_eq!(sandbox.processes().await?.len(), known);
    Ok(())
}

async fn a_process_that_reads_nothing_is_given_no_more_than_it_can_hold(sandbox: Sandbox) -> Check {
    let options = StartOptions { stdin_follows: true, ..StartOptions::default() };
    let line = "until [ -e go ]; do sleep 0.02; done; wc -c";
    let process = sandbox.start(line, options).await?.id;
    let piece = vec![b'x'; MAX_STDIN_BYTES];
    let mut written = 0;
    let refusal = loop {
        match sandbox.write_stdin(process, piece.clone(), false).await {
            Ok(()) => written += piece.len(),
            Err(error) => break error,
        }
        ensure!(written <= 1 << 20, "{written} bytes were taken that nobody reads");
    };
    ensure_eq!(refusal.kind(), ErrorKind::Conflict);
    sandbox.write("go", "").await?;
    until("room for the end", async || Ok(sandbox.write_stdin(process, "", true).await.is_ok())).await?;
    ensure_eq!(wait(&sandbox, process).await?, ExitStatus::Exited(0));
    ensure_eq!(text(&log(&sandbox, process, EVERYTHING).await?).trim(), written.to_string());
    Ok(())
}

async fn a_process_on_a_terminal_is_typed_to(sandbox: Sandbox) -> Check {
    let pty = Some(PtySize { rows: 7, cols: 33 });
    let options = StartOptions { pty, stdin_follows: true, ..StartOptions::default() };
    let process = sandbox.start("tty -s && stty size; read -r word; echo got $word", options).await?.id;
    promptly("its size", sandbox.wait_for_line(process, "7 33", 30_000)).await??;
    sandbox.write_stdin(process, "typed\n", false).await?;
    ensure_eq!(wait(&sandbox, process).await?, ExitStatus::Exited(0));
    let shown = text(&log(&sandbox, process, EVERYTHING).await?);
    ensure!(shown.contains("got typed"), "it showed {shown:?}");
    Ok(())
}
