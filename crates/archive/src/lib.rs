//! Rules for archives and trees of files that Eyot does not trust. The guest, the store of images,
//! the workspaces of the native provider, and the command line's copies and backups share them.

#[cfg(feature = "trees")]
mod descent;
#[cfg(feature = "trees")]
mod entries;
mod links;
mod pax;
#[cfg(feature = "trees")]
mod remove;

#[cfg(feature = "trees")]
pub use descent::Descent;
#[cfg(feature = "trees")]
pub use entries::entries;
pub use links::link_stays_inside;
pub use pax::split_record;
#[cfg(feature = "trees")]
pub use remove::remove_tree;
