//! The arguments of `eyot events`.

use clap::Args;

const EXAMPLES: &str = "\
Examples:
  eyot events                                  all that is kept, oldest first
  eyot events builder --follow                 of one sandbox, until Ctrl-C
  eyot events --from 1200 --limit 50           from an event's number on
  eyot events --json | jq -r 'select(.kind == \"exec_ended\").command'
  eyot events --verify                         whether the log is unchanged

The log tells when sandboxes were made, changed and removed, and what tools, servers and their \
clients did. It does not tell of `eyot exec`, `start`, `run`, `cp`, `write` and `transfer` on this host.

A line holds the event's number, its time (UTC), pool and sandbox, what happened, and why. Commands \
are kept as they were given, so a secret on a command's line stands here too; what commands read \
and write is not. The oldest events go when there are too many: numbers begin above 1 then. \
With --json: one object a line, with the hashes that --verify checks. --verify exits with 1, and \
says where, if an event was changed, removed, inserted or moved, or if the log was removed or an \
older copy was put in its place. --new-log goes on after that.";

/// `eyot events`
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct EventsArgs {
    /// Only events of the sandbox with this id, name, or name as POOL/NAME
    #[arg(value_name = "NAME", conflicts_with = "sandbox")]
    pub name: Option<String>,
    /// Then print new events as they happen, of all processes
    #[arg(long, short)]
    pub follow: bool,
    /// Begin with the event with this number
    #[arg(long, value_name = "SEQ", default_value_t = 1)]
    pub from: u64,
    /// Stop after this many events
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub limit: Option<u64>,
    /// The same as the argument NAME
    #[arg(long, value_name = "NAME")]
    pub sandbox: Option<String>,
    /// Check that no event was changed, moved or removed
    #[arg(long, conflicts_with_all = ["name", "follow", "from", "limit", "sandbox"])]
    pub verify: bool,
    /// Set the log aside, in a folder beside it, and begin a new one
    #[arg(long, conflicts_with_all = ["name", "follow", "from", "limit", "sandbox", "verify"])]
    pub new_log: bool,
}

impl EventsArgs {
    /// Returns the sandbox whose events alone are wanted.
    pub fn wanted_sandbox(&self) -> Option<&str> {
        self.name.as_deref().or(self.sandbox.as_deref())
    }
}
