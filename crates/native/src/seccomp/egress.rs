//! The system calls of the egress program after it has taken over its sockets: those that a proxy
//! and a name server need. It runs on the host and reads data from the sandbox and the internet, so
//! it may do nothing else: start no program, open no file for writing, make no local socket, map no
//! code, and touch no other process.

use super::policy::{by_number, errno, socket};
use super::rule::{ALLOW, EAFNOSUPPORT, REFUSE, Rule, UNKNOWN, high, low};
use super::syscalls::SYSCALLS;

/// Calls that are allowed whatever their arguments.
#[rustfmt::skip]
const ALLOWED: &[&str] = &[
    // Sockets.
    "read", "write", "readv", "writev", "recvfrom", "recvmsg", "recvmmsg", "sendto", "sendmsg", "sendmmsg",
    "connect", "bind", "listen", "accept", "accept4", "shutdown", "getsockname", "getpeername", "getsockopt",
    "setsockopt", "close",
    // Waiting.
    "epoll_create", "epoll_create1", "epoll_ctl", "epoll_wait", "epoll_pwait", "epoll_pwait2", "eventfd",
    "eventfd2", "poll", "ppoll", "futex", "nanosleep", "clock_nanosleep", "sched_yield", "restart_syscall",
    // The system's configuration of names: it is read again when it changes.
    "stat", "fstat", "lstat", "newfstatat", "statx", "lseek", "pread64",
    // Memory and threads.
    "munmap", "mremap", "madvise", "brk", "set_robust_list", "rseq", "sigaltstack", "rt_sigaction",
    "rt_sigprocmask", "rt_sigreturn", "exit", "exit_group", "dup2", "dup3",
    // What it asks about itself and the time.
    "getpid", "gettid", "getuid", "geteuid", "getgid", "getegid", "getrandom", "getrlimit", "clock_gettime",
    "clock_getres", "gettimeofday", "time", "uname", "sched_getaffinity",
];

/// Lists the rule of every number from 0 to the highest known one.
pub(super) fn rules() -> Vec<Rule> {
    let refused = SYSCALLS.iter().map(|(name, _)| (*name, REFUSE));
    let allowed = ALLOWED.iter().map(|name| (*name, ALLOW));
    by_number(refused.chain(allowed).chain(checked()))
}

/// Lists the calls whose rule depends on arguments.
fn checked() -> Vec<(&'static str, Rule)> {
    vec![
        // The C library falls back to `clone`, whose flags can be seen.
        ("clone3", UNKNOWN),
        ("clone", Rule::when(low(0).has_any_of(CLONE_THREAD), ALLOW, REFUSE)),
        ("open", reading(1)),
        ("openat", reading(2)),
        ("mmap", Rule::when(low(2).has_any_of(PROT_EXEC), REFUSE, ALLOW)),
        ("mprotect", Rule::when(low(2).has_any_of(PROT_EXEC), REFUSE, ALLOW)),
        ("socket", Rule::when(low(0).equals(AF_UNIX), errno(EAFNOSUPPORT), socket())),
        ("socketpair", Rule::when(low(0).equals(AF_UNIX), ALLOW, REFUSE)),
        ("ioctl", Rule::when(low(1).equals(FIONBIO), ALLOW, REFUSE)),
        ("fcntl", Rule::when_one_of(low(1), DESCRIPTOR_COMMANDS, &ALLOW, REFUSE)),
        ("prctl", Rule::when_one_of(low(0), &[PR_SET_NAME, PR_SET_VMA], &ALLOW, REFUSE)),
        ("prlimit64", Rule::when(low(2).equals(0), Rule::when(high(2).equals(0), ALLOW, REFUSE), REFUSE)),
    ]
}

const CLONE_THREAD: u32 = 0x0001_0000;
const PROT_EXEC: u32 = 4;
const AF_UNIX: u32 = 1;
/// Makes a descriptor non-blocking.
const FIONBIO: u32 = 0x5421;
/// `F_DUPFD`, `F_GETFD`, `F_SETFD`, `F_GETFL`, `F_SETFL`, `F_DUPFD_CLOEXEC`.
const DESCRIPTOR_COMMANDS: &[u32] = &[0, 1, 2, 3, 4, 1030];
const PR_SET_NAME: u32 = 15;
/// Names a mapping. Allocators use it.
const PR_SET_VMA: u32 = 0x5356_4D41;

/// Allows to open files only for reading.
fn reading(flags: u32) -> Rule {
    /// `O_WRONLY`, `O_RDWR`, `O_CREAT`, `O_TRUNC`, and the bit that makes `O_TMPFILE` more than `O_DIRECTORY`.
    const WRITING: u32 = 0o1 | 0o2 | 0o100 | 0o1000 | 0o20_000_000;
    Rule::when(low(flags).has_any_of(WRITING), REFUSE, ALLOW)
}

#[cfg(test)]
mod tests {
    use crate::seccomp::egress_filter;
    use crate::seccomp::interpreter::{SystemCall, run};
    use crate::seccomp::rule::Decision;
    use crate::seccomp::syscalls::SYSCALLS;

    fn answer(name: &str, arguments: &[u64]) -> Decision {
        let mut all = [0; 6];
        all[..arguments.len()].copy_from_slice(arguments);
        let number = SYSCALLS.iter().find(|(known, _)| *known == name).expect(name).1;
        run(egress_filter(), &SystemCall::new(number, all)).decision
    }

    #[test]
    fn nothing_is_started_written_traced_or_mounted() {
        let calls: [(&str, &[u64]); 24] = [
            ("execve", &[]),
            ("execveat", &[]),
            ("fork", &[]),
            ("vfork", &[]),
            ("clone", &[17]),
            ("unshare", &[0x1000_0000]),
            ("setns", &[]),
            ("ptrace", &[]),
            ("process_vm_readv", &[]),
            ("pidfd_getfd", &[]),
            ("kill", &[]),
            ("mount", &[]),
            ("open", &[0, 0o1]),
            ("openat", &[0, 0, 0o2]),
            ("openat", &[0, 0, 0o100]),
            ("openat", &[0, 0, 1 << 32 | 0o1000]),
            ("unlink", &[]),
            ("rename", &[]),
            ("mmap", &[0, 4096, 5]),
            ("mprotect", &[0, 4096, 1 << 32 | 4]),
            ("memfd_create", &[]),
            ("bpf", &[]),
            ("io_uring_setup", &[]),
            ("prlimit64", &[0, 7, 1 << 32]),
        ];
        for (name, arguments) in calls {
            assert_eq!(answer(name, arguments), Decision::Errno(1), "{name} {arguments:x?}");
        }
        assert_eq!(answer("clone3", &[]), Decision::Errno(38));
        assert_eq!(answer("socket", &[1, 1, 0]), Decision::Errno(97));
        assert_eq!(answer("socket", &[2, 3, 1]), Decision::Errno(1));
    }

    #[test]
    fn a_proxy_and_a_name_server_can_work() {
        let calls: [(&str, &[u64]); 10] = [
            ("socket", &[2, 0x8_0801, 6]),
            ("socket", &[10, 0x8_0802, 17]),
            ("socket", &[16, 0x8_0003, 0]),
            ("accept4", &[]),
            ("connect", &[]),
            ("epoll_wait", &[]),
            ("clone", &[0x003D_0F00]),
            ("openat", &[0, 0, 0o2_000_000]),
            ("mmap", &[0, 4096, 3]),
            ("fcntl", &[3, 1030, 0]),
        ];
        for (name, arguments) in calls {
            assert_eq!(answer(name, arguments), Decision::Allow, "{name} {arguments:x?}");
        }
    }
}
