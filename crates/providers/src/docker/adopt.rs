//! Containers and volumes that look like Eyot's but are not known to this state folder: made before
//! labels had MACs, made by another state folder, or forged. They are shown and left alone until an
//! operator adopts them. Labels can't be changed, so an adoption is a note in the state folder.

use std::collections::HashMap;

use bollard::models::{ContainerInspectResponse, ContainerStateStatusEnum, Volume};
use bollard::query_parameters::ListVolumesOptionsBuilder;
use eyot::{Error, ErrorKind, Result, WorkspaceSpec};
use serde::{Deserialize, Serialize};

use super::engine::is_absent;
use super::find::{Looked, all, believed, by_id, listed_name, look, plain_name};
use super::host::Host;
use super::labels::{ID, MAC, RECORD, Record, SCHEMA, STATE, UNSIGNED_VERSION, WORKSPACE};
use super::state::{Notes, OpenState};
use super::successor::final_name;
use super::workspace::{is_ours, volume_name};
use crate::row::{Adopted, Foreign, ForeignKind};

const BEFORE: &str = "it was made before labels were signed";
const ANOTHERS: &str = "another state folder made it";
const UNSIGNED: &str = "its labels are not signed by this state folder: they were copied or forged";

/// The note of an adopted container.
#[derive(Serialize, Deserialize)]
struct Note {
    schema: String,
    record: String,
}

/// Returns the record of an adopted container.
pub(super) fn adopted_record(state: &OpenState, container: &str, name: &str) -> Option<Record> {
    let note: Note = serde_json::from_str(&state.noted(Notes::Containers, container)?).ok()?;
    let record = Record::read(state.seal(), &note.schema, &note.record)?;
    (record.container_name() == name).then_some(record)
}

/// Tells whether a volume was adopted. A volume that was removed and made again does not count.
pub(super) fn is_adopted(state: &OpenState, volume: &Volume) -> bool {
    let noted = state.noted(Notes::Volumes, &volume.name);
    noted.is_some() && noted == made_at(volume)
}

fn made_at(volume: &Volume) -> Option<String> {
    volume.created_at.as_ref().map(ToString::to_string)
}

/// Lists everything foreign on the Engine, with its name.
pub(super) async fn foreign(host: &Host) -> Result<Vec<Foreign>> {
    let state = host.state.open().await?;
    let mut foreign = Vec::new();
    for container in all(host).await? {
        let (id, name) = (container.id.as_deref().unwrap_or_default(), listed_name(&container));
        // It is about to take the place of a sandbox's container.
        if final_name(name).is_some() {
            continue;
        }
        let labels = container.labels.clone().unwrap_or_default();
        let mounts = container.mounts.as_deref().unwrap_or_default();
        // What the list does not show of mounts, the container itself does.
        if believed(state, id, name, &labels, mounts).is_none()
            && matches!(look(host, id).await?, Looked::Foreign)
        {
            let name = name.to_owned();
            foreign.push(Foreign { kind: ForeignKind::Container, name, why: why(state, &labels) });
        }
    }
    for volume in workspaces(host).await?.into_iter().filter(|volume| !is_ours(state, volume)) {
        let why = why(state, &volume.labels);
        foreign.push(Foreign { kind: ForeignKind::Volume, name: volume.name, why });
    }
    foreign.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(foreign)
}

async fn workspaces(host: &Host) -> Result<Vec<Volume>> {
    let filters: HashMap<&str, Vec<&str>> = HashMap::from([("label", vec![WORKSPACE])]);
    let options = ListVolumesOptionsBuilder::default().filters(&filters).build();
    let listed = host.engine.client().await?.list_volumes(Some(options)).await;
    let listed = listed.map_err(|error| host.engine.failed("list volumes", error))?;
    Ok(listed.volumes.unwrap_or_default())
}

fn why(state: &OpenState, labels: &HashMap<String, String>) -> &'static str {
    match labels.get(STATE).filter(|id| !id.is_empty()) {
        Some(id) if id != state.seal().state_id() => ANOTHERS,
        None if !labels.contains_key(MAC) => BEFORE,
        _ => UNSIGNED,
    }
}

/// Adopts a container, by its name or id or by those of its sandbox; or a volume, by its name.
pub(super) async fn adopt(host: &Host, named: &str) -> Result<Adopted> {
    let adopted = match volume(host, named).await? {
        Some(volume) => adopt_volume(host, &volume).await,
        None => adopt_container(host, named).await,
    };
    adopted.map_err(|error| error.context(format!("adopt `{named}`")))
}

/// Finds the volume of a persistent workspace by name.
async fn volume(host: &Host, named: &str) -> Result<Option<Volume>> {
    if !named.starts_with(&volume_name("")) {
        return Ok(None);
    }
    match host.engine.client().await?.inspect_volume(named).await {
        Err(error) if is_absent(&error) => Ok(None),
        found => found.map(Some).map_err(|error| host.engine.failed("look at a volume", error)),
    }
}

