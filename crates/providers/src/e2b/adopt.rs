//! Sandboxes that somebody else has made, and that an operator handed to this state folder. Nothing
//! of theirs is changed, so a note in the state folder makes them ours. They are never ended: removing
//! one forgets the note.

use std::path::PathBuf;
use std::{fs, io};

use eyot::internal::now_ms;
use eyot::{Error, ErrorKind, Result, SandboxId, SandboxOperationUnsupported, SandboxSpec};

use super::record::SandboxNote;

/// Refuses to change the life of a sandbox that was handed in. `who` says who changes it instead.
pub(crate) fn refuse_adopted(
    is_adopted: bool,
    operation: &str,
    provider: &str,
    who: &'static str,
) -> Result<()> {
    if !is_adopted {
        return Ok(());
    }
    let error = Error::from(SandboxOperationUnsupported::new(operation, provider, &["adopted"]));
    Err(error.with_hint(who))
}

/// The notes of one state folder.
#[derive(Debug, Clone)]
pub(crate) struct AdoptionNotes {
    pub folder: PathBuf,
    /// The directory in which the commands of an adopted sandbox start: where the vendor's own do by default.
    pub workdir: &'static str,
}

impl AdoptionNotes {
    fn path(&self, id: &str) -> Result<PathBuf> {
        if is_vendor_id(id) {
            Ok(self.folder.join(format!("{id}.json")))
        } else {
            Err(Error::invalid("id", "must be the vendor's id of a sandbox: letters, digits and `-`"))
        }
    }

    /// Notes that a sandbox was adopted, and returns the record that it has here.
    pub fn note(&self, id: &str) -> Result<SandboxNote> {
        let own = SandboxId::generate();
        let spec = SandboxSpec {
            id: Some(own.clone()),
            name: Some(own.default_name()),
            workdir: Some(eyot::SandboxPath::parse(self.workdir)?),
            ..SandboxSpec::default()
        };
        let record = SandboxNote::new(&spec.validate()?, now_ms());
        let text = serde_json::to_string(&record)
            .map_err(|error| Error::new(ErrorKind::Internal, "write a note").with_source(error))?;
        fs::create_dir_all(&self.folder).map_err(|error| Error::host("make the folder of notes", error))?;
        let path = self.path(id)?;
        let new = path.with_extension("new");
        fs::write(&new, text).map_err(|error| Error::host("write a note", error))?;
        fs::rename(&new, path).map_err(|error| Error::host("write a note", error))?;
        Ok(record)
    }

    /// Returns the record of an adopted sandbox.
    pub fn read(&self, id: &str) -> Result<Option<SandboxNote>> {
        match fs::read(self.path(id)?) {
            Ok(text) => Ok(serde_json::from_slice(&text).ok()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Error::host("read a note", error)),
        }
    }

    /// Lists the ids of adopted sandboxes.
    pub fn all(&self) -> Result<Vec<String>> {
        let entries = match fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(Error::host("list the notes", error)),
        };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        let ids = names.filter_map(|name| name.strip_suffix(".json").map(str::to_owned));
        // Other files may lie there.
        Ok(ids.filter(|id| is_vendor_id(id)).collect())
    }

    /// Forgets a sandbox. One that is not noted is fine.
    pub fn forget(&self, id: &str) -> Result<()> {
        match fs::remove_file(self.path(id)?) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::host("remove a note", error)),
            _ => Ok(()),
        }
    }
}

fn is_vendor_id(id: &str) -> bool {
    !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_there_until_it_is_forgotten_and_no_id_leads_out_of_the_folder() {
        let folder = tempfile::tempdir().unwrap();
        let notes = AdoptionNotes { folder: folder.path().join("e2b"), workdir: "/home/user" };
        assert!(notes.all().unwrap().is_empty());
        let record = notes.note("i1").unwrap();
        assert_eq!((notes.read("i1").unwrap(), notes.all().unwrap()), (Some(record), vec!["i1".to_owned()]));
        fs::write(notes.folder.join("not one.json"), "{}").unwrap();
        assert_eq!(notes.all().unwrap(), ["i1"]);
        notes.forget("i1").unwrap();
        notes.forget("i1").unwrap();
        assert_eq!(notes.read("i1").unwrap(), None);
        assert_eq!(notes.note("../i1").unwrap_err().kind(), ErrorKind::Invalid);
    }
}
