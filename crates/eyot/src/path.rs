//! Paths inside a sandbox, parsed once into types that can't be wrong.
//!
//! [`SandboxPath`] is absolute and normalised (Flue's rules 1–3); [`WorkspacePath`] is relative and stays beneath the
//! workspace (Anvia's rules 27–28). Both are lexical: what a symlink does is the guest's business, and [`ConfinedPath`]
//! carries the directory that it must not lead out of.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};

/// The longest path that is accepted, in bytes; Linux's own limit less its final NUL.
pub const MAX_PATH_BYTES: usize = 4095;
/// The longest single name that is accepted, in bytes.
pub const MAX_NAME_BYTES: usize = 255;

/// An absolute, normalised POSIX path inside a sandbox: a leading `/`, no `.`, no `..`, no empty segment, no trailing
/// slash, no NUL, UTF-8, at most [`MAX_PATH_BYTES`] bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SandboxPath(String);

impl SandboxPath {
    /// The root directory, `/`.
    pub fn root() -> Self {
        Self("/".to_owned())
    }

    /// Parses an absolute path. `..` pops and stops at `/`.
    ///
    /// ```
    /// # use eyot::SandboxPath;
    /// assert_eq!(SandboxPath::parse("/a/./b//../c/")?.as_str(), "/a/c");
    /// assert_eq!(SandboxPath::parse("/../x")?.as_str(), "/x");
    /// assert!(SandboxPath::parse("a").is_err());
    /// # Ok::<(), eyot::Error>(())
    /// ```
    pub fn parse(path: &str) -> Result<Self> {
        if !path.starts_with('/') {
            return Err(Error::new(ErrorKind::Invalid, format!("path `{path}` must be absolute")));
        }
        Self::normalise(path)
    }

    /// Resolves `path` against this directory: an absolute path stands for itself, a relative one is joined. Both are
    /// normalised; neither is confined. An empty path is refused.
    pub fn resolve(&self, path: &str) -> Result<Self> {
        match path.strip_prefix('/') {
            Some(_) => Self::normalise(path),
            None if path.is_empty() => Err(Error::new(ErrorKind::Invalid, "path must not be empty")),
            None => Self::normalise(&format!("{}/{path}", self.0)),
        }
    }

    fn normalise(path: &str) -> Result<Self> {
        check_characters(path)?;
        let mut segments: Vec<&str> = Vec::new();
        for segment in path.split('/') {
            match segment {
                "" | "." => {}
                ".." => drop(segments.pop()),
                name => segments.push(name),
            }
        }
        check_lengths(segments.iter().copied())?;
        Ok(Self(format!("/{}", segments.join("/"))))
    }

    /// The path as text, with its leading slash.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The directory that holds this path; `/` for `/` itself.
    #[must_use]
    pub fn parent(&self) -> Self {
        match self.0.rfind('/') {
            Some(0) | None => Self::root(),
            Some(index) => Self(self.0[..index].to_owned()),
        }
    }

    /// The last segment; empty for `/`.
    pub fn file_name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or_default()
    }

    /// Returns whether this is `/`.
    pub fn is_root(&self) -> bool {
        self.0 == "/"
    }

    /// The rest of this path below `base` without a leading slash, or `None` if it is not below it. `base` itself
    /// gives the empty string.
    pub fn strip_prefix(&self, base: &Self) -> Option<&str> {
        if base.is_root() {
            return Some(&self.0[1..]);
        }
        let rest = self.0.strip_prefix(base.as_str())?;
        if rest.is_empty() { Some("") } else { rest.strip_prefix('/') }
    }
}

fn check_characters(path: &str) -> Result<()> {
    if path.contains('\0') {
        Err(Error::new(ErrorKind::Invalid, "path must not contain a null byte"))
    } else {
        Ok(())
    }
}

fn check_lengths<'a>(segments: impl Iterator<Item = &'a str>) -> Result<()> {
    let mut total = 0;
    for segment in segments {
        if segment.len() > MAX_NAME_BYTES {
            let message =
                format!("path has a name of {} bytes; the limit is {MAX_NAME_BYTES}", segment.len());
            return Err(Error::new(ErrorKind::Invalid, message));
        }
        total += segment.len() + 1;
    }
    if total > MAX_PATH_BYTES {
        let message = format!("path has {total} bytes; the limit is {MAX_PATH_BYTES}");
        return Err(Error::new(ErrorKind::Invalid, message));
    }
    Ok(())
}

impl fmt::Display for SandboxPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for SandboxPath {
    type Error = Error;
    fn try_from(path: String) -> Result<Self> {
        Self::parse(&path)
    }
}

impl From<SandboxPath> for String {
    fn from(path: SandboxPath) -> Self {
        path.0
    }
}

/// A relative path that stays beneath the workspace: no leading `/`, normalised, `\` read as `/`. The empty string is
/// the workspace itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkspacePath(String);

impl WorkspacePath {
    /// The workspace directory itself.
    pub fn workspace() -> Self {
        Self(String::new())
    }

