//! The place for the control groups of sandboxes: below a group of the host that this process may
//! write to.
//!
//! - v1, and the v2 tree of a hybrid host: `eyot-<id>` directly below the process's own group in each
//!   hierarchy, so that limits of the process hold for its sandboxes too. There is no common folder: if
//!   it stayed behind empty, the process's own group could not be removed.
//! - v2 alone: `eyot/<id>` below a group that was delegated to Eyot (`Delegate=yes`), else, for root,
//!   below the root group. A v2 group passes controllers on only while no process is in it; that is why
//!   the group `eyot` lies between. An ordinary user without a delegated group asks the user manager for
//!   one, if there is a manager ([`CgroupPlace::UserManager`]).
//!
//! Controllers are switched on in Eyot's own groups, in delegated ones, and in the root group of a
//! host without systemd. (The init of a container or of a small machine leaves them off, and
//! switching them on only starts the counting.)

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, AtFlags, CWD};

use super::group::write;
use super::position::{self, CgroupVersion, Hierarchy};
use super::setting::GroupRequest;
use super::{CgroupCause, CgroupController, CgroupSupport};

/// The place where this process can make control groups for sandboxes.
#[derive(Debug)]
pub(crate) enum CgroupPlace {
    /// Groups can be made here by this process.
    Here(Home),
    /// The systemd user manager may delegate a group to a launcher that is started through it.
    UserManager,
    /// No place was found, for this reason.
    Nowhere(CgroupCause),
}

/// The groups of the host below which the groups of sandboxes are made.
#[derive(Debug)]
pub(crate) struct Home {
    pub(super) branches: Vec<Branch>,
    cause: Option<CgroupCause>,
}

/// One hierarchy in which each sandbox has a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Branch {
    pub version: CgroupVersion,
    /// The group below which the sandboxes' groups are.
    parent: PathBuf,
    /// The prefix of their directory names; the sandbox's id follows.
    prefix: &'static str,
    pub controllers: BTreeSet<CgroupController>,
    freezer: bool,
}

impl Branch {
    pub(super) fn path(&self, id: &str) -> PathBuf {
        self.parent.join(format!("{}{id}", self.prefix))
    }

    /// Tells whether a sandbox with these limits gets a group in this hierarchy. A v2 group is
    /// always needed: sandboxes are killed and frozen by it.
    pub(super) fn is_needed(&self, wanted: &GroupRequest) -> bool {
        let limits = self.controllers.iter().any(|controller| wanted.needs(*controller));
        limits || self.freezer || self.version == CgroupVersion::V2
    }
}

/// The prefix of groups that lie directly in a group of the host.
const AMONG_OTHERS: &str = "eyot-";
/// The v2 group of Eyot's own that lies between a delegated group and the groups of sandboxes.
const FOLDER: &str = "eyot";
/// The v2 group that this process moves into, so that its own group may pass on controllers.
const LEAF: &str = "eyot-maker";

impl CgroupPlace {
    /// Finds where groups can be made, and prepares that place. Makes no group for any sandbox yet.
    pub(crate) fn find() -> Self {
        let hierarchies = match position::read() {
            Ok(hierarchies) if !hierarchies.is_empty() => hierarchies,
            _ => return Self::Nowhere(CgroupCause::NotMounted),
        };
        let limits = |hierarchy: &&Hierarchy| {
            hierarchy.version == CgroupVersion::V1 && !known(&hierarchy.controllers).is_empty()
        };
        if hierarchies.iter().any(|hierarchy| limits(&hierarchy)) {
            by_v1(&hierarchies)
        } else {
            by_v2(&hierarchies)
        }
    }
}

impl Home {
    /// Prepares the delegated group that process `pid` of this user is in alone. The process is
    /// moved into a group below it.
    ///
    /// # Errors
    /// The reason why sandboxes can't have groups there.
    pub(crate) fn around(pid: u32) -> Result<Self, CgroupCause> {
        let hierarchies = position::of(pid).map_err(|_| CgroupCause::NotMounted)?;
        let v2 = hierarchies.iter().find(|hierarchy| hierarchy.version == CgroupVersion::V2);
        let own = &v2.ok_or(CgroupCause::NotMounted)?.own;
        leave_alone(own, pid)?;
        Self::below(own)
    }

