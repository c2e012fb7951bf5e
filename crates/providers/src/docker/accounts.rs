//! The files of a container that the Engine itself opens, on its host, whenever it starts the
//! container: those with the users and groups inside. The sandbox can change them. If it put a FIFO
//! in their place, the Engine would wait for a writer forever while it holds the container's lock,
//! and the container could be neither inspected nor removed. So before a wake each of these files
//! is inspected (which opens nothing), and anything that is not a regular file is replaced by an
//! empty file.

use bollard::body_full;
use bollard::query_parameters::{ContainerArchiveInfoOptionsBuilder, UploadToContainerOptionsBuilder};
use bytes::Bytes;
use eyot::Result;

use super::engine::{Engine, is_absent};

const DIRECTORY: &str = "/etc";
const FILES: [&str; 2] = ["passwd", "group"];
/// The bits in Go's file modes by which everything but a regular file is recognized.
const MODE_TYPE: u32 = 1 << 31 | 1 << 27 | 1 << 26 | 1 << 25 | 1 << 24 | 1 << 21 | 1 << 19;
const MODE_SYMLINK: u32 = 1 << 27;

/// Makes sure that the Engine can open the files. The container must not run, so that no process in
/// it can undo this.
pub(crate) async fn make_harmless(engine: &Engine, container: &str) -> Result<()> {
    for file in FILES {
        if !is_harmless(engine, container, &format!("{DIRECTORY}/{file}")).await? {
            tracing::warn!(
                container,
                file,
                "a sandbox's file that the Engine reads was none, and is empty now"
            );
            replace(engine, container, file).await?;
        }
    }
    Ok(())
}

/// Tells whether the Engine can open a path without harm: it is absent, a regular file, or a link
/// to one.
async fn is_harmless(engine: &Engine, container: &str, path: &str) -> Result<bool> {
    match look(engine, container, path).await? {
        Some((mode, target)) if mode & MODE_SYMLINK != 0 => {
            // The Engine gives what every link on the way leads to.
            let found = look(engine, container, &target).await?;
            Ok(found.is_none_or(|(mode, _)| mode & MODE_TYPE == 0))
        }
        found => Ok(found.is_none_or(|(mode, _)| mode & MODE_TYPE == 0)),
    }
}

/// Returns the mode of a path and, for a link, its target; `None` if the path does not exist.
async fn look(engine: &Engine, container: &str, path: &str) -> Result<Option<(u32, String)>> {
    let options = ContainerArchiveInfoOptionsBuilder::default().path(path).build();
    match engine.client().await?.get_container_archive_info(container, Some(options)).await {
        Ok(found) => Ok(Some((found.file_mode, found.link_target))),
        Err(error) if is_absent(&error) => Ok(None),
        Err(error) => Err(engine.failed(&format!("look at `{path}` of the container"), error)),
    }
}

async fn replace(engine: &Engine, container: &str, file: &str) -> Result<()> {
    let failed = |error| engine.failed(&format!("replace `{DIRECTORY}/{file}` of the container"), error);
    let options = UploadToContainerOptionsBuilder::default().path(DIRECTORY).build();
    let archive = body_full(archive(file).map_err(|error| failed(error.into()))?);
    engine.client().await?.upload_to_container(container, Some(options), archive).await.map_err(failed)
}

fn archive(file: &str) -> std::io::Result<Bytes> {
    let mut archive = tar::Builder::new(Vec::new());
    let mut header = tar::Header::new_gnu();
    header.set_mode(0o644);
    header.set_size(0);
    archive.append_data(&mut header, file, &[][..])?;
    Ok(archive.into_inner()?.into())
}
