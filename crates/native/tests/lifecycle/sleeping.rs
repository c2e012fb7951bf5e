//! Sleep and wake across processes, crashes and restarts, and the protections after a wake.

use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;

use eyot::{
    EgressRules, ErrorKind, ExecOptions, IdleAction, Lifecycle, Mount, NetworkMode, Sandbox, SandboxPath,
    SandboxProvider, SandboxSpec, SandboxStatus, WorkspaceSpec,
};
use eyot_native::{NativeOptions, NativeProvider};
use libtest_mimic::{Failed, Trial};
use rustix::process::{Pid, Signal};

use crate::maker::Maker;
use crate::state::{State, wait_for_end};
use crate::{ensure, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("a_sandbox_that_one_process_put_to_sleep_is_woken_by_another", woken_elsewhere),
        trial("processes_that_wake_one_sandbox_at_once_make_one_guest", one_guest),
        trial("kill_9_at_any_moment_of_sleeps_and_wakes_leaves_a_sandbox_with_its_files", killed_in_between),
        trial("an_idle_sandbox_goes_to_sleep_with_no_eyot_process_alive", idle),
        trial("what_is_to_sleep_when_it_is_idle_sleeps_after_a_restart_of_the_host", restarted),
        trial("every_step_that_fails_ends_the_wake_and_leaves_it_asleep", failing_steps),
        trial("a_persistent_workspace_is_there_again_after_a_wake", workspace),
        trial("a_mount_whose_source_is_gone_fails_the_wake_until_it_is_back", missing_source),
        trial("nothing_that_was_done_to_the_way_to_a_mount_leads_it_elsewhere", led_astray),
        trial("the_image_is_the_one_that_it_was_made_over_wherever_its_name_leads_now", image),
        trial("rules_of_the_network_that_were_changed_hold_after_a_wake", rules),
        trial("a_read_only_root_is_read_only_after_a_wake", readonly_root),
    ]
}

async fn stdout(sandbox: &Sandbox, line: &str) -> Result<String, Failed> {
    let result = sandbox.exec(line, ExecOptions::default()).await?;
    ensure(result.success(), format!("`{line}`: {result:?}"))?;
    Ok(result.stdout_text())
}

async fn status(provider: &dyn SandboxProvider, id: &str) -> Result<Option<SandboxStatus>, Failed> {
    let all = provider.list().await?;
    Ok(all.into_iter().find(|info| info.id.as_str() == id).map(|info| info.status))
}

async fn ensure_sleeps(provider: &dyn SandboxProvider, id: &str) -> Result<(), Failed> {
    let status = status(provider, id).await?;
    ensure(status == Some(SandboxStatus::Sleeping), format!("it is {status:?}"))
}

async fn woken_elsewhere() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = state.provider()?;
    let sandbox = Sandbox::create(&*provider, SandboxSpec::default()).await?;
    let id = sandbox.id().as_str();
    sandbox.write("marker", "kept").await?;
    let guest = state.guest_of(id)?;
    provider.sleep(id).await?;
    wait_for_end(guest).await?;
    let mut maker = Maker::start_for(&state.path(), "wake", id)?;
    ensure(maker.line().await? == "kept", "the other process does not see the file")?;
    maker.end().await?;
    let opened = Sandbox::open(&*provider, id).await?;
    ensure(opened.read_text("marker").await? == "kept", "the file is not there")?;
    let error = sandbox.exists("marker").await.err().ok_or("the handle from before works")?;
    ensure(error.is_sleeping(), format!("{error:?}"))?;
    // The handle from before knows nothing of the guest that is to be ended.
    let guest = state.guest_of(id)?;
    sandbox.destroy().await?;
    wait_for_end(guest).await?;
    state.assert_empty()
}

async fn one_guest() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = state.provider()?;
    let sandbox = Sandbox::create(&*provider, SandboxSpec::default()).await?;
    let id = sandbox.id().as_str();
    sandbox.write("marker", "kept").await?;
    for _ in 0..4 {
        provider.sleep(id).await?;
        let mut makers =
            (0..3).map(|_| Maker::start_for(&state.path(), "wake", id)).collect::<Result<Vec<_>, _>>()?;
        for maker in &mut makers {
            ensure(maker.line().await? == "kept", "the file is not there")?;
            maker.end().await?;
        }
        // In memory, so of one guest alone.
        let opened = Sandbox::open(&*provider, id).await?;
        ensure(stdout(&opened, "wc -l < /dev/shm/woken").await?.trim() == "3", "there were several guests")?;
    }
    provider.remove(id).await?;
    state.assert_empty()
}

