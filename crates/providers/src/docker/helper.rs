//! A container that never runs: it gives access to the files of an image. It is removed when it is dropped.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bollard::models::{ContainerCreateBody, HostConfig, Mount, MountType, MountVolumeOptions};
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, ListContainersOptionsBuilder, RemoveContainerOptionsBuilder,
    RemoveVolumeOptions,
};
use eyot::internal::now_ms;
use eyot::{Result, SandboxId};

use super::engine::{Engine, is_absent, is_conflict};
use super::host::Host;
use super::labels::{COMPARED, MAC, MAKING, STATE};
use super::seal::{Kind, Seal};
use super::{accounts, image};

const PREFIX: &str = "eyot-helper-";
/// The age at which a helper that is read counts as left over by a killed process. None is needed for longer.
const PATIENCE: Duration = Duration::from_secs(2 * 60 * 60);

/// The use of a helper.
#[derive(Debug, Clone, Copy)]
pub(crate) enum HelperUse {
    /// The files become part of a snapshot. Only whoever has the lock of the snapshots makes one.
    Written,
    /// The files are read.
    Read,
}

impl HelperUse {
    fn prefix(self) -> String {
        let word = match self {
            Self::Written => "written",
            Self::Read => "read",
        };
        format!("{PREFIX}{word}-")
    }
}

/// A helper.
pub(crate) struct HelperContainer {
    host: Arc<Host>,
    id: Option<String>,
    /// The image, if it goes with the helper.
    image: Option<String>,
    /// The volume that it reads.
    volume: Option<String>,
}

impl HelperContainer {
    /// Makes one from an image of the Engine, with the volume of this name at this path.
    pub(crate) async fn make(
        host: &Arc<Host>,
        purpose: HelperUse,
        image: &str,
        volume: Option<(String, String)>,
    ) -> Result<Self> {
        let (host, image) = (Arc::clone(host), image.to_owned());
        // The Engine makes it even if nobody waits for the answer any more.
        eyot::internal::run_detached(async move {
            let name = format!("{}{}", purpose.prefix(), SandboxId::generate());
            let read = volume.as_ref().map(|(name, _)| name.clone());
            let options = CreateContainerOptionsBuilder::default().name(&name).build();
            let body = body(image, volume, labels(host.state.open().await?.seal(), &name));
            let made = host.engine.client().await?.create_container(Some(options), body).await;
            let made = made.map_err(|error| host.engine.failed("open the files of an image", error))?;
            let helper = Self { id: Some(made.id), image: None, volume: read, host };
            // An Engine reads these files of a container to write an archive, too.
            accounts::make_harmless(&helper.host.engine, helper.id()).await?;
            Ok(helper)
        })
        .await
    }

    /// Removes the image with the helper.
    pub(crate) fn with_image(mut self, image: String) -> Self {
        self.image = Some(image);
        self
    }

    /// Returns the Engine's id of the container.
    pub(crate) fn id(&self) -> &str {
        self.id.as_deref().unwrap_or_default()
    }

    /// Removes it.
    pub(crate) async fn remove(mut self) -> Result<()> {
        let (image, volume) = (self.image.as_deref(), self.volume.as_deref());
        let removed = remove(&self.host.engine, self.id(), image, volume).await;
        self.id = None;
        removed
    }
}

impl Drop for HelperContainer {
    fn drop(&mut self) {
        let (Some(id), Ok(runtime)) = (self.id.take(), tokio::runtime::Handle::try_current()) else { return };
        let (host, image, volume) = (Arc::clone(&self.host), self.image.take(), self.volume.take());
        runtime.spawn(async move {
            if let Err(error) = remove(&host.engine, &id, image.as_deref(), volume.as_deref()).await {
                tracing::warn!(%error, "remove a container that gave access to files");
            }
        });
    }
}

