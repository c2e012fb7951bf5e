//! The guest's program on the Engine's host: a volume that is named by its content and read-only in
//! every sandbox. The Engine's archive call fills it once, so that it also works on another host.
//! Several state folders share it. Its content can be read only through a container, which takes a
//! tenth of a second, so each state folder compares it once and notes that.

use std::collections::HashMap;
use std::io::Read;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use bollard::Docker;
use bollard::body_full;
use bollard::models::{
    ContainerCreateBody, HostConfig, Mount, MountType, MountVolumeOptions, VolumeCreateRequest,
};
use bollard::query_parameters::{
    ContainerArchiveInfoOptionsBuilder, CreateContainerOptionsBuilder, DownloadFromContainerOptionsBuilder,
    RemoveContainerOptionsBuilder, UploadToContainerOptionsBuilder, WaitContainerOptionsBuilder,
};
use bytes::Bytes;
use eyot::{Error, ErrorKind, Result, SandboxId};
use eyot_guest::protocol::container::{GUEST_DIR, GUEST_FILE};
use futures_util::{StreamExt, TryStreamExt};
use sha2::{Digest, Sha256};

use super::engine::{is_absent, is_conflict};
use super::host::Host;
use super::labels::{MAC, MAKING, SCHEMA, SCHEMA_VERSION, STATE};
use super::seal::Kind;
use super::state::Notes;

/// An empty file that is written after the program. If it is there, the program is complete.
const COMPLETE: &str = "complete";
/// The prefix of the names of all volumes with a guest.
pub(crate) const PREFIX: &str = "eyot-guest-";
const PLACE: &str = "create sandbox: place the guest";
/// The longest wait for another process to fill the volume, before it counts as dead.
const FILLING_PATIENCE: Duration = Duration::from_secs(30);
/// The size of an archive of one file beyond the file's own, in bytes.
const ARCHIVE_OVERHEAD: usize = 64 << 10;
/// The longest wait for access to the volume while other processes fill it.
const PATIENCE: Duration = Duration::from_secs(120);
/// The wait before the next try, when another process has the filler's name but its container can't
/// be waited for yet.
const BEGINNING: Duration = Duration::from_millis(20);

/// Returns the volume's name.
pub(crate) fn name() -> &'static str {
    // A digest of megabytes takes milliseconds.
    static NAME: LazyLock<String> = LazyLock::new(|| {
        let digest = Sha256::digest(eyot_guest::PROGRAM);
        format!("{PREFIX}{}", hex::encode(&digest[..12]))
    });
    &NAME
}

/// Returns the mount of the volume in every sandbox.
pub(crate) fn mount() -> Mount {
    Mount {
        target: Some(GUEST_DIR.to_owned()),
        source: Some(name().to_owned()),
        typ: Some(MountType::VOLUME),
        read_only: Some(true),
        volume_options: Some(MountVolumeOptions { no_copy: Some(true), ..MountVolumeOptions::default() }),
        ..Mount::default()
    }
}

/// Makes sure that the Engine has the volume with the complete program. `image` can be any that the
/// Engine has; nothing of it runs.
pub(crate) async fn ensure(host: &Host, image: &str) -> Result<()> {
    let (docker, state) = (host.engine.client().await?, host.state.open().await?);
    let volume = make(docker).await.map_err(|error| host.engine.failed(PLACE, error))?;
    let given_up = Instant::now() + PATIENCE;
    while Instant::now() < given_up {
        if volume.is_some() && state.noted(Notes::Guests, name()) == volume {
            return Ok(());
        }
        let filler = match Filler::make(host, docker, image).await {
            Err(error) if is_conflict(&error) => {
                wait_for_the_other(host, docker).await?;
                continue;
            }
            filler => filler.map_err(|error| host.engine.failed(PLACE, error))?,
        };
        let filled = filler.fill().await;
        filler.remove().await.map_err(|error| host.engine.failed(PLACE, error))?;
        filled?;
        // One that nothing tells from another of its name is looked into every time.
        return volume.map_or(Ok(()), |volume| state.note(Notes::Guests, name(), &volume));
    }
    Err(Error::new(ErrorKind::Unavailable, format!("{PLACE}: others keep filling the same volume")))
}

