//! Foresees that a sandbox can't read what is mounted from the host, or can't write to what is mounted
//! for writing, so that a person hears of it before a command fails. The kernel decides.

use std::fs::{self, Metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{Access, AtFlags, CWD};
use rustix::io::Errno;

use crate::disk_ids::OWNER;

/// A permission bit, in the place where everybody's are.
const READ: u32 = 0o4;
const WRITE: u32 = 0o2;
const SEARCH: u32 = 0o1;

/// Returns the reason why a sandbox that this user makes can't read `source`, as a sentence that says
/// what to do. Returns `None` if it can, or if that can't be foreseen.
pub fn why_not_readable(source: &Path) -> Option<String> {
    let shown = source.display();
    let found = fs::metadata(source).ok()?;
    let owner = owner(&found);
    if !rustix::process::geteuid().is_root() {
        let wanted = if found.is_dir() { Access::READ_OK | Access::EXEC_OK } else { Access::READ_OK };
        let access = rustix::fs::accessat(CWD, source, wanted, AtFlags::EACCESS);
        return (access == Err(Errno::ACCESS)).then(|| {
            format!("`{shown}` belongs to {owner}: you can't read it, and a sandbox can do what you can")
        });
    }
    let wanted = if found.is_dir() { READ | SEARCH } else { READ };
    if has_access_list(source) || has(wanted, &found) {
        return None;
    }
    // Who keeps something from everybody has a reason: keys, for example.
    let is_private = found.mode() & 0o077 == 0;
    let way = if is_private {
        "or copy in what it may see: eyot cp".to_owned()
    } else {
        format!("or open this one to everybody: chmod o+rX '{shown}'")
    };
    Some(format!(
        "`{shown}` belongs to {owner}, and a sandbox of root's is user {OWNER} there; mount a folder that \
         everybody can read, {way}"
    ))
}

/// Returns the same of a copy on write. The user of a sandbox of root's is the owner of the folder there.
pub fn why_not_copied(source: &Path) -> Option<String> {
    if rustix::process::geteuid().is_root() { None } else { why_not_readable(source) }
}

/// Returns the reason why a sandbox that this user makes can't write to `source`, as a sentence that
/// says what to do. Returns `None` if it can, or if that can't be foreseen.
pub fn why_not_writable(source: &Path) -> Option<String> {
    let shown = source.display();
    let access = rustix::fs::accessat(CWD, source, Access::WRITE_OK, AtFlags::EACCESS);
    if access == Err(Errno::ROFS) {
        return Some(format!("`{shown}` is on a file system of this host that is mounted read-only"));
    }
    let found = fs::metadata(source).ok()?;
    let owner = owner(&found);
    if !rustix::process::geteuid().is_root() {
        return (access == Err(Errno::ACCESS)).then(|| {
            format!(
                "`{shown}` belongs to {owner}: you can't write to it, and a sandbox can do what you can; \
                 its owner can allow it with chmod or chown"
            )
        });
    }
    if has_access_list(source) || has(WRITE, &found) {
        return None;
    }
    Some(format!(
        "what a sandbox of root's writes to a mounted folder belongs to {OWNER}:{OWNER}, and `{shown}` belongs to \
         {owner}; to give it the folder with all in it: chown -R {OWNER}:{OWNER} '{shown}'"
    ))
}

fn owner(found: &Metadata) -> String {
    format!("{}:{} (mode {:o})", found.uid(), found.gid(), found.mode() & 0o7777)
}

/// Tells whether [`OWNER`] has these permissions.
fn has(wanted: u32, found: &Metadata) -> bool {
    has_permissions(wanted, found.uid(), found.gid(), found.mode())
}

/// Tells whether [`OWNER`] has these permissions for a file or folder of this owner, group and mode.
fn has_permissions(wanted: u32, uid: u32, gid: u32, mode: u32) -> bool {
    let shift = match (uid == OWNER, gid == OWNER) {
        (true, _) => 6,
        (_, true) => 3,
        _ => 0,
    };
    (mode >> shift) & wanted == wanted
}

/// Tells whether an access control list may say who reads and writes. What it says is not looked at.
fn has_access_list(source: &Path) -> bool {
    let found = rustix::fs::getxattr(source, "system.posix_acl_access", &mut [0_u8; 1][..]);
    !matches!(found, Err(Errno::NODATA | Errno::OPNOTSUPP))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_class_of_permissions_decides_as_in_the_kernel() {
        for (uid, gid, mode, expected) in [
            (OWNER, 0, 0o700, true),
            (OWNER, OWNER, 0o577, false),
            (0, OWNER, 0o770, true),
            (0, OWNER, 0o757, false),
            (0, 0, 0o755, false),
            (0, 0, 0o757, true),
        ] {
            assert_eq!(has_permissions(WRITE, uid, gid, mode), expected, "{uid}:{gid} {mode:o}");
        }
    }
}
