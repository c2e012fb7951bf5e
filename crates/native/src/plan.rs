//! What it takes to make one sandbox, as data: the provider computes a [`Plan`] (pure, tested without privileges), and
//! the launcher carries it out step by step. The first step that fails ends the create, and is named.

use minicbor::{Decode, Encode};

use crate::disk_ids::DiskIds;
use crate::seccomp::Instruction;

/// How host and inner users correspond.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub enum IdMap {
    /// The caller's uid and gid are the inner user's; nothing else is mapped.
    #[n(0)]
    Single {
        /// The caller's uid on the host.
        #[n(0)]
        uid: u32,
        /// The caller's gid on the host.
        #[n(1)]
        gid: u32,
    },
    /// Inner ids 0–65,535 are the host's ids from `base` on.
    #[n(1)]
    Range {
        /// The first host id.
        #[n(0)]
        base: u32,
    },
}

/// The inner uid and gid of the default user, `user`.
pub const USER_ID: u32 = 1000;
/// The guest's own inner uid and gid in a range: nobody in the image has it, so nothing inside may signal it.
pub const GUEST_ID: u32 = 65_533;
/// The inner uid and gid of a range that the host's egress program has: nobody inside uses it, nor anybody on the host.
#[cfg(feature = "provider")]
pub const EGRESS_ID: u32 = 65_532;
/// How many ids a range has.
pub const RANGE_LEN: u32 = 65_536;

/// Where the new root is mounted: over its own upper directory, which needs no other name once it is in use. A
/// directory of its own would have to be made and removed with every sandbox.
pub(crate) const ROOT: &str = "upper";
/// Where the layer, or the folder of all layers, is mounted for the overlay to take it: over a directory that every host
/// has and that the child, in its own mount namespace, has no use for.
pub(crate) const LOWER: &str = "/sys";

/// The device nodes that a sandbox has: names, and major and minor numbers.
pub(crate) const OWN_DEVICES: [(&str, u32, u32); 6] =
    [("null", 1, 3), ("zero", 1, 5), ("full", 1, 7), ("random", 1, 8), ("urandom", 1, 9), ("tty", 5, 0)];

/// A folder of the host's programs that is made anew, because the kernel does not let it be shown alone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Encode, Decode)]
pub struct RebuiltFolder {
    /// The folder, on the host and inside.
    #[n(0)]
    pub path: String,
    /// The names of folders in it, which are made empty.
    #[n(1)]
    pub folders: Vec<String>,
    /// The names of links in it, and where they lead.
    #[n(2)]
    pub links: Vec<(String, String)>,
    /// The names of files in it, which are copied.
    #[n(3)]
    pub files: Vec<String>,
}

