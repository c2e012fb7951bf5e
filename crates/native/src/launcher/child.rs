//! The child of a new sandbox. It carries out the plan's steps one after another and then executes
//! the guest. It runs in the launcher's memory and in the sandbox's namespaces. The first failure
//! is recorded and ends the child; no step is skipped.

use std::cell::Cell;
use std::collections::HashMap;
use std::fs::{OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::fs::PermissionsExt;
use std::rc::Rc;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use super::egress_sockets;
use super::make::{Descriptors, Failed};
use super::new_root::{self, ClosedRoot};
use super::source::BindSource;
use crate::plan::{
    ANCHOR, ANCHORED_NAME, Bind, COW_POINTS, LOWER, Plan, ROOT, RebuiltFolder, Step, cow_options, cow_point,
    lower_beside_snapshots, overlay_options, snapshot_point, unpack_filter,
};
use crate::sys::{self, ChildGate, ChildMain, MountRestrictions, Ruleset};

/// The memory that launcher and child share. Before the gate is open, the child reads nothing but
/// the gate.
pub(crate) struct ChildMemory {
    gate: Rc<ChildGate>,
    /// The plan. If it is `None` when the gate opens, the child ends.
    plan: Option<Plan>,
    /// The guest's program: a descriptor of the launcher's or, after [`Step::GuestFile`], of the
    /// child's own.
    guest: Cell<RawFd>,
    /// The top of the mount namespace: a descriptor of the child's own.
    top: Cell<Option<RawFd>>,
    /// The root of a living sandbox that was closed.
    closed: Cell<Option<ClosedRoot>>,
    /// Every step of a plan without a guest was carried out.
    is_done: Cell<bool>,
    /// The child of a plan without a guest keeps the old root for a while.
    old_root_stays: bool,
    descriptors: Descriptors,
    trees: HashMap<usize, RawFd>,
    open_files: Option<Rlimit>,
    failed_at: Option<(usize, i32)>,
}

/// How long an old root is kept after a new one has taken its place. The end of its overlay keeps a processor busy, for 45 ms if
/// it has 100,000 files. The owner's next call, often a fork, goes first.
const OLD_ROOT_KEPT: Duration = Duration::from_millis(200);

/// In place of the guest's program: no descriptor, so executing it fails.
const NO_PROGRAM: RawFd = -1;

impl ChildMemory {
    pub(crate) fn new(gate: Rc<ChildGate>) -> Self {
        Self {
            gate,
            plan: None,
            guest: Cell::new(NO_PROGRAM),
            top: Cell::new(None),
            closed: Cell::new(None),
            is_done: Cell::new(false),
            old_root_stays: false,
            descriptors: Descriptors::default(),
            trees: HashMap::new(),
            open_files: None,
            failed_at: None,
        }
    }

    /// Sets the plan that the child is to carry out.
    pub(crate) fn set_plan(&mut self, plan: Plan) {
        self.plan = Some(plan);
    }

    /// Sets the guest's program, if the launcher has it, and the descriptors for the plan and the
    /// guest.
    pub(crate) fn set_descriptors(&mut self, guest: Option<BorrowedFd<'_>>, descriptors: Descriptors) {
        self.guest.set(guest.map_or(NO_PROGRAM, |guest| guest.as_raw_fd()));
        self.descriptors = descriptors;
    }

    /// Has the child of a plan without a guest keep the old root for a while.
    pub(crate) fn keep_old_root(&mut self) {
        self.old_root_stays = true;
    }

    /// Sets the limit of open files that the sandbox begins with.
    pub(crate) fn set_open_files(&mut self, limit: Rlimit) {
        self.open_files = Some(limit);
    }

    /// Sets the mount that the step with this index attaches.
    pub(crate) fn set_tree(&mut self, index: usize, tree: RawFd) {
        self.trees.insert(index, tree);
    }

    /// Tells whether the child of a plan without a guest ended somewhere in the middle, without a word.
    pub(crate) fn has_vanished(&self) -> bool {
        let is_of_living = self.plan.as_ref().is_some_and(Plan::is_of_living);
        is_of_living && self.failed_at.is_none() && !self.is_done.get()
    }

    /// Returns the step that failed, if one did.
    pub(crate) fn failure(&self) -> Option<Failed> {
        let ((index, errno), plan) = self.failed_at.zip(self.plan.as_ref())?;
        Some(Failed::of_step(plan, index, io::Error::from_raw_os_error(errno)))
    }
}

impl ChildMain for ChildMemory {
    /// Runs after the launcher has opened the gate. The launcher then waits until the child has
    /// left its memory, or has done its work and stays.
    fn run_in_child(&mut self) -> ! {
        self.gate.pass();
        if let Some(plan) = &self.plan
            && let Err((index, error)) = self.run(plan)
        {
            self.failed_at = Some((index, error.raw_os_error().unwrap_or(libc::EINVAL)));
        }
        sys::exit_now()
    }
}

impl ChildMemory {
    /// Carries out the plan. Returns after a failure, with the index of the failed step; an index
    /// behind the last step means the guest's exec. A plan without a guest returns when it is done.
    fn run(&self, plan: &Plan) -> Result<(), (usize, io::Error)> {
        self.leave_the_launcher().map_err(|error| (plan.steps.len(), error))?;
        for (index, step) in plan.steps.iter().enumerate() {
            let forced = plan.fail_at == u32::try_from(index).ok();
            let result = if forced {
                Err(io::Error::from_raw_os_error(libc::EPERM))
            } else {
                self.carry_out(index, step)
            };
            result.map_err(|error| (index, error))?;
        }
        if plan.is_of_living() {
            self.is_done.set(true);
            if let Some(guest) = self.descriptors.living_guest.as_ref().filter(|_| self.old_root_stays) {
                self.gate.stay_when_done(guest.as_fd(), OLD_ROOT_KEPT);
            }
            return Ok(());
        }
        let descriptors = numbers(&self.descriptors.guest);
        Err((plan.steps.len(), sys::exec_guest(self.guest.get(), &descriptors)))
    }

    fn leave_the_launcher(&self) -> io::Result<()> {
        // A terminal's Ctrl-C is meant for whoever makes the sandbox, never for one that outlives it.
        rustix::process::setsid()?;
        sys::unshare_files()?;
        match self.open_files {
            Some(limit) => Ok(setrlimit(Resource::Nofile, limit)?),
            None => Ok(()),
        }
    }

    fn carry_out(&self, index: usize, step: &Step) -> io::Result<()> {
        match step {
            Step::EnterGroups(_) => self.enter_groups(),
            Step::MapSingle { uid, gid } => map_single(*uid, *gid),
            Step::BecomeInnerRoot => sys::become_id(0),
            Step::PrivateMounts => sys::mount("", "/", "", libc::MS_REC | libc::MS_PRIVATE, ""),
            Step::EnterSandboxDir(path) => Ok(rustix::process::chdir(path)?),
            Step::AttachDisk => attach_disk(self.descriptors.disk.as_ref()),
            Step::GuestFile(path) => self.mount_guest(path),
            Step::Bind(bind) => self.bind(index, bind),
            Step::SnapshotPoints(count) => make_snapshot_points(*count),
            Step::CowPoints(count) => make_cow_points(*count),
            Step::CowOverlay { lower, key, target } => mount_cow(lower, key, target),
            Step::Overlay { lower, target, work } => mount_overlay(lower, target, work),
            Step::Programs(path) => self.show_programs(index, path),
            Step::Rebuild(folder) => rebuild(folder),
            Step::ReadOnlyMount(target) => sys::hold_mount(
                target,
                MountRestrictions { readonly: true, devices: false, recursive: false },
            ),
            Step::OwnDevices => self.attach_devices(index),
            Step::Proc(target) => sys::mount("proc", target, "proc", NO_PROGRAMS, ""),
            Step::DevPts(target, group) => mount_devpts(target, *group),
            Step::Tmpfs { target, size_mib, mode } => mount_tmpfs(target, *size_mib, *mode),
            Step::File { target, text } => write_file(target, text),
            Step::Mask(target) => mask(target),
            Step::CoverProc { target, shown, empty } => cover_proc(target, shown, empty.as_deref()),
            Step::Memory { targets, size_mib } => mount_memory(targets, *size_mib),
            Step::ReadOnly(target) => make_readonly(target),
            Step::PivotRoot { root, anchored } => self.pivot_root(root, *anchored),
            Step::EnterUsers => {
                let users = living(self.descriptors.users.as_ref())?;
                Ok(move_into_link_name_space(users.as_fd(), Some(LinkNameSpaceType::User))?)
            }
            Step::OwnMounts => sys::unshare_mounts(),
            Step::CloseRoot(new) => {
                let namespace = living(self.descriptors.mounts.as_ref())?;
                self.closed.set(Some(new_root::close(new, namespace.as_fd())?));
                Ok(())
            }
            Step::ReplaceRoot => self.closed.take().ok_or_else(bad_descriptor)?.replace(),
            Step::ReadOnlyRoot => {
                sys::hold_mount("/", MountRestrictions { readonly: true, devices: true, recursive: false })
            }
            Step::Loopback => sys::loopback_up(),
            Step::EgressSockets => {
                egress_sockets::open_and_send(self.descriptors.egress.as_ref().map(AsFd::as_fd))
            }
            Step::HostName(name) => sys::set_host_name(name),
            Step::NoCoreDumps => forbid_core_dumps(),
            Step::NoNewPrivileges => sys::set_no_new_privileges(),
            Step::Capabilities { keep, become_id } => drop_capabilities(*keep, *become_id),
            Step::NamespaceLimit(name, most) => limit_namespace(&format!("user/{name}"), &most.to_string()),
            Step::IpcLimit(name, value) => limit_namespace(&format!("kernel/{name}"), value),
            Step::PidMax(most) => limit_namespace("kernel/pid_max", &most.to_string()),
            Step::Processors(numbers) => run_on(numbers),
            Step::Landlock(abi) => self.restrict_by_landlock(*abi),
            Step::Seccomp(packed) => sys::install_seccomp(&unpack_filter(packed)),
        }
    }

    fn enter_groups(&self) -> io::Result<()> {
        numbers(&self.descriptors.group_tasks).into_iter().try_for_each(sys::enter_group)?;
        sys::unshare_groups()
    }

    /// Takes the guest's program through a mount that nobody inside can write to: an ordinary
    /// user's sandbox has the user's own id, and so owns the file. The descriptor is one of the
    /// child's table, and closes at exec.
    fn mount_guest(&self, path: &str) -> io::Result<()> {
        let program = sys::take_read_only(&BindSource::open(path)?.path())?;
        self.guest.set(program.into_raw_fd());
        Ok(())
    }

    fn bind(&self, index: usize, bind: &Bind) -> io::Result<()> {
        let recursive = if bind.recursive { libc::MS_REC } else { 0 };
        match self.trees.get(&index) {
            Some(tree) => sys::attach_tree(*tree, &bind.target)?,
            // The host's own paths; what is relative lies in the sandbox's root.
            None if bind.source.starts_with('/') && !bind.device => {
                let source = BindSource::open(&bind.source)?;
                sys::mount(&source.path(), &bind.target, "", libc::MS_BIND | recursive, "")?;
            }
            None => sys::mount(&bind.source, &bind.target, "", libc::MS_BIND | recursive, "")?,
        }
        if bind.device {
            return Ok(());
        }
        sys::hold_mount(
            &bind.target,
            MountRestrictions { readonly: bind.readonly, devices: false, recursive: bind.recursive },
        )
    }

    /// Shows a folder of the host's programs through a read-only overlay. In a range the launcher
    /// has copied the folder's mount without the mounts below. The child can't do that, because the
    /// kernel locks those mounts together. The copy lies in the skeleton and goes with the old
    /// root.
    fn show_programs(&self, index: usize, path: &str) -> io::Result<()> {
        let folder = match self.trees.get(&index) {
            Some(tree) => {
                let staged = format!("{}{path}", self.lower());
                sys::attach_tree(*tree, &staged)?;
                BindSource::open(&staged)?
            }
            None => BindSource::open(path)?,
        };
        mount_read_only_overlay(&self.lower(), &folder, &format!("{ROOT}{path}"))
    }

    /// Returns the mount point of the image's folder.
    fn lower(&self) -> String {
        let is_points = |step: &Step| matches!(step, Step::SnapshotPoints(_));
        if self.plan.as_ref().is_some_and(|plan| plan.steps.iter().any(is_points)) {
            lower_beside_snapshots()
        } else {
            LOWER.to_owned()
        }
    }

    /// Makes the new root the top of the mount namespace. Or moves it to the folder of the device nodes, makes that the top, and
    /// enters the new root.
    fn pivot_root(&self, root: &str, anchored: bool) -> io::Result<()> {
        if anchored {
            sys::mount(root, &format!("{ANCHOR}/{ANCHORED_NAME}"), "", libc::MS_MOVE, "")?;
        }
        sys::pivot_root(if anchored { ANCHOR } else { root })?;
        // The launcher's memory must not own a descriptor of the child's table. It closes at exec.
        let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::CLOEXEC;
        let top = rustix::fs::open("/", flags, rustix::fs::Mode::empty())?;
        self.top.set(Some(top.into_raw_fd()));
        if anchored {
            rustix::process::chdir(ANCHORED_NAME)?;
            rustix::process::chroot(".")?;
        }
        Ok(())
    }

    /// Restricts the child by Landlock. Rights that are not handled cost nothing, and stay possible
    /// outside of `/` too: POSIX message queues are files of a file system that no path leads to. The rights that are allowed hold
    /// below the top of the mount namespace, and so below a root that takes the place of this one.
    fn restrict_by_landlock(&self, abi: u32) -> io::Result<()> {
        let handled_fs = MAKE_DEVICES | REFER;
        let scoped = if abi >= 6 { SCOPES } else { 0 };
        let attr_bytes = match abi {
            0..=3 => 8,
            4..=5 => 16,
            _ => 24,
        };
        let ruleset = Ruleset { handled_fs, handled_net: 0, scoped };
        sys::restrict_by_landlock(&ruleset, attr_bytes, REFER, self.top.get().ok_or_else(bad_descriptor)?)
    }

    fn attach_devices(&self, index: usize) -> io::Result<()> {
        let tree = self.trees.get(&index).ok_or_else(|| io::Error::from_raw_os_error(libc::EBADF))?;
        sys::attach_tree(*tree, "/dev")
    }
}

/// Returns a namespace of the sandbox whose root is to be replaced.
fn living(namespace: Option<&OwnedFd>) -> io::Result<&OwnedFd> {
    namespace.ok_or_else(bad_descriptor)
}

fn bad_descriptor() -> io::Error {
    io::Error::from_raw_os_error(libc::EBADF)
}

fn numbers(descriptors: &[OwnedFd]) -> Vec<RawFd> {
    descriptors.iter().map(AsRawFd::as_raw_fd).collect()
}

fn attach_disk(disk: Option<&OwnedFd>) -> io::Result<()> {
    let disk = disk.ok_or_else(|| io::Error::from_raw_os_error(libc::EBADF))?;
    sys::attach_tree(disk.as_raw_fd(), ".")?;
    Ok(rustix::process::fchdir(disk)?)
}

fn run_on(numbers: &[u32]) -> io::Result<()> {
    let mut set = rustix::thread::CpuSet::new();
    numbers.iter().for_each(|number| set.set(*number as usize));
    Ok(rustix::thread::sched_setaffinity(None, &set)?)
}

const NO_PROGRAMS: u64 = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;

fn map_single(uid: u32, gid: u32) -> io::Result<()> {
    let user = crate::plan::USER_ID;
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/uid_map", format!("{user} {uid} 1"))?;
    std::fs::write("/proc/self/gid_map", format!("{user} {gid} 1"))
}

fn mount_overlay(lower: &[String], target: &str, work: &str) -> io::Result<()> {
    let options = overlay_options(lower, target, work);
    sys::mount("overlay", target, "overlay", libc::MS_NOSUID | libc::MS_NODEV, &options)
}

/// The capacity of the folder of mount points, in MiB.
const POINTS_MIB: u64 = 1;

fn make_snapshot_points(count: u32) -> io::Result<()> {
    mount_tmpfs(LOWER, POINTS_MIB, 0o755)?;
    std::fs::create_dir(lower_beside_snapshots())?;
    (0..count as usize).try_for_each(|place| std::fs::create_dir(snapshot_point(place)))
}

fn make_cow_points(count: u32) -> io::Result<()> {
    mount_tmpfs(COW_POINTS, POINTS_MIB, 0o755)?;
    (0..count as usize).try_for_each(|number| std::fs::create_dir(cow_point(number)))
}

fn mount_cow(lower: &[String], key: &str, target: &str) -> io::Result<()> {
    let mut flags = libc::MS_NOSUID | libc::MS_NODEV;
    // The host's folder is the last.
    if let Some(folder) = lower.last()
        && BindSource::open(folder)?.is_noexec()?
    {
        flags |= libc::MS_NOEXEC;
    }
    sys::mount("overlay", target, "overlay", flags, &cow_options(lower, key))
}

fn rebuild(folder: &RebuiltFolder) -> io::Result<()> {
    let target = |name: &String| format!("{ROOT}{}/{name}", folder.path);
    for name in &folder.folders {
        std::fs::create_dir(target(name))?;
        std::fs::set_permissions(target(name), Permissions::from_mode(0o755))?;
    }
    for (name, leads_to) in &folder.links {
        std::os::unix::fs::symlink(leads_to, target(name))?;
    }
    folder.files.iter().try_for_each(|name| copy_file(&format!("{}/{name}", folder.path), &target(name)))
}

/// Copies a file that everybody may read. In place of any other file, makes an empty one that
/// nobody may read.
fn copy_file(path: &str, target: &str) -> io::Result<()> {
    let source = BindSource::open(path)?;
    let found = std::fs::metadata(source.path())?;
    if found.is_file() && found.permissions().mode() & 0o004 != 0 {
        std::fs::copy(source.path(), target)?;
        return std::fs::set_permissions(target, Permissions::from_mode(found.permissions().mode() & 0o755));
    }
    std::fs::write(target, "")?;
    std::fs::set_permissions(target, Permissions::from_mode(0o000))
}

/// An empty directory of the skeleton, for an overlay that is never written to and so needs a
/// second layer. It lies above the folder: in all layers but the lowest the kernel looks for
/// attributes of its own, and fails if it may not read them.
const EMPTY_LAYER: &str = "/srv";

fn mount_read_only_overlay(lower: &str, folder: &BindSource, target: &str) -> io::Result<()> {
    let options = format!("lowerdir={lower}{EMPTY_LAYER}:{},userxattr", folder.path());
    let mut flags = libc::MS_RDONLY | libc::MS_NOSUID | libc::MS_NODEV;
    if folder.is_noexec()? {
        flags |= libc::MS_NOEXEC;
    }
    sys::mount("overlay", target, "overlay", flags, &options)
}

/// Sets a limit of the child's own namespaces through the sandbox's own `/proc`, which must be
/// mounted and not yet covered. In the host's, each name has an entry for every namespace of the
/// host, all in one hash chain, so a crowd of sandboxes would slow this down. A file that is not of
/// a `/proc` is refused, because writing to it would limit nothing.
fn limit_namespace(name: &str, value: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).open(format!("{ROOT}/proc/sys/{name}"))?;
    if rustix::fs::fstatfs(&file)?.f_type != rustix::fs::PROC_SUPER_MAGIC {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    file.write_all(value.as_bytes())
}

fn mount_devpts(target: &str, group: Option<u32>) -> io::Result<()> {
    let group = group.map(|gid| format!(",gid={gid}")).unwrap_or_default();
    let options = format!("newinstance,ptmxmode=0666,mode=0620,max=256{group}");
    sys::mount("devpts", target, "devpts", libc::MS_NOSUID | libc::MS_NOEXEC, &options)
}

fn mount_tmpfs(target: &str, size_mib: u64, mode: u32) -> io::Result<()> {
    let options = format!("size={size_mib}m,mode={mode:o}");
    sys::mount("tmpfs", target, "tmpfs", libc::MS_NOSUID | libc::MS_NODEV, &options)
}

/// Mounts one file system in memory at all targets. Its root is covered by the folder of the last one,
/// so nobody inside reaches it.
fn mount_memory(targets: &[String], size_mib: u64) -> io::Result<()> {
    let Some(last) = targets.last() else { return Ok(()) };
    mount_tmpfs(last, size_mib, 0o755)?;
    for (number, target) in targets.iter().enumerate() {
        let folder = format!("{last}/{number}");
        std::fs::create_dir(&folder)?;
        std::fs::set_permissions(&folder, Permissions::from_mode(0o1777))?;
        sys::mount(&folder, target, "", libc::MS_BIND, "")?;
    }
    Ok(())
}

/// Writes a file that everybody may read, whatever the umask.
fn write_file(target: &str, text: &str) -> io::Result<()> {
    std::fs::write(target, text)?;
    std::fs::set_permissions(target, std::fs::Permissions::from_mode(0o644))
}

fn mask(target: &str) -> io::Result<()> {
    match std::fs::symlink_metadata(target) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(found) if found.is_dir() => sys::mount(
            "tmpfs",
            target,
            "tmpfs",
            NO_PROGRAMS | libc::MS_RDONLY,
            "size=4k,nr_inodes=1,mode=555",
        ),
        Ok(_) => sys::mount("/dev/null", target, "", libc::MS_BIND, ""),
    }
}

