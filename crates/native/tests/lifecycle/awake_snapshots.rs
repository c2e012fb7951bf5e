//! Snapshots of sandboxes that are awake: what stays as it was, who waits, and what has to sleep for it.

use std::fs;
use std::sync::Arc;

use eyot::{
    AwakeSnapshot, ErrorKind, ExecOptions, Mount, NewSnapshot, Sandbox, SandboxPath, SandboxProvider,
    SandboxSpec, SandboxStatus, Security, SnapshotInfo, WatchOptions,
};
use eyot_native::{NativeOptions, NativeProvider};
use libtest_mimic::{Failed, Trial};

use crate::state::State;
use crate::{ensure, of_root, trial};

pub fn trials() -> Vec<Trial> {
    let trials = vec![
        trial("a_sandbox_keeps_its_mounts_and_its_processes_over_snapshots", keeps_mounts),
        trial("who_calls_during_a_snapshot_waits_and_is_served", callers),
        trial("a_file_that_is_open_for_writing_keeps_the_snapshot_from_being_taken_awake", written),
        trial("nothing_is_written_to_a_snapshot_through_the_old_root", old_root),
        trial("a_mount_stays_where_the_directories_above_it_were_moved", moved_mount),
        trial("a_sandbox_with_a_watch_is_kept_asleep_and_goes_on_to_be_watched", watched),
        trial("a_sandbox_whose_root_is_read_only_is_kept_asleep", read_only),
        trial("a_sandbox_whose_root_was_not_replaced_sleeps_and_has_its_files", not_replaced),
        trial("what_is_refused_inside_is_refused_after_a_snapshot", refused),
    ];
    trials
        .into_iter()
        .map(|trial| of_root(trial, "as an ordinary user every snapshot is taken asleep"))
        .collect()
}

/// A state folder, its provider, and a sandbox of this spec.
async fn scene(spec: SandboxSpec) -> Result<(State, Arc<NativeProvider>, Sandbox), Failed> {
    let state = State::new()?;
    let provider = state.provider()?;
    let sandbox = Sandbox::create(&*provider, spec).await?;
    Ok((state, provider, sandbox))
}

async fn take(provider: &NativeProvider, sandbox: &Sandbox) -> Result<Option<AwakeSnapshot>, Failed> {
    Ok(provider.snapshots()?.take_awake(sandbox.id(), &NewSnapshot::of(sandbox.info())).await?)
}

async fn must_take(provider: &NativeProvider, sandbox: &Sandbox) -> Result<SnapshotInfo, Failed> {
    let taken = take(provider, sandbox).await?.ok_or("the sandbox has to sleep")?;
    ensure(taken.is_awake, "the sandbox sleeps")?;
    Ok(taken.snapshot)
}

async fn output(sandbox: &Sandbox, command: &str) -> Result<String, Failed> {
    let result = sandbox.exec(command, ExecOptions::default()).await?;
    ensure(result.success(), format!("{command}: {result:?}"))?;
    Ok(result.stdout_text().trim_end().to_owned())
}

/// Lists the mounts of a guest by place, without their numbers and without what the root's own layers are.
fn mounts(state: &State, sandbox: &Sandbox) -> Result<Vec<String>, Failed> {
    let table = fs::read_to_string(format!("/proc/{}/mountinfo", state.guest_of(sandbox.id().as_str())?))?;
    let mut lines: Vec<String> = Vec::new();
    for line in table.lines() {
        let fields: Vec<&str> = line.split(' ').collect();
        let what = if fields[4] == "/" { fields[3..6].join(" ") } else { fields[2..].join(" ") };
        lines.push(what);
    }
    lines.sort();
    Ok(lines)
}

async fn keeps_mounts() -> Result<(), Failed> {
    let source = tempfile::tempdir()?;
    fs::write(source.path().join("file"), "of the host")?;
    let target = SandboxPath::parse("/home/user/da ta")?;
    let mount = Mount { source: source.path().to_owned(), target, writable: false, cow: false };
    let (state, provider, sandbox) =
        scene(SandboxSpec { mounts: vec![mount], ..SandboxSpec::default() }).await?;
    output(&sandbox, "echo shared > /dev/shm/s; echo run > /run/r").await?;
    let (guest, before) = (state.guest_of(sandbox.id().as_str())?, mounts(&state, &sandbox)?);
    for round in 0..5 {
        sandbox.write("round", format!("{round}")).await?;
        must_take(&provider, &sandbox).await?;
        ensure(state.guest_of(sandbox.id().as_str())? == guest, "it has another guest")?;
        let after = mounts(&state, &sandbox)?;
        ensure(after == before, format!("mounts before: {before:#?}, after: {after:#?}"))?;
        let seen =
            output(&sandbox, "cat '/home/user/da ta/file' /dev/shm/s /run/r round; ls -d /proc/1").await?;
        ensure(seen == format!("of the hostshared\nrun\n{round}/proc/1"), seen)?;
    }
    sandbox.destroy().await?;
    for snapshot in provider.snapshots()?.list().await? {
        provider.snapshots()?.remove(&snapshot.id).await?;
    }
    state.assert_empty()
}

