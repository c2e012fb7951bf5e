//! Calls in memory that would be stuck or grow: filters of jq without an end, and an archive that
//! never ends.

use eyot::{ExecOptions, Outcome, Sandbox, SandboxSpec, TarInOptions};
use eyot_providers::memory::MemoryProvider;
use futures_util::StreamExt;

#[tokio::test]
async fn filters_of_jq_that_never_end_leave_their_sandbox_as_it_was() -> eyot::Result<()> {
    let provider = MemoryProvider::default();
    let sandbox = Sandbox::create(&provider, SandboxSpec::default()).await?;
    for filter in
        ["def f: f; f", "last(range(1e18))", "[limit(1e18; repeat(\"x\"))]", "path(repeat(.[0])) | empty"]
    {
        let options = ExecOptions { timeout_ms: Some(50), ..ExecOptions::default() };
        let result = sandbox.exec(format!("jq -n '{filter}'").as_str(), options).await?;
        assert_eq!(result.outcome, Outcome::TimedOut, "{filter}");
    }
    // What is stuck counts after a second, and four of these would keep others from beginning.
    tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
    let result = sandbox.exec("echo healthy", ExecOptions::default()).await?;
    assert_eq!((result.outcome, result.stdout_text().as_str()), (Outcome::Exited(0), "healthy\n"));
    sandbox.destroy().await
}

#[tokio::test]
async fn filters_of_jq_that_grow_are_ended_with_their_reason() -> eyot::Result<()> {
    let provider = MemoryProvider::default();
    let sandbox = Sandbox::create(&provider, SandboxSpec::default()).await?;
    for (filter, reason) in [
        ("[range(1e9)]", "the values take more than 128 MiB"),
        ("\"x\" * 1e12", "the values take more than 128 MiB"),
        ("def f: 1 + f; f", "calls are nested too deep"),
        ("def f(g): f(g | g); f(1)", "calls are nested too deep"),
        ("reduce range(1e9) as $x (null; [.])", "a value is nested too deep"),
    ] {
        let result = sandbox.exec(format!("jq -n '{filter}'").as_str(), ExecOptions::default()).await?;
        let told = String::from_utf8_lossy(&result.stderr).into_owned();
        assert_eq!(
            (result.outcome, told),
            (Outcome::Exited(5), format!("jq: error: {reason}\n")),
            "{filter}"
        );
    }
    sandbox.destroy().await
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
