//! Commands beyond what a kernel takes: each works or fails with a typed error, and the sandbox is as good as before.

use super::check::{Check, cases, ensure, ensure_eq, ensure_fails, output, promptly};
use crate::error::Result;
use crate::exec::{Command, ExecOptions, ExecResult};
use crate::sandbox::Sandbox;

cases! {
    a_shell_line_of_100_kilobytes_works(workspace) needs [Shell];
    a_shell_line_of_two_mebibytes_works_or_is_refused(workspace) needs [Shell];
    a_thousand_arguments_work(workspace) needs [Argv];
    a_hundred_thousand_arguments_work_or_are_refused(workspace) needs [Argv, Shell];
    variables_of_a_mebibyte_work_or_are_refused(workspace) needs [Shell];
}

/// It worked and printed `expected`, or was refused as what it is; and the next command is fine.
async fn works_or_is_refused(sandbox: &Sandbox, result: Result<ExecResult>, expected: &str) -> Check {
    match result {
        Ok(result) => ensure_eq!(result.stdout_text(), expected),
        refused => ensure_fails!(refused, Invalid | TooLarge),
    }
    ensure_eq!(output(sandbox, "echo fine").await?, "fine");
    Ok(())
}

async fn a_shell_line_of_100_kilobytes_works(sandbox: Sandbox) -> Check {
    let line = format!("x={}; echo ${{#x}}", "y".repeat(100_000));
    ensure_eq!(output(&sandbox, &line).await?, "100000");
    Ok(())
}

async fn a_shell_line_of_two_mebibytes_works_or_is_refused(sandbox: Sandbox) -> Check {
    let line = format!(": {}; echo done", "y".repeat(2 << 20));
    let result = promptly("a long line", sandbox.exec(line, ExecOptions::default())).await?;
    works_or_is_refused(&sandbox, result, "done\n").await
}

/// Counts its arguments.
fn counting(arguments: usize) -> Command {
    let counter = ["sh", "-c", "echo $#", "sh"].into_iter().map(str::to_owned);
    Command::argv(counter.chain((0..arguments).map(|index| index.to_string())))
}

async fn a_thousand_arguments_work(sandbox: Sandbox) -> Check {
    let result = sandbox.exec(counting(1000), ExecOptions::default()).await?;
    ensure_eq!(result.stdout_text(), "1000\n");
    Ok(())
}

async fn a_hundred_thousand_arguments_work_or_are_refused(sandbox: Sandbox) -> Check {
    let result = promptly("many arguments", sandbox.exec(counting(100_000), ExecOptions::default())).await?;
    works_or_is_refused(&sandbox, result, "100000\n").await
}

async fn variables_of_a_mebibyte_work_or_are_refused(sandbox: Sandbox) -> Check {
    let env = (0..16).map(|index| (format!("LARGE_{index}"), "x".repeat(64 << 10))).collect();
    let options = ExecOptions { env, ..ExecOptions::default() };
    let result = promptly("large variables", sandbox.exec("echo ${#LARGE_15}", options)).await?;
    works_or_is_refused(&sandbox, result, "65536\n").await?;
    ensure!(output(&sandbox, "echo ${LARGE_15-unset}").await? == "unset", "the variables stuck");
    Ok(())
}
