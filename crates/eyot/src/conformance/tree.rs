//! Whole process trees: dead after a deadline however they hide; alive and undisturbed after a normal return.

use std::collections::BTreeMap;

use super::check::{Check, cases, ensure, ensure_eq, output, promptly, sh, slowness, until};
use crate::exec::{ExecOptions, Outcome};
use crate::sandbox::Sandbox;

cases! {
    k13_a_child_in_a_session_of_its_own_dies_with_the_deadline(workspace) needs [Shell, KillTree];
    k13_a_double_forked_grandchild_dies_with_the_deadline(workspace) needs [Shell, KillTree];
    k13_children_that_ignore_every_signal_die_with_the_deadline(workspace) needs [Shell, KillTree];
    k13_a_child_that_holds_the_pipes_dies_with_the_deadline(workspace) needs [Shell, KillTree];
    k13_a_child_whose_parents_are_gone_dies_with_the_deadline(workspace) needs [Shell, KillTree];
    k13_fifty_children_die_with_the_deadline(workspace) needs [Shell, KillTree];
    k13_children_that_keep_forking_die_with_the_deadline(workspace) needs [Shell, KillTree];
    k13_a_stopped_child_dies_with_the_deadline(workspace) needs [Shell, KillTree];
    a_deadline_kills_the_tree_of_its_own_command_and_no_other(workspace) needs [Shell, KillTree];
    a_background_child_delays_no_result_and_lives_on(workspace) needs [Shell, KillTree];
    a_background_child_in_a_session_of_its_own_lives_on(workspace) needs [Shell, KillTree];
    a_background_child_can_still_write_to_its_pipe(workspace) needs [Shell];
    a_background_child_that_floods_its_pipe_is_not_held_up(workspace) needs [Shell];
    commands_leave_no_zombies(workspace) needs [Shell, KillTree];
}

/// Counts the processes that have `mark` in their command line.
pub(super) async fn alive(sandbox: &Sandbox, mark: &str) -> Check<u64> {
    // The mark comes by a variable: in a command line it would find itself. A grep that is not GNU's ends a line's text
    // at a null byte, and is asked for one process after the other.
    let line = "if grep --version >/dev/null 2>&1; then
                    printf %s \"$MARK\" | grep -Flf - /proc/[0-9]*/cmdline 2>/dev/null | wc -l
                else
                    n=0
                    for one in /proc/[0-9]*/cmdline; do
                        tr '\\0' ' ' <$one 2>/dev/null | grep -Fq -- \"$MARK\" && n=$((n + 1))
                    done
                    echo $n
                fi 2>/dev/null";
    let env = BTreeMap::from([("MARK".to_owned(), mark.to_owned())]);
    let result = sandbox.exec(line, ExecOptions { env, ..ExecOptions::default() }).await?;
    let count = result.stdout_text().trim().parse();
    count.map_err(|_| super::check::Failure::Broken(format!("processes can't be listed: {result:?}")))
}

/// Waits until no process has `mark` in its command line.
pub(super) async fn cleared(sandbox: &Sandbox, mark: &str) -> Check {
    until("the death of every process", async || Ok(alive(sandbox, mark).await? == 0)).await
}

/// Runs a line past its deadline; nothing with `mark` in its command line may be left when the result is there.
async fn dead_after_the_deadline(sandbox: &Sandbox, line: &str, mark: &str) -> Check {
    let options = ExecOptions { timeout_ms: Some(700 * u64::from(slowness())), ..ExecOptions::default() };
    let result = promptly("the deadline", sandbox.exec(line, options)).await??;
    ensure_eq!((result.outcome, result.may_still_be_running), (Outcome::TimedOut, false));
    ensure_eq!(result.stdout_text(), "ready\n");
    ensure_eq!(alive(sandbox, mark).await?, 0);
    Ok(())
}

async fn k13_a_child_in_a_session_of_its_own_dies_with_the_deadline(sandbox: Sandbox) -> Check {
    dead_after_the_deadline(&sandbox, "setsid sleep 86410 & echo ready; wait", "86410").await
}

async fn k13_a_double_forked_grandchild_dies_with_the_deadline(sandbox: Sandbox) -> Check {
    let line = "(setsid sh -c 'setsid sleep 86411 & setsid sleep 86411 &' &); echo ready; sleep 86411";
    dead_after_the_deadline(&sandbox, line, "86411").await
}

