//! The steps that make a sandbox. They are computed from the checked spec and the facts about the
//! host, without touching anything. Every protection is a step, and a step that fails ends the
//! create.

use std::io;
use std::path::{Path, PathBuf};

use eyot::linux_capability::{DOCKER_DEFAULT, MKNOD, NET_RAW, SETFCAP};
use eyot::{NetworkMode, SandboxPath, ValidSpec};

use crate::cgroup::{DEFAULT_MEMORY_MIB, GroupPlan};
use crate::disk_ids::DiskIds;
use crate::image::{Image, Lower, MountPoints, image_point, overlay_layers};
use crate::plan::{
    Bind, EMPTY_FOLDER, GUEST_ID, IdMap, IdRange, NEXT_ROOT, NEXT_WORK, OWN_DEVICES, Plan, ROOT, Step, WORK,
    cow_point, pack_filter, snapshot_point,
};
use crate::seccomp;
use crate::state::IdBlock;

/// The inputs of the plan.
pub(crate) struct Setup<'a> {
    pub spec: &'a ValidSpec,
    /// The canonical source of each mount in the spec. It is resolved once, so a link that changes
    /// later has no effect.
    pub sources: &'a [String],
    /// The overlays of the mounts with a copy on write, in the order of the spec.
    pub cow: &'a [CowOverlay],
    pub map: IdMap,
    /// The inner uid and gid that run commands unless a call names a user.
    pub user: (u32, u32),
    pub image: &'a Image,
    /// The sandbox's directory on the host.
    pub directory: &'a str,
    /// The persistent workspace's directory on the host.
    pub workspace: Option<&'a str>,
    pub landlock_abi: u32,
    /// The kernel can limit process numbers per namespace (Linux 6.14).
    pub per_namespace_pids: bool,
    /// The inner root may set the limits of its IPC namespace (Linux 6.9).
    pub own_ipc_limits: bool,
    /// The number of inotify watches that one user of the host may have.
    pub most_watches: u32,
    pub fail_at: Option<u32>,
    /// The file of the guest's program. `None`: the launcher has the program.
    pub guest_file: Option<&'a str>,
    /// The sandbox's entry into its control groups.
    pub groups: GroupPlan,
    /// The processors that this process may run on.
    pub processors: &'a [u32],
    /// The sandbox has a disk of its own.
    pub has_disk: bool,
}

/// The parts of the overlay of a mount with a copy on write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CowOverlay {
    pub key: String,
    /// The owner of the folder on the host.
    pub owner: (u32, u32),
    /// The layers that snapshots have of it, topmost first, with the host ids of whoever wrote it.
    pub snapshots: Vec<(String, Option<IdBlock>)>,
}

/// The mask of the capabilities that a range's guest, and root inside it, hold in their own user
/// namespace. It is Docker's default set without raw sockets, without device nodes, and without
/// file capabilities, which would stay on the host's disk.
pub(crate) const RANGE_CAPABILITIES: u64 = DOCKER_DEFAULT & !(NET_RAW | MKNOD | SETFCAP);

/// The limits of the sandbox's user namespace for each user inside. They leave some inotify
/// instances to the guest and, in an ordinary user's sandbox, to the caller (the host's default is
/// 128 per user). No namespace can be made inside.
const NAMESPACE_LIMITS: [(&str, u32); 2] = [("max_inotify_instances", 48), ("max_user_namespaces", 0)];

/// The divisor that gives an ordinary user's sandbox its part of the user's limit.
const PART_OF_A_USER: u32 = 4;

/// The number of process numbers for the guest itself (its threads and reapers), beyond those of
/// the workload. The kernel takes no limit below 301.
pub(crate) const GUEST_PIDS: u32 = 320;
/// The kernel's own limit of process numbers.
const MOST_PIDS: u32 = 1 << 22;

fn is_range(map: IdMap) -> bool {
    matches!(map, IdMap::Range(_))
}

fn bind(map: IdMap, source: &str, target: &str, readonly: bool, ids_in_a_range: DiskIds) -> Step {
    let taken_by_launcher = is_range(map);
    let (source, target) = (source.to_owned(), target.to_owned());
    // What is mounted below may be of a kind that takes no map of ids.
    let (ids, recursive) = if is_range(map) { (ids_in_a_range, false) } else { (DiskIds::Host, true) };
    Step::Bind(Bind { source, target, recursive, readonly, device: false, ids, taken_by_launcher })
}

