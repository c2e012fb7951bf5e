//! The names of the programs that a script may call.

use std::collections::BTreeSet;
use std::sync::OnceLock;

use super::shell_factory::ShellFactory;

/// The shell builtins that are not programs, so no process can have their names.
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

/// The names of the interpreter's programs and of our own.
pub(super) struct KnownPrograms {
    factory: ShellFactory,
    ours: Vec<&'static str>,
    names: OnceLock<BTreeSet<String>>,
}

impl KnownPrograms {
    pub(super) fn new(factory: ShellFactory, ours: impl IntoIterator<Item = &'static str>) -> Self {
        Self { factory, ours: ours.into_iter().collect(), names: OnceLock::new() }
    }

    /// Returns whether the shell knows this name.
    pub(super) fn has(&self, name: &str) -> bool {
        let known = || {
            let names = (self.factory)().build().builtin_names().into_iter();
            names.chain(self.ours.iter().map(|name| (*name).to_owned())).collect()
        };
        self.names.get_or_init(known).contains(name)
    }

    /// Returns whether a process can be this program.
    pub(super) fn is_program(&self, name: &str) -> bool {
        matches!(name, "bash" | "sh") || (self.has(name) && !SHELL_ONLY.contains(&name))
    }
}
