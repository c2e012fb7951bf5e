//! Making a sandbox, and adopting one. What was made is removed when a step fails, and when the caller gives up.

use std::sync::Arc;

use eyot::internal::{now_ms, run_detached};
use eyot::{
    EgressRules, Error, ErrorKind, NetworkMode, Result, SandboxOperationUnsupported, SandboxSpec, ValidSpec,
};

use super::bridge::is_bridge_id;
use super::guest_place::{begin, leave};
use super::host::BridgeHost;
use super::link::{BridgedSandbox, ConnectedSandbox};
use super::record::{BridgeRecord, BridgeState};
use super::records::HeldRecord;
use super::removal::remove;
use super::{NAME, isolation};
use crate::terminal_guest::GuestLife;

/// The fields of a spec that are honoured. Limits are the instance type's: they are reported as not enforced, and refused where
/// they are required.
const HONOURED: [&str; 4] = ["limits", "network", "require", "security.drop_capabilities"];

/// Refuses a spec that asks for more than the bridge has.
fn check(spec: &ValidSpec) -> Result<()> {
    spec.refuse_all_but(NAME, &HONOURED)?;
    let spec = spec.spec();
    let refused = |option: &str| Err(SandboxOperationUnsupported::new("create", NAME, &[option]).into());
    if spec.network == NetworkMode::Host {
        return refused("network");
    }
    if spec.egress != EgressRules::default() {
        return refused("egress");
    }
    if spec.security.drop_capabilities != SandboxSpec::default().security.drop_capabilities {
        return refused("security.drop_capabilities");
    }
    isolation::refuse_required(spec)
}

/// Makes a sandbox. The files of its manifest are still missing.
pub(super) async fn create(host: &Arc<BridgeHost>, spec: &ValidSpec) -> Result<ConnectedSandbox> {
    check(spec)?;
    let bridge_id = host.client.new_id().await?;
    finished(host, BridgeRecord::new(spec, bridge_id, now_ms())).await
}

/// Adopts the sandbox of an id of the bridge's. Returns its record.
pub(super) async fn adopt(host: &Arc<BridgeHost>, bridge_id: &str) -> Result<BridgeRecord> {
    if !is_bridge_id(bridge_id) {
        return Err(Error::invalid("id", "must be the bridge's id of a sandbox: `a` to `z` and `2` to `7`"));
    }
    let record = BridgeRecord::adopting(bridge_id, now_ms())?;
    drop(finished(host, record.clone()).await?);
    Ok(record)
}

/// Records a sandbox and starts its guest. A create whose caller leaves goes on until it is known what there is to remove.
async fn finished(host: &Arc<BridgeHost>, record: BridgeRecord) -> Result<ConnectedSandbox> {
    let held = host.records.reserve(&record)?;
    let making = tokio::spawn(make(Arc::clone(host), record, held)).await;
    let (unfinished, connected) = making.map_err(|error| {
        Error::new(ErrorKind::Internal, "create sandbox: a task ended early").with_source(error)
    })??;
    unfinished.finish();
    Ok(connected)
}

async fn make(
    host: Arc<BridgeHost>,
    record: BridgeRecord,
    held: HeldRecord,
) -> Result<(UnfinishedSandbox, ConnectedSandbox)> {
    let made = BridgeRecord { state: BridgeState::Made, ..record.clone() };
    let unfinished = UnfinishedSandbox { host, record: Arc::new(record), armed: true, _held: held };
    match unfinished.begin(made).await {
        Ok(connected) => Ok((unfinished, connected)),
        Err(error) => {
            // A failed create has left nothing when it is told.
            let undone = unfinished.undo().await;
            let error = error.context("create sandbox");
            Err(if undone {
                error
            } else {
                error.with_hint("it could not be removed; the next list tries again")
            })
        }
    }
}

/// A sandbox that is being made. Dropping it, because the caller gave up, removes it.
struct UnfinishedSandbox {
    host: Arc<BridgeHost>,
    record: Arc<BridgeRecord>,
    armed: bool,
    _held: HeldRecord,
}

impl UnfinishedSandbox {
    async fn begin(&self, made: BridgeRecord) -> Result<ConnectedSandbox> {
        begin(&self.host, &self.record).await?;
        let sandbox = BridgedSandbox { host: Arc::clone(&self.host), record: Arc::new(made) };
        let connection = sandbox.connect().await?;
        self.host.records.change(&self.record, &sandbox.record)?;
        ConnectedSandbox::new(sandbox, connection)
    }

    fn finish(mut self) {
        self.armed = false;
    }

    async fn undo(mut self) -> bool {
        let removed = remove(&self.host, &self.record).await;
        // Not before: a caller that gives up meanwhile leaves the removal to the drop.
        self.armed = false;
        report(&self.record, &removed);
        removed.is_ok()
    }
}

impl Drop for UnfinishedSandbox {
    fn drop(&mut self) {
        if !self.armed {
            return;
        }
        let (host, record) = (Arc::clone(&self.host), Arc::clone(&self.record));
        // Without a runtime the next list removes it.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            drop(runtime.spawn(async move { report(&record, &remove(&host, &record).await) }));
        }
    }
}

fn report(record: &BridgeRecord, removed: &Result<bool>) {
    if let Err(error) = removed {
        tracing::warn!(sandbox = %record.id, %error, "a sandbox whose create failed could not be removed");
    }
}

/// Starts another guest in a sandbox whose guest has ended. Returns its record by now. What is left of the guest before goes last:
/// until then whoever looks finds that one, ended. A task of its own does it, so that no guest is left that nobody knows.
pub(super) async fn begin_again(host: &Arc<BridgeHost>, record: &BridgeRecord) -> Result<ConnectedSandbox> {
    let (host, record) = (Arc::clone(host), record.clone());
    run_detached(async move { begin_another(&host, &record).await }).await
}

async fn begin_another(host: &Arc<BridgeHost>, record: &BridgeRecord) -> Result<ConnectedSandbox> {
    let next = BridgeRecord { life: GuestLife::generate(), ..record.clone() };
    let sandbox = BridgedSandbox { host: Arc::clone(host), record: Arc::new(next) };
    let begun = async {
        begin(host, &sandbox.record).await?;
        let connection = sandbox.connect().await?;
        // Another process may have been first: its guest stays, and this fails with `conflict`.
        host.records.change(record, &sandbox.record)?;
        Ok::<_, Error>(connection)
    };
    let (begun, left) = match begun.await {
        Ok(connection) => (Ok(connection), record),
        Err(error) => (Err(error), &*sandbox.record),
    };
    if let Err(error) = leave(host, left).await {
        tracing::warn!(%error, "a guest that has ended could not be cleared away");
    }
    ConnectedSandbox::new(sandbox.clone(), begun?)
}