/// Makes the volume unless it exists. Returns the mark that tells it from an earlier volume of the
/// same name, if the Engine has one.
async fn make(docker: &Docker) -> Result<Option<String>, bollard::errors::Error> {
    let making = SandboxId::generate();
    let labels = [(SCHEMA, SCHEMA_VERSION), (MAKING, making.as_str())];
    let volume = VolumeCreateRequest {
        name: Some(name().to_owned()),
        labels: Some(labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into()),
        ..VolumeCreateRequest::default()
    };
    // One that is there is returned as it is.
    let volume = docker.create_volume(volume).await?;
    let making = volume.labels.get(MAKING).cloned().unwrap_or_default();
    Ok(volume.created_at.map(|time| format!("{making} {time}")))
}

/// A container that never runs. It gives access to the volume's files, and its name is the lock
/// under which the volume is filled.
struct Filler<'h> {
    host: &'h Host,
    docker: &'h Docker,
    container: String,
}

fn filler_name() -> String {
    format!("{}-filling", name())
}

impl<'h> Filler<'h> {
    async fn make(host: &'h Host, docker: &'h Docker, image: &str) -> Result<Self, bollard::errors::Error> {
        let options = CreateContainerOptionsBuilder::default().name(&filler_name()).build();
        let mount = Mount { read_only: Some(false), ..mount() };
        let body = ContainerCreateBody {
            image: Some(image.to_owned()),
            cmd: Some(vec!["none".to_owned()]),
            labels: Some(labels(host).await),
            host_config: Some(HostConfig {
                mounts: Some(vec![mount]),
                network_mode: Some("none".to_owned()),
                ..HostConfig::default()
            }),
            ..ContainerCreateBody::default()
        };
        let container = docker.create_container(Some(options), body).await?.id;
        Ok(Self { host, docker, container })
    }

    /// Writes the program into the volume. If a program is there, it must be the same.
    async fn fill(&self) -> Result<()> {
        let failed = |error| self.host.engine.failed(PLACE, error);
        let path = format!("{GUEST_DIR}/{COMPLETE}");
        let options = ContainerArchiveInfoOptionsBuilder::default().path(&path).build();
        match self.docker.get_container_archive_info(&self.container, Some(options)).await {
            Err(error) if is_absent(&error) => {}
            Err(error) => return Err(failed(error)),
            Ok(_) => return self.compare().await,
        }
        let options = UploadToContainerOptionsBuilder::default().path(GUEST_DIR).build();
        let archive = archive().map_err(|error| failed(error.into()))?;
        let filled =
            self.docker.upload_to_container(&self.container, Some(options), body_full(archive)).await;
        filled.map_err(failed)
    }

    /// Refuses a volume with another program in it, which somebody else must have made.
    async fn compare(&self) -> Result<()> {
        let path = format!("{GUEST_DIR}/{GUEST_FILE}");
        let options = DownloadFromContainerOptionsBuilder::default().path(&path).build();
        let mut pieces = self.docker.download_from_container(&self.container, Some(options));
        let mut found = Vec::new();
        while found.len() < eyot_guest::PROGRAM.len() + ARCHIVE_OVERHEAD {
            match pieces.try_next().await {
                Ok(Some(piece)) => found.extend_from_slice(&piece),
                Ok(None) => break,
                Err(error) => return Err(self.host.engine.failed(PLACE, error)),
            }
        }
        if is_guest(&found) {
            return Ok(());
        }
        let message = format!("{PLACE}: the Engine's volume `{}` holds another program", name());
        let hint = format!("somebody else has made it; remove it: docker volume rm {}", name());
        Err(Error::new(ErrorKind::Conflict, message).with_hint(hint))
    }

    async fn remove(&self) -> Result<(), bollard::errors::Error> {
        remove_filler(self.docker, &self.container).await
    }
}

/// Tells whether the archive's first entry is the program.
fn is_guest(archive: &[u8]) -> bool {
    let mut archive = tar::Archive::new(archive);
    let Ok(mut entries) = archive.entries() else { return false };
    let Some(Ok(mut entry)) = entries.next() else { return false };
    let mut content = Vec::new();
    entry.header().entry_type().is_file()
        && entry.read_to_end(&mut content).is_ok()
        && content == eyot_guest::PROGRAM
}

