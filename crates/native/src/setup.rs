//! Which steps make a sandbox: computed from the checked spec and what is known of the host, without touching
//! anything. The order is the design's; every protection is a step, and a step that fails ends the create.

use eyot::{NetworkMode, SandboxPath, ValidSpec};

use crate::image::Image;
use crate::plan::{Bind, GUEST_ID, IdMap, Plan, Step, pack_filter};
use crate::seccomp;
use crate::users::runs_as_default;

/// What the plan depends on besides the spec.
pub(crate) struct Setup<'a> {
    pub spec: &'a ValidSpec,
    /// The canonical source of each of the spec's mounts, resolved once: a link that changes later changes nothing.
    pub sources: &'a [String],
    pub map: IdMap,
    pub image: &'a Image,
    /// The sandbox's directory on the host.
    pub directory: &'a str,
    /// The persistent workspace's directory on the host.
    pub workspace: Option<&'a str>,
    pub landlock_abi: u32,
    /// Process numbers can be limited per namespace (Linux 6.14).
    pub per_namespace_pids: bool,
    pub fail_at: Option<u32>,
}

/// The capabilities that a range's guest, and root inside it, hold in their own user namespace: Docker's default set
/// without raw sockets and device nodes.
pub(crate) const RANGE_CAPABILITIES: [(&str, u32); 12] = [
    ("CAP_CHOWN", 0),
    ("CAP_DAC_OVERRIDE", 1),
    ("CAP_FOWNER", 3),
    ("CAP_FSETID", 4),
    ("CAP_KILL", 5),
    ("CAP_SETGID", 6),
    ("CAP_SETUID", 7),
    ("CAP_SETPCAP", 8),
    ("CAP_NET_BIND_SERVICE", 10),
    ("CAP_SYS_CHROOT", 18),
    ("CAP_AUDIT_WRITE", 29),
    ("CAP_SETFCAP", 31),
];

/// [`RANGE_CAPABILITIES`] as a mask.
pub(crate) fn range_capability_mask() -> u64 {
    RANGE_CAPABILITIES.iter().fold(0, |mask, (_, bit)| mask | 1 << bit)
}

/// Limits of the sandbox's user namespace: what is used inside counts towards whoever made it, so that one sandbox
/// could use up all of its maker's inotify instances (128 by default); and no namespace is made inside.
const NAMESPACE_LIMITS: [(&str, u32); 2] = [("max_inotify_instances", 48), ("max_user_namespaces", 0)];

/// Process numbers that are the guest's own (its threads and reapers) beyond those that the workload may use. The
/// kernel takes no limit below 301.
const GUEST_PIDS: u32 = 320;
/// The kernel's own limit.
const MOST_PIDS: u32 = 1 << 22;

/// The device nodes that a sandbox has.
const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];
/// What is covered in `/proc`: what tells of the host beyond what programs need.
const MASKED: [&str; 15] = [
    "acpi",
    "asound",
    "cmdline",
    "config.gz",
    "interrupts",
    "iomem",
    "kallsyms",
    "kcore",
    "key-users",
    "keys",
    "latency_stats",
    "sched_debug",
    "scsi",
    "timer_list",
    "timer_stats",
];
/// What is read-only in `/proc`.
const READ_ONLY: [&str; 6] = ["bus", "fs", "irq", "mtrr", "sys", "sysrq-trigger"];
/// Half of the memory limit, or of the default of 2 GiB.
const DEFAULT_MEMORY_MIB: u64 = 2048;