/// Covers the entries of `/proc` except processes and those in `shown`. Links stay, because they
/// lead into the reading process. So do entries that neither group nor others may read: only the
/// host's root could. All directories are covered by the same empty one, because a file system for
/// each would take twice as long.
fn cover_proc(target: &str, shown: &[String], empty: Option<&str>) -> io::Result<()> {
    let mut covered: Option<String> = None;
    for entry in std::fs::read_dir(target)? {
        let entry = entry?;
        let name = entry.file_name().into_string().map_err(|_| io::ErrorKind::InvalidData)?;
        let is_process = name.bytes().all(|byte| byte.is_ascii_digit());
        if is_process || shown.contains(&name) || entry.file_type()?.is_symlink() {
            continue;
        }
        if entry.metadata()?.permissions().mode() & 0o044 == 0 {
            continue;
        }
        let path = format!("{target}/{name}");
        let is_folder = entry.file_type()?.is_dir();
        match (&covered, empty) {
            (Some(covered), _) if is_folder => sys::mount(covered, &path, "", libc::MS_BIND, "")?,
            (None, Some(empty)) if is_folder => cover_folder(empty, &path)?,
            _ => mask(&path)?,
        }
        if is_folder {
            covered.get_or_insert(path);
        }
    }
    Ok(())
}

