//! Checks whether sandboxes can work in the state folder.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{Access, StatVfsMountFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::cause::{ANY_STEP, Cause, Severity};
use super::facts::Facts;
use super::failure::MAKE_THE_IMAGE;
use super::finding::Reason;
use super::kernel;
use super::profile::shell_word;
use super::way;
use crate::state::default_state_dir;

/// The facts about the state folder or, if it does not exist yet, about the nearest existing folder
/// above it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StateFacts {
    /// The path of the state folder.
    path: String,
    /// The path is UTF-8.
    utf8: bool,
    /// The path exists and is a directory. If not, the other fields describe the nearest existing
    /// folder above.
    exists: bool,
    /// The owner's uid; `None` if it can't be read.
    owner: Option<u32>,
    /// The user's own state folder, if it can be used and is another one.
    own: Option<String>,
    /// The permission bits.
    mode: u32,
    /// The part of the path that another user controls, as the end of a sentence.
    controlled_by_others: Option<String>,
    /// The name of a file of something else. It is looked for only where there is no state yet.
    foreign: Option<String>,
    /// The file system's name, such as `ext4`, or its magic number in hexadecimal if the name is
    /// not known.
    file_system: String,
    /// This process may make files in it.
    writable: bool,
    /// This process may pass through it.
    passable: bool,
    /// Programs can't be run from it.
    noexec: bool,
    /// The space that is free for this user's files, in bytes.
    free_bytes: u64,
    /// The number of free inodes; `None` if the file system does not count them.
    free_files: Option<u64>,
}

/// Magic numbers of `statfs`, from `linux/magic.h`.
const FILE_SYSTEMS: [(i64, &str); 23] = [
    (0xEF53, "ext4"),
    (0x5846_5342, "xfs"),
    (0x9123_683E, "btrfs"),
    (0x0102_1994, "tmpfs"),
    (0x2FC1_2FC1, "zfs"),
    (0xF2F5_2010, "f2fs"),
    (0xCA45_1A4E, "bcachefs"),
    (0x6969, "NFS"),
    (0x794C_7630, "overlayfs"),
    (0x6573_5546, "FUSE"),
    (0xFE53_4D42, "SMB"),
    (0xFF53_4D42, "CIFS"),
    (0x0102_1997, "9p"),
    (0x4D44, "FAT"),
    (0x2011_BAB0, "exFAT"),
    (0x5346_544E, "NTFS"),
    (0x7366_746E, "NTFS"),
    (0xF15F, "eCryptfs"),
    (0x00C3_6400, "Ceph"),
    (0x8584_58F6, "ramfs"),
    (0x9FA0, "proc"),
    (0x6265_6572, "sysfs"),
    (0x6367_7270, "cgroup2"),
];

/// File systems where the upper directory of an overlay, or the sockets, owners and attributes
/// beside it, do not work.
const UNFIT: [&str; 13] = [
    "NFS",
    "overlayfs",
    "SMB",
    "CIFS",
    "9p",
    "FAT",
    "exFAT",
    "NTFS",
    "eCryptfs",
    "ramfs",
    "proc",
    "sysfs",
    "cgroup2",
];

impl StateFacts {
    /// Examines a folder, and the user's own if another one was named.
    pub(super) fn gather(path: &Path, uid: u32) -> Self {
        let own = default_state_dir();
        let is_fit = path != own && Self::of(&own).is_fit(uid);
        Self { own: own.to_str().filter(|_| is_fit).map(str::to_owned), ..Self::of(path) }
    }

