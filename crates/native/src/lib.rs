//! Eyot's native Linux provider: sandboxes from namespaces, an overlay, Landlock and seccomp, for root and for ordinary
//! users alike, without a daemon.
//!
//! ```no_run
//! # async fn example() -> eyot::Result<()> {
//! use eyot::{ExecOptions, Sandbox, SandboxSpec};
//! use eyot_native::{NativeOptions, NativeProvider};
//!
//! let provider = NativeProvider::new(NativeOptions::default())?;
//! let sandbox = Sandbox::create(&*provider, SandboxSpec::default()).await?;
//! let result = sandbox.exec("echo hello from $(hostname)", ExecOptions::default()).await?;
//! println!("{}", result.stdout_text());
//! sandbox.destroy().await?;
//! # Ok(())
//! # }
//! ```

#[cfg(feature = "provider")]
mod apply;
#[cfg(feature = "provider")]
mod attributes;
#[cfg(feature = "provider")]
mod awake_snapshot;
#[cfg(feature = "provider")]
mod backup;
#[cfg(feature = "provider")]
mod blocking;
#[cfg(feature = "provider")]
mod cgroup;
#[cfg(feature = "provider")]
mod commit;
#[cfg(feature = "provider")]
mod compared;
#[cfg(feature = "provider")]
mod condition;
#[cfg(feature = "provider")]
mod copies;
#[cfg(feature = "provider")]
mod cow_layers;
#[cfg(feature = "provider")]
mod cow_mount;
#[cfg(feature = "provider")]
mod create;
#[cfg(feature = "provider")]
mod destroy;
#[cfg(feature = "provider")]
mod directory;
#[cfg(feature = "provider")]
mod disk;
mod disk_ids;
#[cfg(feature = "provider")]
mod disk_move;
#[cfg(feature = "provider")]
mod egress;
#[cfg(feature = "provider")]
mod file_gate;
#[cfg(feature = "provider")]
mod files_move;
#[cfg(feature = "provider")]
mod folder_change;
#[cfg(feature = "provider")]
pub mod host;
#[cfg(feature = "provider")]
mod host_files;
#[cfg(feature = "provider")]
mod host_ranges;
#[cfg(feature = "provider")]
mod image;
#[cfg(feature = "provider")]
mod in_parts;
#[cfg(feature = "provider")]
mod isolation;
#[cfg(feature = "provider")]
mod kept_snapshot;
#[cfg(feature = "provider")]
mod kept_workspaces;
mod launcher;
#[cfg(feature = "provider")]
mod lifecycle;
#[cfg(feature = "provider")]
mod maker;
#[cfg(feature = "provider")]
mod merged_layers;
mod mount_line;
#[cfg(feature = "provider")]
mod mount_rights;
#[cfg(feature = "provider")]
mod new_snapshot;
#[cfg(feature = "provider")]
mod options;
#[cfg(feature = "provider")]
mod owner;
#[cfg(feature = "provider")]
mod packed_tree;
mod plan;
#[cfg(feature = "provider")]
mod provider;
#[cfg(feature = "provider")]
mod ready;
#[cfg(feature = "provider")]
mod record;
#[cfg(feature = "provider")]
mod renew;
#[cfg(feature = "provider")]
mod sandboxes;
mod seccomp;
#[cfg(feature = "provider")]
mod setup;
#[cfg(feature = "provider")]
mod sleep;
#[cfg(feature = "provider")]
mod slots;
#[cfg(feature = "provider")]
mod snapshot_base;
#[cfg(feature = "provider")]
mod snapshots;
#[cfg(feature = "provider")]
mod sparse_copy;
#[cfg(feature = "provider")]
mod state;
#[cfg(feature = "provider")]
mod subordinate_ids;
mod sys;
#[cfg(feature = "provider")]
mod tree_copy;
#[cfg(feature = "provider")]
mod unfinished;
#[cfg(feature = "provider")]
mod users;
#[cfg(feature = "provider")]
mod wake;
#[cfg(feature = "provider")]
mod workspace;

#[cfg(feature = "provider")]
pub use backup::{HeldSandboxes, hold_still, settle_copies};
#[cfg(feature = "provider")]
pub use cgroup::{CgroupCause, CgroupController, CgroupSupport, DEFAULT_MEMORY_MIB};
#[cfg(feature = "provider")]
pub use directory::refuse_state_folder;
#[cfg(feature = "fuzzing")]
pub use image::unpack_for_fuzzing;
#[cfg(feature = "provider")]
pub use image::{ImageSources, image_store, image_uses};
#[cfg(feature = "provider")]
pub use kept_workspaces::{KeptWorkspace, kept_workspaces, remove_kept_workspace};
#[cfg(feature = "provider")]
pub use mount_rights::{why_not_copied, why_not_readable, why_not_writable};
#[cfg(feature = "provider")]
pub use options::NativeOptions;
// For tests of failing closed.
#[cfg(feature = "provider")]
#[doc(hidden)]
pub use plan::step_names;
#[cfg(feature = "provider")]
pub use provider::{NativeProvider, capabilities};
#[cfg(feature = "provider")]
pub use slots::MOST_SLOTS;
#[cfg(feature = "provider")]
pub use state::default_state_dir;

/// The provider's name.
#[cfg(feature = "provider")]
const NAME: &str = "native";

/// The `main` of the launcher program.
pub fn launcher_main() -> std::process::ExitCode {
    launcher::program::main()
}

/// Compiles the examples of the page about Rust.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/rust.md")]
struct RustGuide;
