//! Every system call that needs unsafe code, each behind a safe function that can't be misused from Rust.
//!
//! The functions of the second half run in the launcher's child. The child shares the launcher's
//! memory (`CLONE_VM`) while the launcher only waits for it, so they may allocate, and must not
//! unwind. A child that stays when it is done ([`ChildGate::stay_when_done`]) may not.

use std::arch::asm;
use std::ffi::{CStr, CString, c_void};
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use rustix::process::{PidfdFlags, getpid, pidfd_open};

use crate::seccomp::Instruction;

#[cfg(not(target_arch = "x86_64"))]
compile_error!(
    "eyot-native supports x86_64 Linux only: its seccomp table and its clone stub are written for it"
);

/// Turns the result of a raw system call into an `io::Result`.
fn check(result: i64) -> io::Result<i64> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Returns `path` as a C string. A NUL in it is an invalid argument.
fn c_string(path: &str) -> io::Result<CString> {
    CString::new(path).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL))
}

// The launcher's own side.

/// The namespaces of every sandbox. The network namespace depends on the spec. The control group
/// namespace is made when the sandbox is in its own groups (see [`unshare_groups`]).
const NAMESPACES: u64 =
    (libc::CLONE_NEWUSER | libc::CLONE_NEWNS | libc::CLONE_NEWPID | libc::CLONE_NEWIPC | libc::CLONE_NEWUTS)
        as u64;
/// The namespaces of a new child.
#[derive(Debug, Clone, Copy)]
pub enum NewNamespaces {
    /// The namespaces of a sandbox.
    OfSandbox {
        /// A network namespace is among them.
        own_network: bool,
    },
    /// Only a user namespace.
    OfUsers,
    /// None: the child enters those of a living sandbox.
    None,
}

impl NewNamespaces {
    const fn flags(self) -> u64 {
        match self {
            Self::OfSandbox { own_network: true } => NAMESPACES | libc::CLONE_NEWNET as u64,
            Self::OfSandbox { own_network: false } => NAMESPACES,
            Self::OfUsers => libc::CLONE_NEWUSER as u64,
            Self::None => 0,
        }
    }
}

/// Has the child born in the group whose directory is `args.cgroup`.
const CLONE_INTO_CGROUP: u64 = 0x2_0000_0000;

#[repr(C)]
#[derive(Default)]
struct CloneArgs {
    flags: u64,
    pidfd: u64,
    child_tid: u64,
    parent_tid: u64,
    exit_signal: u64,
    stack: u64,
    stack_size: u64,
    tls: u64,
    set_tid: u64,
    set_tid_size: u64,
    cgroup: u64,
}

/// A gate between the launcher and its child while the child sets itself up.
#[derive(Debug)]
pub struct ChildGate {
    /// An event descriptor that becomes readable when the launcher has done its part for the child.
    open: OwnedFd,
    /// The launcher's process. The child learns of its end by this and not by a signal, because the
    /// launcher may end before the child could ask for one.
    launcher: OwnedFd,
    /// [`BUSY`] or [`DONE`] until the child has left the launcher's memory, by exec or by exit. Then the kernel sets 0.
    inside: AtomicU32,
}

/// The child is in the launcher's memory and at work.
const BUSY: u32 = 1;
/// The child is in the launcher's memory, and has done its work.
const DONE: u32 = 2;

impl ChildGate {
    /// Makes a closed gate. The launcher is this process; no child is inside.
    pub fn new() -> io::Result<Self> {
        let launcher = pidfd_open(getpid(), PidfdFlags::empty())?;
        let open = eventfd(0, EventfdFlags::CLOEXEC)?;
        Ok(Self { open, launcher, inside: AtomicU32::new(BUSY) })
    }

    /// Lets the child continue.
    pub fn open(&self) -> io::Result<()> {
        rustix::io::write(&self.open, &1_u64.to_ne_bytes())?;
        Ok(())
    }

