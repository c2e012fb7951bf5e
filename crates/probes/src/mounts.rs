//! K2: mounts, and handles that lead past the root folder.

use std::os::fd::AsRawFd;

use crate::check::{Check, cases, ensure, ensure_eq};
use crate::facts::{note, tried, tried_io};
use crate::sys;
use crate::world::{Stage, World};

cases! {
    k02_nothing_can_be_mounted_or_unmounted(stage);
    k02_file_handles_are_refused(stage);
    k02_the_programs_mount_and_umount_are_refused(stage);
    k02_a_root_that_escapes_from_its_chroot_finds_the_sandbox_and_not_the_host(world);
}

const SYS_OPEN_TREE_ATTR: i64 = 467;
const SYS_STATMOUNT: i64 = 457;
const SYS_LISTMOUNT: i64 = 458;

/// Tries to change the mounts in every way.
pub fn probe(_arguments: &[String]) {
    let (none, tmp, tmpfs) = (sys::address(c"none"), sys::address(c"/tmp"), sys::address(c"tmpfs"));
    let (here, empty, proc) = (libc::AT_FDCWD as u64, sys::address(c""), sys::address(c"/proc"));
    let mount = |name: &str, source: u64, target: u64, kind: u64, flags: u64| {
        tried(format_args!("mount_{name}"), sys::call(libc::SYS_mount, &[source, target, kind, flags, 0]));
    };
    mount("tmpfs", none, tmp, tmpfs, 0);
    mount("proc", none, tmp, sys::address(c"proc"), 0);
    mount("bind", sys::address(c"/etc"), tmp, 0, libc::MS_BIND);
    mount("remount", none, sys::address(c"/usr"), 0, libc::MS_REMOUNT | libc::MS_BIND);
    mount("remount_proc_sys", none, sys::address(c"/proc/sys"), 0, libc::MS_REMOUNT | libc::MS_BIND);
    mount("shared", none, sys::address(c"/"), 0, libc::MS_SHARED | libc::MS_REC);
    for (name, path) in [("proc", proc), ("tmp", tmp), ("root", sys::address(c"/"))] {
        let umount = sys::call(libc::SYS_umount2, &[path, libc::MNT_DETACH as u64]);
        tried(format_args!("mount_umount_{name}"), umount);
    }
    let calls: [(&str, i64, &[u64]); 11] = [
        ("fsopen", libc::SYS_fsopen, &[tmpfs, 0]),
        ("fsconfig", libc::SYS_fsconfig, &[0, 6, 0, 0, 0]),
        ("fsmount", libc::SYS_fsmount, &[0, 0, 0]),
        ("fspick", libc::SYS_fspick, &[here, tmp, 0]),
        ("open_tree", libc::SYS_open_tree, &[here, sys::address(c"/usr"), 1]),
        ("open_tree_attr", SYS_OPEN_TREE_ATTR, &[here, sys::address(c"/usr"), 1, 0, 0]),
        ("move_mount", libc::SYS_move_mount, &[here, proc, here, tmp, 0]),
        ("mount_setattr", libc::SYS_mount_setattr, &[here, proc, 0, 0, 32]),
        ("pivot_root", libc::SYS_pivot_root, &[tmp, tmp]),
        ("statmount", SYS_STATMOUNT, &[0, 0, 0, 0]),
        ("listmount", SYS_LISTMOUNT, &[0, 0, 0, 0]),
    ];
    for (name, number, arguments) in calls {
        tried(format_args!("mount_{name}"), sys::call(number, arguments));
        // The kernel takes the lower half of the number alone.
        tried(format_args!("mount_high_{name}"), sys::call(number | 1 << 32, arguments));
    }
    let mut handle = [0_u8; 136];
    handle[0] = 128;
    let mut mount_id = [0_u8; 8];
    let arguments = [here, sys::address(c"/etc"), sys::buffer(&mut handle), sys::buffer(&mut mount_id), 0];
    tried("handle_of_name", sys::call(libc::SYS_name_to_handle_at, &arguments));
    let arguments = [here, sys::buffer(&mut handle), libc::O_RDONLY as u64];
    tried("handle_open", sys::call(libc::SYS_open_by_handle_at, &arguments));
    note("empty", empty != 0);
}

