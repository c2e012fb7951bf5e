//! The egress program of one sandbox. A provider starts it, never a person.

fn main() -> std::process::ExitCode {
    eyot_egress::program::main()
}
