//! The programs that a program of ours may start, by what a command line calls them.

use std::collections::BTreeSet;
use std::path::Path;

use bashkit::FileType;

use super::run::ProgramRun;

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
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// The names of the interpreter's programs, and of ours.
pub(super) struct CommandNames(BTreeSet<String>);

/// The reason why a command can't be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StartError {
    NotFound,
    Denied,
}

impl StartError {
    /// The status of a program that could not start another.
    pub(super) fn status(self) -> i32 {
        match self {
            Self::NotFound => 127,
            Self::Denied => 126,
        }
    }

    pub(super) fn reason(self) -> &'static str {
        match self {
            Self::NotFound => "No such file or directory",
            Self::Denied => "Permission denied",
        }
    }
}

impl CommandNames {
    pub(super) fn new(names: impl Iterator<Item = String>) -> Self {
        let names = names.filter(|name| !SHELL_ONLY.contains(&name.as_str()) && !name.starts_with("__eyot"));
        Self(names.chain(["bash", "sh"].map(str::to_owned)).collect())
    }

    fn has(&self, name: &str) -> bool {
        self.0.contains(name)
    }
}

impl ProgramRun<'_> {
    /// Tells whether a command can be started from a place.
    pub(super) async fn check_command(
        &self,
        name: &str,
        cwd: &Path,
        path: Option<&str>,
    ) -> Result<(), StartError> {
        if name.contains('/') {
            return self.check_file(&cwd.join(name)).await;
        }
        if self.children.names().has(name) {
            return Ok(());
        }
        let mut error = StartError::NotFound;
        for directory in path.unwrap_or(DEFAULT_PATH).split(':').filter(|_| !name.is_empty()) {
            match self.check_file(&cwd.join(directory).join(name)).await {
                Ok(()) => return Ok(()),
                Err(StartError::Denied) => error = StartError::Denied,
                Err(StartError::NotFound) => {}
            }
        }
        Err(error)
    }

    async fn check_file(&self, path: &Path) -> Result<(), StartError> {
        let found = self.fs.stat(path).await.map_err(|_| StartError::NotFound)?;
        let can_run = found.file_type == FileType::File && found.mode & 0o111 != 0;
        if can_run { Ok(()) } else { Err(StartError::Denied) }
    }
}