async fn adopt_volume(host: &Host, volume: &Volume) -> Result<Adopted> {
    let state = host.state.open().await?;
    if is_ours(state, volume) {
        return Err(ours_already());
    }
    let made_at = made_at(volume)
        .ok_or_else(|| Error::new(ErrorKind::Unsupported, "the Engine does not say when it was made"))?;
    state.note(Notes::Volumes, &volume.name, &made_at)?;
    let (kind, name) = (ForeignKind::Volume, volume.name.clone());
    Ok(Adopted { kind, name, id: None, foreign_volume: None, lacks_variables: false })
}

fn ours_already() -> Error {
    Error::new(ErrorKind::Conflict, "it is of this state folder already")
}

async fn adopt_container(host: &Host, named: &str) -> Result<Adopted> {
    let state = host.state.open().await?;
    let found = find(host, named).await?;
    let container = found.id.as_deref().unwrap_or_default();
    if matches!(look(host, container).await?, Looked::Ours(_)) {
        return Err(ours_already());
    }
    let (note, record) = readable(state, &found)?;
    if !by_id(host, &record.id).await?.is_empty() {
        let message = format!("this state folder has another sandbox with the id {}", record.id);
        return Err(Error::new(ErrorKind::Conflict, message));
    }
    let text = serde_json::to_string(&note)
        .map_err(|error| Error::new(ErrorKind::Internal, "write a note").with_source(error))?;
    state.note(Notes::Containers, container, &text)?;
    if !matches!(look(host, container).await?, Looked::Ours(_)) {
        state.forget(Notes::Containers, container);
        return Err(unreadable("it does not have the mount of Eyot's guest"));
    }
    let foreign_volume = foreign_volume(host, &record).await?;
    let (kind, name) = (ForeignKind::Container, record.name.to_string());
    let lacks_variables = record.hidden.is_some();
    Ok(Adopted { kind, name, id: Some(record.id), foreign_volume, lacks_variables })
}

/// Finds a container by its name or id, or by the sandbox that its labels name.
async fn find(host: &Host, named: &str) -> Result<ContainerInspectResponse> {
    for candidate in [named.to_owned(), format!("eyot-{named}")] {
        if let Some(found) = host.engine.inspected(&candidate).await? {
            return Ok(found);
        }
    }
    let of_id = |labels: &HashMap<String, String>| labels.get(ID).is_some_and(|id| id == named);
    let mut listed = all(host).await?;
    listed.retain(|container| container.labels.as_ref().is_some_and(of_id));
    match listed.as_slice() {
        [only] => {
            let found = host.engine.inspected(only.id.as_deref().unwrap_or_default()).await?;
            found.ok_or_else(absent)
        }
        [] => Err(absent()),
        _ => Err(Error::new(ErrorKind::Conflict, "several containers have this id in their labels")
            .with_hint("name one of them: `eyot --provider docker ls` shows their names")),
    }
}

fn absent() -> Error {
    Error::new(ErrorKind::NotFound, "the Engine has no such container, and no such volume of a workspace")
        .with_hint("`eyot --provider docker ls` shows what can be adopted")
}

fn unreadable(reason: impl Into<String>) -> Error {
    Error::new(ErrorKind::Invalid, reason)
}

/// Reads the record in a container's labels. It is checked as far as an unsigned record can be.
fn readable(state: &OpenState, found: &ContainerInspectResponse) -> Result<(Note, Record)> {
    let labels = found.config.as_ref().and_then(|config| config.labels.as_ref());
    let label = |key: &str| labels.and_then(|labels| labels.get(key)).cloned();
    if labels.is_none_or(|labels| !labels.contains_key(SCHEMA)) {
        return Err(unreadable("Eyot did not make this container: it has no labels of Eyot's"));
    }
    let no_record = || unreadable("it has no record that this version of Eyot can read");
    let note =
        Note { schema: label(SCHEMA).ok_or_else(no_record)?, record: label(RECORD).ok_or_else(no_record)? };
    let record = Record::read(state.seal(), &note.schema, &note.record).ok_or_else(no_record)?;
    record.spec.clone().validate().map_err(|error| error.context("its record is wrong"))?;
    let (name, wanted) = (plain_name(found.name.as_deref().unwrap_or_default()), record.container_name());
    if name != wanted {
        return Err(unreadable(format!("its record is of a container called `{wanted}`"))
            .with_hint("its labels may have been copied; if you renamed it, rename it back: docker rename"));
    }
    let status = found.state.as_ref().and_then(|state| state.status);
    let is_stopped =
        matches!(status, Some(ContainerStateStatusEnum::EXITED | ContainerStateStatusEnum::CREATED));
    if note.schema != UNSIGNED_VERSION && !is_stopped {
        let message = "it runs, and its guest answers only the state folder that has started it";
        return Err(Error::new(ErrorKind::Conflict, message).with_hint(format!("docker stop {name}")));
    }
    Ok((note, record))
}

/// Returns the name of the volume of a sandbox's persistent workspace, if the volume exists and is
/// not ours.
async fn foreign_volume(host: &Host, record: &Record) -> Result<Option<String>> {
    let WorkspaceSpec::Persistent { id, .. } = &record.spec.workspace else { return Ok(None) };
    let state = host.state.open().await?;
    let found = volume(host, &volume_name(id)).await?;
    Ok(found.filter(|volume| !is_ours(state, volume)).map(|volume| volume.name))
}
