//! The notes of the guests that this state folder has put into sandboxes. Another state folder puts guests of its own there:
//! what a guest is reached by is secret, and in no label.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use eyot::{Error, ErrorKind, Result};
use rustix::fs::{FlockOperation, flock};

use crate::state_secret::{failed, make_folder};
use crate::terminal_guest::GuestLife;

/// The file whose lock whoever changes notes holds.
const LOCK: &str = "lock";

/// The notes of one folder. Ids are the vendor's, in which nothing needs an escape.
#[derive(Debug, Clone)]
pub(super) struct GuestNotes(pub PathBuf);

fn host(what: &'static str) -> impl Fn(io::Error) -> Error {
    move |error| Error::host(what, error)
}

impl GuestNotes {
    fn path(&self, id: &str) -> PathBuf {
        self.0.join(format!("{id}.json"))
    }

    fn lock(&self) -> Result<File> {
        make_folder(&self.0).map_err(|error| failed("make the folder of Daytona's guests", error))?;
        let open =
            OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(self.0.join(LOCK));
        let lock = open.map_err(host("lock the notes of guests"))?;
        flock(&lock, FlockOperation::LockExclusive)
            .map_err(|error| host("lock the notes of guests")(error.into()))?;
        Ok(lock)
    }

    /// Returns the guest of a sandbox.
    pub fn read(&self, id: &str) -> Result<Option<GuestLife>> {
        match fs::read(self.path(id)) {
            Ok(text) => Ok(serde_json::from_slice(&text).ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(host("read the note of a guest")(error)),
        }
    }

    /// Notes the guest that follows another one.
    ///
    /// # Errors
    /// `conflict` if another process has noted one since.
    pub fn change(&self, id: &str, before: Option<&GuestLife>, after: &GuestLife) -> Result<()> {
        let _lock = self.lock()?;
        if self.read(id)?.as_ref() != before {
            return Err(Error::new(ErrorKind::Conflict, "another process has just started a guest in it"));
        }
        let text = serde_json::to_vec(after).map_err(|error| {
            Error::new(ErrorKind::Internal, "write the note of a guest").with_source(error)
        })?;
        let written = || {
            // With mode 0600.
            let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(&self.0)?;
            file.write_all(&text)?;
            file.as_file().sync_all()?;
            file.persist(self.path(id)).map_err(|error| error.error)?;
            File::open(&self.0)?.sync_all()
        };
        written().map_err(host("write the note of a guest"))
    }

    /// Forgets the guest of a sandbox. One that is not noted is fine.
    pub fn forget(&self, id: &str) -> Result<()> {
        match fs::remove_file(self.path(id)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(host("remove the note of a guest")(error))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    #[test]
    fn of_two_that_follow_the_same_guest_one_is_noted_and_only_its_owner_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        let notes = GuestNotes(folder.path().join("guests"));
        let (first, second) = (GuestLife::generate(), GuestLife::generate());
        notes.change("i1", None, &first).unwrap();
        assert_eq!(notes.change("i1", None, &second).unwrap_err().kind(), ErrorKind::Conflict);
        assert_eq!(notes.read("i1").unwrap(), Some(first.clone()));
        assert_eq!(fs::metadata(notes.path("i1")).unwrap().mode() & 0o777, 0o600);
        notes.change("i1", Some(&first), &second).unwrap();
        notes.forget("i1").unwrap();
        notes.forget("i1").unwrap();
        assert_eq!(notes.read("i1").unwrap(), None);
    }
}