/// The host user that the kernel charges with everything that a sandbox with a range uses up, whoever it is inside. Only
/// one sandbox has it, no process runs as it, and no id inside is mapped to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Account {
    /// The user's id on the host.
    #[n(0)]
    pub uid: u32,
    /// The most processes and threads of all users inside together.
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
    /// Becomes inner root, with no other groups: what is mounted and made from here on belongs to the range.
    #[n(1)]
    BecomeInnerRoot,
    /// Nothing that is mounted from here on is seen outside.
    #[n(2)]
    PrivateMounts,
    /// Enters the sandbox's directory; relative paths below are seen from there, and print without the state folder.
    #[n(3)]
    EnterSandboxDir(#[n(0)] String),
    /// Attaches the disk that came along over the sandbox's directory, and enters it: relative paths below are on it.
    #[n(41)]
    AttachDisk,
    /// Makes a host path appear at a target below the new root (or at a name in the sandbox's directory).
    #[n(4)]
    Bind(#[n(0)] Bind),
    /// The root file system: read-only layers below, the sandbox's own directory above. Names relative to the
    /// sandbox's directory.
    #[n(5)]
    Overlay {
        /// The read-only layers, topmost first.
        #[n(0)]
        lower: Vec<String>,
        /// Where it is mounted.
        #[n(1)]
        target: String,
    },
    /// Shows a folder of the host's programs read-only through an overlay of the sandbox's own, so that it shares no
    /// inode with the host or with another sandbox.
    #[n(42)]
    Programs(#[n(0)] String),
    /// Makes a folder of the host's programs anew, with links and copies of files.
    #[n(46)]
    Rebuild(#[n(0)] RebuiltFolder),
    /// Makes what is mounted here read-only, but for what is mounted below it.
    #[n(47)]
    ReadOnlyMount(#[n(0)] String),
    /// Puts device nodes of the sandbox's own in the place of the host's. The launcher makes them.
    #[n(43)]
    OwnDevices,
    /// A new `/proc` for the new process namespace.
    #[n(6)]
    Proc(#[n(0)] String),
    /// New pseudo-terminals; with the group that owns them where there is one.
    #[n(7)]
    DevPts(#[n(0)] String, #[n(1)] Option<u32>),
    /// A file system in memory.
    #[n(8)]
    Tmpfs {
        /// Where.
        #[n(0)]
        target: String,
        /// The most that it holds, in MiB.
        #[n(1)]
        size_mib: u64,
        /// Permission bits of its top directory, in octal.
        #[n(2)]
        mode: u32,
    },
    /// Writes a small file that everybody may read.
    #[n(30)]
    File {
        /// Where.
        #[n(0)]
        target: String,
        /// What it says.
        #[n(1)]
        text: String,
    },
    /// Covers a file with `/dev/null`, or a directory with an empty one. What is not there needs no cover.
    #[n(9)]
    Mask(#[n(0)] String),
    /// Covers everything in a new `/proc` but processes and these names, whatever the kernel and its modules put there.
    #[n(45)]
    CoverProc {
        /// Where it is mounted.
        #[n(0)]
        target: String,
        /// The names that stay as they are.
        #[n(1)]
        shown: Vec<String>,
    },
    /// Makes a directory or a file below the new root read-only. What is not there needs none.
    #[n(10)]
    ReadOnly(#[n(0)] String),
    /// The new root becomes `/`, and the host's is let go.
    #[n(11)]
    PivotRoot(#[n(0)] String),
    /// The root file system can't be written to; mounts below it still can.
    #[n(12)]
    ReadOnlyRoot,
    /// Brings up the loopback interface.
    #[n(13)]
    Loopback,
    /// Makes the listeners of the network `egress` in the new network namespace, and hands them out over the socket
    /// that came along for it.
    #[n(40)]
    EgressSockets,
    /// Sets the host name.
    #[n(14)]
    HostName(#[n(0)] String),
    /// No exec may gain privileges any more.
    #[n(15)]
    NoNewPrivileges,
    /// No crash inside writes a core file or starts the host's program for them, by a limit of one byte: the kernel writes
    /// no file that short, and takes exactly this limit as a sign to start no program (fs/coredump.c). A limit of 0
    /// would forbid the file alone.
    #[n(44)]
    NoCoreDumps,
    /// Keeps these capabilities and no others, and becomes this user (a range's guest); `None`: stays who it is.
    #[n(16)]
    Capabilities {
        /// A mask of what is kept.
        #[n(0)]
        keep: u64,
        /// Whom to become first.
        #[n(1)]
        become_id: Option<u32>,
    },
    /// Landlock as far as this ABI goes.
    #[n(17)]
    Landlock(#[n(0)] u32),
    /// Sets one of the new user namespace's own limits (`/proc/sys/user/…`).
    #[n(19)]
    NamespaceLimit(#[n(0)] String, #[n(1)] u32),
    /// Sets one of the new IPC namespace's own limits (`/proc/sys/kernel/…`).
    #[n(23)]
    IpcLimit(#[n(0)] String, #[n(1)] String),
    /// The most process numbers in the new process namespace, whoever uses them: `RLIMIT_NPROC` counts by user, and an
    /// inner root has many.
    #[n(20)]
    PidMax(#[n(0)] u32),
    /// Enters this many v1 control groups, whose files were handed over, and then makes a namespace in which these groups
    /// (and the v2 group that it was born into) are the top.
    #[n(21)]
    EnterGroups(#[n(0)] u32),
    /// Runs on these processors, by number.
    #[n(22)]
    Processors(#[n(0)] Vec<u32>),
    /// The seccomp filter.
    #[n(18)]
    Seccomp(#[n(0)] Vec<u64>),
}

/// A host path made visible inside.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Bind {
    /// The path on the host.
    #[n(0)]
    pub source: String,
    /// Where it appears.
    #[n(1)]
    pub target: String,
    /// With what is mounted below it.
    #[n(2)]
    pub recursive: bool,
    /// It can't be written to.
    #[n(3)]
    pub readonly: bool,
    /// It is a device node; every other bind has `nodev`.
    #[n(4)]
    pub device: bool,
    /// Who the owners on disk are inside.
    #[n(5)]
    pub ids: DiskIds,
    /// In a range: the launcher takes it with the host's eyes (the child, as inner root, may not get there).
    #[n(6)]
    pub taken_by_launcher: bool,
}

/// Everything the launcher needs to make one sandbox.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Plan {
    /// How users correspond.
    #[n(0)]
    pub map: IdMap,
    /// Whether it gets a network namespace of its own.
    #[n(1)]
    pub own_network: bool,
    /// What the child does, in order.
    #[n(2)]
    pub steps: Vec<Step>,
    /// For tests of failing closed: the step with this index fails before it is tried.
    #[n(3)]
    pub fail_at: Option<u32>,
}

impl Step {
    /// The step's name, as errors and tests have it.
    pub fn name(&self) -> &'static str {
        match self {
            Self::MapSingle { .. } => "map the user",
            Self::BecomeInnerRoot => "become inner root",
            Self::PrivateMounts => "make mounts private",
            Self::EnterSandboxDir(_) => "enter the sandbox's directory",
            Self::AttachDisk => "attach its disk",
            Self::Bind(_) => "bind a host path",
            Self::Overlay { .. } => "mount the root overlay",
            Self::Programs(_) => "overlay the host's programs",
            Self::Rebuild(_) => "rebuild a folder of the host's programs",
            Self::ReadOnlyMount(_) => "make a mount read-only",
            Self::OwnDevices => "make device nodes",
            Self::Proc(_) => "mount /proc",
            Self::DevPts(..) => "mount /dev/pts",
            Self::Tmpfs { .. } => "mount a tmpfs",
            Self::File { .. } => "write a file",
            Self::Mask(_) => "mask a path",
            Self::CoverProc { .. } => "cover what /proc tells of the host",
            Self::ReadOnly(_) => "make a path read-only",
            Self::PivotRoot(_) => "pivot the root",
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

    /// The path that the step is about, for operators.
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
            Self::Tmpfs { target, .. } | Self::Overlay { target, .. } | Self::File { target, .. } => target,
            _ => "",
        }
    }
}

/// The filter as numbers for the wire: code, jt, jf and k of each instruction in one.
pub fn pack_filter(filter: &[Instruction]) -> Vec<u64> {
    let pack = |i: &Instruction| {
        u64::from(i.code) << 48 | u64::from(i.jt) << 40 | u64::from(i.jf) << 32 | u64::from(i.k)
    };
    filter.iter().map(pack).collect()
}

/// What [`pack_filter`] packed.
pub fn unpack_filter(packed: &[u64]) -> Vec<Instruction> {
    let unpack = |word: &u64| Instruction {
        code: (word >> 48) as u16,
        jt: (word >> 40) as u8,
        jf: (word >> 32) as u8,
        k: *word as u32,
    };
    packed.iter().map(unpack).collect()
}

/// The name of every step that a set-up can have, read off this source: a step that is new is in the list without
/// being added to it.
#[cfg(feature = "provider")]
pub fn step_names() -> Vec<&'static str> {
    let source = include_str!("plan.rs");
    let names = source.split_once("pub fn name(").map_or("", |(_, rest)| rest);
    let names = names.split_once("pub fn ").map_or(names, |(names, _)| names);
    let of_the_child = names.split("=> \"").skip(1).filter_map(|rest| rest.split('"').next());
    of_the_child.chain([crate::egress::STEP, crate::disk::STEP]).collect()
}

/// What the launcher is told. The descriptors that belong to an order come with it.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Order {
    /// Here is the guest's program.
    #[n(0)]
    Guest {
        /// Somebody waits to hear that the launcher runs.
        #[n(0)]
        answer: bool,
    },
    /// Makes the namespaces of a sandbox whose plan is still being worked out: half a millisecond of the kernel's work
    /// that can go on meanwhile. Not answered; what fails is told with the plan's answer.
    #[n(1)]
    Begin {
        /// A number of the provider's own.
        #[n(0)]
        sandbox: u64,
        /// Whether it gets a network namespace of its own.
        #[n(1)]
        own_network: bool,
        /// It is born in the v2 control group whose directory comes along.
        #[n(2)]
        into_group: bool,
        /// The host user that pays for it, if it is to have a range.
        #[n(3)]
        account: Option<Account>,
    },
    /// Carries out the plan of a sandbox that was begun.
    #[n(2)]
    Finish {
        /// Which.
        #[n(0)]
        sandbox: u64,
        /// How.
        #[n(1)]
        plan: Plan,
    },
    /// A sandbox that was begun will not be. Answered when nothing is left of it.
    #[n(3)]
    Abandon {
        /// Which.
        #[n(0)]
        sandbox: u64,
    },
}

/// What the launcher answers.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub enum Launched {
    /// The guest runs, with this process number as the launcher sees it. A pidfd comes along.
    #[n(0)]
    Running(#[n(0)] i32),
    /// Nothing is left of what was begun.
    #[n(2)]
    Abandoned,
    /// This failed (an index into the plan's steps, or a name before them), with this errno.
    #[n(1)]
    Failed {
        /// The step, in words.
        #[n(0)]
        step: String,
        /// What the step was about.
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
