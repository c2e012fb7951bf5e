//! The plan of one sandbox, as data. The provider computes a [`Plan`] (pure, tested without
//! privileges), and the launcher carries it out step by step. The first step that fails ends the
//! create, and the error names it.

use minicbor::{Decode, Encode};

use crate::disk_ids::DiskIds;
use crate::seccomp::Instruction;

/// The map between host ids and inner ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum IdMap {
    /// The caller's uid and gid are the inner user's. Nothing else is mapped.
    #[n(0)]
    Single {
        /// The caller's uid on the host.
        #[n(0)]
        uid: u32,
        /// The caller's gid on the host.
        #[n(1)]
        gid: u32,
    },
    /// The inner ids 0–65,535 are host ids that no other sandbox has.
    #[n(1)]
    Range(#[n(0)] IdRange),
}

/// The host ids of a sandbox: a block of [`RANGE_LEN`], entered at `shift`. Behind the block's last
/// id comes its first.
///
/// The kernel keeps the users of all namespaces in 128 chains, chosen by the low bits of their host
/// ids. Blocks begin at multiples of 65,536, so without a shift the user 1000 of every sandbox
/// would be in one chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Encode, Decode)]
pub struct IdRange {
    /// The first host id of the block.
    #[n(0)]
    pub base: u32,
    /// The distance of inner id 0 from `base`, below [`RANGE_LEN`].
    #[n(1)]
    pub shift: u32,
}

/// A run of inner ids that follow one another on the host, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdRun {
    /// The first inner id.
    pub inside: u32,
    /// The first host id.
    pub host: u32,
    /// The number of ids.
    pub count: u32,
}

impl IdRange {
    /// Returns the host id of an inner id.
    pub fn host_id(self, inside: u32) -> u32 {
        self.base + (inside + self.shift) % RANGE_LEN
    }

    /// Returns the inner id of a host id; `None` if it is not of this range.
    pub fn inner_id(self, host: u32) -> Option<u32> {
        let at = host.checked_sub(self.base).filter(|at| *at < RANGE_LEN)?;
        Some((at + RANGE_LEN - self.shift) % RANGE_LEN)
    }

    /// Returns the runs that make up the range.
    pub fn runs(self) -> impl Iterator<Item = IdRun> {
        let Self { base, shift } = self;
        let wrapped = RANGE_LEN - shift;
        let runs = [
            IdRun { inside: 0, host: base + shift, count: wrapped },
            IdRun { inside: wrapped, host: base, count: shift },
        ];
        runs.into_iter().filter(|run| run.count > 0)
    }
}

/// The inner uid and gid of the default user, `user`.
pub const USER_ID: u32 = 1000;
/// The guest's own inner uid and gid in a range. No user of an image has it, so no process inside
/// may signal the guest.
pub const GUEST_ID: u32 = 65_533;
/// The inner uid and gid that the host's egress program runs as in a range. No process inside and
/// no user of the host has it.
#[cfg(feature = "provider")]
pub const EGRESS_ID: u32 = 65_532;
/// The number of ids in a range.
pub const RANGE_LEN: u32 = 65_536;

/// The mount point of the new root: the sandbox's own upper directory, which needs no other name
/// once it is in use. A separate directory would have to be made and removed with every sandbox.
pub(crate) const ROOT: &str = "upper";
/// The mount point of the layer, or of the folder of all layers, from which the overlay takes it.
/// Every host has this directory, and the child does not need it in its own mount namespace.
pub(crate) const LOWER: &str = "/sys";

/// Returns the mount point of what [`LOWER`] is for, in a sandbox over snapshots: there [`LOWER`] is a folder in memory,
/// which has a mount point for each snapshot besides.
pub(crate) fn lower_beside_snapshots() -> String {
    format!("{LOWER}/image")
}

/// Returns the mount point of a snapshot, by its place: 0 is the topmost.
pub(crate) fn snapshot_point(place: usize) -> String {
    format!("{LOWER}/{place}")
}

/// The directory of the mount points of the layers of copied folders.
pub(crate) const COW_POINTS: &str = "c";

/// Returns the mount point of a layer of copied folders, by its number.
pub(crate) fn cow_point(number: usize) -> String {
    format!("{COW_POINTS}/{number}")
}

