//! K9: what `/proc`, `/sys` and `/etc` tell of the host, and what could be set there.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;

use eyot::{Limits, SandboxSpec};

use crate::check::{Check, cases, ensure, ensure_eq, not_enforced};
use crate::facts::{note, tried, tried_io};
use crate::sys;
use crate::world::{Stage, World};

cases! {
    k09_the_hosts_memory_symbols_and_keys_are_masked(stage);
    k09_proc_shows_nothing_but_processes_and_what_programs_need(stage);
    k09_a_crash_leaves_no_core_and_starts_nothing_on_the_host(stage);
    k09_sys_is_not_there(stage);
    k09_nothing_below_proc_sys_can_be_written(stage);
    k09_the_core_pattern_and_the_other_ways_to_root_are_read_only(stage);
    k09_the_state_folder_is_named_nowhere(world);
    k09_the_hosts_name_and_machine_id_are_not_there(stage);
    k09_devices_are_the_harmless_ones(stage);
    k09_the_hosts_secrets_are_not_in_etc_nor_its_homes(stage);
    k09_the_kernels_log_can_not_be_read(stage);
}

const MASKED: [&str; 36] = [
    "acpi",
    "asound",
    "buddyinfo",
    "bus",
    "cgroups",
    "config.gz",
    "crypto",
    "diskstats",
    "driver",
    "fs",
    "interrupts",
    "iomem",
    "ioports",
    "irq",
    "kallsyms",
    "kcore",
    "key-users",
    "keys",
    "latency_stats",
    "locks",
    "mdstat",
    "modules",
    "mtrr",
    "pagetypeinfo",
    "partitions",
    "pressure",
    "sched_debug",
    "schedstat",
    "scsi",
    "slabinfo",
    "softirqs",
    "swaps",
    "timer_list",
    "timer_stats",
    "vmstat",
    "zoneinfo",
];

/// The other entries that may exist, beside these and processes.
const SHOWN: [&str; 19] = [
    "consoles",
    "cpuinfo",
    "devices",
    "dma",
    "execdomains",
    "filesystems",
    "loadavg",
    "meminfo",
    "misc",
    "mounts",
    "net",
    "self",
    "stat",
    "sys",
    "sysvipc",
    "thread-self",
    "tty",
    "uptime",
    "version",
];

/// Says how much of each file there is to read, and tries to write the dangerous ones.
pub fn probe(_arguments: &[String]) {
    for name in MASKED {
        note(format_args!("masked_{name}"), content(&Path::new("/proc").join(name)));
    }
    for name in ["firmware", "kernel", "fs", "devices", "module", "class"] {
        note(format_args!("sys_{name}"), content(&Path::new("/sys").join(name)));
    }
    let dangerous = [
        ("core_pattern", "/proc/sys/kernel/core_pattern"),
        ("modprobe", "/proc/sys/kernel/modprobe"),
        ("hotplug", "/proc/sys/kernel/hotplug"),
        ("binfmt", "/proc/sys/fs/binfmt_misc/register"),
        ("hostname", "/proc/sys/kernel/hostname"),
        ("overcommit", "/proc/sys/vm/overcommit_memory"),
        ("userns", "/proc/sys/user/max_user_namespaces"),
        ("forward", "/proc/sys/net/ipv4/ip_forward"),
        ("sysrq", "/proc/sysrq-trigger"),
        ("irq", "/proc/irq/default_smp_affinity"),
        ("mtrr", "/proc/mtrr"),
        ("fs", "/proc/fs/ext4"),
        ("uevent", "/sys/kernel/uevent_helper"),
    ];
    for (name, path) in dangerous {
        match OpenOptions::new().write(true).open(path) {
            // Writing to it does nothing.
            Ok(file) if is_null_device(&file) => note(format_args!("dangerous_{name}"), "masked"),
            opened => tried_io(format_args!("dangerous_{name}"), opened),
        }
    }
    tried_io("dangerous_new", std::fs::write("/proc/fs/new", "x"));
}

fn is_null_device(file: &File) -> bool {
    file.metadata().is_ok_and(|found| found.file_type().is_char_device() && found.rdev() == 0x103)
}

/// Says how much there is to read of everything at the top of `/proc` but processes.
pub fn probe_proc(_arguments: &[String]) {
    for entry in std::fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.bytes().all(|byte| byte.is_ascii_digit()) {
            note(format_args!("proc_{name}"), content(&entry.path()));
        }
    }
}

/// Tries to change the limit of core files, and crashes.
pub fn crash(_arguments: &[String]) {
    let limits = [[0_u64; 2], [u64::MAX; 2], [u64::MAX, 1], [0, u64::MAX], [4096, 4096]];
    for limit in limits {
        let mut bytes: Vec<u8> = limit.iter().flat_map(|number| number.to_ne_bytes()).collect();
        let address = sys::buffer(&mut bytes);
        let core = libc::RLIMIT_CORE as u64;
        tried(format_args!("setrlimit_{limit:?}"), sys::call(libc::SYS_setrlimit, &[core, address]));
        tried(format_args!("prlimit_{limit:?}"), sys::call(libc::SYS_prlimit64, &[0, core, address, 0]));
        let held = rustix::process::getrlimit(rustix::process::Resource::Core);
        note(format_args!("limit_after_{limit:?}"), format_args!("{:?}", (held.current, held.maximum)));
        let status = sys::fork(|| std::process::abort()).map_or(0, sys::wait);
        note(format_args!("aborted_after_{limit:?}"), libc::WTERMSIG(status) == libc::SIGABRT);
        note(format_args!("dumped_after_{limit:?}"), libc::WCOREDUMP(status));
    }
}

