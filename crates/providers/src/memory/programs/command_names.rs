//! The programs that a program of ours may start, by what a command line calls them.

use std::collections::BTreeSet;

/// Builtins of the shell that are no programs: a process can't be one.
const SHELL_ONLY: &[&str] = &[
    ".",
    ":",
    "alias",
    "bg",
    "bind",
    "break",
    "builtin",
    "caller",
    "cd",
    "command",
    "compgen",
    "complete",
    "compopt",
    "continue",
    "declare",
    "dirs",
    "disown",
    "enable",
    "eval",
    "exec",
    "exit",
    "export",
    "fc",
    "fg",
    "getopts",
    "hash",
    "help",
    "history",
    "jobs",
    "let",
    "local",
    "logout",
    "mapfile",
    "popd",
    "pushd",
    "read",
    "readarray",
    "readonly",
    "return",
    "set",
    "shift",
    "shopt",
    "source",
    "suspend",
    "times",
    "trap",
    "type",
    "typeset",
    "ulimit",
    "umask",
    "unalias",
    "unset",
    "wait",
];

/// The names of the interpreter's programs, and of ours.
pub(super) struct CommandNames(BTreeSet<String>);

impl CommandNames {
    pub(super) fn new(names: impl Iterator<Item = String>) -> Self {
        let names = names.filter(|name| !SHELL_ONLY.contains(&name.as_str()) && !name.starts_with("__eyot"));
        Self(names.chain(["bash", "sh"].map(str::to_owned)).collect())
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.contains(name)
    }
}
