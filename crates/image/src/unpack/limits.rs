//! Limits on unpacking.

/// Limits on what an archive may take of the host. The defaults are far above any honest image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnpackLimits {
    /// Bytes of the decompressed stream.
    pub max_unpacked_bytes: u64,
    /// Entries of any kind, including those that are left out.
    pub max_entries: u64,
    /// Bytes of an entry's headers: long names, extended attributes.
    pub max_header_bytes: u64,
    /// Bytes of the paths of directories and of removed names, which are kept in memory until the
    /// end.
    pub max_kept_path_bytes: u64,
}

impl Default for UnpackLimits {
    fn default() -> Self {
        Self {
            max_unpacked_bytes: 64 << 30,
            max_entries: 4_000_000,
            max_header_bytes: 1 << 20,
            max_kept_path_bytes: 64 << 20,
        }
    }
}

impl UnpackLimits {
    /// Limits that are small enough for a fuzzer.
    pub const SMALL: Self = Self {
        max_unpacked_bytes: 1 << 20,
        max_entries: 200,
        max_header_bytes: 64 << 10,
        max_kept_path_bytes: 64 << 10,
    };
}
