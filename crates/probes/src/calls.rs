//! K4 and K5: system calls that reach deep into the kernel, unknown ones, and those that another
//! table numbers.

use crate::check::{Check, cases, ensure, not_enforced, not_here};
use crate::facts::{note, tried};
use crate::sys;
use crate::world::Stage;

cases! {
    k04_known_and_denied_calls_are_not_permitted(stage);
    k04_io_uring_and_unknown_calls_are_not_there(stage);
    k04_only_harmless_personalities_are_permitted(stage);
    k04_ptrace_of_an_own_child_works(stage);
    k04_strace_and_gdb_work_on_own_processes(stage);
    k05_calls_by_the_x32_and_ia32_tables_are_not_there(stage);
}

/// Known to the kernel, and denied.
const DENIED: [(&str, i64); 32] = [
    ("userfaultfd", libc::SYS_userfaultfd),
    ("bpf", libc::SYS_bpf),
    ("perf_event_open", libc::SYS_perf_event_open),
    ("keyctl", libc::SYS_keyctl),
    ("add_key", libc::SYS_add_key),
    ("request_key", libc::SYS_request_key),
    ("kexec_load", libc::SYS_kexec_load),
    ("kexec_file_load", libc::SYS_kexec_file_load),
    ("init_module", libc::SYS_init_module),
    ("finit_module", libc::SYS_finit_module),
    ("delete_module", libc::SYS_delete_module),
    ("quotactl", libc::SYS_quotactl),
    ("quotactl_fd", libc::SYS_quotactl_fd),
    ("pidfd_getfd", libc::SYS_pidfd_getfd),
    ("memfd_secret", libc::SYS_memfd_secret),
    ("process_madvise", libc::SYS_process_madvise),
    ("kcmp", libc::SYS_kcmp),
    ("move_pages", libc::SYS_move_pages),
    ("migrate_pages", libc::SYS_migrate_pages),
    ("fanotify_init", libc::SYS_fanotify_init),
    ("syslog", libc::SYS_syslog),
    ("reboot", libc::SYS_reboot),
    ("swapon", libc::SYS_swapon),
    ("swapoff", libc::SYS_swapoff),
    ("acct", libc::SYS_acct),
    ("iopl", libc::SYS_iopl),
    ("ioperm", libc::SYS_ioperm),
    ("settimeofday", libc::SYS_settimeofday),
    ("clock_settime", libc::SYS_clock_settime),
    ("adjtimex", libc::SYS_adjtimex),
    ("sethostname", libc::SYS_sethostname),
    ("lookup_dcookie", libc::SYS_lookup_dcookie),
];

/// Answered as by a kernel that does not have them.
const ABSENT: [(&str, i64); 9] = [
    ("io_uring_setup", libc::SYS_io_uring_setup),
    ("io_uring_enter", libc::SYS_io_uring_enter),
    ("io_uring_register", libc::SYS_io_uring_register),
    ("clone3", libc::SYS_clone3),
    ("unknown_600", 600),
    ("unknown_9999", 9999),
    ("unknown_largest", 0x3fff_ffff),
    ("unknown_negative", -2),
    ("unknown_low_negative", 0xffff_fffe),
];

const READ_IMPLIES_EXEC: u64 = 0x0040_0000;
const MMAP_PAGE_ZERO: u64 = 0x0010_0000;
const ADDR_COMPAT_LAYOUT: u64 = 0x0020_0000;
const STICKY_TIMEOUTS: u64 = 0x0400_0000;

/// Tries the calls of the two lists, and personalities.
pub fn probe(_arguments: &[String]) {
    for (name, number) in DENIED {
        // Arguments that would be harmless if the call were carried out: none fits any of them.
        tried(format_args!("denied_{name}"), sys::call(number, &[u64::MAX; 6]));
    }
    for (name, number) in ABSENT {
        tried(format_args!("absent_{name}"), sys::call(number, &[0; 6]));
    }
    let flags = [
        ("exec", READ_IMPLIES_EXEC),
        ("page_zero", MMAP_PAGE_ZERO),
        ("compat", ADDR_COMPAT_LAYOUT),
        ("sticky", STICKY_TIMEOUTS),
        ("bsd", 6),
    ];
    for (name, flag) in flags {
        tried(format_args!("personality_{name}"), sys::call(libc::SYS_personality, &[flag]));
    }
    for (name, flag) in [("query", 0xffff_ffff), ("no_random", 0x0004_0000), ("linux", 0)] {
        tried(format_args!("harmless_{name}"), sys::call(libc::SYS_personality, &[flag]));
    }
}

