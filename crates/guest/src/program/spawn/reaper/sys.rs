//! The two processes below the guest that a command needs, made without copying its memory.
//!
//! The *reaper* is a process of its own that shares the guest's memory and file descriptors. It is
//! a subreaper, so whatever the command leaves behind becomes its child, and the command's whole
//! tree can be found, waited for and killed without cgroups. The *child* is cloned by the reaper as
//! `vfork` does and becomes the command.
//!
//! A reaper whose command ended and left nothing behind waits for a moment in its [`ReaperSeat`]
//! for the next plan. Otherwise it ends as soon as it has no child.
//!
//! Both run on the guest's memory, thread-local storage included. So nothing here may call libc,
//! allocate, panic, or touch `errno`: only the system calls below, on what [`ReaperPlan`] prepared.

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
compile_error!("the guest speaks to the kernel directly and knows x86_64 Linux only");

use std::arch::asm;
use std::ffi::{c_char, c_void};
use std::io;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, Ordering};

/// The reaper has not come back from making the child.
pub const STATE_PENDING: u32 = 0;
/// The same, and the guest wants a record as soon as it has.
pub const STATE_WANTED: u32 = 1;
/// The child is the command, or has failed. It needs the descriptors in [`ReaperPlan::fds`] no more.
pub const STATE_STARTED: u32 = 2;

/// The reaper carries out a plan.
pub const SEAT_BUSY: u32 = 0;
/// The reaper has no child, is done with its plan, and waits for another one.
pub const SEAT_FREE: u32 = 1;
/// The reaper ends, and takes no plan any more.
pub const SEAT_LEFT: u32 = 2;

/// The time for which a reaper waits for another plan, in seconds.
const FREE_SECONDS: u64 = 1;

/// A record says that the command runs.
pub const RECORD_STARTED: u32 = 1;
/// A record says that the command could not be run: the step and the error number.
pub const RECORD_FAILED: u32 = 2;
/// A record says how the command's own process ended: the status of `wait4`.
pub const RECORD_ENDED: u32 = 3;
/// The same, and nothing of the command is left: its reaper is free.
pub const RECORD_ENDED_WHOLE: u32 = 4;

/// The step that failed: making the child.
pub const STEP_FORK: u32 = 1;
/// Making a session, a controlling terminal, the three descriptors, the limits.
pub const STEP_SETUP: u32 = 2;
/// Becoming the user.
pub const STEP_USER: u32 = 3;
/// Entering the directory that the working directory is held beneath.
pub const STEP_BENEATH: u32 = 4;
/// Entering the working directory.
pub const STEP_CWD: u32 = 5;
/// Running the program.
pub const STEP_EXEC: u32 = 6;

/// A report of the reaper to the guest, in one write of 16 bytes.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReaperRecord {
    /// The command's number.
    pub command: u32,
    /// One of `RECORD_…`.
    pub kind: u32,
    /// The step that failed.
    pub step: u32,
    /// The error number or the wait status.
    pub value: i32,
}

/// One way to run the command: a file and the arguments that go with it. The last one has a null
/// path.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Candidate {
    /// The file.
    pub path: *const c_char,
    /// The arguments, ending with null.
    pub argv: *const *const c_char,
}

/// The place of a reaper: what it carries out, and where it waits for more. It must neither move nor
/// be dropped while the reaper lives.
#[repr(C)]
#[derive(Debug)]
pub struct ReaperSeat {
    /// One of `SEAT_…`. The reaper sleeps on it while it is free.
    pub state: AtomicU32,
    /// The present plan.
    pub plan: AtomicPtr<ReaperPlan>,
    /// The top of the child's stack, aligned to 16 bytes.
    pub child_stack: *mut c_void,
}

