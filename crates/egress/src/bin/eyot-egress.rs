//! The way out of one sandbox. It is started by a provider, never by hand.

fn main() -> std::process::ExitCode {
    eyot_egress::program::main()
}
