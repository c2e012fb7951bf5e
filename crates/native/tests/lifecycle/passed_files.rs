//! Files that the host reads itself, by descriptors that the guest passes: which files these are, and
//! that none of them keeps a sandbox from ending.

use std::fs;

use eyot::{
    ByteRange, ByteStream, CreateDirOptions, ErrorKind, ExecOptions, Mount, Sandbox, SandboxPath,
    SandboxProvider, SandboxSpec, WorkspaceSpec, WriteOptions,
};
use futures_util::StreamExt;
use libtest_mimic::{Failed, Trial};
use rustix::process::geteuid;

use crate::maker::with_a_disk;
use crate::state::State;
use crate::{ensure, trial};

/// More than one piece of a file, and not more than the guest passes.
const SIZE: usize = 5 << 20;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("a_file_of_the_sandboxs_own_is_read_by_the_host_itself", own),
        trial("a_file_in_memory_or_of_a_mount_of_the_callers_is_read_by_the_guest", others),
        trial("a_large_file_that_is_replaced_is_whole_and_leaves_nothing_beside_it", replaced),
        trial("a_file_that_is_being_read_is_closed_when_its_sandbox_sleeps", asleep),
        trial("a_file_that_is_being_read_is_closed_when_its_sandbox_is_destroyed", destroyed),
        trial("a_disk_with_a_file_that_is_being_read_is_attached_again_at_a_wake", disk),
    ]
}

/// Tells whether the state folders of these tests are on a disk. If not, every file is sent.
fn is_on_disk(state: &State) -> Result<bool, Failed> {
    let kind = rustix::fs::statfs(state.path())?.f_type & 0xffff_ffff;
    Ok([0xef53, 0x5846_5342, 0x9123_683e, 0xf2f5_2010].contains(&kind))
}

/// Counts this process's descriptors of a file inside a sandbox, by a name that no other has.
fn descriptors_of(name: &str) -> Result<usize, Failed> {
    let links = fs::read_dir("/proc/self/fd")?.flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
    Ok(links.filter(|to| to.to_string_lossy().contains(name)).count())
}

/// Returns a name for a file that no other test uses.
fn name(sandbox: &Sandbox) -> String {
    format!("read-in-{}", sandbox.id())
}

/// Writes a file and begins to read it.
async fn begin(sandbox: &Sandbox, path: &str) -> Result<ByteStream, Failed> {
    sandbox.write(path, vec![7; SIZE]).await?;
    begin_existing(sandbox, path).await
}

async fn begin_existing(sandbox: &Sandbox, path: &str) -> Result<ByteStream, Failed> {
    let mut content = sandbox.read_stream(path, ByteRange::default()).await?;
    let first = content.next().await.ok_or("nothing came")??;
    ensure(!first.is_empty() && first.len() < SIZE, format!("{} bytes came at once", first.len()))?;
    Ok(content)
}

/// Reads the rest, and returns how many bytes came.
async fn finish(mut content: ByteStream) -> Result<usize, Failed> {
    let mut count = 0;
    while let Some(piece) = content.next().await {
        count += piece?.len();
    }
    Ok(count)
}

async fn own() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = state.provider()?;
    let workspace = WorkspaceSpec::Persistent { id: "kept".to_owned(), destroy_on_session_destroy: false };
    for spec in [SandboxSpec::default(), SandboxSpec { workspace, ..SandboxSpec::default() }] {
        let sandbox = Sandbox::create(&*provider, spec).await?;
        let name = name(&sandbox);
        for path in [format!("/workspace/{name}"), format!("/home/user/{name}")] {
            let content = begin(&sandbox, &path).await?;
            let expected = usize::from(is_on_disk(&state)?);
            let found = descriptors_of(&name)?;
            ensure(found == expected, format!("{path}: {found} descriptors"))?;
            finish(content).await?;
            ensure(descriptors_of(&name)? == 0, "a descriptor is left")?;
            let whole = sandbox.read(&path).await?;
            ensure(whole.len() == SIZE && whole.iter().all(|byte| *byte == 7), "another content")?;
        }
        let opened = Sandbox::open(&*provider, sandbox.id().as_str()).await?;
        let content = begin_existing(&opened, &format!("/workspace/{name}")).await?;
        ensure(descriptors_of(&name)? == usize::from(is_on_disk(&state)?), "not passed once opened anew")?;
        drop(content);
        ensure(descriptors_of(&name)? == 0, "a descriptor is left of a read that was dropped")?;
        sandbox.destroy().await?;
    }
    Ok(())
}

