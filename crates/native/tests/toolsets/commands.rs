//! `coding`'s `bash`.

use std::sync::{Arc, Mutex};

use eyot::CancellationToken;
use eyot_tools::handle_tool_call;
use libtest_mimic::{Failed, Trial};
use serde_json::json;

use crate::computer::Computer;
use crate::{ensure, same, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("coding_bash_says_what_was_printed_and_the_code", code),
        trial("coding_a_deadline_keeps_the_output_so_far_and_kills_the_tree", deadline),
        trial("coding_a_flood_of_output_shows_its_end", flood),
        trial("coding_a_cancelled_command_is_killed_and_keeps_its_output", cancelled),
        trial("coding_a_background_child_does_not_hold_the_answer_up", background),
    ]
}

async fn code() -> Result<(), Failed> {
    let computer = Computer::new("coding")?;
    let answer = computer.ok("bash", json!({ "command": "echo out; echo err >&2; exit 3" })).await?;
    same(answer, "out\n\nerr\n\nCommand exited with code 3")?;
    let line = "set -o pipefail; a=(1 2); [[ ${a[1]} == 2 ]] && printf '%s' \"$PWD\"";
    same(computer.ok("bash", json!({ "command": line })).await?, "/home/user")
}

async fn deadline() -> Result<(), Failed> {
    let computer = Computer::new("coding")?;
    let line = "echo begun; (sleep 1000; touch /home/user/late) & sleep 1000";
    let answer = computer.ok("bash", json!({ "command": line, "timeout": 0.5 })).await?;
    same(answer, "begun\n\n[flue] Command timed out after 0.5 seconds.\n\nCommand exited with code 124")?;
    let left = computer.ok("bash", json!({ "command": "pgrep -c sleep || true" })).await?;
    same(left, "0")
}

async fn flood() -> Result<(), Failed> {
    let computer = Computer::new("coding")?;
    let answer = computer.ok("bash", json!({ "command": "seq 1 1000000; echo end" })).await?;
    ensure(answer.starts_with("998002\n") && answer.ends_with("\n1000000\nend"), &answer[..40])?;
    let answer = computer.ok("bash", json!({ "command": "head -c 5000000 /dev/zero | tr '\\0' x" })).await?;
    ensure(answer == "x".repeat(51_200), format!("{} characters", answer.len()))
}

async fn cancelled() -> Result<(), Failed> {
    let computer = Computer::new("coding")?;
    let cancel = CancellationToken::new();
    let heard = Arc::new(Mutex::new(String::new()));
    let (ends, hears) = (cancel.clone(), heard.clone());
    let context = computer.context.clone().with_cancel(cancel).with_progress(move |progress| {
        *hears.lock().expect("nobody panics") = progress.message;
        ends.cancel();
    });
    let input = json!({ "command": "echo begun; sleep 1000" });
    let answer = handle_tool_call(&context, &computer.tools, "bash", input).await;
    same(answer.as_text(), "begun\n\nThe operation was aborted.")?;
    ensure(answer.is_error, "it is no error")?;
    same(heard.lock().expect("nobody panics").as_str(), "begun")
}

async fn background() -> Result<(), Failed> {
    let computer = Computer::new("coding")?;
    same(computer.ok("bash", json!({ "command": "sleep 1000 & echo on" })).await?, "on")
}
