//! The export of the Engine's images, as `docker save` writes them, into a store of images.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use bollard::Docker;
use bollard::errors::Error as EngineError;
use bytes::Bytes;
use eyot::{Error, ErrorKind, Result};
use eyot_image::{Digest, ImageInfo, ImageName, ImageSource, ImageStore, ImportOptions, Progress};
use futures_util::{Stream, StreamExt};
use tokio::sync::mpsc;

use super::engine::{Engine, is_absent};
use super::pieces::PieceReader;

/// The longest wait for the first byte: an Engine may put the whole archive together before.
const EXPORT_PATIENCE: Duration = Duration::from_secs(1800);
/// The number of pieces that may wait for the store, which unpacks more slowly than the Engine
/// sends.
const PIECES: usize = 16;

/// The images of a Docker Engine.
pub struct EngineImages {
    engine: Engine,
}

impl fmt::Debug for EngineImages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineImages").field("address", &self.engine.address()).finish()
    }
}

/// An image as the Engine describes it.
struct ImageDescription {
    id: Digest,
    bytes: u64,
}

impl EngineImages {
    /// Takes the images of the Engine at an address; `None`: at the one that `DOCKER_HOST` names,
    /// else at the usual socket. Touches nothing.
    pub fn new(address: Option<String>) -> Self {
        Self { engine: Engine::new(address) }
    }

    /// Copies an image into a store. It is named `called` there, or else as on the Engine.
    ///
    /// # Errors
    /// `unavailable` if no Engine answers; `not_found`; `invalid` for a name with a digest, because
    /// digests are a registry's and an Engine's archive does not contain them; and those of
    /// [`ImageStore::import_stream`]. After an error the store has nothing of the image.
    pub async fn import(
        &self,
        store: &ImageStore,
        name: &ImageName,
        called: Option<&ImageName>,
        progress: Arc<dyn Progress>,
    ) -> Result<ImageInfo> {
        let what = format!("import `docker://{}`", name.short());
        if name.digest().is_some() {
            let reason = "is by a digest, which what an Engine hands out does not show";
            return Err(Error::invalid("image", reason)
                .context(what)
                .with_hint(format!("name its tag; or pull it: eyot image pull {}", name.short())));
        }
        let docker = self.engine.client().await.map_err(|error| error.context(&what))?;
        match self.describe(docker, name, &what).await? {
            Some(image) => self.export(docker, &image, store, called.unwrap_or(name), &what, progress).await,
            None => Err(Error::new(ErrorKind::NotFound, format!("{what}: the Engine has no such image"))
                .with_hint("`docker images` shows those that it has; `eyot image pull` asks a registry")),
        }
    }

    async fn describe(
        &self,
        docker: &Docker,
        name: &ImageName,
        what: &str,
    ) -> Result<Option<ImageDescription>> {
        // In full: a short name may be the beginning of another image's id.
        let found = match docker.inspect_image(name.as_str()).await {
            Err(error) if is_absent(&error) => return Ok(None),
            found => found.map_err(|error| self.engine.failed(what, error))?,
        };
        let id = found.id.as_deref().and_then(with_algorithm);
        let id =
            id.ok_or_else(|| Error::new(ErrorKind::Internal, format!("{what}: the Engine gives it no id")))?;
        Ok(Some(ImageDescription {
            id,
            bytes: found.size.and_then(|size| size.try_into().ok()).unwrap_or(0),
        }))
    }

    async fn export(
        &self,
        docker: &Docker,
        image: &ImageDescription,
        store: &ImageStore,
        called: &ImageName,
        what: &str,
        progress: Arc<dyn Progress>,
    ) -> Result<ImageInfo> {
        progress.begin(&image.id, image.bytes);
        let (sender, receiver) = mpsc::channel(PIECES);
        let pieces = PieceReader::new(receiver, image.id.clone(), Arc::clone(&progress));
        let options = ImportOptions { name: Some(called.clone()), digest: Some(image.id.clone()) };
        let (store, from) = (store.clone(), format!("docker://{}", called.short()));
        let reading =
            tokio::task::spawn_blocking(move || store.import_stream(pieces, &from, &options, &*progress));
        // By its id: its name may go to another image meanwhile.
        let docker = docker.clone().with_timeout(EXPORT_PATIENCE);
        let sent = send(docker.export_image(&image.id.to_string()), sender).await;
        let read = reading.await.map_err(|error| {
            Error::new(ErrorKind::Internal, format!("{what}: a task ended early")).with_source(error)
        })?;
        sent.map_err(|error| self.engine.failed(what, error))?;
        let only = read?.pop();
        only.ok_or_else(|| Error::new(ErrorKind::Internal, format!("{what}: nothing came in")))
    }
}

/// Adds the algorithm to an id, which Podman leaves out.
fn with_algorithm(id: &str) -> Option<Digest> {
    Digest::parse(id).or_else(|| Digest::parse(&format!("sha256:{id}")))
}

/// Forwards the Engine's archive to its end, or until the reader is gone.
async fn send(
    archive: impl Stream<Item = std::result::Result<Bytes, EngineError>>,
    reader: mpsc::Sender<std::io::Result<Bytes>>,
) -> std::result::Result<(), EngineError> {
    let mut archive = std::pin::pin!(archive);
    while let Some(piece) = archive.next().await {
        match piece {
            // That would be the end.
            Ok(piece) if piece.is_empty() => {}
            Ok(piece) => {
                if reader.send(Ok(piece)).await.is_err() {
                    return Ok(());
                }
            }
            Err(error) => {
                // Whoever reads must not take it for the end; if nobody does, that is known already.
                drop(reader.send(Err(std::io::ErrorKind::UnexpectedEof.into())).await);
                return Err(error);
            }
        }
    }
    drop(reader.send(Ok(Bytes::new())).await);
    Ok(())
}

#[async_trait]
impl ImageSource for EngineImages {
    /// Fetches an image from the Engine. An Engine that does not answer, or refuses the connection,
    /// counts as having none.
    async fn bring(
        &self,
        store: &ImageStore,
        name: &ImageName,
        progress: Arc<dyn Progress>,
    ) -> Result<Option<ImageInfo>> {
        if name.digest().is_some() {
            return Ok(None);
        }
        if let Err(error) = self.engine.client().await {
            tracing::debug!(%error, "no Engine is asked for an image");
            return Ok(None);
        }
        match self.import(store, name, None, progress).await {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            brought => brought.map(Some),
        }
    }
}
