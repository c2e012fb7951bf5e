//! The snapshots that a provider of sandboxes in memory keeps. They live as long as it.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};

use eyot::internal::now_ms;
use eyot::{Error, ErrorKind, NewSnapshot, Result, SandboxId, SandboxName, SnapshotId, SnapshotInfo};

use super::counted_files::{CountedFiles, sizes};
use super::frozen::FrozenFiles;
use super::image_table::MemoryImage;

/// The bytes that the snapshots of one pool may hold together, each content counted once: 1 GiB.
pub(super) const MAX_POOL_BYTES: u64 = 1 << 30;

/// A snapshot with its files.
#[derive(Debug)]
pub(super) struct KeptFiles {
    pub info: SnapshotInfo,
    pub files: FrozenFiles,
    /// The image below it.
    pub image: Option<Arc<MemoryImage>>,
}

impl KeptFiles {
    /// The files that it keeps from being freed: its own, and those of the image below it.
    fn all_files(&self) -> impl Iterator<Item = &FrozenFiles> {
        std::iter::once(&self.files).chain(self.image.as_ref().map(|image| &image.files))
    }
}

/// All snapshots.
#[derive(Debug, Default)]
pub(super) struct SnapshotTable {
    listed: BTreeMap<SnapshotId, Arc<KeptFiles>>,
    /// Those that are only there for forks: sandboxes that lie above them hold them.
    for_forks: BTreeMap<SnapshotId, Weak<KeptFiles>>,
    /// The contents that the listed snapshots of each pool hold.
    held: HashMap<Option<SandboxName>, CountedFiles>,
}

impl SnapshotTable {
    /// Finds a snapshot that a sandbox can be made from, one for forks too.
    pub(super) fn find(&self, id: &SnapshotId) -> Result<Arc<KeptFiles>> {
        let for_forks = || self.for_forks.get(id).and_then(Weak::upgrade);
        let missing = || Error::new(ErrorKind::NotFound, format!("there is no snapshot `{id}`"));
        self.listed.get(id).cloned().or_else(for_forks).ok_or_else(missing)
    }

    /// Lists what is known of the snapshots, oldest first.
    pub(super) fn list(&self) -> Vec<SnapshotInfo> {
        let mut all: Vec<SnapshotInfo> = self.listed.values().map(|kept| kept.info.clone()).collect();
        all.sort_by(|one, other| (one.created_ms, &one.id).cmp(&(other.created_ms, &other.id)));
        all
    }

    /// Returns the time of a snapshot that is taken now. Each is later than all before it.
    fn next_ms(&self) -> i64 {
        let last = self.listed.values().map(|kept| kept.info.created_ms).max();
        last.map_or(i64::MIN, |last| last.saturating_add(1)).max(now_ms())
    }

    /// Keeps the files of a sandbox that lies above `parent`.
    pub(super) fn keep(
        &mut self,
        sandbox: &SandboxId,
        new: NewSnapshot,
        files: FrozenFiles,
        parent: Option<&KeptFiles>,
        image: Option<Arc<MemoryImage>>,
    ) -> Result<Arc<KeptFiles>> {
        self.for_forks.retain(|_, kept| kept.strong_count() > 0);
        self.refuse_in_use(&new)?;
        let below = parent.map(|parent| &parent.files).or(image.as_ref().map(|image| &image.files));
        let (own, shared) = sizes(&files, below);
        let for_forks = new.for_forks;
        let NewSnapshot { id, name, pool, sandbox_name, labels, spec, .. } = new;
        let info = SnapshotInfo {
            id,
            name,
            pool,
            sandbox: sandbox.clone(),
            sandbox_name,
            parent: parent.map(|parent| parent.info.id.clone()),
            labels,
            created_ms: self.next_ms(),
            own_bytes: Some(own),
            shared_bytes: Some(shared),
            spec,
        };
        let kept = Arc::new(KeptFiles { info, files, image });
        if for_forks {
            self.for_forks.insert(kept.info.id.clone(), Arc::downgrade(&kept));
        } else {
            self.hold(&kept)?;
            self.listed.insert(kept.info.id.clone(), kept.clone());
        }
        Ok(kept)
    }

    /// Removes a snapshot. Sandboxes above it keep the files.
    pub(super) fn remove(&mut self, id: &SnapshotId) -> Result<()> {
        let missing = || Error::new(ErrorKind::NotFound, format!("there is no snapshot `{id}`"));
        let kept = self.listed.remove(id).ok_or_else(missing)?;
        let pool = self.held.entry(kept.info.pool.clone()).or_default();
        kept.all_files().for_each(|files| pool.remove(files));
        if pool.bytes() == 0 {
            self.held.remove(&kept.info.pool);
        }
        Ok(())
    }

    fn refuse_in_use(&self, new: &NewSnapshot) -> Result<()> {
        let in_use = |what: String, hint| {
            let message = format!("take a snapshot: the {what} is in use");
            Err(Error::new(ErrorKind::AlreadyExists, message).with_hint(hint))
        };
        if self.listed.contains_key(&new.id) || self.for_forks.contains_key(&new.id) {
            return in_use(format!("id `{}`", new.id), "leave the id out");
        }
        let has_name = |kept: &Arc<KeptFiles>| kept.info.pool == new.pool && kept.info.name == new.name;
        match &new.name {
            Some(name) if self.listed.values().any(has_name) => {
                in_use(format!("name `{name}`"), "take another name, or remove that snapshot")
            }
            _ => Ok(()),
        }
    }

    /// Counts a snapshot for its pool, unless that would be too much.
    fn hold(&mut self, kept: &KeptFiles) -> Result<()> {
        let pool = self.held.entry(kept.info.pool.clone()).or_default();
        kept.all_files().for_each(|files| pool.add(files));
        if pool.bytes() <= MAX_POOL_BYTES {
            return Ok(());
        }
        kept.all_files().for_each(|files| pool.remove(files));
        let message = format!(
            "take a snapshot: those of one pool may hold {} MiB of memory together",
            MAX_POOL_BYTES >> 20
        );
        Err(Error::new(ErrorKind::Quota, message).with_hint("remove one that is not needed any more"))
    }
}
