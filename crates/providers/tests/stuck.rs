//! A filter of jq that gives no output does not look up when it is killed, so its thread works on.

use eyot::{ErrorKind, ExecOptions, Outcome, Sandbox, SandboxSpec};
use eyot_providers::memory::MemoryProvider;

#[tokio::test]
async fn commands_that_can_not_be_stopped_keep_others_from_beginning_in_their_sandbox_alone()
-> eyot::Result<()> {
    let provider = MemoryProvider::default();
    let sandbox = Sandbox::create(&provider, SandboxSpec::default()).await?;
    for _ in 0..4 {
        let options = ExecOptions { timeout_ms: Some(50), ..ExecOptions::default() };
        let result = sandbox.exec("jq -n 'def f: f; f'", options).await?;
        assert_eq!(result.outcome, Outcome::TimedOut);
    }
    // They count as stuck after a second.
    let refused = loop {
        match sandbox.exec("true", ExecOptions::default()).await {
            Ok(_) => tokio::time::sleep(std::time::Duration::from_millis(20)).await,
            Err(error) => break error,
        }
    };
    assert_eq!(refused.kind(), ErrorKind::Quota, "{refused}");
    let other = Sandbox::create(&provider, SandboxSpec::default()).await?;
    let result = other.exec("echo healthy", ExecOptions::default()).await?;
    assert_eq!((result.outcome, result.stdout_text().as_str()), (Outcome::Exited(0), "healthy\n"));
    sandbox.destroy().await?;
    other.destroy().await
}