    /// Makes the group [`FOLDER`] in `parent`, whose controllers are passed on.
    fn below(parent: &Path) -> Result<Self, CgroupCause> {
        let folder = parent.join(FOLDER);
        match fs::create_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(_) => return Err(CgroupCause::NotWritable { group: parent.to_owned() }),
            Ok(()) => {}
        }
        pass_on(&folder);
        Self::of_folder(folder)
    }

    fn of_folder(folder: PathBuf) -> Result<Self, CgroupCause> {
        let controllers = passed_on(&folder);
        let cause = missing(&controllers, &folder);
        if controllers.is_empty() {
            return Err(cause.unwrap_or(CgroupCause::NotMounted));
        }
        let branch =
            Branch { version: CgroupVersion::V2, parent: folder, prefix: "", controllers, freezer: false };
        Ok(Self { branches: vec![branch], cause })
    }

    /// Returns the beginnings of the paths of its groups; an id follows each.
    pub(super) fn beginnings(&self) -> impl Iterator<Item = String> {
        self.branches.iter().filter_map(|branch| branch.path("").into_os_string().into_string().ok())
    }

    /// Makes a home with one v1 hierarchy, for tests.
    #[cfg(test)]
    pub(super) fn fake(parent: &Path) -> Self {
        let controllers = BTreeSet::from([CgroupController::Memory]);
        let parent = parent.to_owned();
        let branch =
            Branch { version: CgroupVersion::V1, parent, prefix: AMONG_OTHERS, controllers, freezer: false };
        Self { branches: vec![branch], cause: None }
    }

    /// Returns the controllers that limit sandboxes here, and the reason why any are missing.
    pub(crate) fn support(&self) -> CgroupSupport {
        let held: BTreeSet<_> =
            self.branches.iter().flat_map(|branch| branch.controllers.iter().copied()).collect();
        CgroupSupport { controllers: held.into_iter().collect(), cause: self.cause.clone() }
    }
}

/// Finds a place on a v1 or hybrid host: below this process's own group in every v1 hierarchy that
/// limits anything, and in the v2 tree, which kills and freezes.
fn by_v1(hierarchies: &[Hierarchy]) -> CgroupPlace {
    let has_v2 = hierarchies.iter().any(|at| at.version == CgroupVersion::V2 && may_write(&at.own));
    let branch = |at: &Hierarchy| {
        let controllers = match at.version {
            CgroupVersion::V1 => known(&at.controllers),
            CgroupVersion::V2 => passed_on(&at.own),
        };
        let freezer =
            at.version == CgroupVersion::V1 && !has_v2 && at.controllers.iter().any(|name| name == "freezer");
        let parent = at.own.clone();
        Branch { version: at.version, parent, prefix: AMONG_OTHERS, controllers, freezer }
    };
    let serves = |branch: &Branch| {
        !branch.controllers.is_empty() || branch.freezer || branch.version == CgroupVersion::V2
    };
    let all: Vec<Branch> = hierarchies.iter().map(branch).filter(serves).collect();
    let (branches, closed): (Vec<_>, Vec<_>) = all.into_iter().partition(|branch| may_write(&branch.parent));
    let held: BTreeSet<_> = branches.iter().flat_map(|branch| branch.controllers.iter().copied()).collect();
    let closed = closed.into_iter().find(|branch| !branch.controllers.is_empty());
    let cause = match closed {
        Some(branch) if is_root() => Some(CgroupCause::NotWritable { group: branch.parent }),
        Some(_) => Some(CgroupCause::NotDelegated),
        None => missing(&held, Path::new("/")),
    };
    match (held.is_empty(), cause) {
        (true, cause) => CgroupPlace::Nowhere(cause.unwrap_or(CgroupCause::NotMounted)),
        (false, cause) => CgroupPlace::Here(Home { branches, cause }),
    }
}