impl Setup<'_> {
    /// The plan.
    pub(crate) fn plan(&self) -> Plan {
        let own_network = self.spec.spec().network != NetworkMode::Host;
        let mut steps = self.identity_and_root();
        steps.extend(self.proc());
        steps.extend(self.devices());
        steps.extend(self.folders());
        steps.push(Step::PivotRoot(ROOT.to_owned()));
        if self.spec.spec().security.readonly_rootfs {
            steps.push(Step::ReadOnlyRoot);
        }
        if own_network {
            steps.push(Step::Loopback);
        }
        steps.push(Step::HostName(self.spec.name().to_string()));
        steps.extend(self.confinement());
        Plan { map: self.map, own_network, steps, fail_at: self.fail_at }
    }

    fn is_range(&self) -> bool {
        matches!(self.map, IdMap::Range { .. })
    }

    fn identity_and_root(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        if let IdMap::Single { uid, gid } = self.map {
            steps.push(Step::MapSingle { uid, gid });
        }
        steps.push(Step::PrivateMounts);
        steps.push(Step::EnterSandboxDir(self.directory.to_owned()));
        if self.is_range() {
            steps.push(Step::BecomeInnerRoot);
        }
        steps.extend(
            NAMESPACE_LIMITS.iter().map(|(name, most)| Step::NamespaceLimit((*name).to_owned(), *most)),
        );
        if self.per_namespace_pids {
            let pids = self.spec.spec().limits.pids.unwrap_or(eyot::Limits::DEFAULT_PIDS);
            steps.push(Step::PidMax(
                u32::try_from(pids).unwrap_or(u32::MAX).saturating_add(GUEST_PIDS).min(MOST_PIDS),
            ));
        }
        steps.push(self.bind(&self.image.lower, "lower", true, true));
        steps.push(Step::Overlay { lower: vec!["lower".to_owned()], target: ROOT.to_owned() });
        for (source, target) in &self.image.binds {
            // Everybody may go there, inner root included.
            let (source, target) = (source.clone(), inside(target));
            steps.push(Step::Bind(Bind { source, target, recursive: true, readonly: true, ..PLAIN }));
        }
        steps.extend(self.image.masks.iter().map(|path| Step::Mask(inside(path))));
        steps
    }

    fn proc(&self) -> Vec<Step> {
        let mut steps = vec![Step::Proc(inside("/proc"))];
        steps.extend(MASKED.iter().map(|name| Step::Mask(inside(&format!("/proc/{name}")))));
        steps.extend(READ_ONLY.iter().map(|name| Step::ReadOnly(inside(&format!("/proc/{name}")))));
        steps
    }

    fn devices(&self) -> Vec<Step> {
        let device = |name: &&str| {
            let path = format!("/dev/{name}");
            let target = inside(&path);
            let fixed =
                Bind { source: path, target, recursive: false, readonly: false, device: true, ..PLAIN };
            Step::Bind(fixed)
        };
        let mut steps: Vec<Step> = DEVICES.iter().map(device).collect();
        let tty_group = self.is_range().then_some(5);
        steps.push(Step::DevPts(inside("/dev/pts"), tty_group));
        let memory_mib = self.spec.spec().limits.memory_mib.unwrap_or(DEFAULT_MEMORY_MIB);
        steps.push(Step::Tmpfs {
            target: inside("/dev/shm"),
            size_mib: (memory_mib / 2).max(1),
            mode: 0o1777,
        });
        steps.push(Step::Tmpfs { target: inside("/run"), size_mib: 64, mode: 0o1777 });
        steps
    }

    /// The workspace and the caller's mounts; and, below a read-only root, what stays writable.
    fn folders(&self) -> Vec<Step> {
        let mut steps = Vec::new();
        let workdir = inside(self.spec.workdir().as_str());
        if self.spec.spec().security.readonly_rootfs {
            for path in ["/home/user", "/tmp", "/var/tmp"].map(inside).into_iter().chain([workdir.clone()]) {
                steps.push(Step::Bind(Bind { source: path.clone(), target: path, ..PLAIN }));
            }
        }
        if let Some(workspace) = self.workspace {
            steps.push(self.bind(workspace, &workdir, false, true));
        }
        for (mount, source) in self.spec.spec().mounts.iter().zip(self.sources) {
            let idmapped = self.is_range() && (!mount.writable || runs_as_default(self.spec));
            let bind = self.bind(source, &inside(mount.target.as_str()), !mount.writable, idmapped);
            steps.push(bind);
        }
        steps
    }

    fn bind(&self, source: &str, target: &str, readonly: bool, idmapped: bool) -> Step {
        let taken_by_launcher = self.is_range();
        let (source, target) = (source.to_owned(), target.to_owned());
        let idmapped = idmapped && self.is_range();
        Step::Bind(Bind {
            source,
            target,
            recursive: !idmapped,
            readonly,
            device: false,
            idmapped,
            taken_by_launcher,
        })
    }

    fn confinement(&self) -> Vec<Step> {
        let range = self.is_range();
        let keep = if range { range_capability_mask() } else { 0 };
        let mut steps =
            vec![Step::NoNewPrivileges, Step::Capabilities { keep, become_id: range.then_some(GUEST_ID) }];
        if self.landlock_abi >= 2 {
            steps.push(Step::Landlock(self.landlock_abi));
        }
        steps.push(Step::Seccomp(pack_filter(seccomp::filter())));
        steps
    }
}

const PLAIN: Bind = Bind {
    source: String::new(),
    target: String::new(),
    recursive: false,
    readonly: false,
    device: false,
    idmapped: false,
    taken_by_launcher: false,
};

/// The name of the new root in the sandbox's directory.
const ROOT: &str = "root";

/// A path inside the sandbox as the child sees it before it pivots.
fn inside(path: &str) -> String {
    format!("{ROOT}{path}")
}

/// The directories that the plan mounts onto, and so must exist in the image or above it.
pub(crate) fn mount_points(spec: &ValidSpec) -> Vec<SandboxPath> {
    let fixed = ["/proc", "/dev/pts", "/dev/shm", "/run", "/tmp", "/var/tmp", "/home/user"];
    let fixed = fixed.iter().filter_map(|path| SandboxPath::parse(path).ok());
    fixed.chain([spec.workdir().clone()]).collect()
}

/// The files that the plan mounts onto.
pub(crate) fn device_files() -> impl Iterator<Item = String> {
    DEVICES.iter().map(|name| format!("dev/{name}"))
}