    /// Examines a folder.
    pub(super) fn of(path: &Path) -> Self {
        let exists = path.is_dir();
        let there = path.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("/"));
        let found = fs::metadata(there).ok();
        let space = rustix::fs::statvfs(there).ok();
        Self {
            path: path.to_string_lossy().into_owned(),
            utf8: path.to_str().is_some(),
            exists,
            owner: found.as_ref().map(MetadataExt::uid),
            own: None,
            mode: found.as_ref().map_or(0, |found| found.mode() & 0o7777),
            controlled_by_others: way::controlled_by_others(path, rustix::process::geteuid().as_raw()),
            foreign: foreign_entry(path),
            file_system: file_system(there),
            writable: rustix::fs::access(there, Access::WRITE_OK | Access::EXEC_OK).is_ok(),
            passable: rustix::fs::access(there, Access::EXEC_OK).is_ok(),
            noexec: space.as_ref().is_some_and(|space| space.f_flag.contains(StatVfsMountFlags::NOEXEC)),
            free_bytes: space
                .as_ref()
                .map_or(u64::MAX, |space| space.f_bavail.saturating_mul(space.f_frsize)),
            free_files: space.filter(|space| space.f_files > 0).map(|space| space.f_favail),
        }
    }

    /// Tells whether the folder can be used, as far as that must be known before the first use.
    pub(super) fn is_fit(&self, uid: u32) -> bool {
        self.utf8 && !self.is_on_unfit_file_system() && self.is_for_ones_state(uid)
    }

    /// Tells whether no other user controls the folder or could, and nothing else uses it.
    pub(super) fn is_for_ones_state(&self, uid: u32) -> bool {
        self.controlled_by_others.is_none()
            && !self.is_somebody_elses(uid)
            && !self.is_open_to_all()
            && self.foreign.is_none()
    }

    fn is_on_unfit_file_system(&self) -> bool {
        UNFIT.contains(&self.file_system.as_str())
    }

    fn is_somebody_elses(&self, uid: u32) -> bool {
        self.exists && self.owner.is_some_and(|owner| owner != uid)
    }

    /// Tells whether others may write to the folder. They could replace a sandbox's directory.
    fn is_open_to_all(&self) -> bool {
        self.exists && self.mode & 0o022 != 0
    }
}

/// The entries that only a state folder has.
const MARKS: [&str; 2] = ["sandboxes", "eyot.db"];

/// The entries that a state folder may have before the first sandbox: Eyot's own files, and those of a new disk.
const OWN: [&str; 24] = [
    "agents",
    "applies.lock",
    "blocks",
    "cgroups",
    "cloudflare",
    "daytona",
    "docker",
    "e2b",
    "events",
    "eyot.db-shm",
    "eyot.db-wal",
    "eyot.db.lock",
    "eyot.db.spare",
    "gate",
    "images",
    "kubernetes",
    "layers",
    "lost+found",
    "modal",
    "names",
    "programs",
    "trash",
    "workspaces",
    "workspaces.lock",
];

/// Finds a file of something else in a folder that has no state. Hidden files are those of a home
/// directory, and do not count.
fn foreign_entry(folder: &Path) -> Option<String> {
    if MARKS.iter().any(|name| folder.join(name).exists()) {
        return None;
    }
    let names = fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.file_name()));
    let names = names.map(|name| name.to_string_lossy().into_owned());
    let is_foreign = |name: &String| {
        !name.starts_with('.') && !OWN.contains(&name.as_str()) && !has_store(&folder.join(name))
    };
    names.filter(is_foreign).min()
}

/// Tells whether a folder has a store of pools, which a library's user may keep beside the sandboxes.
fn has_store(folder: &Path) -> bool {
    ["eyot.db", "eyot.db.lock"].iter().any(|name| folder.join(name).exists())
}

fn file_system(path: &Path) -> String {
    let Ok(found) = rustix::fs::statfs(path) else { return "unknown".to_owned() };
    // 32 bits, whatever their sign here.
    let magic = found.f_type & 0xFFFF_FFFF;
    let known = FILE_SYSTEMS.iter().find(|(number, _)| *number == magic);
    known.map_or_else(|| format!("{magic:#x}"), |(_, name)| (*name).to_owned())
}

/// Returns the reason why the folder must not be used, even if it might work for a while.
pub(super) fn refusal(facts: &Facts) -> Option<Reason> {
    [not_utf8, unfit_file_system]
        .into_iter()
        .find_map(|shows| shows(facts))
        .or_else(|| ownership_refusal(facts))
}

/// Returns the reason why the folder is not safe from other users, or not Eyot's.
pub(super) fn ownership_refusal(facts: &Facts) -> Option<Reason> {
    [controlled_by_others, somebody_elses, open_to_all, foreign].into_iter().find_map(|shows| shows(facts))
}

/// The steps that change files of the state folder.
const FILE_STEPS: &[&str] = &[
    "open the state folder",
    "pass the gate",
    "make its directory",
    "lock its directory",
    "take its name",
    "take a range of ids",
    "prepare its directory",
    "make its workspace",
    "write its record",
    "make the guest's socket",
    "note that it is ready",
    MAKE_THE_IMAGE,
];