/// Binds the layers to where the overlay takes them from, and mounts it at its upper directory. `has_points`: a layer of mount points
/// lies above those of the image.
fn layers(lower: &Lower, has_points: bool, map: IdMap, [target, work]: [&str; 2]) -> Vec<Step> {
    let mut steps = Vec::new();
    if !lower.snapshots.is_empty() {
        steps.push(Step::SnapshotPoints(u32::try_from(lower.snapshots.len()).unwrap_or(u32::MAX)));
    }
    for (place, snapshot) in lower.snapshots.iter().enumerate() {
        let ids = snapshot.ids.map_or(DiskIds::Host, |ids| DiskIds::Range(ids.range()));
        steps.push(bind(map, &snapshot.folder, &snapshot_point(place), true, ids));
    }
    steps.push(bind(map, &lower.folder, &image_point(lower), true, DiskIds::Inside));
    let layers = overlay_layers(lower, has_points);
    steps.push(Step::Overlay { lower: layers, target: target.to_owned(), work: work.to_owned() });
    steps
}

/// Computes the plan that puts an overlay over these layers in the place of the root of a living sandbox that has a range of ids.
pub(crate) fn new_root_plan(directory: &str, lower: &Lower, range: IdRange) -> Plan {
    let map = IdMap::Range(range);
    let mut steps = vec![
        Step::EnterUsers,
        Step::OwnMounts,
        Step::PrivateMounts,
        Step::EnterSandboxDir(directory.to_owned()),
        Step::BecomeInnerRoot,
    ];
    // An image of one layer has none of mount points.
    steps.extend(layers(lower, true, map, [NEXT_ROOT, NEXT_WORK]));
    steps.extend([Step::CloseRoot(NEXT_ROOT.to_owned()), Step::ReplaceRoot]);
    Plan { map, own_network: false, steps, fail_at: None }
}

/// Lists the device nodes of a sandbox.
fn devices() -> impl Iterator<Item = &'static str> {
    OWN_DEVICES.iter().map(|(name, ..)| *name)
}
/// The names in `/proc` that stay visible beside processes. Programs need them (`sys` and `sysvipc`
/// belong in part to the sandbox's namespaces), or they describe the kernel's build. All else is
/// covered, because it describes the host and other sandboxes: disks, processors, memory, locks and
/// groups.
const SHOWN: [&str; 15] = [
    "consoles",
    "cpuinfo",
    "devices",
    "dma",
    "execdomains",
    "filesystems",
    "loadavg",
    "meminfo",
    "misc",
    "stat",
    "sys",
    "sysvipc",
    "tty",
    "uptime",
    "version",
];
/// The capacity of a rebuilt folder of the host's programs, in MiB. Beside folders it holds few
/// files.
const REBUILT_MIB: u64 = 16;
/// The names in `/proc` that are read-only.
const READ_ONLY: [&str; 2] = ["sys", "sysrq-trigger"];

