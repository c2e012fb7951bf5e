//! Rules for archives and trees of files that Eyot does not trust. The guest, the store of images,
//! the workspaces of the native provider, and the command line's copies and backups share them.

mod descent;
mod entries;
mod links;
mod pax;
mod remove;

pub use descent::Descent;
pub use entries::entries;
pub use links::link_stays_inside;
pub use pax::split_record;
pub use remove::remove_tree;
