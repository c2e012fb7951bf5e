//! The lists of calls: complete, without contradiction, refusing what the threats name and allowing what
//! programs need.

use std::collections::BTreeMap;

use super::{REFUSED_CALL, UNKNOWN_CALL, answer, number};
use crate::seccomp::policy::named;
use crate::seccomp::rule::Decision;
use crate::seccomp::syscalls::SYSCALLS;

#[test]
fn what_the_threat_table_names_is_refused() {
    let refused = [
        "setns",
        "mount",
        "umount2",
        "fsopen",
        "move_mount",
        "pivot_root",
        "open_by_handle_at",
        "name_to_handle_at",
        "userfaultfd",
        "bpf",
        "perf_event_open",
        "keyctl",
        "add_key",
        "kexec_load",
        "kexec_file_load",
        "init_module",
        "finit_module",
        "quotactl",
        "quotactl_fd",
        "pidfd_getfd",
        "memfd_secret",
    ];
    for name in refused {
        assert_eq!(answer(name, &[]), REFUSED_CALL, "{name}");
    }
    for name in ["io_uring_setup", "io_uring_enter", "io_uring_register", "clone3"] {
        assert_eq!(answer(name, &[]), UNKNOWN_CALL, "{name}");
    }
}

/// Calls that real programs make: node, the JVM, Go, Python's asyncio, git, Chrome, gdb and strace.
#[rustfmt::skip]
const NEEDED: &[(&str, &[&str])] = &[
    ("node", &[
        "epoll_create1", "epoll_ctl", "epoll_pwait", "eventfd2", "pipe2", "statx", "copy_file_range", "futex",
        "madvise", "mprotect", "getrandom", "prlimit64", "sched_getaffinity", "pkey_alloc", "capget",
        "inotify_init1", "socketpair", "readv", "writev", "sendmmsg", "close_range", "openat"]),
    ("the JVM", &[
        "get_mempolicy", "mbind", "set_mempolicy", "sched_getaffinity", "membarrier", "mincore", "sysinfo",
        "clock_gettime", "getrusage", "set_robust_list", "rseq", "tgkill", "rt_sigaction", "sigaltstack",
        "getcpu"]),
    ("Go", &["sched_yield", "tgkill", "epoll_pwait", "pidfd_open", "pidfd_send_signal", "waitid", "mincore",
        "timer_create", "timer_settime", "timer_delete", "splice", "accept4", "nanosleep", "prctl",
        "openat2"]),
    ("asyncio", &[
        "epoll_wait", "socketpair", "pidfd_open", "signalfd4", "timerfd_create", "shmget", "mq_open",
        "memfd_create", "sendmsg", "recvmsg", "getdents64", "vfork"]),
    ("git", &[
        "linkat", "renameat2", "fsync", "sync_file_range", "mmap", "lstat", "symlink", "chmod", "utimensat",
        "flock", "setitimer", "faccessat2", "readlink", "unlinkat"]),
    ("Chrome", &["clone", "seccomp", "landlock_create_ruleset", "prctl", "memfd_create", "shmat", "shmctl",
        "inotify_add_watch", "sched_setscheduler", "setpriority", "futex_waitv", "statfs", "kill", "chroot",
        "fallocate"]),
    ("gdb and strace", &["ptrace", "process_vm_readv", "process_vm_writev", "personality", "wait4", "tkill",
        "arch_prctl", "modify_ldt", "rt_sigtimedwait", "restart_syscall"]),
];

#[test]
fn programs_can_make_the_calls_they_need() {
    for (program, names) in NEEDED {
        for name in *names {
            // A family for sockets, zero otherwise.
            let family = u64::from(name.starts_with("socket"));
            assert_eq!(answer(name, &[family]), Decision::Allow, "{program}: {name}");
        }
    }
}

#[test]
fn every_known_call_is_in_exactly_one_place_and_every_name_is_known() {
    let mut places: BTreeMap<&str, usize> = SYSCALLS.iter().map(|&(name, _)| (name, 0)).collect();
    for (name, _) in named() {
        *places.get_mut(name).unwrap_or_else(|| panic!("`{name}` is not a system call")) += 1;
    }
    let wrong: Vec<_> = places.into_iter().filter(|&(_, count)| count != 1).collect();
    assert_eq!(wrong, [], "a call is in no list, or in more than one");
}

#[test]
fn the_table_of_calls_ascends_and_agrees_with_libc() {
    assert!(SYSCALLS.windows(2).all(|pair| pair[0].1 < pair[1].1));
    for (name, libc) in [
        ("read", libc::SYS_read),
        ("clone3", libc::SYS_clone3),
        ("landlock_restrict_self", libc::SYS_landlock_restrict_self),
        ("fchmodat2", libc::SYS_fchmodat2),
        ("mseal", libc::SYS_mseal),
    ] {
        assert_eq!(i64::from(number(name)), libc, "{name}");
    }
}