async fn others() -> Result<(), Failed> {
    let (state, source) = (State::new()?, tempfile::tempdir()?);
    let provider = state.provider()?;
    let mount = Mount {
        source: source.path().to_owned(),
        target: SandboxPath::parse("/workspace/mounted")?,
        writable: false,
        cow: false,
    };
    let sandbox =
        Sandbox::create(&*provider, SandboxSpec { mounts: vec![mount], ..SandboxSpec::default() }).await?;
    let name = name(&sandbox);
    fs::write(source.path().join(&name), vec![7; SIZE])?;
    sandbox.write(&format!("/dev/shm/{name}"), vec![7; SIZE]).await?;
    for folder in ["/dev/shm", "/workspace/mounted"] {
        let content = begin_existing(&sandbox, &format!("{folder}/{name}")).await?;
        ensure(descriptors_of(&name)? == 0, format!("{folder}: the host has a descriptor"))?;
        finish(content).await?;
    }
    sandbox.destroy().await?;
    Ok(())
}

async fn replaced() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = state.provider()?;
    let workspace = WorkspaceSpec::Persistent { id: "kept".to_owned(), destroy_on_session_destroy: false };
    for spec in [SandboxSpec::default(), SandboxSpec { workspace, ..SandboxSpec::default() }] {
        let sandbox = Sandbox::create(&*provider, spec).await?;
        let mode = WriteOptions { permissions: Some(0o640), ..WriteOptions::default() };
        sandbox.write_with("d/f", "old", mode).await?;
        for byte in [1, 2] {
            sandbox.write("d/f", vec![byte; SIZE]).await?;
            let whole = sandbox.read("d/f").await?;
            ensure(whole.len() == SIZE && whole.iter().all(|found| *found == byte), "another content")?;
        }
        let shown = sandbox.exec("stat -c '%a %n' d/* d/.e*", ExecOptions::default()).await?.stdout_text();
        ensure(shown.trim() == "640 d/f", shown)?;
        sandbox.create_dir("d/g", CreateDirOptions::default()).await?;
        let refused = sandbox.write("d/g", vec![1; SIZE]).await.err().map(|error| error.kind());
        ensure(refused == Some(ErrorKind::IsDirectory), format!("{refused:?}"))?;
        sandbox.destroy().await?;
    }
    Ok(())
}

async fn asleep() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = state.provider()?;
    let sandbox = Sandbox::create(&*provider, SandboxSpec::default()).await?;
    let name = name(&sandbox);
    let content = begin(&sandbox, &name).await?;
    provider.sleep(sandbox.id().as_str()).await?;
    ensure(finish(content).await.is_err(), "the read went on")?;
    ensure(descriptors_of(&name)? == 0, "a descriptor is left")?;
    let woken = Sandbox::wake(&*provider, sandbox.id().as_str()).await?;
    ensure(woken.read(&name).await?.len() == SIZE, "another content")?;
    woken.destroy().await?;
    Ok(())
}

async fn destroyed() -> Result<(), Failed> {
    let state = State::new()?;
    let provider = state.provider()?;
    let sandbox = Sandbox::create(&*provider, SandboxSpec::default()).await?;
    let name = name(&sandbox);
    let content = begin(&sandbox, &name).await?;
    sandbox.destroy().await?;
    ensure(descriptors_of(&name)? == 0, "a descriptor is left")?;
    let error = finish(content).await.err();
    ensure(error.is_some(), "the read went on")?;
    state.assert_empty()
}

async fn disk() -> Result<(), Failed> {
    // Others have no disks of their own.
    let spec = if geteuid().is_root() { with_a_disk(32) } else { SandboxSpec::default() };
    let state = State::new()?;
    let provider = state.provider()?;
    let sandbox = Sandbox::create(&*provider, spec).await?;
    let name = name(&sandbox);
    let content = begin(&sandbox, &name).await?;
    provider.sleep(sandbox.id().as_str()).await?;
    // The read is still held, as a client that has stopped reading would hold it.
    let woken = Sandbox::wake(&*provider, sandbox.id().as_str()).await?;
    ensure(woken.read(&name).await?.len() == SIZE, "another content")?;
    drop(content);
    woken.destroy().await?;
    Ok(())
}