    /// Waits in the child until the launcher has opened the gate, and ends the child if the
    /// launcher ends first. The launcher's thread runs on in the same memory, so nothing here may
    /// touch `errno`.
    pub fn pass(&self) {
        const NO_OTHER: RawFd = -1;
        const NO_TIMEOUT: i32 = -1;
        if !self.wait_in_child(NO_OTHER, NO_TIMEOUT) {
            exit_now();
        }
    }

    /// Tells the launcher that the child has done its work. Then the child stays until the launcher opens the gate again, the
    /// launcher or the process `other` ends, or this time is over. From here on the launcher uses the memory too: the child may
    /// not allocate, free or touch `errno` any more, only end.
    pub fn stay_when_done(&self, other: BorrowedFd<'_>, at_longest: Duration) {
        let mut opened = [0_u8; 8];
        // SAFETY: an event descriptor that is readable, and a buffer of its eight bytes.
        unsafe {
            bare_call(
                libc::SYS_read,
                [self.open.as_raw_fd() as usize, opened.as_mut_ptr() as usize, opened.len(), 0],
            );
        }
        self.inside.store(DONE, Ordering::Release);
        // SAFETY: the word is alive; a call that wakes has no more arguments.
        unsafe {
            bare_call(
                libc::SYS_futex,
                [self.inside.as_ptr() as usize, libc::FUTEX_WAKE as usize, i32::MAX as usize, 0],
            );
        }
        self.wait_in_child(other.as_raw_fd(), at_longest.as_millis() as i32);
    }

    /// Waits in the child until the gate is open (`true`), or the launcher or the other process has ended or the time is over
    /// (`false`). The kernel passes over an `other` below zero.
    fn wait_in_child(&self, other: RawFd, timeout_ms: i32) -> bool {
        let mut waited = [self.open.as_raw_fd(), self.launcher.as_raw_fd(), other].map(|fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        });
        loop {
            // SAFETY: the address and the number of live pollfd structs, and the timeout.
            let ready = unsafe {
                bare_call(
                    libc::SYS_poll,
                    [waited.as_mut_ptr() as usize, waited.len(), timeout_ms as usize, 0],
                )
            };
            if ready >= 0 {
                return waited[0].revents != 0;
            }
        }
    }

    /// Tells whether the child is in the shared memory.
    pub fn is_child_inside(&self) -> bool {
        self.inside.load(Ordering::Acquire) != 0
    }

    /// Waits until the child has done its work, or has left the shared memory.
    pub fn wait_until_done(&self) {
        while self.inside.load(Ordering::Acquire) == BUSY {
            futex(&self.inside, libc::FUTEX_WAIT, BUSY);
        }
    }

    /// Waits until the child has left the shared memory.
    pub fn wait_until_left(&self) {
        loop {
            let inside = self.inside.load(Ordering::Acquire);
            if inside == 0 {
                return;
            }
            futex(&self.inside, libc::FUTEX_WAIT, inside);
        }
    }
}

/// Makes a system call without touching `errno`.
///
/// # Safety
/// As the call `number` demands of its arguments.
unsafe fn bare_call(number: libc::c_long, [a, b, c, d]: [usize; 4]) -> isize {
    let result: isize;
    // SAFETY: the kernel's calling convention; it changes rax, rcx and r11 alone, and memory as the caller vouched.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") a,
            in("rsi") b,
            in("rdx") c,
            in("r10") d,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// Makes one futex call. Its result does not matter: every caller checks the word again.
fn futex(word: &AtomicU32, operation: i32, value: u32) {
    // SAFETY: `word` is a live, aligned u32, and the timeout is null (none).
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, std::ptr::null::<c_void>()) };
}

/// A stack for a child, in a mapping of its own.
#[derive(Debug)]
pub struct ChildStack {
    base: *mut c_void,
}

const STACK_BYTES: usize = 256 * 1024;

impl ChildStack {
    /// Maps a new stack. Its lowest page can't be touched.
    pub fn new() -> io::Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: an anonymous mapping at an address of the kernel's choosing touches nothing that exists.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), STACK_BYTES, protection, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the first page of the mapping just made; nothing uses it.
        check(i64::from(unsafe { libc::mprotect(base, 4096, libc::PROT_NONE) }))?;
        Ok(Self { base })
    }
}

