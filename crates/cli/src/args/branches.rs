//! The arguments of `snapshot`, `fork`, `commit`, `rollback`, `diff` and `apply`.

use clap::{Args, Subcommand};
use eyot::{SandboxName, SandboxPath};
use eyot_engine::ForkOptions;

use super::tools::parse_name;
use super::values::parse_pair;

const SNAPSHOT_EXAMPLES: &str = "\
Examples:
  eyot snapshot dev                             keep its files as they are
  eyot snapshot dev --name before-upgrade
  eyot snapshot ls
  eyot snapshot rm before-upgrade
  eyot rollback dev before-upgrade              go back to them
  eyot fork before-upgrade -n 3                 three that begin with them

A snapshot keeps files, not processes. Persistent workspaces, mounts (not copies) and what lies in memory are no \
part of it. A sandbox that works is refused unless `--stop` ends what runs, as `eyot sleep` does; its \
services start again.";

const LS_EXAMPLES: &str = "\
Examples:
  eyot snapshot ls
  eyot snapshot ls team                         those of the pool `team`
  eyot snapshot ls --json

OWN is what a snapshot alone takes on the disk, and SHARED what those that it was taken above take.";

const RM_EXAMPLES: &str = "\
Examples:
  eyot snapshot rm before-upgrade
  eyot snapshot rm team/first sn_01a21e86dcff438e9a3ed9ae7c2d4c55

Sandboxes that were made from it, and snapshots that were taken above it, stay as they are.";

const FORK_EXAMPLES: &str = "\
Examples:
  eyot fork dev                                 `dev-1`, with its files
  eyot fork dev --name try                      the same, named `try`
  eyot fork before-upgrade -n 3                 three from a snapshot

The forks have the spec of the sandbox: its limits, variables and mounts. Their names are printed, one \
a line.";

const COMMIT_EXAMPLES: &str = "\
Examples:
  eyot create dev --image node:22
  eyot exec dev -u root -- npm install -g typescript
  eyot commit dev node-ts:1                     an image of its present files
  eyot create other --image node-ts:1
  eyot commit before-upgrade app:1.2            an image of a snapshot
  eyot image ls
  eyot image rm node-ts:1

The image is the one that the sandbox was made from, with one layer more; its variables, user, working \
directory and entrypoint stay. Files of persistent workspaces and mounts, variables of the sandbox and \
processes are no part of it. A sandbox of the host's programs, without `--image`, can't be committed. An \
image that has the name loses it.";

const ROLLBACK_EXAMPLES: &str = "\
Examples:
  eyot rollback dev before-upgrade
  eyot rollback dev before-upgrade --stop       and end what runs

What was changed since the snapshot is lost: take another one first to keep it.";

const DIFF_EXAMPLES: &str = "\
Examples:
  eyot diff dev                                 since its last snapshot, if any
  eyot diff dev --path /workspace
  eyot diff before-upgrade dev                  since that snapshot
  eyot diff first second --json                 between two, with sizes
  eyot diff dev --text                          with the lines that changed

A is added, C is changed, D is removed. Only the content, the kind and the mode of files count.";

const APPLY_EXAMPLES: &str = "\
Examples:
  eyot create dev --mount .:/workspace:cow      the sandbox changes a copy
  eyot diff dev --path /workspace --text        what it has changed
  eyot apply dev --dry-run                      what it would write, or why not
  eyot apply dev                                write it into this folder
  eyot apply dev /workspace                     of several copies, this one

All changes are written, or none: if the host has changed one of the same files since the sandbox was made, nothing is, \
and the files are listed. Look at the changes first: `.git/hooks`, `.git/config` and build files are run by programs of this host.";

/// `eyot snapshot`
#[derive(Debug, Args)]
#[command(after_help = SNAPSHOT_EXAMPLES, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct SnapshotArgs {
    #[command(subcommand)]
    pub command: Option<SnapshotCommand>,
    /// The sandbox: NAME, POOL/NAME or its id
    #[arg(value_name = "SANDBOX", required = true)]
    pub sandbox: Option<String>,
    /// The name of the snapshot, unique in its pool
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    pub name: Option<SandboxName>,
    /// A label of the snapshot; may be repeated
    #[arg(long, short, value_name = "KEY=VALUE", value_parser = parse_pair)]
    pub label: Vec<(String, String)>,
    #[command(flatten)]
    pub stop: StopArg,
}

