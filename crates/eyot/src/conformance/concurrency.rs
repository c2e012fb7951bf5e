//! Many commands at once in one sandbox: independent, all correct.

use futures_util::future::join_all;

use super::check::{Check, cases, ensure, ensure_eq, output, promptly, sh};
use crate::exec::{ExecOptions, Outcome, Stdin};
use crate::sandbox::Sandbox;

cases! {
    e6_fifty_commands_at_once_are_independent_and_all_correct(workspace) needs [Shell];
    commands_that_wait_for_each_other_run_at_the_same_time(workspace) needs [Shell];
    twenty_commands_with_input_and_output_at_once_mix_nothing_up(workspace) needs [Shell];
    files_are_read_and_written_while_commands_run(workspace) needs [Shell];
}

async fn e6_fifty_commands_at_once_are_independent_and_all_correct(sandbox: Sandbox) -> Check {
    let run = async |index: i32| {
        let line = format!("echo out {index}; echo err {index} >&2; sleep 0.1; exit {index}");
        sh(&sandbox, &line).await
    };
    let results = promptly("fifty commands", join_all((0..50).map(run))).await?;
    for (index, result) in results.into_iter().enumerate() {
        let result = result?;
        ensure_eq!(result.outcome, Outcome::Exited(index as i32));
        ensure_eq!(result.stdout_text(), format!("out {index}\n"));
        ensure_eq!(result.stderr_text(), format!("err {index}\n"));
    }
    Ok(())
}

async fn commands_that_wait_for_each_other_run_at_the_same_time(sandbox: Sandbox) -> Check {
    let ping = "touch ping; while [ ! -e pong ]; do sleep 0.01; done; echo ping";
    let pong = "while [ ! -e ping ]; do sleep 0.01; done; touch pong; echo pong";
    let both = async { tokio::join!(output(&sandbox, ping), output(&sandbox, pong)) };
    let (ping, pong) = promptly("both", both).await?;
    ensure_eq!([ping?, pong?], ["ping", "pong"]);
    Ok(())
}

async fn twenty_commands_with_input_and_output_at_once_mix_nothing_up(sandbox: Sandbox) -> Check {
    let run = async |index: u8| {
        let content = vec![index; 200_000];
        let options = ExecOptions { stdin: Stdin::Bytes(content.clone().into()), ..ExecOptions::default() };
        let result = sandbox.exec("cat", options).await?;
        ensure!(result.stdout[..] == content[..], "command {index} got back something else");
        Ok(())
    };
    let checks = promptly("twenty commands", join_all((0..20).map(run))).await?;
    checks.into_iter().collect()
}

async fn files_are_read_and_written_while_commands_run(sandbox: Sandbox) -> Check {
    let flood = async {
        sh(&sandbox, "i=0; while [ $i -lt 200 ]; do cat /proc/self/status; i=$((i + 1)); done").await
    };
    let files = async {
        for index in 0..50 {
            let name = format!("file-{index}");
            sandbox.write(&name, name.clone()).await?;
            ensure_eq!(sandbox.read_text(&name).await?, name);
        }
        Check::Ok(())
    };
    let (flood, files) = promptly("both", async { tokio::join!(flood, files) }).await?;
    ensure!(flood?.success(), "the command failed");
    files
}