/// Tries the tables of x32 and, in a child that may die of it, of ia32.
pub fn probe_foreign(_arguments: &[String]) {
    const X32: i64 = 0x4000_0000;
    const X32_PTRACE: i64 = 521;
    for (name, number) in [("getpid", libc::SYS_getpid), ("mount", libc::SYS_mount), ("ptrace", X32_PTRACE)] {
        tried(format_args!("foreign_x32_{name}"), sys::call(X32 | number, &[0; 6]));
    }
    #[cfg(target_arch = "x86_64")]
    for (name, number) in [("getpid", 20), ("fork", 2), ("pause", 29)] {
        let child = sys::fork(|| {
            // Where it is carried out `pause` has no end of its own.
            let alarm = sys::call(libc::SYS_alarm, &[2]);
            match sys::call_32(number) {
                Ok(_) => 0,
                Err(errno) => alarm.map_or(errno, |_| errno),
            }
        });
        let status = child.map(sys::wait).unwrap_or(-1);
        let came_to = match (libc::WIFEXITED(status), libc::WEXITSTATUS(status)) {
            (true, 0) => "ok".to_owned(),
            (true, errno) => crate::facts::errno_name(errno),
            (false, _) => format!("signal{}", libc::WTERMSIG(status)),
        };
        note(format_args!("foreign_ia32_{name}"), came_to);
    }
}

/// Traces a child of its own, and reads its memory.
pub fn probe_own_child(_arguments: &[String]) {
    let mut secret = *b"in the child's memory";
    let child = sys::fork(|| {
        let traced = sys::call(libc::SYS_ptrace, &[libc::PTRACE_TRACEME as u64, 0, 0, 0]);
        let stopped = sys::call(libc::SYS_kill, &[u64::from(std::process::id()), libc::SIGSTOP as u64]);
        i32::from(traced.is_err() || stopped.is_err())
    });
    let Ok(child) = child else { return };
    note("stopped", libc::WIFSTOPPED(sys::wait(child)));
    let child = child as u64;
    let mut found = [0_u8; 21];
    let remote = [sys::buffer(&mut secret), 21];
    let local = [sys::buffer(&mut found), 21];
    let (local, remote) = (local.as_ptr() as u64, remote.as_ptr() as u64);
    tried("read", sys::call(libc::SYS_process_vm_readv, &[child, local, 1, remote, 1, 0]));
    note("found", String::from_utf8_lossy(&found));
    tried("went_on", sys::call(libc::SYS_ptrace, &[libc::PTRACE_CONT as u64, child, 0, 0]));
    note("ended", libc::WEXITSTATUS(sys::wait(child as i32)));
}

async fn k04_known_and_denied_calls_are_not_permitted(stage: Stage) -> Check {
    stage.ensure_refused(("calls", "denied_"), &["EPERM"], &["adjtimex", "memfd_secret"]).await
}

async fn k04_io_uring_and_unknown_calls_are_not_there(stage: Stage) -> Check {
    stage
        .ensure_refused(
            ("calls", "absent_"),
            &["ENOSYS"],
            &["io_uring_setup", "io_uring_enter", "io_uring_register"],
        )
        .await
}

async fn k04_only_harmless_personalities_are_permitted(stage: Stage) -> Check {
    for who in stage.everybody() {
        let facts = stage.probe_as(who, &["calls"]).await?;
        facts.each("personality_", stage.refusals(&["EPERM"]))?;
        for name in ["query", "linux"] {
            facts.is(&format!("harmless_{name}"), "ok")?;
        }
        // Engines refuse it; a debugger in a container does without.
        facts.each("harmless_no_random", if stage.is_native() { &["ok"] } else { &["ok", "EPERM"] })?;
    }
    Ok(())
}

async fn k04_ptrace_of_an_own_child_works(stage: Stage) -> Check {
    let facts = stage.probe(&["own-child"]).await?;
    facts.is("stopped", "true")?;
    // Engines refuse `process_vm_readv` without SYS_PTRACE. A debugger has other ways.
    if stage.is_native() || facts.get("read")? != "EPERM" {
        facts.is("read", "ok")?;
        facts.is("found", "in the child's memory")?;
    }
    facts.is("went_on", "ok")?;
    facts.is("ended", "0")
}

async fn k04_strace_and_gdb_work_on_own_processes(stage: Stage) -> Check {
    let mut tried_any = false;
    let lines = [
        ("strace", "strace -f -o /tmp/trace sh -c 'cat /etc/hostname' && grep -c execve /tmp/trace"),
        ("gdb", "gdb -batch -ex starti -ex 'info registers rip' /usr/bin/env 2>&1 | grep '^rip'"),
    ];
    for (program, line) in lines {
        if stage.need_program(program).await.is_err() {
            continue;
        }
        tried_any = true;
        let result = stage.sh(line).await?;
        ensure!(
            result.success(),
            "{program}: {:?}: {}{}",
            result.outcome,
            result.stdout_text(),
            result.stderr_text()
        );
    }
    if tried_any { Ok(()) } else { not_here("there is neither `strace` nor `gdb` in the sandbox") }
}

async fn k05_calls_by_the_x32_and_ia32_tables_are_not_there(stage: Stage) -> Check {
    stage.ensure_refused(("foreign-calls", "foreign_x32_"), &["ENOSYS"], &[]).await?;
    for who in stage.everybody() {
        let facts = stage.probe_as(who, &["foreign-calls"]).await?;
        // SIGSEGV: the kernel has no ia32 at all.
        let let_through = facts.others("foreign_ia32_", &["ENOSYS", "signal11"])?;
        if !stage.is_native() && !let_through.is_empty() {
            return not_enforced(
                "this engine's filter knows the ia32 table, and lets through what it lets through of the other",
            );
        }
        ensure!(let_through.is_empty(), "{who}: {let_through:?}");
    }
    Ok(())
}
