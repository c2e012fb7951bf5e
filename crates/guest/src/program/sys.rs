//! System calls that std does not have, each as a safe function. Code that runs below the guest
//! without libc is in `spawn/sys.rs`.

use std::io;
use std::mem::{self, MaybeUninit};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};

use crate::protocol::{Identity, Terminal};

fn check(result: i32) -> io::Result<i32> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Takes over a descriptor that the guest's maker left open, if it is open. It is closed on exec
/// from now on.
pub fn take_inherited(fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: fcntl on a number that may not be open fails with EBADF and does nothing else.
    check(unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) })?;
    // SAFETY: it is open, and the protocol says that it is the guest's; it is taken once, at the
    // start.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Makes reads and writes fail instead of waiting.
pub fn set_nonblocking(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: a flag of an open descriptor; these are all pipes, terminals and sockets without
    // other status flags.
    check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) }).map(drop)
}

/// Reads what is there, at most `buffer`'s length; 0 at the end.
pub fn read(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the buffer is valid for writes of its length.
    let count = unsafe { libc::read(fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

/// A buffer of zeroes whose pages take no memory before they are written to. The allocator fills one
/// of this size with zeroes, page by page.
pub struct LazyBuffer {
    start: std::ptr::NonNull<u8>,
    len: usize,
}

// SAFETY: the pages belong to this value alone, and to no thread.
unsafe impl Send for LazyBuffer {}

impl LazyBuffer {
    /// Makes a buffer of so many bytes.
    pub fn new(len: usize) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: new pages at an address that the kernel chooses touch no other memory.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), len, protection, flags, -1, 0) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = std::ptr::NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, len })
    }
}

impl std::ops::Deref for LazyBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: `len` bytes are mapped from `start` on until drop, and all are initialized.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl std::ops::DerefMut for LazyBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and `self` is borrowed exclusively.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Drop for LazyBuffer {
    fn drop(&mut self) {
        // SAFETY: the pages were mapped with this length, and nothing borrows them any more.
        if unsafe { libc::munmap(self.start.as_ptr().cast(), self.len) } != 0 {
            eprintln!("eyot-guest: give a buffer back: {}", io::Error::last_os_error());
        }
    }
}

/// Writes what fits.
pub fn write(fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: the buffer is valid for reads of its length.
    let count = unsafe { libc::write(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

/// Receives from a socket without waiting; 0 at the end.
pub fn receive(fd: BorrowedFd<'_>, buffer: &mut [u8]) -> io::Result<usize> {
    let flags = libc::MSG_DONTWAIT;
    // SAFETY: the buffer is valid for writes of its length.
    let count = unsafe { libc::recv(fd.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), flags) };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

/// Sends what fits into a socket without waiting.
pub fn send(fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the buffer is valid for reads of its length.
    let count = unsafe { libc::send(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), flags) };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

/// Sends one after the other, as one, without waiting; says how many bytes the socket took.
pub fn send_both(fd: BorrowedFd<'_>, first: &[u8], second: &[u8]) -> io::Result<usize> {
    let mut parts = [first, second]
        .map(|part| libc::iovec { iov_base: part.as_ptr().cast_mut().cast(), iov_len: part.len() });
    // SAFETY: msghdr is plain data for which zeroes are valid.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = parts.as_mut_ptr();
    message.msg_iovlen = parts.len();
    // SAFETY: the message describes two slices that outlive the call and are only read.
    let count =
        unsafe { libc::sendmsg(fd.as_raw_fd(), &raw const message, libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL) };
    usize::try_from(count).map_err(|_| io::Error::last_os_error())
}

/// Sends bytes together with a descriptor, without waiting. The descriptor goes with the first byte.
pub fn send_with_descriptor(fd: BorrowedFd<'_>, bytes: &[u8], passed: BorrowedFd<'_>) -> io::Result<usize> {
    let descriptors = [passed];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&descriptors));
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    Ok(rustix::net::sendmsg(fd, &[io::IoSlice::new(bytes)], &mut control, flags)?)
}

/// A pipe: the reading end, which never waits, and the writing end.
pub fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut fds = [0; 2];
    // SAFETY: `fds` has room for the two numbers.
    check(unsafe { libc::pipe2(fds.as_mut_ptr(), libc::O_CLOEXEC) })?;
    // SAFETY: the kernel just opened them for this process, and nobody else knows them.
    Ok(unsafe { (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])) })
}