impl Drop for ChildStack {
    fn drop(&mut self) {
        // SAFETY: `base` is a mapping of exactly this size, made in `new` and owned by this struct.
        unsafe { libc::munmap(self.base, STACK_BYTES) };
    }
}

/// The work of a child in the launcher's memory.
pub trait ChildMain {
    /// Runs in the child, on its own stack. Must not unwind.
    fn run_in_child(&mut self) -> !;
}

extern "C" fn child_entry<T: ChildMain>(child: *mut T) -> ! {
    // SAFETY: `clone_child` was given this as a `&mut` that its caller keeps alive, and does not touch after opening
    // the gate, until the child has left the memory.
    unsafe { &mut *child }.run_in_child()
}

/// Makes the child of a sandbox: new namespaces, the launcher's memory and descriptors, a stack of
/// its own. The child runs `main`. Returns its process number and a pidfd.
///
/// With `into_group`, the directory of a v2 control group, the child is born in that group.
///
/// The child shares the caller's memory, the thread's own included. This thread must keep `main`,
/// `gate` and `stack` alive, and touch nothing that the child may use, until
/// [`ChildGate::wait_until_left`] has returned; hence the `&mut`s. Other threads may run: to them the
/// child is one more thread that allocates.
pub fn clone_child<T: ChildMain>(
    namespaces: NewNamespaces,
    into_group: Option<BorrowedFd<'_>>,
    gate: &ChildGate,
    stack: &mut ChildStack,
    main: &mut T,
) -> io::Result<(i32, OwnedFd)> {
    let mut pidfd: RawFd = -1;
    let sharing =
        (libc::CLONE_VM | libc::CLONE_FILES | libc::CLONE_PIDFD | libc::CLONE_CHILD_CLEARTID) as u64;
    let args = CloneArgs {
        flags: namespaces.flags() | sharing | into_group.map_or(0, |_| CLONE_INTO_CGROUP),
        pidfd: &raw mut pidfd as u64,
        child_tid: gate.inside.as_ptr() as u64,
        exit_signal: 0,
        stack: stack.base as u64,
        stack_size: STACK_BYTES as u64,
        cgroup: into_group.map_or(0, |group| group.as_raw_fd() as u64),
        ..CloneArgs::default()
    };
    let result: i64;
    // SAFETY: `args` describes live memory of the right size. The parent returns here with all registers but rax, rcx
    // and r11 as they were. The child starts on its own 16-byte-aligned stack and calls `entry`, which never returns.
    unsafe {
        asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r13",
            "call r12",
            "ud2",
            "2:",
            inlateout("rax") libc::SYS_clone3 => result,
            in("rdi") &raw const args,
            in("rsi") size_of::<CloneArgs>(),
            in("r12") child_entry::<T> as extern "C" fn(*mut T) -> !,
            in("r13") &raw mut *main,
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    if result < 0 {
        return Err(io::Error::from_raw_os_error(-result as i32));
    }
    // SAFETY: on success the kernel stored a new descriptor in `pidfd`, which nobody else owns.
    Ok((result as i32, unsafe { OwnedFd::from_raw_fd(pidfd) }))
}

#[repr(C)]
struct MountAttr {
    attr_set: u64,
    attr_clr: u64,
    propagation: u64,
    userns_fd: u64,
}

const MOUNT_ATTR_RDONLY: u64 = 0x1;
const MOUNT_ATTR_NOSUID: u64 = 0x2;
const MOUNT_ATTR_NODEV: u64 = 0x4;
const MOUNT_ATTR_IDMAP: u64 = 0x0010_0000;
const OPEN_TREE_CLONE: u32 = 1;
const AT_RECURSIVE: u32 = 0x8000;
const MOVE_MOUNT_F_EMPTY_PATH: u32 = 4;

/// Copies the mount at `source`. The copy is detached; [`attach_tree`] attaches it.
pub fn take_tree(source: &str, recursive: bool) -> io::Result<OwnedFd> {
    let source = c_string(source)?;
    let recursive = if recursive { AT_RECURSIVE } else { 0 };
    let flags = OPEN_TREE_CLONE | libc::O_CLOEXEC as u32 | recursive;
    // SAFETY: a valid path and flags; the result is a new descriptor or an error.
    let fd = check(unsafe { libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, source.as_ptr(), flags) })?;
    // SAFETY: the kernel just returned this descriptor and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// Copies the mount of an open file or folder as a detached mount that is read-only, `nosuid` and
/// `nodev`. Nothing can be changed through it, whoever owns the file.
pub fn take_read_only(source: &str) -> io::Result<OwnedFd> {
    let tree = take_tree(source, false)?;
    let attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
    let attr = MountAttr { attr_set, attr_clr: 0, propagation: 0, userns_fd: 0 };
    mount_setattr(tree.as_raw_fd(), "", libc::AT_EMPTY_PATH as u32, &attr)?;
    Ok(tree)
}

/// Makes an attached mount read-only.
///
/// # Errors
/// `EBUSY` if a file on it is open for writing.
pub fn make_read_only(mount: BorrowedFd<'_>) -> io::Result<()> {
    let attr = MountAttr { attr_set: MOUNT_ATTR_RDONLY, attr_clr: 0, propagation: 0, userns_fd: 0 };
    mount_setattr(mount.as_raw_fd(), "", libc::AT_EMPTY_PATH as u32, &attr)
}

/// Tells whether any process has a file open for writing. `file` is open for reading, and belongs
/// to the caller. Only a file that nobody can write to is granted a lease for reading.
///
/// # Errors
/// The file system knows no leases.
pub fn is_open_for_writing(file: BorrowedFd<'_>) -> io::Result<bool> {
    // SAFETY: no pointers.
    let lease =
        |kind: i32| check(i64::from(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, kind) }));
    match lease(libc::F_RDLCK) {
        Ok(_) => lease(libc::F_UNLCK).map(|_| false),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(true),
        Err(error) => Err(error),
    }
}

