//! K7: the guest itself, which is pid 1, and the helper that every command hangs from.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::MetadataExt;

use crate::check::{Check, cases, ensure, ensure_eq, not_enforced, not_here};
use crate::facts::{note, tried, tried_io};
use crate::sys;
use crate::world::Stage;

cases! {
    k07_the_guests_program_and_memory_can_be_neither_read_nor_written(stage);
    k07_the_file_of_the_guests_program_can_be_changed_by_nobody_inside(stage);
    k07_inner_root_can_not_change_the_guest_through_proc(stage);
    k07_the_guest_can_not_be_traced(stage);
    k07_the_guests_limits_and_scheduling_can_not_be_changed(stage);
    k07_the_guest_survives_every_signal(stage);
    k07_the_guest_survives_a_signal_to_everybody(stage);
    k07_the_guests_nonces_are_on_no_command_line_and_in_no_environment(stage);
    k07_a_command_that_kills_or_stops_its_parent_harms_nobody_else(stage);
}

const READ: [&str; 16] = [
    "environ",
    "maps",
    "smaps",
    "mem",
    "auxv",
    "exe",
    "cwd",
    "root",
    "io",
    "stack",
    "syscall",
    "pagemap",
    "map_files",
    "fd",
    "personality",
    "task/1/environ",
];
const WRITTEN: [&str; 15] = [
    "exe",
    "mem",
    "oom_score_adj",
    "oom_adj",
    "clear_refs",
    "coredump_filter",
    "uid_map",
    "gid_map",
    "setgroups",
    "projid_map",
    "attr/current",
    "timerslack_ns",
    "sched",
    "autogroup",
    "task/1/mem",
];

/// Tries to open everything of pid 1 and of its own parent, to trace them, and to change what they
/// may use.
pub fn probe(_arguments: &[String]) {
    let parent = std::os::unix::process::parent_id();
    for (who, pid) in [("guest", 1), ("parent", parent)] {
        let folder = format!("/proc/{pid}");
        for name in READ {
            let path = format!("{folder}/{name}");
            let found = match name {
                "exe" | "cwd" | "root" => std::fs::read_link(&path).map(drop),
                "fd" | "map_files" => follow_any(&path),
                _ => std::fs::read(&path).map(drop),
            };
            tried_io(format_args!("{who}_read_{name}"), found);
        }
        for name in WRITTEN {
            let path = format!("{folder}/{name}");
            let written = OpenOptions::new().write(true).open(path);
            tried_io(
                format_args!("{who}_write_{name}"),
                written.and_then(|mut file| std::io::Write::write(&mut file, b"0")),
            );
        }
        tried_io(format_args!("{who}_through_root"), File::open(format!("{folder}/root/etc/passwd")));
        trace(who, u64::from(pid));
    }
    change_limits();
}

/// Inner root may list these folders (the numbers of descriptors are no secret); following an entry
/// is what counts.
fn follow_any(folder: &str) -> std::io::Result<()> {
    let mut last = Err(std::io::ErrorKind::NotFound.into());
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        last = std::fs::read_link(&path).map(drop).or_else(|_| File::open(&path).map(drop));
        if last.is_ok() {
            break;
        }
    }
    last
}

fn trace(who: &str, pid: u64) {
    const SEIZE: u64 = 0x4206;
    tried(
        format_args!("{who}_trace_attach"),
        sys::call(libc::SYS_ptrace, &[libc::PTRACE_ATTACH as u64, pid, 0, 0]),
    );
    tried(format_args!("{who}_trace_seize"), sys::call(libc::SYS_ptrace, &[SEIZE, pid, 0, 0]));
    let mut found = [0_u8; 8];
    let local = [sys::buffer(&mut found), 8];
    let remote = [0x40_0000_u64, 8];
    let (local, remote) = (local.as_ptr() as u64, remote.as_ptr() as u64);
    let arguments = [pid, local, 1, remote, 1, 0];
    tried(format_args!("{who}_trace_readv"), sys::call(libc::SYS_process_vm_readv, &arguments));
    tried(format_args!("{who}_trace_writev"), sys::call(libc::SYS_process_vm_writev, &arguments));
}

