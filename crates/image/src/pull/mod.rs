//! The pull of an image from a registry. Mirrors are asked first. After the manifest for this
//! machine come the blobs, several at once. Each continues where an earlier pull broke off, and is
//! unpacked as soon as it is whole. No byte is believed before its digest is right.

mod blob;
mod endpoint;
mod failure;
mod proxy;

use std::sync::Arc;

use async_trait::async_trait;
use eyot::{CancellationToken, Error, ErrorKind, ImageInfo, Result};
use futures_util::{StreamExt, stream};
use oci_client::manifest::{
    IMAGE_MANIFEST_LIST_MEDIA_TYPE, IMAGE_MANIFEST_MEDIA_TYPE, OCI_IMAGE_INDEX_MEDIA_TYPE,
    OCI_IMAGE_MEDIA_TYPE,
};
use oci_spec::image::ImageIndex;

use crate::ImageName;
use crate::blob::MAX_DOCUMENT_BYTES;
use crate::config::{self, BlobRef, ImageParts, RunConfig};
use crate::digest::Digest;
use crate::failure::{CORRUPT, failed, refused};
use crate::import::platform_digest;
use crate::progress::Progress;
use crate::reference::{digest_of, reference_of};
use crate::source::ImageSource;
use crate::store::ImageStore;
use blob::forget_parts;
use endpoint::Endpoint;

pub use endpoint::PullOptions;

/// The number of blobs that come in at once.
const AT_ONCE: usize = 4;
const ACCEPTED: [&str; 4] = [
    OCI_IMAGE_MEDIA_TYPE,
    IMAGE_MANIFEST_MEDIA_TYPE,
    OCI_IMAGE_INDEX_MEDIA_TYPE,
    IMAGE_MANIFEST_LIST_MEDIA_TYPE,
];

impl ImageStore {
    /// Pulls an image, or the missing parts of it.
    ///
    /// # Errors
    /// `NotFound` if the registry has none of that name for this machine. `Permission` if it asks
    /// for (other) credentials. `Unavailable` if it can't be reached. `Invalid` for an image that
    /// is damaged or hostile. `Quota` if the disk is full. Whole blobs are kept until the next
    /// prune. A partial blob is kept for the next pull, unless the disk is full.
    pub async fn pull(
        &self,
        name: &ImageName,
        options: &PullOptions,
        progress: Arc<dyn Progress>,
    ) -> Result<ImageInfo> {
        let what = format!("pull image `{}`", name.short());
        let store = self.clone();
        let _importing = blocking(what.clone(), move || store.begin_import()).await?;
        let mut last = None;
        for endpoint in Endpoint::all(name, options).await? {
            match self.pull_from(&endpoint, name, &what, &progress).await {
                // The next one may have it.
                Err(error) if is_about_the_endpoint(&error) => last = Some(error),
                done => return done,
            }
        }
        Err(last.unwrap_or_else(|| Error::new(ErrorKind::Internal, format!("{what}: nobody was asked"))))
    }

    async fn pull_from(
        &self,
        endpoint: &Endpoint,
        name: &ImageName,
        what: &str,
        progress: &Arc<dyn Progress>,
    ) -> Result<ImageInfo> {
        let manifest = self.manifest(endpoint, name, what).await?;
        let parts = ImageParts::of_manifest(&manifest).map_err(failed(what))?;
        if parts.config.bytes > MAX_DOCUMENT_BYTES {
            return Err(failed(what)(refused("its configuration is longer than 4 MiB")));
        }
        if let Err(error) = endpoint.fetch(self, &parts.config, what, progress).await {
            return Err(self.make_room(error, vec![parts.config], what).await);
        }
        let store = self.clone();
        let (count, digest) = (parts.layers.len(), parts.config.digest.clone());
        let diffs = blocking(what.to_owned(), move || {
            let config = config::parse(&store.document(&digest)?)?;
            RunConfig::of(&config)?;
            config::diff_ids(&config, count)
        })
        .await?;
        progress.finish(&parts.config.digest);
        let stop = CancellationToken::new();
        let mut layers = Vec::new();
        for (blob, diff) in parts.layers.iter().zip(&diffs) {
            layers.push(self.pull_layer(endpoint, (blob, diff), what, progress, &stop));
        }
        let layers: Vec<Result<()>> = stream::iter(layers).buffer_unordered(AT_ONCE).collect().await;
        if let Err(error) = layers.into_iter().collect::<Result<()>>() {
            return Err(self.make_room(error, parts.layers, what).await);
        }
        let (store, name) = (self.clone(), name.clone());
        blocking(what.to_owned(), move || store.name_image(&name, &manifest)).await
    }