/// Everything the two processes need. It must neither move nor be dropped until the reaper is free
/// or has been waited for.
#[repr(C)]
#[derive(Debug)]
pub struct ReaperPlan {
    /// The child's process number, written by the kernel before the child runs.
    pub pid: AtomicI32,
    /// One of `STATE_…`.
    pub state: AtomicU32,
    /// The step that failed, or 0.
    pub failed_step: AtomicU32,
    /// The error number.
    pub failed_errno: AtomicI32,
    /// The command's number, for the records.
    pub command: u32,
    /// The descriptor to which records are written.
    pub status_fd: i32,
    /// The command's standard input, output and error.
    pub fds: [i32; 3],
    /// The one of them that the reaper closes once the child has its own, or -1. The process that
    /// takes the number out closes it.
    pub owned_fd: AtomicI32,
    /// Standard input is a terminal that becomes the controlling one.
    pub terminal: bool,
    /// The child becomes `uid`, `gid` with `capabilities`.
    pub switch_user: bool,
    /// The user.
    pub uid: u32,
    /// The group, and the only supplementary one.
    pub gid: u32,
    /// The capabilities that are kept.
    pub capabilities: u64,
    /// The file to which the child writes its own higher out-of-memory score, or null.
    pub oom_path: *const c_char,
    /// Only root may write there. A child that becomes a user can do so as root first.
    pub oom_path_is_roots: bool,
    /// The working directory; below `beneath` if that is not null.
    pub cwd: *const c_char,
    /// The directory that `cwd` is relative to and must not leave.
    pub beneath: *const c_char,
    /// `RLIMIT_NOFILE`, soft and hard.
    pub open_files: [u64; 2],
    /// `RLIMIT_NPROC`, soft and hard. `u64::MAX` twice leaves it as it is.
    pub processes: [u64; 2],
    /// The files to try, in order.
    pub candidates: *const Candidate,
    /// The shell and its arguments for a file that is no program; its second place takes the file.
    pub script_argv: *mut *const c_char,
    /// The environment, ending with null.
    pub envp: *const *const c_char,
    /// A system calls filter that the command gets on top of its sandbox's, or null.
    pub filter: *const libc::sock_fprog,
}

impl ReaperRecord {
    /// The record in what was read from the pipe.
    pub fn from_bytes(bytes: &[u8; size_of::<Self>()]) -> Self {
        let (words, _) = bytes.as_chunks::<4>();
        let word = |index: usize| words.get(index).copied().map_or(0, u32::from_ne_bytes);
        Self { command: word(0), kind: word(1), step: word(2), value: word(3).cast_signed() }
    }
}

const REAPER_FLAGS: i32 = libc::CLONE_VM | libc::CLONE_FILES | libc::SIGCHLD;
const CHILD_FLAGS: i32 = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_PARENT_SETTID | libc::SIGCHLD;

/// Starts a reaper on the plan in its seat and says its process number.
///
/// # Safety
/// The seat and the two stacks must stay valid and unmoved until the reaper has been waited for
/// *and* the state of its plan is [`STATE_STARTED`] or it exited by itself. So must the plan and
/// everything it points to, unless the reaper is free before. All signals must be blocked, but
/// those that only end the new process.
pub unsafe fn start(seat: *mut ReaperSeat, reaper_stack: *mut c_void) -> io::Result<i32> {
    // SAFETY: the new process runs `reaper` on a stack of its own and never returns here; the
    // caller keeps both alive.
    let pid = unsafe { clone(REAPER_FLAGS, reaper_stack, ptr::null_mut(), reaper, seat) };
    if pid < 0 { Err(io::Error::from_raw_os_error(-pid as i32)) } else { Ok(pid as i32) }
}

/// # Safety
/// `stack` is the 16-byte-aligned top of an unused stack, `entry` never returns, `argument` outlives
/// the new process.
unsafe fn clone<T>(
    flags: i32,
    stack: *mut c_void,
    parent_tid: *mut i32,
    entry: unsafe extern "C" fn(*mut T) -> !,
    argument: *mut T,
) -> isize {
    let result: isize;
    // SAFETY: in the parent this is an ordinary system call. The new process starts after it with
    // rax = 0 on its own stack, calls `entry`, which never returns, and so never sees this
    // function's frame.
    unsafe {
        asm!(
            "syscall",
            "test rax, rax",
            "jnz 2f",
            "xor ebp, ebp",
            "mov rdi, r12",
            "call r13",
            "ud2",
            "2:",
            inlateout("rax") libc::SYS_clone as isize => result,
            in("rdi") flags as isize,
            in("rsi") stack,
            in("rdx") parent_tid,
            in("r10") 0,
            in("r8") 0,
            in("r12") argument,
            in("r13") entry,
            lateout("rcx") _,
            lateout("r11") _,
        );
    }
    result
}

