//! Finding sandboxes among the Engine's containers, by their labels.

use std::collections::HashMap;

use bollard::models::{ContainerInspectResponse, ContainerSummary};
use bollard::query_parameters::{InspectContainerOptions, ListContainersOptionsBuilder};
use eyot::{Error, ErrorKind, Result, SandboxId, SandboxName};

use super::condition::Condition;
use super::engine::{Engine, is_absent};
use super::labels::{ID, Record, SCHEMA, container_name};

/// A sandbox as it was found.
#[derive(Debug, Clone)]
pub(crate) struct Found {
    pub record: Record,
    /// The Engine's own id of the container, which is never used twice.
    pub container: String,
    pub condition: Condition,
    /// When the Engine made the container, in its words.
    pub made_at: String,
}

/// Finds a sandbox by id or name.
pub(crate) async fn find(engine: &Engine, id_or_name: &str) -> Result<Found> {
    let found = match SandboxId::parse(id_or_name) {
        Ok(id) => by_id(engine, &id).await?.into_iter().next(),
        Err(_) => by_name(engine, id_or_name).await?,
    };
    found.ok_or_else(|| not_found(id_or_name))
}

fn not_found(id_or_name: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("there is no sandbox `{id_or_name}`"))
        .with_hint("`eyot ls` shows those that are there")
}

async fn by_name(engine: &Engine, name: &str) -> Result<Option<Found>> {
    match SandboxName::parse(name) {
        Ok(name) => inspect(engine, &container_name(&name)).await,
        Err(_) => Ok(None),
    }
}

/// Every sandbox of this id: more than one only while some of them are being made, and are about to be refused.
pub(crate) async fn by_id(engine: &Engine, id: &SandboxId) -> Result<Vec<Found>> {
    let mut found = Vec::new();
    for container in containers(engine, &format!("{ID}={id}")).await? {
        let id = container.id.unwrap_or_default();
        found.extend(inspect(engine, &id).await?);
    }
    Ok(found)
}

/// Every container of a sandbox.
pub(crate) async fn all(engine: &Engine) -> Result<Vec<ContainerSummary>> {
    containers(engine, SCHEMA).await
}

async fn containers(engine: &Engine, label: &str) -> Result<Vec<ContainerSummary>> {
    let filters: HashMap<&str, Vec<&str>> = HashMap::from([("label", vec![label])]);
    let options = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
    let listed = engine.client().await?.list_containers(Some(options)).await;
    listed.map_err(|error| engine.failed("list sandboxes", error))
}

/// The sandbox of a container, by the container's id or name; `None` if there is none, or it is no sandbox.
pub(crate) async fn inspect(engine: &Engine, container: &str) -> Result<Option<Found>> {
    match engine.client().await?.inspect_container(container, None::<InspectContainerOptions>).await {
        Ok(inspected) => Ok(Found::of(inspected)),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(engine.failed("look at a sandbox", error)),
    }
}

impl Found {
    fn of(inspected: ContainerInspectResponse) -> Option<Self> {
        let labels = inspected.config.as_ref()?.labels.as_ref()?;
        let record = Record::of(labels)?;
        let condition = Condition::of(&record, &inspected);
        let made_at = inspected.created.map(|created| created.to_string()).unwrap_or_default();
        Some(Self { record, condition, made_at, container: inspected.id? })
    }
}
