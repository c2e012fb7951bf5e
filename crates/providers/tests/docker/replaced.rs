//! Sandboxes that are destroyed, woken or compared while a snapshot moves them, or just before; and the snapshots that nobody needs.

use std::sync::Arc;

use eyot::{BranchPoint, CompareOptions, NewSnapshot, Sandbox, SandboxName, SandboxPath, SandboxProvider};
use eyot_providers::docker::{DockerOptions, DockerProvider};

use crate::check::{Check, docker, ensure, ensure_eq, output, refused, until, with_sandbox};
use crate::engine::{BUSYBOX, TestEngine, spec, state, tests};
use crate::proxy::{Proxy, Removals, engine_socket};
use crate::snapshots::{images_of, take, wake};

tests! {
    a_rollback_after_a_destroy_that_failed_keeps_the_sandbox(BUSYBOX);
    a_sandbox_whose_destroy_hangs_is_not_kept_by_a_snapshot(BUSYBOX);
    a_volume_goes_with_its_sandbox_though_it_was_being_compared(BUSYBOX);
    a_comparison_reads_no_file_of_holes(BUSYBOX);
    a_wake_follows_its_sandbox_to_another_container(BUSYBOX);
    the_name_of_a_snapshot_whose_image_was_removed_is_free(BUSYBOX);
    hidden_snapshots_are_looked_for_in_one_call(BUSYBOX);
}

fn removes(line: &str) -> bool {
    line.starts_with("DELETE ") && line.contains("/containers/")
}

fn starts(line: &str) -> bool {
    line.starts_with("POST ") && line.contains("/start")
}

/// Makes a proxy before the Engine, and a provider with the tests' state folder over it.
fn proxied() -> Check<(Proxy, Arc<DockerProvider>)> {
    let proxy = Proxy::new()?;
    let options = DockerOptions { address: Some(proxy.address()), ..DockerOptions::node(state()) };
    Ok((proxy, DockerProvider::new(options)))
}

fn socket() -> Check<std::path::PathBuf> {
    engine_socket().ok_or_else(|| "the Engine is not on this host".into())
}

async fn a_rollback_after_a_destroy_that_failed_keeps_the_sandbox(engine: TestEngine) -> Check {
    with_sandbox(&engine, spec(BUSYBOX), async |sandbox| {
        sandbox.write("file", "x").await?;
        let taken = take(&engine.provider, sandbox.info()).await?;
        let (mut proxy, refusing) = proxied()?;
        proxy.open_without(Removals::Refused, &socket()?)?;
        let failed = refusing.remove(sandbox.id().as_str()).await;
        ensure!(failed.is_err(), "it was destroyed");
        engine.provider.snapshots()?.roll_back(sandbox.id(), &taken.id).await?;
        ensure_eq!(wake(&engine.provider, sandbox.info()).await?.read("file").await?, "x");
        engine.provider.snapshots()?.remove(&taken.id).await?;
        Ok(())
    })
    .await
}

async fn a_sandbox_whose_destroy_hangs_is_not_kept_by_a_snapshot(engine: TestEngine) -> Check {
    with_sandbox(&engine, spec(BUSYBOX), async |sandbox| {
        let taken = take(&engine.provider, sandbox.info()).await?;
        let (mut proxy, hanging) = proxied()?;
        proxy.open_holding(removes, &socket()?)?;
        let id = sandbox.id().to_string();
        let destroying = tokio::spawn(async move { hanging.remove(&id).await });
        proxy.arrived().await;
        refused!(take(&engine.provider, sandbox.info()).await, Destroyed);
        destroying.abort();
        refused!(engine.provider.info(sandbox.id().as_str()).await, NotFound);
        engine.provider.snapshots()?.remove(&taken.id).await?;
        ensure_eq!(images_of(&taken.id)?, "");
        Ok(())
    })
    .await
}

async fn a_volume_goes_with_its_sandbox_though_it_was_being_compared(engine: TestEngine) -> Check {
    let sandbox = Sandbox::create(&*engine.provider, spec(BUSYBOX)).await?;
    sandbox.write("file", "x").await?;
    let format = "{{range .Mounts}}{{if eq .Destination \"/workspace\"}}{{.Name}}{{end}}{{end}}";
    let volume = docker(&["inspect", "--format", format, &format!("eyot-{}", sandbox.name())])?;
    ensure_eq!(volume.len(), 64);
    let (mut proxy, comparing) = proxied()?;
    proxy.open_holding(removes, &socket()?)?;
    let sides = [BranchPoint::Base(sandbox.id().clone()), BranchPoint::Sandbox(sandbox.id().clone())];
    let compared = tokio::spawn(async move {
        let options = CompareOptions { path: SandboxPath::parse("/workspace")?, text: false };
        comparing.snapshots()?.compare(&sides[0], &sides[1], &options).await
    });
    // Both sides are open.
    proxy.arrived().await;
    sandbox.destroy().await?;
    proxy.release(2);
    let changes = compared.await??;
    ensure!(!changes.changes.is_empty(), "nothing was compared");
    let is_gone =
        async || Ok(docker(&["volume", "ls", "-q", "--filter", &format!("name={volume}")])?.is_empty());
    until("the volume's end", is_gone).await
}