/// Returns how many bytes wait to be read.
pub fn bytes_waiting(fd: BorrowedFd<'_>) -> usize {
    let mut count = 0_i32;
    // SAFETY: FIONREAD writes one int.
    let result = unsafe { libc::ioctl(fd.as_raw_fd(), libc::FIONREAD, &raw mut count) };
    if result < 0 { 0 } else { usize::try_from(count).unwrap_or(0) }
}

/// Tells whether nobody has the other side of a pipe or terminal open any more.
pub fn has_hung_up(fd: BorrowedFd<'_>) -> bool {
    let mut watched = libc::pollfd { fd: fd.as_raw_fd(), events: 0, revents: 0 };
    // SAFETY: one pollfd that is valid for the call, which does not wait.
    let found = unsafe { libc::poll(&raw mut watched, 1, 0) };
    found == 1 && watched.revents & libc::POLLHUP != 0
}

/// An instance of epoll.
#[derive(Debug)]
pub struct Epoll(OwnedFd);

/// An event that epoll reports of one descriptor.
pub type EpollEvent = libc::epoll_event;

impl Epoll {
    /// A new one that watches nothing.
    pub fn new() -> io::Result<Self> {
        // SAFETY: the call takes no memory.
        let fd = check(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })?;
        // SAFETY: the kernel just opened it for this process.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Begins to watch.
    pub fn add(&self, fd: BorrowedFd<'_>, token: u64, events: i32) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, token, events)
    }

    /// Changes what is watched for.
    pub fn modify(&self, fd: BorrowedFd<'_>, token: u64, events: i32) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, token, events)
    }

    /// Watches no longer.
    pub fn remove(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, fd, 0, 0)
    }

    fn control(&self, operation: i32, fd: BorrowedFd<'_>, token: u64, events: i32) -> io::Result<()> {
        let mut event = EpollEvent { events: events as u32, u64: token };
        // SAFETY: both descriptors are open and `event` is read during the call only.
        check(unsafe { libc::epoll_ctl(self.0.as_raw_fd(), operation, fd.as_raw_fd(), &raw mut event) })
            .map(drop)
    }

    /// Waits for events, at most `timeout_ms` (-1: for ever), and returns how many of `events` it
    /// filled.
    pub fn wait(&self, events: &mut [EpollEvent], timeout_ms: i32) -> io::Result<usize> {
        let (pointer, length) = (events.as_mut_ptr(), events.len() as i32);
        // SAFETY: the kernel writes at most `length` events to valid memory.
        match check(unsafe { libc::epoll_wait(self.0.as_raw_fd(), pointer, length, timeout_ms) }) {
            Ok(count) => Ok(count as usize),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(0),
            Err(error) => Err(error),
        }
    }
}

/// The kernel's, two of which libc keeps to itself.
const FIRST_REALTIME_SIGNAL: i32 = 32;
const LAST_SIGNAL: i32 = 64;

/// Resets the action directly, because libc keeps two signals to itself, and the guest's starter
/// may ignore those too. SIGKILL and SIGSTOP are refused, which changes nothing.
fn reset_action(signal: i32) {
    // The kernel's struct: handler, flags, restorer, mask; all zero is the default action.
    let default_action = [0_u64; 4];
    let (action, no_old, mask_bytes) =
        (&raw const default_action, std::ptr::null_mut::<u64>(), size_of::<u64>());
    // SAFETY: `default_action` has the kernel's size and outlives the call; the default action runs
    // no code of ours.
    unsafe { libc::syscall(libc::SYS_rt_sigaction, signal, action, no_old, mask_bytes) };
}

