//! Snapshots of sandboxes with a disk limit: every rule of the contract on snapshots, and what a disk adds to them.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::sync::Arc;

use eyot::conformance::{Case, Fixture, Verdict, cases};
use eyot::{
    BranchPoint, Capability, CompareOptions, ErrorKind, ExecOptions, FileChanges, NewSnapshot, Sandbox,
    SandboxInfo, SandboxPath, SandboxProvider, SandboxSpec,
};
use eyot_native::NativeProvider;
use libtest_mimic::{Completion, Failed, Trial};

use crate::disks::{ignorable, trial};
use crate::ensure;
use crate::maker::with_a_disk;
use crate::state::State;

/// The size of the disks, in MiB.
const MIB: u64 = 64;

pub fn trials() -> Vec<Trial> {
    let of_contract = cases().into_iter().filter(|case| {
        let is_of_branches = [Capability::Snapshots, Capability::CowMounts];
        case.needs.iter().any(|needed| is_of_branches.contains(needed))
    });
    let mut trials: Vec<Trial> = of_contract.map(with_disks).collect();
    trials.extend([
        trial("a_snapshot_empties_the_disk_and_a_fork_has_one_of_its_own", emptied),
        trial("a_snapshot_beyond_its_bytes_is_refused_and_leaves_nothing", beyond_bytes),
        trial("a_sandbox_wakes_while_its_disk_is_compared", compared_meanwhile),
        trial("a_backup_has_nothing_of_a_copy_that_a_killed_process_left", left_by_killed),
    ]);
    trials
}

struct WithDisks {
    provider: Arc<NativeProvider>,
}

impl Fixture for WithDisks {
    fn provider(&self) -> Arc<dyn SandboxProvider> {
        self.provider.clone()
    }

    fn spec(&self) -> SandboxSpec {
        with_a_disk(MIB)
    }
}

/// A case of the contract, over sandboxes with a disk limit.
fn with_disks(case: Case) -> Trial {
    ignorable(format!("{}_with_a_disk_limit", case.name), move |provider, state| async move {
        let verdict = (case.run)(Arc::new(WithDisks { provider: Arc::clone(&provider) })).await;
        // A case leaves its sandboxes to whoever runs it, or has begun to destroy them.
        for left in provider.list().await? {
            match provider.remove(left.id.as_str()).await {
                Err(error) if !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::Destroyed) => {
                    return Err(error.into());
                }
                _ => {}
            }
        }
        // It was in use until now.
        drop(state);
        match verdict? {
            Verdict::Holds => Ok(Completion::Completed),
            Verdict::NotHere(reason) => Ok(Completion::ignored_with(reason)),
        }
    })
}

async fn said(sandbox: &Sandbox, line: &str) -> Result<String, Failed> {
    Ok(sandbox.exec(line, ExecOptions::default()).await?.stdout_text().trim().to_owned())
}

/// Makes a sandbox with a disk, runs a line in it, and puts it to sleep.
async fn slept(provider: &NativeProvider, line: &str) -> Result<SandboxInfo, Failed> {
    let sandbox = Sandbox::create(provider, with_a_disk(MIB)).await?;
    said(&sandbox, line).await?;
    provider.sleep(sandbox.id().as_str()).await?;
    Ok(sandbox.info().clone())
}

async fn emptied(provider: Arc<NativeProvider>, state: State) -> Result<(), Failed> {
    let line = "head -c 40M /dev/urandom > large && ln large second && chmod 640 large";
    let info = slept(&provider, line).await?;
    let snapshots = provider.snapshots()?;
    let taken = snapshots.take(&info.id, NewSnapshot::of(&info)).await?;
    ensure(taken.own_bytes.is_some_and(|bytes| (40 << 20..50 << 20).contains(&bytes)), format!("{taken:?}"))?;
    let disk = state.path().join("sandboxes").join(info.id.as_str()).join("disk");
    let sandbox = Sandbox::wake(&*provider, info.id.as_str()).await?;
    // What it had is no part of its disk any more, so as much again fits.
    let again = said(&sandbox, "head -c 40M /dev/zero > more && stat -c '%s %h %a' large more").await?;
    ensure(again == "41943040 2 640\n41943040 1 644", again)?;
    ensure(disk.exists() && !disk.with_extension("next").exists(), "not one disk")?;
    let spec = SandboxSpec { snapshot: Some(taken.id.clone()), ..with_a_disk(16) };
    let fork = Sandbox::create(&*provider, spec).await?;
    ensure(said(&fork, "stat -c %s large").await? == "41943040", "the fork lacks a file")?;
    let written = fork.exec("head -c 64M /dev/zero > full", ExecOptions::default()).await?;
    ensure(written.stderr_text().contains("No space left"), format!("{written:?}"))?;
    for sandbox in [fork, sandbox] {
        sandbox.destroy().await?;
    }
    snapshots.remove(&taken.id).await?;
    crate::disks::ensure_nothing_left(&state).await
}