/// `none`, `empty`, or how much there is.
fn content(path: &Path) -> String {
    match std::fs::metadata(path) {
        Err(_) => "none".to_owned(),
        Ok(found) if found.is_dir() => match std::fs::read_dir(path).map(Iterator::count) {
            Ok(0) | Err(_) => "empty".to_owned(),
            Ok(count) => format!("{count} entries"),
        },
        Ok(_) => match std::fs::read(path) {
            Ok(bytes) if !bytes.is_empty() => format!("{} bytes", bytes.len()),
            _ => "empty".to_owned(),
        },
    }
}

/// Tries to open every file below `/proc/sys` for writing.
pub fn probe_sysctl(_arguments: &[String]) {
    let (mut opened, mut refused, mut pending) = (Vec::new(), 0, vec![Path::new("/proc/sys").to_owned()]);
    while let Some(folder) = pending.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                pending.push(path);
            } else if OpenOptions::new().write(true).open(&path).is_ok() {
                opened.push(path.display().to_string());
            } else {
                refused += 1;
            }
        }
    }
    note("opened", opened.join(","));
    note("refused", refused);
}

async fn k09_the_hosts_memory_symbols_and_keys_are_masked(stage: Stage) -> Check {
    stage
        .ensure_is(
            ("masked", "masked_"),
            &["none", "empty"],
            // Left open: Java's machine finds its limits by it.
            &["cgroups"],
        )
        .await
}

async fn k09_proc_shows_nothing_but_processes_and_what_programs_need(stage: Stage) -> Check {
    for who in stage.everybody() {
        let open = stage.probe_as(who, &["proc"]).await?.others("proc_", &["none", "empty"])?;
        let known = |name: &str| SHOWN.contains(&name) || name == "cgroups" && !stage.is_native();
        let unknown: Vec<_> = open.iter().filter(|(name, _)| !known(name)).collect();
        ensure!(unknown.is_empty(), "{who} finds {unknown:?}");
        ensure!(open.iter().any(|(name, _)| name == "meminfo"), "what programs need is not there: {open:?}");
    }
    Ok(())
}

async fn k09_a_crash_leaves_no_core_and_starts_nothing_on_the_host(stage: Stage) -> Check {
    let raised = rustix::process::getrlimit(rustix::process::Resource::Core).maximum != Some(0);
    for who in stage.everybody() {
        let facts = stage.probe_as(who, &["crash"]).await?;
        facts.each("aborted_after_", &["true"])?;
        facts.each("dumped_after_", &["false"])?;
        // The one limit at which the kernel starts no program either.
        if stage.is_native() && (raised || stage.has_root()) {
            facts.each("limit_after_", &["(Some(1), Some(1))"])?;
        }
    }
    let left = stage.sh("ls -A /workspace").await?;
    ensure!(left.stdout.is_empty(), "there are core files: {}", left.stdout_text());
    if stage.is_native() {
        return Ok(());
    }
    not_enforced(
        "in a container a process can set its limit to 0, at which the host's core pattern starts its program",
    )
}

async fn k09_sys_is_not_there(stage: Stage) -> Check {
    if !stage.is_native() {
        stage.probe(&["masked"]).await?.each("sys_firmware", &["none", "empty"])?;
        return not_enforced("a container has the host's /sys, read-only");
    }
    for who in stage.everybody() {
        stage.probe_as(who, &["masked"]).await?.each("sys_", &["none"])?;
    }
    Ok(())
}

async fn k09_nothing_below_proc_sys_can_be_written(stage: Stage) -> Check {
    for who in stage.everybody() {
        let facts = stage.probe_as(who, &["sysctl"]).await?;
        facts.is("opened", "")?;
        ensure!(facts.number("refused")? > 100, "hardly anything was tried: {facts:?}");
    }
    Ok(())
}

async fn k09_the_core_pattern_and_the_other_ways_to_root_are_read_only(stage: Stage) -> Check {
    for who in stage.everybody() {
        let facts = stage.probe_as(who, &["masked"]).await?;
        facts.none_worked("dangerous_")?;
        if *who == "root" {
            // Permission bits are not all: even for a user with the right, the mount is read-only.
            let result = stage.sh_as(who, "echo '|/bin/false' > /proc/sys/kernel/hostname").await?;
            ensure!(result.stderr_text().contains("Read-only file system"), "{}", result.stderr_text());
        }
    }
    Ok(())
}