/// Returns the options of the overlay of a copied folder.
pub(crate) fn cow_options(lower: &[String], key: &str) -> String {
    format!("lowerdir={},upperdir=cow/{key},workdir=cow-work/{key},userxattr,volatile", lower.join(":"))
}

/// The directory of the kernel's own for the root's overlay.
pub(crate) const WORK: &str = "work";
/// The same two directories of an overlay that is to take the place of a living sandbox's.
pub(crate) const NEXT_ROOT: &str = "upper.next";
/// See [`NEXT_ROOT`].
pub(crate) const NEXT_WORK: &str = "work.next";

/// Returns the options of the sandbox's overlay over these layers. With an index, a layer that another overlay still has above its
/// layers would be refused: see [`Step::ReplaceRoot`].
pub(crate) fn overlay_options(lower: &[String], upper: &str, work: &str) -> String {
    format!("lowerdir={},upperdir={upper},workdir={work},userxattr,volatile,index=off", lower.join(":"))
}

/// The device nodes of a sandbox, by name, major and minor number.
pub(crate) const OWN_DEVICES: [(&str, u32, u32); 6] =
    [("null", 1, 3), ("zero", 1, 5), ("full", 1, 7), ("random", 1, 8), ("urandom", 1, 9), ("tty", 5, 0)];

/// The name of an empty folder beside the device nodes, which nobody may write to.
pub(crate) const EMPTY_NAME: &str = "empty";
/// The path of the empty folder once the nodes are attached.
pub(crate) const EMPTY_FOLDER: &str = "/dev/empty";

/// The name of another empty folder there, onto which the new root is moved: see [`Step::PivotRoot`].
pub(crate) const ANCHORED_NAME: &str = "root";
/// The folder of the device nodes, which is the anchor of the new root.
pub(crate) const ANCHOR: &str = "/dev";

/// A folder of the host's programs that is rebuilt in memory, because the kernel does not allow to
/// show it alone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Encode, Decode)]
pub struct RebuiltFolder {
    /// The folder, on the host and inside.
    #[n(0)]
    pub path: String,
    /// The names of the folders in it. They are made empty.
    #[n(1)]
    pub folders: Vec<String>,
    /// The names of the links in it, with their targets.
    #[n(2)]
    pub links: Vec<(String, String)>,
    /// The names of the files in it. They are copied.
    #[n(3)]
    pub files: Vec<String>,
}

/// The host user that the kernel charges for everything that a sandbox with a range uses, whichever
/// user inside uses it. No other sandbox has it, no process runs as it, and no id inside is mapped
/// to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Account {
    /// The user's id on the host.
    #[n(0)]
    pub uid: u32,
    /// The largest number of processes and threads of all users inside together.
    #[n(1)]
    pub processes: u64,
}

