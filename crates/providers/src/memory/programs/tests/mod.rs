//! Scripts that ask programs of ours for more than a host has, or for what only a sandbox shows.

mod arguments;
mod greedy;
mod results;

use eyot::{Command, ExecOptions, Outcome, Sandbox, SandboxSpec};

use crate::memory::MemoryProvider;

/// Runs scripts in one sandbox, each for some seconds at most. Returns the outcome, the standard output
/// and the standard error of each.
async fn run_all<const N: usize>(scripts: [impl Into<Command> + Send; N]) -> [(Outcome, String, String); N] {
    let provider = MemoryProvider::default();
    let sandbox = Sandbox::create(&provider, SandboxSpec::default()).await.unwrap();
    let mut all = Vec::new();
    for script in scripts {
        let options = ExecOptions { timeout_ms: Some(5000), ..ExecOptions::default() };
        let result = sandbox.exec(script, options).await.unwrap();
        all.push((result.outcome, result.stdout_text(), result.stderr_text()));
    }
    sandbox.destroy().await.unwrap();
    all.try_into().unwrap()
}

async fn run(script: &str) -> (Outcome, String, String) {
    let [ended] = run_all([script]).await;
    ended
}
