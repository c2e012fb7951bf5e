//! The images of a state folder, for those who manage them through the provider: a server, for its
//! clients.

use std::collections::HashMap;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use eyot::{
    ByteStream, Bytes, Error, ImageInfo, PruneReport, PullObserver, PullProgress, Result, SandboxImages,
    SandboxNamer, SandboxOperationUnsupported,
};
use eyot_image::{Digest, ImageName, ImportOptions, NoProgress, Progress};
use futures_util::StreamExt;
use tokio::sync::mpsc;

use super::sources::ImageSources;
use super::uses::{image_store, image_uses};
use crate::blocking::on_blocking_thread;

/// The number of pieces of an archive that may wait for the disk.
const PIECES: usize = 16;

/// The images of a state folder.
pub(crate) struct NativeImages {
    /// The state folder.
    pub state: PathBuf,
    /// The sources that images are pulled from.
    pub sources: Option<Arc<ImageSources>>,
    /// The names of sandboxes in errors.
    pub names: SandboxNamer,
}

#[async_trait]
impl SandboxImages for NativeImages {
    async fn list(&self) -> Result<Vec<ImageInfo>> {
        let store = image_store(&self.state);
        on_blocking_thread(move || store.list()).await
    }

    async fn pull(&self, name: &str, observer: PullObserver) -> Result<ImageInfo> {
        let name = pullable(name)?;
        let Some(sources) = &self.sources else {
            return Err(SandboxOperationUnsupported::new("images.pull", crate::NAME, &[]).into());
        };
        let progress = Arc::new(PullTotals { observer, blobs: Mutex::default() });
        sources.pull(&image_store(&self.state), &name, progress).await
    }

    async fn import(&self, mut archive: ByteStream, name: Option<&str>) -> Result<Vec<ImageInfo>> {
        let name = name.map(named).transpose()?;
        let options = ImportOptions { name, ..ImportOptions::default() };
        let (sender, receiver) = mpsc::channel(PIECES);
        let reader = ArchiveReader { receiver, now: Bytes::new(), ended: false };
        let store = image_store(&self.state);
        let reading =
            tokio::spawn(on_blocking_thread(move || store.import_upload(reader, &options, &NoProgress)));
        let sent = send(&mut archive, sender).await;
        let read = reading.await.map_err(|error| {
            Error::new(eyot::ErrorKind::Internal, "import the archive: a task ended early").with_source(error)
        })?;
        // The reason why the archive broke off says more than that it did.
        sent.and(read)
    }

    async fn remove(&self, name: &str, force: bool) -> Result<PruneReport> {
        let (name, state, names) = (named(name)?, self.state.clone(), Arc::clone(&self.names));
        let uses = move || image_uses(&state, names.as_ref());
        let store = image_store(&self.state);
        on_blocking_thread(move || store.remove(&name, force, uses)).await
    }
}

/// Parses the name of an image in the store.
fn named(name: &str) -> Result<ImageName> {
    ImageName::parse(name)
}

/// Parses the name of an image that a registry may have.
fn pullable(name: &str) -> Result<ImageName> {
    if name == super::DEFAULT {
        let reason = "is `host`, which is this host's own programs and in no registry";
        return Err(Error::invalid("name", reason).context("pull image"));
    }
    named(name)
}

/// Passes the archive on to its end, or until the reader is gone. An empty piece is the end.
async fn send(archive: &mut ByteStream, reader: mpsc::Sender<io::Result<Bytes>>) -> Result<()> {
    while let Some(piece) = archive.next().await {
        let (piece, failure) = match piece {
            Ok(piece) if piece.is_empty() => continue,
            Ok(piece) => (Ok(piece), None),
            Err(error) => (Err(io::ErrorKind::UnexpectedEof.into()), Some(error)),
        };
        let is_gone = reader.send(piece).await.is_err();
        if let Some(failure) = failure {
            return Err(failure);
        }
        if is_gone {
            return Ok(());
        }
    }
    // A reader that is gone has said why.
    reader.send(Ok(Bytes::new())).await.or(Ok(()))
}

/// A blocking reader of the pieces of an archive. A sender that is dropped before the end is an
/// error.
struct ArchiveReader {
    receiver: mpsc::Receiver<io::Result<Bytes>>,
    now: Bytes,
    ended: bool,
}

impl Read for ArchiveReader {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.now.is_empty() && !self.ended {
            self.now =
                self.receiver.blocking_recv().unwrap_or_else(|| Err(io::ErrorKind::UnexpectedEof.into()))?;
            self.ended = self.now.is_empty();
        }
        let piece = self.now.split_to(self.now.len().min(into.len()));
        into[..piece.len()].copy_from_slice(&piece);
        Ok(piece.len())
    }
}

/// Adds up the progress of the blobs of one pull.
struct PullTotals {
    observer: PullObserver,
    blobs: Mutex<HashMap<Digest, PulledBlob>>,
}

#[derive(Default)]
struct PulledBlob {
    received_bytes: u64,
    total_bytes: u64,
    is_done: bool,
}

impl PullTotals {
    fn change(&self, blob: &Digest, change: impl FnOnce(&mut PulledBlob)) {
        let mut blobs = self.blobs.lock().unwrap_or_else(PoisonError::into_inner);
        change(blobs.entry(blob.clone()).or_default());
        let progress = PullProgress {
            received_bytes: blobs.values().map(|blob| blob.received_bytes).sum(),
            total_bytes: blobs.values().map(|blob| blob.total_bytes).sum(),
            blobs: blobs.len() as u64,
            blobs_done: blobs.values().filter(|blob| blob.is_done).count() as u64,
        };
        drop(blobs);
        (self.observer)(progress);
    }
}

impl Progress for PullTotals {
    fn begin(&self, blob: &Digest, total_bytes: u64) {
        self.change(blob, |blob| *blob = PulledBlob { total_bytes, ..PulledBlob::default() });
    }

    fn advance(&self, blob: &Digest, bytes: u64) {
        self.change(blob, |blob| {
            blob.received_bytes = blob.received_bytes.saturating_add(bytes).min(blob.total_bytes);
        });
    }

    fn finish(&self, blob: &Digest) {
        self.change(blob, |blob| {
            *blob = PulledBlob { received_bytes: blob.total_bytes, is_done: true, ..*blob };
        });
    }
}