/// Returns the filler's labels. The MAC shows that it is ours and may be removed.
async fn labels(host: &Host) -> HashMap<String, String> {
    let mut labels = HashMap::from([(SCHEMA.to_owned(), SCHEMA_VERSION.to_owned())]);
    if let Ok(state) = host.state.open().await {
        let making = SandboxId::generate().to_string();
        let mac = state.seal().mac(Kind::Filler, &filler_name(), &making);
        labels.insert(STATE.to_owned(), state.seal().state_id().to_owned());
        labels.extend([(MAKING.to_owned(), making), (MAC.to_owned(), mac)]);
    }
    labels
}

async fn remove_filler(docker: &Docker, container: &str) -> Result<(), bollard::errors::Error> {
    let options = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
    match docker.remove_container(container, Some(options)).await {
        Err(error) if is_absent(&error) || is_conflict(&error) => Ok(()),
        removed => removed,
    }
}

/// Waits until another process has filled the volume. A process that takes too long was killed, and
/// its filler is removed.
async fn wait_for_the_other(host: &Host, docker: &Docker) -> Result<()> {
    let options = WaitContainerOptionsBuilder::default().condition("removed").build();
    let mut waiting = Box::pin(docker.wait_container(&filler_name(), Some(options)));
    match tokio::time::timeout(FILLING_PATIENCE, waiting.next()).await {
        // Its name is taken before it can be found.
        Ok(Some(Err(error))) if is_absent(&error) => {
            tokio::time::sleep(BEGINNING).await;
            Ok(())
        }
        Ok(_) => Ok(()),
        Err(_) => remove_abandoned_filler(host, docker).await,
    }
}

/// Removes a filler that a killed process of this state folder has left. A filler of another state
/// folder is left alone, with an error.
async fn remove_abandoned_filler(host: &Host, docker: &Docker) -> Result<()> {
    let Some(found) = host.engine.inspected(&filler_name()).await? else { return Ok(()) };
    let labels = found.config.and_then(|config| config.labels).unwrap_or_default();
    let seal = host.state.open().await?.seal();
    let is_ours = match (labels.get(MAKING), labels.get(MAC)) {
        (Some(making), Some(mac)) => seal.verifies(Kind::Filler, &filler_name(), making, mac),
        _ => false,
    };
    match found.id.filter(|_| is_ours) {
        Some(id) => {
            let removed = remove_filler(docker, &id).await;
            removed.map_err(|error| host.engine.failed(PLACE, error))
        }
        None => {
            let message = format!("{PLACE}: somebody else's container `{}` is in the way", filler_name());
            let hint = format!("if nobody uses it: docker rm {}", filler_name());
            Err(Error::new(ErrorKind::Unavailable, message).with_hint(hint))
        }
    }
}

fn archive() -> std::io::Result<Bytes> {
    let mut archive = tar::Builder::new(Vec::with_capacity(eyot_guest::PROGRAM.len() + 4096));
    for (name, mode, content) in [(GUEST_FILE, 0o555, eyot_guest::PROGRAM), (COMPLETE, 0o444, &[][..])] {
        let mut header = tar::Header::new_gnu();
        header.set_mode(mode);
        header.set_size(content.len() as u64);
        archive.append_data(&mut header, name, content)?;
    }
    Ok(archive.into_inner()?.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_comes_before_the_mark_that_it_is_whole() {
        let bytes = archive().unwrap();
        let mut archive = tar::Archive::new(&bytes[..]);
        let names: Vec<(String, u64)> = archive
            .entries()
            .unwrap()
            .map(|entry| {
                entry.map(|entry| (entry.path().unwrap().display().to_string(), entry.size())).unwrap()
            })
            .collect();
        assert_eq!(
            names,
            [(GUEST_FILE.to_owned(), eyot_guest::PROGRAM.len() as u64), (COMPLETE.to_owned(), 0)]
        );
        assert!(name().len() == "eyot-guest-".len() + 24);
    }
}