fn change_limits() {
    const HIGH: u64 = 1 << 32;
    let zero = [0_u64; 2];
    let zero = zero.as_ptr() as u64;
    for (name, resource) in
        [("nofile", libc::RLIMIT_NOFILE), ("cpu", libc::RLIMIT_CPU), ("as", libc::RLIMIT_AS)]
    {
        let resource = u64::from(resource);
        tried(format_args!("limit_{name}"), sys::call(libc::SYS_prlimit64, &[1, resource, zero, 0]));
        tried(
            format_args!("limit_high_{name}"),
            sys::call(libc::SYS_prlimit64, &[1 | HIGH, resource, zero, 0]),
        );
    }
    let mut mask = [1_u8, 0, 0, 0, 0, 0, 0, 0];
    let mask = sys::buffer(&mut mask);
    let mut idle = [0_u8; 48];
    idle[0] = 48;
    idle[4] = libc::SCHED_IDLE as u8;
    let idle = sys::buffer(&mut idle);
    let calls: [(&str, i64, &[u64]); 8] = [
        ("affinity", libc::SYS_sched_setaffinity, &[1, 8, mask]),
        ("affinity_high", libc::SYS_sched_setaffinity, &[1 | HIGH, 8, mask]),
        ("scheduler", libc::SYS_sched_setscheduler, &[1, libc::SCHED_IDLE as u64, zero]),
        ("sched_attr", libc::SYS_sched_setattr, &[1, idle, 0]),
        ("priority", libc::SYS_setpriority, &[0, 1, 19]),
        ("priority_of_user", libc::SYS_setpriority, &[2, 0, 19]),
        ("io_priority", libc::SYS_ioprio_set, &[1, 1, 3 << 13]),
        ("io_priority_of_user", libc::SYS_ioprio_set, &[3, 1000, 3 << 13]),
    ];
    for (name, number, arguments) in calls {
        tried(format_args!("limit_{name}"), sys::call(number, arguments));
    }
}

/// Tries to change the program of pid 1, of its own parent, and of whatever else it can name, in
/// every way that a file has. With `single` the user inside is the file's owner.
pub fn probe_program(_arguments: &[String]) {
    let parent = std::os::unix::process::parent_id();
    let links = [
        "/proc/1/exe".to_owned(),
        "/proc/1/task/1/exe".to_owned(),
        format!("/proc/{parent}/exe"),
        format!("/proc/{parent}/task/{parent}/exe"),
    ];
    for link in &links {
        change_file(link);
    }
    note("told", says_of_host("/programs/"));
    note("open", open_programs());
}

/// Tries to change the file that a link of `/proc` leads to.
fn change_file(link: &str) {
    let Ok(path) = CString::new(link) else { return };
    let here = libc::AT_FDCWD as u64;
    let path = sys::address(&path);
    for (name, flags) in [
        ("write", libc::O_WRONLY),
        ("both", libc::O_RDWR),
        ("truncate", libc::O_WRONLY | libc::O_TRUNC),
        ("append", libc::O_WRONLY | libc::O_APPEND),
        ("path", libc::O_PATH),
        ("read", libc::O_RDONLY),
    ] {
        let opened = sys::call(libc::SYS_openat, &[here, path, flags as u64, 0]);
        tried(format_args!("program_open_{name}_{link}"), opened);
    }
    let (new, name, value) = (sys::address(c"/tmp/program"), sys::address(c"user.x"), sys::address(c"x"));
    let follow = libc::AT_SYMLINK_FOLLOW as u64;
    let bind = libc::MS_BIND;
    let zeroes = [0_u64; 4];
    let zeroes = zeroes.as_ptr() as u64;
    let calls: [(&str, i64, &[u64]); 11] = [
        ("chmod", libc::SYS_chmod, &[path, 0o777]),
        ("fchmodat", libc::SYS_fchmodat, &[here, path, 0o777]),
        ("chown", libc::SYS_chown, &[path, 0, 0]),
        ("truncate", libc::SYS_truncate, &[path, 0]),
        ("link", libc::SYS_linkat, &[here, path, here, new, follow]),
        ("set_attribute", libc::SYS_setxattr, &[path, name, value, 1, 0]),
        ("remove_attribute", libc::SYS_removexattr, &[path, name]),
        ("times", libc::SYS_utimensat, &[here, path, zeroes, 0]),
        ("mount_over", libc::SYS_mount, &[sys::address(c"/etc/passwd"), path, 0, bind, 0]),
        ("mount_of", libc::SYS_mount, &[path, sys::address(c"/etc/passwd"), 0, bind, 0]),
        ("copy_mount", libc::SYS_open_tree, &[here, path, 1]),
    ];
    for (name, number, arguments) in calls {
        tried(format_args!("program_{name}_{link}"), sys::call(number, arguments));
    }
}