/// # Safety
/// As the system call `number` demands of its arguments.
#[inline(always)]
unsafe fn call(number: libc::c_long, arguments: [usize; 4]) -> isize {
    let result: isize;
    let [a, b, c, d] = arguments;
    // SAFETY: the kernel's calling convention; it changes rax, rcx and r11 alone, and memory as the
    // caller vouched.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number as isize => result,
            in("rdi") a,
            in("rsi") b,
            in("rdx") c,
            in("r10") d,
            in("r8") 0,
            in("r9") 0,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result
}

/// # Safety
/// Runs as a process of its own on a `ReaperSeat` that outlives it.
unsafe extern "C" fn reaper(seat: *mut ReaperSeat) -> ! {
    // SAFETY: see `start`: the seat outlives this process, and it is only read, or changed through
    // atomics.
    unsafe {
        let seat = &*seat;
        // The guest has some of them open where it is PID 1, whom they can't hurt; the child opens
        // all.
        set_signal_mask(u64::MAX);
        // A guest that is not PID 1 may be killed. Its sockets would seem open as long as a reaper has them.
        call(libc::SYS_prctl, [libc::PR_SET_PDEATHSIG as usize, libc::SIGKILL as usize, 0, 0]);
        call(libc::SYS_prctl, [libc::PR_SET_CHILD_SUBREAPER as usize, 1, 0, 0]);
        call(libc::SYS_prctl, [libc::PR_SET_NAME as usize, c"eyot-reaper".as_ptr() as usize, 0, 0]);
        while carry_out(seat) && wait_for_plan(seat) {}
        call(libc::SYS_exit_group, [0, 0, 0, 0]);
        asm!("ud2", options(noreturn));
    }
}

/// Runs the command of the present plan until none of its processes is left. Returns whether this
/// reaper is free: nothing is left of a command that ran, and the plan is not looked at any more.
///
/// # Safety
/// As `reaper`.
unsafe fn carry_out(seat: &ReaperSeat) -> bool {
    // SAFETY: the plan is valid until this reaper is free or has ended.
    unsafe {
        let plan = seat.plan.load(Ordering::Acquire);
        let shared = &*plan;
        let child_pid = clone(CHILD_FLAGS, seat.child_stack, shared.pid.as_ptr(), child, plan);
        if child_pid < 0 {
            fail(shared, STEP_FORK, child_pid);
        }
        let wanted = shared.state.swap(STATE_STARTED, Ordering::AcqRel) == STATE_WANTED;
        let fd = shared.owned_fd.swap(-1, Ordering::AcqRel);
        if fd >= 0 {
            call(libc::SYS_close, [fd as usize, 0, 0, 0]);
        }
        report_start(shared, wanted);
        reap_all(seat, shared, child_pid)
    }
}

/// Waits for another plan, for a moment. Returns whether there is one.
///
/// # Safety
/// As `reaper`.
unsafe fn wait_for_plan(seat: &ReaperSeat) -> bool {
    let timeout = [FREE_SECONDS, 0];
    let operation = (libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG) as usize;
    let word = seat.state.as_ptr() as usize;
    loop {
        // SAFETY: the word and the time, two words as the kernel has them, outlive the call.
        let waited = unsafe {
            call(libc::SYS_futex, [word, operation, SEAT_FREE as usize, &raw const timeout as usize])
        };
        let is_over = waited == -(libc::ETIMEDOUT as isize);
        let (free, left) = (SEAT_FREE, SEAT_LEFT);
        if is_over && seat.state.compare_exchange(free, left, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            return false;
        }
        match seat.state.load(Ordering::Acquire) {
            SEAT_BUSY => return true,
            SEAT_LEFT => return false,
            _ => {}
        }
    }
}