/// Maps the ids of a detached mount through a user namespace: ids on disk are that namespace's ids.
pub fn map_tree_ids(tree: &OwnedFd, user_namespace: &OwnedFd) -> io::Result<()> {
    let userns_fd = user_namespace.as_raw_fd() as u64;
    let attr = MountAttr { attr_set: MOUNT_ATTR_IDMAP, attr_clr: 0, propagation: 0, userns_fd };
    mount_setattr(tree.as_raw_fd(), "", libc::AT_EMPTY_PATH as u32, &attr)
}

fn mount_setattr(fd: RawFd, path: &str, flags: u32, attr: &MountAttr) -> io::Result<()> {
    let path = c_string(path)?;
    // SAFETY: `attr` is a live struct of the size that is passed, `path` a valid string.
    check(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            fd,
            path.as_ptr(),
            flags,
            &raw const *attr,
            size_of::<MountAttr>(),
        )
    })?;
    Ok(())
}

/// Waits until the child of this pidfd ends, and reaps it. A child that was reaped before is no
/// error.
pub fn wait_and_reap(pidfd: BorrowedFd<'_>) {
    // SAFETY: siginfo_t is plain data for which zeroes are valid, and it outlives the call.
    unsafe {
        let mut info: libc::siginfo_t = std::mem::zeroed();
        let id = pidfd.as_raw_fd() as libc::id_t;
        libc::waitid(libc::P_PIDFD, id, &raw mut info, libc::WEXITED | libc::__WALL);
    }
}

/// Runs `make` as another user of the host, with the capabilities and the file access of this
/// thread. The caller is root. Other threads keep their user.
pub fn as_user<T>(uid: u32, make: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let held = capabilities()?;
    set_users(uid, uid, 0)?;
    let made = set_file_user(0).and_then(|()| set_capabilities(&held)).and_then(|()| make());
    // The saved user is root's, so this can't be refused. This thread could do nothing more as somebody else.
    if set_users(0, 0, 0).and_then(|()| set_capabilities(&held)).is_err() {
        std::process::abort();
    }
    made
}