async fn k09_the_state_folder_is_named_nowhere(world: std::sync::Arc<World>) -> Check {
    world.need_native("a container has no state folder on this host")?;
    for disk_mib in [None, Some(64)] {
        // Without the attacker's mount: what a caller mounts shows its own path on the host.
        let limits = Limits { disk_mib, ..Limits::default() };
        let stage = world.stage_of(SandboxSpec { limits, ..world.plain_spec() }).await?;
        ensure_state_is_named_nowhere(&world, stage).await?;
    }
    Ok(())
}

async fn ensure_state_is_named_nowhere(world: &World, stage: Stage) -> Check {
    let files =
        "/proc/self/mountinfo /proc/self/mounts /proc/self/mountstats /proc/self/maps /proc/self/cgroup";
    let visible = stage.output(&format!("cat {files} /proc/[0-9]*/mountinfo 2>/dev/null; env; true")).await?;
    ensure!(visible.contains("overlay"), "nothing was read: {visible}");
    let folder = world.state();
    let tail = folder.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy();
    ensure!(!visible.contains(&*tail), "the state folder `{tail}` is named: {visible}");
    ensure!(!visible.contains(stage.sandbox.id().as_str()), "the sandbox's directory is named: {visible}");
    ensure!(!visible.contains("/sandboxes/"), "{visible}");
    stage.end().await
}

async fn k09_the_hosts_name_and_machine_id_are_not_there(stage: Stage) -> Check {
    let name = stage.sandbox.name().as_str().to_owned();
    ensure_eq!(stage.output("uname -n").await?, name);
    ensure_eq!(stage.output("cat /proc/sys/kernel/hostname").await?, name);
    ensure_eq!(stage.output("cat /etc/hostname").await?, name);
    if stage.is_native() {
        ensure_eq!(stage.output("cat /etc/machine-id").await?, "");
    }
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname")?;
    if !["localhost", "localhost.localdomain"].contains(&host.trim()) {
        let visible =
            stage.output("cat /etc/hosts /etc/hostname /etc/resolv.conf 2>/dev/null; env; true").await?;
        ensure!(!visible.contains(host.trim()), "the host's name `{}` is in: {visible}", host.trim());
    }
    for file in ["/etc/machine-id", "/var/lib/dbus/machine-id"] {
        let id = std::fs::read_to_string(file).unwrap_or_default();
        let found = stage.sh(&format!("cat {file}")).await?.stdout_text();
        ensure!(id.trim().is_empty() || found.trim() != id.trim(), "{file} is the host's");
    }
    Ok(())
}

async fn k09_devices_are_the_harmless_ones(stage: Stage) -> Check {
    const KNOWN: [&str; 13] = [
        "fd", "full", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout", "tty", "urandom",
        "zero",
    ];
    const OF_ENGINES: [&str; 3] = ["console", "core", "mqueue"];
    for name in stage.output("ls -A /dev").await?.lines() {
        let known = KNOWN.contains(&name) || !stage.is_native() && OF_ENGINES.contains(&name);
        ensure!(known, "there is a device `{name}`");
    }
    for who in stage.everybody() {
        for (name, major, minor) in [("disk", 254, 0), ("mem", 1, 1), ("kmsg", 1, 11)] {
            let kind = if name == "disk" { "b" } else { "c" };
            let made = stage.sh_as(who, &format!("mknod /tmp/{name} {kind} {major} {minor}")).await?;
            ensure!(
                made.stderr_text().contains("not permitted"),
                "{who} makes {name}: {}",
                made.stderr_text()
            );
        }
    }
    Ok(())
}

async fn k09_the_hosts_secrets_are_not_in_etc_nor_its_homes(stage: Stage) -> Check {
    let paths = [
        "/etc/shadow",
        "/etc/gshadow",
        "/etc/sudoers",
        "/etc/ssh",
        "/etc/environment",
        "/etc/pip.conf",
        "/etc/npmrc",
        "/etc/gitconfig",
        "/etc/apt",
        "/etc/crontab",
        "/boot",
        "/lost+found",
        "/var/lib/eyot",
        "/var/lib/docker",
        "/var/spool/cron",
        "/root/.ssh",
        "/root/.cargo",
        "/.dockerenv",
        "/etc/ssl/private",
    ];
    // What an image has there is the image's.
    let of_images = ["/etc", "/boot", "/.dockerenv", "/var/spool"];
    let paths = paths
        .into_iter()
        .filter(|path| stage.is_native() || !of_images.iter().any(|of_image| path.starts_with(of_image)));
    let paths: Vec<&str> = paths.collect();
    for who in stage.everybody() {
        let line = format!("for path in {}; do [ -e $path ] && echo $path; done; true", paths.join(" "));
        let found = stage.sh_as(who, &line).await?.stdout_text();
        ensure!(found.is_empty(), "{who} finds {found}");
    }
    ensure_eq!(stage.output("ls -A /home").await?, "user");
    Ok(())
}

async fn k09_the_kernels_log_can_not_be_read(stage: Stage) -> Check {
    for who in stage.everybody() {
        let read = stage.sh_as(who, "cat /proc/kmsg; dmesg").await?;
        ensure!(read.stdout.is_empty() && !read.success(), "{who} reads the log: {}", read.stdout_text());
    }
    Ok(())
}
