//! Programs that agents run: some fail, some hang, and many run at once.

use eyot::{CancellationToken, Command, ExecOptions};
use futures_util::future::try_join_all;

use crate::streams::{end_of, next_text};
use crate::transcript::{Agent, Check};

/// Compares the results as the shell sees them and as the handle does.
pub async fn end_by_codes_and_signals(agent: &mut Agent<'_>) -> Check {
    for line in [
        "exit 0",
        "exit 3",
        "exit 256",
        "false | true",
        "set -o pipefail; false | true",
        "kill -TERM $$",
        "kill -9 $$",
        "{ bash -c 'kill -SEGV $$'; } 2> /dev/null; echo $?",
        "no-such-program",
        "/etc/passwd",
        "echo 'unclosed",
        "trap 'echo caught; exit 5' INT; kill -INT $$; echo not here",
        "timeout 0.1 sleep 10; echo $?",
        "python3 -c 'import sys; sys.exit(\"said\")'",
        "python3 -c 'import os, signal; os.kill(os.getpid(), signal.SIGABRT)'",
        "node -e 'process.exitCode = 9'",
        "node -e 'throw new TypeError(\"thrown\")' 2>&1 | grep TypeError:",
        "yes | head -1",
        "sh -c 'echo out; echo err >&2; exit 1'",
    ] {
        agent.run(line).await?;
    }
    let argv = Command::argv(["printf", "%s|", "a b", "$HOME", "*"]);
    let result = agent.sandbox.exec(argv, ExecOptions::default()).await?;
    agent.note(format_args!("{:?} {}", result.outcome, result.stdout_text()));
    Ok(())
}

/// Children in new sessions, children that ignore signals, and orphans.
const TREE: &str = "\
trap '' TERM INT HUP
setsid sleep 4321 &
(setsid sh -c 'trap \"\" TERM; sleep 4321; sleep 4321' &)
nohup sleep 4321 > /dev/null 2>&1 &
echo begun
sleep 4321
echo not here";

/// Nothing of the tree is left after a deadline, nor after a cancel, and the sandbox still works.
pub async fn kill_a_tree_at_its_deadline(agent: &mut Agent<'_>) -> Check {
    let options = ExecOptions { timeout_ms: Some(3000), ..ExecOptions::default() };
    let result = agent.run_with(TREE, options).await?;
    agent.note(format_args!("not before its time: {}", result.duration_ms >= 3000));
    agent.note(format_args!("{:?}", result.flatten().stderr));
    agent.run("pgrep --count --full '[s]leep 4321'").await?;
    let cancel = CancellationToken::new();
    let options = ExecOptions { cancel: Some(cancel.clone()), ..ExecOptions::default() };
    let mut running = agent.sandbox.exec_stream("setsid sleep 4322 & echo begun; wait", options).await?;
    agent.note(format_args!("{:?}", next_text(&mut running).await?));
    cancel.cancel();
    agent.note(end_of(running).await?);
    agent.run("pgrep --count --full '[s]leep 4322'; echo still here").await?;
    let options = ExecOptions { timeout_ms: Some(60_000), ..ExecOptions::default() };
    agent.run_with("sleep 0.2; echo in time", options).await.map(drop)
}

/// Each has its own files and output.
pub async fn run_thirty_commands_at_once(agent: &mut Agent<'_>) -> Check {
    let one = async |n: usize| {
        let line =
            format!("echo {n} > f{n}; seq {n} | sha256sum | cut -c1-8; sleep 0.2; cat f{n} >&2; exit {n}");
        agent.sandbox.exec(line, ExecOptions::default()).await
    };
    let results = try_join_all((0..30).map(one)).await?;
    for result in results {
        let said = (result.stdout_text(), result.stderr_text());
        agent.note(format_args!("{:?} {:?} {:?}", result.outcome, said.0, said.1));
    }
    agent.run("ls | wc -l; cat f* | sort -n | tr '\\n' ' '").await
}
