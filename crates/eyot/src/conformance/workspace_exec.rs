//! Commands through [`crate::Workspace`], as Anvia has them: a program and its arguments, a missing program as an exit
//! code, eight fields.

use std::sync::{Arc, Mutex, PoisonError};

use futures_util::StreamExt;

use super::Fixture;
use super::check::{
    Check, Failure, after_a_word_ms, cases, ensure, ensure_eq, ensure_fails, promptly, until, with_spec,
};
use crate::CancellationToken;
use crate::exec::Stdin;
use crate::sandbox::Sandbox;
use crate::workspace::{OutputCallback, WorkspaceExec, WorkspaceExecEvent, WorkspaceExecResult};

cases! {
    anvia_a_program_runs_without_a_shell(workspace) needs [Argv, Beneath];
    anvia_a_result_has_its_eight_fields(workspace) needs [Argv, Beneath];
    anvia_without_input_a_command_reads_the_end_at_once(workspace) needs [Argv, Beneath];
    anvia_input_and_variables_reach_the_command(workspace) needs [Argv, Beneath];
    anvia_a_signal_is_128_plus_its_number(workspace) needs [Argv, Beneath];
    anvia_an_empty_command_is_refused(workspace) needs [Argv, Beneath];
    anvia_a_cwd_is_relative_and_stays_in_the_workspace(workspace) needs [Argv, Beneath];
    anvia_a_cwd_that_a_link_leads_out_is_refused(workspace) needs [Argv, Beneath, Symlinks];
    anvia_a_missing_cwd_is_the_result_126(workspace) needs [Argv, Beneath];
    anvia_an_unknown_command_is_the_result_127(workspace) needs [Argv, Beneath];
    anvia_a_file_that_may_not_be_run_is_the_result_126(workspace) needs [Argv, Beneath];
    anvia_a_deadline_is_a_result_with_124_and_partial_output(workspace) needs [Argv, Beneath];
    anvia_a_deadline_of_zero_is_a_result(workspace) needs [Argv, Beneath];
    anvia_an_aborted_command_is_a_result(workspace) needs [Argv, Beneath];
    anvia_output_is_cut_at_the_limit_and_the_callbacks_see_all_of_it(fixture) needs [Argv, Beneath];
    anvia_a_background_child_delays_nothing(workspace) needs [Argv, Beneath];
    anvia_a_stream_has_every_piece_and_one_exit_last(workspace) needs [Argv, Beneath];
    anvia_a_character_that_two_pieces_share_comes_whole(workspace) needs [Argv, Beneath];
}

fn program(command: &str, args: &[&str]) -> WorkspaceExec {
    let args = args.iter().map(|argument| (*argument).to_owned()).collect();
    WorkspaceExec { command: command.to_owned(), args, ..WorkspaceExec::default() }
}

fn shell(line: &str) -> WorkspaceExec {
    program("sh", &["-c", line])
}

async fn run(sandbox: &Sandbox, exec: WorkspaceExec) -> Check<WorkspaceExecResult> {
    Ok(promptly("a command", sandbox.workspace().exec(exec)).await??)
}

async fn anvia_a_program_runs_without_a_shell(sandbox: Sandbox) -> Check {
    let result = run(&sandbox, program("printf", &["<%s>", "*", "$HOME", "a b"])).await?;
    ensure_eq!(result.stdout, "<*><$HOME><a b>");
    Ok(())
}

async fn anvia_a_result_has_its_eight_fields(sandbox: Sandbox) -> Check {
    let result = run(&sandbox, shell("echo out; echo err >&2; exit 3")).await?;
    let expected = WorkspaceExecResult {
        stdout: "out\n".to_owned(),
        stderr: "err\n".to_owned(),
        exit_code: 3,
        duration_ms: result.duration_ms,
        timed_out: false,
        aborted: false,
        stdout_truncated: false,
        stderr_truncated: false,
    };
    ensure_eq!(result, expected);
    Ok(())
}

async fn anvia_without_input_a_command_reads_the_end_at_once(sandbox: Sandbox) -> Check {
    ensure_eq!(run(&sandbox, program("cat", &[])).await?.stdout, "");
    Ok(())
}