impl Setup<'_> {
    /// Computes the plan.
    pub(crate) fn plan(&self) -> Plan {
        let own_network = self.spec.spec().network != NetworkMode::Host;
        let mut steps = vec![Step::EnterGroups(self.groups.tasks)];
        steps.extend(self.processors());
        steps.extend(self.identity_and_root());
        steps.extend(self.proc());
        steps.extend(self.devices());
        steps.extend(self.folders());
        steps.push(Step::PivotRoot { root: ROOT.to_owned(), anchored: self.is_range() });
        if self.spec.spec().security.readonly_rootfs {
            steps.push(Step::ReadOnlyRoot);
        }
        if own_network {
            steps.push(Step::Loopback);
        }
        if self.spec.spec().network == NetworkMode::Egress {
            steps.push(Step::EgressSockets);
        }
        steps.push(Step::HostName(self.spec.hostname().to_string()));
        steps.extend(self.confinement());
        Plan { map: self.map, own_network, steps, fail_at: self.fail_at }
    }

    /// Chooses processors: as many as `cpus` asks for, rounded up, so that programs start as many
    /// threads as can run. The choice depends on the sandbox's id, so that many small sandboxes do
    /// not share one processor.
    fn processors(&self) -> Option<Step> {
        let count = self.spec.spec().limits.cpus?.ceil().max(1.0) as usize;
        let all = self.processors;
        let id = self.spec.id().as_str().bytes();
        let first = id.fold(0_usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(byte)));
        let numbers = all.iter().cycle().skip(first % all.len().max(1)).take(count.min(all.len()));
        (!all.is_empty()).then(|| Step::Processors(numbers.copied().collect()))
    }

    fn is_range(&self) -> bool {
        is_range(self.map)
    }

    fn identity_and_root(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        if let IdMap::Single { uid, gid } = self.map {
            steps.push(Step::MapSingle { uid, gid });
        }
        steps.push(Step::PrivateMounts);
        steps.extend(self.guest_file.map(|path| Step::GuestFile(path.to_owned())));
        steps.push(Step::EnterSandboxDir(self.directory.to_owned()));
        if self.has_disk {
            steps.push(Step::AttachDisk);
        }
        if self.is_range() {
            steps.push(Step::BecomeInnerRoot);
        }
        let has_points = self.image.mount_points == MountPoints::Above;
        steps.extend(layers(&self.image.lower, has_points, self.map, [ROOT, WORK]));
        steps.extend(self.programs());
        // Before whatever binds a device, a mask included.
        steps.extend(self.is_range().then_some(Step::OwnDevices));
        steps.extend(self.image.masks.iter().map(|path| Step::Mask(inside(path))));
        steps
    }

    fn programs(&self) -> Vec<Step> {
        let rebuilt = &self.image.rebuilt;
        let is_below = |path: &str| {
            rebuilt
                .iter()
                .any(|other| Path::new(path).ancestors().skip(1).any(|above| above == Path::new(&other.path)))
        };
        let topmost: Vec<String> = rebuilt
            .iter()
            .filter(|folder| !is_below(&folder.path))
            .map(|folder| inside(&folder.path))
            .collect();
        let in_memory =
            |target: &String| Step::Tmpfs { target: target.clone(), size_mib: REBUILT_MIB, mode: 0o755 };
        let mut steps: Vec<Step> = topmost.iter().map(in_memory).collect();
        steps.extend(rebuilt.iter().cloned().map(Step::Rebuild));
        steps.extend(self.image.programs.iter().cloned().map(Step::Programs));
        steps.extend(topmost.into_iter().map(Step::ReadOnlyMount));
        steps
    }

    /// Limits the user namespace, the process namespace and, in a range, the IPC namespace. A range's
    /// users are also limited together, by its account.
    fn namespace_limits(&self) -> Vec<Step> {
        let limit = |(name, most): (&str, u32)| Step::NamespaceLimit(name.to_owned(), most);
        let mut steps: Vec<Step> = NAMESPACE_LIMITS.into_iter().map(limit).collect();
        if !self.is_range() {
            steps.push(limit(("max_inotify_watches", self.most_watches / PART_OF_A_USER)));
        } else if self.own_ipc_limits {
            let set = |(name, value): (&str, String)| Step::IpcLimit(name.to_owned(), value);
            steps.extend(ipc_limits(self.memory_mib()).map(set));
        }
        if self.per_namespace_pids {
            let pids = self.spec.spec().limits.pids.unwrap_or(eyot::Limits::DEFAULT_PIDS);
            steps.push(Step::PidMax(
                u32::try_from(pids).unwrap_or(u32::MAX).saturating_add(GUEST_PIDS).min(MOST_PIDS),
            ));
        }
        steps
    }

    fn memory_mib(&self) -> u64 {
        self.spec.spec().limits.memory_mib.unwrap_or(DEFAULT_MEMORY_MIB)
    }

    /// Mounts `/proc`, sets limits through it, and only then covers it and makes it read-only.
    fn proc(&self) -> Vec<Step> {
        let mut steps = vec![Step::Proc(inside("/proc"))];
        steps.extend(self.namespace_limits());
        let shown = SHOWN.map(str::to_owned).to_vec();
        let empty = self.is_range().then(|| EMPTY_FOLDER.to_owned());
        steps.push(Step::CoverProc { target: inside("/proc"), shown, empty });
        steps.extend(READ_ONLY.iter().map(|name| Step::ReadOnly(inside(&format!("/proc/{name}")))));
        steps
    }

    fn devices(&self) -> Vec<Step> {
        let device = |name: &str| {
            let path = format!("/dev/{name}");
            let target = inside(&path);
            let fixed =
                Bind { source: path, target, recursive: false, readonly: false, device: true, ..PLAIN };
            Step::Bind(fixed)
        };
        let mut steps: Vec<Step> = devices().map(device).collect();
        let tty_group = self.is_range().then_some(5);
        steps.push(Step::DevPts(inside("/dev/pts"), tty_group));
        // What lies in memory belongs to no process that could be killed. It must leave the guest room, whatever is
        // written there.
        let size_mib = (self.memory_mib() / 2).max(1);
        steps.push(Step::Memory { targets: vec![inside("/dev/shm"), inside("/run")], size_mib });
        let files = naming_files(self.image.mount_points, self.spec);
        steps.extend(files.into_iter().map(|(path, text)| Step::File { target: inside(&path), text }));
        steps
    }

    /// Mounts the workspace and the caller's mounts and, over a read-only root, the folders that
    /// stay writable.
    fn folders(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        let workdir = inside(self.spec.workdir().as_str());
        if self.spec.spec().security.readonly_rootfs {
            for path in ["/home/user", "/tmp", "/var/tmp"].map(inside).into_iter().chain([workdir.clone()]) {
                steps.push(Step::Bind(Bind { source: path.clone(), target: path, ..PLAIN }));
            }
        }
        if let Some(workspace) = self.workspace {
            steps.push(self.bind(workspace, &workdir, false, DiskIds::Workspace));
        }
        steps.extend(self.cow_points());
        let (mut overlays, mut point) = (self.cow.iter(), 0);
        for (mount, source) in self.spec.spec().mounts.iter().zip(self.sources) {
            if mount.cow {
                let overlay = overlays.next();
                steps.extend(
                    overlay.into_iter().flat_map(|cow| self.copied(cow, source, &mount.target, &mut point)),
                );
                continue;
            }
            let (uid, gid) = self.user;
            let ids = if mount.writable { DiskIds::OneOwner { uid, gid } } else { DiskIds::Inside };
            steps.push(self.bind(source, &inside(mount.target.as_str()), !mount.writable, ids));
        }
        steps
    }

    fn cow_points(&self) -> Option<Step> {
        let layers: usize = self.cow.iter().map(|cow| cow.snapshots.len() + 1).sum();
        (layers > 0).then(|| Step::CowPoints(u32::try_from(layers).unwrap_or(u32::MAX)))
    }

    /// Binds the layers of a copied folder to the next mount points, and mounts the copy.
    fn copied(&self, cow: &CowOverlay, source: &str, target: &SandboxPath, point: &mut usize) -> Vec<Step> {
        let mut next = || {
            *point += 1;
            cow_point(*point - 1)
        };
        let (mut steps, mut lower) = (Vec::new(), Vec::new());
        for (folder, ids) in &cow.snapshots {
            let ids = ids.map_or(DiskIds::Host, |ids| DiskIds::Range(ids.range()));
            lower.push(next());
            steps.extend(lower.last().map(|point| self.bind(folder, point, true, ids)));
        }
        lower.push(next());
        let ids = DiskIds::Swapped { on_disk: cow.owner, inside: self.user };
        steps.extend(lower.last().map(|point| self.bind(source, point, true, ids)));
        steps.push(Step::CowOverlay { lower, key: cow.key.clone(), target: inside(target.as_str()) });
        steps
    }

    fn bind(&self, source: &str, target: &str, readonly: bool, ids_in_a_range: DiskIds) -> Step {
        bind(self.map, source, target, readonly, ids_in_a_range)
    }

    fn confinement(&self) -> Vec<Step> {
        let range = self.is_range();
        let keep = if range { RANGE_CAPABILITIES } else { 0 };
        let mut steps = vec![
            Step::NoCoreDumps,
            Step::NoNewPrivileges,
            Step::Capabilities { keep, become_id: range.then_some(GUEST_ID) },
        ];
        if self.landlock_abi >= 2 {
            steps.push(Step::Landlock(self.landlock_abi));
        }
        steps.push(Step::Seccomp(pack_filter(seccomp::filter())));
        steps
    }
}

