//! Foresees that a sandbox can't write to a folder of the host that is mounted for writing, so that a
//! person hears of it before a command fails. The kernel decides.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{Access, AtFlags, CWD};
use rustix::io::Errno;

use crate::disk_ids::OWNER;

/// The permission bits that a write needs: of the owner, of the group, of everybody.
const WRITE: [u32; 3] = [0o200, 0o020, 0o002];

/// Returns the reason why a sandbox that this user makes can't write to `source`, as a sentence that
/// says what to do. Returns `None` if it can, or if that can't be foreseen.
pub fn why_not_writable(source: &Path) -> Option<String> {
    let shown = source.display();
    let access = rustix::fs::accessat(CWD, source, Access::WRITE_OK, AtFlags::EACCESS);
    if access == Err(Errno::ROFS) {
        return Some(format!("`{shown}` is on a file system of this host that is mounted read-only"));
    }
    let found = fs::metadata(source).ok()?;
    let owner = format!("{}:{} (mode {:o})", found.uid(), found.gid(), found.mode() & 0o7777);
    if !rustix::process::geteuid().is_root() {
        return (access == Err(Errno::ACCESS)).then(|| {
            format!(
                "`{shown}` belongs to {owner}: you can't write to it, and a sandbox can do what you can; \
                 its owner can allow it with chmod or chown"
            )
        });
    }
    if has_access_list(source) || may_write(found.uid(), found.gid(), found.mode()) {
        return None;
    }
    Some(format!(
        "what a sandbox of root's writes to a mounted folder belongs to {OWNER}:{OWNER}, and `{shown}` belongs to \
         {owner}; to give it the folder with all in it: chown -R {OWNER}:{OWNER} '{shown}'"
    ))
}

/// Tells whether [`OWNER`] may write to a file or folder of this owner, group and mode.
fn may_write(uid: u32, gid: u32, mode: u32) -> bool {
    let class = match (uid == OWNER, gid == OWNER) {
        (true, _) => 0,
        (_, true) => 1,
        _ => 2,
    };
    mode & WRITE[class] != 0
}

/// Tells whether an access control list may say who writes. What it says is not looked at.
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
            assert_eq!(may_write(uid, gid, mode), expected, "{uid}:{gid} {mode:o}");
        }
    }
}
