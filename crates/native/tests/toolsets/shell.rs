//! `anthropic`'s `bash`: a session that outlives its commands.

use std::sync::Arc;

use eyot_tools::{AnthropicToolsOptions, anthropic_tools};
use libtest_mimic::{Failed, Trial};
use serde_json::json;

use crate::computer::Computer;
use crate::{ensure, same, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("anthropic_bash_keeps_directory_variables_functions_aliases_and_options", kept),
        trial("anthropic_bash_begins_anew_after_a_restart", restart),
        trial("anthropic_bash_survives_exit_a_syntax_error_and_errexit", survives),
        trial("anthropic_bash_keeps_its_session_whatever_options_and_traps_a_command_sets", unusual),
        trial("anthropic_a_deadline_keeps_the_output_and_the_session", deadline),
        trial("anthropic_a_command_that_reads_gets_nothing_and_does_not_hang", reads),
        trial("anthropic_commands_of_one_session_run_one_after_the_other", in_turn),
        trial("anthropic_a_background_process_runs_on", background),
        trial("anthropic_a_flood_of_output_keeps_both_ends", flood),
        trial("anthropic_two_toolsets_over_one_sandbox_share_its_session", shared),
    ]
}

async fn say(computer: &Computer, command: &str) -> Result<String, Failed> {
    computer.ok("bash", json!({ "command": command })).await
}

async fn kept() -> Result<(), Failed> {
    let computer = Computer::new("anthropic")?;
    let setup = "mkdir -p '/tmp/a b'; cd '/tmp/a b'; x=$'one\\ntwo \\' \"$'; export Y=y; a=(1 '2 3'); declare -A m=([k]=v)\n\
                 f() { echo \"f $1\"; }; shopt -s expand_aliases extglob; alias hi='echo hi'; umask 077; readonly R=r";
    same(say(&computer, setup).await?, "")?;
    let line = "pwd; printf '%s|' \"$x\" \"${a[1]}\" \"${m[k]}\" \"$R\"; sh -c 'echo $Y'; f 1; hi; umask; [[ ab == @(ab) ]]";
    same(say(&computer, line).await?, "/tmp/a b\none\ntwo ' \"$|2 3|v|r|y\nf 1\nhi\n0077")?;
    same(say(&computer, "unset x; cd ..; Y=z").await?, "")?;
    same(say(&computer, "echo \"${x-none} $PWD\"; sh -c 'echo $Y'").await?, "none /tmp\nz")
}

async fn restart() -> Result<(), Failed> {
    let computer = Computer::new("anthropic")?;
    say(&computer, "x=1; cd /tmp").await?;
    same(computer.ok("bash", json!({ "restart": true })).await?, "tool has been restarted.")?;
    same(say(&computer, "echo \"${x-none} $PWD\"").await?, "none /home/user")?;
    same(computer.error("bash", json!({})).await?, "no command provided.")
}

async fn survives() -> Result<(), Failed> {
    let computer = Computer::new("anthropic")?;
    same(say(&computer, "x=kept; exit 3").await?, "Command exited with code 3")?;
    let broken = say(&computer, "echo 'unclosed").await?;
    ensure(broken.contains("unexpected EOF") && broken.contains("\nCommand exited with code "), &broken)?;
    ensure(!broken.contains("eyot") && !broken.contains("near unexpected token"), broken)?;
    same(say(&computer, "set -e; y=kept; false; y=lost").await?, "Command exited with code 1")?;
    same(say(&computer, "echo $x $y; set +e").await?, "kept kept")?;
    let missing = say(&computer, "nowhere-to-be-found").await?;
    let expected = "nowhere-to-be-found: command not found\nCommand exited with code 127";
    ensure(missing.ends_with(expected), missing)?;
    same(say(&computer, "rmdir /tmp/gone 2>&-; mkdir /tmp/gone; cd /tmp/gone; rmdir /tmp/gone").await?, "")?;
    same(say(&computer, "echo still here").await?, "still here")
}

async fn unusual() -> Result<(), Failed> {
    let computer = Computer::new("anthropic")?;
    same(say(&computer, "trap 'echo bye' EXIT; a=1; cd /tmp").await?, "bye")?;
    same(say(&computer, "echo $a $PWD; set -uC; b=2").await?, "1 /tmp")?;
    same(
        say(&computer, "mkdir() { echo mine; }; mv() { echo mine; }; cd() { builtin cd \"$@\" && echo in; }")
            .await?,
        "",
    )?;
    same(say(&computer, "cd /; echo $a $b; c=3").await?, "in\n1 2")?;
    same(say(&computer, "pwd; echo $c; set -- x y; false").await?, "/\n3\nCommand exited with code 1")?;
    same(say(&computer, "set -x").await?, "")?;
    same(say(&computer, "echo $c").await?, "3\n+ eval 'echo $c'\n++ echo 3")?;
    same(
        say(&computer, "set +x; exec echo replaced").await?,
        "replaced\n+ eval 'set +x; exec echo replaced'\n++ set +x",
    )
}

async fn deadline() -> Result<(), Failed> {
    let options = AnthropicToolsOptions { bash_timeout_ms: 1_000, ..AnthropicToolsOptions::default() };
    let computer = Computer::with(anthropic_tools(options)?)?;
    say(&computer, "x=kept").await?;
    let error = computer.error("bash", json!({ "command": "x=lost; echo begun; sleep 1000" })).await?;
    same(error, "begun\nError: Command timed out after 1 seconds")?;
    same(say(&computer, "echo $x; pgrep -c sleep").await?, "kept\n0\nCommand exited with code 1")
}

async fn reads() -> Result<(), Failed> {
    let computer = Computer::new("anthropic")?;
    same(say(&computer, "cat; read line; echo \"[$line]\"").await?, "[]")
}

async fn in_turn() -> Result<(), Failed> {
    let computer = Arc::new(Computer::new("anthropic")?);
    say(&computer, "n=0").await?;
    let calls = (0..20).map(|_| {
        let computer = computer.clone();
        tokio::spawn(async move { computer.call("bash", json!({ "command": "n=$((n + 1))" })).await })
    });
    for call in calls.collect::<Vec<_>>() {
        ensure(!call.await?.is_error, "a call failed")?;
    }
    same(say(&computer, "echo $n").await?, "20")
}

async fn background() -> Result<(), Failed> {
    let computer = Computer::new("anthropic")?;
    same(say(&computer, "sleep 1000 & p=$!; echo on").await?, "on")?;
    same(say(&computer, "kill -0 $p && echo runs; kill $p").await?, "runs")
}

async fn flood() -> Result<(), Failed> {
    let computer = Computer::new("anthropic")?;
    let answer = say(&computer, "seq 1 1000000").await?;
    ensure(answer.starts_with("1\n2\n") && answer.ends_with("\n1000000"), &answer[..40])?;
    ensure(answer.len() < 70_000, format!("{} bytes", answer.len()))
}

async fn shared() -> Result<(), Failed> {
    let mut computer = Computer::new("anthropic")?;
    say(&computer, "x=1").await?;
    computer.tools = eyot_tools::toolset("anthropic")?;
    same(say(&computer, "echo $x").await?, "1")
}