/// Finds a place on a v2 host: below a delegated group, else, for root, below the root group.
fn by_v2(hierarchies: &[Hierarchy]) -> CgroupPlace {
    let Some(at) = hierarchies.iter().find(|at| at.version == CgroupVersion::V2) else {
        return CgroupPlace::Nowhere(CgroupCause::NotMounted);
    };
    let found = match delegated(at) {
        None if is_root() => at_the_top(&at.mount_point),
        None if super::scope::is_reachable() => return CgroupPlace::UserManager,
        None => Err(CgroupCause::NotDelegated),
        Some(found) => found,
    };
    match found {
        Ok(home) => CgroupPlace::Here(home),
        Err(_) if !is_root() && super::scope::is_reachable() => CgroupPlace::UserManager,
        Err(cause) => CgroupPlace::Nowhere(cause),
    }
}

/// Finds a group that was delegated to this process: the parent of its own group, if the process
/// was put into a group below the delegated one, or else its own group.
fn delegated(at: &Hierarchy) -> Option<Result<Home, CgroupCause>> {
    let above = at.own.parent().filter(|above| above.starts_with(&at.mount_point));
    if let Some(above) = above.filter(|above| is_delegated(above)) {
        pass_on(above);
        if !passed_on(above).is_empty() {
            return Some(Home::below(above));
        }
    }
    // The top of a namespace of its own is a container's; the machine's root group alone has no events.
    let is_containers = at.own == at.mount_point && is_root() && at.own.join("cgroup.events").exists();
    if !is_containers && !is_delegated(&at.own) {
        return None;
    }
    Some(leave_alone(&at.own, std::process::id()).and_then(|()| Home::below(&at.own)))
}

/// Has the group `own` pass on controllers, after process `pid` was moved into a group below. Fails
/// if other processes are in the group: those are not moved.
///
/// The process is moved first, whatever the group passes on. While a process is in it, a group
/// refuses to pass on `memory`, but may pass on `cpu` and `pids`, which the kernel can share out
/// among threads. It would then be the root of a threaded tree, where no process as a whole can be
/// put into a group below, nor be limited in its memory.
fn leave_alone(own: &Path, pid: u32) -> Result<(), CgroupCause> {
    if !may_write(own) {
        return Err(CgroupCause::NotWritable { group: own.to_owned() });
    }
    let occupied = |_: io::Error| CgroupCause::Occupied { group: own.to_owned() };
    match occupant(own, pid).map_err(occupied)? {
        Occupant::Nobody => {}
        Occupant::Itself => move_into_leaf(own, pid).map_err(occupied)?,
        Occupant::Others => return Err(CgroupCause::Occupied { group: own.to_owned() }),
    }
    pass_on(own);
    Ok(())
}

/// The processes that are directly in a group, not in a group below it.
#[derive(Debug, PartialEq, Eq)]
enum Occupant {
    Nobody,
    /// Only the process in question.
    Itself,
    Others,
}

fn occupant(group: &Path, pid: u32) -> io::Result<Occupant> {
    let listed = fs::read_to_string(group.join("cgroup.procs"))?;
    Ok(match listed.trim() {
        "" => Occupant::Nobody,
        only if only == pid.to_string() => Occupant::Itself,
        _ => Occupant::Others,
    })
}

fn move_into_leaf(own: &Path, pid: u32) -> io::Result<()> {
    let leaf = own.join(LEAF);
    match fs::create_dir(&leaf) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    write(&leaf.join("cgroup.procs"), &pid.to_string())
}

fn at_the_top(root: &Path) -> Result<Home, CgroupCause> {
    if !may_write(root) {
        return Err(CgroupCause::NotWritable { group: root.to_owned() });
    }
    // What systemd manages is systemd's: it has switched on what is in use.
    if !Path::new("/run/systemd/system").exists() {
        pass_on(root);
    }
    if passed_on(root).is_empty() {
        return Err(missing(&BTreeSet::new(), root).unwrap_or(CgroupCause::NotMounted));
    }
    Home::below(root)
}

