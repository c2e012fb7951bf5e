//! Disks of sandboxes with a disk limit. They are made and removed with the sandbox, loop devices
//! included, whichever process is killed at any moment.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use eyot::{
    DiskEnforcement, ErrorKind, ExecOptions, Limits, Requirement, Sandbox, SandboxProvider, SandboxSpec,
};
use eyot_native::{NativeOptions, NativeProvider};
use libtest_mimic::{Completion, Failed, Trial};

use crate::ensure;
use crate::maker::{Maker, with_a_disk};
use crate::slots::{slots, was_one_of, with_slots};
use crate::state::State;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("a_disk_and_its_loop_device_go_with_the_sandbox", gone),
        trial("a_full_disk_is_full_for_its_sandbox_alone", full),
        trial("an_empty_disk_takes_next_to_nothing_of_the_hosts", little),
        trial("the_smallest_disk_works_and_a_smaller_one_is_invalid", smallest),
        trial("a_create_that_fails_after_its_disk_was_made_leaves_neither", failed_creates),
        trial("disks_of_a_maker_that_was_killed_go_with_the_next_sweep", killed_maker),
        trial("a_disk_is_attached_again_at_a_wake_and_still_has_its_size", woken),
        trial("a_disk_of_a_guest_that_was_killed_is_checked_and_attached_again", killed_guest),
        trial("a_sandbox_from_a_slot_has_a_disk_of_its_own", from_a_slot),
        trial("a_required_disk_without_a_size_is_refused_and_a_sandbox_without_one_has_none", without),
    ]
}

/// Makes a trial that is ignored on hosts without disk limits.
pub fn trial<F>(name: &str, case: fn(Arc<NativeProvider>, State) -> F) -> Trial
where
    F: Future<Output = Result<(), Failed>> + 'static,
{
    ignorable(name, move |provider, state| async move {
        case(provider, state).await?;
        Ok(Completion::Completed)
    })
}

/// Makes a trial that is ignored there, and where it says so itself.
pub fn ignorable<F>(
    name: impl Into<String>,
    case: impl FnOnce(Arc<NativeProvider>, State) -> F + Send + 'static,
) -> Trial
where
    F: Future<Output = Result<Completion, Failed>> + 'static,
{
    Trial::ignorable_test(name, move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        runtime.block_on(async {
            let state = State::new()?;
            let provider = state.provider()?;
            if provider.isolation().await?.limits.disk != DiskEnforcement::Quota {
                return Ok(Completion::ignored_with(
                    "no disk quota here: no root, loop devices or mkfs.ext4",
                ));
            }
            tokio::time::timeout(crate::harness::HANG, case(provider, state)).await?
        })
    })
}

async fn from_a_slot(_: Arc<NativeProvider>, state: State) -> Result<(), Failed> {
    let provider = with_slots(&state, 2)?;
    let limits = Limits { disk_mib: Some(64), ..Limits::default() };
    let spec = SandboxSpec { limits, ..SandboxSpec::default() };
    let made = provider.fill_slots(&spec).await?;
    let before = slots(&state)?;
    ensure(made == 2 && devices(&state).len() == 2, format!("{made} slots, {:?}", devices(&state)))?;
    let sandbox = Sandbox::create(&*provider, spec).await?;
    ensure(was_one_of(&state, &sandbox, &before)?, "it was made from nothing")?;
    let held = sandbox.info().isolation.limits.disk;
    ensure(held == DiskEnforcement::Quota, format!("{held:?}"))?;
    let line = "echo kept > kept; head -c 100000000 /dev/zero > large; stat -c %s large";
    let wrote: u64 = sandbox.exec(line, ExecOptions::default()).await?.stdout_text().trim().parse()?;
    ensure((10_000_000..64 << 20).contains(&wrote), format!("{wrote} bytes are in 64 MiB"))?;
    provider.sleep(sandbox.id().as_str()).await?;
    let sandbox = Sandbox::wake(&*provider, sandbox.id().as_str()).await?;
    ensure(sandbox.read_text("kept").await? == "kept\n", "the disk is another one")?;
    sandbox.destroy().await?;
    drop(provider);
    ensure(devices(&state).is_empty(), format!("{:?} are left", devices(&state)))?;
    state.assert_empty()
}

