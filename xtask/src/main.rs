//! What is done to this repository: test it, check it. `cargo xtask` explains.

mod architecture;
mod check;
mod packages;
mod process;
mod test;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask <task>

  test          build everything and run every test; as root, install what the tests need (apt), and run the
                sandbox tests a second time as an ordinary user. EYOT_SLOW=1 adds the long ones.
  check         formatting, lints, documentation, and the rules of ARCHITECTURE.md
  help          this text";

fn main() -> ExitCode {
    let task = std::env::args().nth(1).unwrap_or_default();
    let done = match task.as_str() {
        "test" => test::run(),
        "check" => check::run(),
        "help" | "--help" | "-h" | "" => {
            println!("{HELP}");
            Ok(())
        }
        other => Err(format!("there is no task `{other}`\n\n{HELP}")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("xtask: {message}");
            ExitCode::FAILURE
        }
    }
}
