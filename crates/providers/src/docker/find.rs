//! Finding sandboxes among the Engine's containers. Labels only lead to a container; it is a
//! sandbox of ours if its labels have our MAC, or if an operator has adopted it.

use std::collections::HashMap;

use bollard::models::{ContainerInspectResponse, ContainerSummary, MountPoint};
use bollard::query_parameters::ListContainersOptionsBuilder;
use eyot::{Error, ErrorKind, Result, SandboxId, SandboxName};
use eyot_guest::protocol::container::GUEST_DIR;

use super::adopt::adopted_record;
use super::condition::Condition;
use super::guest_volume;
use super::host::Host;
use super::labels::{ID, Record, SCHEMA, container_name};
use super::state::OpenState;
use super::successor;

/// A sandbox that was found, with its container.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub record: Record,
    /// The Engine's id of the container, which is never used twice.
    pub container: String,
    pub condition: Condition,
    /// The time at which the Engine made the container, in its own format.
    pub made_at: String,
}

/// The result of looking at a container.
#[derive(Debug, Clone)]
pub(crate) enum Looked {
    /// A sandbox of this state folder.
    Ours(Box<Found>),
    /// A container with labels of Eyot's that this state folder does not believe. Eyot neither uses
    /// nor removes it.
    Foreign,
    /// A container without labels of Eyot's. Eyot neither shows nor touches it.
    Unrelated,
    /// No such container.
    Absent,
}

/// Finds a sandbox by id or name.
pub(crate) async fn find(host: &Host, id_or_name: &str) -> Result<Found> {
    let mut looked = look_for(host, id_or_name).await?;
    let is_gone = match &looked {
        Looked::Ours(found) => found.condition == Condition::Going,
        Looked::Absent => true,
        Looked::Foreign | Looked::Unrelated => false,
    };
    if is_gone && host.state.open().await?.had_snapshots() {
        // It may be between its container and the one that takes the place of that.
        successor::complete(host, id_or_name).await?;
        looked = look_for(host, id_or_name).await?;
    }
    match looked {
        Looked::Ours(found) => Ok(*found),
        Looked::Foreign => Err(not_found(id_or_name).with_hint(format!(
            "there is a container `eyot-{id_or_name}`, which is not of this state folder; \
             to use it nevertheless: eyot --provider docker adopt {id_or_name}"
        ))),
        Looked::Unrelated => Err(not_found(id_or_name)
            .with_hint(format!("there is a container `eyot-{id_or_name}`, which Eyot did not make"))),
        Looked::Absent => Err(not_found(id_or_name).with_hint("`eyot ls` shows those that are there")),
    }
}

async fn look_for(host: &Host, id_or_name: &str) -> Result<Looked> {
    match SandboxId::parse(id_or_name) {
        Ok(id) => {
            let found = by_id(host, &id).await?.into_iter().next();
            Ok(found.map(Box::new).map_or(Looked::Absent, Looked::Ours))
        }
        Err(_) => by_name(host, id_or_name).await,
    }
}

fn not_found(id_or_name: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no sandbox `{id_or_name}`"))
}

async fn by_name(host: &Host, name: &str) -> Result<Looked> {
    match SandboxName::parse(name) {
        Ok(name) => look(host, &container_name(&name)).await,
        Err(_) => Ok(Looked::Absent),
    }
}

/// Finds every sandbox of this id. There is more than one only while several are being made, before
/// all but one are refused.
pub(crate) async fn by_id(host: &Host, id: &SandboxId) -> Result<Vec<Found>> {
    let mut found = Vec::new();
    for container in containers(host, &format!("{ID}={id}")).await? {
        let container = container.id.unwrap_or_default();
        found.extend(inspect(host, &container).await?);
    }
    found.retain(|found| found.record.id == *id);
    Ok(found)
}

/// Lists every container with a label of Eyot's.
pub(crate) async fn all(host: &Host) -> Result<Vec<ContainerSummary>> {
    containers(host, SCHEMA).await
}

async fn containers(host: &Host, label: &str) -> Result<Vec<ContainerSummary>> {
    let filters: HashMap<&str, Vec<&str>> = HashMap::from([("label", vec![label])]);
    let options = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
    let listed = host.engine.client().await?.list_containers(Some(options)).await;
    listed.map_err(|error| host.engine.failed("list sandboxes", error))
}

/// Returns the sandbox of a container, by the container's id or name; `None` if there is no such
/// container, or it is no sandbox of ours.
pub(crate) async fn inspect(host: &Host, container: &str) -> Result<Option<Found>> {
    match look(host, container).await? {
        Looked::Ours(found) => Ok(Some(*found)),
        Looked::Foreign | Looked::Unrelated | Looked::Absent => Ok(None),
    }
}

/// Looks at a container, by id or name.
pub(crate) async fn look(host: &Host, container: &str) -> Result<Looked> {
    let Some(inspected) = host.engine.inspected(container).await? else { return Ok(Looked::Absent) };
    let labels = inspected.config.as_ref().and_then(|config| config.labels.as_ref());
    // What somebody runs from the image of a snapshot has the label of that, which is empty.
    let is_marked = labels.and_then(|all| all.get(SCHEMA)).is_some_and(|version| !version.is_empty());
    let others = if is_marked { Looked::Foreign } else { Looked::Unrelated };
    let found = Found::of(host.state.open().await?, inspected);
    Ok(found.map(Box::new).map_or(others, Looked::Ours))
}

impl Found {
    fn of(state: &OpenState, inspected: ContainerInspectResponse) -> Option<Self> {
        let container = inspected.id.clone()?;
        let labels = inspected.config.as_ref()?.labels.as_ref()?;
        let name = plain_name(inspected.name.as_deref()?);
        let mounts = inspected.mounts.as_deref().unwrap_or_default();
        let record = believed(state, &container, name, labels, mounts)?;
        let condition = Condition::of(&record, &inspected);
        let made_at = inspected.created.map(|created| created.to_string()).unwrap_or_default();
        Some(Self { record, condition, made_at, container })
    }
}

/// Returns the record of a container, if it can be trusted.
pub(crate) fn believed(
    state: &OpenState,
    container: &str,
    name: &str,
    labels: &HashMap<String, String>,
    mounts: &[MountPoint],
) -> Option<Record> {
    // Labels and entry point come with an image that `docker commit` has made of a sandbox; mounts come with none.
    if !mounts.iter().any(is_guest) {
        return None;
    }
    Record::verified(state.seal(), name, labels).or_else(|| adopted_record(state, container, name))
}

fn is_guest(mount: &MountPoint) -> bool {
    mount.destination.as_deref() == Some(GUEST_DIR)
        && mount.name.as_deref().is_some_and(|name| name.starts_with(guest_volume::PREFIX))
}

/// Removes the slash that the Engine puts before names.
pub(crate) fn plain_name(name: &str) -> &str {
    name.strip_prefix('/').unwrap_or(name)
}

/// Returns the name of a listed container. (Names that links gave it contain another slash.)
pub(crate) fn listed_name(container: &ContainerSummary) -> &str {
    let names = container.names.as_deref().unwrap_or_default();
    names.iter().map(|name| plain_name(name)).find(|name| !name.contains('/')).unwrap_or_default()
}
