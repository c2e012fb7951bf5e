//! Watching: what happens to files and directories, as it happens.

use serde::{Deserialize, Serialize};

/// Options for watching a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchOptions {
    /// Everything below a directory too, in directories that are made later as well. Without it, only the names in the
    /// directory itself; for a file it means nothing.
    pub recursive: bool,
    /// The most directories that the watch may have, from 1 to [`MAX_WATCHED_DIRECTORIES`]; by
    /// default 10,000. With more of them it fails with `quota`, at its beginning or when they are
    /// made.
    pub max_directories: u32,
}

/// The most directories that one watch may have.
pub const MAX_WATCHED_DIRECTORIES: u32 = 100_000;

impl Default for WatchOptions {
    fn default() -> Self {
        Self { recursive: true, max_directories: 10_000 }
    }
}

/// The kind of thing that happened to a name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(tag = "kind", rename_all = "snake_case")]
#[non_exhaustive]
pub enum WatchEventKind {
    /// It is there now: it was made, linked or moved in. What was in a directory that was moved in, or was made in a new
    /// one before that could be watched, follows as created. Rarely, something is said to be created twice; and what
    /// is made twice in a row under one name may be told once.
    Created,
    /// The content changed, or its permissions, owner or times. A file that is watched by itself is
    /// modified, too, when another one takes its name, as an atomic write does.
    Modified,
    /// It is not there any more: it was removed or moved out. When it is the watched place itself, nothing follows.
    Removed,
    /// It was moved within the place. What had its new name before is gone, what is below it moved along.
    Renamed {
        /// The path that it had before.
        from: String,
        /// That path's bytes, only when they are not UTF-8.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        from_bytes: Option<Vec<u8>>,
    },
    /// More happened than was read, and some of it was lost: look again. What happens from now on is told.
    Overflow,
}

/// Something that happened at or below a watched place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct WatchEvent {
    /// The kind of thing that happened.
    #[serde(flatten)]
    pub kind: WatchEventKind,
    /// To what: an absolute path from [`crate::Sandbox::watch`], one relative to the workspace from
    /// [`crate::Workspace::watch`], and one relative to the watched place (empty for the place itself) from a driver.
    /// Bytes that are not UTF-8 stand as U+FFFD; `path_bytes` then has the real ones.
    pub path: String,
    /// The path's bytes, only when they are not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path_bytes: Option<Vec<u8>>,
    /// It is, or was, a directory; a symbolic link is not followed.
    pub is_directory: bool,
}

impl WatchEvent {
    /// The same with its paths below `directory`, which needs no slash at its end; the place itself is `itself`.
    #[must_use]
    pub(crate) fn below(self, directory: &str, itself: &str) -> Self {
        let Self { kind, path, path_bytes, is_directory } = self;
        let (path, path_bytes) = joined(directory, itself, path, path_bytes);
        let kind = match kind {
            WatchEventKind::Renamed { from, from_bytes } => {
                let (from, from_bytes) = joined(directory, itself, from, from_bytes);
                WatchEventKind::Renamed { from, from_bytes }
            }
            other => other,
        };
        Self { kind, path, path_bytes, is_directory }
    }
}

fn joined(directory: &str, itself: &str, path: String, bytes: Option<Vec<u8>>) -> (String, Option<Vec<u8>>) {
    if path.is_empty() {
        return (itself.to_owned(), None);
    }
    let bytes = bytes.map(|bytes| [directory.as_bytes(), &bytes].concat());
    (format!("{directory}{path}"), bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_one_flat_object() {
        let kind = WatchEventKind::Renamed { from: "a".to_owned(), from_bytes: None };
        let event = WatchEvent { kind, path: "b".to_owned(), path_bytes: None, is_directory: false };
        let event = event.below("/workspace/", "/workspace");
        let json = serde_json::to_value(&event).unwrap();
        let expected = serde_json::json!({
            "kind": "renamed", "from": "/workspace/a", "path": "/workspace/b", "is_directory": false
        });
        assert_eq!(json, expected);
        assert_eq!(serde_json::from_value::<WatchEvent>(json).unwrap(), event);
    }

    #[test]
    fn the_place_itself_has_its_own_name_and_bytes_are_joined_too() {
        let event = |path: &str, path_bytes: Option<Vec<u8>>| WatchEvent {
            kind: WatchEventKind::Created,
            path: path.to_owned(),
            path_bytes,
            is_directory: true,
        };
        assert_eq!(event("", None).below("", ".").path, ".");
        let odd = event("\u{fffd}", Some(vec![0xff])).below("/d/", "/d");
        assert_eq!((odd.path.as_str(), odd.path_bytes), ("/d/\u{fffd}", Some(b"/d/\xff".to_vec())));
    }
}
