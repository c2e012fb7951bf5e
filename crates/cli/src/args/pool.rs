//! The arguments of `eyot pool`.

use clap::{Args, Subcommand};
use eyot::SandboxName;

use super::tools::parse_name;
use crate::durations::parse_ms;

const EXAMPLES: &str = "\
Examples:
  eyot pool ls                                  the pools there are
  eyot pool ls agent-7                          the sandboxes of one
  eyot pool create agent-7 web --service 'python3 -m http.server 8000'
  eyot pool sleep agent-7 web
  eyot pool rm agent-7                          the pool, with all its sandboxes
  eyot call pool shell '{\"sandbox\": \"web\", \"command\": \"ls\"}' --pool agent-7

A pool has the named sandboxes of one agent session. One that is named for the first time is made; \
one that nobody has used for its time sleeps, and any use wakes it. Pools share nothing.";

const LS_EXAMPLES: &str = "\
Examples:
  eyot pool ls
  eyot pool ls agent-7
  eyot pool ls --json";

const SLEEP_EXAMPLES: &str = "\
Examples:
  eyot pool sleep agent-7 web
  eyot pool sleep agent-7 web worker";

const RM_EXAMPLES: &str = "\
Examples:
  eyot pool rm agent-7 web                      one sandbox
  eyot pool rm agent-7                          the pool, with all its sandboxes
  eyot pool rm -f agent-7                       the same, and nobody is asked";

const RECONCILE_EXAMPLES: &str = "\
Examples:
  eyot pool reconcile
  eyot pool reconcile --new-store               after `eyot.db` was lost";

const CREATE_EXAMPLES: &str = "\
Examples:
  eyot pool create agent-7 web
  eyot pool create agent-7 web --image node:22 --sleep-after 1h
  eyot pool create agent-7 web --service 'python3 -m http.server 8000'";

/// `eyot pool`
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct PoolArgs {
    #[command(subcommand)]
    pub command: PoolCommand,
}

/// A command about pools.
#[derive(Debug, Subcommand)]
pub enum PoolCommand {
    /// List the pools, or the sandboxes of one
    #[command(visible_alias = "list", after_help = LS_EXAMPLES)]
    Ls {
        /// The pool
        #[arg(value_name = "POOL", value_parser = parse_name)]
        pool: Option<SandboxName>,
    },
    /// Create a sandbox of a pool unless it exists
    Create(PoolCreateArgs),
    /// Put sandboxes of a pool to sleep
    #[command(after_help = SLEEP_EXAMPLES)]
    Sleep(MembersArgs),
    /// Destroy sandboxes of a pool; without names, all of them and the pool
    #[command(after_help = RM_EXAMPLES)]
    Rm {
        /// The pool
        #[arg(value_name = "POOL", value_parser = parse_name)]
        pool: SandboxName,
        /// The sandboxes' names in the pool
        #[arg(value_name = "NAME")]
        names: Vec<String>,
        /// Ask nothing before the whole pool is destroyed
        #[arg(long, short, alias = "yes", short_alias = 'y')]
        force: bool,
    },
    /// Repair what a killed process has left, and print what that was
    #[command(after_help = RECONCILE_EXAMPLES)]
    Reconcile {
        /// Begin a new store (`eyot.db`) if the old one is lost: keys and pools are forgotten, and
        /// sandboxes stay under other names, which `eyot ls` shows
        #[arg(long)]
        new_store: bool,
    },
}

/// The arguments of commands about several sandboxes of a pool.
#[derive(Debug, Args)]
pub struct MembersArgs {
    /// The pool
    #[arg(value_name = "POOL", value_parser = parse_name)]
    pub pool: SandboxName,
    /// The sandboxes' names in the pool
    #[arg(value_name = "NAME", required = true)]
    pub names: Vec<String>,
}

/// `eyot pool create`
#[derive(Debug, Args)]
#[command(after_help = CREATE_EXAMPLES)]
pub struct PoolCreateArgs {
    /// The pool
    #[arg(value_name = "POOL", value_parser = parse_name)]
    pub pool: SandboxName,
    /// The sandbox's name in the pool
    #[arg(value_name = "NAME")]
    pub name: String,
    /// The image it is made from
    #[arg(long)]
    pub image: Option<String>,
    /// Put it to sleep after this long without activity [default: 10m]
    #[arg(long, value_name = "DURATION", value_parser = parse_ms)]
    pub sleep_after: Option<u64>,
    /// A shell line that runs whenever the sandbox is awake; may be repeated
    #[arg(long = "service", value_name = "LINE")]
    pub services: Vec<String>,
}