/// Blocks signals in this thread and all that it starts, gives every ignored one but SIGPIPE its
/// default action back, and returns a descriptor that is readable when a child has ended.
///
/// A process that is not PID 1 blocks all of them. PID 1 leaves the realtime ones open: the kernel
/// drops what would have its default action there, while of a blocked realtime signal it queues
/// every one.
pub fn take_signals() -> io::Result<OwnedFd> {
    (1..=LAST_SIGNAL).for_each(reset_action);
    // SAFETY: ignoring a signal runs no code of ours.
    unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
    // SAFETY: the sets are initialised by sigfillset and sigemptyset before they are used.
    unsafe {
        let mut all: libc::sigset_t = mem::zeroed();
        libc::sigfillset(&raw mut all);
        if std::process::id() == 1 {
            for signal in FIRST_REALTIME_SIGNAL..=LAST_SIGNAL {
                // It refuses those that libc keeps to itself, which sigprocmask never blocks.
                libc::sigdelset(&raw mut all, signal);
            }
        }
        check(libc::sigprocmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut()))?;
        let mut children: libc::sigset_t = mem::zeroed();
        libc::sigemptyset(&raw mut children);
        libc::sigaddset(&raw mut children, libc::SIGCHLD);
        let fd = check(libc::signalfd(-1, &raw const children, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK))?;
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// A child that ended, and its wait status; `None` when no child has. ECHILD is an error.
pub fn reap() -> io::Result<Option<(i32, i32)>> {
    let mut status = 0;
    // SAFETY: `status` is valid for the call.
    let pid = check(unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG | libc::__WALL) })?;
    Ok((pid > 0).then_some((pid, status)))
}

/// The exit code, or the signal as an error.
pub fn decode_wait_status(status: i32) -> Result<i32, i32> {
    if libc::WIFSIGNALED(status) { Err(libc::WTERMSIG(status)) } else { Ok(libc::WEXITSTATUS(status)) }
}

/// Wakes one process of this memory that sleeps on a word of it.
pub fn wake_one(word: &AtomicU32) {
    let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the word is valid; the kernel takes its address for a name, and reads nothing.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, 1) };
}

/// Sends a signal to a process, or with a negative number to a group. Returns whether there was
/// one.
pub fn kill(pid: i32, signal: i32) -> io::Result<()> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::kill(pid, signal) }).map(drop)
}

/// Makes this process unreadable to others of its user: no ptrace, no `/proc/<pid>/mem`, no core
/// file.
pub fn forbid_dumping() -> io::Result<()> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 0, 0, 0, 0) }).map(drop)
}

/// Makes orphaned descendants children of this process.
pub fn become_subreaper() -> io::Result<()> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }).map(drop)
}

/// Every file and directory is made with its own permissions less group and others' writing.
pub fn set_umask() {
    // SAFETY: no memory is involved; the call can't fail.
    unsafe { libc::umask(0o022) };
}

/// Keeps the allocator from reserving memory per thread.
pub fn keep_memory_small() {
    #[cfg(target_env = "gnu")]
    // SAFETY: called before any other thread exists.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 2);
    }
}

/// Raises the limit of open files to the hard limit. Returns `RLIMIT_NOFILE`, soft and hard, as it
/// was.
pub fn raise_open_files() -> io::Result<[u64; 2]> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid for the call.
    check(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) })?;
    let raised = libc::rlimit { rlim_cur: limit.rlim_max, rlim_max: limit.rlim_max };
    // SAFETY: `raised` is valid for the call.
    check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) })?;
    Ok([limit.rlim_cur, limit.rlim_max])
}

/// A resource that the kernel counts per user, and a process can be limited in.
#[derive(Debug, Clone, Copy)]
pub enum PerUser {
    /// Signals that wait in queues, and POSIX timers.
    PendingSignals,
    /// Bytes of POSIX message queues.
    QueueBytes,
    /// Bytes of memory that can't be paged out.
    LockedBytes,
}

/// Lets this process and all that it starts have at most so much, soft and hard. It counts against
/// the host's user, whose other programs need theirs.
pub fn limit_per_user(what: PerUser, most: u64) -> io::Result<()> {
    let resource = match what {
        PerUser::PendingSignals => libc::RLIMIT_SIGPENDING,
        PerUser::QueueBytes => libc::RLIMIT_MSGQUEUE,
        PerUser::LockedBytes => libc::RLIMIT_MEMLOCK,
    };
    lower_limit(resource, most)
}

/// Has this process and all that it starts leave no core file. One byte is the limit at which the
/// kernel does not start the program that a core pattern names either, while 0 lets it start.
pub fn limit_core_files() -> io::Result<()> {
    lower_limit(libc::RLIMIT_CORE, 1)
}

#[cfg(target_env = "musl")]
type Resource = libc::c_int;
#[cfg(not(target_env = "musl"))]
type Resource = libc::__rlimit_resource_t;

/// Lowers a limit, soft and hard, to at most so much.
fn lower_limit(resource: Resource, most: u64) -> io::Result<()> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid for the call.
    check(unsafe { libc::getrlimit(resource, &raw mut limit) })?;
    let most = limit.rlim_max.min(most);
    limit = libc::rlimit { rlim_cur: most, rlim_max: most };
    // SAFETY: `limit` is valid for the call.
    check(unsafe { libc::setrlimit(resource, &raw const limit) }).map(drop)
}

