//! The guest: PID 1 of a native sandbox. It is started by a provider, never by hand.

fn main() -> std::process::ExitCode {
    eyot_guest::program::main()
}
