//! K12: becoming a user with more rights.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::sync::Arc;

use eyot::{Mount, SandboxPath, SandboxSpec};
use tempfile::TempDir;

use crate::check::{Check, cases, ensure, ensure_eq, not_here};
use crate::facts::{Facts, note};
use crate::sys;
use crate::world::{Stage, World};

cases! {
    k12_a_setuid_program_gains_nothing(stage);
    k12_a_program_with_file_capabilities_gains_nothing(stage);
    k12_su_and_sudo_gain_nothing(stage);
    k12_the_user_holds_no_capability(stage);
    k12_no_setuid_program_can_be_left_in_a_folder_of_the_host(world);
    k12_inner_root_leaves_nothing_of_the_hosts_root_in_a_folder_of_the_host(world);
}

/// Says who it is and what it may do.
pub fn probe(_arguments: &[String]) {
    note("euid", sys::call(libc::SYS_geteuid, &[]).unwrap_or(-1));
    note("egid", sys::call(libc::SYS_getegid, &[]).unwrap_or(-1));
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    for line in status.lines().filter(|line| line.starts_with("Cap") || line.starts_with("NoNewPrivs")) {
        if let Some((name, value)) = line.split_once(':') {
            note(name, value.trim());
        }
    }
}

const FOLDERS: [&str; 6] = ["/workspace", "/home/user", "/tmp", "/var/tmp", "/dev/shm", "/run"];

fn ensure_nothing_gained(facts: &Facts) -> Check {
    facts.is("euid", "1000")?;
    facts.is("egid", "1000")?;
    facts.is("NoNewPrivs", "1")?;
    for set in ["CapEff", "CapPrm", "CapInh", "CapAmb"] {
        facts.is(set, "0000000000000000")?;
    }
    Ok(())
}

async fn k12_a_setuid_program_gains_nothing(stage: Stage) -> Check {
    for who in stage.everybody() {
        for folder in FOLDERS {
            let program = format!("{folder}/setuid-{who}");
            let made =
                stage.sh_as(who, &format!("cp /attack/threats {program} && chmod 6755 {program}")).await?;
            if made.stderr_text().contains("No space left") {
                // A large program (of a debug build, say) does not fit into a small file system in
                // memory.
                stage.sh_as(who, &format!("rm -f {program}")).await?;
                continue;
            }
            if !stage.is_native() && made.stderr_text().contains("Permission denied") {
                // An image's `/run` is root's, and root in a container does not get into another
                // user's folder.
                continue;
            }
            ensure!(made.success(), "{who}: {}", made.stderr_text());
            let result = stage.sh(&format!("{program} probe privileges")).await?;
            if result.success() {
                ensure_nothing_gained(&Facts::parse(&result.stdout_text()))?;
            }
            // The file systems in memory have room for one.
            stage.sh_as(who, &format!("rm {program}")).await?;
        }
    }
    Ok(())
}

async fn k12_a_program_with_file_capabilities_gains_nothing(stage: Stage) -> Check {
    stage.need_program("setcap").await?;
    for who in stage.everybody() {
        let program = format!("/workspace/capable-{who}");
        let line = format!(
            "cp /attack/threats {program} && setcap cap_sys_admin,cap_setuid,cap_dac_override+eip {program}"
        );
        stage.sh_as(who, &line).await?;
        let result = stage.sh(&format!("{program} probe privileges")).await?;
        if result.success() {
            ensure_nothing_gained(&Facts::parse(&result.stdout_text()))?;
        }
    }
    Ok(())
}

async fn k12_su_and_sudo_gain_nothing(stage: Stage) -> Check {
    let mut tried = Vec::new();
    for (program, line) in [
        ("su", "echo | su root -c id"),
        ("sudo", "sudo -n id"),
        ("pkexec", "pkexec id"),
        ("newgrp", "echo | newgrp root"),
    ] {
        if stage.need_program(program).await.is_ok() {
            tried.push(program);
            let result = stage.sh(line).await?;
            ensure!(!result.stdout_text().contains("uid=0"), "{program}: {}", result.stdout_text());
        }
    }
    if tried.is_empty() { not_here("there is neither `su` nor `sudo` in the sandbox") } else { Ok(()) }
}