/// Computes the limits of System V IPC. Its objects remain when no process uses them any more, so
/// like files in `/dev/shm` they must leave memory for the guest. Shared memory gets an eighth of
/// the memory limit, messages and semaphores a thirty-second each.
fn ipc_limits(memory_mib: u64) -> [(&'static str, String); 3] {
    const PAGES_PER_MIB: u64 = 256;
    // A queue of 16,384 bytes holds as many messages of one byte, which take 64 bytes each.
    let queues = (memory_mib / 32).clamp(1, 32_000);
    // A semaphore takes 128 bytes, and so does a set beside them.
    let (semaphores, sets) = (memory_mib * 256, (memory_mib * 16).min(32_000));
    [
        ("shmall", (memory_mib * PAGES_PER_MIB / 8).to_string()),
        ("msgmni", queues.to_string()),
        ("sem", format!("32000 {} 500 {sets}", semaphores.min(1_024_000_000))),
    ]
}

const PLAIN: Bind = Bind {
    source: String::new(),
    target: String::new(),
    recursive: false,
    readonly: false,
    device: false,
    ids: DiskIds::Host,
    taken_by_launcher: false,
};

/// The file that the skeleton's link `/etc/hosts` leads to. A file in memory takes a twentieth of
/// the time of one on the disk, and no directory.
pub(crate) const HOSTS: &str = "/run/hosts";
/// The file that the link `/etc/hostname` leads to, in the layer above an image.
const HOST_NAME: &str = "/run/hostname";

/// The links in the layer above an image that lead to files of each sandbox's own.
pub(crate) const FILES_OF_SKELETON: [(&str, &str); 2] = [("etc/hosts", HOSTS), ("etc/hostname", HOST_NAME)];

/// Lists the files in memory that name the sandbox, with their texts.
pub(crate) fn naming_files(mount_points: MountPoints, spec: &ValidSpec) -> Vec<(String, String)> {
    let hosts = (mount_points != MountPoints::Own).then(|| (HOSTS.to_owned(), hosts(spec)));
    let name = (mount_points == MountPoints::Above).then(|| (HOST_NAME.to_owned(), host_name(spec)));
    hosts.into_iter().chain(name).collect()
}

/// Returns the text of a sandbox's `/etc/hostname`.
pub(crate) fn host_name(spec: &ValidSpec) -> String {
    format!("{}\n", spec.hostname())
}

/// Returns the text of a sandbox's `/etc/hosts`, which resolves its own name.
pub(crate) fn hosts(spec: &ValidSpec) -> String {
    format!("127.0.0.1 localhost {}\n::1 localhost\n", spec.hostname())
}

/// Returns the path by which the child reaches an inner path before it pivots.
fn inside(path: &str) -> String {
    format!("{ROOT}{path}")
}

/// Lists the targets of a plan's mounts in the sandbox's own files, relative to its root, each with
/// whether it is a directory. Targets below another mount of the plan are left out, because they
/// are not in the sandbox's files.
pub(crate) fn mount_targets(plan: &Plan) -> io::Result<Vec<(PathBuf, bool)>> {
    let mut targets: Vec<(PathBuf, bool)> = Vec::new();
    for step in &plan.steps {
        let (target, is_dir) = match step {
            Step::Bind(bind) if bind.device => (bind.target.clone(), false),
            Step::Bind(bind) if bind.source.starts_with('/') => {
                (bind.target.clone(), std::fs::metadata(&bind.source)?.is_dir())
            }
            Step::Programs(path) => (inside(path), true),
            Step::Bind(Bind { target, .. })
            | Step::CowOverlay { target, .. }
            | Step::Proc(target)
            | Step::DevPts(target, _)
            | Step::Tmpfs { target, .. } => (target.clone(), true),
            Step::Memory { targets: folders, .. } => {
                folders.iter().for_each(|folder| add_target(&mut targets, folder, true));
                continue;
            }
            _ => continue,
        };
        add_target(&mut targets, &target, is_dir);
    }
    Ok(targets)
}

fn add_target(targets: &mut Vec<(PathBuf, bool)>, target: &str, is_dir: bool) {
    let Some(path) = target.strip_prefix(ROOT).and_then(|path| path.strip_prefix('/')) else { return };
    let path = PathBuf::from(path);
    if !targets.iter().any(|(above, _)| path.starts_with(above)) {
        targets.push((path, is_dir));
    }
}

/// Lists the directories that the plan mounts onto. They must exist in the image or above it.
pub(crate) fn mount_points(spec: &ValidSpec) -> Vec<SandboxPath> {
    let fixed = ["/proc", "/dev/pts", "/dev/shm", "/run", "/tmp", "/var/tmp", "/home/user"];
    let fixed = fixed.iter().filter_map(|path| SandboxPath::parse(path).ok());
    fixed.chain([spec.workdir().clone()]).collect()
}

/// Lists the files that the plan mounts onto.
pub(crate) fn device_files() -> impl Iterator<Item = String> {
    devices().map(|name| format!("dev/{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::Lower;
    use crate::plan::IdRange;
    use eyot::SandboxSpec;
    use eyot_image::RunConfig;

    const SINGLE: IdMap = IdMap::Single { uid: 501, gid: 20 };
    const RANGE: IdMap = IdMap::Range(IdRange { base: 0x7000_0000, shift: 0 });

    fn plan(map: IdMap, change: impl FnOnce(&mut SandboxSpec)) -> Plan {
        let mut spec = SandboxSpec::default();
        change(&mut spec);
        let spec = spec.validate().unwrap();
        let sources = vec!["/srv".to_owned(); spec.spec().mounts.len()];
        let image = Image {
            name: "host".into(),
            lower: Lower::one("/layer"),
            run: RunConfig::default(),
            programs: vec!["/usr".into()],
            rebuilt: Vec::new(),
            masks: vec!["/opt/secret".into()],
            mount_points: MountPoints::Skeleton,
        };
        let setup = Setup {
            spec: &spec,
            map,
            user: (0, 7),
            image: &image,
            directory: "/state/sandboxes/x",
            workspace: None,
            sources: &sources,
            cow: &[],
            landlock_abi: 7,
            per_namespace_pids: true,
            own_ipc_limits: true,
            most_watches: 8192,
            fail_at: None,
            guest_file: Some("/state/programs/guest"),
            groups: GroupPlan::default(),
            processors: &[0, 1, 2, 3],
            has_disk: true,
        };
        setup.plan()
    }

    fn position(plan: &Plan, wanted: impl Fn(&Step) -> bool) -> usize {
        plan.steps.iter().position(wanted).expect("the plan has the step")
    }

    #[test]
    fn the_filter_is_the_last_step_and_comes_after_every_other_protection() {
        for map in [SINGLE, RANGE] {
            let plan = plan(map, |_| {});
            let last = plan.steps.len() - 1;
            assert_eq!(position(&plan, |step| matches!(step, Step::Seccomp(_))), last);
            let pivot = position(&plan, |step| matches!(step, Step::PivotRoot { .. }));
            let privileges = position(&plan, |step| *step == Step::NoNewPrivileges);
            let capabilities = position(&plan, |step| matches!(step, Step::Capabilities { .. }));
            let landlock = position(&plan, |step| matches!(step, Step::Landlock(7)));
            assert!(pivot < privileges && privileges < capabilities && capabilities < landlock);
        }
    }

    #[test]
    fn everything_is_mounted_before_the_root_is_left_and_after_mounts_are_private() {
        let plan = plan(RANGE, |_| {});
        let private = position(&plan, |step| *step == Step::PrivateMounts);
        let pivot = position(&plan, |step| matches!(step, Step::PivotRoot { .. }));
        for (index, step) in plan.steps.iter().enumerate() {
            let mounts = matches!(
                step,
                Step::Bind(_)
                    | Step::Programs(_)
                    | Step::OwnDevices
                    | Step::Overlay { .. }
                    | Step::Proc(_)
                    | Step::Mask(_)
                    | Step::Tmpfs { .. }
                    | Step::Memory { .. }
                    | Step::DevPts(..)
            );
            assert!(!mounts || (private < index && index < pivot), "{step:?}");
        }
    }

    #[test]
    fn the_guests_program_is_mounted_while_the_host_is_in_sight_and_before_rights_are_dropped() {
        for map in [SINGLE, RANGE] {
            let plan = plan(map, |_| {});
            let program = position(&plan, |step| matches!(step, Step::GuestFile(_)));
            assert!(position(&plan, |step| *step == Step::PrivateMounts) < program);
            assert!(program < position(&plan, |step| matches!(step, Step::PivotRoot { .. })));
            assert!(program < position(&plan, |step| matches!(step, Step::Capabilities { .. })));
        }
    }

    #[test]
    fn a_disk_is_attached_once_mounts_are_private_and_before_anything_is_mounted_on_it() {
        let plan = plan(RANGE, |_| {});
        let disk = position(&plan, |step| *step == Step::AttachDisk);
        assert!(position(&plan, |step| *step == Step::PrivateMounts) < disk);
        assert!(position(&plan, |step| matches!(step, Step::EnterSandboxDir(_))) < disk);
        assert!(disk < position(&plan, |step| matches!(step, Step::Overlay { .. })));
        assert!(disk < position(&plan, |step| *step == Step::BecomeInnerRoot));
    }

    #[test]
    fn an_ordinary_user_is_mapped_alone_and_keeps_no_capability() {
        let plan = plan(SINGLE, |_| {});
        let mapped = Step::MapSingle { uid: 501, gid: 20 };
        assert_eq!(plan.steps[..2], [Step::EnterGroups(0), mapped]);
        assert!(plan.steps.contains(&Step::Capabilities { keep: 0, become_id: None }));
        assert!(!plan.steps.contains(&Step::BecomeInnerRoot));
    }

    #[test]
    fn a_range_gets_a_guest_of_its_own_id_and_docker_like_capabilities_at_most() {
        let plan = plan(RANGE, |_| {});
        let keep = RANGE_CAPABILITIES;
        assert!(plan.steps.contains(&Step::Capabilities { keep, become_id: Some(GUEST_ID) }));
        let dangerous = [12, 13, 16, 17, 19, 21, 23, 24, 25, 27, 31, 32, 33, 38, 39, 40];
        assert!(dangerous.iter().all(|bit| keep & (1_u64 << bit) == 0), "{keep:x}");
    }

    #[test]
    fn a_writable_mount_has_one_owner_on_disk_whatever_the_user_is_called() {
        let ids = |map: IdMap, writable| {
            let target = SandboxPath::parse("/mnt/x").unwrap();
            let mount = eyot::Mount { source: "/srv".into(), target, writable, cow: false };
            let plan = plan(map, |spec| (spec.mounts, spec.user) = (vec![mount], Some("1000".to_owned())));
            plan.steps.iter().find_map(|step| match step {
                Step::Bind(bind) if bind.source == "/srv" => Some(bind.ids),
                _ => None,
            })
        };
        assert_eq!(ids(RANGE, true), Some(DiskIds::OneOwner { uid: 0, gid: 7 }));
        assert_eq!(ids(RANGE, false), Some(DiskIds::Inside));
        assert_eq!(ids(SINGLE, true), Some(DiskIds::Host));
    }

    #[test]
    fn no_bind_but_a_device_or_a_writable_mount_can_be_written_to_or_has_devices() {
        let plan = plan(SINGLE, |_| {});
        for step in &plan.steps {
            if let Step::Bind(bind) = step {
                assert!(bind.readonly || bind.device, "{bind:?}");
            }
        }
    }

    #[test]
    fn the_network_is_its_own_with_loopback_up_unless_it_is_the_hosts() {
        let own = plan(SINGLE, |_| {});
        assert!(own.own_network && own.steps.contains(&Step::Loopback));
        let shared = plan(SINGLE, |spec| spec.network = NetworkMode::Host);
        assert!(!shared.own_network && !shared.steps.contains(&Step::Loopback));
    }

    #[test]
    fn the_egress_sockets_are_made_once_loopback_is_up_and_while_there_are_capabilities() {
        for map in [SINGLE, RANGE] {
            let plan = plan(map, |spec| spec.network = NetworkMode::Egress);
            let sockets = position(&plan, |step| *step == Step::EgressSockets);
            assert!(plan.own_network && position(&plan, |step| *step == Step::Loopback) < sockets);
            assert!(sockets < position(&plan, |step| matches!(step, Step::Capabilities { .. })));
        }
        assert!(!plan(SINGLE, |_| {}).steps.contains(&Step::EgressSockets));
    }

    #[test]
    fn a_read_only_root_is_a_step_of_its_own() {
        let plan = plan(SINGLE, |spec| spec.security.readonly_rootfs = true);
        assert!(plan.steps.contains(&Step::ReadOnlyRoot));
    }

    #[test]
    fn what_is_written_to_memory_leaves_room_for_the_guest() {
        for memory_mib in [16, 64, 2048] {
            let plan = plan(SINGLE, |spec| spec.limits.memory_mib = Some(memory_mib));
            let sizes = plan.steps.iter().map(|step| match step {
                Step::Tmpfs { size_mib, .. } | Step::Memory { size_mib, .. } => *size_mib,
                _ => 0,
            });
            assert!(sizes.sum::<u64>() <= memory_mib / 2, "{memory_mib}");
        }
    }

    #[test]
    fn what_system_v_ipc_keeps_leaves_room_for_the_guest() {
        for memory_mib in [16, 64, 2048] {
            let plan = plan(RANGE, |spec| spec.limits.memory_mib = Some(memory_mib));
            let pages = plan.steps.iter().find_map(|step| match step {
                Step::IpcLimit(name, value) if name == "shmall" => value.parse::<u64>().ok(),
                _ => None,
            });
            assert_eq!(pages, Some((memory_mib << 20) / 8 / 4096), "{memory_mib}");
        }
    }

    #[test]
    fn an_ordinary_users_sandbox_leaves_the_user_most_inotify_watches() {
        let plan = plan(SINGLE, |_| {});
        assert!(plan.steps.contains(&Step::NamespaceLimit("max_inotify_watches".into(), 2048)));
        assert!(!plan.steps.iter().any(|step| matches!(step, Step::IpcLimit(..))));
    }

    #[test]
    fn every_limit_of_a_namespace_is_set_through_the_sandboxs_own_proc_while_it_can_be_written() {
        for (map, expected) in [(SINGLE, 4), (RANGE, 6)] {
            let plan = plan(map, |_| {});
            let mounted = position(&plan, |step| *step == Step::Proc(inside("/proc")));
            let covered = position(&plan, |step| matches!(step, Step::CoverProc { .. }));
            let sealed = position(&plan, |step| *step == Step::ReadOnly(inside("/proc/sys")));
            let is_limit = |step: &&Step| {
                matches!(step, Step::NamespaceLimit(..) | Step::IpcLimit(..) | Step::PidMax(_))
            };
            assert_eq!(plan.steps[mounted..covered].iter().filter(is_limit).count(), expected);
            assert_eq!(plan.steps.iter().filter(is_limit).count(), expected);
            assert!(covered < sealed);
        }
    }

    #[test]
    fn a_sandbox_is_in_its_groups_before_anything_else_happens() {
        for map in [SINGLE, RANGE] {
            let plan = plan(map, |spec| spec.limits.cpus = Some(1.0));
            assert_eq!(position(&plan, |step| matches!(step, Step::EnterGroups(_))), 0);
        }
    }

    #[test]
    fn a_sandbox_has_as_many_processors_as_it_may_use_and_all_without_a_limit() {
        let chosen = |cpus: Option<f64>| {
            let plan = plan(SINGLE, |spec| spec.limits.cpus = cpus);
            plan.steps.iter().find_map(|step| match step {
                Step::Processors(numbers) => Some(numbers.len()),
                _ => None,
            })
        };
        assert_eq!([None, Some(0.5), Some(1.5), Some(64.0)].map(chosen), [None, Some(1), Some(2), Some(4)]);
    }

    #[test]
    fn no_step_tells_the_state_folder_to_the_kernels_list_of_mounts() {
        let plan = plan(RANGE, |_| {});
        for step in &plan.steps {
            if let Step::Overlay { lower, target, .. } = step {
                assert!(lower.iter().chain([target]).all(|name| !name.contains("state")), "{step:?}");
            }
        }
    }
}
