//! Progress reports of long work. Nothing here draws.

use crate::digest::Digest;

/// Observes an import or a pull. Calls come from several threads at once, many per second.
pub trait Progress: Send + Sync {
    /// A blob of this many bytes is being fetched or read.
    fn begin(&self, blob: &Digest, total_bytes: u64);
    /// This many more bytes of the blob have come in.
    fn advance(&self, blob: &Digest, bytes: u64);
    /// The blob is in the store, or was there before.
    fn finish(&self, blob: &Digest);
}

/// Ignores all progress.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoProgress;

impl Progress for NoProgress {
    fn begin(&self, _: &Digest, _: u64) {}
    fn advance(&self, _: &Digest, _: u64) {}
    fn finish(&self, _: &Digest) {}
}
