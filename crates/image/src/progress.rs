//! Who is told how far a long piece of work is. Nothing here draws.

use crate::digest::Digest;

/// Watches an import or a pull. Calls come from several threads at once, many per second.
pub trait Progress: Send + Sync {
    /// A blob of this many bytes is being fetched or read.
    fn begin(&self, blob: &Digest, total_bytes: u64);
    /// So many more of its bytes have come in.
    fn advance(&self, blob: &Digest, bytes: u64);
    /// It is in the store, or was there before.
    fn finish(&self, blob: &Digest);
}

/// Nobody watches.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoProgress;

impl Progress for NoProgress {
    fn begin(&self, _: &Digest, _: u64) {}
    fn advance(&self, _: &Digest, _: u64) {}
    fn finish(&self, _: &Digest) {}
}