const SUBJECT: &str = "state-folder";

const fn error(
    name: &'static str,
    steps: &'static [&'static str],
    errnos: &'static [Errno],
    shows: fn(&Facts) -> Option<Reason>,
) -> Cause {
    Cause { subject: SUBJECT, name, severity: Severity::Error, needs_failure: false, steps, errnos, shows }
}

const fn warning(name: &'static str, shows: fn(&Facts) -> Option<Reason>) -> Cause {
    Cause { severity: Severity::Warn, ..error(name, &[], &[], shows) }
}

const FULL: &[Errno] = &[Errno::NOSPC, Errno::DQUOT];

pub(super) const CAUSES: &[Cause] = &[
    error("not-utf8", ANY_STEP, &[], not_utf8),
    error("unfit-file-system", ANY_STEP, &[], unfit_file_system),
    error("controlled-by-others", FILE_STEPS, &[], controlled_by_others),
    error("not-yours", FILE_STEPS, &[], somebody_elses),
    error("open-to-all", FILE_STEPS, &[], open_to_all),
    error("foreign", FILE_STEPS, &[], foreign),
    error("no-directory", FILE_STEPS, &[Errno::NOTDIR, Errno::EXIST], no_directory),
    error("not-writable", FILE_STEPS, &[Errno::ACCESS, Errno::PERM, Errno::ROFS], not_writable),
    error("no-files-left", FILE_STEPS, FULL, no_files_left),
    error("full", FILE_STEPS, FULL, full),
    Cause { needs_failure: true, ..error("quota", FILE_STEPS, FULL, quota) },
    warning("nearly-full", nearly_full),
    warning("open-to-others", open_to_others),
    warning("noexec", noexec),
    warning("tmpfs", tmpfs),
];

/// The cause of an overlay that fails, when no other cause fits.
pub(super) const LATE_CAUSES: &[Cause] = &[Cause {
    needs_failure: true,
    ..error(
        "no-overlay-there",
        &["mount the root overlay"],
        &[Errno::PERM, Errno::INVAL, Errno::OPNOTSUPP],
        |facts| {
            let why = format!(
                "the state folder's file system ({}) can't carry an overlay",
                facts.state.file_system
            );
            Some(Reason { why, fix: Some(volume(facts)) })
        },
    )
}];

/// Proposes another place, with a name that no other user can have taken. The option `--state` would
/// win over it.
fn elsewhere(_facts: &Facts) -> String {
    "export EYOT_STATE=$(mktemp -d /var/tmp/eyot-XXXXXXXX) # instead of --state".to_owned()
}

/// Proposes another file system. In a container all folders are on the same one, unless they are
/// volumes.
fn volume(facts: &Facts) -> String {
    let volume = facts.container_advice().filter(|advice| advice.contains(" -v "));
    volume.unwrap_or_else(|| elsewhere(facts))
}

fn reason(facts: &Facts, when: bool, why: impl Into<String>, fix: fn(&Facts) -> String) -> Option<Reason> {
    when.then(|| Reason { why: why.into(), fix: Some(fix(facts)) })
}

fn not_utf8(facts: &Facts) -> Option<Reason> {
    reason(facts, !facts.state.utf8, "the state folder's path is not UTF-8", elsewhere)
}

fn unfit_file_system(facts: &Facts) -> Option<Reason> {
    let why = format!("the state folder is on {}, where sandboxes can't live", facts.state.file_system);
    reason(facts, facts.state.is_on_unfit_file_system(), why, volume)
}

fn somebody_elses(facts: &Facts) -> Option<Reason> {
    let owner = facts.state.owner.unwrap_or_default();
    let why = format!("the state folder belongs to somebody else (uid {owner}; you are uid {})", facts.uid);
    reason(facts, facts.state.is_somebody_elses(facts.uid), why, |facts| match &facts.state.own {
        Some(own) => format!("export EYOT_STATE={} # your own, instead of --state", shell_word(own)),
        None => elsewhere(facts),
    })
}

fn foreign(facts: &Facts) -> Option<Reason> {
    let name = facts.state.foreign.as_deref();
    let why = format!(
        "the state folder has files of something else, such as `{}`, and no sandboxes",
        name.unwrap_or_default()
    );
    reason(facts, name.is_some(), why, elsewhere)
}

