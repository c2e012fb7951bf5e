//! The row of the provider in memory.

use std::sync::{Arc, OnceLock};

use super::{MemoryProvider, NAME, capabilities};
use crate::row::{ImagesOfProvider, ProviderRow, ProviderTests};

/// A program has one, so that whatever it opens finds the same sandboxes.
static PROVIDER: OnceLock<MemoryProvider> = OnceLock::new();

/// The row.
pub const ROW: ProviderRow = ProviderRow {
    lives_with_its_process: true,
    images: ImagesOfProvider::Elsewhere("these are the images of native sandboxes; one in memory has none"),
    tests: ProviderTests::quick(),
    ..ProviderRow::new(
        NAME,
        "a bash interpreter over files in memory, without processes",
        capabilities,
        |_, _| Ok(Arc::new(PROVIDER.get_or_init(MemoryProvider::default).clone())),
    )
};
