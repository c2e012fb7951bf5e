//! Real causes: in a user namespace, under a filter, on a file system that the test mounts.

use crate::scene::{Scene, is_root, need};

crate::tests! {
    user_namespaces_that_are_switched_off;
    a_limit_of_user_namespaces_that_is_reached_outside;
    a_filter_that_refuses_clone3_as_dockers_does;
    a_filter_that_refuses_mounts;
    a_masked_proc;
    root_of_a_user_namespace_without_a_range_of_ids;
    root_without_cap_sys_admin;
    a_chroot;
    too_few_open_files;
    too_few_open_files_for_a_guest;
    too_few_processes;
    a_run_folder_that_can_not_be_written_to;
    a_state_folder_on_overlayfs;
    a_state_folder_on_a_full_file_system;
    a_state_folder_without_room_for_more_files;
    a_state_folder_that_everybody_may_write_to;
    a_state_folder_of_somebody_else;
    a_state_folder_that_can_not_be_written_to;
    a_state_folder_that_is_a_file;
    a_state_folder_whose_path_is_no_text;
    control_groups_on_a_host_without_systemd;
}

/// Runs as an ordinary user of a new user namespace, who may change its settings while the prelude
/// runs.
const AS_USER: [&str; 5] = ["unshare", "--user", "--map-user=1000", "--map-group=1000", "--keep-caps"];
/// Drops the right to change settings, and goes on.
const WITHOUT_CAPS: &str = "exec setpriv --inh-caps=-all --ambient-caps=-all \"$@\"";

/// Runs in a new mount namespace, as its root.
const MOUNTING: [&str; 5] = ["unshare", "--user", "--map-root-user", "--mount", "--fork"];

fn need_user_namespaces() -> Result<(), String> {
    need(&[&AS_USER[..], &["true"]].concat())
}

fn user_namespaces_that_are_switched_off() -> Result<(), String> {
    need_user_namespaces()?;
    let prelude = format!("echo 0 > /proc/sys/user/max_user_namespaces && {WITHOUT_CAPS}");
    Scene::new().within(&AS_USER).after(&prelude).ends_everywhere_with(
        "max-user-namespaces",
        "user namespaces are switched off (user.max_user_namespaces is 0)",
        "sudo sysctl -w user.max_user_namespaces=65536",
    );
    Ok(())
}

fn a_limit_of_user_namespaces_that_is_reached_outside() -> Result<(), String> {
    need_user_namespaces()?;
    let inner = AS_USER.join(" ");
    let prelude = format!(
        "echo 1 > /proc/sys/user/max_user_namespaces && exec {inner} -- sh -c '{WITHOUT_CAPS}' sh \"$@\""
    );
    Scene::new().within(&AS_USER).after(&prelude).ends_everywhere_with(
        "used-up",
        "no more user namespaces are allowed here",
        "sudo sysctl -w user.max_user_namespaces=65536",
    );
    Ok(())
}

/// Docker's filter answers `clone3` like this, so that a C library falls back to `clone`.
fn a_filter_that_refuses_clone3_as_dockers_does() -> Result<(), String> {
    let scene = Scene::new().refusing(&[(libc::SYS_clone3, libc::ENOSYS)]);
    scene.ends_everywhere_with("seccomp-filter", "a seccomp filter on this process refuses namespaces", "");
    Ok(())
}

fn a_filter_that_refuses_mounts() -> Result<(), String> {
    let scene = Scene::new().refusing(&[(libc::SYS_mount, libc::EPERM), (libc::SYS_fsopen, libc::EPERM)]);
    scene.ends_everywhere_with("seccomp-filter", "a seccomp filter on this process refuses mounts", "");
    Ok(())
}

fn a_masked_proc() -> Result<(), String> {
    need(&[&MOUNTING[..], &["mount", "--bind", "/dev/null", "/proc/cmdline"]].concat())?;
    // As an ordinary user again, in whose new namespaces the mask can't be taken off.
    let prelude =
        "mount --bind /dev/null /proc/cmdline && exec unshare --user --map-user=1000 --map-group=1000 \"$@\"";
    let scene = Scene::new().within(&MOUNTING).after(prelude);
    scene.ends_everywhere_with("masked-proc", "parts of /proc are masked, as in a container", "sudo umount");
    Ok(())
}

fn root_of_a_user_namespace_without_a_range_of_ids() -> Result<(), String> {
    need_user_namespaces()?;
    let scene = Scene::new().within(&["unshare", "--user", "--map-root-user"]);
    scene.ends_everywhere_with("inner-root", "root here is root of a user namespace", "setpriv --reuid=1000");
    Ok(())
}

