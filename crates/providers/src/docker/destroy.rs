//! Removing sandboxes: the container with its volumes, then the persistent workspace if the spec
//! says so.

use eyot::{Result, WorkspaceSpec};

use super::find::by_id;
use super::host::Host;
use super::labels::Record;
use super::removal::remove_container;
use super::state::Notes;
use super::{kept_snapshot, successor, workspace};

/// Removes a sandbox. Returns `false` if it was removed before.
pub(crate) async fn destroy(host: &Host, record: &Record, container: &str) -> Result<bool> {
    let state = host.state.open().await?;
    let removed = if state.had_snapshots() {
        remove_all(host, record, container).await?
    } else {
        remove_container(&host.engine, container).await?
    };
    if let WorkspaceSpec::Persistent { id, destroy_on_session_destroy: true } = &record.spec.workspace {
        workspace::remove(host, id).await?;
    }
    state.forget(Notes::Containers, container);
    kept_snapshot::collect_if_free(host).await;
    Ok(removed)
}

/// Removes every container of a sandbox: its own, the one that is to take the place of that, and the one that has taken it.
async fn remove_all(host: &Host, record: &Record, container: &str) -> Result<bool> {
    // From here on nobody gives the name of the sandbox to what is left of it.
    let state = host.state.open().await?;
    let held = state.hold(Notes::Destroyed, record.id.as_str())?;
    let mut removed = match remove_container(&host.engine, container).await {
        // It lives on, so it may have another container later.
        Err(error) if successor::is_whole(host, container).await? => {
            drop(held);
            state.forget_unless_held(Notes::Destroyed, record.id.as_str());
            return Err(error);
        }
        // Only a look tells what became of it.
        removed => removed.unwrap_or(false),
    };
    for successor in successor::of_id(host, &record.id).await? {
        removed |= remove_container(&host.engine, &successor.container).await?;
    }
    for found in by_id(host, &record.id).await? {
        removed |= remove_container(&host.engine, &found.container).await?;
    }
    Ok(removed)
}

/// Undoes a create: removes the sandbox, but keeps a persistent workspace that was not made for it.
pub(crate) async fn abandon(host: &Host, record: &Record, container: &str) -> Result<()> {
    remove_container(&host.engine, container).await?;
    match &record.spec.workspace {
        WorkspaceSpec::Persistent { id, .. } if record.made_workspace => workspace::remove(host, id).await,
        _ => Ok(()),
    }
}