async fn callers() -> Result<(), Failed> {
    let (state, provider, sandbox) = scene(SandboxSpec::default()).await?;
    let other = Arc::new(Sandbox::open(&*state.provider()?, sandbox.id().as_str()).await?);
    let (done, mut is_done) = tokio::sync::watch::channel(false);
    let caller = tokio::spawn(async move {
        let mut calls = 0;
        while !*is_done.borrow_and_update() {
            let text = format!("{calls}");
            other.write("file", text.clone()).await?;
            let found = output(&other, "cat file; mv file moved; cat moved; rm moved").await?;
            ensure(found == format!("{text}{text}"), format!("{found} in round {calls}"))?;
            let large = vec![b'x'; 300_000 + calls];
            other.write("large", large.clone()).await?;
            ensure(other.read("large").await? == large, format!("another content in round {calls}"))?;
            calls += 1;
        }
        Ok::<_, Failed>(calls)
    });
    let mut taken = 0;
    while taken < 10 && !caller.is_finished() {
        taken += usize::from(take(&provider, &sandbox).await?.is_some());
    }
    done.send(true)?;
    ensure(caller.await?? > 0, "nobody called meanwhile")?;
    Ok(sandbox.destroy().await.map(drop)?)
}

async fn watched() -> Result<(), Failed> {
    let (_state, provider, sandbox) = scene(SandboxSpec::default()).await?;
    let watch = sandbox.watch(".", WatchOptions::default()).await?;
    ensure(take(&provider, &sandbox).await?.is_none(), "the root was replaced under a watch")?;
    drop(watch);
    // The guest hears of its end a little later.
    while take(&provider, &sandbox).await?.is_none() {
        sandbox.exists("file").await?;
    }
    Ok(sandbox.destroy().await.map(drop)?)
}

/// A path inside, for this process.
fn path_of(state: &State, sandbox: &Sandbox, path: &str) -> Result<String, Failed> {
    Ok(format!("/proc/{}/root{path}", state.guest_of(sandbox.id().as_str())?))
}

async fn written() -> Result<(), Failed> {
    let (state, provider, sandbox) = scene(SandboxSpec::default()).await?;
    sandbox.write("file", "kept").await?;
    let file = fs::OpenOptions::new().append(true).open(path_of(&state, &sandbox, "/workspace/file")?)?;
    ensure(take(&provider, &sandbox).await?.is_none(), "a snapshot was taken under a writer")?;
    ensure(provider.snapshots()?.list().await?.is_empty(), "there is a snapshot that was not taken")?;
    // Nothing else became of it.
    ensure(provider.info(sandbox.id().as_str()).await?.status == SandboxStatus::Running, "it does not run")?;
    ensure(output(&sandbox, "echo more >> file; cat file").await? == "keptmore", "it can't be written to")?;
    drop(file);
    must_take(&provider, &sandbox).await?;
    for step in ["enter its user namespace", "mount the root overlay", "close the root"] {
        let fail_step = Some(step.to_owned());
        let options = NativeOptions { state: state.path(), fail_step, ..NativeOptions::default() };
        ensure(take(&*NativeProvider::new(options)?, &sandbox).await?.is_none(), step)?;
        ensure(output(&sandbox, "echo x > file; cat file").await? == "x", step)?;
    }
    must_take(&provider, &sandbox).await?;
    Ok(sandbox.destroy().await.map(drop)?)
}

async fn old_root() -> Result<(), Failed> {
    let (state, provider, sandbox) = scene(SandboxSpec::default()).await?;
    sandbox.write("file", "kept").await?;
    let folder = fs::File::open(path_of(&state, &sandbox, "/workspace")?)?;
    let read = fs::File::open(path_of(&state, &sandbox, "/workspace/file")?)?;
    let taken = must_take(&provider, &sandbox).await?;
    let below = |name: &str| format!("/proc/self/fd/{}/{name}", std::os::fd::AsRawFd::as_raw_fd(&folder));
    let again = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&read));
    for path in [below("file"), below("new"), again] {
        let error = fs::OpenOptions::new().append(true).create(true).open(&path).err();
        let is_refused =
            error.as_ref().is_some_and(|error| error.kind() == std::io::ErrorKind::ReadOnlyFilesystem);
        ensure(is_refused, format!("{path}: {error:?}"))?;
    }
    sandbox.write("file", "changed").await?;
    let spec = SandboxSpec { snapshot: Some(taken.id), ..SandboxSpec::default() };
    let forked = Sandbox::create(&*provider, spec).await?;
    ensure(output(&forked, "cat file; ls").await? == "keptfile", "the snapshot has changed")?;
    forked.destroy().await?;
    Ok(sandbox.destroy().await.map(drop)?)
}

