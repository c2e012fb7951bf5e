//! Failures of a real node and a real server: the server is killed, the kubelet stops, the node is lost.

use std::sync::Arc;

use eyot::{ErrorKind, ExecEvent, ExecOptions, Sandbox, SandboxProvider, SandboxSpec, SandboxStatus};
use libtest_mimic::Trial;

use super::Cluster;
use super::admin::kubectl;
use super::refusals::trials_of;
use crate::faults::{error_of, output};
use crate::tried::{Tried, ensure, failed, within};
use crate::vendor::block_on;

/// The time within which a call to a lost node ends, in seconds.
const LOST_S: u64 = 15;

pub fn trials(cluster: &Arc<Cluster>) -> Vec<Trial> {
    trials_of(
        cluster,
        [
            ("a_killed_server_loses_no_command_and_no_create", server),
            ("commands_go_on_while_the_kubelet_is_stopped", kubelet),
            ("a_killed_pod_ends_its_command_with_the_reason", evicted),
            // Last: what it has broken takes a while to mend.
            ("calls_to_a_lost_node_end_within_15_s_and_its_names_still_resolve", lost),
        ],
    )
}

fn server(cluster: &Arc<Cluster>) -> Tried {
    block_on(async {
        let provider = cluster.provider();
        let sandbox = Sandbox::create(&*provider, SandboxSpec::default()).await?;
        let line = "for i in 1 2 3 4 5 6 7 8 9; do echo $i; sleep 1; done";
        let (counted, made) = tokio::join!(output(&sandbox, line), async {
            cluster.order_beside("stop server").await?;
            let (made, started) = tokio::join!(
                Sandbox::create(&*provider, SandboxSpec::default()),
                cluster.order_beside("start server"),
            );
            started.map(|()| made)
        });
        ensure(counted? == "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "output was lost")?;
        let other = made??;
        ensure(provider.list().await?.len() == 2, "not two sandboxes")?;
        other.destroy().await?;
        Ok(sandbox.destroy().await?)
    })
}

fn kubelet(cluster: &Arc<Cluster>) -> Tried {
    block_on(async {
        let provider = cluster.provider();
        let sandbox = Sandbox::create(&*provider, SandboxSpec::default()).await?;
        cluster.order_beside("stop kubelet").await?;
        let said = output(&sandbox, "echo fine").await;
        let name = sandbox.name().to_string();
        let opened = Sandbox::open(&*cluster.provider(), &name).await;
        let status = provider.info(&name).await.map(|info| info.status);
        cluster.order_beside("start kubelet").await?;
        ensure(said? == "fine\n", "a command was lost")?;
        ensure(output(&opened?, "echo still").await? == "still\n", "it can't be opened")?;
        ensure(status? == SandboxStatus::Running, "it is said not to run")?;
        Ok(sandbox.destroy().await?)
    })
}

fn evicted(cluster: &Arc<Cluster>) -> Tried {
    block_on(async {
        let provider = cluster.provider();
        let sandbox = Sandbox::create(&*provider, SandboxSpec::default()).await?;
        let mut running = sandbox.exec_stream("echo begun; sleep 600", ExecOptions::default()).await?;
        let begun = running.next().await;
        ensure(matches!(begun, Some(Ok(ExecEvent::Stdout(_)))), format!("{begun:?}"))?;
        let killing = tokio::task::spawn_blocking(|| kubectl(["delete", "pods", "--all", "--wait=false"]));
        let error = error_of(&mut running).await?;
        killing.await??;
        ensure(error.kind() == ErrorKind::Destroyed, format!("{error:?}"))?;
        let error = failed(provider.open(sandbox.name().as_str()).await)?;
        ensure(matches!(error.kind(), ErrorKind::Destroyed | ErrorKind::NotFound), format!("{error:?}"))?;
        ensure(provider.list().await?.is_empty(), "it is listed")
    })
}

fn lost(cluster: &Arc<Cluster>) -> Tried {
    block_on(async {
        let provider = cluster.provider();
        let sandbox = Sandbox::create(&*provider, SandboxSpec::default()).await?;
        let mut running = sandbox.exec_stream("echo begun; sleep 600", ExecOptions::default()).await?;
        ensure(matches!(running.next().await, Some(Ok(ExecEvent::Stdout(_)))), "it did not begin")?;
        cluster.order_beside("lose node").await?;
        let in_flight = within(LOST_S, error_of(&mut running)).await;
        let later = within(LOST_S, output(&sandbox, "true")).await;
        let name = sandbox.name().to_string();
        let (info, list) = (provider.info(&name).await, provider.list().await);
        cluster.order_beside("find node").await?;
        let error = in_flight??;
        ensure(matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Destroyed), format!("{error:?}"))?;
        let error = failed(later?)?;
        ensure(matches!(error.kind(), ErrorKind::Unavailable | ErrorKind::Destroyed), format!("{error:?}"))?;
        ensure(info?.name.as_str() == name && list?.len() == 1, "its name does not resolve")?;
        kubectl(["delete", "pods,leases", "--all", "--grace-period=0", "--force"])?;
        Ok(())
    })
}
