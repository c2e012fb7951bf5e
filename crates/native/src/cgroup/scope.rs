//! A delegated group for an ordinary user: the launcher is started once through `systemd-run --user --scope`, and so
//! sits in a scope of its own that the user manager leaves to it. It must be in there itself: who puts a process into
//! a group needs the right to write to a group above both.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Whether there is a user manager, and the program to ask it with.
pub(super) fn is_reachable() -> bool {
    runtime_dir().is_some_and(|dir| dir.join("systemd/private").exists()) && program().is_some()
}

fn runtime_dir() -> Option<PathBuf> {
    std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute())
}

fn program() -> Option<&'static Path> {
    ["/usr/bin/systemd-run", "/bin/systemd-run"].iter().map(Path::new).find(|path| path.exists())
}

/// The command that asks the manager for a scope and then becomes `launcher`, by the same process number.
pub(crate) fn command(launcher: &str) -> Command {
    let mut command = Command::new(program().unwrap_or_else(|| Path::new("systemd-run")));
    command.args(["--user", "--scope", "--quiet", "--collect", "--property=Delegate=yes", "--", launcher]);
    command.env_clear();
    for name in ["XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS"] {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command
}
