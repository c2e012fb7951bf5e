//! What an ordinary user could read below `/usr` and `/opt` though not everybody can: it is covered inside.
//!
//! Inside, the caller's own uid and groups still count (host ids can't be shed without privileges), so a file that is
//! the caller's, or a group's of theirs, and not world-readable, would be readable inside too.

use std::collections::BTreeSet;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

const ROOTS: [&str; 2] = ["/usr", "/opt"];
/// How long the answer of a walk is believed while the upper directories look the same.
const BELIEVED: Duration = Duration::from_secs(600);

/// The paths to cover. The walk (0.1–0.5 s) is done once per ten minutes and whenever one of the upper directories
/// has changed; its answer is kept in `layers`.
pub(super) fn unreadable_by_others(layers: &Path) -> io::Result<Vec<String>> {
    let kept = layers.join(format!("masks-{:016x}", fingerprint()));
    let age =
        fs::metadata(&kept).and_then(|found| found.modified()).ok().and_then(|time| time.elapsed().ok());
    if age.is_some_and(|age| age < BELIEVED) {
        return Ok(fs::read_to_string(&kept)?.split_terminator('\0').map(str::to_owned).collect());
    }
    let found = walk(&Caller::current()?);
    let aside = layers.join(format!("masks.{}", std::process::id()));
    fs::write(&aside, found.iter().flat_map(|path| [path.as_str(), "\0"]).collect::<String>())?;
    fs::rename(&aside, &kept)?;
    Ok(found)
}

/// Whose rights count inside.
struct Caller {
    uid: u32,
    groups: BTreeSet<u32>,
}

impl Caller {
    fn current() -> io::Result<Self> {
        let mut groups: BTreeSet<u32> =
            rustix::process::getgroups()?.iter().map(|gid| gid.as_raw()).collect();
        groups.insert(rustix::process::getegid().as_raw());
        Ok(Self { uid: rustix::process::geteuid().as_raw(), groups })
    }

    /// Whether this is readable to the caller though not to everybody.
    fn alone_reads(&self, found: &fs::Metadata) -> bool {
        let needed = if found.is_dir() { 0o005 } else { 0o004 };
        let by_others = found.mode() & needed == needed;
        !by_others && !found.is_symlink() && (found.uid() == self.uid || self.groups.contains(&found.gid()))
    }
}

fn walk(caller: &Caller) -> Vec<String> {
    let mut covered = Vec::new();
    let mut pending: Vec<PathBuf> = ROOTS.iter().map(PathBuf::from).collect();
    while let Some(directory) = pending.pop() {
        let Ok(entries) = fs::read_dir(&directory) else {
            continue;
        };
        for entry in entries.flatten() {
            let Ok(found) = entry.metadata() else { continue };
            if caller.alone_reads(&found) {
                covered.extend(entry.path().into_os_string().into_string().ok());
            } else if found.is_dir() {
                pending.push(entry.path());
            }
        }
    }
    covered.sort();
    covered
}

fn fingerprint() -> u64 {
    let mut hasher = DefaultHasher::new();
    rustix::process::geteuid().as_raw().hash(&mut hasher);
    for root in ROOTS {
        let children = fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.path());
        let mut paths: Vec<PathBuf> = children.chain([PathBuf::from(root)]).collect();
        paths.sort();
        for path in paths {
            if let Ok(found) = fs::symlink_metadata(&path) {
                (path, found.mtime(), found.mtime_nsec()).hash(&mut hasher);
            }
        }
    }
    hasher.finish()
}