    /// Returns the same error. If the disk is full, it removes the partial blobs first.
    async fn make_room(&self, error: Error, blobs: Vec<BlobRef>, what: &str) -> Error {
        if error.kind() != ErrorKind::Quota {
            return error;
        }
        let store = self.clone();
        match blocking(what.to_owned(), move || forget_parts(&store, &blobs)).await {
            Ok(()) => error,
            Err(also) => error.context(also),
        }
    }

    /// Pulls one layer. If it fails, the others end as well, at a point where nothing is half done:
    /// layers that are being unpacked are waited for.
    async fn pull_layer(
        &self,
        endpoint: &Endpoint,
        (blob, diff): (&BlobRef, &Digest),
        what: &str,
        progress: &Arc<dyn Progress>,
        stop: &CancellationToken,
    ) -> Result<()> {
        let fetched = stop.run_until_cancelled(endpoint.fetch(self, blob, what, progress)).await;
        let done = match fetched {
            Some(Ok(())) => self.unpack_pulled(blob, diff, what, progress).await,
            Some(Err(error)) => Err(error),
            None => Ok(()),
        };
        done.inspect_err(|_| stop.cancel())
    }

    async fn unpack_pulled(
        &self,
        blob: &BlobRef,
        diff: &Digest,
        what: &str,
        progress: &Arc<dyn Progress>,
    ) -> Result<()> {
        let (store, digest, diff) = (self.clone(), blob.digest.clone(), diff.clone());
        let layer = blocking(what.to_owned(), move || store.add_layer(&digest, &diff)).await;
        layer.map_err(with_corrupt_hint)?;
        progress.finish(&blob.digest);
        Ok(())
    }

    /// Fetches the manifest for this machine and checks its digest.
    async fn manifest(&self, endpoint: &Endpoint, name: &ImageName, what: &str) -> Result<Vec<u8>> {
        let first = endpoint.manifest(&reference_of(name)?, what).await?;
        check(&first, digest_of(name).as_ref(), what)?;
        let Ok(index) = serde_json::from_slice::<ImageIndex>(&first) else { return Ok(first) };
        let wanted = index.manifests().iter().find_map(platform_digest);
        let wanted = wanted.ok_or_else(|| {
            let message =
                format!("{what}: the registry has none for this machine (linux/{})", std::env::consts::ARCH);
            Error::new(ErrorKind::NotFound, message)
        })?;
        let reference = reference_of(name)?.clone_with_digest(wanted.to_string());
        let manifest = endpoint.manifest(&reference, what).await?;
        check(&manifest, Some(&wanted), what)?;
        Ok(manifest)
    }
}

/// Every registry, as a source of images that are pulled before a sandbox is made.
#[derive(Debug, Clone, Default)]
pub struct Registries(pub PullOptions);

#[async_trait]
impl ImageSource for Registries {
    /// Pulls an image. A missing image is an error, which says which registry has none.
    async fn bring(
        &self,
        store: &ImageStore,
        name: &ImageName,
        progress: Arc<dyn Progress>,
    ) -> Result<Option<ImageInfo>> {
        store.pull(name, &self.0, progress).await.map(Some)
    }
}

fn check(bytes: &[u8], wanted: Option<&Digest>, what: &str) -> Result<()> {
    match wanted {
        Some(wanted) if Digest::of(bytes) != *wanted => {
            let error =
                failed(what)(refused(format!("the manifest is not what its digest says (`{wanted}`)")));
            Err(error.with_hint(CORRUPT))
        }
        _ => Ok(()),
    }
}

fn is_about_the_endpoint(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Unavailable | ErrorKind::Permission)
}

fn with_corrupt_hint(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Invalid => error.with_hint(CORRUPT),
        _ => error,
    }
}

/// Runs blocking work on a thread for it.
async fn blocking<T: Send + 'static>(
    what: String,
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    let done = done.map_err(|error| {
        Error::new(ErrorKind::Internal, format!("{what}: a task ended early")).with_source(error)
    })?;
    done.map_err(failed(what))
}
