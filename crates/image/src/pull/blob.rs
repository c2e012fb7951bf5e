//! The download of one blob. The bytes so far lie under the digest's name in `incoming/`, locked
//! during the download. Two processes that pull the same blob share the work, and a later pull
//! continues after a break.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;

use eyot::Result;
use futures_util::StreamExt;
use oci_client::client::BlobResponse;
use rustix::fs::{FlockOperation, flock};

use super::endpoint::Endpoint;
use super::{blocking, with_corrupt_hint};
use crate::collect::PART;
use crate::config::BlobRef;
use crate::digest::DigestStream;
use crate::failure::{failed, refused};
use crate::locks::FileLock;
use crate::progress::Progress;
use crate::store::ImageStore;

/// The number of times that a broken download is resumed without progress.
const TRIES: usize = 4;

impl Endpoint {
    /// Brings a blob into the store, unless it is there.
    pub(super) async fn fetch(
        &self,
        store: &ImageStore,
        blob: &BlobRef,
        what: &str,
        progress: &Arc<dyn Progress>,
    ) -> Result<()> {
        progress.begin(&blob.digest, blob.bytes);
        if store.has_blob(&blob.digest, blob.bytes) {
            progress.advance(&blob.digest, blob.bytes);
            return Ok(());
        }
        let (shared, wanted) = (store.clone(), blob.clone());
        let part = blocking(what.to_owned(), move || PartialBlob::open(&shared, &wanted)).await?;
        let Some(mut part) = part else {
            progress.advance(&blob.digest, blob.bytes);
            return Ok(());
        };
        progress.advance(&blob.digest, part.bytes);
        self.fill(&mut part, blob, what, progress).await?;
        let store = store.clone();
        blocking(what.to_owned(), move || part.finish(&store)).await.map_err(with_corrupt_hint)
    }

    async fn fill(
        &self,
        part: &mut PartialBlob,
        blob: &BlobRef,
        what: &str,
        progress: &Arc<dyn Progress>,
    ) -> Result<()> {
        for attempt in 1.. {
            if part.bytes >= blob.bytes {
                return Ok(());
            }
            let before = part.bytes;
            match self.resume(part, blob, what, progress).await? {
                None => return Ok(()),
                // A registry that sends something each time may break off as often as it likes.
                Some(_) if part.bytes > before || attempt < TRIES => {}
                Some(error) => return Err(self.exchange_error(what, error.into())),
            }
        }
        Ok(())
    }

    /// Asks for the rest. Returns the error that broke it off.
    async fn resume(
        &self,
        part: &mut PartialBlob,
        blob: &BlobRef,
        what: &str,
        progress: &Arc<dyn Progress>,
    ) -> Result<Option<io::Error>> {
        let digest = blob.digest.to_string();
        let answer =
            self.client.pull_blob_stream_partial(&self.reference, digest.as_str(), part.bytes, None).await;
        let mut stream = match answer.map_err(|error| self.exchange_error(what, error))? {
            BlobResponse::Partial(rest) => rest.stream,
            BlobResponse::Full(whole) => {
                part.restart().map_err(failed(what))?;
                whole.stream
            }
        };
        while let Some(piece) = stream.next().await {
            match piece {
                Ok(piece) => {
                    if part.bytes + piece.len() as u64 > blob.bytes {
                        part.forget().map_err(failed(what))?;
                        let error = refused(format!("blob `{digest}` is longer than the image says"));
                        return Err(with_corrupt_hint(failed(what)(error)));
                    }
                    part.write(&piece).map_err(failed(what))?;
                    progress.advance(&blob.digest, piece.len() as u64);
                }
                // A whole blob is judged by its digest, whatever error follows it.
                Err(_) if part.bytes == blob.bytes => return Ok(None),
                Err(error) => return Ok(Some(error)),
            }
        }
        if part.bytes == blob.bytes { Ok(None) } else { Ok(Some(io::ErrorKind::UnexpectedEof.into())) }
    }
}

/// Removes the partial downloads of these blobs, after the disk was full. Those that another
/// process is fetching stay.
pub(super) fn forget_parts(store: &ImageStore, blobs: &[BlobRef]) -> io::Result<()> {
    for blob in blobs {
        let path = part_of(store, blob);
        let file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            file => file?,
        };
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}

fn part_of(store: &ImageStore, blob: &BlobRef) -> PathBuf {
    store.incoming().join(format!("{}{PART}", blob.digest.hex()))
}

/// A partial download of a blob.
struct PartialBlob {
    wanted: BlobRef,
    path: PathBuf,
    file: Option<DigestStream<File>>,
    bytes: u64,
    /// The lock of the same open file, held until the blob has its name or is given up.
    _lock: FileLock,
}

impl PartialBlob {
    /// Waits while another process fetches the blob; returns `None` if it is whole then.
    fn open(store: &ImageStore, wanted: &BlobRef) -> io::Result<Option<Self>> {
        let path = part_of(store, wanted);
        loop {
            let file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(&path)?;
            flock(&file, FlockOperation::LockExclusive)?;
            // The process that held the lock may have removed the file, or made the blob of it.
            let is_named = fs::metadata(&path).is_ok_and(|named| is_same(&named, &file));
            if store.has_blob(&wanted.digest, wanted.bytes) {
                // We made the file after that, and it is not needed.
                if is_named {
                    fs::remove_file(&path)?;
                }
                return Ok(None);
            }
            if is_named {
                let lock = FileLock::new(file.try_clone()?);
                let mut part = Self { wanted: wanted.clone(), path, file: None, bytes: 0, _lock: lock };
                part.resume_from(file)?;
                return Ok(Some(part));
            }
        }
    }

    /// Hashes the bytes that are there. If there are too many, it starts again from nothing.
    fn resume_from(&mut self, file: File) -> io::Result<()> {
        self.bytes = file.metadata()?.len();
        if self.bytes > self.wanted.bytes {
            file.set_len(0)?;
            self.bytes = 0;
        }
        let mut hashing = DigestStream::new(file);
        io::copy(&mut Read::by_ref(&mut hashing).take(self.bytes), &mut io::sink())?;
        self.file = Some(hashing);
        Ok(())
    }

    fn write(&mut self, piece: &[u8]) -> io::Result<()> {
        self.file.as_mut().ok_or(io::ErrorKind::NotConnected)?.write_all(piece)?;
        self.bytes += piece.len() as u64;
        Ok(())
    }

    /// Starts again: the registry sends the whole blob.
    fn restart(&mut self) -> io::Result<()> {
        let hashing = self.file.take().ok_or(io::ErrorKind::NotConnected)?;
        let file = hashing.into_inner();
        file.set_len(0)?;
        self.bytes = 0;
        self.file = Some(DigestStream::new(file));
        Ok(())
    }

    fn forget(&mut self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }

    fn finish(mut self, store: &ImageStore) -> io::Result<()> {
        let hashing = self.file.take().ok_or(io::ErrorKind::NotConnected)?;
        let (digest, bytes) = hashing.finish();
        if (&digest, bytes) != (&self.wanted.digest, self.wanted.bytes) {
            self.forget()?;
            return Err(refused(format!("blob `{}` is not what its digest says", self.wanted.digest)));
        }
        fs::rename(&self.path, store.blob(&digest))
    }
}

fn is_same(named: &fs::Metadata, file: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    file.metadata().is_ok_and(|open| (open.dev(), open.ino()) == (named.dev(), named.ino()))
}