async fn a_comparison_reads_no_file_of_holes(engine: TestEngine) -> Check {
    with_sandbox(&engine, spec(BUSYBOX), async |sandbox| {
        output(sandbox, "truncate -s 40G /holes").await?;
        let sides = [BranchPoint::Base(sandbox.id().clone()), BranchPoint::Sandbox(sandbox.id().clone())];
        let options = CompareOptions { path: SandboxPath::root(), text: false };
        let refused = engine.provider.snapshots()?.compare(&sides[0], &sides[1], &options).await;
        let refused = refused!(refused, TooLarge);
        ensure!(refused.hint().is_some_and(|hint| hint.contains("holes")), "{refused:?}");
        Ok(())
    })
    .await
}

async fn a_wake_follows_its_sandbox_to_another_container(engine: TestEngine) -> Check {
    with_sandbox(&engine, spec(BUSYBOX), async |sandbox| {
        sandbox.write("file", "x").await?;
        engine.provider.sleep(sandbox.id().as_str()).await?;
        let (mut proxy, waking) = proxied()?;
        proxy.open_holding(starts, &socket()?)?;
        let id = sandbox.id().to_string();
        let woken = tokio::spawn(async move { Sandbox::wake(&*waking, &id).await });
        proxy.arrived().await;
        let taken = take(&engine.provider, sandbox.info()).await?;
        proxy.release(8);
        ensure_eq!(woken.await??.read("file").await?, "x");
        engine.provider.sleep(sandbox.id().as_str()).await?;
        engine.provider.snapshots()?.remove(&taken.id).await?;
        Ok(())
    })
    .await
}

async fn the_name_of_a_snapshot_whose_image_was_removed_is_free(engine: TestEngine) -> Check {
    let snapshots = engine.provider.snapshots()?;
    let name = SandboxName::parse(&format!("pruned-{}", std::process::id()))?;
    let gone = with_sandbox(&engine, spec(BUSYBOX), async |sandbox| {
        engine.provider.sleep(sandbox.id().as_str()).await?;
        let asked = NewSnapshot { name: Some(name.clone()), ..NewSnapshot::of(sandbox.info()) };
        Ok(snapshots.take(sandbox.id(), asked).await?)
    })
    .await?;
    docker(&["rmi", "-f", &format!("eyot-snapshot:{}", gone.id)])?;
    with_sandbox(&engine, spec(BUSYBOX), async |sandbox| {
        engine.provider.sleep(sandbox.id().as_str()).await?;
        let asked = NewSnapshot { name: Some(name.clone()), ..NewSnapshot::of(sandbox.info()) };
        let taken = snapshots.take(sandbox.id(), asked).await?;
        let again = NewSnapshot { name: Some(name.clone()), ..NewSnapshot::of(sandbox.info()) };
        refused!(snapshots.take(sandbox.id(), again).await, AlreadyExists);
        snapshots.remove(&taken.id).await?;
        Ok(snapshots.remove(&gone.id).await?)
    })
    .await
}

async fn hidden_snapshots_are_looked_for_in_one_call(engine: TestEngine) -> Check {
    with_sandbox(&engine, spec(BUSYBOX), async |sandbox| {
        let snapshots = engine.provider.snapshots()?;
        let mut taken = Vec::new();
        for number in 0..5 {
            let woken = wake(&engine.provider, sandbox.info()).await?;
            woken.write("file", number.to_string()).await?;
            taken.push(take(&engine.provider, sandbox.info()).await?);
        }
        // They stay hidden: the last one lies above them.
        for snapshot in &taken[..4] {
            snapshots.remove(&snapshot.id).await?;
        }
        let (mut proxy, counted) = proxied()?;
        proxy.open_holding(|_| false, &socket()?)?;
        counted.snapshots()?.remove(&taken[4].id).await?;
        // It collects before and after, and looks for what was compared, too.
        let asked = proxy.count("/images/json");
        ensure!(asked <= 4, "the Engine was asked for its images {asked} times");
        Ok(())
    })
    .await
}
