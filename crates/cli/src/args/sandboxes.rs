//! The arguments of `create`, `ls`, `inspect`, `sleep`, `wake`, `rm`, `adopt` and `dial`: sandboxes
//! as a whole.

use clap::Args;
use eyot_engine::NameInPool;

use super::spec::{SpecArgs, parse_new_name};
use super::values::parse_port;

const CREATE_EXAMPLES: &str = "\
Examples:
  eyot create builder
  eyot create web --net host --mount ~/site:/workspace/site:rw
  eyot create agent --net egress --allow api.example.com:443 \\
      --allow '*.cdn.example.com:443'
  eyot create --ttl 1h --idle-timeout 10m --memory 1g --require memory,pids
  eyot create --workspace project-7 --file README.md=./README.md --dir out
  eyot create other --spec sandbox.json
  eyot create builder --get-or-create          the one that is there, if any

Prints the name; with --json, everything that `eyot inspect` knows.";

/// `eyot create`
#[derive(Debug, Args)]
#[command(after_help = CREATE_EXAMPLES)]
pub struct CreateArgs {
    /// Name: lowercase letters, digits and hyphens, or POOL/NAME; by default generated from the id
    #[arg(id = "new_name", value_name = "NAME", value_parser = parse_new_name, conflicts_with = "name")]
    pub name: Option<NameInPool>,
    /// Use the sandbox of this name as it is if there is one, awake
    #[arg(long)]
    pub get_or_create: bool,
    /// The spec of the new sandbox.
    #[command(flatten)]
    pub spec: SpecArgs,
}

const LS_EXAMPLES: &str = "\
Examples:
  eyot ls
  eyot ls -q | xargs -n1 eyot rm               ids only
  eyot ls --json
  eyot ls --label team=search
  eyot --provider docker ls                    foreign: see `eyot adopt --help`";

/// `eyot ls`
#[derive(Debug, Args)]
#[command(after_help = LS_EXAMPLES)]
pub struct LsArgs {
    /// Only sandboxes with this label, K=V or K
    #[arg(long, short, value_name = "K=V")]
    pub label: Vec<String>,
}

const INSPECT_EXAMPLES: &str = "\
Examples:
  eyot inspect builder
  eyot inspect --json builder                  one object
  eyot inspect --json builder tester           an array of them

Values of variables and contents of manifest files are secrets and left out; --show-env shows \
the values.";

/// `eyot inspect`
#[derive(Debug, Args)]
#[command(after_help = INSPECT_EXAMPLES)]
pub struct InspectArgs {
    /// The sandboxes' names or ids
    #[arg(value_name = "NAME", required = true)]
    pub names: Vec<String>,
    /// Also show the values of variables
    #[arg(long)]
    pub show_env: bool,
}

const SLEEP_EXAMPLES: &str = "\
Examples:
  eyot sleep builder
  eyot stop builder                                 the same, in Docker's word
  eyot stop --all                                   every one that runs
  eyot create --idle-timeout 10m --on-idle sleep    one that sleeps by itself

What runs in them is killed, what lies in /dev/shm and /run is gone; every other file stays, and so do \
name, id, variables and limits. Any use wakes them: exec, read, write, cp, start and the like; so does \
`eyot wake`. Looking at them (ls, inspect, top, events) does not.";

/// `eyot sleep`
#[derive(Debug, Args)]
#[command(after_help = SLEEP_EXAMPLES)]
pub struct SleepArgs {
    /// The sandboxes' names or ids
    #[arg(value_name = "NAME", required_unless_present = "all", conflicts_with = "all")]
    pub names: Vec<String>,
    /// All sandboxes that run
    #[arg(long)]
    pub all: bool,
}

const WAKE_EXAMPLES: &str = "\
Examples:
  eyot wake builder

One that runs already is fine. Nothing that ran before the sleep is started again.";

/// `eyot wake`
#[derive(Debug, Args)]
#[command(after_help = WAKE_EXAMPLES)]
pub struct WakeArgs {
    /// The sandboxes' names or ids
    #[arg(value_name = "NAME", required = true)]
    pub names: Vec<String>,
}

const RM_EXAMPLES: &str = "\
Examples:
  eyot rm builder tester
  eyot rm -f builder                           no error if there is none
  eyot rm --all                                a person is asked first
  eyot rm --all -f                             and here not

What runs in them is killed; their files are gone.";

/// `eyot rm`
#[derive(Debug, Args)]
#[command(after_help = RM_EXAMPLES)]
pub struct RmArgs {
    /// The sandboxes' names or ids
    #[arg(value_name = "NAME", required_unless_present = "all", conflicts_with = "all")]
    pub names: Vec<String>,
    /// All sandboxes
    #[arg(long)]
    pub all: bool,
    /// Do not fail if a sandbox does not exist, and ask nothing
    #[arg(long, short, alias = "yes", short_alias = 'y')]
    pub force: bool,
}

const ADOPT_EXAMPLES: &str = "\
Examples:
  eyot ls --provider docker                            their status is `foreign`
  eyot adopt --provider docker builder                 a container
  eyot adopt --provider docker eyot-workspace-notes    a workspace's volume

Anybody can copy or forge the labels of a container. So Eyot uses and removes only what a secret of \
its state folder has signed, and what you adopt: its labels are believed from then on. Adopt only \
what you know that Eyot has made, such as a container from before labels were signed.";

/// `eyot adopt`
#[derive(Debug, Args)]
#[command(after_help = ADOPT_EXAMPLES)]
pub struct AdoptArgs {
    /// The name or id of the sandbox or container, or the name of the volume
    pub name: String,
}

const DIAL_EXAMPLES: &str = "\
Examples:
  printf 'GET / HTTP/1.0\\r\\n\\r\\n' | eyot dial builder 8000
  ssh -o ProxyCommand='eyot dial builder 22' user@builder";

/// `eyot dial`
#[derive(Debug, Args)]
#[command(after_help = DIAL_EXAMPLES)]
pub struct DialArgs {
    /// The sandbox's name or id
    pub name: String,
    /// The port on the sandbox's loopback
    #[arg(value_parser = parse_port)]
    pub port: u16,
}
