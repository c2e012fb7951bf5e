use std::sync::{Arc, Mutex};

use bytes::Bytes;
use eyot::{
    CancellationToken, Capability, ErrorKind, FileType, Limits, PageOptions, SandboxSpec, WorkspaceEntry,
    WorkspaceExec, WorkspaceExecEvent,
};
use futures_util::StreamExt;

use crate::scripted::{Scripted, error};

fn command(command: &str) -> WorkspaceExec {
    WorkspaceExec { command: command.into(), ..WorkspaceExec::default() }
}

#[tokio::test]
async fn every_path_is_relative_and_held_beneath_the_workspace() {
    let driver = Scripted::new(&[]);
    let workspace = driver.sandbox().await.workspace();
    for path in ["", "/etc/passwd", "../x", "a/../..", "a\0"] {
        assert_eq!(workspace.read_file(path).await.unwrap_err().kind(), ErrorKind::Invalid, "{path:?}");
        assert_eq!(workspace.list_files(path).await.unwrap_err().kind(), ErrorKind::Invalid, "{path:?}");
    }
    assert_eq!(workspace.write_file(".", "x").await.unwrap_err().kind(), ErrorKind::Invalid);
    assert_eq!(driver.log.lines(), ["create"]);
    workspace.read_file("a\\b").await.unwrap();
    assert_eq!(driver.log.lines()[1], "read /workspace/a/b");
}

#[tokio::test]
async fn a_provider_that_cannot_hold_paths_is_refused_before_anything_happens() {
    let driver = Scripted::new(&[Capability::Beneath]);
    let workspace = driver.sandbox().await.workspace();
    let refused = workspace.write_file("a", "x").await.unwrap_err();
    assert_eq!(refused.to_string(), "scripted does not support write_file with \"beneath\"");
    assert_eq!(driver.log.lines(), ["create"]);
}

#[tokio::test]
async fn a_listing_has_paths_relative_to_the_workspace() {
    let driver = Scripted::new(&[]);
    let workspace = driver.sandbox().await.workspace();
    let entry = |path: &str| WorkspaceEntry { path: path.into(), file_type: FileType::Directory, size: None };
    assert_eq!(workspace.list_files(".").await.unwrap(), [entry("x")]);
    assert_eq!(workspace.list_files("a/b/").await.unwrap(), [entry("a/b/x")]);
}

#[tokio::test]
async fn a_result_has_exactly_anvias_eight_fields() {
    let driver = Scripted::new(&[]);
    let workspace = driver.sandbox().await.workspace();
    let mut commands = driver.commands();
    let exec = WorkspaceExec { args: vec!["-x".into()], cwd: Some("d".into()), ..command("prog") };
    let (result, ()) = tokio::join!(workspace.exec(exec), async {
        let command = commands.recv().await.unwrap();
        assert_eq!(command.request.command, eyot::Command::argv(["prog", "-x"]));
        assert_eq!(command.request.cwd.path.as_str(), "/workspace/d");
        assert_eq!(command.request.cwd.beneath.as_ref().map(eyot::SandboxPath::as_str), Some("/workspace"));
        command.stdout(b"out");
        command.exit(3);
    });
    let json = serde_json::to_value(result.unwrap()).unwrap();
    let fields: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
    let anvias = [
        "aborted",
        "durationMs",
        "exitCode",
        "stderr",
        "stderrTruncated",
        "stdout",
        "stdoutTruncated",
        "timedOut",
    ];
    assert_eq!(fields, anvias);
    assert_eq!((&json["stdout"], &json["exitCode"]), (&"out".into(), &3.into()));
}

#[tokio::test(start_paused = true)]
async fn the_deadline_is_the_calls_then_the_specs_then_thirty_seconds() {
    let limits = Limits { timeout_ms: Some(70), ..Limits::default() };
    for (limits, own, expected) in
        [(Limits::default(), None, 30_000), (limits.clone(), None, 70), (limits, Some(5), 5)]
    {
        let driver = Scripted::new(&[]);
        let workspace = driver.sandbox_of(SandboxSpec { limits, ..SandboxSpec::default() }).await.workspace();
        let result = workspace.exec(WorkspaceExec { timeout_ms: own, ..command("x") }).await.unwrap();
        assert_eq!((result.timed_out, result.exit_code), (true, 124));
        assert!((expected..expected + 5).contains(&result.duration_ms), "{result:?}");
        assert_eq!(result.stderr, format!("[eyot] Command timed out after {expected} milliseconds.\n"));
    }
}

#[tokio::test]
async fn an_aborted_command_resolves() {
    let driver = Scripted::new(&[]);
    let workspace = driver.sandbox().await.workspace();
    let token = CancellationToken::new();
    token.cancel();
    let result = workspace.exec(WorkspaceExec { cancel: Some(token), ..command("x") }).await.unwrap();
    assert_eq!((result.aborted, result.exit_code), (true, 130));
}