async fn anvia_input_and_variables_reach_the_command(sandbox: Sandbox) -> Check {
    let mut exec = shell("cat; echo \"$WORD\"");
    exec.input = Stdin::Bytes("typed ".into());
    exec.env.insert("WORD".to_owned(), "a 'b'".to_owned());
    ensure_eq!(run(&sandbox, exec).await?.stdout, "typed a 'b'\n");
    Ok(())
}

async fn anvia_a_signal_is_128_plus_its_number(sandbox: Sandbox) -> Check {
    ensure_eq!(run(&sandbox, shell("kill -KILL $$")).await?.exit_code, 137);
    Ok(())
}

async fn anvia_an_empty_command_is_refused(sandbox: Sandbox) -> Check {
    for command in ["", "  "] {
        ensure_fails!(sandbox.workspace().exec(program(command, &[])).await, Invalid);
    }
    Ok(())
}

fn in_directory(cwd: &str, exec: WorkspaceExec) -> WorkspaceExec {
    WorkspaceExec { cwd: Some(cwd.to_owned()), ..exec }
}

async fn anvia_a_cwd_is_relative_and_stays_in_the_workspace(sandbox: Sandbox) -> Check {
    sandbox.write("deep/file", "").await?;
    let deep = format!("{}/deep\n", sandbox.cwd());
    ensure_eq!(run(&sandbox, in_directory("./x/../deep", program("pwd", &[]))).await?.stdout, deep);
    ensure_eq!(
        run(&sandbox, in_directory(".", program("pwd", &[]))).await?.stdout,
        format!("{}\n", sandbox.cwd())
    );
    for refused in ["/tmp", "..", "deep/../..", ""] {
        ensure_fails!(sandbox.workspace().exec(in_directory(refused, program("pwd", &[]))).await, Invalid);
    }
    Ok(())
}

async fn anvia_a_cwd_that_a_link_leads_out_is_refused(sandbox: Sandbox) -> Check {
    run(&sandbox, program("ln", &["-s", "/etc", "out"])).await?;
    ensure_fails!(sandbox.workspace().exec(in_directory("out", program("pwd", &[]))).await, Permission);
    Ok(())
}

async fn anvia_a_missing_cwd_is_the_result_126(sandbox: Sandbox) -> Check {
    sandbox.write("file", "").await?;
    for cwd in ["missing", "file"] {
        let result = run(&sandbox, in_directory(cwd, program("pwd", &[]))).await?;
        ensure_eq!((result.exit_code, result.stdout.as_str()), (126, ""));
        ensure!(!result.stderr.is_empty(), "nothing says what is missing");
    }
    Ok(())
}

async fn anvia_an_unknown_command_is_the_result_127(sandbox: Sandbox) -> Check {
    let result = run(&sandbox, program("no-such-program-at-all", &[])).await?;
    ensure_eq!((result.exit_code, result.timed_out, result.aborted), (127, false, false));
    ensure!(result.stderr.contains("no-such-program-at-all"), "stderr is {:?}", result.stderr);
    Ok(())
}

async fn anvia_a_file_that_may_not_be_run_is_the_result_126(sandbox: Sandbox) -> Check {
    sandbox.write("plain", "echo x").await?;
    ensure_eq!(run(&sandbox, program("./plain", &[])).await?.exit_code, 126);
    Ok(())
}

async fn anvia_a_deadline_is_a_result_with_124_and_partial_output(sandbox: Sandbox) -> Check {
    let deadline = after_a_word_ms();
    let exec = WorkspaceExec { timeout_ms: Some(deadline), ..shell("echo out; exec sleep 86460") };
    let result = run(&sandbox, exec).await?;
    ensure_eq!((result.exit_code, result.timed_out, result.aborted), (124, true, false));
    ensure_eq!(result.stdout, "out\n");
    let said = result.stderr.contains(&deadline.to_string());
    ensure!(said && result.duration_ms >= deadline, "{result:?}");
    Ok(())
}

async fn anvia_a_deadline_of_zero_is_a_result(sandbox: Sandbox) -> Check {
    let result = run(&sandbox, WorkspaceExec { timeout_ms: Some(0), ..shell("touch made") }).await?;
    ensure!(result.timed_out, "{result:?}");
    Ok(())
}