fn set_users(real: u32, effective: u32, saved: u32) -> io::Result<()> {
    // SAFETY: no pointers. The raw call changes this thread alone.
    check(unsafe { libc::syscall(libc::SYS_setresuid, real, effective, saved) }).map(drop)
}

/// Has files looked up and made as this user.
fn set_file_user(uid: u32) -> io::Result<()> {
    // SAFETY: no pointers. It returns who it was, whether or not it changed anything: hence the second call.
    let now = unsafe {
        libc::syscall(libc::SYS_setfsuid, uid);
        libc::syscall(libc::SYS_setfsuid, u32::MAX)
    };
    if now == i64::from(uid) { Ok(()) } else { Err(io::Error::from_raw_os_error(libc::EPERM)) }
}

/// The effective, permitted and inheritable capabilities, as lower and upper halves.
type Capabilities = [[u32; 3]; 2];

/// The header for version 3 of the call, for this thread.
const CAPABILITY_HEADER: [u32; 2] = [0x2008_0522, 0];

fn capabilities() -> io::Result<Capabilities> {
    let (mut header, mut held) = (CAPABILITY_HEADER, Capabilities::default());
    // SAFETY: version 3 of the header with the two data structs that it asks for.
    check(unsafe { libc::syscall(libc::SYS_capget, header.as_mut_ptr(), held.as_mut_ptr()) })?;
    Ok(held)
}

fn set_capabilities(held: &Capabilities) -> io::Result<()> {
    let mut header = CAPABILITY_HEADER;
    // SAFETY: version 3 of the header with the two data structs that it asks for.
    check(unsafe { libc::syscall(libc::SYS_capset, header.as_mut_ptr(), held.as_ptr()) }).map(drop)
}

/// Tells whether other processes of this user may read this process's memory.
pub fn is_dumpable() -> bool {
    prctl(libc::PR_GET_DUMPABLE, 0, 0).is_ok_and(|dumpable| dumpable == 1)
}

/// Allows other processes of this user to read this process's memory again.
pub fn set_dumpable() -> io::Result<()> {
    prctl(libc::PR_SET_DUMPABLE, 1, 0).map(drop)
}

// The child's side.

/// Ends the child at once. Neither Rust nor libc may clean up, because the memory is the
/// launcher's.
pub fn exit_now() -> ! {
    // SAFETY: exit_group does not return and touches no memory.
    unsafe { libc::syscall(libc::SYS_exit_group, 127) };
    unreachable!("exit_group returned")
}

/// Gives the child a descriptor table of its own.
pub fn unshare_files() -> io::Result<()> {
    // SAFETY: no pointers.
    check(i64::from(unsafe { libc::unshare(libc::CLONE_FILES) }))?;
    Ok(())
}

/// Duplicates a descriptor of the child's own table; one that is not open is an error.
pub fn duplicate(descriptor: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: duplicating a descriptor touches no memory; a closed one is an error.
    let fd = check(i64::from(unsafe { libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, 0) }))?;
    // SAFETY: the kernel just returned this descriptor and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as RawFd) })
}

/// Gives the child a mount namespace of its own.
pub fn unshare_mounts() -> io::Result<()> {
    // SAFETY: no pointers.
    check(i64::from(unsafe { libc::unshare(libc::CLONE_NEWNS) })).map(drop)
}

/// Moves the calling thread into the v1 control group whose `tasks` this is. It writes `0`, which
/// means the writer itself and makes the kernel wait for no other thread; a number would cost an
/// RCU grace period.
pub fn enter_group(tasks: RawFd) -> io::Result<()> {
    // SAFETY: a pointer to one live byte; a descriptor that is not open is an error.
    check(unsafe { libc::write(tasks, c"0".as_ptr().cast(), 1) } as i64)?;
    Ok(())
}

