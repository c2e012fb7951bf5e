//! The system calls that a sandbox may make whatever their arguments, those that are refused, and
//! those that seem not to exist.
//!
//! The lists are an allowlist: a call in none of them, and without a check in `policy.rs`, answers
//! ENOSYS. The allowed calls follow Docker's default profile, without those that need a capability
//! that a sandbox never has. Many of the refused calls would fail in a user namespace anyway; they
//! are refused so that a bug in the kernel behind them can't be reached.

/// Calls that are allowed.
#[rustfmt::skip]
pub(super) const ALLOWED: &[&str] = &[
    // Files and folders.
    "read", "write", "pread64", "pwrite64", "readv", "writev", "preadv", "pwritev", "preadv2", "pwritev2",
    "close", "close_range", "dup", "dup2", "dup3", "fcntl", "flock", "lseek", "creat", "open", "openat",
    "openat2", "access", "faccessat", "faccessat2", "stat", "fstat", "lstat", "newfstatat", "statx", "statfs",
    "fstatfs", "getdents", "getdents64", "getcwd", "chdir", "fchdir", "rename", "renameat", "renameat2",
    "mkdir", "mkdirat", "rmdir", "link", "linkat", "unlink", "unlinkat", "symlink", "symlinkat", "readlink",
    "readlinkat", "chmod", "fchmod", "fchmodat", "fchmodat2", "chown", "fchown", "lchown", "fchownat",
    "umask", "utime", "utimes", "futimesat", "utimensat", "truncate", "ftruncate", "fallocate", "fadvise64",
    "readahead", "fsync", "fdatasync", "syncfs", "sync_file_range", "sendfile", "splice", "tee",
    "vmsplice", "copy_file_range", "setxattr", "lsetxattr", "fsetxattr", "getxattr", "lgetxattr", "fgetxattr",
    "listxattr", "llistxattr", "flistxattr", "removexattr", "lremovexattr", "fremovexattr", "setxattrat",
    "getxattrat", "listxattrat", "removexattrat", "file_getattr", "file_setattr", "inotify_init",
    "inotify_init1", "inotify_add_watch", "inotify_rm_watch", "cachestat",
    // The capability check answers; Docker's set, which an inner root has, includes it.
    "chroot",
    // Waiting.
    "poll", "ppoll", "select", "pselect6", "epoll_create", "epoll_create1", "epoll_ctl", "epoll_wait",
    "epoll_pwait", "epoll_pwait2", "eventfd", "eventfd2", "signalfd", "signalfd4", "timerfd_create",
    "timerfd_settime", "timerfd_gettime", "pipe", "pipe2",
    // Memory.
    "mmap", "munmap", "mremap", "mprotect", "msync", "mincore", "madvise", "brk", "mlock", "mlock2",
    "munlock", "mlockall", "munlockall", "remap_file_pages", "memfd_create", "mseal", "map_shadow_stack",
    "pkey_mprotect", "pkey_alloc", "pkey_free", "membarrier", "mbind", "set_mempolicy", "get_mempolicy",
    "set_mempolicy_home_node", "process_mrelease",
    // Processes, threads and their identity.
    "fork", "vfork", "execve", "execveat", "exit", "exit_group", "wait4", "waitid", "getpid", "getppid",
    "gettid", "getpgid", "setpgid", "getpgrp", "getsid", "setsid", "getuid", "geteuid", "getgid", "getegid",
    "setuid", "setgid", "setreuid", "setregid", "getresuid", "setresuid", "getresgid", "setresgid",
    "setfsuid", "setfsgid", "getgroups", "setgroups", "capget", "capset", "prctl", "arch_prctl",
    "modify_ldt", "set_tid_address", "set_robust_list", "get_robust_list", "futex", "futex_waitv",
    "futex_wake", "futex_wait", "futex_requeue", "rseq", "rseq_slice_yield", "getrlimit",
    "getrusage", "getpriority", "ioprio_get", "times", "uname", "sysinfo", "getcpu", "getrandom",
    "pidfd_open", "pidfd_send_signal",
    // Debuggers, of one's own processes.
    "ptrace", "process_vm_readv", "process_vm_writev",
    // Programs may sandbox themselves further.
    "seccomp", "landlock_create_ruleset", "landlock_add_rule", "landlock_restrict_self",
    // Scheduling, as far as it reads or is about the caller.
    "sched_yield", "sched_getparam", "sched_getscheduler", "sched_get_priority_max", "sched_get_priority_min",
    "sched_rr_get_interval", "sched_getaffinity", "sched_getattr",
    // Signals and time. The kernel shields pid 1 from signals of its own namespace.
    "kill", "tkill", "tgkill", "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "rt_sigpending",
    "rt_sigtimedwait", "rt_sigqueueinfo", "rt_tgsigqueueinfo", "rt_sigsuspend", "sigaltstack",
    "restart_syscall", "pause", "alarm", "getitimer", "setitimer", "nanosleep", "clock_nanosleep",
    "clock_gettime", "clock_getres", "gettimeofday", "time", "timer_create", "timer_settime",
    "timer_gettime", "timer_getoverrun", "timer_delete",
    // Sockets, once they exist.
    "connect", "accept", "accept4", "bind", "listen", "sendto", "recvfrom", "sendmsg", "recvmsg", "sendmmsg",
    "recvmmsg", "shutdown", "getsockname", "getpeername", "setsockopt", "getsockopt",
    // System V and POSIX IPC, in the sandbox's own IPC namespace.
    "shmget", "shmat", "shmctl", "shmdt", "semget", "semop", "semtimedop", "semctl", "msgget", "msgsnd",
    "msgrcv", "msgctl", "mq_open", "mq_unlink", "mq_timedsend", "mq_timedreceive", "mq_notify",
    "mq_getsetattr",
];

