//! `shell`: outcomes as they are.

use std::sync::{Arc, Mutex};

use eyot::CancellationToken;
use eyot_tools::{ToolContext, handle_tool_call};
use libtest_mimic::{Failed, Trial};
use serde_json::json;

use crate::session::{Session, text};
use crate::{ensure, ensure_eq, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("a_command_s_true_exit_code_comes_back_and_its_failure_is_an_error", exit_codes),
        trial("a_command_that_is_out_of_time_has_124_its_output_so_far_and_a_sentence", deadline),
        trial("a_child_in_the_background_goes_on_after_its_call", background),
        trial("a_command_starts_where_it_is_told_to_and_else_in_home", working_dir),
        trial("of_a_long_output_head_and_tail_come_back_and_what_to_do_about_the_rest", long_output),
        trial("a_cancelled_call_kills_its_command_and_answers_with_the_output_so_far", cancelled),
        trial("whoever_watches_a_call_hears_of_its_output", progress),
    ]
}

async fn exit_codes() -> Result<(), Failed> {
    let session = Session::new()?;
    let commands =
        [("echo out; echo err >&2", 0), ("exit 3", 3), ("kill -9 $$", 137), ("nosuchprogram", 127)];
    for (command, code) in commands {
        let output = session.call("shell", json!({ "command": command })).await;
        let answer = output.structured.clone().ok_or("no answer")?;
        ensure_eq((&answer["exit_code"], output.is_error), (&json!(code), code != 0))?;
        ensure_eq(output.as_text(), answer.to_string())?;
    }
    let answer = session.ok("shell", json!({ "command": "echo out; echo err >&2" })).await?;
    ensure_eq(answer, json!({ "stdout": "out\n", "stderr": "err\n", "exit_code": 0 }))?;
    session.close().await
}

async fn deadline() -> Result<(), Failed> {
    let session = Session::new()?;
    let command = "echo so far; printf half >&2; sleep 600 & sleep 600";
    let output = session.call("shell", json!({ "command": command, "timeout_ms": 700.0 })).await;
    ensure(output.is_error, "no error")?;
    let said = "half\n[eyot] Command timed out after 700 milliseconds.\n";
    let answer = json!({ "stdout": "so far\n", "stderr": said, "exit_code": 124 });
    ensure_eq(output.structured, Some(answer))?;
    ensure_eq(session.shell("pgrep -c sleep || true").await?.trim().to_owned(), "0".to_owned())?;
    session.close().await
}

async fn background() -> Result<(), Failed> {
    let session = Session::new()?;
    session.shell("(until [ -e go ]; do sleep 0.05; done; echo done > went) &").await?;
    session.ok("write_file", json!({ "path": "go", "content": "" })).await?;
    ensure_eq(session.shell("until [ -s went ]; do sleep 0.05; done; cat went").await?, "done\n".to_owned())?;
    session.close().await
}

async fn working_dir() -> Result<(), Failed> {
    let session = Session::new()?;
    ensure_eq(session.shell("mkdir -p 'a b'; pwd").await?, "/home/user\n".to_owned())?;
    for (directory, is) in [("/tmp", "/tmp\n"), ("a b", "/home/user/a b\n"), ("a b/..", "/home/user\n")] {
        let answer = session.ok("shell", json!({ "command": "pwd", "working_dir": directory })).await?;
        ensure_eq(text(&answer["stdout"]), is.to_owned())?;
    }
    let said = session.refusal("shell", json!({ "command": "pwd", "working_dir": "nowhere" })).await?;
    ensure(said.contains("nowhere"), said)?;
    session.close().await
}

async fn long_output() -> Result<(), Failed> {
    let session = Session::new()?;
    let command = "echo first; head -c 5000000 /dev/zero | tr '\\0' x; echo; echo last";
    let output = text(&session.ok("shell", json!({ "command": command })).await?["stdout"]);
    ensure(output.starts_with("first\nxxx") && output.ends_with("xxx\nlast\n"), "an end is missing")?;
    let note = output.lines().find(|line| line.starts_with("[eyot: ")).ok_or("no note")?;
    ensure(note.contains("of 5000012 bytes are left out here") && note.contains("`read_file`"), note)?;
    ensure(output.len() < 66_000, output.len())?;
    session.close().await
}

async fn cancelled() -> Result<(), Failed> {
    let session = Session::new()?;
    let cancel = CancellationToken::new();
    let stop = cancel.clone();
    let context = session.context.clone().with_cancel(cancel).with_progress(move |_| stop.cancel());
    let call = json!({ "command": "echo begun; sleep 600" });
    let output = handle_tool_call(&context, &session.tools, "shell", call).await;
    let answer =
        json!({ "stdout": "begun\n", "stderr": "[eyot] Command was cancelled.\n", "exit_code": 130 });
    ensure_eq((output.structured, output.is_error), (Some(answer), true))?;
    ensure_eq(session.shell("pgrep -c sleep || true").await?.trim().to_owned(), "0".to_owned())?;
    session.close().await
}

async fn progress() -> Result<(), Failed> {
    let session = Session::new()?;
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hear = heard.clone();
    let context: ToolContext = session.context.clone().with_progress(move |progress| {
        hear.lock().expect("nobody panics").push((progress.done, progress.message));
    });
    let call = json!({ "command": "echo one; echo two" });
    handle_tool_call(&context, &session.tools, "shell", call).await;
    let heard = heard.lock().expect("nobody panics").clone();
    ensure(
        heard.first().is_some_and(|(done, message)| *done >= 4 && !message.is_empty()),
        format!("{heard:?}"),
    )?;
    session.close().await
}