async fn k13_children_that_ignore_every_signal_die_with_the_deadline(sandbox: Sandbox) -> Check {
    let line = "trap '' TERM INT HUP QUIT PIPE; sleep 86412 & echo ready; while :; do sleep 86412; done";
    dead_after_the_deadline(&sandbox, line, "86412").await
}

async fn k13_a_child_that_holds_the_pipes_dies_with_the_deadline(sandbox: Sandbox) -> Check {
    let line = "(setsid sh -c 'sleep 86413; echo late' &); echo ready; sleep 86413";
    dead_after_the_deadline(&sandbox, line, "86413").await
}

async fn k13_a_child_whose_parents_are_gone_dies_with_the_deadline(sandbox: Sandbox) -> Check {
    let line = "sh -c 'sh -c \"nohup sleep 86414 >/dev/null 2>&1 &\" &'; echo ready; sleep 86414";
    dead_after_the_deadline(&sandbox, line, "86414").await
}

async fn k13_fifty_children_die_with_the_deadline(sandbox: Sandbox) -> Check {
    let line = "i=0; while [ $i -lt 50 ]; do sleep 86415 & i=$((i + 1)); done; echo ready; wait";
    dead_after_the_deadline(&sandbox, line, "86415").await
}

async fn k13_children_that_keep_forking_die_with_the_deadline(sandbox: Sandbox) -> Check {
    let runner = "while :; do sleep 0.01; : 86416; done";
    let line = format!("for i in 1 2 3; do setsid sh -c '{runner}' & done; echo ready; wait");
    dead_after_the_deadline(&sandbox, &line, "86416").await
}

async fn k13_a_stopped_child_dies_with_the_deadline(sandbox: Sandbox) -> Check {
    let line = "sleep 86417 & kill -STOP $!; setsid sh -c 'kill -STOP $$; : 86417' & echo ready; sleep 86417";
    dead_after_the_deadline(&sandbox, line, "86417").await
}

async fn a_deadline_kills_the_tree_of_its_own_command_and_no_other(sandbox: Sandbox) -> Check {
    output(&sandbox, "sleep 86418 >/dev/null 2>&1 &").await?;
    dead_after_the_deadline(&sandbox, "echo ready; sleep 86419", "86419").await?;
    ensure_eq!(alive(&sandbox, "86418").await?, 1);
    Ok(())
}

async fn a_background_child_delays_no_result_and_lives_on(sandbox: Sandbox) -> Check {
    let result = promptly("the result", sh(&sandbox, "sleep 86420 & echo started")).await??;
    ensure_eq!((result.outcome, &result.stdout[..]), (Outcome::Exited(0), &b"started\n"[..]));
    ensure!(result.duration_ms < 5_000 * u64::from(slowness()), "it took {} ms", result.duration_ms);
    output(&sandbox, "true").await?;
    ensure_eq!(alive(&sandbox, "86420").await?, 1);
    Ok(())
}

async fn a_background_child_in_a_session_of_its_own_lives_on(sandbox: Sandbox) -> Check {
    promptly("the result", sh(&sandbox, "(setsid sh -c 'setsid sleep 86421 &' &); exit 0")).await??;
    until("its start", async || Ok(alive(&sandbox, "86421").await? >= 1)).await?;
    output(&sandbox, "true").await?;
    ensure_eq!(alive(&sandbox, "86421").await?, 1);
    Ok(())
}

async fn a_background_child_can_still_write_to_its_pipe(sandbox: Sandbox) -> Check {
    let line = "(sleep 0.4; echo late; echo late >&2; echo survived > note) & echo now";
    let result = promptly("the result", sh(&sandbox, line)).await??;
    ensure_eq!(result.stdout_text(), "now\n");
    until("what it does after it wrote", async || Ok(sandbox.exists("note").await?)).await
}

async fn a_background_child_that_floods_its_pipe_is_not_held_up(sandbox: Sandbox) -> Check {
    let line = "(sleep 0.3; head -c 2000000 /dev/zero; echo survived > note) & echo now";
    promptly("the result", sh(&sandbox, line)).await??;
    until("what it does after it wrote", async || Ok(sandbox.exists("note").await?)).await
}

async fn commands_leave_no_zombies(sandbox: Sandbox) -> Check {
    for _ in 0..10 {
        output(&sandbox, "(sleep 0.01 &); (setsid sleep 0.02 &); true").await?;
    }
    let line = "grep -l '^State:.Z' /proc/[0-9]*/status 2>/dev/null | wc -l";
    until("the end of every zombie", async || Ok(output(&sandbox, line).await?.trim() == "0")).await
}
