//! A shell session as a file: what one command leaves behind is what the next begins with.

use crate::tools::running::quote;

/// The folder in the sandbox that holds it.
const FOLDER: &str = "/tmp/.eyot-shell";

/// What a bash leaves behind: its directory, mask, variables, functions, aliases and options, as commands that bring them
/// back. The new file replaces the old one as a whole: a command that is killed leaves the old one.
const SAVE: &str = r#"{
  mkdir -p /tmp/.eyot-shell &&
  { if [ -n "$BASH_VERSION" ]
    then printf 'cd -- %q\n' "$PWD"; umask -p; declare -p; declare -f; alias -p; shopt -p; set +o
    else export -p; printf 'cd "$PWD"\n'; fi; } > /tmp/.eyot-shell/state.$$ &&
  mv -f /tmp/.eyot-shell/state.$$ /tmp/.eyot-shell/state
} 2>/dev/null"#;

/// The line that runs a command in the session: it brings the last state back, runs the command, and keeps its state
/// however it ends. Read-only variables refuse to be set again, which is as it should be.
pub(super) fn line(command: &str) -> String {
    // A `.` that fails, or whose last line does, must not end a shell that stops at errors.
    let restore = format!("if [ -r {FOLDER}/state ]; then . {FOLDER}/state; fi >/dev/null 2>&1 || :");
    format!("{restore}\ntrap {} EXIT\neval {}", quote(SAVE), quote(command))
}

/// The line that forgets the session.
pub(super) fn restart() -> String {
    format!("rm -rf {FOLDER}")
}
