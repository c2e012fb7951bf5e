//! A shell session as a file: what one command leaves behind is what the next begins with.

use crate::running::quote;

/// The folder in the sandbox that holds it.
const FOLDER: &str = "/tmp/.eyot-shell";

/// Saves the state of a bash: its directory, mask, variables, functions, aliases and options, as
/// commands that bring them back. The new file replaces the old one as a whole: a command that is
/// killed leaves the old one. `command` is for who has functions of these names, `>|` for who has
/// set `noclobber`.
const SAVE: &str = r#"command mkdir -p /tmp/.eyot-shell && {
  if [ -n "${BASH_VERSION-}" ]
  then printf 'cd -- %q\n' "$PWD"; umask -p; declare -p; declare -f; alias -p; shopt -p; set +o
  else export -p; printf 'cd "$PWD"\n'; fi
} >| /tmp/.eyot-shell/state.$$ && command mv -f /tmp/.eyot-shell/state.$$ /tmp/.eyot-shell/state"#;

/// The line that runs a command in the session: it brings the last state back, runs the command, and keeps its state
/// however it ends, by its own end or by `exit`, which a trap of its own may answer to.
pub(super) fn line(command: &str) -> String {
    // The trap comes first: the state may say that every line is traced. Read-only variables refuse to be set again, which is as it should be. A `.` that fails must not end a shell that
    // stops at errors.
    let restore = format!("if [ -f {FOLDER}/state ]; then . {FOLDER}/state; fi >/dev/null 2>&1 || :");
    let trap = quote(&format!("{{ [ -n \"${{__eyot_saved-}}\" ] || {{ {SAVE}; }}; }} 2>/dev/null"));
    let command = quote(command);
    // The status goes where no variable of the session is.
    let end = format!("{{ set -- \"$?\"; {SAVE}; __eyot_saved=1; exit \"$1\"; }} 2>/dev/null");
    // One compound command: it is read as a whole before aliases are there, and before a syntax error in the command
    // confuses the reading of what stands behind it.
    format!("{{\ntrap {trap} EXIT\n{restore}\neval {command}\n{end}\n}}")
}

/// The line that forgets the session.
pub(super) fn restart() -> String {
    format!("rm -rf {FOLDER}")
}