/// # Safety
/// As `reaper`.
unsafe fn report_start(plan: &ReaperPlan, wanted: bool) {
    let step = plan.failed_step.load(Ordering::Acquire);
    if step != 0 {
        let errno = plan.failed_errno.load(Ordering::Acquire);
        // SAFETY: as `reaper`.
        unsafe { report(plan, RECORD_FAILED, step, errno) };
    } else if wanted {
        // SAFETY: as `reaper`.
        unsafe { report(plan, RECORD_STARTED, 0, 0) };
    }
}

/// # Safety
/// As `carry_out`.
unsafe fn reap_all(seat: &ReaperSeat, plan: &ReaperPlan, child_pid: isize) -> bool {
    loop {
        let mut status = 0_i32;
        // SAFETY: `status` outlives the call.
        let pid = unsafe {
            call(libc::SYS_wait4, [usize::MAX, &raw mut status as usize, libc::__WALL as usize, 0])
        };
        if pid == child_pid && plan.failed_step.load(Ordering::Acquire) == 0 {
            // SAFETY: as `carry_out`.
            unsafe {
                if !has_children() && !was_signalled() {
                    // The guest may take the seat, and drop the plan, once it has the record.
                    seat.state.store(SEAT_FREE, Ordering::Release);
                    report(plan, RECORD_ENDED_WHOLE, 0, status);
                    return true;
                }
                report(plan, RECORD_ENDED, 0, status);
            }
        }
        if pid == -(libc::ECHILD as isize) {
            return false;
        }
    }
}

/// Tells whether a signal waits here that a reaper does not get by its work. All are blocked, and a
/// realtime one counts against its sender's user for as long as this process lives.
fn was_signalled() -> bool {
    const OWN: u64 = 1 << (libc::SIGCHLD - 1) | 1 << (libc::SIGCONT - 1);
    let mut pending = 0_u64;
    // SAFETY: the kernel writes the set, one word, during the call.
    unsafe { call(libc::SYS_rt_sigpending, [&raw mut pending as usize, size_of::<u64>(), 0, 0]) };
    pending & !OWN != 0
}

/// Tells whether this process has a child, ended or not. It takes none of them away.
fn has_children() -> bool {
    let options = libc::WEXITED | libc::WNOHANG | libc::WNOWAIT | libc::__WALL;
    // SAFETY: without a place for its answer the call writes nothing.
    let found = unsafe { call(libc::SYS_waitid, [libc::P_ALL as usize, 0, 0, options as usize]) };
    found != -(libc::ECHILD as isize)
}

/// # Safety
/// As `reaper`.
unsafe fn report(plan: &ReaperPlan, kind: u32, step: u32, value: i32) {
    let record = ReaperRecord { command: plan.command, kind, step, value };
    // SAFETY: `record` lives through the call; 16 bytes into a pipe are written whole or not at
    // all.
    unsafe {
        call(
            libc::SYS_write,
            [plan.status_fd as usize, &raw const record as usize, size_of::<ReaperRecord>(), 0],
        )
    };
}

/// # Safety
/// As `child`.
unsafe extern "C" fn child(plan: *mut ReaperPlan) -> ! {
    // SAFETY: see `start`; the reaper is suspended until this process execs or exits.
    unsafe {
        let plan = &*plan;
        set_up(plan);
        set_limits(plan);
        if plan.switch_user {
            become_user(plan);
        }
        enter_cwd(plan);
        install_filter(plan);
        set_signal_mask(0);
        exec(plan)
    }
}

/// # Safety
/// As `child`.
unsafe fn set_signal_mask(blocked: u64) {
    let mask = &raw const blocked as usize;
    // SAFETY: the kernel reads the mask, one word, during the call.
    unsafe { call(libc::SYS_rt_sigprocmask, [libc::SIG_SETMASK as usize, mask, 0, size_of::<u64>()]) };
}

