//! Docker's part of the state folder: the secret by which labels are trusted, and notes about
//! adopted and verified things. It is opened with the first use.
//!
//! ```text
//! docker/secret              32 random bytes, for the owner alone
//! docker/containers/<id>     an adopted container, with the record that is believed
//! docker/volumes/<name>      an adopted volume, with the time at which it was made
//! docker/guests/<volume>     which volume of that name was seen to hold the guest
//! ```

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use eyot::{Error, ErrorKind, Result};
use tokio::sync::OnceCell;

use super::seal::Seal;
use crate::state_secret::{failed, make_folder, secret};

const FOLDER: &str = "docker";

/// Docker's part of a state folder.
#[derive(Debug)]
pub(crate) struct State {
    folder: PathBuf,
    opened: OnceCell<OpenState>,
}

/// Docker's part of a state folder, opened.
#[derive(Debug)]
pub(crate) struct OpenState {
    folder: PathBuf,
    seal: Seal,
}

/// The kinds of notes about things on the Engine. Each note has a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Notes {
    /// Adopted containers, by the Engine's id.
    Containers,
    /// Adopted volumes, by name.
    Volumes,
    /// Volumes that were seen to hold the guest, by name.
    Guests,
}

impl Notes {
    fn folder(self) -> &'static str {
        match self {
            Self::Containers => "containers",
            Self::Volumes => "volumes",
            Self::Guests => "guests",
        }
    }
}

impl State {
    /// Takes the state folder at this path. Touches nothing.
    pub(crate) fn new(state: &Path) -> Self {
        Self { folder: state.join(FOLDER), opened: OnceCell::new() }
    }

    /// Opens the folder, which is made the first time.
    pub(crate) async fn open(&self) -> Result<&OpenState> {
        let open = || async {
            let folder = self.folder.clone();
            let opened = tokio::task::spawn_blocking(move || OpenState::new(folder)).await;
            opened
                .map_err(|error| Error::new(ErrorKind::Internal, "a task ended early").with_source(error))?
        };
        self.opened.get_or_try_init(open).await
    }
}

impl OpenState {
    fn new(folder: PathBuf) -> Result<Self> {
        let refused = |error: io::Error| {
            let error = failed("open the state folder for Docker's sandboxes", error);
            error.with_hint("name a folder of your own: `--state`, EYOT_STATE")
        };
        make_folder(&folder).map_err(refused)?;
        let secret = secret(&folder).map_err(refused)?;
        Ok(Self { folder, seal: Seal::new(secret) })
    }

    /// Returns the seal that verifies labels.
    pub(crate) fn seal(&self) -> &Seal {
        &self.seal
    }

    /// Reads the note of this name. Notes are a few small files, and are read only for things
    /// without a MAC.
    pub(crate) fn noted(&self, notes: Notes, name: &str) -> Option<String> {
        let text = fs::read_to_string(self.folder.join(notes.folder()).join(checked(name)?));
        text.inspect_err(|error| {
            if error.kind() != io::ErrorKind::NotFound {
                tracing::warn!(%error, name, "read a note about the Engine");
            }
        })
        .ok()
    }

    /// Writes a note, in place of an earlier one of the same name.
    pub(crate) fn note(&self, notes: Notes, name: &str, text: &str) -> Result<()> {
        let refused = |error: io::Error| failed("write a note about the Engine", error);
        let name = checked(name).ok_or_else(|| refused(io::ErrorKind::InvalidInput.into()))?;
        let folder = self.folder.join(notes.folder());
        make_folder(&folder).map_err(refused)?;
        let mut file = tempfile::NamedTempFile::new_in(&folder).map_err(refused)?;
        file.write_all(text.as_bytes()).map_err(refused)?;
        file.persist(folder.join(name)).map(drop).map_err(|error| refused(error.error))
    }

    /// Removes the note of this name, if there is one.
    pub(crate) fn forget(&self, notes: Notes, name: &str) {
        let Some(name) = checked(name) else { return };
        match fs::remove_file(self.folder.join(notes.folder()).join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                tracing::warn!(%error, name, "remove a note about the Engine");
            }
            _ => {}
        }
    }

    /// Lists the names of the notes.
    pub(crate) fn names(&self, notes: Notes) -> Vec<String> {
        let entries = fs::read_dir(self.folder.join(notes.folder())).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }
}

/// Accepts only names that the Engine gives to containers and volumes, so that no other text
/// becomes the name of a file.
fn checked(name: &str) -> Option<&str> {
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    let begins_well = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    (begins_well && name.len() <= 255 && name.bytes().all(is_fit)).then_some(name)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

    use super::*;
    use crate::state_secret::SECRET;

    fn opened(state: &Path) -> Result<OpenState> {
        OpenState::new(state.join(FOLDER))
    }

    #[test]
    fn the_secret_is_made_once_for_its_owner_alone_and_all_who_open_get_the_same() {
        let state = tempfile::tempdir().unwrap();
        let ids: Vec<String> = std::thread::scope(|scope| {
            let open = || opened(state.path()).unwrap().seal().state_id().to_owned();
            let threads: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
        let folder = state.path().join(FOLDER);
        let found = fs::metadata(folder.join(SECRET)).unwrap();
        assert_eq!((found.mode() & 0o7777, found.len()), (0o600, 32));
        assert_eq!(fs::read_dir(folder).unwrap().count(), 1);
    }

    #[test]
    fn a_secret_that_others_may_read_or_that_is_damaged_or_a_link_is_refused() {
        let spoilt: [fn(&Path); 4] = [
            |secret| fs::set_permissions(secret, fs::Permissions::from_mode(0o640)).unwrap(),
            |secret| fs::write(secret, "short").unwrap(),
            |secret| fs::write(secret, [0; 33]).unwrap(),
            |secret| {
                let elsewhere = secret.with_file_name("elsewhere");
                fs::rename(secret, &elsewhere).unwrap();
                symlink(elsewhere, secret).unwrap();
            },
        ];
        for spoil in spoilt {
            let state = tempfile::tempdir().unwrap();
            opened(state.path()).unwrap();
            spoil(&state.path().join(FOLDER).join(SECRET));
            assert!(opened(state.path()).is_err());
        }
    }

    #[test]
    fn a_folder_that_others_may_change_is_refused() {
        let state = tempfile::tempdir().unwrap();
        opened(state.path()).unwrap();
        fs::set_permissions(state.path().join(FOLDER), fs::Permissions::from_mode(0o770)).unwrap();
        assert!(opened(state.path()).is_err());
    }

    #[test]
    fn a_note_is_kept_under_the_engines_names_and_under_no_other() {
        let state = tempfile::tempdir().unwrap();
        let opened = opened(state.path()).unwrap();
        opened.note(Notes::Volumes, "eyot-workspace-a.b", "then").unwrap();
        assert_eq!(opened.noted(Notes::Volumes, "eyot-workspace-a.b").as_deref(), Some("then"));
        assert_eq!(opened.names(Notes::Volumes), ["eyot-workspace-a.b"]);
        assert_eq!(opened.noted(Notes::Containers, "eyot-workspace-a.b"), None);
        for name in ["", "..", "../secret", "a/b", ".a", "a\nb"] {
            assert!(opened.note(Notes::Volumes, name, "x").is_err(), "{name}");
            assert_eq!(opened.noted(Notes::Volumes, name), None, "{name}");
        }
        opened.forget(Notes::Volumes, "eyot-workspace-a.b");
        opened.forget(Notes::Volumes, "eyot-workspace-a.b");
        assert_eq!(opened.noted(Notes::Volumes, "eyot-workspace-a.b"), None);
    }
}
