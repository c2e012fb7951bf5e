//! Calls in memory that would be stuck: a filter of jq that does not look up when it is killed, and an
//! archive that never ends.

use eyot::{ErrorKind, ExecOptions, Outcome, Sandbox, SandboxSpec, TarInOptions};
use eyot_providers::memory::MemoryProvider;
use futures_util::StreamExt;

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

#[tokio::test]
async fn an_archive_that_never_ends_is_let_go_of_when_its_call_is_dropped() -> eyot::Result<()> {
    let provider = MemoryProvider::default();
    let sandbox = Sandbox::create(&provider, SandboxSpec::default()).await?;
    // Its other end hears that the archive was dropped.
    let (held, dropped) = tokio::sync::oneshot::channel::<()>();
    let endless = futures_util::stream::unfold(held, |held| async move {
        std::future::pending::<()>().await;
        Some((Ok(eyot::Bytes::new()), held))
    });
    let call = sandbox.tar_in(".", endless.boxed(), TarInOptions::default());
    let soon = std::time::Duration::from_millis(50);
    let call = tokio::time::timeout(soon, call).await;
    assert!(call.is_err(), "{call:?}");
    let patience = std::time::Duration::from_secs(20);
    let heard = tokio::time::timeout(patience, dropped).await;
    assert!(matches!(heard, Ok(Err(_))), "the archive is still held");
    sandbox.destroy().await
}
