//! K1: new namespaces from inside, and those of other processes.

use crate::check::{Check, cases, ensure};
use crate::facts::{note, tried};
use crate::sys;
use crate::world::Stage;

cases! {
    k01_new_namespaces_from_inside_are_refused(stage);
    k01_clone3_is_not_there_so_that_libc_falls_back_and_threads_start(stage);
    k01_a_namespace_of_another_process_can_not_be_entered(stage);
    k01_the_program_unshare_is_refused(stage);
}

const KINDS: [(&str, u64); 8] = [
    ("time", 0x80),
    ("mount", 0x0002_0000),
    ("cgroup", 0x0200_0000),
    ("uts", 0x0400_0000),
    ("ipc", 0x0800_0000),
    ("user", 0x1000_0000),
    ("pid", 0x2000_0000),
    ("network", 0x4000_0000),
];

/// Tries every kind of namespace in every way.
pub fn probe(_arguments: &[String]) {
    for (kind, flag) in KINDS {
        tried(format_args!("unshare_{kind}"), sys::call(libc::SYS_unshare, &[flag]));
        // The kernel drops the upper half of the flags, so a filter must not look at it.
        tried(format_args!("unshare_high_{kind}"), sys::call(libc::SYS_unshare, &[flag | 1 << 32]));
        if kind != "time" {
            tried(format_args!("clone_{kind}"), sys::clone(flag));
        }
        let mut arguments = [0_u8; 88];
        arguments[..8].copy_from_slice(&flag.to_ne_bytes());
        let clone3 = sys::call(libc::SYS_clone3, &[sys::buffer(&mut arguments), 88]);
        tried(format_args!("clone3_{kind}"), clone3);
    }
    for name in ["cgroup", "ipc", "mnt", "net", "pid", "pid_for_children", "time", "user", "uts"] {
        let Ok(namespace) = std::fs::File::open(format!("/proc/self/ns/{name}")) else { continue };
        let descriptor = std::os::fd::AsRawFd::as_raw_fd(&namespace) as u64;
        tried(format_args!("setns_{name}"), sys::call(libc::SYS_setns, &[descriptor, 0]));
    }
    let guest = sys::call(libc::SYS_pidfd_open, &[1, 0]).unwrap_or(-1) as u64;
    tried("setns_pidfd", sys::call(libc::SYS_setns, &[guest, 0x1000_0000]));
    for name in ["mnt", "user", "pid", "net"] {
        let found = std::fs::File::open(format!("/proc/1/ns/{name}"));
        note(format_args!("guest_{name}"), if found.is_ok() { "ok" } else { "refused" });
    }
    let thread = std::thread::spawn(|| 42).join();
    note("thread", thread.unwrap_or(0));
}

async fn k01_new_namespaces_from_inside_are_refused(stage: Stage) -> Check {
    for who in stage.everybody() {
        let facts = stage.probe_as(who, &["namespaces"]).await?;
        facts.each("unshare_", stage.refusals(&["EPERM"]))?;
        facts.each("clone_", stage.refusals(&["EPERM"]))?;
    }
    Ok(())
}

async fn k01_clone3_is_not_there_so_that_libc_falls_back_and_threads_start(stage: Stage) -> Check {
    let facts = stage.probe(&["namespaces"]).await?;
    facts.each("clone3_", stage.refusals(&["ENOSYS"]))?;
    facts.is("thread", "42")
}

async fn k01_a_namespace_of_another_process_can_not_be_entered(stage: Stage) -> Check {
    for who in stage.everybody() {
        let facts = stage.probe_as(who, &["namespaces"]).await?;
        facts.each("setns_", stage.refusals(&["EPERM"]))?;
        facts.each("guest_", &["refused"])?;
    }
    Ok(())
}

async fn k01_the_program_unshare_is_refused(stage: Stage) -> Check {
    stage.need_program("unshare").await?;
    for who in stage.everybody() {
        for options in ["--user", "--user --map-root-user", "--mount", "--net", "--pid --fork"] {
            let result = stage.sh_as(who, &format!("unshare {options} true")).await?;
            let said = result.stderr_text();
            ensure!(
                said.contains("Operation not permitted"),
                "{who}: unshare {options}: {:?} {said}",
                result.outcome
            );
        }
    }
    Ok(())
}