/// Runs `make` with this thread's file-system identity, so that what it makes belongs to that user.
pub fn owned_by<T>(uid: u32, gid: u32, make: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let (old_uid, old_gid) = set_file_identity(uid, gid);
    let made = forbid_dumping().and_then(|()| make());
    set_file_identity(old_uid, old_gid);
    forbid_dumping()?;
    made
}

/// Changes this thread's file-system identity, if it may, and returns the one that was. Where
/// `fs.suid_dumpable` is 1 the kernel makes the whole process dumpable with it: the caller has to
/// forbid that again.
fn set_file_identity(uid: u32, gid: u32) -> (u32, u32) {
    // SAFETY: the calls change this thread alone and always return the identity that was.
    let old_gid = unsafe { libc::setfsgid(gid) };
    // SAFETY: as above.
    let old_uid = unsafe { libc::setfsuid(uid) };
    (old_uid.cast_unsigned(), old_gid.cast_unsigned())
}

/// Makes this thread, and it alone, the user in everything that concerns files. It stays itself
/// where it is a process: otherwise whatever else that user runs could signal it and change the
/// limits of the whole guest.
pub fn become_user_for_files(identity: &Identity) -> io::Result<()> {
    let (uid, gid) = (identity.uid, identity.gid);
    let done = |result: libc::c_long| check(result as i32);
    // SAFETY: the calls change this thread alone (libc's own functions for ids change every
    // thread); the pointers are to locals with the kernel's layout that outlive the calls.
    unsafe {
        done(libc::syscall(libc::SYS_setgroups, 1_usize, &raw const gid))?;
        set_file_identity(uid, gid);
        forbid_dumping()?;
        // They report no failure but always the identity that was: -1 is nobody's and changes
        // nothing.
        if (libc::setfsuid(u32::MAX), libc::setfsgid(u32::MAX)) != (uid.cast_signed(), gid.cast_signed()) {
            return Err(io::Error::from_raw_os_error(libc::EPERM));
        }
    }
    set_capabilities(identity.capabilities)?;
    forbid_dumping()
}

/// The kernel's version 3 of capability sets.
pub const CAPABILITY_VERSION: u32 = 0x2008_0522;

/// Sets the capabilities of this thread to a mask, and lets it pass none on.
pub fn set_capabilities(mask: u64) -> io::Result<()> {
    let header = [CAPABILITY_VERSION, 0];
    let (low, high) = (mask as u32, (mask >> 32) as u32);
    let sets = [low, low, 0, high, high, 0];
    // SAFETY: the call changes this thread alone; the pointers are to locals with the kernel's
    // layout that outlive it.
    check(unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), sets.as_ptr()) } as i32).map(drop)
}

/// The process at the other end of a unix socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// The process as seen from here; 0: it is outside of this pid namespace.
    pub pid: i32,
    /// The effective user when it connected.
    pub uid: u32,
}

/// The process at the other end of a unix socket.
pub fn peer(fd: BorrowedFd<'_>) -> io::Result<Peer> {
    let mut peer = libc::ucred { pid: 0, uid: 0, gid: 0 };
    let mut length = size_of::<libc::ucred>() as u32;
    let (level, option) = (libc::SOL_SOCKET, libc::SO_PEERCRED);
    // SAFETY: the kernel writes at most `length` bytes to `peer`.
    let result =
        unsafe { libc::getsockopt(fd.as_raw_fd(), level, option, (&raw mut peer).cast(), &raw mut length) };
    check(result).map(|_| Peer { pid: peer.pid, uid: peer.uid })
}