fn root_without_cap_sys_admin() -> Result<(), String> {
    if !is_root() {
        return Err("only root can be root without a capability".to_owned());
    }
    let scene = Scene::new().within(&["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-all"]);
    scene.ends_everywhere_with(
        "root-without-capabilities",
        "root here lacks CAP_SYS_ADMIN",
        "setpriv --reuid=1000",
    );
    Ok(())
}

fn a_chroot() -> Result<(), String> {
    if !is_root() {
        return Err("only root can change the root directory".to_owned());
    }
    // A folder that is no mount, with the host's folders inside, and the one where the program lies.
    let prelude = "root=$HOME/../jail && for folder in /usr /etc /dev /proc /sys /bin /sbin /lib* /tmp ${1%/*}; do \
                   mkdir -p $root$folder && mount --rbind $folder $root$folder || exit 3; done; \
                   exec chroot $root \"$@\"";
    let scene = Scene::new().within(&["unshare", "--mount"]).after(prelude);
    scene.eyot(&["ls"]);
    scene.ends_everywhere_with(
        "chroot",
        "this process is in a chroot, where the kernel refuses user namespaces",
        "",
    );
    Ok(())
}

fn too_few_open_files() -> Result<(), String> {
    let scene = Scene::new().after("ulimit -n 14; exec \"$@\"");
    scene.ends_everywhere_with(
        "none-left",
        "this process has no open file left (`ulimit -n`: 14 at the most)",
        "--nofile=65536",
    );
    Ok(())
}

fn too_few_open_files_for_a_guest() -> Result<(), String> {
    let scene = Scene::new().after("ulimit -n 60; exec \"$@\"");
    scene.ends_everywhere_with("too-few", "this process may open 60 files", "--nofile=65536");
    Ok(())
}

fn too_few_processes() -> Result<(), String> {
    need_user_namespaces()?;
    if is_root() {
        return Err("a limit of processes does not hold for root".to_owned());
    }
    let ran = Scene::new().within(&["prlimit", "--nproc=1"]).eyot(&["run", "--", "true"]);
    if ran.stderr.contains("panicked") || ran.stderr.contains("event loop") {
        return Err("the program's own threads meet the limit first".to_owned());
    }
    assert!(ran.stderr.contains("this user has no process left"), "{ran:?}");
    Ok(())
}

/// Ranges of ids are noted there for the whole host. Without a note no sandbox gets one.
fn a_run_folder_that_can_not_be_written_to() -> Result<(), String> {
    if !is_root() {
        return Err("only root has ranges of ids to note".to_owned());
    }
    for prelude in
        ["mount -t tmpfs -o ro tmpfs /run", "mount -t tmpfs tmpfs /run && mkdir -m 755 /run/eyot-ids"]
    {
        let scene = Scene::new().within(&["unshare", "--mount"]).after(&format!("{prelude} && exec \"$@\""));
        scene.ends_everywhere_with("no-notes", "are noted in a folder of /run that only root may enter", "");
    }
    Ok(())
}

fn a_state_folder_on_overlayfs() -> Result<(), String> {
    let mount = "mkdir -p $HOME/l $HOME/u $HOME/w $HOME/../merged && \
                 mount -t overlay overlay -o lowerdir=$HOME/l,upperdir=$HOME/u,workdir=$HOME/w,userxattr $HOME/../merged";
    let scene = Scene::new();
    let ran = Scene::new().within(&MOUNTING).after(mount).eyot(&[]);
    if ran.code != Some(0) {
        return Err(format!("no overlay can be mounted by the test: {}", ran.stderr.trim()));
    }
    let state = scene.path("merged/state");
    let scene = scene.within(&MOUNTING).after(&format!("{mount} && exec \"$@\"")).with_state(state);
    scene.ends_everywhere_with(
        "unfit-file-system",
        "the state folder is on overlayfs, where sandboxes can't live",
        "EYOT_STATE",
    );
    Ok(())
}

fn on_a_small_tmpfs(options: &str, fill: &str) -> Result<Scene, String> {
    if !is_root() {
        return Err(
            "an ordinary user's mount makes a user namespace around, whose root fails first".to_owned()
        );
    }
    let scene = Scene::new();
    let state = scene.path("small/state");
    let prelude = format!(
        "mkdir -p $HOME/../small && mount -t tmpfs -o {options} tmpfs $HOME/../small && mkdir -m 700 $EYOT_STATE && \
         {{ {fill}; }} 2> $HOME/../fill.log; exec \"$@\""
    );
    Ok(scene.within(&["unshare", "--mount"]).after(&prelude).with_state(state))
}

fn a_state_folder_on_a_full_file_system() -> Result<(), String> {
    let scene = on_a_small_tmpfs("size=2m", "head -c 4M /dev/zero > $EYOT_STATE/../fill")?;
    std::fs::create_dir(scene.path("home")).unwrap();
    scene.ends_everywhere_with("full", "the state folder's disk is full", "EYOT_STATE");
    Ok(())
}