fn cover_folder(empty: &str, path: &str) -> io::Result<()> {
    sys::mount(empty, path, "", libc::MS_BIND, "")?;
    sys::hold_mount(path, MountRestrictions { readonly: true, devices: false, recursive: false })
}

fn make_readonly(target: &str) -> io::Result<()> {
    match sys::mount(target, target, "", libc::MS_BIND | libc::MS_REC, "") {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(()) => {
            sys::hold_mount(target, MountRestrictions { readonly: true, devices: false, recursive: true })
        }
    }
}

/// The limit of [`Step::NoCoreDumps`].
pub(super) const NO_CORE_DUMPS: Rlimit = Rlimit { current: Some(1), maximum: Some(1) };

/// Sets the limit of core files. An ordinary user with a limit of 0 can't raise it; in that case
/// crashes at least write no files.
fn forbid_core_dumps() -> io::Result<()> {
    match getrlimit(Resource::Core).maximum {
        Some(0) => Ok(()),
        _ => Ok(setrlimit(Resource::Core, NO_CORE_DUMPS)?),
    }
}

fn drop_capabilities(keep: u64, become_id: Option<u32>) -> io::Result<()> {
    sys::drop_bounding(keep)?;
    if let Some(id) = become_id {
        sys::keep_capabilities()?;
        sys::become_id(id)?;
    }
    sys::hold_capabilities(keep)
}

/// The Landlock rights to make character and block devices. They are refused everywhere.
const MAKE_DEVICES: u64 = 1 << 6 | 1 << 11;
/// The Landlock right to move and link files between directories. Landlock refuses it unless it is
/// handled and allowed.
const REFER: u64 = 1 << 13;
/// Landlock's scopes for abstract sockets and signals, from ABI 6 on.
const SCOPES: u64 = 0b11;