/// Has a maker put its sandbox to sleep and wake it, over and over, and kills the maker in between.
/// Each file that the maker reported must be there.
async fn killed_in_between() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = state.provider()?;
    let sandbox = Sandbox::create(&*provider, SandboxSpec::default()).await?;
    let id = sandbox.id().as_str();
    let (mut acknowledged, mut random) = (Vec::new(), 20_261_121_u64);
    for round in 0..24 {
        let mut maker = Maker::start_for(&state.path(), "naps", id)?;
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        for _ in 0..2 + random % 4 {
            acknowledged.push(maker.line().await?);
        }
        // From nothing to longer than a sleep and a wake.
        tokio::time::sleep(std::time::Duration::from_micros(random % 30_011)).await;
        maker.kill_9().await?;
        let found = status(&*provider, id).await?;
        let usable = matches!(found, Some(SandboxStatus::Running | SandboxStatus::Sleeping));
        ensure(usable, format!("it is {found:?} in round {round}"))?;
        let woken = Sandbox::wake(&*provider, id).await?;
        for file in &acknowledged {
            ensure(woken.read_text(file).await? == *file, format!("{file} is lost in round {round}"))?;
        }
    }
    let guest = state.guest_of(id)?;
    provider.remove(id).await?;
    wait_for_end(guest).await?;
    state.assert_empty()
}

async fn idle() -> Result<(), Failed> {
    let state = State::new()?;
    let mut maker = Maker::start(&state.path(), "drowsy", 1500)?;
    let id = maker.line().await?;
    maker.end().await?;
    wait_for_end(state.guest_of(&id)?).await?;
    let provider = state.provider()?;
    let error = provider.open(&id).await.err().ok_or("it was opened")?;
    ensure(error.is_sleeping(), format!("{error:?}"))?;
    ensure_sleeps(&*provider, &id).await?;
    let woken = Sandbox::wake(&*provider, &id).await?;
    ensure(woken.read_text("marker").await? == "made by another process", "the file is not there")?;
    woken.destroy().await?;
    state.assert_empty()
}

/// Ends the guest and changes the boot that the record knows, as a restart of the host does.
async fn restarted() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = state.provider()?;
    let idle =
        Lifecycle { idle_timeout_ms: Some(600_000), on_idle: IdleAction::Sleep, ..Lifecycle::default() };
    for (lifecycle, expected) in
        [(idle, SandboxStatus::Sleeping), (Lifecycle::default(), SandboxStatus::Dead)]
    {
        let sandbox =
            Sandbox::create(&*provider, SandboxSpec { lifecycle, ..SandboxSpec::default() }).await?;
        let id = sandbox.id().as_str();
        sandbox.write("marker", "kept").await?;
        let guest = state.guest_of(id)?;
        rustix::process::kill_process(Pid::from_raw(guest).ok_or("no number")?, Signal::KILL)?;
        wait_for_end(guest).await?;
        let record = state.path().join("sandboxes").join(id).join("sandbox.json");
        let mut known: serde_json::Value = serde_json::from_slice(&fs::read(&record)?)?;
        known["boot_id"] = "another".into();
        fs::write(&record, serde_json::to_vec(&known)?)?;
        let found = status(&*provider, id).await?;
        ensure(found == Some(expected), format!("it is {found:?}"))?;
        let woken = Sandbox::wake(&*provider, id).await?;
        ensure(woken.read_text("marker").await? == "kept", "the file is not there")?;
        woken.destroy().await?;
    }
    state.assert_empty()
}

/// Steps that not every plan has: each belongs to one of the two id maps, or depends on the kernel.
const NOT_EVERYWHERE: [&str; 4] =
    ["become inner root", "map the user", "restrict by Landlock", "limit the process namespace"];

