//! What `eyot verify` runs: the threats and the conformance suite, as cases of rows.

mod case;
mod ground;
mod run;

pub use case::{Case, Status, Tried, all};
pub use ground::Ground;
pub use run::run;

/// Inside the sandboxes of [`Ground`] this program is the attacker: `eyot probe <name>`. Says what to exit with if it was
/// called as that. It is no command: there is nothing in it for a person.
pub fn attack() -> Option<i32> {
    let arguments: Vec<String> =
        std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect();
    let is_attack = arguments.get(1).is_some_and(|word| word == "probe");
    is_attack.then(|| i32::from(eyot_probes::attack(&arguments[2..]) != std::process::ExitCode::SUCCESS))
}
