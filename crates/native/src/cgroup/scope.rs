//! A delegated control group for an ordinary user. The launcher is started through `systemd-run
//! --user --scope`, and so runs in a scope that the user manager delegates to it. Moving a running
//! launcher there is not possible: that needs the right to write to a group above both.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Tells whether a user manager runs, and the program that asks it is installed.
pub(super) fn is_reachable() -> bool {
    runtime_dir().is_some_and(|dir| dir.join("systemd/private").exists()) && program().is_some()
}

fn runtime_dir() -> Option<PathBuf> {
    std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute())
}

fn program() -> Option<&'static Path> {
    ["/usr/bin/systemd-run", "/bin/systemd-run"].iter().map(Path::new).find(|path| path.exists())
}

/// Builds the command that asks the manager for a scope and then becomes `launcher` in the same
/// process.
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