/// A command about snapshots.
#[derive(Debug, Subcommand)]
pub enum SnapshotCommand {
    /// List the snapshots of a pool
    #[command(visible_alias = "list", after_help = LS_EXAMPLES)]
    Ls {
        /// The pool: by default `default`, or the key's own on a server
        #[arg(value_name = "POOL", value_parser = parse_name)]
        pool: Option<SandboxName>,
    },
    /// Remove snapshots
    #[command(after_help = RM_EXAMPLES)]
    Rm {
        /// The snapshots: NAME, POOL/NAME or their ids
        #[arg(value_name = "SNAPSHOT", required = true)]
        snapshots: Vec<String>,
    },
}

/// The option of commands that need a sandbox without work.
#[derive(Debug, Clone, Copy, Args)]
pub struct StopArg {
    /// End the commands that run, as `eyot sleep` does
    #[arg(long)]
    pub stop: bool,
}

fn parse_fork_count(text: &str) -> Result<usize, String> {
    let most = ForkOptions::MAX;
    let count = text.parse().ok().filter(|count| (1..=most).contains(count));
    count.ok_or_else(|| format!("must be from 1 to {most}"))
}

/// `eyot fork`
#[derive(Debug, Args)]
#[command(after_help = FORK_EXAMPLES)]
pub struct ForkArgs {
    /// A snapshot or, if there is none of that name, a sandbox
    #[arg(value_name = "SNAPSHOT|SANDBOX")]
    pub from: String,
    /// The number of sandboxes to make
    #[arg(long, short = 'n', value_name = "NUMBER", default_value_t = 1, value_parser = parse_fork_count)]
    pub count: usize,
    /// The name of the fork; of several, the beginning of their names
    #[arg(long, value_name = "NAME", value_parser = parse_name)]
    pub name: Option<SandboxName>,
    #[command(flatten)]
    pub stop: StopArg,
}

/// `eyot commit`
#[derive(Debug, Args)]
#[command(after_help = COMMIT_EXAMPLES)]
pub struct CommitArgs {
    /// A snapshot or, if there is none of that name, a sandbox
    #[arg(value_name = "SNAPSHOT|SANDBOX")]
    pub from: String,
    /// The name of the image, such as `app:1`
    #[arg(value_name = "REFERENCE")]
    pub reference: String,
    #[command(flatten)]
    pub stop: StopArg,
}

/// `eyot rollback`
#[derive(Debug, Args)]
#[command(after_help = ROLLBACK_EXAMPLES)]
pub struct RollbackArgs {
    /// The sandbox: NAME, POOL/NAME or its id
    #[arg(value_name = "SANDBOX")]
    pub sandbox: String,
    /// The snapshot of its pool, by name or id
    #[arg(value_name = "SNAPSHOT")]
    pub snapshot: String,
    #[command(flatten)]
    pub stop: StopArg,
}

/// `eyot apply`
#[derive(Debug, Args)]
#[command(after_help = APPLY_EXAMPLES)]
pub struct ApplyArgs {
    /// The sandbox: NAME, POOL/NAME or its id
    #[arg(value_name = "SANDBOX")]
    pub sandbox: String,
    /// The place of the copy in the sandbox; by default the only one
    #[arg(value_name = "DST", value_parser = SandboxPath::parse)]
    pub target: Option<SandboxPath>,
    /// Only say what would be written, and what is in the way
    #[arg(long)]
    pub dry_run: bool,
    #[command(flatten)]
    pub stop: StopArg,
}

/// `eyot diff`
#[derive(Debug, Args)]
#[command(after_help = DIFF_EXAMPLES)]
pub struct DiffArgs {
    /// A sandbox alone; or the first side, a snapshot or a sandbox
    #[arg(value_name = "FROM")]
    pub from: String,
    /// The second side: a snapshot or a sandbox of the same pool
    #[arg(value_name = "TO")]
    pub to: Option<String>,
    /// Compare only what lies here and below
    #[arg(long, value_name = "PATH", default_value = "/", value_parser = SandboxPath::parse)]
    pub path: SandboxPath,
    /// Show unified diffs of files that are text
    #[arg(long)]
    pub text: bool,
}
