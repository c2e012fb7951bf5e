//! The arguments of `eyot backup` and `eyot restore`.

use std::path::PathBuf;

use clap::Args;

const BACKUP_EXAMPLES: &str = "\
Examples:
  eyot backup --sleep /backups/eyot-monday.tar.zst
  eyot backup - | ssh box2 eyot restore -       onto another machine
  eyot --state /data/eyot backup state.tar.zst

In it are pools, keys (their hashes), events, images, persistent workspaces, and the files of all native sandboxes, which \
must sleep. A server may run meanwhile. Whoever has the file has all of that, secrets in environments included: it is \
made for its owner alone. Containers of a Docker Engine are not in it.";

/// `eyot backup`
#[derive(Debug, Args)]
#[command(after_help = BACKUP_EXAMPLES)]
pub struct BackupArgs {
    /// The file to write, or `-` for standard output
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Put running sandboxes to sleep first: their processes end, their files stay
    #[arg(long)]
    pub sleep: bool,
}

const RESTORE_EXAMPLES: &str = "\
Examples:
  eyot restore /backups/eyot-monday.tar.zst
  eyot --state /data/eyot restore state.tar.zst
  zstd -dc state.tar.zst | tar -tvf -           look into one

The state folder must not be there yet, or be empty; it is complete afterwards, or as it was. All sandboxes sleep in it, \
and any use wakes them. Restore what you have made yourself: what a backup says of mounts and keys is believed.";

/// `eyot restore`
#[derive(Debug, Args)]
#[command(after_help = RESTORE_EXAMPLES)]
pub struct RestoreArgs {
    /// A file of `eyot backup`, or `-` for standard input
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}