    /// Parses a path that may also name the workspace itself (`.`), as a working directory or a listing may.
    pub fn parse_directory(path: &str) -> Result<Self> {
        if path.is_empty() {
            return Err(Self::refuse("sandbox path cannot be empty".to_owned()));
        }
        if path.contains('\0') {
            return Err(Self::refuse("sandbox path cannot contain null bytes".to_owned()));
        }
        let slashed = path.replace('\\', "/");
        if slashed.starts_with('/') {
            return Err(Self::refuse(format!("sandbox path must be relative: {path}")));
        }
        let mut segments: Vec<&str> = Vec::new();
        for segment in slashed.split('/') {
            match segment {
                "" | "." => {}
                ".." => {
                    if segments.pop().is_none() {
                        return Err(Self::refuse(format!("sandbox path cannot leave the workspace: {path}")));
                    }
                }
                name => segments.push(name),
            }
        }
        check_lengths(segments.iter().copied())?;
        Ok(Self(segments.join("/")))
    }

    /// Parses a path that must name something inside the workspace.
    pub fn parse(path: &str) -> Result<Self> {
        let parsed = Self::parse_directory(path)?;
        if parsed.0.is_empty() {
            Err(Self::refuse(format!(
                "sandbox path must refer to a file or directory inside the workspace: {path}"
            )))
        } else {
            Ok(parsed)
        }
    }

    fn refuse(message: String) -> Error {
        Error::new(ErrorKind::Invalid, message)
    }

    /// The path as text, relative to the workspace; empty for the workspace itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The same place as an absolute path, held beneath `workspace`.
    pub fn place(&self, workspace: &SandboxPath) -> Result<ConfinedPath> {
        let path = if self.0.is_empty() { workspace.clone() } else { workspace.resolve(&self.0)? };
        Ok(ConfinedPath { path, beneath: Some(workspace.clone()) })
    }
}

impl fmt::Display for WorkspacePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_empty() { "." } else { &self.0 })
    }
}

/// A path as a driver is asked for it: where it is, and the directory that no symlink on the way may lead out of.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfinedPath {
    /// The path.
    pub path: SandboxPath,
    /// `path` is this directory or below it, and stays there once every symlink is followed; a symlink that leads
    /// out is refused with [`ErrorKind::Permission`]. `None`: the whole sandbox.
    pub beneath: Option<SandboxPath>,
}

impl ConfinedPath {
    /// The parent directory, held beneath the same directory.
    #[must_use]
    pub fn parent(&self) -> Self {
        Self { path: self.path.parent(), beneath: self.beneath.clone() }
    }
}

impl From<SandboxPath> for ConfinedPath {
    fn from(path: SandboxPath) -> Self {
        Self { path, beneath: None }
    }
}

impl fmt::Display for ConfinedPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.path.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(cwd: &str, path: &str) -> String {
        SandboxPath::parse(cwd).unwrap().resolve(path).unwrap().to_string()
    }

    #[test]
    fn a_relative_path_is_joined_to_the_working_directory_and_normalised() {
        assert_eq!(resolved("/workspace", "a/b"), "/workspace/a/b");
        assert_eq!(resolved("/workspace", "../x/"), "/x");
        assert_eq!(resolved("/", "a"), "/a");
        assert_eq!(resolved("/workspace", "../../../.."), "/");
    }

    #[test]
    fn two_spellings_of_one_path_give_one_string() {
        assert_eq!(resolved("/workspace", "./a//b/../c"), resolved("/", "/workspace/a/c/"));
    }

    #[test]
    fn a_name_of_255_bytes_is_accepted_and_one_of_256_is_refused() {
        assert!(SandboxPath::parse(&format!("/{}", "n".repeat(255))).is_ok());
        assert!(SandboxPath::parse(&format!("/{}", "n".repeat(256))).is_err());
    }

    #[test]
    fn a_path_of_4095_bytes_is_accepted_and_one_of_4096_is_refused() {
        let path = "/aaaaaaaaaaaaaa".repeat(273);
        assert_eq!(path.len(), 4095);
        assert!(SandboxPath::parse(&path).is_ok());
        assert!(SandboxPath::parse(&format!("{path}b")).is_err());
    }

    #[test]
    fn an_empty_path_and_a_null_byte_are_refused() {
        let cwd = SandboxPath::parse("/workspace").unwrap();
        assert_eq!(cwd.resolve("").unwrap_err().kind(), ErrorKind::Invalid);
        assert_eq!(cwd.resolve("a\0b").unwrap_err().kind(), ErrorKind::Invalid);
    }

    #[test]
    fn a_workspace_path_is_relative_and_cannot_leave_the_workspace() {
        for refused in ["", "/etc/passwd", "..", "../x", "a/../../x", "a\0b", "\\etc"] {
            assert_eq!(
                WorkspacePath::parse_directory(refused).unwrap_err().kind(),
                ErrorKind::Invalid,
                "{refused:?}"
            );
        }
        for (given, parsed) in [("a\\b.txt", "a/b.txt"), ("...", "..."), ("a//b", "a/b"), ("safe/../x", "x")]
        {
            assert_eq!(WorkspacePath::parse(given).unwrap().as_str(), parsed);
        }
    }

    #[test]
    fn the_workspace_itself_is_a_directory_but_not_a_file() {
        for path in [".", "a/..", "./"] {
            assert_eq!(WorkspacePath::parse_directory(path).unwrap().as_str(), "");
            assert!(WorkspacePath::parse(path).is_err());
        }
    }
}