/// Has a group pass on those of its controllers that Eyot uses. A controller that can't be passed
/// on is then missing from [`passed_on`].
fn pass_on(group: &Path) {
    let own = controllers_in(&group.join("cgroup.controllers"));
    for controller in own.difference(&passed_on(group)) {
        if let Err(error) = write(&group.join("cgroup.subtree_control"), &format!("+{}", controller.name())) {
            tracing::debug!(%error, controller = controller.name(), "pass on a cgroup controller");
        }
    }
}

fn passed_on(group: &Path) -> BTreeSet<CgroupController> {
    controllers_in(&group.join("cgroup.subtree_control"))
}

fn controllers_in(file: &Path) -> BTreeSet<CgroupController> {
    let text = fs::read_to_string(file).unwrap_or_default();
    known(&text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
}

fn known(names: &[String]) -> BTreeSet<CgroupController> {
    CgroupController::ALL.into_iter().filter(|known| names.iter().any(|name| name == known.name())).collect()
}

fn missing(held: &BTreeSet<CgroupController>, group: &Path) -> Option<CgroupCause> {
    let first = [CgroupController::Memory, CgroupController::Pids, CgroupController::Cpu];
    let controller = first.into_iter().find(|controller| !held.contains(controller))?;
    Some(CgroupCause::NoController { controller, group: group.to_owned() })
}

/// Tells whether a group was delegated to this process: marked so by systemd or, without systemd,
/// owned by this user.
fn is_delegated(group: &Path) -> bool {
    let marked = ["user.delegate", "trusted.delegate"].iter().any(|name| {
        let mut value = [0_u8; 1];
        rustix::fs::getxattr(group, *name, &mut value[..]).is_ok_and(|length| length == 1 && value == *b"1")
    });
    let owned = || {
        let owner = fs::metadata(group).map(|found| found.uid());
        !is_root() && owner.is_ok_and(|uid| uid == rustix::process::geteuid().as_raw())
    };
    may_write(group) && (marked || (!Path::new("/run/systemd/system").exists() && owned()))
}

fn may_write(group: &Path) -> bool {
    rustix::fs::accessat(CWD, group, Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS).is_ok()
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a folder with the files of a v2 group, for tests. The files keep what was written last
    /// and pass nothing on.
    fn group(listed: &str) -> tempfile::TempDir {
        let group = tempfile::tempdir().unwrap();
        let files = [
            ("cgroup.procs", listed),
            ("cgroup.controllers", "cpu memory pids\n"),
            ("cgroup.subtree_control", ""),
        ];
        for (name, content) in files {
            fs::write(group.path().join(name), content).unwrap();
        }
        group
    }

    fn asked(group: &Path) -> String {
        fs::read_to_string(group.join("cgroup.subtree_control")).unwrap()
    }

    #[test]
    fn a_group_that_others_are_in_is_asked_for_nothing() {
        let group = group("7\n12\n");
        let refused = CgroupCause::Occupied { group: group.path().to_owned() };
        assert_eq!(leave_alone(group.path(), 7), Err(refused));
        assert_eq!(asked(group.path()), "");
    }

    #[test]
    fn a_process_leaves_its_group_before_controllers_are_asked_for() {
        let group = group("7\n");
        // The leaf takes nobody in, so it is not left.
        assert!(leave_alone(group.path(), 7).is_err());
        assert_eq!(asked(group.path()), "");
        fs::write(group.path().join(LEAF).join("cgroup.procs"), "").unwrap();
        assert_eq!(leave_alone(group.path(), 7), Ok(()));
        assert_eq!(fs::read_to_string(group.path().join(LEAF).join("cgroup.procs")).unwrap(), "7");
        assert_ne!(asked(group.path()), "");
    }

    #[test]
    fn a_group_that_nobody_is_in_passes_on_at_once() {
        let group = group("\n");
        assert_eq!(leave_alone(group.path(), 7), Ok(()));
        assert_ne!(asked(group.path()), "");
        assert!(!group.path().join(LEAF).exists());
    }
}