/// Counts the files that every process tells of itself and that contain this text.
fn says_of_host(text: &str) -> usize {
    let names = ["mountinfo", "mounts", "maps", "cmdline", "comm", "status", "stat"];
    let links = ["exe", "cwd", "root"];
    let mut said = 0;
    for process in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let read = names.iter().filter_map(|name| std::fs::read_to_string(process.path().join(name)).ok());
        let linked = links.iter().filter_map(|name| std::fs::read_link(process.path().join(name)).ok());
        let linked = linked.map(|target| target.to_string_lossy().into_owned());
        said += read.chain(linked).filter(|found| found.contains(text)).count();
    }
    said
}

/// Counts the descriptors that this process can see and that lead to a program of the guest.
fn open_programs() -> usize {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let descriptors =
        processes.flat_map(|process| std::fs::read_dir(process.path().join("fd")).into_iter().flatten());
    let targets = descriptors.flatten().filter_map(|entry| std::fs::read_link(entry.path()).ok());
    targets.filter(|target| target.to_string_lossy().contains("eyot-guest")).count()
}

/// Sends pid 1 every signal in every way.
pub fn probe_signals(_arguments: &[String]) {
    for signal in 1..=64 {
        tried(format_args!("kill_{signal}"), sys::call(libc::SYS_kill, &[1, signal]));
        tried(format_args!("tgkill_{signal}"), sys::call(libc::SYS_tgkill, &[1, 1, signal]));
    }
    if let Ok(guest) = sys::call(libc::SYS_pidfd_open, &[1, 0]) {
        for signal in [libc::SIGKILL, libc::SIGSTOP, libc::SIGTERM] {
            let sent = sys::call(libc::SYS_pidfd_send_signal, &[guest as u64, signal as u64, 0, 0]);
            tried(format_args!("pidfd_{signal}"), sent);
        }
    }
    note("done", true);
}

async fn k07_the_guests_program_and_memory_can_be_neither_read_nor_written(stage: Stage) -> Check {
    for who in stage.everybody() {
        let facts = stage.probe_as(who, &["guest"]).await?;
        for of in ["guest", "parent"] {
            facts.none_worked(&format!("{of}_read_"))?;
            facts.none_worked(&format!("{of}_through_"))?;
            if *who == "user" {
                facts.none_worked(&format!("{of}_write_"))?;
            }
            for name in ["mem", "environ", "exe"] {
                facts.is(&format!("{of}_read_{name}"), "EACCES")?;
            }
            for name in ["mem", "exe"] {
                facts.is(&format!("{of}_write_{name}"), "EACCES")?;
            }
        }
    }
    stage.still_works().await
}

async fn k07_the_file_of_the_guests_program_can_be_changed_by_nobody_inside(stage: Stage) -> Check {
    let before = programs(&stage)?;
    for who in stage.everybody() {
        let facts = stage.probe_as(who, &["guest-program"]).await?;
        facts.none_worked("program_")?;
        facts.is("told", "0")?;
        facts.is("open", "0")?;
        stage.still_works().await?;
    }
    ensure_eq!(programs(&stage)?, before);
    Ok(())
}

/// Lists the programs in the state folder with what would show a change: mode, owner, size, links,
/// inode and times. Empty for a container.
fn programs(stage: &Stage) -> Check<Vec<String>> {
    let Ok(directory) = stage.directory() else { return Ok(Vec::new()) };
    let folder = directory.ancestors().nth(2).unwrap_or(directory).join("programs");
    let mut programs = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let found = entry.metadata()?;
        let times = (found.mtime(), found.mtime_nsec(), found.ctime(), found.ctime_nsec());
        let owner = (found.uid(), found.gid(), found.mode());
        programs.push(format!(
            "{:?} {owner:?} {} {} {} {times:?}",
            entry.file_name(),
            found.size(),
            found.nlink(),
            found.ino()
        ));
    }
    Ok(programs)
}