async fn failing_steps() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = state.provider()?;
    let mut spec = crate::maker::with_a_disk(16);
    (spec.security.readonly_rootfs, spec.network) = (true, NetworkMode::Egress);
    spec.limits.cpus = Some(1.0);
    let sandbox = Sandbox::create(&*provider, spec).await?;
    let id = sandbox.id().as_str();
    sandbox.write("marker", "kept").await?;
    provider.sleep(id).await?;
    for step in eyot_native::step_names().into_iter().filter(|step| !NOT_EVERYWHERE.contains(step)) {
        let fail_step = Some(step.to_owned());
        let options = NativeOptions { state: state.path(), fail_step, ..NativeOptions::default() };
        let failing = NativeProvider::new(options)?;
        let error = failing.wake(id).await.err().ok_or_else(|| format!("{step}: it was woken"))?;
        ensure(error.kind() == ErrorKind::Setup, format!("{step}: {error:?}"))?;
        let said = error.to_string();
        ensure(said.starts_with("wake sandbox") && said.contains(step), format!("{step}: {said}"))?;
        ensure_sleeps(&*provider, id).await?;
    }
    let woken = Sandbox::wake(&*provider, id).await?;
    ensure(woken.read_text("marker").await? == "kept", "the file is not there")?;
    woken.destroy().await?;
    state.assert_empty()
}

async fn workspace() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = state.provider()?;
    let workspace = WorkspaceSpec::Persistent { id: "shared".into(), destroy_on_session_destroy: true };
    let spec = SandboxSpec { workspace, ..SandboxSpec::default() };
    let first = Sandbox::create(&*provider, spec.clone()).await?;
    first.write("a", "x").await?;
    provider.sleep(first.id().as_str()).await?;
    let second = Sandbox::create(&*provider, spec).await?;
    second.write("b", "y").await?;
    // A sandbox that sleeps still has its workspace.
    second.destroy().await?;
    let woken = Sandbox::wake(&*provider, first.id().as_str()).await?;
    ensure(stdout(&woken, "cat a b; stat -c %U a").await? == "xyuser\n", "the workspace is another one")?;
    woken.destroy().await?;
    ensure(!state.path().join("workspaces/shared").exists(), "the workspace is left")?;
    state.assert_empty()
}

fn with_mount(source: &std::path::Path, target: &str) -> Result<SandboxSpec, Failed> {
    let target = SandboxPath::parse(target)?;
    let mounts = vec![Mount { source: source.to_owned(), target, writable: false, cow: false }];
    Ok(SandboxSpec { mounts, ..SandboxSpec::default() })
}

async fn missing_source() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = state.provider()?;
    let outside = tempfile::tempdir()?;
    let source = outside.path().join("data");
    fs::create_dir(&source)?;
    fs::write(source.join("a"), "outside")?;
    let sandbox = Sandbox::create(&*provider, with_mount(&source, "/data")?).await?;
    let id = sandbox.id().as_str();
    sandbox.write("marker", "kept").await?;
    provider.sleep(id).await?;
    fs::rename(&source, outside.path().join("elsewhere"))?;
    let error = provider.wake(id).await.err().ok_or("it was woken")?;
    ensure(error.kind() == ErrorKind::Invalid, format!("{error:?}"))?;
    let names_it = error.to_string().contains("mounts.source") && error.to_string().contains("data");
    ensure(names_it, error.to_string())?;
    ensure_sleeps(&*provider, id).await?;
    fs::rename(outside.path().join("elsewhere"), &source)?;
    let woken = Sandbox::wake(&*provider, id).await?;
    ensure(stdout(&woken, "cat marker /data/a").await? == "keptoutside", "the mount is not there")?;
    woken.destroy().await?;
    state.assert_empty()
}

/// Replaces, as a workload could, a folder on the way to a mount by a link. If the host followed
/// it, the mount would show a place of the host, or be missing inside.
async fn led_astray() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = state.provider()?;
    let outside = tempfile::tempdir()?;
    fs::write(outside.path().join("a"), "outside")?;
    fs::set_permissions(outside.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    let sandbox = Sandbox::create(&*provider, with_mount(outside.path(), "/srv/deep/data")?).await?;
    let id = sandbox.id().as_str();
    let change = "mv /srv/deep /srv/moved && ln -s /etc /srv/deep && chmod 0 /srv";
    let root = provider.capabilities().has(eyot::Capability::Users).then(|| "root".to_owned());
    let changed = sandbox.exec(change, ExecOptions { user: root, ..ExecOptions::default() }).await?;
    ensure(changed.success(), format!("{changed:?}"))?;
    provider.sleep(id).await?;
    let woken = Sandbox::wake(&*provider, id).await?;
    let root = provider.capabilities().has(eyot::Capability::Users).then(|| "root".to_owned());
    let look = "cat /srv/deep/data/a; readlink /srv/deep.before-wake-1; ls -A /srv/moved/data";
    let found = woken.exec(look, ExecOptions { user: root, ..ExecOptions::default() }).await?;
    ensure(found.stdout_text() == "outside/etc\n", format!("{found:?}"))?;
    ensure(!std::path::Path::new("/etc/data").exists(), "something was made on the host")?;
    woken.destroy().await?;
    state.assert_empty()
}