/// Lists the files of this state folder that are behind loop devices.
pub fn devices(state: &State) -> Vec<PathBuf> {
    let all = fs::read_dir("/sys/block").into_iter().flatten().flatten();
    let files = all.filter_map(|entry| fs::read_to_string(entry.path().join("loop/backing_file")).ok());
    files.map(|file| PathBuf::from(file.trim())).filter(|file| file.starts_with(state.path())).collect()
}

/// Waits until no loop device is left. The kernel closes them asynchronously.
async fn ensure_no_devices(state: &State) -> Result<(), Failed> {
    for _ in 0..250 {
        if devices(state).is_empty() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Err(format!("loop devices are left: {:?}", devices(state)).into())
}

pub async fn ensure_nothing_left(state: &State) -> Result<(), Failed> {
    ensure_no_devices(state).await?;
    state.assert_empty()
}

async fn gone(provider: Arc<NativeProvider>, state: State) -> Result<(), Failed> {
    let spec = SandboxSpec { require: [Requirement::Disk].into(), ..with_a_disk(32) };
    let sandbox = Sandbox::create(&*provider, spec).await?;
    ensure(sandbox.isolation().limits.disk == DiskEnforcement::Quota, "it is not said to be held")?;
    ensure(devices(&state).len() == 1, format!("{:?}", devices(&state)))?;
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    let is_ours = |line: &&str| line.contains("/dev/loop") && line.contains(&*state.path().to_string_lossy());
    ensure(!mounts.lines().any(|line| is_ours(&line)), "the host's table of mounts has it")?;
    sandbox.write("kept", "on its disk").await?;
    ensure(sandbox.read_text("kept").await? == "on its disk", "the file is not there")?;
    sandbox.destroy().await?;
    ensure_nothing_left(&state).await
}

async fn full(provider: Arc<NativeProvider>, state: State) -> Result<(), Failed> {
    let sandbox = Sandbox::create(&*provider, with_a_disk(16)).await?;
    let sibling = Sandbox::create(&*provider, with_a_disk(16)).await?;
    let written = sandbox.exec("head -c 64M /dev/zero > /tmp/full", ExecOptions::default()).await?;
    ensure(written.stderr_text().contains("No space left"), format!("{written:?}"))?;
    let error = sandbox.write("more", vec![1_u8; 4 << 20]).await.err().ok_or("it fit")?;
    ensure(error.kind() == ErrorKind::Quota, error.to_string())?;
    sibling.write("as before", vec![1_u8; 4 << 20]).await?;
    for sandbox in [sandbox, sibling] {
        sandbox.destroy().await?;
    }
    ensure_nothing_left(&state).await
}

async fn little(provider: Arc<NativeProvider>, state: State) -> Result<(), Failed> {
    let sandbox = Sandbox::create(&*provider, with_a_disk(4096)).await?;
    let image = state.path().join("sandboxes").join(sandbox.id().as_str()).join("disk");
    let held = fs::metadata(&image)?.blocks() * 512;
    ensure(held < 4 << 20, format!("an empty disk holds {held} bytes"))?;
    sandbox.destroy().await?;
    ensure_nothing_left(&state).await
}

async fn smallest(provider: Arc<NativeProvider>, state: State) -> Result<(), Failed> {
    let error = Sandbox::create(&*provider, with_a_disk(7)).await.err().ok_or("it was made")?;
    ensure(error.kind() == ErrorKind::Invalid, error.to_string())?;
    ensure(error.to_string().contains("at least 8"), error.to_string())?;
    state.assert_empty()?;
    let sandbox = Sandbox::create(&*provider, with_a_disk(8)).await?;
    sandbox.write("file", vec![1_u8; 6 << 20]).await?;
    let more = sandbox.write("more", vec![1_u8; 2 << 20]).await;
    ensure(more.is_err_and(|error| error.kind() == ErrorKind::Quota), "eight fit into eight")?;
    sandbox.destroy().await?;
    ensure_nothing_left(&state).await
}

async fn failed_creates(_: Arc<NativeProvider>, state: State) -> Result<(), Failed> {
    for step in ["make its disk", "attach its disk", "mount the root overlay", "install the seccomp filter"] {
        let fail_step = Some(step.to_owned());
        let options = NativeOptions { state: state.path(), fail_step, ..NativeOptions::default() };
        let provider = NativeProvider::new(options)?;
        let error = Sandbox::create(&*provider, with_a_disk(16)).await.err().ok_or("it was made")?;
        ensure(error.kind() == ErrorKind::Setup && error.to_string().contains(step), error.to_string())?;
        ensure_nothing_left(&state).await?;
    }
    Ok(())
}

async fn killed_maker(provider: Arc<NativeProvider>, state: State) -> Result<(), Failed> {
    let mut maker = Maker::start(&state.path(), "disks", 20)?;
    for _ in 0..5 {
        maker.line().await?;
    }
    maker.kill_9().await?;
    ensure(!devices(&state).is_empty(), "there were no devices")?;
    for info in provider.list().await? {
        provider.remove(info.id.as_str()).await?;
    }
    ensure(provider.list().await?.is_empty(), "sandboxes are left")?;
    ensure_nothing_left(&state).await
}

async fn without(provider: Arc<NativeProvider>, state: State) -> Result<(), Failed> {
    let spec = SandboxSpec { require: [Requirement::Disk].into(), ..SandboxSpec::default() };
    let error = Sandbox::create(&*provider, spec).await.err().ok_or("it was made")?;
    ensure(error.kind() == ErrorKind::Unsupported, error.to_string())?;
    ensure(error.to_string().contains("limits.disk_mib"), error.to_string())?;
    let spec = SandboxSpec { limits: Limits::default(), ..SandboxSpec::default() };
    let sandbox = Sandbox::create(&*provider, spec).await?;
    ensure(sandbox.isolation().limits.disk == DiskEnforcement::None, "a limit that nobody set")?;
    ensure(devices(&state).is_empty(), format!("{:?}", devices(&state)))?;
    sandbox.destroy().await?;
    ensure_nothing_left(&state).await
}

async fn woken(provider: Arc<NativeProvider>, state: State) -> Result<(), Failed> {
    let first = Sandbox::create(&*provider, with_a_disk(16)).await?;
    let id = first.id().as_str();
    for round in 1..=5 {
        // At once, while the kernel still lets go of the last mount.
        let sandbox = Sandbox::wake(&*provider, id).await?;
        let written = sandbox.exec("echo x >> rounds && wc -l < rounds", ExecOptions::default()).await?;
        ensure(written.stdout_text().trim() == round.to_string(), format!("{written:?}"))?;
        ensure(devices(&state).len() == 1, format!("{:?}", devices(&state)))?;
        provider.sleep(id).await?;
    }
    ensure_no_devices(&state).await?;
    let sandbox = Sandbox::wake(&*provider, id).await?;
    let written = sandbox.exec("head -c 64M /dev/zero > /tmp/full", ExecOptions::default()).await?;
    ensure(written.stderr_text().contains("No space left"), format!("{written:?}"))?;
    ensure(sandbox.isolation().limits.disk == DiskEnforcement::Quota, "it is not said to be held")?;
    sandbox.destroy().await?;
    ensure_nothing_left(&state).await
}

async fn killed_guest(provider: Arc<NativeProvider>, state: State) -> Result<(), Failed> {
    let sandbox = Sandbox::create(&*provider, with_a_disk(16)).await?;
    let id = sandbox.id().as_str();
    sandbox.write("marker", "kept").await?;
    provider.sleep(id).await?;
    ensure_no_devices(&state).await?;
    // As if the host had gone down while it was mounted. It comes with `mkfs.ext4`.
    let image = state.path().join("sandboxes").join(id).join("disk");
    let mut unclean = std::process::Command::new("debugfs");
    let marked = unclean.args(["-w", "-R", "ssv state 0"]).arg(image).output()?;
    ensure(marked.status.success(), format!("{marked:?}"))?;
    let woken = Sandbox::wake(&*provider, id).await?;
    ensure(woken.read_text("marker").await? == "kept", "the file is not there")?;
    woken.destroy().await?;
    ensure_nothing_left(&state).await
}
