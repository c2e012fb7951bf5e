//! Rules for archives that Eyot does not trust. The guest, the store of images, and the command
//! line's copies and backups share them.

mod links;
mod pax;
mod remove;

pub use links::link_stays_inside;
pub use pax::split_record;
pub use remove::remove_tree;
