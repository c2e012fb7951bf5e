//! The guest's program on the Engine's side: a volume named by its content, filled once by the Engine's archive call (so
//! that it works on another host too), and read-only in every sandbox. That it is whole can be seen only through a
//! container, which takes a tenth of a second; so a second, empty volume is made once it was seen, and stands for that.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use bollard::Docker;
use bollard::body_full;
use bollard::models::{
    ContainerCreateBody, HostConfig, Mount, MountType, MountVolumeOptions, Volume, VolumeCreateRequest,
};
use bollard::query_parameters::{
    ContainerArchiveInfoOptionsBuilder, CreateContainerOptionsBuilder, RemoveContainerOptionsBuilder,
    RemoveVolumeOptions, UploadToContainerOptionsBuilder, WaitContainerOptionsBuilder,
};
use bytes::Bytes;
use eyot::{Error, ErrorKind, Result, SandboxId};
use eyot_guest::protocol::container::{GUEST_DIR, GUEST_FILE};
use futures_util::StreamExt;
use sha2::{Digest, Sha256};

use super::engine::{Engine, is_absent, is_conflict};
use super::labels::{SCHEMA, SCHEMA_VERSION};

/// An empty file that is written after the program: where it is, the program is whole.
const COMPLETE: &str = "complete";
/// On the volume, and on the one that says that it is whole: which volume of the name it is. One that was removed, and made
/// again, is another.
const MAKING: &str = "dev.eyot.making";
/// How long somebody else may take to fill the volume before they count as gone.
const FILLING_PATIENCE: Duration = Duration::from_secs(30);
/// How long it is tried against others who do the same.
const PATIENCE: Duration = Duration::from_secs(120);
/// How long to leave one who is about to fill the volume, and has nothing yet that could be waited for.
const BEGINNING: Duration = Duration::from_millis(20);

/// The volume's name.
pub(crate) fn name() -> &'static str {
    // A digest of megabytes takes milliseconds.
    static NAME: LazyLock<String> = LazyLock::new(|| {
        let digest = Sha256::digest(eyot_guest::PROGRAM);
        format!("eyot-guest-{}", hex::encode(&digest[..12]))
    });
    &NAME
}

fn mark_name() -> String {
    format!("{}-whole", name())
}

/// The mount of it that every sandbox has.
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

/// Makes sure that the Engine has the volume, and the program whole in it. `image`: any that is there; nothing of it runs.
pub(crate) async fn ensure(engine: &Engine, image: &str) -> Result<()> {
    let docker = engine.client().await?;
    let failed = |error| engine.failed("create sandbox: place the guest", error);
    let making = make(docker, name(), SandboxId::generate().as_str()).await.map_err(failed)?;
    let given_up = Instant::now() + PATIENCE;
    while Instant::now() < given_up {
        // Also by whoever was waited for.
        if is_marked(docker, making.as_deref()).await.map_err(failed)? {
            return Ok(());
        }
        let filler = match Filler::make(docker, image).await {
            Err(error) if is_conflict(&error) => {
                wait_for_the_other(engine, docker).await?;
                continue;
            }
            filler => filler.map_err(failed)?,
        };
        let filled = match filler.fill().await {
            Ok(()) => mark(docker, making.as_deref()).await,
            failed => failed,
        };
        filler.remove().await.map_err(failed)?;
        return filled.map_err(failed);
    }
    Err(Error::new(
        ErrorKind::Unavailable,
        "create sandbox: place the guest: others keep filling the same volume",
    ))
}

/// Which volume of its name it is: by its label, or, if the Engine itself has made it for a container, by its time.
fn making_of(mut volume: Volume) -> Option<String> {
    volume.labels.remove(MAKING).or_else(|| volume.created_at.map(|time| time.to_string()))
}

