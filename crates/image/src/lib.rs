//! Eyot's image store: the images that references such as `node:22` name, in a folder that several
//! processes share.
//!
//! Images come in through [`ImageStore::import`] (an OCI layout, a `docker save` archive, a tarball
//! of a root file system), from an [`ImageSource`] or, with the feature `pull`, from a registry.
//! Blobs are kept as an OCI image layout, and every digest is checked while the bytes pass. Each
//! layer is unpacked once, by its diff-id, into a folder that sandboxes use as a read-only layer of
//! an overlay. Archives are hostile input: see [`unpack`].
//!
//! This crate leaves out mounting, and which sandbox uses which layer. The provider that made the
//! sandboxes tells that to the functions that remove images.

mod abandoned;
mod allowed;
mod base;
mod blob;
mod collect;
mod commit;
mod config;
mod digest;
mod failure;
mod import;
mod index;
mod layer;
mod listing;
mod locks;
mod pack;
mod progress;
#[cfg(feature = "pull")]
pub mod pull;
mod reference;
mod resolve;
mod source;
mod store;
#[cfg(feature = "testing")]
pub mod testing;
pub mod unpack;

pub use abandoned::{keep, sweep_abandoned};
pub use allowed::{AllowedImages, ImagePattern};
pub use base::{BaseOptions, BuildStop};
pub use collect::ImageUse;
pub use commit::LayerAbove;
pub use config::RunConfig;
pub use digest::Digest;
pub use eyot::{ImageInfo, ImageName, PruneReport};
pub use eyot_archive::remove_tree;
pub use import::ImportOptions;
pub use index::Generation;
pub use locks::{FileLock, UseGuard};
pub use pack::{EntryFacts, LayerPacker};
pub use progress::{NoProgress, Progress};
pub use resolve::ResolvedImage;
pub use source::ImageSource;
pub use store::ImageStore;
