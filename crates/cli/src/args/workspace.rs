//! The arguments of `eyot workspace`.

use clap::{Args, Subcommand};

const EXAMPLES: &str = "\
Examples:
  eyot create dev --workspace notes             makes it, or takes it again
  eyot workspace ls
  eyot workspace rm notes

A persistent workspace keeps the files of a sandbox's working directory when the sandbox is destroyed. \
That of a pool other than `default` is listed as POOL.NAME. These commands are about native sandboxes of \
this host's state folder: a server does not list its workspaces, and those of a Docker Engine are its \
volumes (`docker volume ls --filter name=eyot-workspace-`).";

const LS_EXAMPLES: &str = "\
Examples:
  eyot workspace ls
  eyot workspace ls -q                          names only
  eyot workspace ls --json

SIZE is what the files take on the disk, and CHANGED how long ago one was changed last.";

const RM_EXAMPLES: &str = "\
Examples:
  eyot workspace rm notes
  eyot workspace rm -f notes team.notes         several, and nobody is asked

A workspace that a sandbox has, running or asleep, is not removed: destroy the sandbox first.";

/// `eyot workspace`
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct WorkspaceArgs {
    #[command(subcommand)]
    pub command: WorkspaceCommand,
}

/// A command about persistent workspaces.
#[derive(Debug, Subcommand)]
pub enum WorkspaceCommand {
    /// List the persistent workspaces, with their sandboxes
    #[command(visible_alias = "list", after_help = LS_EXAMPLES)]
    Ls,
    /// Remove persistent workspaces with their files
    #[command(after_help = RM_EXAMPLES)]
    Rm {
        /// The workspaces' names
        #[arg(value_name = "NAME", required = true)]
        names: Vec<String>,
        /// Ask nothing before the files are removed
        #[arg(long, short, alias = "yes", short_alias = 'y')]
        force: bool,
    },
}
