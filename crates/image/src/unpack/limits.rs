//! How much a stream may hold.

/// What an archive may take of the host. The defaults are far above any image that is meant well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnpackLimits {
    /// Bytes of the decompressed stream.
    pub max_unpacked_bytes: u64,
    /// Entries of any kind, those that are left out as well.
    pub max_entries: u64,
    /// Bytes of an entry's headers: long names, extended attributes.
    pub max_header_bytes: u64,
    /// Bytes of the paths of directories and of removed names, which are kept in memory until the end.
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
    /// As little as a fuzzer needs.
    pub const SMALL: Self = Self {
        max_unpacked_bytes: 1 << 20,
        max_entries: 200,
        max_header_bytes: 64 << 10,
        max_kept_path_bytes: 64 << 10,
    };
}
