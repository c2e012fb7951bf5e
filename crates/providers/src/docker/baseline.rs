//! The Engine's own operations without Eyot, as the baseline of `eyot bench`. The containers are
//! hardened like ours (no network, no capabilities), but nothing of Eyot's is in them, and no
//! sandbox is found in one.

use std::collections::HashMap;

use bollard::body_full;
use bollard::exec::{CreateExecOptions, StartExecOptions, StartExecResults};
use bollard::models::{ContainerCreateBody, HostConfig};
use bollard::query_parameters::{
    CreateContainerOptionsBuilder, DownloadFromContainerOptionsBuilder, RemoveContainerOptionsBuilder,
    StartContainerOptions, UploadToContainerOptionsBuilder,
};
use bytes::Bytes;
use eyot::{Error, ErrorKind, PullPolicy, Result};
use futures_util::TryStreamExt;

use super::engine::{Engine, is_absent};
use super::image;

/// An Engine that is used directly, with one image. Cheap to make: the first call connects.
pub struct Baseline {
    engine: Engine,
    image: String,
    labels: HashMap<String, String>,
}

impl Baseline {
    /// Uses the Engine at this address (`None`: as for [`super::DockerOptions`]). The image must
    /// contain `sleep`. Its containers get `labels`.
    pub fn new(address: Option<String>, image: impl Into<String>, labels: HashMap<String, String>) -> Self {
        Self { engine: Engine::new(address), image: image.into(), labels }
    }

    /// Fails unless the Engine answers and has the image; nothing is fetched.
    ///
    /// # Errors
    /// `unavailable` without an Engine, `not_found` without the image. The hints say what to do.
    pub async fn check(&self) -> Result<()> {
        image::resolve(&self.engine, &self.image, PullPolicy::Never, &image::Fetchable::All).await.map(drop)
    }

    /// Makes and starts a container of this name that sleeps for an hour.
    ///
    /// # Errors
    /// Those of the Engine. A name in use is a `conflict`, never `already_exists`.
    pub async fn create(&self, name: &str) -> Result<()> {
        let failed = |error| self.engine.failed("make a container", error);
        let docker = self.engine.client().await?;
        let options = CreateContainerOptionsBuilder::default().name(name).build();
        docker.create_container(Some(options), self.body()).await.map_err(failed)?;
        docker.start_container(name, None::<StartContainerOptions>).await.map_err(failed)
    }

    fn body(&self) -> ContainerCreateBody {
        ContainerCreateBody {
            image: Some(self.image.clone()),
            entrypoint: Some(vec!["sleep".to_owned()]),
            cmd: Some(vec!["3600".to_owned()]),
            labels: Some(self.labels.clone()),
            host_config: Some(HostConfig {
                network_mode: Some("none".to_owned()),
                cap_drop: Some(vec!["ALL".to_owned()]),
                security_opt: Some(vec!["no-new-privileges".to_owned()]),
                ..HostConfig::default()
            }),
            ..ContainerCreateBody::default()
        }
    }

    /// Runs a command to its end, reads its output, and returns its exit code. That takes three
    /// calls: make an exec, start it attached, and inspect it.
    ///
    /// # Errors
    /// Those of the Engine.
    pub async fn exec(&self, name: &str, command: &[&str]) -> Result<i64> {
        let failed = |error| self.engine.failed("run a command", error);
        let docker = self.engine.client().await?;
        let options = CreateExecOptions {
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            cmd: Some(command.iter().map(|part| (*part).to_owned()).collect()),
            ..CreateExecOptions::default()
        };
        let exec = docker.create_exec(name, options).await.map_err(failed)?;
        let started = docker.start_exec(&exec.id, None::<StartExecOptions>).await.map_err(failed)?;
        if let StartExecResults::Attached { mut output, .. } = started {
            while output.try_next().await.map_err(failed)?.is_some() {}
        }
        let ended = docker.inspect_exec(&exec.id).await.map_err(failed)?;
        ended.exit_code.ok_or_else(|| Error::new(ErrorKind::Internal, "run a command: it has no exit code"))
    }

    /// Writes a file into a directory of the container, by the Engine's archive call.
    ///
    /// # Errors
    /// Those of the Engine; `not_found` without the directory.
    pub async fn write(&self, name: &str, directory: &str, file: &str, content: &[u8]) -> Result<()> {
        let archive = archive(file, content)
            .map_err(|error| Error::new(ErrorKind::Internal, "pack a file").with_source(error))?;
        let options = UploadToContainerOptionsBuilder::default().path(directory).build();
        let docker = self.engine.client().await?;
        let written = docker.upload_to_container(name, Some(options), body_full(archive)).await;
        written.map_err(|error| self.engine.failed("write a file", error))
    }

    /// Reads a file by the Engine's archive call, and returns the archive's size in bytes.
    ///
    /// # Errors
    /// Those of the Engine; `not_found` without the file.
    pub async fn read(&self, name: &str, path: &str) -> Result<usize> {
        let options = DownloadFromContainerOptionsBuilder::default().path(path).build();
        let docker = self.engine.client().await?;
        let pieces = docker.download_from_container(name, Some(options));
        let read = pieces.try_fold(0, |bytes, piece| async move { Ok(bytes + piece.len()) }).await;
        read.map_err(|error| self.engine.failed("read a file", error))
    }

    /// Removes a container by force. A container that does not exist is no error.
    ///
    /// # Errors
    /// Those of the Engine.
    pub async fn remove(&self, name: &str) -> Result<()> {
        let options = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
        match self.engine.client().await?.remove_container(name, Some(options)).await {
            Err(error) if !is_absent(&error) => Err(self.engine.failed("remove a container", error)),
            _ => Ok(()),
        }
    }
}

fn archive(name: &str, content: &[u8]) -> std::io::Result<Bytes> {
    let mut archive = tar::Builder::new(Vec::with_capacity(content.len() + 2048));
    let mut header = tar::Header::new_gnu();
    header.set_mode(0o644);
    header.set_size(content.len() as u64);
    archive.append_data(&mut header, name, content)?;
    Ok(archive.into_inner()?.into())
}
