//! Docker's part of the state folder: the secret by which labels are trusted, and notes about
//! adopted and verified things. It is opened with the first use.
//!
//! ```text
//! docker/secret              32 random bytes, for the owner alone
//! docker/containers/<id>     an adopted container, with the record that is believed
//! docker/volumes/<name>      an adopted volume, with the time at which it was made
//! docker/guests/<volume>     which volume of that name was seen to hold the guest
//! docker/snapshots/<id>      a snapshot, with the variables of its spec, which no label has
//! docker/destroyed/<id>      a sandbox that was destroyed: whatever is left of it goes, too
//! docker/snapshots.lock      locked while snapshots are changed
//! ```

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use eyot::{Error, ErrorKind, Result};
use eyot_image::FileLock;
use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use tokio::sync::OnceCell;

use super::seal::Seal;
use crate::state_secret::{failed, make_folder, secret};

const FOLDER: &str = "docker";
const SNAPSHOTS_LOCK: &str = "snapshots.lock";

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
    /// Snapshots, by id.
    Snapshots,
    /// Sandboxes that were destroyed since snapshots were changed last, by id.
    Destroyed,
}

impl Notes {
    fn folder(self) -> &'static str {
        match self {
            Self::Containers => "containers",
            Self::Volumes => "volumes",
            Self::Guests => "guests",
            Self::Snapshots => "snapshots",
            Self::Destroyed => "destroyed",
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
        // What a note promises must be found after the machine has failed, too.
        file.as_file().sync_all().map_err(refused)?;
        file.persist(folder.join(name)).map_err(|error| refused(error.error))?;
        fs::File::open(&folder).and_then(|folder| folder.sync_all()).map_err(refused)
    }

    /// Writes an empty note, which [`Self::forget_unless_held`] leaves as long as somebody has what this returns.
    pub(crate) fn hold(&self, notes: Notes, name: &str) -> Result<HeldNote> {
        let refused = |error: io::Error| failed("write a note about the Engine", error);
        let name = checked(name).ok_or_else(|| refused(io::ErrorKind::InvalidInput.into()))?;
        let folder = self.folder.join(notes.folder());
        make_folder(&folder).map_err(refused)?;
        let path = folder.join(name);
        loop {
            // Never in place of one that somebody else holds.
            let nofollow = OFlags::NOFOLLOW.bits().cast_signed();
            let mut options = fs::OpenOptions::new();
            let options = options.write(true).create(true).truncate(false).mode(0o600);
            let file = options.custom_flags(nofollow).open(&path).map_err(refused)?;
            flock(&file, FlockOperation::LockShared).map_err(|error| refused(error.into()))?;
            // It may have been forgotten before it was locked.
            if is_at(&file, &path).map_err(refused)? {
                file.sync_all().and_then(|()| fs::File::open(&folder)?.sync_all()).map_err(refused)?;
                return Ok(HeldNote { _file: file });
            }
        }
    }

    /// Removes the note of this name, unless somebody holds it.
    pub(crate) fn forget_unless_held(&self, notes: Notes, name: &str) {
        let Some(name) = checked(name) else { return };
        let Ok(file) = fs::File::open(self.folder.join(notes.folder()).join(name)) else { return };
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok() {
            self.forget(notes, name);
        }
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

    /// Notes that there may be containers and images beside those of sandboxes, which are to be looked for from now on.
    pub(crate) fn note_snapshots(&self) -> Result<()> {
        if self.had_snapshots() { Ok(()) } else { lock(&self.snapshots_lock(), false).map(drop) }
    }

    /// Tells whether a snapshot was ever taken, or files were ever compared.
    pub(crate) fn had_snapshots(&self) -> bool {
        self.folder.join(SNAPSHOTS_LOCK).exists()
    }

    /// Returns the file that is locked while snapshots are changed.
    pub(crate) fn snapshots_lock(&self) -> PathBuf {
        self.folder.join(SNAPSHOTS_LOCK)
    }

    /// Lists the names of the notes.
    pub(crate) fn names(&self, notes: Notes) -> Vec<String> {
        let entries = fs::read_dir(self.folder.join(notes.folder())).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }
}

/// A note that is kept as long as this is.
pub(crate) struct HeldNote {
    _file: fs::File,
}

/// Tells whether an open file is the one at a path.
fn is_at(file: &fs::File, path: &Path) -> io::Result<bool> {
    let open = file.metadata()?;
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        there => there.map(|there| (there.dev(), there.ino()) == (open.dev(), open.ino())),
    }
}

/// Locks a file of the state folder, which is made the first time. Blocks while another process has the lock, unless `wait` is
/// not set: then `None`.
pub(crate) fn lock(file: &Path, wait: bool) -> Result<Option<FileLock>> {
    let refused = |error: io::Error| failed("lock the snapshots", error);
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    let file = options.open(file).map_err(refused)?;
    let how = if wait { FlockOperation::LockExclusive } else { FlockOperation::NonBlockingLockExclusive };
    loop {
        match flock(&file, how) {
            Err(Errno::INTR) => {}
            Err(Errno::WOULDBLOCK) => return Ok(None),
            locked => {
                return locked.map(|()| Some(FileLock::new(file))).map_err(|error| refused(error.into()));
            }
        }
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
    use std::os::unix::fs::{PermissionsExt, symlink};

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
    fn a_note_that_somebody_holds_is_not_forgotten() {
        let state = tempfile::tempdir().unwrap();
        let opened = opened(state.path()).unwrap();
        let is_there = || opened.noted(Notes::Destroyed, "a").is_some();
        let (one, other) =
            (opened.hold(Notes::Destroyed, "a").unwrap(), opened.hold(Notes::Destroyed, "a").unwrap());
        drop(one);
        opened.forget_unless_held(Notes::Destroyed, "a");
        assert!(is_there());
        drop(other);
        opened.forget_unless_held(Notes::Destroyed, "a");
        assert!(!is_there());
        assert!(opened.hold(Notes::Destroyed, "../a").is_err());
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
