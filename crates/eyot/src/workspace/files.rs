//! Files of the workspace: bytes and text, listings with paths relative to the workspace, and what Anvia has no call for
//! (describe, make, remove, move), under the same rules.

use bytes::Bytes;
use futures_util::stream::BoxStream;
use serde::{Deserialize, Serialize};

use super::{Workspace, text};
use crate::error::{Error, ErrorKind, Result};
use crate::files::{CreateDirOptions, DirEntry, FileStat, FileType, RemoveOptions, WriteOptions};
use crate::path::{ConfinedPath, WorkspacePath};
use crate::sandbox::Content;
use crate::watch::{WatchEvent, WatchOptions};

/// One file, directory or link in a listing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[doc(alias = "SandboxFileEntry")]
pub struct WorkspaceEntry {
    /// The path relative to the workspace. Bytes that are not UTF-8 stand as U+FFFD.
    pub path: String,
    /// The type; a symbolic link is not followed.
    #[serde(rename = "type")]
    pub file_type: FileType,
    /// Size in bytes, where it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
}

impl Workspace {
    /// Reads a file. `too_large` beyond the spec's `limits.max_file_bytes`.
    pub async fn read_file(&self, path: &str) -> Result<Bytes> {
        let (path, place) = self.place("read_file", path)?;
        self.sandbox.read_at(&place, path.as_str()).await
    }

    /// Reads a file as text: invalid UTF-8 becomes U+FFFD, a byte order mark is dropped.
    pub async fn read_text_file(&self, path: &str) -> Result<String> {
        Ok(text::decode(&self.read_file(path).await?))
    }

    /// Writes a file, replacing it as a whole and making parents. `too_large` beyond the spec's `limits.max_file_bytes`,
    /// before anything is touched.
    pub async fn write_file(&self, path: &str, data: impl Into<Bytes> + Send) -> Result<()> {
        let (path, place) = self.place("write_file", path)?;
        let content = Content::Bytes(data.into());
        self.sandbox.write_at(&place, path.as_str(), content, WriteOptions::default()).await?;
        Ok(())
    }

    /// Writes text as UTF-8.
    pub async fn write_text_file(&self, path: &str, content: &str) -> Result<()> {
        self.write_file(path, content.to_owned()).await
    }

    /// Lists a directory (`.` is the workspace), sorted by name, dot files included, not what is below its directories.
    /// A path that is a file has no entries; one that is missing is `not_found`.
    pub async fn list_files(&self, path: &str) -> Result<Vec<WorkspaceEntry>> {
        let (path, place) = self.directory("list_files", path)?;
        let listed = match self.sandbox.driver().list(&place).await {
            Err(error) if error.kind() == ErrorKind::NotDirectory && self.is_file(&place).await => Vec::new(),
            listed => DirEntry::sorted(listed.map_err(self.sandbox.failed("list directory", &path))?),
        };
        let mut entries = Vec::with_capacity(listed.len());
        for entry in listed {
            entries.push(self.entry(&path, &place, entry).await?);
        }
        Ok(entries)
    }

    /// Says what is known of a file; see [`FileStat`] about symbolic links.
    pub async fn stat(&self, path: &str) -> Result<FileStat> {
        let (path, place) = self.directory("stat", path)?;
        self.sandbox.driver().stat(&place).await.map_err(self.sandbox.failed("stat", path))
    }

    /// Returns whether something is there.
    pub async fn exists(&self, path: &str) -> Result<bool> {
        let (path, place) = self.directory("exists", path)?;
        self.sandbox.driver().exists(&place).await.map_err(self.sandbox.failed("look for", path))
    }

    /// Makes a directory.
    pub async fn create_dir(&self, path: &str, options: CreateDirOptions) -> Result<()> {
        let (path, place) = self.place("create_dir", path)?;
        let made = self.sandbox.driver().create_dir(&place, options).await;
        made.map_err(self.sandbox.failed("create directory", path))
    }

    /// Removes a file, a symbolic link (not its target) or a directory.
    pub async fn remove(&self, path: &str, options: RemoveOptions) -> Result<()> {
        let (path, place) = self.place("remove", path)?;
        self.sandbox.driver().remove(&place, options).await.map_err(self.sandbox.failed("remove", path))
    }

    /// Moves a file or a directory within the workspace.
    pub async fn rename(&self, from: &str, to: &str) -> Result<()> {
        let (from, source) = self.place("rename", from)?;
        let (to, target) = self.place("rename", to)?;
        let renamed = self.sandbox.driver().rename(&source, &target).await;
        renamed.map_err(self.sandbox.failed("rename", format_args!("{from}` to `{to}")))
    }

    /// Tells what happens to a file, or to the names in a directory (`.` is the workspace), with paths relative to the
    /// workspace; see [`crate::Sandbox::watch`].
    pub async fn watch(
        &self,
        path: &str,
        options: WatchOptions,
    ) -> Result<BoxStream<'static, Result<WatchEvent>>> {
        let (path, place) = self.directory("watch", path)?;
        let itself = path.to_string();
        self.sandbox.watch_at(&place, &itself, itself.clone(), options).await
    }

    async fn is_file(&self, place: &ConfinedPath) -> bool {
        self.sandbox.driver().stat(place).await.is_ok_and(|stat| !stat.is_directory)
    }

    async fn entry(
        &self,
        directory: &WorkspacePath,
        place: &ConfinedPath,
        entry: DirEntry,
    ) -> Result<WorkspaceEntry> {
        let DirEntry { name, file_type, size, .. } = entry;
        let path = match directory.as_str() {
            "" => name.clone(),
            parent => format!("{parent}/{name}"),
        };
        if let Some(file_type) = file_type {
            return Ok(WorkspaceEntry { path, file_type, size });
        }
        let child = ConfinedPath { path: place.path.resolve(&name)?, beneath: place.beneath.clone() };
        let stat = self.sandbox.driver().stat(&child).await;
        let (file_type, known) = described(stat).map_err(self.sandbox.failed("stat", &path))?;
        Ok(WorkspaceEntry { path, file_type, size: size.or(known) })
    }
}

/// Turns a description into the type and size of a name that a listing said nothing of. A name that
/// can't be described is a link that leads nowhere or out.
fn described(stat: Result<FileStat>) -> Result<(FileType, Option<u64>), Error> {
    let stat = match stat {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Permission) => {
            return Ok((FileType::Symlink, None));
        }
        stat => stat?,
    };
    Ok(match stat {
        FileStat { is_symbolic_link: Some(true), .. } => (FileType::Symlink, None),
        FileStat { is_directory: true, size, .. } => (FileType::Directory, size),
        FileStat { is_file: true, size, .. } => (FileType::File, size),
        FileStat { size, .. } => (FileType::Other, size),
    })
}