/// Makes a control group namespace, in which the process's current groups are the top.
pub fn unshare_groups() -> io::Result<()> {
    // SAFETY: no pointers.
    check(i64::from(unsafe { libc::unshare(libc::CLONE_NEWCGROUP) }))?;
    Ok(())
}

/// Calls `mount(2)`.
pub fn mount(source: &str, target: &str, fs: &str, flags: u64, data: &str) -> io::Result<()> {
    let (source, target, fs, data) = (c_string(source)?, c_string(target)?, c_string(fs)?, c_string(data)?);
    let data = data.as_ptr().cast();
    // SAFETY: all four are valid C strings that live beyond the call.
    check(i64::from(unsafe { libc::mount(source.as_ptr(), target.as_ptr(), fs.as_ptr(), flags, data) }))?;
    Ok(())
}

/// The restrictions of a mount.
#[derive(Debug, Clone, Copy)]
pub struct MountRestrictions {
    /// The mount is read-only.
    pub readonly: bool,
    /// Device nodes on the mount work.
    pub devices: bool,
    /// The mounts below are restricted too.
    pub recursive: bool,
}

/// Restricts a mount as `hold` says, and always by `nosuid`. Restrictions that are set already
/// stay.
pub fn hold_mount(target: &str, hold: MountRestrictions) -> io::Result<()> {
    let readonly = if hold.readonly { MOUNT_ATTR_RDONLY } else { 0 };
    let devices = if hold.devices { 0 } else { MOUNT_ATTR_NODEV };
    let attr = MountAttr {
        attr_set: MOUNT_ATTR_NOSUID | readonly | devices,
        attr_clr: 0,
        propagation: 0,
        userns_fd: 0,
    };
    mount_setattr(libc::AT_FDCWD, target, if hold.recursive { AT_RECURSIVE } else { 0 }, &attr)
}

/// Attaches a mount that [`take_tree`] copied.
pub fn attach_tree(tree: RawFd, target: &str) -> io::Result<()> {
    let target = c_string(target)?;
    let at = libc::AT_FDCWD;
    let flags = MOVE_MOUNT_F_EMPTY_PATH;
    // SAFETY: both strings are valid and outlive the call.
    check(unsafe { libc::syscall(libc::SYS_move_mount, tree, c"".as_ptr(), at, target.as_ptr(), flags) })?;
    Ok(())
}

/// Makes `new_root` the root, and detaches the old one.
pub fn pivot_root(new_root: &str) -> io::Result<()> {
    rustix::process::chdir(new_root)?;
    let here: &CStr = c".";
    // SAFETY: valid C strings. Old and new root being the same stacks the old one on top, and the umount lets it go.
    check(unsafe { libc::syscall(libc::SYS_pivot_root, here.as_ptr(), here.as_ptr()) })?;
    // SAFETY: a valid C string.
    check(i64::from(unsafe { libc::umount2(here.as_ptr(), libc::MNT_DETACH) }))?;
    rustix::process::chdir("/")?;
    Ok(())
}

/// Brings up `lo` in the child's network namespace.
pub fn loopback_up() -> io::Result<()> {
    let socket = rustix::net::socket(rustix::net::AddressFamily::INET, rustix::net::SocketType::DGRAM, None)?;
    // SAFETY: ifreq is plain data for which zeroes are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name[0] = b'l' as libc::c_char;
    request.ifr_name[1] = b'o' as libc::c_char;
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as libc::c_short;
    // SAFETY: the socket is open and the request a live ifreq, as this ioctl wants it.
    check(i64::from(unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCSIFFLAGS, &raw const request) }))?;
    Ok(())
}

/// Sets the host name of the child's own namespace.
pub fn set_host_name(name: &str) -> io::Result<()> {
    // SAFETY: a pointer to that many live bytes.
    check(i64::from(unsafe { libc::sethostname(name.as_ptr().cast(), name.len()) }))?;
    Ok(())
}