async fn remove(engine: &Engine, id: &str, image: Option<&str>, volume: Option<&str>) -> Result<()> {
    let options = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
    match engine.client().await?.remove_container(id, Some(options)).await {
        Err(error) if is_absent(&error) || is_conflict(&error) => {}
        removed => removed.map_err(|error| engine.failed("remove a helper container", error))?,
    }
    if let Some(volume) = volume {
        remove_nameless(engine, volume).await?;
    }
    match image {
        Some(image) => image::remove(engine, image).await.map(drop),
        None => Ok(()),
    }
}

/// Removes a nameless volume that no container uses any more: its sandbox was destroyed while the helper had it.
async fn remove_nameless(engine: &Engine, volume: &str) -> Result<()> {
    if !is_nameless(volume) {
        return Ok(());
    }
    match engine.client().await?.remove_volume(volume, None::<RemoveVolumeOptions>).await {
        Err(error) if is_absent(&error) || is_conflict(&error) => Ok(()),
        removed => removed.map_err(|error| engine.failed("remove a sandbox's volume", error)),
    }
}

/// Tells whether the Engine has made a volume's name up.
fn is_nameless(volume: &str) -> bool {
    volume.len() == 64 && volume.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn body(
    image: String,
    volume: Option<(String, String)>,
    labels: HashMap<String, String>,
) -> ContainerCreateBody {
    let mount = |(name, target)| Mount {
        source: Some(name),
        read_only: Some(true),
        volume_options: Some(MountVolumeOptions { no_copy: Some(true), ..MountVolumeOptions::default() }),
        typ: Some(MountType::VOLUME),
        target: Some(target),
        ..Mount::default()
    };
    ContainerCreateBody {
        image: Some(image),
        cmd: Some(vec!["none".to_owned()]),
        labels: Some(labels),
        host_config: Some(HostConfig {
            mounts: Some(volume.into_iter().map(mount).collect()),
            network_mode: Some("none".to_owned()),
            ..HostConfig::default()
        }),
        ..ContainerCreateBody::default()
    }
}

fn labels(seal: &Seal, name: &str) -> HashMap<String, String> {
    let making = SandboxId::generate().to_string();
    let mac = seal.mac(Kind::Helper, name, &making);
    let labels = [(STATE, seal.state_id().to_owned()), (MAKING, making), (MAC, mac)];
    labels.map(|(key, value)| (key.to_owned(), value)).into()
}

/// Removes the helpers that killed processes of this state folder have left. For whoever has the lock of the snapshots.
pub(crate) async fn remove_left_over(host: &Host) -> Result<()> {
    let seal = host.state.open().await?.seal();
    let filters = HashMap::from([
        ("label", vec![format!("{STATE}={}", seal.state_id())]),
        ("name", vec![PREFIX.to_owned()]),
    ]);
    let options = ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
    let listed = host.engine.client().await?.list_containers(Some(options)).await;
    let oldest = now_ms() / 1000 - PATIENCE.as_secs() as i64;
    for container in listed.map_err(|error| host.engine.failed("list helper containers", error))? {
        let labels = container.labels.unwrap_or_default();
        let names = container.names.unwrap_or_default();
        let names = names.iter().map(|name| name.trim_start_matches('/'));
        let is_left_over = names.clone().any(|name| name.starts_with(&HelperUse::Written.prefix()))
            || container.created < Some(oldest);
        let is_ours = names.into_iter().any(|name| match (labels.get(MAKING), labels.get(MAC)) {
            (Some(making), Some(mac)) => seal.verifies(Kind::Helper, name, making, mac),
            _ => false,
        });
        if let Some(id) = container.id.filter(|_| is_ours && is_left_over) {
            let volume = container.mounts.into_iter().flatten().find_map(|mount| mount.name);
            remove(&host.engine, &id, None, volume.as_deref()).await?;
        }
    }
    for image in image::labelled(&host.engine, &[&format!("{COMPARED}={}", seal.state_id())]).await? {
        if image.created < oldest {
            image::remove(&host.engine, &image.id).await?;
        }
    }
    Ok(())
}