/// Leaves a chroot by a descriptor of the old root, climbs, and looks for the path it is given and for what is at the top.
pub fn escape_from_chroot(arguments: &[String]) {
    let canary = arguments.first().map(String::as_str).unwrap_or_default();
    let Ok(old_root) = std::fs::File::open("/") else { return };
    tried_io("made", std::fs::create_dir_all("/tmp/jail"));
    tried("chroot", sys::call(libc::SYS_chroot, &[sys::address(c"/tmp/jail")]));
    tried("back", sys::call(libc::SYS_fchdir, &[old_root.as_raw_fd() as u64]));
    for _ in 0..100 {
        if std::env::set_current_dir("..").is_err() {
            break;
        }
    }
    tried("out", sys::call(libc::SYS_chroot, &[sys::address(c".")]));
    let is_there = |path: &str| std::path::Path::new(path).exists();
    note("canary", is_there(canary) || is_there(&format!("/root{canary}")));
    note("sandbox", is_there("/attack/threats"));
    note("sandbox_below", is_there("/root/attack/threats"));
    let mut names: Vec<String> = std::fs::read_dir("/").map_or(Vec::new(), |entries| {
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    });
    names.sort();
    note("top", names.join(" "));
    tried_io("change", std::fs::create_dir("/new"));
}

/// The top of a native sandbox's mounts, which only root could reach: the folder of its device nodes, with its root in it.
const TOP: &str = "empty full null random root tty urandom zero";

async fn k02_nothing_can_be_mounted_or_unmounted(stage: Stage) -> Check {
    for who in stage.everybody() {
        stage.probe_as(who, &["mounts"]).await?.each("mount_", stage.refusals(&["EPERM"]))?;
    }
    stage.still_works().await
}

async fn k02_file_handles_are_refused(stage: Stage) -> Check {
    for who in stage.everybody() {
        stage.probe_as(who, &["mounts"]).await?.each("handle_", stage.refusals(&["EPERM"]))?;
    }
    Ok(())
}

async fn k02_the_programs_mount_and_umount_are_refused(stage: Stage) -> Check {
    stage.need_program("mount").await?;
    for who in stage.everybody() {
        for line in [
            "mount -t tmpfs none /tmp",
            "mount --bind /etc /tmp",
            "mount -o remount,rw /usr",
            "umount -l /proc",
        ] {
            let result = stage.sh_as(who, line).await?;
            ensure!(!result.success(), "{who}: `{line}` worked");
        }
    }
    let mounts = stage.output("cat /proc/self/mounts").await?;
    ensure!(!mounts.lines().any(|line| line.contains(" /tmp ")), "something is mounted: {mounts}");
    Ok(())
}

async fn k02_a_root_that_escapes_from_its_chroot_finds_the_sandbox_and_not_the_host(
    world: std::sync::Arc<World>,
) -> Check {
    let stage = world.stage().await?;
    let canary = world.scratch();
    let canary = canary.to_string_lossy();
    let who = if stage.has_root() { "root" } else { "user" };
    let facts = stage.probe_as(who, &["chroot", &canary]).await?;
    ensure_eq!(facts.get("canary")?, "false");
    // Root in a container lacks SYS_CHROOT.
    let may = stage.has_root() && stage.is_native();
    facts.is("chroot", if may { "ok" } else { "EPERM" })?;
    if may {
        facts.is("top", TOP)?;
        facts.is("sandbox_below", "true")?;
        facts.is("change", "EACCES")?;
    } else {
        facts.is("sandbox", "true")?;
    }
    stage.end().await
}