async fn moved_mount() -> Result<(), Failed> {
    let source = tempfile::tempdir()?;
    fs::write(source.path().join("file"), "of the host")?;
    let target = SandboxPath::parse("/workspace/a/b/data")?;
    let mount = Mount { source: source.path().to_owned(), target, writable: false, cow: false };
    let (_state, provider, sandbox) =
        scene(SandboxSpec { mounts: vec![mount], ..SandboxSpec::default() }).await?;
    let root = ExecOptions { user: Some("root".to_owned()), ..ExecOptions::default() };
    let moved = sandbox.exec("mv /workspace/a '/workspace/c d'", root).await?;
    ensure(moved.success(), format!("{moved:?}"))?;
    must_take(&provider, &sandbox).await?;
    ensure(output(&sandbox, "cat 'c d/b/data/file'").await? == "of the host", "the mount is not there")?;
    Ok(sandbox.destroy().await.map(drop)?)
}

async fn read_only() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = state.provider()?;
    let security = Security { readonly_rootfs: true, ..Security::default() };
    let sandbox = Sandbox::create(&*provider, SandboxSpec { security, ..SandboxSpec::default() }).await?;
    ensure(take(&provider, &sandbox).await?.is_none(), "a root that is mounted twice was replaced")?;
    output(&sandbox, "echo x > file").await?;
    Ok(sandbox.destroy().await.map(drop)?)
}

async fn not_replaced() -> Result<(), Failed> {
    let (state, provider, sandbox) = scene(SandboxSpec::default()).await?;
    sandbox.write("file", "kept").await?;
    let fail_step = Some("replace the root".to_owned());
    let options = NativeOptions { state: state.path(), fail_step, ..NativeOptions::default() };
    let taken = take(&*NativeProvider::new(options)?, &sandbox).await?.ok_or("no snapshot was taken")?;
    ensure(!taken.is_awake, "it is awake")?;
    let info = provider.info(sandbox.id().as_str()).await?;
    ensure(info.status == SandboxStatus::Sleeping, format!("{:?}", info.status))?;
    let error = sandbox.read("file").await.err().ok_or("it answers")?;
    ensure(error.is_sleeping() || error.kind() == ErrorKind::Unavailable, error)?;
    let woken = Sandbox::wake(&*provider, sandbox.id().as_str()).await?;
    ensure(woken.read("file").await? == "kept", "it has other files")?;
    let spec = SandboxSpec { snapshot: Some(taken.snapshot.id), ..SandboxSpec::default() };
    let forked = Sandbox::create(&*provider, spec).await?;
    ensure(forked.read("file").await? == "kept", "a fork has other files")?;
    forked.destroy().await?;
    Ok(woken.destroy().await.map(drop)?)
}

async fn refused() -> Result<(), Failed> {
    let (_state, provider, sandbox) = scene(SandboxSpec::default()).await?;
    let root = || ExecOptions { user: Some("root".to_owned()), ..ExecOptions::default() };
    let tries = "mknod whiteout c 0 0; mknod null c 1 3; mknod /dev/shm/n c 0 0; umount /proc; mount -t tmpfs none /tmp; \
                 mount -o remount,rw /usr; touch /usr/x; cat /proc/kallsyms | head -c 1; echo 1 > /proc/sys/kernel/panic; ls / \
                 /dev; ln /etc/hostname /workspace/h; mkdir /workspace/d; mv /workspace/h /workspace/d/h; cat /workspace/d/h";
    let before = sandbox.exec(tries, root()).await?;
    output(&sandbox, "true").await?;
    sandbox.exec("rm -rf /workspace/d /workspace/h", root()).await?;
    must_take(&provider, &sandbox).await?;
    let after = sandbox.exec(tries, root()).await?;
    let texts = |result: &eyot::ExecResult| (result.stdout_text(), result.stderr_text());
    ensure(texts(&before) == texts(&after), format!("before: {before:?}, after: {after:?}"))?;
    Ok(sandbox.destroy().await.map(drop)?)
}
