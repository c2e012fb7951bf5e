//! Whether a command can be started.

use std::path::Path;

use bashkit::FileType;

use super::run::ProgramRun;

const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

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
        if self.children.shells().programs.is_program(name) {
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
