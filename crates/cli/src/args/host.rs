//! The arguments of `providers`, `doctor` and `verify`, which are about the host.

use std::path::PathBuf;

use clap::Args;

const PROVIDERS_EXAMPLES: &str = "\
Examples:
  eyot providers
  eyot providers --json                        for a program to read
  eyot --provider docker --provider-option image=debian:12 run -- id

Looks whether each can make sandboxes here: a native one is made and removed, and a Docker Engine is \
asked for its version. `eyot doctor` says more about this host.";

/// `eyot providers`
#[derive(Debug, Args)]
#[command(after_help = PROVIDERS_EXAMPLES)]
pub struct ProvidersArgs {}

const DOCTOR_EXAMPLES: &str = "\
Examples:
  eyot doctor
  eyot doctor --json                           with all facts about the host
  eyot doctor --apparmor-profile | sudo tee /etc/apparmor.d/eyot

Makes a sandbox, removes it, and looks at what it took. The exit code is 0 if that worked, else 1.";

/// `eyot doctor`
#[derive(Debug, Args)]
#[command(after_help = DOCTOR_EXAMPLES)]
pub struct DoctorArgs {
    /// Only print the AppArmor profile that lets this program (or PROGRAM) create sandboxes
    #[arg(long, value_name = "PROGRAM", num_args = 0..=1, require_equals = true)]
    pub apparmor_profile: Option<Option<PathBuf>>,
}

const VERIFY_EXAMPLES: &str = "\
Examples:
  eyot verify
  eyot verify --filter K11 --filter contract   some rows
  eyot verify --filter setuid --verbose        cases by name, with each result
  eyot verify --list
  eyot --provider docker verify                the contract, on another provider
  eyot verify --json > report.json

Tries every known threat from inside sandboxes, and every rule of the contract, on this host; with a \
provider other than native, the contract. Rows \
that pass may have cases that don't apply here (a program is missing); what this host can't enforce \
is said. Everything happens in a folder of its own, which is gone afterwards. A case that fails beside \
others is tried again alone.

The exit code is 0 if every promise was seen to be kept or cannot be kept here. It is 1 if a case failed \
twice: a hole, at which a pipeline stops. It is 3 if none did, but some held only alone (unsteady) or had \
no sandbox (not tried), as on a busy host: that proves nothing, and is worth another try.";

/// `eyot verify`
#[derive(Debug, Args)]
#[command(after_help = VERIFY_EXAMPLES)]
pub struct VerifyArgs {
    /// Only the row with this id, or the cases with this in their name; may be repeated
    #[arg(long, value_name = "TEXT")]
    pub filter: Vec<String>,
    /// Print the rows without trying them
    #[arg(long)]
    pub list: bool,
    /// Also run the slow cases: floods of a GiB, a million files
    #[arg(long)]
    pub slow: bool,
}