/// Sets the host name of the namespace that a process is in. This thread enters that namespace for
/// a moment. The caller is root.
pub fn set_host_name_of(process: BorrowedFd<'_>, name: &str) -> io::Result<()> {
    let own = std::fs::File::open("/proc/thread-self/ns/uts")?;
    enter_uts(process)?;
    let set = set_host_name(name);
    // Its own namespace can't be refused. This thread could go on nowhere else.
    if enter_uts(own.as_fd()).is_err() {
        std::process::abort();
    }
    set
}

fn enter_uts(of: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: no pointers. It changes this thread alone.
    check(i64::from(unsafe { libc::setns(of.as_raw_fd(), libc::CLONE_NEWUTS) })).map(drop)
}

fn prctl(option: i32, a: u64, b: u64) -> io::Result<i64> {
    // SAFETY: the options used in this file take numbers only.
    check(i64::from(unsafe { libc::prctl(option, a, b, 0u64, 0u64) }))
}

/// Forbids all later execs to gain privileges.
pub fn set_no_new_privileges() -> io::Result<()> {
    prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0).map(drop)
}

/// Drops all other groups, then becomes this group and user for good.
pub fn become_id(id: u32) -> io::Result<()> {
    // SAFETY: no pointers but an empty list. The raw calls change this process alone, which has one thread.
    unsafe {
        check(libc::syscall(libc::SYS_setgroups, 0, std::ptr::null::<libc::gid_t>()))?;
        check(libc::syscall(libc::SYS_setresgid, id, id, id))?;
        check(libc::syscall(libc::SYS_setresuid, id, id, id))?;
    }
    Ok(())
}

/// Keeps the effective capabilities over the next change of the user.
pub fn keep_capabilities() -> io::Result<()> {
    prctl(libc::PR_SET_KEEPCAPS, 1, 0).map(drop)
}

const PR_CAP_AMBIENT: i32 = 47;
const PR_CAP_AMBIENT_RAISE: u64 = 2;
const PR_CAP_AMBIENT_CLEAR_ALL: u64 = 4;

/// Removes every capability outside `keep` from the bounding set, as far as this kernel knows it.
pub fn drop_bounding(keep: u64) -> io::Result<()> {
    for capability in 0..64u64 {
        if prctl(libc::PR_CAPBSET_READ, capability, 0).is_err() {
            return Ok(());
        }
        if keep & (1 << capability) == 0 {
            prctl(libc::PR_CAPBSET_DROP, capability, 0)?;
        }
    }
    Ok(())
}

/// Sets the capabilities to exactly `keep`, over the next exec as well.
pub fn hold_capabilities(keep: u64) -> io::Result<()> {
    let (low, high) = (keep as u32, (keep >> 32) as u32);
    prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0)?;
    set_capabilities(&[[low; 3], [high; 3]])?;
    for capability in (0..64u64).filter(|capability| keep & (1 << capability) != 0) {
        prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability)?;
    }
    Ok(())
}

/// Returns the version of the kernel's Landlock ABI; 0 without Landlock.
pub fn landlock_abi() -> u32 {
    const CREATE_RULESET_VERSION: u32 = 1;
    let none = std::ptr::null::<c_void>();
    // SAFETY: with this flag the kernel reads no memory and returns a number.
    let abi =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, none, 0usize, CREATE_RULESET_VERSION) };
    u32::try_from(abi).unwrap_or(0)
}

/// The rights that a Landlock ruleset handles.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub struct Ruleset {
    /// The file access rights that need a rule.
    pub handled_fs: u64,
    /// The network access rights that need a rule.
    pub handled_net: u64,
    /// The kinds of access to processes outside that are cut off: abstract sockets, signals.
    pub scoped: u64,
}

#[repr(C, packed)]
struct PathBeneath {
    allowed: u64,
    parent_fd: i32,
}