fn a_state_folder_without_room_for_more_files() -> Result<(), String> {
    let scene =
        on_a_small_tmpfs("size=64m,nr_inodes=40", "for i in $(seq 60); do touch $EYOT_STATE/../$i; done")?;
    std::fs::create_dir(scene.path("home")).unwrap();
    scene.ends_everywhere_with("no-files-left", "no room for more files (inodes)", "EYOT_STATE");
    Ok(())
}

fn a_state_folder_that_everybody_may_write_to() -> Result<(), String> {
    let scene = Scene::new().after("mkdir -p $EYOT_STATE && chmod 1777 $EYOT_STATE && exec \"$@\"");
    scene.ends_everywhere_with(
        "open-to-all",
        "everybody may write to the state folder (mode 1777)",
        "chmod 700",
    );
    Ok(())
}

fn a_state_folder_of_somebody_else() -> Result<(), String> {
    if !is_root() {
        return Err("only root can give a folder away".to_owned());
    }
    let scene = Scene::new().after("mkdir -p $EYOT_STATE && chown 4321 $EYOT_STATE && exec \"$@\"");
    scene.ends_everywhere_with(
        "not-yours",
        "the state folder belongs to somebody else (uid 4321; you are uid 0)",
        "instead of --state",
    );
    Ok(())
}

fn a_state_folder_that_can_not_be_written_to() -> Result<(), String> {
    let scene = Scene::new();
    if is_root() {
        let prelude = "mkdir -p $EYOT_STATE && mount --bind -o ro $EYOT_STATE $EYOT_STATE && exec \"$@\"";
        let scene = scene.within(&["unshare", "--mount"]).after(prelude);
        scene.ends_everywhere_with("not-writable", "the state folder can't be written to", "sudo install -d");
        return Ok(());
    }
    let scene = scene.after("mkdir -p $EYOT_STATE && chmod 500 $EYOT_STATE && exec \"$@\"");
    scene.ends_everywhere_with("not-writable", "the state folder can't be written to", "sudo install -d");
    Ok(())
}

fn a_state_folder_that_is_a_file() -> Result<(), String> {
    let scene = Scene::new().after(": > $EYOT_STATE; exec \"$@\"");
    scene.ends_everywhere_with("no-directory", "the state folder's path leads to a file", "EYOT_STATE");
    Ok(())
}

fn a_state_folder_whose_path_is_no_text() -> Result<(), String> {
    use std::os::unix::ffi::OsStringExt;
    let scene = Scene::new();
    let state = scene.path("x").with_file_name(std::ffi::OsString::from_vec(b"st\xffte".to_vec()));
    scene.with_state(state).ends_everywhere_with(
        "not-utf8",
        "the state folder's path is not UTF-8",
        "EYOT_STATE",
    );
    Ok(())
}

/// The finding about limits that `eyot doctor` has, after these shell lines.
fn limits_after(lines: &str) -> serde_json::Value {
    let scene = Scene::new();
    let scene = if is_root() { scene.within(&["unshare", "--mount"]) } else { scene };
    let ran = scene.after(&format!("{lines}\nexec \"$@\"")).eyot(&["doctor", "--json"]);
    let report: serde_json::Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
    let findings = report["findings"].as_array().unwrap();
    findings.iter().find(|found| found["id"] == "limits").unwrap().clone()
}

/// The advice works without systemd. Root's groups are made read-only here, and the advice is
/// followed; an ordinary user has none, and may not follow it.
fn control_groups_on_a_host_without_systemd() -> Result<(), String> {
    if std::path::Path::new("/run/systemd/system").exists() {
        return Err("systemd runs here".to_owned());
    }
    let close = "for at in $(awk '$3 ~ /^cgroup/ {print $2}' /proc/self/mounts); do \
                 mount -o remount,bind,ro $at; done";
    if is_root() && limits_after("")["status"] != "ok" {
        return Err("no control groups limit sandboxes here".to_owned());
    }
    let found = limits_after(if is_root() { close } else { "" });
    if !is_root() && found["status"] == "ok" {
        return Err("this user has control groups".to_owned());
    }
    assert_eq!(found["status"], "warn", "{found}");
    let fix = found["fix"].as_str().unwrap();
    for word in ["systemctl", "systemd-run", "loginctl", "Delegate"] {
        assert!(!fix.contains(word), "{fix}");
    }
    if is_root() {
        let mended = limits_after(&format!("{close}\n{fix}"));
        assert_eq!(mended["status"], "ok", "{fix}: {mended}");
    } else {
        assert!(fix.contains("cgroup.procs"), "{fix}");
    }
    Ok(())
}