/// Begins to connect to a port of loopback. Watch for writability, then ask [`connect_result`].
pub fn connect_loopback(port: u16, v6: bool) -> io::Result<OwnedFd> {
    let family = if v6 { libc::AF_INET6 } else { libc::AF_INET };
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no memory is involved.
    let fd = check(unsafe { libc::socket(family, kind, 0) })?;
    // SAFETY: the kernel just opened it for this process.
    let socket = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: both addresses are plain data, for which zeroes are valid.
    let (mut v4_address, mut v6_address): (libc::sockaddr_in, libc::sockaddr_in6) = unsafe { mem::zeroed() };
    v4_address.sin_family = libc::AF_INET as u16;
    v4_address.sin_port = port.to_be();
    v4_address.sin_addr.s_addr = u32::from_ne_bytes([127, 0, 0, 1]);
    v6_address.sin6_family = libc::AF_INET6 as u16;
    v6_address.sin6_port = port.to_be();
    v6_address.sin6_addr.s6_addr[15] = 1;
    let (address, length): (*const libc::sockaddr, usize) = if v6 {
        ((&raw const v6_address).cast(), size_of::<libc::sockaddr_in6>())
    } else {
        ((&raw const v4_address).cast(), size_of::<libc::sockaddr_in>())
    };
    // SAFETY: `address` points to `length` initialised bytes that live through the call.
    match check(unsafe { libc::connect(socket.as_raw_fd(), address, length as u32) }) {
        Err(error) if error.raw_os_error() != Some(libc::EINPROGRESS) => Err(error),
        _ => Ok(socket),
    }
}

/// Returns the result of a connect.
pub fn connect_result(fd: BorrowedFd<'_>) -> io::Result<()> {
    let (mut errno, mut length) = (0_i32, size_of::<i32>() as u32);
    let (level, option) = (libc::SOL_SOCKET, libc::SO_ERROR);
    // SAFETY: the kernel writes at most `length` bytes to `errno`.
    check(unsafe {
        libc::getsockopt(fd.as_raw_fd(), level, option, (&raw mut errno).cast(), &raw mut length)
    })?;
    if errno == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(errno)) }
}

/// Sends no more on a socket.
pub fn shut_down_writing(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::shutdown(fd.as_raw_fd(), libc::SHUT_WR) }).map(drop)
}

/// Neither sends nor receives any more on a socket.
pub fn shut_down(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: no memory is involved.
    check(unsafe { libc::shutdown(fd.as_raw_fd(), libc::SHUT_RDWR) }).map(drop)
}

/// Waits until a socket takes bytes, or the patience is over.
pub fn wait_for_room(fd: BorrowedFd<'_>, patience: Duration) {
    let mut watched = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLOUT, revents: 0 };
    // SAFETY: one pollfd that is valid for the call. Whatever it says, the next send tells more.
    unsafe { libc::poll(&raw mut watched, 1, patience.as_millis().min(1_000_000) as i32 + 1) };
}

/// A new terminal of this size: the side that the guest keeps, which never waits, and the
/// command's.
pub fn open_terminal(size: Terminal) -> io::Result<(OwnedFd, OwnedFd)> {
    let flags = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
    // SAFETY: the path is a C string.
    let fd = check(unsafe { libc::open(c"/dev/ptmx".as_ptr(), flags | libc::O_NONBLOCK) })?;
    // SAFETY: the kernel just opened it for this process.
    let master = unsafe { OwnedFd::from_raw_fd(fd) };
    let unlocked = 0_i32;
    // SAFETY: TIOCSPTLCK reads one int.
    check(unsafe { libc::ioctl(fd, libc::TIOCSPTLCK, &raw const unlocked) })?;
    resize_terminal(std::os::fd::AsFd::as_fd(&master), size)?;
    // SAFETY: TIOCGPTPEER takes open flags as a number and returns a new descriptor.
    let peer = check(unsafe { libc::ioctl(fd, libc::TIOCGPTPEER, flags) })?;
    // SAFETY: the kernel just opened it for this process.
    Ok((master, unsafe { OwnedFd::from_raw_fd(peer) }))
}

/// Changes a terminal's size; its foreground group gets SIGWINCH.
pub fn resize_terminal(master: BorrowedFd<'_>, size: Terminal) -> io::Result<()> {
    let size = libc::winsize { ws_row: size.rows, ws_col: size.cols, ws_xpixel: 0, ws_ypixel: 0 };
    // SAFETY: TIOCSWINSZ reads one winsize.
    check(unsafe { libc::ioctl(master.as_raw_fd(), libc::TIOCSWINSZ, &raw const size) }).map(drop)
}

/// The process group in a terminal's foreground, if there is one.
pub fn foreground_group(master: BorrowedFd<'_>) -> Option<i32> {
    let mut group = 0_i32;
    // SAFETY: TIOCGPGRP writes one int.
    let result = unsafe { libc::ioctl(master.as_raw_fd(), libc::TIOCGPGRP, &raw mut group) };
    (result == 0 && group > 0).then_some(group)
}