async fn anvia_an_aborted_command_is_a_result(sandbox: Sandbox) -> Check {
    let cancel = CancellationToken::new();
    let exec =
        WorkspaceExec { cancel: Some(cancel.clone()), ..shell("echo out; touch started; sleep 86461") };
    let aborting = async {
        let started = until("its start", async || Ok(sandbox.exists("started").await?)).await;
        cancel.cancel();
        started
    };
    let (result, started) = tokio::join!(run(&sandbox, exec), aborting);
    started?;
    let result = result?;
    ensure_eq!((result.aborted, result.timed_out, result.stdout.as_str()), (true, false, "out\n"));
    let before = WorkspaceExec { cancel: Some(cancel), ..shell("touch made") };
    ensure!(run(&sandbox, before).await?.aborted, "a command that was aborted before ran");
    ensure!(!sandbox.exists("made").await?, "a command that was aborted before ran");
    Ok(())
}

/// A callback, and how many bytes it saw.
fn counting() -> (OutputCallback, Arc<Mutex<usize>>) {
    let count = Arc::new(Mutex::new(0));
    let counter = count.clone();
    let callback: OutputCallback = Box::new(move |bytes| {
        *counter.lock().unwrap_or_else(PoisonError::into_inner) += bytes.len();
    });
    (callback, count)
}

async fn anvia_output_is_cut_at_the_limit_and_the_callbacks_see_all_of_it(
    fixture: Arc<dyn Fixture>,
) -> Check {
    let mut spec = fixture.spec();
    spec.limits.max_output_bytes = Some(5);
    with_spec(&*fixture, spec, async |sandbox: Sandbox| {
        let ((out, stdout), (err, stderr)) = (counting(), counting());
        let exec = shell("printf 12345; printf 'abcd\\303\\244fg' >&2");
        let result =
            run(&sandbox, WorkspaceExec { on_stdout: Some(out), on_stderr: Some(err), ..exec }).await?;
        ensure_eq!((result.stdout.as_str(), result.stdout_truncated), ("12345", false));
        ensure_eq!((result.stderr.as_str(), result.stderr_truncated), ("abcd\u{fffd}", true));
        let seen = [stdout, stderr].map(|count| *count.lock().unwrap_or_else(PoisonError::into_inner));
        ensure_eq!(seen, [5, 8]);
        Ok(())
    })
    .await
}

async fn anvia_a_background_child_delays_nothing(sandbox: Sandbox) -> Check {
    let result = run(&sandbox, shell("sleep 86462 & echo x")).await?;
    ensure_eq!((result.stdout.as_str(), result.exit_code), ("x\n", 0));
    Ok(())
}

async fn anvia_a_stream_has_every_piece_and_one_exit_last(sandbox: Sandbox) -> Check {
    let mut stream = sandbox.workspace().exec_stream(shell("echo out; echo err >&2; exit 2")).await?;
    let (mut stdout, mut stderr, mut exits) = (String::new(), String::new(), Vec::new());
    while let Some(event) = promptly("an event", stream.next()).await? {
        ensure!(exits.is_empty(), "something came after the exit");
        match event? {
            WorkspaceExecEvent::Stdout { text, .. } => stdout.push_str(&text),
            WorkspaceExecEvent::Stderr { text, .. } => stderr.push_str(&text),
            WorkspaceExecEvent::Exit { result } => exits.push(result),
        }
    }
    ensure_eq!((stdout.as_str(), stderr.as_str()), ("out\n", "err\n"));
    ensure!(
        exits.len() == 1 && exits[0].exit_code == 2 && exits[0].stdout == stdout,
        "the exits are {exits:?}"
    );
    Ok(())
}

async fn anvia_a_character_that_two_pieces_share_comes_whole(sandbox: Sandbox) -> Check {
    let line = "printf 'a\\360\\237'; sleep 0.2; printf '\\230\\200b'";
    let mut stream = sandbox.workspace().exec_stream(shell(line)).await?;
    let (mut text, mut bytes) = (String::new(), Vec::new());
    while let Some(event) = promptly("an event", stream.next()).await? {
        match event? {
            WorkspaceExecEvent::Stdout { text: piece, chunk } => {
                text.push_str(&piece);
                bytes.extend_from_slice(&chunk);
            }
            WorkspaceExecEvent::Stderr { text, .. } => {
                return Err(Failure::Broken(format!("stderr has {text:?}")));
            }
            WorkspaceExecEvent::Exit { .. } => {}
        }
    }
    ensure_eq!((text.as_str(), &bytes[..]), ("a😀b", "a😀b".as_bytes()));
    Ok(())
}
