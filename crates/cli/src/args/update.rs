//! The arguments of `eyot update`.

use clap::Args;
use eyot::IdleAction;

use super::values::{parse_on_idle, parse_pair};
use crate::durations::DeadlineArg;

const EXAMPLES: &str = "\
Examples:
  eyot update builder --ttl 1d                 gone a day after its creation
  eyot update builder --ttl never --idle-timeout 30m --on-idle sleep
  eyot update builder --label team=search --remove-label draft

The ttl counts from the creation, the idle timeout from now. What is not named stays as it is. A change \
of a deadline wakes a sandbox that sleeps. `eyot net` changes where it may connect to; image, limits, \
mounts and variables are those that it was created with.";

/// `eyot update`
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, override_usage = "eyot update [OPTIONS] <NAME>")]
pub struct UpdateArgs {
    /// The sandbox's name or id
    pub name: String,
    /// What to change.
    #[command(flatten)]
    pub changes: ChangeArgs,
}

/// The changes of a sandbox.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub struct ChangeArgs {
    /// Destroy it this long after its creation, such as 1.5h, or never
    #[arg(long, value_name = "DURATION", allow_negative_numbers = true)]
    pub ttl: Option<DeadlineArg>,
    /// Destroy it (see --on-idle) after this long without activity, or never
    #[arg(long, value_name = "DURATION", allow_negative_numbers = true)]
    pub idle_timeout: Option<DeadlineArg>,
    /// With an idle timeout: destroy or sleep
    #[arg(long, value_name = "WHAT", value_parser = parse_on_idle)]
    pub on_idle: Option<IdleAction>,
    /// Set a label
    #[arg(long, short, value_name = "K=V", value_parser = parse_pair)]
    pub label: Vec<(String, String)>,
    /// Remove a label
    #[arg(long, value_name = "K")]
    pub remove_label: Vec<String>,
}