fn controlled_by_others(facts: &Facts) -> Option<Reason> {
    let what = facts.state.controlled_by_others.as_deref();
    let why = format!("the state folder's path {}", what.unwrap_or_default());
    reason(facts, what.is_some(), why, elsewhere)
}

fn close(facts: &Facts) -> String {
    // Others may need a folder that all share, such as `/tmp`.
    if facts.state.foreign.is_some() {
        return elsewhere(facts);
    }
    format!("chmod 700 {}", shell_word(&facts.state.path))
}

fn open_to_all(facts: &Facts) -> Option<Reason> {
    let who = if facts.state.mode & 0o002 != 0 { "everybody" } else { "its group" };
    let why = format!("{who} may write to the state folder (mode {:o})", facts.state.mode);
    reason(facts, facts.state.is_open_to_all(), why, close)
}

fn open_to_others(facts: &Facts) -> Option<Reason> {
    let open = facts.state.exists && facts.state.mode & 0o077 != 0 && !facts.state.is_open_to_all();
    reason(facts, open, format!("others may look into the state folder (mode {:o})", facts.state.mode), close)
}

fn no_directory(facts: &Facts) -> Option<Reason> {
    reason(
        facts,
        !facts.state.exists && Path::new(&facts.state.path).exists(),
        format!("the state folder's path leads to a file: {}", facts.state.path),
        elsewhere,
    )
}

fn not_writable(facts: &Facts) -> Option<Reason> {
    if !facts.state.passable {
        let closed = Path::new(&facts.state.path).ancestors().find(|folder| folder.is_dir());
        let closed = closed.unwrap_or(Path::new("/")).display();
        let why = format!("the state folder is in a folder that you may not enter: {closed}");
        return reason(facts, true, why, elsewhere);
    }
    let fix = |facts: &Facts| {
        let path = shell_word(&facts.state.path);
        format!("sudo install -d -o {} -m 700 {path}", facts.uid)
    };
    reason(facts, !facts.state.writable, "the state folder can't be written to", fix)
}

fn free_up(facts: &Facts) -> String {
    format!("df -h {}", shell_word(&facts.state.path))
}

/// The space that the directory of one sandbox needs, in bytes.
const ONE_SANDBOX_BYTES: u64 = 1 << 20;
/// The free space below which a warning is due, in bytes.
const ROOM_BYTES: u64 = 256 << 20;

fn full(facts: &Facts) -> Option<Reason> {
    let full = facts.state.free_bytes < ONE_SANDBOX_BYTES;
    reason(facts, full, "the state folder's disk is full", elsewhere)
}

fn no_files_left(facts: &Facts) -> Option<Reason> {
    let full = facts.state.free_files.is_some_and(|files| files < 64);
    reason(facts, full, "the state folder's file system has no room for more files (inodes)", elsewhere)
}

fn quota(facts: &Facts) -> Option<Reason> {
    reason(facts, true, "the state folder's disk, or your quota on it, is full", elsewhere)
}

fn nearly_full(facts: &Facts) -> Option<Reason> {
    let free = facts.state.free_bytes;
    let why = format!("the state folder's disk has {} MiB left", free >> 20);
    reason(facts, (ONE_SANDBOX_BYTES..ROOM_BYTES).contains(&free), why, free_up)
}

fn noexec(facts: &Facts) -> Option<Reason> {
    let why = "programs in persistent workspaces can't be run: the state folder is mounted noexec";
    reason(facts, facts.state.noexec, why, |facts| {
        format!("sudo mount -o remount,exec --target {}", shell_word(&facts.state.path))
    })
}

fn tmpfs(facts: &Facts) -> Option<Reason> {
    let old = facts.state.file_system == "tmpfs" && kernel::version(&facts.kernel) < (6, 6);
    let why = "the state folder is in a tmpfs, which keeps no deletions of image files before Linux 6.6";
    reason(facts, old, why, elsewhere)
}

/// Writes the sentence for a folder where nothing is wrong.
pub(super) fn all_well(facts: &Facts) -> String {
    let StateFacts { file_system, free_bytes, .. } = &facts.state;
    format!("on {file_system}, {} GiB free", free_bytes >> 30)
}
