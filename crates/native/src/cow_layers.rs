//! The move of a sandbox's copies on write into a snapshot, and the facts about the host's files that go with them.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;

use crate::cow_mount::{COW, COW_BASE};
use crate::state::make_child;

/// Makes the copies of a sandbox's next life in the folder of its files: empty ones, with the owner of those that were moved to
/// `moved`, and the permission bits of the snapshot below them. May have been begun before.
pub(crate) fn begin_again(files: &Path, moved: &Path, snapshot: &Path) -> io::Result<()> {
    let copies = files.join(COW);
    make_child(&copies, 0o711)?;
    fs::set_permissions(&copies, fs::Permissions::from_mode(0o711))?;
    for entry in fs::read_dir(moved)? {
        let entry = entry?;
        let (copy, key) = (copies.join(entry.file_name()), entry.file_name());
        let owner = entry.metadata()?;
        make_child(&copy, 0o700)?;
        chown(&copy, Some(owner.uid()), Some(owner.gid()))?;
        let mode = fs::symlink_metadata(snapshot.join(COW).join(&key))?.mode() & 0o7777;
        fs::set_permissions(&copy, fs::Permissions::from_mode(mode))?;
    }
    Ok(())
}

/// Gives a sandbox the facts about the host's files that a snapshot has.
pub(crate) fn share_bases(directory: &Path, snapshot: &Path) -> io::Result<()> {
    share_all(&snapshot.join(COW_BASE), &directory.join(COW_BASE))
}

/// Gives a snapshot the facts about the host's files that its sandbox has.
pub(crate) fn keep_base(directory: &Path, snapshot: &Path) -> io::Result<()> {
    share_all(&directory.join(COW_BASE), &snapshot.join(COW_BASE))
}

fn share_all(from: &Path, to: &Path) -> io::Result<()> {
    if !from.exists() {
        return Ok(());
    }
    make_child(to, 0o700)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        share(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

/// Gives a file that never changes another name, in place of what has that name.
pub(crate) fn share(file: &Path, name: &Path) -> io::Result<()> {
    let made = name.with_extension("new");
    match fs::remove_file(&made) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    if fs::hard_link(file, &made).is_err() {
        fs::copy(file, &made)?;
    }
    // Where both are one file already, the rename leaves both names.
    fs::rename(&made, name)?;
    match fs::remove_file(&made) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
