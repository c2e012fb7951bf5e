//! Unpacks a backup into a state folder: first beside it, and moved into its place once all of it
//! is there.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use eyot::{Error, ErrorKind};
use eyot_engine::store::Store;
use rustix::fs::{FlockOperation, flock};
use tar::{Archive, EntryType};

use super::header::{EntryMetadata, damaged};
use super::place::RestoreFolder;
use super::{BackupManifest, FORMAT, MANIFEST, MAX_HEADER_BYTES, STORE, TaskProgress};
use crate::errors::Failure;

/// Unpacks a backup into `state`, which must be absent or empty. After a failure it is as it was
/// before.
pub fn unpack(input: impl Read, state: &Path, progress: &TaskProgress) -> Result<BackupManifest, Failure> {
    let aside = StagingFolder::make(state)?;
    let manifest = read(input, &aside.folder, progress)?;
    // It has this version's form, or is brought up to date; what is no store is refused.
    drop(Store::open(aside.folder.join(STORE))?);
    eyot_native::settle_copies(&aside.folder, state, &manifest.state)?;
    aside.become_it(state)?;
    Ok(manifest)
}

/// Reads the archive into a folder.
fn read(input: impl Read, folder: &Path, progress: &TaskProgress) -> Result<BackupManifest, Failure> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::UnexpectedEof => damaged_backup("it ends too early", error),
        io::ErrorKind::AlreadyExists => damaged_backup("it has something twice", error),
        io::ErrorKind::InvalidData | io::ErrorKind::Other => damaged_backup(&error.to_string(), error),
        _ => Failure::host("restore the backup", error),
    };
    let input = zstd::Decoder::new(input).map_err(failed)?;
    let mut place = RestoreFolder::new(folder).map_err(failed)?;
    let mut archive = Archive::new(input);
    let mut records = Vec::new();
    let mut manifest = None;
    for entry in archive.entries().map_err(failed)?.raw(true) {
        let begins = records.is_empty() && manifest.is_none();
        let mut entry = entry.map_err(|error| if begins { no_beginning(error) } else { failed(error) })?;
        if entry.header().entry_type() == EntryType::XHeader {
            records = small(&mut entry).map_err(failed)?;
            continue;
        }
        let about = EntryMetadata::read(entry.header(), &std::mem::take(&mut records)).map_err(failed)?;
        match (&manifest, about.path == MANIFEST) {
            (None, true) => manifest = Some(checked(&small(&mut entry).map_err(failed)?)?),
            (Some(_), false) => {
                progress.entry().map_err(failed)?;
                place.make(about, &mut entry, progress).map_err(failed)?;
            }
            _ => return Err(no_backup()),
        }
    }
    let manifest = manifest.ok_or_else(no_backup)?;
    // What comes behind the end, and the checksum over all of it.
    io::copy(&mut archive.into_inner(), &mut io::sink()).map_err(failed)?;
    place.finish().map_err(failed)?;
    Ok(manifest)
}

fn small(entry: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if entry.take(MAX_HEADER_BYTES + 1).read_to_end(&mut bytes)? as u64 > MAX_HEADER_BYTES {
        Err(damaged("what describes an entry is too long"))
    } else {
        Ok(bytes)
    }
}

fn checked(bytes: &[u8]) -> Result<BackupManifest, Failure> {
    #[derive(serde::Deserialize)]
    struct ArchiveForm {
        format: u32,
        eyot: String,
    }
    let form: ArchiveForm = serde_json::from_slice(bytes).map_err(|_| no_backup())?;
    if form.format != FORMAT {
        let message =
            format!("restore the backup: eyot {} made it, in a form that this one does not know", form.eyot);
        return Err(Error::new(ErrorKind::Conflict, message).with_hint("use that version").into());
    }
    let manifest: BackupManifest = serde_json::from_slice(bytes).map_err(|_| no_backup())?;
    if manifest.as_root != rustix::process::geteuid().is_root() {
        let maker = if manifest.as_root { "root" } else { "an ordinary user" };
        let message = format!("restore the backup: {maker} made it, and its files have owners to match");
        return Err(Error::new(ErrorKind::Permission, message)
            .with_hint("restore it as the same kind of user")
            .into());
    }
    Ok(manifest)
}

/// The failure of a file that is not even compressed as a backup is.
fn no_beginning(error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::Other => no_backup(),
        io::ErrorKind::UnexpectedEof => damaged_backup("it ends too early", error),
        _ => Failure::host("restore the backup", error),
    }
}

fn no_backup() -> Failure {
    Error::new(ErrorKind::Invalid, "restore the backup: the file is no backup")
        .with_hint("`eyot backup FILE` makes one")
        .into()
}

fn damaged_backup(reason: &str, error: io::Error) -> Failure {
    Error::new(ErrorKind::Invalid, format!("restore the backup: it is damaged: {reason}"))
        .with_source(error)
        .into()
}

/// A folder beside the state folder. It is removed again, unless it becomes the state folder.
struct StagingFolder {
    folder: PathBuf,
    /// A lock. A second restore at the same time is refused rather than delayed; the kernel frees
    /// the lock when this process ends.
    _alone: File,
    is_done: bool,
}

impl StagingFolder {
    fn make(state: &Path) -> Result<Self, Failure> {
        let failed = |error| Failure::host(format!("restore into `{}`", state.display()), error);
        refuse_what_is_used(state)?;
        let parent = state.parent().ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
        DirBuilder::new().recursive(true).mode(0o700).create(parent).map_err(failed)?;
        let alone = File::open(parent).map_err(failed)?;
        if flock(&alone, FlockOperation::NonBlockingLockExclusive).is_err() {
            let message = format!("restore into `{}`: somebody restores beside it just now", state.display());
            return Err(Error::new(ErrorKind::Conflict, message).into());
        }
        let mut name = state.file_name().unwrap_or_default().to_owned();
        name.push(".restoring");
        let folder = parent.join(name);
        // Of one that was killed.
        eyot_image::remove_tree(&folder).map_err(failed)?;
        DirBuilder::new().mode(0o700).create(&folder).map_err(failed)?;
        Ok(Self { folder, _alone: alone, is_done: false })
    }

    /// Moves the folder to the state folder's path. An empty folder there is replaced; the kernel
    /// refuses any other.
    fn become_it(mut self, state: &Path) -> Result<(), Failure> {
        let failed = |error| {
            Failure::host(format!("put the state folder `{}` into its place", state.display()), error)
        };
        let open = File::open(&self.folder).map_err(failed)?;
        rustix::fs::syncfs(&open).map_err(|error| failed(error.into()))?;
        fs::rename(&self.folder, state).map_err(failed)?;
        self.is_done = true;
        Ok(())
    }
}

impl Drop for StagingFolder {
    fn drop(&mut self) {
        if !self.is_done
            && let Err(error) = eyot_image::remove_tree(&self.folder)
        {
            tracing::warn!(%error, folder = %self.folder.display(), "what was restored in part stays");
        }
    }
}

fn refuse_what_is_used(state: &Path) -> Result<(), Failure> {
    let entries = match fs::read_dir(state) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Failure::host(format!("look into `{}`", state.display()), error)),
        Ok(mut entries) => entries.next().is_some(),
    };
    if entries {
        let message = format!("restore into `{}`: something is there already", state.display());
        Err(Error::new(ErrorKind::AlreadyExists, message)
            .with_hint("name another state folder (`--state`, EYOT_STATE), or move this one away")
            .into())
    } else {
        Ok(())
    }
}