/// # Safety
/// As `child`.
unsafe fn set_up(plan: &ReaperPlan) {
    // The guest ignores SIGPIPE alone, and what is ignored stays so across exec. The kernel's
    // struct: four words.
    let default_action = [0_u64; 4];
    // SAFETY: `default_action` is as large as the kernel's sigaction; descriptors are plain
    // numbers.
    unsafe {
        let action = &raw const default_action as usize;
        call(libc::SYS_rt_sigaction, [libc::SIGPIPE as usize, action, 0, size_of::<u64>()]);
        must(plan, STEP_SETUP, call(libc::SYS_setsid, [0; 4]));
        let mut target = 0;
        for fd in plan.fds {
            must(plan, STEP_SETUP, call(libc::SYS_dup2, [fd as usize, target, 0, 0]));
            target = target.wrapping_add(1);
        }
        if plan.terminal {
            must(plan, STEP_SETUP, call(libc::SYS_ioctl, [0, libc::TIOCSCTTY as usize, 0, 0]));
        }
        must(plan, STEP_SETUP, call(libc::SYS_close_range, [3, u32::MAX as usize, 0, 0]));
    }
}

/// # Safety
/// As `child`.
unsafe fn set_limits(plan: &ReaperPlan) {
    // SAFETY: the limits are two words each, as the kernel has them.
    unsafe {
        let set = |which: u32, values: &[u64; 2]| {
            call(libc::SYS_setrlimit, [which as usize, values as *const _ as usize, 0, 0])
        };
        must(plan, STEP_SETUP, set(libc::RLIMIT_NOFILE, &plan.open_files));
        if plan.processes[0] != u64::MAX {
            must(plan, STEP_SETUP, set(libc::RLIMIT_NPROC, &plan.processes));
        }
        if !plan.oom_path_is_roots {
            raise_oom_score(plan);
        }
    }
}

/// Makes the command, not the guest, what the kernel kills first. A courtesy: without it the
/// command still runs.
///
/// # Safety
/// As `child`.
unsafe fn raise_oom_score(plan: &ReaperPlan) {
    if plan.oom_path.is_null() {
        return;
    }
    // SAFETY: the path is a C string of the plan.
    unsafe {
        let flags = (libc::O_WRONLY | libc::O_CLOEXEC) as usize;
        let fd = call(libc::SYS_open, [plan.oom_path as usize, flags, 0, 0]);
        if fd >= 0 {
            call(libc::SYS_write, [fd as usize, c"500".as_ptr() as usize, 3, 0]);
            call(libc::SYS_close, [fd as usize, 0, 0, 0]);
        }
    }
}

/// # Safety
/// As `child`.
unsafe fn become_user(plan: &ReaperPlan) {
    let (uid, gid) = (plan.uid as usize, plan.gid as usize);
    let (low, high) = (plan.capabilities as u32, (plan.capabilities >> 32) as u32);
    // Version 3, this process; then effective, permitted, inheritable for the lower and the upper
    // half.
    let header = [0x2008_0522_u32, 0];
    let sets = [low, low, 0, high, high, 0];
    let ambient_clear = [libc::PR_CAP_AMBIENT as usize, libc::PR_CAP_AMBIENT_CLEAR_ALL as usize, 0, 0];
    // Where `fs.suid_dumpable` is 1 a change of ids makes the memory dumpable, and it is the
    // guest's too until the exec.
    let forbid_dumping = [libc::PR_SET_DUMPABLE as usize, 0, 0, 0];
    // SAFETY: every pointer is to a local that outlives the call and has the kernel's layout.
    unsafe {
        if plan.oom_path_is_roots {
            // For the files' sake alone. Without a root in here it changes nothing.
            call(libc::SYS_setfsuid, [0; 4]);
            must(plan, STEP_USER, call(libc::SYS_prctl, forbid_dumping));
            raise_oom_score(plan);
        }
        must(plan, STEP_USER, call(libc::SYS_setgroups, [1, &raw const plan.gid as usize, 0, 0]));
        must(plan, STEP_USER, call(libc::SYS_setresgid, [gid, gid, gid, 0]));
        must(plan, STEP_USER, call(libc::SYS_prctl, forbid_dumping));
        must(plan, STEP_USER, call(libc::SYS_setresuid, [uid, uid, uid, 0]));
        must(plan, STEP_USER, call(libc::SYS_prctl, forbid_dumping));
        must(plan, STEP_USER, call(libc::SYS_prctl, ambient_clear));
        let arguments = [&raw const header as usize, &raw const sets as usize, 0, 0];
        must(plan, STEP_USER, call(libc::SYS_capset, arguments));
    }
}

