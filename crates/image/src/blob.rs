//! Blobs: content under its digest. A blob gets its name only when every byte is there and the
//! digest is right.

use std::fs::{self, File};
use std::io::{self, Read, Write};

use tempfile::NamedTempFile;

use crate::digest::{Digest, DigestStream};
use crate::failure::refused;
use crate::progress::Progress;
use crate::store::ImageStore;

/// The longest manifest, index or configuration that is read.
pub(crate) const MAX_DOCUMENT_BYTES: u64 = 4 << 20;
const PIECE_BYTES: usize = 1 << 17;

impl ImageStore {
    /// Stores a document.
    pub(crate) fn put_document(&self, bytes: &[u8]) -> io::Result<Digest> {
        let digest = Digest::of(bytes);
        if !self.blob(&digest).exists() {
            let mut made = NamedTempFile::new_in(self.incoming())?;
            made.write_all(bytes)?;
            self.name_blob(made, &digest)?;
        }
        Ok(digest)
    }

    /// Reads a stored document. The digest is checked once more, because disks err.
    pub(crate) fn document(&self, digest: &Digest) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        File::open(self.blob(digest))?.take(MAX_DOCUMENT_BYTES + 1).read_to_end(&mut bytes)?;
        if Digest::of(&bytes) == *digest {
            Ok(bytes)
        } else {
            Err(refused(format!("blob `{digest}` of the store is damaged")))
        }
    }

    /// Copies a blob into the store. With a digest given, the blob must have it; without one, the
    /// answer tells the digest.
    pub(crate) fn put_blob(
        &self,
        input: impl Read,
        wanted: Option<(&Digest, u64)>,
        progress: &dyn Progress,
    ) -> io::Result<(Digest, u64)> {
        let mut made = NamedTempFile::new_in(self.incoming())?;
        // A blob that is longer than announced is not copied to its end.
        let most = wanted.map_or(u64::MAX, |(_, bytes)| bytes.saturating_add(1));
        let mut hashing = DigestStream::new(input.take(most));
        copy(&mut hashing, made.as_file_mut(), |bytes| {
            if let Some((digest, _)) = wanted {
                progress.advance(digest, bytes);
            }
        })?;
        let (digest, bytes) = hashing.finish();
        if let Some((expected, _)) = wanted.filter(|wanted| *wanted != (&digest, bytes)) {
            return Err(refused(format!("blob `{expected}` is not what its digest says")));
        }
        self.name_blob(made, &digest)?;
        Ok((digest, bytes))
    }

    pub(crate) fn name_blob(&self, made: NamedTempFile, digest: &Digest) -> io::Result<()> {
        made.persist(self.blob(digest)).map(drop).map_err(|error| error.error)
    }

    /// Tells whether a blob of that length is there.
    pub(crate) fn has_blob(&self, digest: &Digest, bytes: u64) -> bool {
        fs::metadata(self.blob(digest)).is_ok_and(|found| found.len() == bytes)
    }
}

fn copy(input: &mut impl Read, output: &mut File, mut passed: impl FnMut(u64)) -> io::Result<()> {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        let count = match input.read(&mut piece) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            other => other?,
        };
        if count == 0 {
            return Ok(());
        }
        output.write_all(&piece[..count])?;
        passed(count as u64);
    }
}