async fn k12_the_user_holds_no_capability(stage: Stage) -> Check {
    ensure_nothing_gained(&stage.probe(&["privileges"]).await?)?;
    if stage.has_root() {
        let facts = stage.probe_as("root", &["privileges"]).await?;
        facts.is("euid", "0")?;
        let held = u64::from_str_radix(facts.get("CapEff")?, 16).unwrap_or(u64::MAX);
        // SYS_ADMIN, SYS_PTRACE, SYS_MODULE, SYS_RAWIO, NET_ADMIN, NET_RAW, MKNOD, SYS_RESOURCE,
        // SYS_BOOT, SYS_TIME.
        let dangerous =
            [21, 19, 16, 17, 12, 13, 27, 24, 22, 25].iter().fold(0, |mask, bit| mask | 1_u64 << bit);
        ensure_eq!(held & dangerous, 0);
    }
    Ok(())
}

/// Every call that can give a file its mode, where there is a python: fchmodat2 is 452, openat2
/// 437.
const RAW_CALLS: &str = r#"python3 - <<'END'
import ctypes, os, struct
call, base = ctypes.CDLL(None, use_errno=True).syscall, b'FOLDER'
os.umask(0)
def attempt(name, act):
    try: act(base + name)
    except OSError: pass
attempt(b'open', lambda path: os.open(path, os.O_CREAT | os.O_WRONLY, 0o6755))
attempt(b'mknod', lambda path: os.mknod(path, 0o106755))
attempt(b'creat', lambda path: call(85, path, 0o6755))
def fchmod(path):
    os.fchmod(os.open(path, os.O_CREAT | os.O_WRONLY, 0o755), 0o6755)
attempt(b'fchmod', fchmod)
def fchmodat2(path):
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o755)); call(452, -100, path, 0o6755, 0)
attempt(b'fchmodat2', fchmodat2)
attempt(b'openat2', lambda path: call(437, -100, path, struct.pack('QQQ', 0o101, 0o6755, 0), 24))
def tmpfile(path):
    fd = os.open(os.path.dirname(path), os.O_TMPFILE | os.O_RDWR, 0o6755)
    os.link('/proc/self/fd/%d' % fd, path, follow_symlinks=True)
attempt(b'tmpfile', tmpfile)
END"#;

/// A stage with a folder of the host that it may write to.
async fn stage_with_a_folder(world: &World, folder: &TempDir) -> Check<Stage> {
    world.need_native("this provider mounts no folder of the host")?;
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777))?;
    let mut spec: SandboxSpec = world.spec();
    let target = SandboxPath::parse("/shared")?;
    spec.mounts.push(Mount { source: folder.path().to_owned(), target, writable: true, cow: false });
    world.stage_of(spec).await
}

async fn leave_programs(stage: &Stage, who: &str) -> Check {
    let program = format!("/shared/left-by-{who}");
    for line in [
        format!("cp /attack/threats {program} && chmod 6755 {program}"),
        format!("install -m 4755 /attack/threats {program}-installed"),
        format!("umask 0; touch {program}-empty"),
        RAW_CALLS.replace("FOLDER", &format!("{program}-raw-")),
    ] {
        // Refused or not: what is there afterwards counts.
        match stage.sh_as(who, &line).await {
            Ok(_) | Err(_) => {}
        }
    }
    Ok(())
}

async fn k12_no_setuid_program_can_be_left_in_a_folder_of_the_host(world: Arc<World>) -> Check {
    let folder = tempfile::tempdir()?;
    let stage = stage_with_a_folder(&world, &folder).await?;
    for who in stage.everybody() {
        leave_programs(&stage, who).await?;
    }
    let left = std::fs::read_dir(folder.path())?.count();
    ensure!(left >= 3, "only {left} of the programs were made at all");
    for entry in std::fs::read_dir(folder.path())? {
        let found = entry?;
        let (mode, uid) = (found.metadata()?.mode(), found.metadata()?.uid());
        ensure!(
            mode & 0o6000 == 0,
            "{:?} is a setuid program of host uid {uid}, mode {mode:o}",
            found.file_name()
        );
    }
    stage.end().await
}

async fn k12_inner_root_leaves_nothing_of_the_hosts_root_in_a_folder_of_the_host(world: Arc<World>) -> Check {
    let folder = tempfile::tempdir()?;
    let stage = stage_with_a_folder(&world, &folder).await?;
    let has_root = stage.has_root();
    if has_root {
        leave_programs(&stage, "root").await?;
    }
    for entry in std::fs::read_dir(folder.path())? {
        let found = entry?;
        let (mode, uid) = (found.metadata()?.mode(), found.metadata()?.uid());
        ensure!(uid != 0, "{:?} belongs to the host's root, mode {mode:o}", found.file_name());
    }
    stage.end().await?;
    if has_root { Ok(()) } else { not_here("there is no inner root") }
}
