//! A filter of jq that gives no output does not look up when it is killed, so its thread works on.

use eyot::{ErrorKind, ExecOptions, Outcome, Sandbox, SandboxSpec};
use eyot_providers::memory::MemoryProvider;

#[tokio::test]
async fn commands_that_can_not_be_stopped_keep_others_from_beginning_in_their_sandbox_alone()
-> eyot::Result<()> {
    let provider = MemoryProvider::default();
    let sandbox = Sandbox::create(&provider, SandboxSpec::default()).await?;
    let mut refused = None;
    for _ in 0..5 {
        let options = ExecOptions { timeout_ms: Some(50), ..ExecOptions::default() };
        refused = sandbox.exec("jq -n 'def f: f; f'", options).await.err();
    }
    assert_eq!(refused.map(|error| error.kind()), Some(ErrorKind::Quota));
    let other = Sandbox::create(&provider, SandboxSpec::default()).await?;
    let result = other.exec("echo healthy", ExecOptions::default()).await?;
    assert_eq!((result.outcome, result.stdout_text().as_str()), (Outcome::Exited(0), "healthy\n"));
    sandbox.destroy().await?;
    other.destroy().await
}
