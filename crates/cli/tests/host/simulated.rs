//! Causes that this machine cannot have: facts are simulated, and the step that would fail fails.

use std::os::unix::fs::DirBuilderExt;

use serde_json::{Value, json};

use crate::scene::{Scene, is_root};

crate::tests! {
    apparmor_as_on_ubuntu_24_04;
    user_namespaces_switched_off_as_on_an_old_debian;
    an_unknown_refusal_of_user_namespaces;
    each_container_is_run_with_something_else;
    a_state_folder_on_nfs_is_refused_although_it_might_work;
    a_state_folder_in_one_that_may_not_be_entered;
    a_kernel_that_is_too_old;
    wsl1_and_gvisor_are_no_linux;
    another_machine;
    programs_in_memory_that_can_not_be_run;
    programs_in_memory_are_missed_only_by_what_needs_them;
    selinux_behind_a_mount_that_is_refused;
    a_file_system_that_carries_no_overlay;
    a_failure_without_a_known_cause_leads_to_the_doctor;
    what_does_not_apply_to_this_caller_is_not_said;
}

fn first_step() -> &'static str {
    if is_root() { "become inner root" } else { "map the user" }
}

#[track_caller]
fn leads_to(facts: Value, fail_step: &str, cause: &str, sentence: &str, fix: &str) {
    Scene::new().simulating(facts, Some(fail_step)).ends_everywhere_with(cause, sentence, fix);
}

fn apparmor_as_on_ubuntu_24_04() -> Result<(), String> {
    let facts = json!({
        "sysctl": { "kernel.apparmor_restrict_unprivileged_userns": 1 },
        "apparmor_profile": "unconfined", "admin": false, "uid": 1000, "state": { "owner": 1000 },
        "program": "/opt/my tools/eyot",
    });
    let install = "'/opt/my tools/eyot' doctor --apparmor-profile | sudo tee /etc/apparmor.d/eyot >/dev/null && \
                   sudo apparmor_parser -r /etc/apparmor.d/eyot";
    let step = if is_root() { "make mounts private" } else { "map the user" };
    leads_to(
        facts.clone(),
        step,
        "apparmor",
        "AppArmor refuses user namespaces to programs without a profile",
        install,
    );
    // With the profile it is something else.
    let mut confined = facts;
    confined["apparmor_profile"] = json!("eyot (unconfined)");
    let ran = Scene::new().simulating(confined, Some(step)).eyot(&["run", "--", "true"]);
    assert!(!ran.stderr.contains("AppArmor"), "{ran:?}");
    Ok(())
}

fn user_namespaces_switched_off_as_on_an_old_debian() -> Result<(), String> {
    let facts = json!({ "sysctl": { "kernel.unprivileged_userns_clone": 0 }, "admin": false });
    let sentence = "user namespaces are switched off for ordinary users";
    let fix = "sudo sysctl -w kernel.unprivileged_userns_clone=1";
    leads_to(facts, "create the namespaces", "unprivileged-userns-clone", sentence, fix);
    Ok(())
}

fn an_unknown_refusal_of_user_namespaces() -> Result<(), String> {
    let sentence = "something refuses user namespaces to this process";
    leads_to(
        json!({ "seccomp_filtered": false }),
        "create the namespaces",
        "refused",
        sentence,
        "sudo dmesg",
    );
    Ok(())
}

/// The advice for containers depends on the engine and on the user inside.
fn each_container_is_run_with_something_else() -> Result<(), String> {
    for (container, uid, fix) in [
        ("docker", 1000, "docker run --security-opt seccomp=unconfined --security-opt apparmor=unconfined"),
        ("podman", 1000, "podman run --security-opt seccomp=unconfined"),
        ("kubernetes", 1000, "kubectl run eyot --privileged"),
        ("lxc", 1000, "lxc config set … security.nesting=true"),
        ("other", 1000, ""),
    ] {
        let state = json!({ "owner": uid });
        let facts = json!({ "container": container, "uid": uid, "seccomp_filtered": true, "state": state });
        let sentence = "a seccomp filter on this process refuses namespaces";
        leads_to(facts, "create the namespaces", "seccomp-filter", sentence, fix);
    }
    let facts =
        json!({ "container": "docker", "uid": 0, "admin": false, "every_id": true, "state": { "owner": 0 } });
    leads_to(
        facts,
        "bind a host path",
        "root-without-capabilities",
        "root here lacks CAP_SYS_ADMIN",
        "docker run --privileged",
    );
    Ok(())
}

fn a_state_folder_on_nfs_is_refused_although_it_might_work() -> Result<(), String> {
    for (file_system, container) in
        [("NFS", None), ("overlayfs", Some("docker")), ("9p", None), ("SMB", None)]
    {
        let facts = json!({ "state": { "file_system": file_system }, "container": container });
        let sentence = format!("the state folder is on {file_system}, where sandboxes can't live");
        let fix = if container.is_some() { "docker run" } else { "export EYOT_STATE=" };
        let scene = Scene::new().simulating(facts, None);
        scene.ends_everywhere_with("unfit-file-system", &sentence, fix);
        // Every other command too: none of them can do without the folder.
        for arguments in [
            &["ls"][..],
            &["exec", "x", "--", "true"],
            &["ps", "x"],
            &["inspect", "x"],
            &["rm", "x"],
            &["read", "x", "f"],
            &["write", "x", "f"],
            &["glob", "x", "*"],
            &["grep", "x", "y"],
            &["logs", "x", "p1"],
            &["kill", "x", "p1"],
            &["wait", "x", "p1"],
            &["start", "x", "--", "true"],
            &["dial", "x", "80"],
            &["cp", "x:a", "-"],
            &["sh", "x"],
        ] {
            scene.says(arguments, &sentence, None);
        }
    }
    Ok(())
}

