//! Copies on write of folders of the host: what a sandbox changes in one is its own, and belongs to its snapshots.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use super::Fixture;
use super::check::{Check, Disposable, cases, ensure, ensure_eq, ensure_fails, output, unique_name};
use super::create::named;
use crate::error::{Error, ErrorKind};
use crate::path::SandboxPath;
use crate::sandbox::Sandbox;
use crate::snapshot::{BranchPoint, ChangeKind, CompareOptions, NewSnapshot};
use crate::spec::{Mount, SandboxSpec};

cases! {
    a_copy_on_write_is_changed_by_its_sandbox_alone(fixture) needs [CowMounts, Shell];
    a_copy_on_write_stays_through_sleep(fixture) needs [CowMounts, Sleep, Shell];
    a_copy_on_write_belongs_to_snapshots_forks_and_comparisons(fixture) needs [CowMounts, Snapshots, Shell];
    a_mount_is_written_to_or_copied_and_not_both(fixture) needs [CowMounts];
}

const PATHS: [&str; 3] = ["kept", "d/changed", "removed"];

fn failed(error: std::io::Error) -> Error {
    Error::new(ErrorKind::Internal, "use a folder of the host").with_source(error)
}

/// A folder of the host, which is removed with this value.
struct ScratchFolder(PathBuf);

impl ScratchFolder {
    fn new() -> Check<Self> {
        let folder = Self(std::env::temp_dir().join(unique_name().as_str()));
        fs::create_dir_all(folder.0.join("d")).map_err(failed)?;
        for path in PATHS {
            fs::write(folder.0.join(path), "host").map_err(failed)?;
        }
        Ok(folder)
    }

    /// Fails unless the folder is as it was.
    fn ensure_untouched(&self) -> Check {
        for path in PATHS {
            ensure_eq!(fs::read_to_string(self.0.join(path)).map_err(failed)?, "host");
        }
        ensure_eq!(fs::read_dir(&self.0).map_err(failed)?.count(), 3);
        Ok(())
    }
}

impl Drop for ScratchFolder {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("remove a folder of a test: {error}");
        }
    }
}

fn spec(fixture: &dyn Fixture, folder: &ScratchFolder) -> Check<SandboxSpec> {
    let target = SandboxPath::parse("/mnt/copy")?;
    let mount = Mount { source: folder.0.clone(), target, writable: false, cow: true };
    Ok(SandboxSpec { mounts: vec![mount], ..named(fixture).0 })
}

const CHANGE: &str =
    "cd /mnt/copy && cat kept && echo inside > d/changed && echo new > d/new && rm removed && mv kept moved";
const SHOW: &str = "cd /mnt/copy && cat d/changed d/new moved && ls";
const SHOWN: &str = "inside\nnew\nhostd\nmoved";

async fn a_copy_on_write_is_changed_by_its_sandbox_alone(fixture: Arc<dyn Fixture>) -> Check {
    let folder = ScratchFolder::new()?;
    let provider = fixture.provider();
    let one = Disposable(Sandbox::create(&*provider, spec(&*fixture, &folder)?).await?);
    let other = Disposable(Sandbox::create(&*provider, spec(&*fixture, &folder)?).await?);
    ensure_eq!(output(&one.0, CHANGE).await?, "host");
    ensure_eq!(output(&one.0, SHOW).await?, SHOWN);
    ensure_eq!(
        output(&other.0, "cd /mnt/copy && cat kept d/changed removed && ls").await?,
        "hosthosthostd\nkept\nremoved"
    );
    folder.ensure_untouched()
}

async fn a_copy_on_write_stays_through_sleep(fixture: Arc<dyn Fixture>) -> Check {
    let folder = ScratchFolder::new()?;
    let provider = fixture.provider();
    let sandbox = Disposable(Sandbox::create(&*provider, spec(&*fixture, &folder)?).await?);
    output(&sandbox.0, CHANGE).await?;
    let id = sandbox.0.info().id.to_string();
    provider.sleep(&id).await?;
    ensure_eq!(output(&Sandbox::wake(&*provider, &id).await?, SHOW).await?, SHOWN);
    folder.ensure_untouched()
}

async fn a_copy_on_write_belongs_to_snapshots_forks_and_comparisons(fixture: Arc<dyn Fixture>) -> Check {
    let folder = ScratchFolder::new()?;
    let provider = fixture.provider();
    let snapshots = provider.snapshots()?;
    let sandbox = Disposable(Sandbox::create(&*provider, spec(&*fixture, &folder)?).await?);
    output(&sandbox.0, CHANGE).await?;
    let info = sandbox.0.info().clone();
    provider.sleep(info.id.as_str()).await?;
    let taken = snapshots.take(&info.id, NewSnapshot::of(&info)).await?;
    let fork_spec = || -> Check<SandboxSpec> {
        Ok(SandboxSpec { image: None, snapshot: Some(taken.id.clone()), ..spec(&*fixture, &folder)? })
    };
    let fork = Disposable(Sandbox::create(&*provider, fork_spec()?).await?);
    ensure_eq!(output(&fork.0, SHOW).await?, SHOWN);
    output(&fork.0, "cd /mnt/copy && echo fork > d/changed && rm d/new").await?;
    let awake = Sandbox::wake(&*provider, info.id.as_str()).await?;
    ensure_eq!(output(&awake, SHOW).await?, SHOWN);
    let options = CompareOptions::below(SandboxPath::parse("/mnt")?);
    let points = [BranchPoint::Snapshot(taken.id.clone()), BranchPoint::Sandbox(fork.0.info().id.clone())];
    let found = snapshots.compare(&points[0], &points[1], &options).await?;
    let told: Vec<_> = found.changes.iter().map(|change| (change.path.as_str(), change.change)).collect();
    ensure_eq!(
        told,
        [("/mnt/copy/d/changed", ChangeKind::Changed), ("/mnt/copy/d/new", ChangeKind::Removed)]
    );
    output(&awake, "cd /mnt/copy && rm -r d moved && echo x > kept").await?;
    provider.sleep(info.id.as_str()).await?;
    snapshots.roll_back(&info.id, &taken.id).await?;
    ensure_eq!(output(&Sandbox::wake(&*provider, info.id.as_str()).await?, SHOW).await?, SHOWN);
    let without = SandboxSpec { mounts: Vec::new(), ..fork_spec()? };
    ensure_fails!(Sandbox::create(&*provider, without).await, Invalid);
    folder.ensure_untouched()?;
    Ok(snapshots.remove(&taken.id).await?)
}

async fn a_mount_is_written_to_or_copied_and_not_both(fixture: Arc<dyn Fixture>) -> Check {
    let folder = ScratchFolder::new()?;
    let mut both = spec(&*fixture, &folder)?;
    both.mounts.iter_mut().for_each(|mount| mount.writable = true);
    ensure_fails!(Sandbox::create(&*fixture.provider(), both).await, Invalid);
    let mut file = spec(&*fixture, &folder)?;
    file.mounts.iter_mut().for_each(|mount| mount.source = folder.0.join("kept"));
    ensure_fails!(Sandbox::create(&*fixture.provider(), file).await, Invalid);
    folder.ensure_untouched()
}
