//! The launcher: a small process that makes sandboxes for a provider. It is started by the provider, never by hand.

fn main() -> std::process::ExitCode {
    eyot_native::launcher_main()
}
