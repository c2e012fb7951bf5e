//! Runs the threats and the conformance suite for `eyot verify`, as cases of rows.

mod case;
mod ground;
mod run;

pub use case::{CONTRACT, CaseResult, CaseStatus, VerifyCase, all};
pub use ground::VerifyGround;
pub use run::run;

/// Runs this program as the attacker inside a sandbox of [`VerifyGround`]: `eyot probe <name>`. Returns
/// the exit code if it was called so. It is not a command, since it is not for people.
pub fn attack() -> Option<i32> {
    let arguments: Vec<String> =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let is_attack = arguments.get(1).is_some_and(|word| word == "probe");
    is_attack.then(|| i32::from(eyot_probes::attack(&arguments[2..]) != std::process::ExitCode::SUCCESS))
}