async fn image() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = state.provider()?;
    let folder = tempfile::tempdir()?;
    fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755))?;
    let root = folder.path().join("first");
    crate::images::make_rootfs(&root)?;
    let name = folder.path().join("image");
    symlink("first", &name)?;
    let image = Some(name.to_string_lossy().into_owned());
    let sandbox = Sandbox::create(&*provider, SandboxSpec { image, ..SandboxSpec::default() }).await?;
    let id = sandbox.id().as_str();
    sandbox.write("marker", "kept").await?;
    sandbox.write("/etc/hosts", "127.0.0.1 mine\n").await.or_else(|error| match error.kind() {
        // Where only root may.
        ErrorKind::Permission => Ok(()),
        _ => Err(error),
    })?;
    let hosts = sandbox.read_text("/etc/hosts").await?;
    provider.sleep(id).await?;
    fs::remove_file(&name)?;
    let woken = Sandbox::wake(&*provider, id).await?;
    ensure(woken.read_text("marker").await? == "kept", "the file is not there")?;
    ensure(woken.read_text("/etc/hosts").await? == hosts, "what the user has changed was made anew")?;
    provider.sleep(id).await?;
    fs::rename(&root, folder.path().join("second"))?;
    let error = provider.wake(id).await.err().ok_or("it was woken")?;
    ensure(error.kind() == ErrorKind::NotFound, format!("{error:?}"))?;
    ensure_sleeps(&*provider, id).await?;
    provider.remove(id).await?;
    state.assert_empty()
}

async fn rules() -> Result<(), Failed> {
    let state = State::new()?;
    let provider: Arc<NativeProvider> = state.provider()?;
    let spec = SandboxSpec { network: NetworkMode::Egress, ..SandboxSpec::default() };
    let sandbox = Sandbox::create(&*provider, spec).await?;
    let id = sandbox.id().as_str();
    let rules: EgressRules = serde_json::from_value(serde_json::json!({"allow": ["example.com:443"]}))?;
    sandbox.set_egress_rules(&rules).await?;
    let held = sandbox.egress_rules().await?;
    provider.sleep(id).await?;
    let error = sandbox.egress_rules().await.err().ok_or("a sandbox that sleeps told its rules")?;
    ensure(error.is_sleeping(), format!("{error:?}"))?;
    let woken = Sandbox::wake(&*provider, id).await?;
    ensure(woken.egress_rules().await? == held, "other rules hold")?;
    let refused = "python3 - <<'end'\nimport os, socket\ns = socket.create_connection(('127.0.0.1', 3128))\n\
                   s.sendall(b'CONNECT 127.0.0.2:443 HTTP/1.1\\r\\n\\r\\n')\nprint(s.recv(12).decode())\nend";
    let answered = woken.exec(refused, ExecOptions::default()).await?;
    ensure(answered.stdout_text().starts_with("HTTP/1.1 403"), format!("{answered:?}"))?;
    woken.destroy().await?;
    state.assert_empty()
}

async fn readonly_root() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = state.provider()?;
    let mut spec = SandboxSpec::default();
    spec.security.readonly_rootfs = true;
    let sandbox = Sandbox::create(&*provider, spec).await?;
    stdout(&sandbox, "echo x > ~/a; echo y > /tmp/b; echo z > c").await?;
    provider.sleep(sandbox.id().as_str()).await?;
    let woken = Sandbox::wake(&*provider, sandbox.id().as_str()).await?;
    ensure(stdout(&woken, "cat ~/a /tmp/b c; ! touch /etc/d").await? == "x\ny\nz\n", "its files are others")?;
    ensure(woken.isolation().readonly_rootfs, "it is not said to be read-only")?;
    woken.destroy().await?;
    state.assert_empty()
}