#[tokio::test]
async fn what_cannot_be_started_is_the_exit_code_that_a_shell_gives() {
    let driver = Scripted::new(&[]);
    let workspace = driver.sandbox().await.workspace();
    let cases = [
        (ErrorKind::NotFound, None, 127),
        (ErrorKind::NotFound, Some("missing"), 126),
        (ErrorKind::Permission, None, 126),
        (ErrorKind::NotDirectory, Some("file"), 126),
    ];
    for (kind, cwd, exit_code) in cases {
        driver.refusals.lock().unwrap().push_back(error(kind));
        let exec = WorkspaceExec { cwd: cwd.map(str::to_owned), ..command("x") };
        let result = workspace.exec(exec).await.unwrap();
        assert_eq!(result.exit_code, exit_code);
        assert!(result.stderr.ends_with("as the test wants it\n"));
    }
    driver.refusals.lock().unwrap().push_back(error(ErrorKind::Unavailable));
    assert_eq!(workspace.exec(command("x")).await.unwrap_err().kind(), ErrorKind::Unavailable);
}

#[tokio::test]
async fn an_empty_command_is_refused() {
    let driver = Scripted::new(&[]);
    let workspace = driver.sandbox().await.workspace();
    let refused = workspace.exec(command("  ")).await.unwrap_err();
    assert_eq!(
        (refused.kind(), refused.to_string()),
        (ErrorKind::Invalid, "sandbox command cannot be empty".into())
    );
}

#[tokio::test]
async fn a_stream_yields_chunks_with_their_text_and_then_one_exit() {
    let driver = Scripted::new(&[]);
    let workspace = driver.sandbox().await.workspace();
    let mut commands = driver.commands();
    let events = workspace.exec_stream(command("x")).await.unwrap();
    let running = commands.recv().await.unwrap();
    running.stdout(b"a\xc3");
    running.stdout(b"\xa4");
    running.exit(0);
    let events: Vec<_> = events.map(Result::unwrap).collect().await;
    let chunk = |chunk: &'static [u8], text: &str| WorkspaceExecEvent::Stdout {
        chunk: Bytes::from_static(chunk),
        text: text.to_owned(),
    };
    assert_eq!(events[..2], [chunk(b"a\xc3", "a"), chunk(b"\xa4", "ä")]);
    assert!(matches!(&events[2], WorkspaceExecEvent::Exit { result } if result.stdout == "aä"));
    assert_eq!(events.len(), 3);
}

#[tokio::test]
async fn a_stream_s_error_comes_after_what_was_written_and_instead_of_the_exit() {
    let driver = Scripted::new(&[]);
    let workspace = driver.sandbox().await.workspace();
    let mut commands = driver.commands();
    let mut events = workspace.exec_stream(command("x")).await.unwrap();
    let running = commands.recv().await.unwrap();
    running.stdout(b"so far");
    running.events.send(Err(error(ErrorKind::Unavailable))).unwrap();
    let first = events.next().await.unwrap().unwrap();
    assert!(matches!(first, WorkspaceExecEvent::Stdout { text, .. } if text == "so far"));
    assert_eq!(events.next().await.unwrap().unwrap_err().kind(), ErrorKind::Unavailable);
    assert!(events.next().await.is_none());
}

#[tokio::test]
async fn callbacks_see_every_byte_also_beyond_the_cap() {
    let driver = Scripted::new(&[]);
    let limits = Limits { max_output_bytes: Some(1), ..Limits::default() };
    let workspace = driver.sandbox_of(SandboxSpec { limits, ..SandboxSpec::default() }).await.workspace();
    let mut commands = driver.commands();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let sink = seen.clone();
    let on_stdout = Box::new(move |chunk: &Bytes| sink.lock().unwrap().extend_from_slice(chunk));
    let exec = WorkspaceExec { on_stdout: Some(on_stdout), ..command("x") };
    let (result, ()) = tokio::join!(workspace.exec(exec), async {
        let running = commands.recv().await.unwrap();
        running.stdout(b"abc");
        running.exit(0);
    });
    let result = result.unwrap();
    assert_eq!((result.stdout.as_str(), result.stdout_truncated), ("a", true));
    assert_eq!(&seen.lock().unwrap()[..], b"abc");
}

#[tokio::test]
async fn text_loses_its_byte_order_mark_and_a_page_its_rest() {
    let driver = Scripted::new(&[]);
    let workspace = driver.sandbox().await.workspace();
    *driver.file.lock().unwrap() = Bytes::from(&b"\xEF\xBB\xBFone\ntwo\n\xff"[..]);
    assert_eq!(workspace.read_text_file("a").await.unwrap(), "one\ntwo\n\u{fffd}");
    let page =
        workspace.read_text_file_page("a", PageOptions { line_count: 1, ..PageOptions::default() }).await;
    let page = page.unwrap();
    assert_eq!((page.content.as_str(), page.next_start_line), ("one\n", Some(2)));
    let refused =
        workspace.read_text_file_page("a", PageOptions { max_bytes: 0, ..PageOptions::default() }).await;
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Invalid);
}
