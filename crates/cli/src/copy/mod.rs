//! Copies between host and sandboxes, as cp(1) does: into an existing directory under the source's
//! name, otherwise to the destination as the new name. Everything is streamed. A sandbox is not
//! trusted: its output is data and is written only beneath the destination. Entries that could lead
//! out of it are left out and reported.

mod across;
#[cfg(test)]
mod corpus;
mod inward;
mod outward;
mod pack;
mod pipe;
mod progress;
mod tree;
mod unpack;

use std::sync::OnceLock;

use eyot::{CreateDirOptions, Error, ErrorKind, RemoveOptions, Sandbox, SandboxPath};
use serde::Serialize;

use crate::errors::Failure;

pub use across::across;
pub use inward::{inward, inward_stdin};
pub use outward::{outward, outward_stdout};
pub use pipe::{StreamWriter, writer};
pub use progress::{ByteMeter, watch};

/// The most entries of a tree.
const MAX_ENTRIES: u64 = 1_000_000;

/// The result of a copy.
#[derive(Debug, Default, PartialEq, Eq, Serialize)]
pub struct CopyResult {
    /// Bytes of file content.
    pub bytes: u64,
    /// Files and symbolic links; directories are not counted.
    pub files: u64,
    /// The entries that were left out, with the reasons.
    pub skipped: Vec<String>,
}

/// A path inside a sandbox, as the user wrote it.
pub struct Inside<'a> {
    sandbox: &'a Sandbox,
    path: &'a str,
    /// The directory that the copy made for a tree, if none was there before.
    made: OnceLock<SandboxPath>,
}

impl<'a> Inside<'a> {
    /// A path in this sandbox.
    pub fn new(sandbox: &'a Sandbox, path: &'a str) -> Self {
        Self { sandbox, path, made: OnceLock::new() }
    }

    /// Removes the tree of a copy that was not completed, unless it went into a directory that was
    /// there before.
    pub async fn remove_incomplete(&self) {
        let Some(made) = self.made.get() else { return };
        let options = RemoveOptions { recursive: true, ..RemoveOptions::default() };
        if let Err(error) = self.sandbox.remove(made.as_str(), options).await {
            tracing::warn!(%error, path = %made, "remove the part that was copied");
        }
    }

    /// Makes the directory of a tree, if it is not there.
    async fn make_tree(&self, target: &SandboxPath) -> Result<(), Error> {
        let found = self.sandbox.stat(target.as_str()).await;
        if found.is_err_and(|error| error.kind() == ErrorKind::NotFound) {
            self.made.get_or_init(|| target.clone());
        }
        self.sandbox.create_dir(target.as_str(), CreateDirOptions { recursive: true }).await
    }

    /// Returns the path, absolute and normalised.
    fn resolved(&self) -> Result<SandboxPath, Error> {
        self.sandbox.resolve_path(self.path)
    }

    /// Returns the path of a copy that is made here. `name` is the source's; `None`: the content of
    /// a directory is copied.
    async fn target(&self, name: Option<&str>, source_is_directory: bool) -> Result<SandboxPath, Error> {
        let resolved = self.resolved()?;
        match self.sandbox.stat(self.path).await {
            Ok(stat) if stat.is_directory => match name {
                Some(name) => resolved.resolve(&format!("./{name}")),
                None => Ok(resolved),
            },
            Ok(_) if source_is_directory => Err(not_a_directory(&resolved)),
            Ok(_) => Ok(resolved),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                if self.path.ends_with('/') && !source_is_directory { Err(error) } else { Ok(resolved) }
            }
            Err(error) => Err(error),
        }
    }
}

fn not_a_directory(path: &impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::NotDirectory, format!("a directory can't replace the file `{path}`"))
}

/// Tells whether a path means the content of a directory rather than the directory: `.`, `..`,
/// `x/.`, `/`.
fn means_content(path: &str) -> bool {
    let last = path.rsplit('/').next().unwrap_or_default();
    matches!(last, "." | "..") || path.bytes().all(|byte| byte == b'/')
}

fn too_large(max_bytes: u64) -> Error {
    let message = format!("there is more than the limit of {max_bytes} bytes");
    Error::new(ErrorKind::TooLarge, message).with_hint("--max-bytes N copies more")
}

/// Returns the result of one of our threads. A panic there goes on here.
async fn joined<T>(thread: tokio::task::JoinHandle<Result<T, Failure>>) -> Result<T, Failure> {
    match thread.await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(error) => Err(Error::new(ErrorKind::Internal, "copy: the copying thread is gone")
                .with_source(error)
                .into()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dot_at_the_end_means_what_is_in_a_directory() {
        for path in [".", "..", "a/.", "a/..", "/", "/a/."] {
            assert!(means_content(path), "{path}");
        }
        for path in ["a", "a/", "/a", ".a", "a/..b"] {
            assert!(!means_content(path), "{path}");
        }
    }
}
