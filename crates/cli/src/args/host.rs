//! `doctor`: the host rather than a sandbox.

use std::path::PathBuf;

use clap::Args;

const DOCTOR_EXAMPLES: &str = "\
Examples:
  eyot doctor
  eyot doctor --json                           with all that is known of the host, for a report
  eyot doctor --apparmor-profile | sudo tee /etc/apparmor.d/eyot

Makes a sandbox, removes it, and looks at what it took. The exit code is 0 if that worked, else 1.";

/// `eyot doctor`
#[derive(Debug, Args)]
#[command(after_help = DOCTOR_EXAMPLES)]
pub struct DoctorArgs {
    /// Print the AppArmor profile that lets this program (or PROGRAM) make sandboxes, and nothing else
    #[arg(long, value_name = "PROGRAM", num_args = 0..=1, require_equals = true)]
    pub apparmor_profile: Option<Option<PathBuf>>,
}