/// The byte that a terminal takes for the end of its input.
pub fn end_of_input(master: BorrowedFd<'_>) -> u8 {
    // SAFETY: termios is plain data, for which zeroes are valid.
    let mut settings: libc::termios = unsafe { mem::zeroed() };
    // SAFETY: `settings` is valid for the call.
    let result = unsafe { libc::tcgetattr(master.as_raw_fd(), &raw mut settings) };
    if result == 0 { settings.c_cc[libc::VEOF] } else { 4 }
}

/// Since the machine started, the time it slept included.
pub fn time_since_boot() -> Duration {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is valid for the call, and the clock exists.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut now) };
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// A timer on the clock of [`time_since_boot`].
#[derive(Debug)]
pub struct Timer(OwnedFd);

impl Timer {
    /// One that is not set.
    pub fn new() -> io::Result<Self> {
        let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
        // SAFETY: no memory is involved.
        let fd = check(unsafe { libc::timerfd_create(libc::CLOCK_BOOTTIME, flags) })?;
        // SAFETY: the kernel just opened it for this process.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Returns the timer's descriptor, readable once the time has come.
    pub fn fd(&self) -> BorrowedFd<'_> {
        std::os::fd::AsFd::as_fd(&self.0)
    }

    /// Sets the timer. An expiry before that is forgotten.
    pub fn set(&self, at: Duration) -> io::Result<()> {
        // SAFETY: itimerspec is plain data, for which zeroes are valid.
        let mut setting: libc::itimerspec = unsafe { mem::zeroed() };
        setting.it_value.tv_sec = at.as_secs().min(i64::MAX as u64) as i64;
        // A value of zero would switch the timer off.
        setting.it_value.tv_nsec = i64::from(at.subsec_nanos().max(1));
        let flags = libc::TFD_TIMER_ABSTIME;
        // SAFETY: `setting` is valid for the call.
        let result = unsafe {
            libc::timerfd_settime(self.0.as_raw_fd(), flags, &raw const setting, std::ptr::null_mut())
        };
        check(result).map(drop)
    }
}

/// The processor time of every descendant that was waited for.
pub fn cpu_of_reaped() -> Duration {
    // SAFETY: rusage is plain data, for which zeroes are valid.
    let mut usage: libc::rusage = unsafe { mem::zeroed() };
    // SAFETY: `usage` is valid for the call.
    unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) };
    let of = |time: libc::timeval| Duration::new(time.tv_sec as u64, time.tv_usec as u32 * 1000);
    of(usage.ru_utime) + of(usage.ru_stime)
}