async fn k07_inner_root_can_not_change_the_guest_through_proc(stage: Stage) -> Check {
    if !stage.has_root() {
        return not_here("there is no inner root");
    }
    let facts = stage.probe_as("root", &["guest"]).await?;
    if stage.is_native() {
        return facts.none_worked("guest_write_");
    }
    // A process that can't be dumped has its files in /proc from root, whom no namespace of users
    // keeps apart here. None of these reads or ends the guest; one has the kernel prefer it when
    // memory is short.
    const OWNED: [&str; 6] =
        ["autogroup", "coredump_filter", "oom_adj", "oom_score_adj", "sched", "timerslack_ns"];
    let mut worked = facts.others("guest_write_", &[])?;
    worked.retain(|(_, value)| value == "ok");
    let other: Vec<_> = worked.iter().filter(|(name, _)| !OWNED.contains(&name.as_str())).collect();
    ensure!(other.is_empty(), "these worked: {other:?}");
    stage.still_works().await?;
    if worked.is_empty() {
        Ok(())
    } else {
        not_enforced(
            "root in a container owns the guest's files in /proc: it can raise the guest's oom score",
        )
    }
}

async fn k07_the_guest_can_not_be_traced(stage: Stage) -> Check {
    for who in stage.everybody() {
        let facts = stage.probe_as(who, &["guest"]).await?;
        facts.each("guest_trace_", &["EPERM"])?;
        facts.each("parent_trace_", &["EPERM"])?;
    }
    stage.still_works().await
}

async fn k07_the_guests_limits_and_scheduling_can_not_be_changed(stage: Stage) -> Check {
    for who in stage.everybody() {
        let facts = stage.probe_as(who, &["guest"]).await?;
        let mut others = facts.others("limit_", &["EPERM"])?;
        // In a container no process inside shares the guest's user, so acting on one's own user
        // does not touch the guest.
        others.retain(|(name, _)| stage.is_native() || !name.ends_with("_of_user"));
        ensure!(others.is_empty(), "{who}: {others:?}");
    }
    stage.still_works().await
}

async fn k07_the_guest_survives_every_signal(stage: Stage) -> Check {
    for who in stage.everybody() {
        stage.probe_as(who, &["signal-guest"]).await?.is("done", "true")?;
        stage.sh_as(who, "kill -9 1; kill -STOP 1; kill -TERM 1").await?;
        stage.still_works().await?;
    }
    Ok(())
}

async fn k07_the_guest_survives_a_signal_to_everybody(stage: Stage) -> Check {
    for who in stage.everybody() {
        for signal in ["KILL", "STOP"] {
            let line = format!("kill -{signal} -1");
            let options = eyot::ExecOptions { timeout_ms: Some(3_000), ..stage.options_of(who) };
            crate::check::promptly(&line, stage.sandbox.exec(line.as_str(), options)).await??;
            stage.still_works().await?;
        }
    }
    Ok(())
}

async fn k07_the_guests_nonces_are_on_no_command_line_and_in_no_environment(stage: Stage) -> Check {
    let line = stage.output("tr '\\0' ' ' < /proc/1/cmdline").await?;
    let wanted = if stage.is_native() { "eyot-guest" } else { "/.eyot-guest/eyot-guest init" };
    ensure_eq!(line.trim(), wanted);
    for who in stage.everybody() {
        let environment = stage.sh_as(who, "cat /proc/1/environ").await?;
        ensure!(
            !environment.success() && environment.stdout.is_empty(),
            "{who} reads the guest's environment"
        );
    }
    if stage.is_native() {
        let record = std::fs::read_to_string(stage.directory()?.join("sandbox.json"))?;
        ensure!(record.contains("nonce"), "the record does not hold the nonces; look for them elsewhere");
    }
    let visible = stage
        .sh("env; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline /proc/self/mountinfo 2>/dev/null")
        .await?;
    let visible = visible.stdout_text().to_lowercase();
    ensure!(!visible.contains("nonce"), "{visible}");
    Ok(())
}

async fn k07_a_command_that_kills_or_stops_its_parent_harms_nobody_else(stage: Stage) -> Check {
    for who in stage.everybody() {
        for signal in ["KILL", "STOP", "TERM", "SEGV"] {
            let line = format!("kill -{signal} $PPID; sleep 0.2; echo done");
            let options = eyot::ExecOptions { timeout_ms: Some(3_000), ..stage.options_of(who) };
            // What comes of the command that does so is its own business, as long as the call ends.
            match crate::check::promptly(&line, stage.sandbox.exec(line.as_str(), options)).await? {
                Ok(result) => ensure!(!result.may_still_be_running, "{who} {signal}: {:?}", result.outcome),
                Err(error) => ensure!(error.kind() != eyot::ErrorKind::Internal, "{who} {signal}: {error}"),
            }
            stage.still_works().await?;
        }
    }
    Ok(())
}