fn a_state_folder_in_one_that_may_not_be_entered() -> Result<(), String> {
    let facts = json!({ "state": { "writable": false, "passable": false } });
    let sentence = "the state folder is in a folder that you may not enter: /";
    leads_to(facts, "pass the gate", "not-writable", sentence, "export EYOT_STATE=");
    Ok(())
}

fn a_kernel_that_is_too_old() -> Result<(), String> {
    let needed = if is_root() { "5.19" } else { "5.12" };
    let sentence = format!("Linux 5.10.0-21-amd64 is too old: sandboxes of {} need {needed}", who());
    leads_to(json!({ "kernel": "5.10.0-21-amd64" }), first_step(), "old-kernel", &sentence, "linux-image");
    Ok(())
}

fn who() -> &'static str {
    if is_root() { "root" } else { "an ordinary user" }
}

fn wsl1_and_gvisor_are_no_linux() -> Result<(), String> {
    let wsl = json!({ "kernel": "4.4.0-22621-Microsoft" });
    leads_to(wsl, first_step(), "wsl1", "this is WSL 1, which is no Linux kernel", "wsl.exe --set-version");
    let gvisor = json!({ "kernel_version": "Linux version 4.4.0 #1 SMP Sun Jan 10 15:06:54 PST 2016" });
    leads_to(gvisor, first_step(), "gvisor", "this is gVisor", "--runtime=runc");
    let wsl2 = json!({ "kernel": "5.15.153.1-microsoft-standard-WSL2" });
    let ran = Scene::new().simulating(wsl2, None).eyot(&["doctor"]);
    assert!(!ran.stdout.contains("WSL 1"), "{ran:?}");
    Ok(())
}

fn another_machine() -> Result<(), String> {
    leads_to(json!({ "machine": "aarch64" }), first_step(), "architecture", "this machine is aarch64", "");
    Ok(())
}

fn programs_in_memory_that_can_not_be_run() -> Result<(), String> {
    let facts = json!({ "sysctl": { "vm.memfd_noexec": 2 } });
    let scene = Scene::new().simulating(facts, None).refusing(&[(libc::SYS_memfd_create, libc::EACCES)]);
    // The guest's program can't be put into the state folder either.
    std::fs::DirBuilder::new().mode(0o700).create(scene.path("state")).unwrap();
    std::fs::write(scene.path("state/programs"), "").unwrap();
    scene.ends_everywhere_with("not-executable", "vm.memfd_noexec is 2", "sudo sysctl -w vm.memfd_noexec=1");
    Ok(())
}

fn programs_in_memory_are_missed_only_by_what_needs_them() -> Result<(), String> {
    let facts = json!({ "sysctl": { "vm.memfd_noexec": 2 } });
    let scene = Scene::new().simulating(facts, None).refusing(&[(libc::SYS_memfd_create, libc::EACCES)]);
    let ran = scene.eyot(&["run", "--", "true"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    let doctor = scene.eyot(&["doctor", "--json"]);
    assert_eq!(doctor.code, Some(0), "{doctor:?}");
    let report: Value = serde_json::from_str(&doctor.stdout).unwrap();
    let found = report["findings"].as_array().unwrap().iter().find(|found| found["id"] == "memory-files");
    let found = found.unwrap_or_else(|| panic!("{report:#}"));
    assert_eq!((&found["status"], &found["cause"]), (&json!("warn"), &json!("not-executable")));
    let why = found["why"].as_str().unwrap();
    assert!(why.contains("servers, `eyot mcp`") && why.contains("`eyot run` and `create` do not"), "{why}");
    let fix = Some("sudo sysctl -w vm.memfd_noexec=1");
    scene.says(&["run", "--net", "egress", "--", "true"], why, fix);
    scene.says(&["pool", "create", "p", "box"], why, fix);
    Ok(())
}

/// A test can only simulate EPERM, but SELinux answers EACCES, so a filter makes that.
fn selinux_behind_a_mount_that_is_refused() -> Result<(), String> {
    let facts = json!({ "selinux_enforcing": true });
    let scene = Scene::new().simulating(facts, None).refusing(&[(libc::SYS_mount, libc::EACCES)]);
    scene.ends_everywhere_with("selinux", "SELinux's policy refuses it", "audit2allow");
    Ok(())
}

fn a_file_system_that_carries_no_overlay() -> Result<(), String> {
    let facts = json!({ "state": { "file_system": "FUSE" }, "container": null });
    let sentence = "the state folder's file system (FUSE) can't carry an overlay";
    leads_to(facts, "mount the root overlay", "no-overlay-there", sentence, "export EYOT_STATE=");
    Ok(())
}

fn a_failure_without_a_known_cause_leads_to_the_doctor() -> Result<(), String> {
    let scene = Scene::new().simulating(json!({}), Some("set the host name"));
    let ran = scene.eyot(&["run", "--", "true"]);
    assert!(ran.stderr.contains("create sandbox: set the host name: operation not permitted"), "{ran:?}");
    assert!(ran.stderr.contains("hint: `eyot doctor` shows what this host can do"), "{ran:?}");
    Ok(())
}

/// Root is not limited by what limits ordinary users, and the doctor does not report it.
fn what_does_not_apply_to_this_caller_is_not_said() -> Result<(), String> {
    let facts = json!({
        "sysctl": { "kernel.unprivileged_userns_clone": 0, "kernel.apparmor_restrict_unprivileged_userns": 1 },
        "admin": true,
    });
    let ran = Scene::new().simulating(facts, None).eyot(&["doctor"]);
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(!ran.stdout.contains("AppArmor") && !ran.stdout.contains("switched off"), "{ran:?}");
    Ok(())
}