/// One step of the child's set-up, in the order of the plan.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Step {
    /// Maps the caller to the inner user. (A range is mapped by the launcher, before the first step.)
    #[n(0)]
    MapSingle {
        /// The caller's uid on the host.
        #[n(0)]
        uid: u32,
        /// The caller's gid on the host.
        #[n(1)]
        gid: u32,
    },
    /// Becomes inner root without other groups. Mounts and files that are made from here on belong
    /// to the range.
    #[n(1)]
    BecomeInnerRoot,
    /// Makes all later mounts invisible outside.
    #[n(2)]
    PrivateMounts,
    /// Enters the sandbox's directory. Later relative paths start there, and are printed without
    /// the state folder.
    #[n(3)]
    EnterSandboxDir(#[n(0)] String),
    /// Attaches the disk that came with the plan over the sandbox's directory, and enters it. Later
    /// relative paths are on the disk.
    #[n(41)]
    AttachDisk,
    /// Takes the guest's program from this file of the host through a read-only mount of the child's
    /// own, from which it is executed at the end. Without this step it is executed from the
    /// descriptor that the launcher has.
    #[n(48)]
    GuestFile(#[n(0)] String),
    /// Makes a host path appear at a target below the new root (or at a name in the sandbox's directory).
    #[n(4)]
    Bind(#[n(0)] Bind),
    /// Makes the mount points of the layer and of this many snapshots above it, in memory.
    #[n(50)]
    SnapshotPoints(#[n(0)] u32),
    /// Makes this many mount points of the layers of copies of folders, in memory.
    #[n(51)]
    CowPoints(#[n(0)] u32),
    /// Mounts a copy on write of a folder. Names are relative to the sandbox's directory.
    #[n(52)]
    CowOverlay {
        /// The read-only layers, topmost first; the folder of the host is the last.
        #[n(0)]
        lower: Vec<String>,
        /// The name of its directories.
        #[n(1)]
        key: String,
        /// The mount point.
        #[n(2)]
        target: String,
    },
    /// Mounts the root file system: read-only layers below, the sandbox's own directory above.
    /// Names are relative to the sandbox's directory.
    #[n(5)]
    Overlay {
        /// The read-only layers, topmost first.
        #[n(0)]
        lower: Vec<String>,
        /// The upper directory, which is the mount point, too.
        #[n(1)]
        target: String,
        /// The directory of the kernel's own.
        #[n(2)]
        work: String,
    },
    /// Shows a folder of the host's programs read-only through an overlay of the sandbox's own, so that it shares no
    /// inode with the host or with another sandbox.
    #[n(42)]
    Programs(#[n(0)] String),
    /// Rebuilds a folder of the host's programs in memory, with links and copies of files.
    #[n(46)]
    Rebuild(#[n(0)] RebuiltFolder),
    /// Makes this mount read-only, but not the mounts below it.
    #[n(47)]
    ReadOnlyMount(#[n(0)] String),
    /// Attaches device nodes of the sandbox's own over the host's. The launcher has made them.
    #[n(43)]
    OwnDevices,
    /// Mounts a new `/proc` for the new process namespace.
    #[n(6)]
    Proc(#[n(0)] String),
    /// Mounts new pseudo-terminals. They belong to this group, if one is given.
    #[n(7)]
    DevPts(#[n(0)] String, #[n(1)] Option<u32>),
    /// Mounts a file system in memory.
    #[n(8)]
    Tmpfs {
        /// The mount point.
        #[n(0)]
        target: String,
        /// The capacity, in MiB.
        #[n(1)]
        size_mib: u64,
        /// The permission bits of its top directory.
        #[n(2)]
        mode: u32,
    },
    /// Writes a small file that everybody may read.
    #[n(30)]
    File {
        /// The path.
        #[n(0)]
        target: String,
        /// The text.
        #[n(1)]
        text: String,
    },
    /// Covers a file with `/dev/null`, or a directory with an empty one. Does nothing if the path
    /// does not exist.
    #[n(9)]
    Mask(#[n(0)] String),
    /// Covers everything in a new `/proc` except processes and these names, whatever the kernel and
    /// its modules put there.
    #[n(45)]
    CoverProc {
        /// The mount point of the `/proc`.
        #[n(0)]
        target: String,
        /// The names that stay visible.
        #[n(1)]
        shown: Vec<String>,
        /// An empty folder, which covers folders. `None`: one is made in memory.
        #[n(2)]
        empty: Option<String>,
    },
    /// Mounts one file system in memory at all of these targets, each with a folder of its own that
    /// everybody may write to. Together they hold this many MiB. The kernel pays for each file system
    /// with every sandbox that lives.
    #[n(49)]
    Memory {
        /// The mount points.
        #[n(0)]
        targets: Vec<String>,
        /// The capacity, in MiB.
        #[n(1)]
        size_mib: u64,
    },
    /// Makes a directory or a file below the new root read-only. Does nothing if the path does not
    /// exist.
    #[n(10)]
    ReadOnly(#[n(0)] String),
    /// Makes the new root `/`, and lets go of the host's.
    #[n(11)]
    PivotRoot {
        /// The new root.
        #[n(0)]
        root: String,
        /// The new root is moved below [`ANCHOR`], which becomes the top of the mount namespace, and is entered. So another root
        /// can take its place while the guest lives ([`Step::ReplaceRoot`]), and the rights that Landlock grants below the
        /// anchor hold below both.
        #[n(1)]
        anchored: bool,
    },
    /// Enters the user namespace of a living sandbox, which came with the plan, with every right there.
    #[n(53)]
    EnterUsers,
    /// Makes a mount namespace for these steps alone.
    #[n(54)]
    OwnMounts,
    /// Takes the new root of a living sandbox along into its mount namespace, which came with the plan, and makes the present root
    /// read-only, for good. Fails while a file of that is open for writing, and if another root can't take its place.
    #[n(55)]
    CloseRoot(#[n(0)] String),
    /// Puts the new root in the place of the closed one, and moves the mounts to the same places. From here on, nothing can be taken
    /// back.
    #[n(56)]
    ReplaceRoot,
    /// Makes the root file system read-only. Mounts below it stay writable.
    #[n(12)]
    ReadOnlyRoot,
    /// Brings up the loopback interface.
    #[n(13)]
    Loopback,
    /// Makes the listeners of the network `egress` in the new network namespace, and sends them
    /// over the socket that came with the plan.
    #[n(40)]
    EgressSockets,
    /// Sets the host name.
    #[n(14)]
    HostName(#[n(0)] String),
    /// Forbids exec to gain privileges.
    #[n(15)]
    NoNewPrivileges,
    /// Forbids core dumps, both the file and the start of the host's program for them, by a limit
    /// of one byte. The kernel writes no file that short, and takes exactly this limit as a sign to
    /// start no program (fs/coredump.c). A limit of 0 would forbid the file alone.
    #[n(44)]
    NoCoreDumps,
    /// Keeps only these capabilities. In a range, also becomes the guest's user.
    #[n(16)]
    Capabilities {
        /// The mask of the capabilities to keep.
        #[n(0)]
        keep: u64,
        /// The id to become first; `None`: none.
        #[n(1)]
        become_id: Option<u32>,
    },
    /// Restricts by Landlock, as far as this version of its ABI can.
    #[n(17)]
    Landlock(#[n(0)] u32),
    /// Sets one of the limits of the new user namespace (`sys/user/…` in the sandbox's own `/proc`,
    /// which must be mounted; so it is for the next two).
    #[n(19)]
    NamespaceLimit(#[n(0)] String, #[n(1)] u32),
    /// Sets one of the limits of the new IPC namespace (`sys/kernel/…`).
    #[n(23)]
    IpcLimit(#[n(0)] String, #[n(1)] String),
    /// Limits the process numbers in the new process namespace, for all users together.
    /// (`RLIMIT_NPROC` counts by user, and an inner root has many.)
    #[n(20)]
    PidMax(#[n(0)] u32),
    /// Enters this many v1 control groups, whose files came with the plan. Then makes a control
    /// group namespace, so that these groups (and the v2 group that the sandbox was born into) are
    /// the top inside.
    #[n(21)]
    EnterGroups(#[n(0)] u32),
    /// Restricts the sandbox to these processors, by number.
    #[n(22)]
    Processors(#[n(0)] Vec<u32>),
    /// Installs the seccomp filter.
    #[n(18)]
    Seccomp(#[n(0)] Vec<u64>),
}

/// A host path that is made visible inside.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Bind {
    /// The path on the host.
    #[n(0)]
    pub source: String,
    /// The path below the new root, or a name in the sandbox's directory.
    #[n(1)]
    pub target: String,
    /// Mounts below the source are included.
    #[n(2)]
    pub recursive: bool,
    /// The bind is read-only.
    #[n(3)]
    pub readonly: bool,
    /// The source is a device node. Every other bind gets `nodev`.
    #[n(4)]
    pub device: bool,
    /// The ids inside of the owners on disk.
    #[n(5)]
    pub ids: DiskIds,
    /// In a range: the launcher copies the mount with the host's rights, because the child, as
    /// inner root, may not reach the source.
    #[n(6)]
    pub taken_by_launcher: bool,
}

/// Everything the launcher needs to make one sandbox, or to replace the root of a living one.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Plan {
    /// The map between host ids and inner ids.
    #[n(0)]
    pub map: IdMap,
    /// The sandbox gets a network namespace of its own.
    #[n(1)]
    pub own_network: bool,
    /// The steps of the child, in order.
    #[n(2)]
    pub steps: Vec<Step>,
    /// The index of a step that fails before it is tried: tests use it to show that a create fails
    /// closed.
    #[n(3)]
    pub fail_at: Option<u32>,
}

impl Plan {
    /// Tells whether the plan is about a living sandbox, and so ends without a guest.
    pub(crate) fn is_of_living(&self) -> bool {
        matches!(self.steps.last(), Some(Step::ReplaceRoot))
    }

    /// Has the step of this name fail before it is tried. Returns whether there is one.
    #[cfg(feature = "provider")]
    pub(crate) fn force_failure(&mut self, name: &str) -> bool {
        let index = self.steps.iter().position(|step| step.name() == name);
        self.fail_at = index.and_then(|index| u32::try_from(index).ok());
        self.fail_at.is_some()
    }
}

impl Step {
    /// Returns the step's name. Errors and tests use it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::MapSingle { .. } => "map the user",
            Self::BecomeInnerRoot => "become inner root",
            Self::PrivateMounts => "make mounts private",
            Self::EnterSandboxDir(_) => "enter the sandbox's directory",
            Self::AttachDisk => "attach its disk",
            Self::GuestFile(_) => "mount the guest's program",
            Self::Bind(_) => "bind a host path",
            Self::SnapshotPoints(_) => "make the mount points of snapshots",
            Self::CowPoints(_) => "make the mount points of copied folders",
            Self::CowOverlay { .. } => "mount a copy of a folder",
            Self::Overlay { .. } => "mount the root overlay",
            Self::Programs(_) => "overlay the host's programs",
            Self::Rebuild(_) => "rebuild a folder of the host's programs",
            Self::ReadOnlyMount(_) => "make a mount read-only",
            Self::OwnDevices => "make device nodes",
            Self::Proc(_) => "mount /proc",
            Self::DevPts(..) => "mount /dev/pts",
            Self::Tmpfs { .. } => "mount a tmpfs",
            Self::Memory { .. } => "mount folders in memory",
            Self::File { .. } => "write a file",
            Self::Mask(_) => "mask a path",
            Self::CoverProc { .. } => "cover what /proc tells of the host",
            Self::ReadOnly(_) => "make a path read-only",
            Self::PivotRoot { .. } => "pivot the root",
            Self::EnterUsers => "enter its user namespace",
            Self::OwnMounts => "make a mount namespace",
            Self::CloseRoot(_) => "close the root",
            Self::ReplaceRoot => "replace the root",
            Self::ReadOnlyRoot => "make the root read-only",
            Self::Loopback => "bring up loopback",
            Self::EgressSockets => "open the egress sockets",
            Self::HostName(_) => "set the host name",
            Self::NoNewPrivileges => "set no_new_privs",
            Self::NoCoreDumps => "forbid core dumps",
            Self::Capabilities { .. } => "drop capabilities",
            Self::Landlock(_) => "restrict by Landlock",
            Self::NamespaceLimit(..) => "limit the user namespace",
            Self::IpcLimit(..) => "limit the IPC namespace",
            Self::PidMax(_) => "limit the process namespace",
            Self::EnterGroups(_) => "enter its control groups",
            Self::Processors(_) => "choose its processors",
            Self::Seccomp(_) => "install the seccomp filter",
        }
    }

    /// Returns the path that the step works on, for operators.
    pub fn subject(&self) -> &str {
        match self {
            Self::Bind(bind) => &bind.source,
            Self::Rebuild(folder) => &folder.path,
            Self::NamespaceLimit(path, _)
            | Self::IpcLimit(path, _)
            | Self::EnterSandboxDir(path)
            | Self::Programs(path)
            | Self::ReadOnlyMount(path)
            | Self::Mask(path)
            | Self::ReadOnly(path) => path,
            Self::Tmpfs { target, .. }
            | Self::CowOverlay { target, .. }
            | Self::Overlay { target, .. }
            | Self::File { target, .. } => target,
            _ => "",
        }
    }
}

/// Packs each instruction of the filter (code, jt, jf and k) into one number.
pub fn pack_filter(filter: &[Instruction]) -> Vec<u64> {
    let pack = |i: &Instruction| {
        u64::from(i.code) << 48 | u64::from(i.jt) << 40 | u64::from(i.jf) << 32 | u64::from(i.k)
    };
    filter.iter().map(pack).collect()
}

/// Unpacks what [`pack_filter`] packed.
pub fn unpack_filter(packed: &[u64]) -> Vec<Instruction> {
    let unpack = |word: &u64| Instruction {
        code: (word >> 48) as u16,
        jt: (word >> 40) as u8,
        jf: (word >> 32) as u8,
        k: *word as u32,
    };
    packed.iter().map(unpack).collect()
}

/// Lists the names of all steps that a set-up can have, read off this source, so that a new step is
/// included without being added here.
#[cfg(feature = "provider")]
pub fn step_names() -> Vec<&'static str> {
    let source = include_str!("plan.rs");
    let names = source.split_once("pub fn name(").map_or("", |(_, rest)| rest);
    let names = names.split_once("pub fn ").map_or(names, |(names, _)| names);
    let of_the_child = names.split("=> \"").skip(1).filter_map(|rest| rest.split('"').next());
    of_the_child.chain([crate::egress::STEP, crate::disk::STEP]).collect()
}

/// An order to the launcher. Its descriptors come with it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum LauncherOrder {
    /// Passes the guest's program: the descriptor that comes with the order. Without a descriptor
    /// each plan names the program's file.
    #[n(0)]
    Guest {
        /// The provider waits for the answer that the launcher runs.
        #[n(0)]
        answer: bool,
    },
    /// Makes the namespaces of a sandbox whose plan is still being worked out: half a millisecond
    /// of the kernel's work that can go on meanwhile. There is no answer; a failure is reported
    /// with the answer to the plan.
    #[n(1)]
    Begin {
        /// The provider's number for the sandbox.
        #[n(0)]
        sandbox: u64,
        /// The sandbox gets a network namespace of its own.
        #[n(1)]
        own_network: bool,
        /// The sandbox is born in the v2 control group whose directory comes with the order.
        #[n(2)]
        into_group: bool,
        /// The host user that is charged for the sandbox, if it is to have a range.
        #[n(3)]
        account: Option<Account>,
    },
    /// Carries out the plan of a sandbox that was begun.
    #[n(2)]
    Finish {
        /// The provider's number for the sandbox.
        #[n(0)]
        sandbox: u64,
        /// The plan.
        #[n(1)]
        plan: Plan,
    },
    /// Gives up a sandbox that was begun. The answer comes when nothing of it is left.
    #[n(3)]
    Abandon {
        /// The provider's number for the sandbox.
        #[n(0)]
        sandbox: u64,
    },
    /// Begins a replacement of the root of a living sandbox. There is no answer, as to [`LauncherOrder::Begin`].
    #[n(5)]
    BeginReplacement {
        /// The provider's number for it, which no sandbox has.
        #[n(0)]
        number: u64,
    },
    /// Carries out a plan that replaces the root of a living sandbox, which was begun. The sandbox's user namespace and its mount
    /// namespace come with the order.
    #[n(4)]
    ReplaceRoot {
        /// The provider's number for it.
        #[n(1)]
        number: u64,
        /// The plan.
        #[n(0)]
        plan: Plan,
    },
}

/// The launcher's answer.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Launched {
    /// The guest runs. The number is its process number in the launcher's view; a pidfd comes with
    /// the answer.
    #[n(0)]
    Running(#[n(0)] i32),
    /// Nothing is left of the sandbox that was begun.
    #[n(2)]
    Abandoned,
    /// The root was replaced.
    #[n(3)]
    RootReplaced,
    /// The root was closed, and then a step failed.
    #[n(4)]
    RootClosed,
    /// A step failed.
    #[n(1)]
    Failed {
        /// The step, in words.
        #[n(0)]
        step: String,
        /// The path that the step worked on.
        #[n(1)]
        subject: String,
        /// The kernel's reason.
        #[n(2)]
        errno: i32,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_inner_id_has_a_host_id_of_its_own_in_the_block_whatever_the_shift() {
        for shift in [0, 1, 4094, RANGE_LEN - 1] {
            let range = IdRange { base: 0x7123_0000, shift };
            let mut hosts: Vec<u32> = (0..RANGE_LEN).map(|inside| range.host_id(inside)).collect();
            let by_runs = range.runs().flat_map(|run| run.host..run.host + run.count);
            assert_eq!(by_runs.collect::<Vec<_>>(), hosts);
            hosts.sort_unstable();
            assert_eq!(hosts, (range.base..range.base + RANGE_LEN).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_filter_survives_packing() {
        let filter = [
            Instruction { code: 0x15, jt: 255, jf: 1, k: u32::MAX },
            Instruction { code: 6, jt: 0, jf: 0, k: 7 },
        ];
        let back = unpack_filter(&pack_filter(&filter));
        assert_eq!((back[0].code, back[0].jt, back[0].jf, back[0].k), (0x15, 255, 1, u32::MAX));
        assert_eq!((back[1].code, back[1].k), (6, 7));
    }
}