/// Makes a volume unless it is there. Which one of its name it is, if that is known.
async fn make(docker: &Docker, name: &str, making: &str) -> Result<Option<String>, bollard::errors::Error> {
    let labels = [(SCHEMA, SCHEMA_VERSION), (MAKING, making)];
    let labels = labels.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let volume = VolumeCreateRequest {
        name: Some(name.to_owned()),
        labels: Some(labels.into()),
        ..VolumeCreateRequest::default()
    };
    // One that is there is returned as it is.
    Ok(making_of(docker.create_volume(volume).await?))
}

/// Whether somebody has seen this very volume whole.
async fn is_marked(docker: &Docker, making: Option<&str>) -> Result<bool, bollard::errors::Error> {
    match docker.inspect_volume(&mark_name()).await {
        Err(error) if is_absent(&error) => Ok(false),
        found => Ok(making.is_some() && found?.labels.get(MAKING).map(String::as_str) == making),
    }
}

/// Notes that the volume is whole. One of which nothing tells it from another of its name is looked into every time.
async fn mark(docker: &Docker, making: Option<&str>) -> Result<(), bollard::errors::Error> {
    let Some(making) = making else { return Ok(()) };
    if make(docker, &mark_name(), making).await?.as_deref() != Some(making) {
        // An earlier volume's.
        docker.remove_volume(&mark_name(), None::<RemoveVolumeOptions>).await?;
        make(docker, &mark_name(), making).await?;
    }
    Ok(())
}

/// A container that never runs: the way to the volume's files, and the lock of whoever fills it.
struct Filler<'d> {
    docker: &'d Docker,
}

fn filler_name() -> String {
    format!("{}-filling", name())
}

impl<'d> Filler<'d> {
    async fn make(docker: &'d Docker, image: &str) -> Result<Self, bollard::errors::Error> {
        let options = CreateContainerOptionsBuilder::default().name(&filler_name()).build();
        let mount = Mount { read_only: Some(false), ..mount() };
        let body = ContainerCreateBody {
            image: Some(image.to_owned()),
            cmd: Some(vec!["none".to_owned()]),
            labels: Some([(SCHEMA.to_owned(), SCHEMA_VERSION.to_owned())].into()),
            host_config: Some(HostConfig {
                mounts: Some(vec![mount]),
                network_mode: Some("none".to_owned()),
                ..HostConfig::default()
            }),
            ..ContainerCreateBody::default()
        };
        docker.create_container(Some(options), body).await?;
        Ok(Self { docker })
    }

    async fn fill(&self) -> Result<(), bollard::errors::Error> {
        let path = format!("{GUEST_DIR}/{COMPLETE}");
        let options = ContainerArchiveInfoOptionsBuilder::default().path(&path).build();
        match self.docker.get_container_archive_info(&filler_name(), Some(options)).await {
            Err(error) if is_absent(&error) => {}
            found => return found.map(drop),
        }
        let options = UploadToContainerOptionsBuilder::default().path(GUEST_DIR).build();
        let archive = body_full(archive()?);
        self.docker.upload_to_container(&filler_name(), Some(options), archive).await
    }

    async fn remove(&self) -> Result<(), bollard::errors::Error> {
        remove_filler(self.docker).await
    }
}

async fn remove_filler(docker: &Docker) -> Result<(), bollard::errors::Error> {
    let options = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
    match docker.remove_container(&filler_name(), Some(options)).await {
        Err(error) if is_absent(&error) || is_conflict(&error) => Ok(()),
        removed => removed,
    }
}

/// Waits until whoever fills the volume is done. One who takes too long was killed over it.
async fn wait_for_the_other(engine: &Engine, docker: &Docker) -> Result<()> {
    let options = WaitContainerOptionsBuilder::default().condition("removed").build();
    let mut waiting = Box::pin(docker.wait_container(&filler_name(), Some(options)));
    match tokio::time::timeout(FILLING_PATIENCE, waiting.next()).await {
        // Its name is taken before it can be found.
        Ok(Some(Err(error))) if is_absent(&error) => {
            tokio::time::sleep(BEGINNING).await;
            Ok(())
        }
        Ok(_) => Ok(()),
        Err(_) => remove_filler(docker)
            .await
            .map_err(|error| engine.failed("create sandbox: place the guest", error)),
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