async fn beyond_bytes(provider: Arc<NativeProvider>, state: State) -> Result<(), Failed> {
    let info = slept(&provider, "head -c 8M /dev/zero > large").await?;
    let snapshots = provider.snapshots()?;
    let directory = state.path().join("sandboxes").join(info.id.as_str());
    let names = || -> Result<BTreeSet<_>, Failed> {
        Ok(fs::read_dir(&directory)?.flatten().map(|entry| entry.file_name()).collect())
    };
    let before = names()?;
    let new = NewSnapshot { most_bytes_of_pool: Some(8 << 20), ..NewSnapshot::of(&info) };
    let error = snapshots.take(&info.id, new).await.err().ok_or("it was taken")?;
    ensure(error.kind() == ErrorKind::Quota, error.to_string())?;
    ensure(snapshots.list().await?.is_empty(), "it is listed")?;
    ensure(names()? == before, format!("{before:?} were there, and now {:?}", names()?))?;
    let new = NewSnapshot { most_bytes_of_pool: Some(9 << 20), ..NewSnapshot::of(&info) };
    let taken = snapshots.take(&info.id, new).await?;
    let sandbox = Sandbox::wake(&*provider, info.id.as_str()).await?;
    ensure(said(&sandbox, "stat -c %s large").await? == "8388608", "the file is gone")?;
    sandbox.destroy().await?;
    snapshots.remove(&taken.id).await?;
    crate::disks::ensure_nothing_left(&state).await
}

async fn compared_meanwhile(provider: Arc<NativeProvider>, state: State) -> Result<(), Failed> {
    let info = slept(&provider, "head -c 20M /dev/zero > large").await?;
    let id = info.id.clone();
    let snapshots = provider.snapshots()?;
    let taken = snapshots.take(&id, NewSnapshot::of(&info)).await?;
    // A file of the same size on each side is read whole.
    let sandbox = Sandbox::wake(&*provider, id.as_str()).await?;
    said(
        &sandbox,
        "cp large other && mv other large && printf x | dd of=large bs=1 seek=20000000 conv=notrunc",
    )
    .await?;
    let options = CompareOptions::below(SandboxPath::parse("/workspace")?);
    let (before, now) = (BranchPoint::Snapshot(taken.id.clone()), BranchPoint::Sandbox(id.clone()));
    let changed = |changes: &FileChanges| {
        changes.changes.iter().any(|change| change.path.as_str() == "/workspace/large")
    };
    let found = snapshots.compare(&before, &now, &options).await?;
    ensure(changed(&found), format!("of one that is awake: {found:?}"))?;
    for round in 0..8 {
        provider.sleep(id.as_str()).await?;
        let (found, woken) = tokio::join!(snapshots.compare(&before, &now, &options), async {
            let woken = Sandbox::wake(&*provider, id.as_str()).await?;
            said(&woken, &format!("echo {round} >> file")).await?;
            ensure(crate::disks::devices(&state).len() == 1, format!("{:?}", crate::disks::devices(&state)))?;
            Ok::<_, Failed>(woken)
        });
        ensure(changed(&found?), "a change was not found")?;
        ensure(said(&woken?, "wc -l < file").await? == (round + 1).to_string(), "a line is lost")?;
    }
    Sandbox::wake(&*provider, id.as_str()).await?.destroy().await?;
    snapshots.remove(&taken.id).await?;
    crate::disks::ensure_nothing_left(&state).await
}

async fn left_by_killed(provider: Arc<NativeProvider>, state: State) -> Result<(), Failed> {
    let id = slept(&provider, "true").await?.id;
    let directory = state.path().join("sandboxes").join(id.as_str());
    fs::create_dir(directory.join("upper.copied"))?;
    symlink("/nowhere", directory.join("upper.copied/link"))?;
    fs::write(directory.join("disk.next"), "")?;
    let held = eyot_native::hold_still(&state.path())?;
    ensure(held.ids == [id.clone()], format!("{:?}", held.ids))?;
    ensure(!directory.join("upper.copied").exists() && !directory.join("disk.next").exists(), "it is left")?;
    drop(held);
    Sandbox::wake(&*provider, id.as_str()).await?.destroy().await?;
    crate::disks::ensure_nothing_left(&state).await
}
