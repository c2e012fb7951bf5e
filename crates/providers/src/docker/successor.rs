//! The container that takes the place of a sandbox's container, when the sandbox goes on above a snapshot.
//!
//! It is made beside the other one, with `.next` behind its name. The removal of the other container is the moment of the
//! change: before it the sandbox is as it was, and after it whoever looks for the sandbox gives the successor its name, unless
//! the sandbox was destroyed. The labels are signed for that name, so a container with `.next` is no sandbox.

use std::collections::HashMap;

use bollard::models::{ContainerInspectResponse, ContainerStateStatusEnum as State};
use bollard::query_parameters::{ListContainersOptionsBuilder, RenameContainerOptionsBuilder};
use eyot::{Result, SandboxId, SandboxName};

use super::host::Host;
use super::labels::{ID, Record, STATE, container_name};
use super::removal::{remove_container, remove_stopped};
use super::state::Notes;

/// The ending of a successor's name, which no name of a sandbox has.
const ENDING: &str = ".next";

/// A successor that this state folder has made.
pub(crate) struct Successor {
    /// The Engine's id of the container.
    pub container: String,
    record: Record,
}

/// Returns the name of the successor of the container with this name.
pub(crate) fn next_name(container_name: &str) -> String {
    format!("{container_name}{ENDING}")
}

/// Returns the name that a successor is to have; `None` for any other container.
pub(crate) fn final_name(name: &str) -> Option<&str> {
    name.strip_suffix(ENDING)
}

/// Lets the successor of a container that is gone take its place, if there is one. `id_or_name` are the sandbox's.
pub(crate) async fn complete(host: &Host, id_or_name: &str) -> Result<()> {
    let successors = match SandboxId::parse(id_or_name) {
        Ok(id) => of_id(host, &id).await?,
        Err(_) => match SandboxName::parse(id_or_name) {
            Ok(name) => ours(host, &next_name(&container_name(&name))).await?.into_iter().collect(),
            Err(_) => return Ok(()),
        },
    };
    for successor in successors {
        successor.take_place(host).await?;
    }
    Ok(())
}

/// Completes or removes every successor that a killed process has left, and forgets which sandboxes were destroyed, but for those
/// whose removal is under way. For whoever has the lock of the snapshots: nobody else makes one meanwhile.
pub(crate) async fn settle(host: &Host) -> Result<()> {
    let state = host.state.open().await?;
    let destroyed = state.names(Notes::Destroyed);
    for successor in with_label(host, &format!("{STATE}={}", state.seal().state_id())).await? {
        // One that can't be settled keeps nobody from another snapshot.
        if let Err(error) = successor.settle(host).await {
            tracing::warn!(sandbox = %successor.record.id, %error, "a container that is to follow another stays");
        }
    }
    destroyed.iter().for_each(|id| state.forget_unless_held(Notes::Destroyed, id));
    Ok(())
}

/// Finds the successors of a sandbox's container.
pub(crate) async fn of_id(host: &Host, id: &SandboxId) -> Result<Vec<Successor>> {
    with_label(host, &format!("{ID}={id}")).await
}

async fn with_label(host: &Host, label: &str) -> Result<Vec<Successor>> {
    let filters = HashMap::from([("label", vec![label]), ("name", vec![ENDING])]);
    let options = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
    let listed = host.engine.client().await?.list_containers(Some(options)).await;
    let listed = listed.map_err(|error| host.engine.failed("list sandboxes", error))?;
    let mut all = Vec::new();
    for container in listed {
        all.extend(ours(host, container.id.as_deref().unwrap_or_default()).await?);
    }
    Ok(all)
}

impl Successor {
    async fn settle(&self, host: &Host) -> Result<()> {
        match self.follows() {
            Some(before) if is_whole(host, before).await? => {
                remove_stopped(&host.engine, &self.container).await.map(drop)
            }
            _ => self.take_place(host).await,
        }
    }

    /// The container whose place it is to take. Its name may have become another's since.
    fn follows(&self) -> Option<&str> {
        self.record.base.as_ref()?.follows.as_deref()
    }

    /// Takes the name of the container that it follows, of which the Engine may have left a part. While that container is whole,
    /// nothing happens; nor if the sandbox was destroyed, but that it goes, too.
    async fn take_place(&self, host: &Host) -> Result<()> {
        if host.state.open().await?.noted(Notes::Destroyed, self.record.id.as_str()).is_some() {
            return remove_container(&host.engine, &self.container).await.map(drop);
        }
        if let Some(before) = self.follows()
            && let Some(found) = host.engine.inspected(before).await?
        {
            if !status_is_partial(&found) {
                return Ok(());
            }
            remove_container(&host.engine, before).await?;
        }
        self.take_name(host).await
    }

    async fn take_name(&self, host: &Host) -> Result<()> {
        let name = self.record.container_name();
        let options = RenameContainerOptionsBuilder::default().name(&name).build();
        match host.engine.client().await?.rename_container(&self.container, options).await {
            Err(error) => {
                // Somebody else has done it, or has removed the sandbox.
                let holder = host.engine.inspected(&name).await?.and_then(|found| found.id);
                if holder.as_ref() == Some(&self.container)
                    || host.engine.inspected(&self.container).await?.is_none()
                {
                    return Ok(());
                }
                let failed = host.engine.failed("give a container its name", error);
                let hint =
                    format!("its name, `{name}`, may have been taken: rename the container that has it");
                Err(failed.with_hint(hint))
            }
            Ok(()) => Ok(()),
        }
    }
}

/// Tells whether a container is there, and no removal of it was begun.
pub(crate) async fn is_whole(host: &Host, container: &str) -> Result<bool> {
    Ok(host.engine.inspected(container).await?.is_some_and(|found| !status_is_partial(&found)))
}

fn status_is_partial(container: &ContainerInspectResponse) -> bool {
    let status = container.state.as_ref().and_then(|state| state.status);
    matches!(status, Some(State::DEAD | State::REMOVING))
}

/// Removes the successor that a killed process, or one that failed, has left beside the container of a sandbox.
pub(crate) async fn remove(host: &Host, record: &Record) -> Result<()> {
    match ours(host, &next_name(&record.container_name())).await? {
        Some(left) if left.record.id == record.id => {
            remove_stopped(&host.engine, &left.container).await.map(drop)
        }
        // Another sandbox's, whose name was taken: it is all that there is of it.
        _ => Ok(()),
    }
}

/// Looks at a container by id or name; `None` unless it is a successor that this state folder has made.
async fn ours(host: &Host, container: &str) -> Result<Option<Successor>> {
    let Some(found) = host.engine.inspected(container).await? else { return Ok(None) };
    let name = found.name.as_deref().unwrap_or_default().trim_start_matches('/');
    let Some(name) = final_name(name) else { return Ok(None) };
    let record = verified(host, name, &found).await?;
    Ok(record.zip(found.id).map(|(record, container)| Successor { container, record }))
}

async fn verified(host: &Host, name: &str, container: &ContainerInspectResponse) -> Result<Option<Record>> {
    let labels = container.config.as_ref().and_then(|config| config.labels.as_ref());
    let seal = host.state.open().await?.seal();
    Ok(labels.and_then(|labels| Record::verified(seal, name, labels)))
}
