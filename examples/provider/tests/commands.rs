//! What the suite tries with a shell only, tried here without: who is killed, and who delays nothing.

use std::error::Error;
use std::time::Duration;

use eyot::{Command, ExecOptions, Result, Sandbox, SandboxSpec};
use eyot_folder::FolderProvider;

fn sh(line: &str) -> Command {
    Command::argv(["sh", "-c", line])
}

/// Returns the text of a file once it ends with a line feed.
async fn written(sandbox: &Sandbox, path: &str) -> Result<String> {
    loop {
        match sandbox.read_text(path).await {
            Ok(text) if text.ends_with('\n') => return Ok(text.trim().to_owned()),
            _ => tokio::time::sleep(Duration::from_millis(5)).await,
        }
    }
}

#[tokio::test]
async fn a_command_whose_caller_is_gone_is_killed_with_its_process_group() -> Result<(), Box<dyn Error>> {
    let provider = FolderProvider::new();
    let sandbox = Sandbox::create(&*provider, SandboxSpec::default()).await?;
    let line = "sleep 1000 & echo $! > child; wait";
    let child = tokio::select! {
        ended = sandbox.exec(sh(line), ExecOptions::default()) => panic!("it ended: {ended:?}"),
        child = written(&sandbox, "child") => child?,
    };
    // The future of `exec` was dropped.
    let is_alive =
        || std::fs::read_to_string(format!("/proc/{child}/stat")).is_ok_and(|stat| !stat.contains(") Z "));
    while is_alive() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    Ok(sandbox.destroy().await?)
}

#[tokio::test]
async fn a_process_in_the_background_delays_nothing_and_is_told() -> Result<(), Box<dyn Error>> {
    let provider = FolderProvider::new();
    let sandbox = Sandbox::create(&*provider, SandboxSpec::default()).await?;
    let line = "echo first; { read -r word; echo $word > heard; } < ./pipe & echo last";
    sandbox.exec(Command::argv(["mkfifo", "pipe"]), ExecOptions::default()).await?.check()?;
    let ended = sandbox.exec(sh(line), ExecOptions::default()).await?.check()?;
    assert_eq!((ended.stdout_text().as_str(), ended.output_open), ("first\nlast\n", true));
    // It lives on, until it gets its word.
    sandbox.exec(sh("echo over > pipe"), ExecOptions::default()).await?.check()?;
    assert_eq!(written(&sandbox, "heard").await?, "over");
    Ok(sandbox.destroy().await?)
}