/// Returns the units of `/proc`: clock ticks per second, and bytes per page.
pub fn proc_units() -> (u64, u64) {
    // SAFETY: no memory is involved.
    let (ticks, page) = unsafe { (libc::sysconf(libc::_SC_CLK_TCK), libc::sysconf(libc::_SC_PAGESIZE)) };
    (ticks.max(1) as u64, page.max(1) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dumpable(value: i32) -> i32 {
        // SAFETY: no memory is involved.
        unsafe {
            if value >= 0 {
                libc::prctl(libc::PR_SET_DUMPABLE, value, 0, 0, 0);
            }
            libc::prctl(libc::PR_GET_DUMPABLE, 0, 0, 0, 0)
        }
    }

    /// As the kernel does it where `fs.suid_dumpable` is 1.
    #[test]
    fn k7_a_change_of_the_file_identity_leaves_nothing_dumpable() {
        // SAFETY: the calls change no identity: -1 is nobody's; they return the one that is.
        let (uid, gid) = unsafe { (libc::setfsuid(u32::MAX), libc::setfsgid(u32::MAX)) };
        dumpable(1);
        let inside = owned_by(uid.cast_unsigned(), gid.cast_unsigned(), || {
            let was = dumpable(-1);
            dumpable(1);
            Ok(was)
        });
        assert_eq!((inside.unwrap(), dumpable(-1)), (0, 0));
        dumpable(1);
    }
}

/// A kind of System V IPC objects.
#[derive(Debug, Clone, Copy)]
pub enum SystemV {
    /// Shared memory.
    Segments,
    /// Messages.
    Queues,
    /// Semaphores, in sets.
    Semaphores,
}

/// An object, and the processes that are known of it. 0: none.
#[derive(Debug, Clone, Copy)]
pub enum SystemVObject {
    /// Shared memory.
    Segment { id: i32, attached: u64, maker: i32 },
    /// Messages.
    Queue { id: i32, sender: i32, receiver: i32 },
    /// Semaphores.
    Semaphores { id: i32 },
}

impl SystemVObject {
    /// Returns the id by which it is removed.
    pub fn id(&self) -> i32 {
        match *self {
            Self::Segment { id, .. } | Self::Queue { id, .. } | Self::Semaphores { id } => id,
        }
    }
}

/// Room for all that the kernel writes here: `shmid64_ds`, `msqid64_ds`, `semid64_ds` and the answers
/// to the `_INFO` commands.
type SystemVAnswer = [u64; 32];

/// Asks the kernel about objects of a kind. `number`: which semaphore of a set.
fn ask_system_v(
    kind: SystemV,
    id: i32,
    number: i32,
    command: i32,
    answer: &mut SystemVAnswer,
) -> Option<i32> {
    let answer = answer.as_mut_ptr();
    // SAFETY: the commands that are used below write at most one of the structs that fit into `answer`, or nothing.
    let result = unsafe {
        match kind {
            SystemV::Segments => libc::syscall(libc::SYS_shmctl, id, command, answer),
            SystemV::Queues => libc::syscall(libc::SYS_msgctl, id, command, answer),
            SystemV::Semaphores => libc::syscall(libc::SYS_semctl, id, number, command, answer),
        }
    };
    i32::try_from(result).ok().filter(|result| *result >= 0)
}

/// The last place at which there may be an object of this kind.
pub fn last_system_v(kind: SystemV) -> i32 {
    let info = match kind {
        SystemV::Segments => 14,
        SystemV::Queues => 12,
        SystemV::Semaphores => 19,
    };
    ask_system_v(kind, 0, 0, info, &mut [0; 32]).unwrap_or(0)
}

/// The object at a place of the kernel's table, whoever may read it.
pub fn system_v_at(kind: SystemV, place: i32) -> Option<SystemVObject> {
    let stat_any = match kind {
        SystemV::Segments => 15,
        SystemV::Queues => 13,
        SystemV::Semaphores => 20,
    };
    let mut answer = [0; 32];
    let id = ask_system_v(kind, place, 0, stat_any, &mut answer)?;
    // Two numbers of processes are in one word.
    let both = |word: u64| halves_of(word).map(i32::from_ne_bytes);
    Some(match kind {
        SystemV::Segments => {
            let [maker, _] = both(answer[10]);
            SystemVObject::Segment { id, attached: answer[11], maker }
        }
        SystemV::Queues => {
            let [sender, receiver] = both(answer[12]);
            SystemVObject::Queue { id, sender, receiver }
        }
        SystemV::Semaphores => SystemVObject::Semaphores { id },
    })
}

fn halves_of(word: u64) -> [[u8; 4]; 2] {
    let [a, b, c, d, e, f, g, h] = word.to_ne_bytes();
    [[a, b, c, d], [e, f, g, h]]
}

/// The process that changed a semaphore of a set last; `None` if there is no such semaphore.
pub fn last_user_of_semaphore(id: i32, number: i32) -> Option<i32> {
    ask_system_v(SystemV::Semaphores, id, number, libc::GETPID, &mut [0; 32])
}

/// Removes an object. One that is gone already, or another user's, is left.
pub fn remove_system_v(kind: SystemV, id: i32) {
    ask_system_v(kind, id, 0, libc::IPC_RMID, &mut [0; 32]);
}

/// Tells if there is a process of this number; 0 and less are none's.
pub fn is_alive(pid: i32) -> bool {
    // SAFETY: the signal 0 is sent to nobody, and the number is one process's.
    pid > 0
        && (unsafe { libc::kill(pid, 0) == 0 }
            || io::Error::last_os_error().raw_os_error() == Some(libc::EPERM))
}

/// Reads the next signal off a descriptor of signals, and returns its sender's process number: 0 if the sender is outside of
/// this process's namespace. `None`: there is no signal.
pub fn sender_of_signal(signals: BorrowedFd<'_>) -> Option<u32> {
    // The kernel's `signalfd_siginfo` has the sender behind the number, the error and the code.
    let mut record = [0; 128];
    let count = rustix::io::read(signals, &mut record).ok()?;
    let sender = record.get(12..16).filter(|_| count == record.len())?;
    Some(u32::from_ne_bytes(sender.try_into().ok()?))
}