/// As the user, so that the kernel checks the user's permission on every part of the path.
///
/// # Safety
/// As `child`.
unsafe fn enter_cwd(plan: &ReaperPlan) {
    // SAFETY: the paths are C strings of the plan.
    unsafe {
        if plan.beneath.is_null() {
            must(plan, STEP_CWD, call(libc::SYS_chdir, [plan.cwd as usize, 0, 0, 0]));
            return;
        }
        let flags = libc::O_PATH | libc::O_DIRECTORY | libc::O_CLOEXEC;
        let top = call(libc::SYS_open, [plan.beneath as usize, flags as usize, 0, 0]);
        must(plan, STEP_BENEATH, top);
        let resolve = libc::RESOLVE_BENEATH | libc::RESOLVE_NO_MAGICLINKS;
        let how = [flags as u64, 0, resolve];
        let arguments = [top as usize, plan.cwd as usize, &raw const how as usize, size_of_val(&how)];
        let mut fd = -(libc::EAGAIN as isize);
        // The kernel says EAGAIN when a rename somewhere raced with `..`; it can't go on for ever.
        for _ in 0..64 {
            if fd == -(libc::EAGAIN as isize) {
                fd = call(libc::SYS_openat2, arguments);
            }
        }
        must(plan, STEP_CWD, fd);
        must(plan, STEP_CWD, call(libc::SYS_fchdir, [fd as usize, 0, 0, 0]));
    }
}

/// # Safety
/// As `child`.
unsafe fn install_filter(plan: &ReaperPlan) {
    const SECCOMP_SET_MODE_FILTER: usize = 1;
    if plan.filter.is_null() {
        return;
    }
    // SAFETY: the filter belongs to the plan, and what it points to lives as long as the guest.
    unsafe {
        must(
            plan,
            STEP_SETUP,
            call(libc::SYS_seccomp, [SECCOMP_SET_MODE_FILTER, 0, plan.filter as usize, 0]),
        );
    }
}

/// As `execvp`: the next candidate where this one is not there or may not be run, a shell where it
/// is no program.
///
/// # Safety
/// As `child`.
unsafe fn exec(plan: &ReaperPlan) -> ! {
    let mut verdict = -(libc::ENOENT as isize);
    let mut candidate = plan.candidates;
    // SAFETY: the candidates end with a null path, the vectors with a null pointer; all belong to
    // the plan.
    unsafe {
        while !(*candidate).path.is_null() {
            let Candidate { path, argv } = *candidate;
            let mut error = call(libc::SYS_execve, [path as usize, argv as usize, plan.envp as usize, 0]);
            if error == -(libc::ENOEXEC as isize) && !plan.script_argv.is_null() {
                *plan.script_argv.add(1) = path;
                let shell = *plan.script_argv as usize;
                call(libc::SYS_execve, [shell, plan.script_argv as usize, plan.envp as usize, 0]);
                error = -(libc::ENOEXEC as isize);
            }
            if error == -(libc::EACCES as isize) {
                verdict = error;
            } else if error != -(libc::ENOENT as isize) && error != -(libc::ENOTDIR as isize) {
                fail(plan, STEP_EXEC, error);
            }
            candidate = candidate.add(1);
        }
        fail(plan, STEP_EXEC, verdict)
    }
}

/// # Safety
/// As `child`.
unsafe fn must(plan: &ReaperPlan, step: u32, result: isize) {
    if result < 0 {
        // SAFETY: as `child`.
        unsafe { fail(plan, step, result) }
    }
}

/// Leaves word of the failed step and ends this process, the child or (at `STEP_FORK`) the reaper.
///
/// # Safety
/// As `child`.
unsafe fn fail(plan: &ReaperPlan, step: u32, result: isize) -> ! {
    plan.failed_errno.store(result.wrapping_neg() as i32, Ordering::Release);
    plan.failed_step.store(step, Ordering::Release);
    // SAFETY: as `child`; nothing runs after the exit.
    unsafe {
        if step == STEP_FORK {
            report(plan, RECORD_FAILED, step, result.wrapping_neg() as i32);
        }
        call(libc::SYS_exit_group, [127, 0, 0, 0]);
        asm!("ud2", options(noreturn));
    }
}