/// Restricts this process and its children. Of the rights that `ruleset` handles, only `allowed`
/// remain, below the folder `top`; one that is not open is an error.
pub fn restrict_by_landlock(
    ruleset: &Ruleset,
    attr_bytes: usize,
    allowed: u64,
    top: RawFd,
) -> io::Result<()> {
    let attr_bytes = attr_bytes.min(size_of::<Ruleset>());
    // SAFETY: `ruleset` is live and at least `attr_bytes` long.
    let fd = check(unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, &raw const *ruleset, attr_bytes, 0)
    })?;
    // SAFETY: the kernel just returned this descriptor and nobody else owns it.
    let rules = unsafe { OwnedFd::from_raw_fd(fd as RawFd) };
    let rule = PathBeneath { allowed, parent_fd: top };
    let path_beneath = 1;
    // SAFETY: the ruleset is open, the rule a live struct of the type that is named.
    check(unsafe {
        libc::syscall(libc::SYS_landlock_add_rule, rules.as_raw_fd(), path_beneath, &raw const rule, 0)
    })?;
    // SAFETY: no pointers.
    check(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, rules.as_raw_fd(), 0) })?;
    Ok(())
}

/// Installs a seccomp filter on this process and its children, for good.
pub fn install_seccomp(filter: &[Instruction]) -> io::Result<()> {
    #[repr(C)]
    struct FilterProgram {
        length: u16,
        filter: *const Instruction,
    }
    let length = u16::try_from(filter.len()).map_err(|_| io::Error::from_raw_os_error(libc::E2BIG))?;
    let program = FilterProgram { length, filter: filter.as_ptr() };
    let mode_filter = 1;
    // SAFETY: the program points to `length` live instructions, laid out as the kernel's sock_filter (repr(C)).
    check(unsafe { libc::syscall(libc::SYS_seccomp, mode_filter, 0, &raw const program) })?;
    Ok(())
}

/// Moves `descriptors` to 3, 4, …, opens `/dev/null` as 0–2, closes everything else but `program`,
/// and executes `program`. Returns only on failure.
pub fn exec_guest(program: RawFd, descriptors: &[RawFd]) -> io::Error {
    match place_descriptors(program, descriptors).and_then(exec_fd) {
        Ok(never) => match never {},
        Err(error) => error,
    }
}

fn place_descriptors(program: RawFd, descriptors: &[RawFd]) -> io::Result<RawFd> {
    let high = 64;
    let duplicate = |fd: RawFd| {
        // SAFETY: duplicating a descriptor touches no memory; a closed one is an error.
        check(i64::from(unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, high) })).map(|fd| fd as RawFd)
    };
    let null = rustix::fs::open("/dev/null", rustix::fs::OFlags::RDWR, rustix::fs::Mode::empty())?;
    let mut moved = vec![duplicate(null.as_raw_fd())?; 3];
    for descriptor in descriptors {
        moved.push(duplicate(*descriptor)?);
    }
    let program = duplicate(program)?;
    // Its number may be one of the targets below; it closes at exec with everything else.
    std::mem::forget(null);
    for (target, source) in moved.iter().enumerate() {
        // SAFETY: this process's own descriptor table, which nobody else uses any more.
        check(i64::from(unsafe { libc::dup2(*source, target as RawFd) }))?;
    }
    let first = moved.len() as u32;
    let cloexec = libc::CLOSE_RANGE_CLOEXEC as i32;
    // SAFETY: no pointers; whatever else is open closes at exec.
    check(unsafe { libc::syscall(libc::SYS_close_range, first, u32::MAX, cloexec) })?;
    Ok(program)
}

fn exec_fd(program: RawFd) -> io::Result<std::convert::Infallible> {
    let argv = [c"eyot-guest".as_ptr(), std::ptr::null()];
    let envp = [std::ptr::null::<libc::c_char>()];
    let flags = libc::AT_EMPTY_PATH;
    // SAFETY: both lists end with null and their strings are static.
    check(unsafe {
        libc::syscall(libc::SYS_execveat, program, c"".as_ptr(), argv.as_ptr(), envp.as_ptr(), flags)
    })?;
    unreachable!("execveat returned without an error")
}
