//! Calls of `coding` and `workspace` to a sandbox, over a driver that writes it down.

use std::sync::Arc;

use eyot::{Capabilities, Command, Limits, SandboxSpec};
use eyot_engine::{PoolOptions, SandboxPool};
use eyot_tools::{
    ExecPolicy, ToolOutput, Toolset, WorkspaceToolsOptions, handle_tool_call, toolset, workspace_tools,
};
use serde_json::{Value, json};

use crate::scripted::{Provider, Scripted};
use crate::{context, scripted};

/// A call, and what runs meanwhile.
async fn call(driver: &Arc<Scripted>, tools: &Toolset, name: &str, input: Value) -> ToolOutput {
    handle_tool_call(&context(driver), tools, name, input).await
}

#[tokio::test]
async fn bash_runs_a_shell_line_in_the_sandboxs_own_directory_and_reads_nothing() {
    let driver = Scripted::new(&[]);
    let (mut commands, tools) = (driver.commands(), toolset("coding").unwrap());
    let (answer, ()) = tokio::join!(call(&driver, &tools, "bash", json!({ "command": "x && y" })), async {
        let command = commands.recv().await.unwrap();
        assert_eq!(command.request.command, Command::shell("x && y"));
        assert_eq!(command.request.cwd.path.as_str(), "/workspace");
        assert!(!command.request.stdin && command.request.env.is_empty());
        command.stdout(b"out");
        command.exit(2);
    });
    assert_eq!(answer.as_text(), "out\n\nCommand exited with code 2");
    assert!(!answer.is_error);
}

#[tokio::test(start_paused = true)]
async fn bash_has_the_deadline_that_was_asked_for_and_keeps_the_output_so_far() {
    let driver = Scripted::new(&[]);
    let (mut commands, tools) = (driver.commands(), toolset("coding").unwrap());
    let input = json!({ "command": "x", "timeout": 86_400.5 });
    let (answer, _command) = tokio::join!(call(&driver, &tools, "bash", input), async {
        let command = commands.recv().await.unwrap();
        command.stdout(b"half");
        command
    });
    let sentence = "half\n[flue] Command timed out after 86400.5 seconds.\n\nCommand exited with code 124";
    assert_eq!(answer.as_text(), sentence);
    assert_eq!(driver.log.count("kill"), 1);
}

#[tokio::test(start_paused = true)]
async fn bash_without_a_timeout_has_the_sandboxs_own_deadline() {
    let driver = Scripted::new(&[]);
    let (mut commands, tools) = (driver.commands(), toolset("coding").unwrap());
    let limits = Limits { timeout_ms: Some(70), ..Limits::default() };
    let template = SandboxSpec { limits, ..SandboxSpec::default() };
    let options = PoolOptions { template, ..PoolOptions::default() };
    let pool = SandboxPool::open(Arc::new(Provider::of(&driver)), options).unwrap();
    let context = eyot_tools::ToolContext::new(pool);
    let call = handle_tool_call(&context, &tools, "bash", json!({ "command": "x" }));
    let (answer, _command) = tokio::join!(call, commands.recv());
    assert!(answer.as_text().starts_with("[flue] Command timed out after 0.07 seconds."), "{answer:?}");
}

#[tokio::test]
async fn a_policy_refuses_before_anything_happens_in_the_sandbox() {
    let exec = ExecPolicy {
        allowed_commands: Some(vec!["node".to_owned()]),
        max_timeout_ms: Some(1_000),
        ..ExecPolicy::default()
    };
    let options = WorkspaceToolsOptions { exec, ..WorkspaceToolsOptions::default() };
    let tools = workspace_tools(options, &Capabilities::default()).unwrap();
    for input in [
        json!({ "command": "python" }),
        json!({ "command": "node", "timeoutMs": 2_000 }),
        json!({ "command": "node", "env": { "PATH": "/evil" } }),
        json!({ "command": "node", "cwd": "../out" }),
    ] {
        let driver = scripted::Scripted::new(&[]);
        let answer = call(&driver, &tools, "exec_command", input.clone()).await;
        assert!(answer.is_error, "{input}");
        assert_eq!(driver.log.count("exec "), 0, "{input}: {:?}", driver.log.lines());
    }
}

#[tokio::test(start_paused = true)]
async fn a_sandboxs_own_deadline_is_never_compared_with_the_policys_longest() {
    let exec = ExecPolicy { max_timeout_ms: Some(1_000), ..ExecPolicy::default() };
    let options = WorkspaceToolsOptions { exec, ..WorkspaceToolsOptions::default() };
    let tools = workspace_tools(options, &Capabilities::default()).unwrap();
    let driver = Scripted::new(&[]);
    let mut commands = driver.commands();
    let call = call(&driver, &tools, "exec_command", json!({ "command": "node" }));
    let (answer, _command) = tokio::join!(call, commands.recv());
    let text = answer.as_text();
    assert!(text.starts_with("exit_code: 124\n\ntimed_out: true") && text.contains("30000"), "{text}");
}
