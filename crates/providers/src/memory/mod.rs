//! Sandboxes without processes: a bash interpreter over files in memory, on any operating system.
//!
//! Such a sandbox ends with the process that made it. There is no network, and nothing of the host is inside.

mod activity;
mod cancels;
mod clock;
mod compared;
mod content;
mod counted_files;
mod driver;
mod end_mark;
mod files;
mod frozen;
mod furniture;
mod host_files;
mod image_table;
mod images;
mod input;
mod interpreters;
mod job;
mod kept;
mod known_programs;
mod life;
mod live_stream;
mod names;
mod node;
mod not_found;
mod odd_names;
mod pack;
mod place;
mod plain;
mod prepared;
mod proc;
mod processes;
mod programs;
mod provider;
mod read_account;
mod reasons;
mod row;
mod running_job;
mod same_file;
mod sandbox;
mod script_text;
mod scripts;
mod search;
mod shell_factory;
mod shell_files;
mod sinks;
mod snapshot_table;
mod snapshots;
mod tasks;
mod threads;
mod traceless;
mod tree;
mod unpack;
mod walk;
mod watchers;
mod workspaces;
mod world;

pub use files::{DEFAULT_MAX_BYTES, MemoryFiles};
pub use provider::{MemoryProvider, capabilities};
pub use row::ROW;
pub use shell_factory::ShellFactory;

/// The provider's name.
pub const NAME: &str = "memory";