/// Calls that are refused with EPERM.
#[rustfmt::skip]
pub(super) const REFUSED: &[&str] = &[
    // Namespaces and mounts, and handles that lead past the root folder.
    "setns", "mount", "umount2", "fsopen", "fsconfig", "fsmount", "fspick", "move_mount", "open_tree",
    "open_tree_attr", "mount_setattr", "pivot_root", "statmount", "listmount", "listns", "name_to_handle_at",
    "open_by_handle_at",
    // Code and keys in the kernel; large surfaces with a history.
    "init_module", "finit_module", "delete_module", "create_module", "get_kernel_syms", "query_module",
    "kexec_load", "kexec_file_load", "bpf", "perf_event_open", "userfaultfd", "keyctl", "add_key",
    "request_key", "memfd_secret", "lookup_dcookie", "fanotify_init", "fanotify_mark",
    // The machine: its clock, name, log, ports, swap, quotas.
    "settimeofday", "clock_settime", "clock_adjtime", "adjtimex", "sethostname", "setdomainname", "syslog",
    "reboot", "swapon", "swapoff", "quotactl", "quotactl_fd", "acct", "iopl", "ioperm", "vhangup",
    // Reaching into another process by a handle that the filter cannot compare with pid 1.
    "pidfd_getfd", "process_madvise", "kcmp", "move_pages", "migrate_pages",
    // Obsolete or never implemented.
    "uselib", "ustat", "sysfs", "_sysctl", "nfsservctl", "getpmsg", "putpmsg", "afs_syscall", "tuxcall",
    "security", "set_thread_area", "get_thread_area", "epoll_ctl_old", "epoll_wait_old", "vserver",
];

/// Calls that are answered with ENOSYS, as by a kernel that lacks them, because callers then fall
/// back: libc from `clone3` (its flags are in memory, where no filter sees them) to `clone`,
/// runtimes from io_uring to epoll. The probes are calls that only the kernel's own trampolines
/// make.
#[rustfmt::skip]
pub(super) const ABSENT: &[&str] = &[
    "clone3", "io_uring_setup", "io_uring_enter", "io_uring_register", "uretprobe", "uprobe",
    "lsm_get_self_attr", "lsm_set_self_attr", "lsm_list_modules",
    // Their contexts count towards one limit of the whole host (fs.aio-max-nr), which one sandbox could use up.
    "io_setup", "io_destroy", "io_getevents", "io_submit", "io_cancel", "io_pgetevents",
];
