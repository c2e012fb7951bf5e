//! Writing what a sandbox has changed in a copy on write back into the folder of the host.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;
use eyot::internal::system_reason;
use eyot::{
    ApplyConflict, ApplyConflictReason, ApplyOptions, ApplyReport, BranchPoint, ChangeKind, ComparedFile,
    ComparedFileType, Error, ErrorKind, FileChange, FileChanges, Result, SandboxCowMounts, SandboxId,
};
use rustix::fs::FlockOperation;

use crate::blocking::on_blocking_thread;
use crate::compared::{ComparedPart, compare};
use crate::copies::copied_layers;
use crate::cow_mount::CowMount;
use crate::disk::{ComparedDisk, has_disk};
use crate::folder_change::{self, ChangedFolder, FolderChangeError, NewContent, PathChange};
use crate::host_files::{FileFacts, HostDifference, HostFiles, HostFolder};
use crate::merged_layers::{MergedLayers, ShownName};
use crate::new_snapshot::failed;
use crate::record::Record;
use crate::sandboxes::Sandboxes;
use crate::snapshots::StillSandbox;

/// The copies on write of the native provider.
pub(crate) struct NativeCowMounts(pub Arc<Sandboxes>);

#[async_trait]
impl SandboxCowMounts for NativeCowMounts {
    async fn apply(&self, sandbox: &SandboxId, options: &ApplyOptions) -> Result<ApplyReport> {
        let (sandboxes, id, options) = (Arc::clone(&self.0), sandbox.clone(), options.clone());
        on_blocking_thread(move || sandboxes.apply(&id, &options)).await
    }
}

impl Sandboxes {
    fn apply(&self, id: &SandboxId, options: &ApplyOptions) -> Result<ApplyReport> {
        if options.dry_run {
            return self.foresee_apply(id, options);
        }
        let still = self.hold_still(id, "apply")?;
        // One at a time, whichever sandbox's: what one notes of the folder must not be half of another's work.
        let _alone = self.state.lock_applies().map_err(failed("apply"))?;
        let StillSandbox { record, directory, .. } = &still;
        if folder_change::was_begun(directory) {
            let message = "apply: an earlier one was killed, and its folder is not there to undo it";
            return Err(Error::new(ErrorKind::Unavailable, message)
                .with_hint("mount the folder again, and try again"));
        }
        let disk = has_disk(directory).then(|| ComparedDisk::open(&self.disks, directory)).transpose();
        let disk = disk.map_err(failed("apply: open the disk of the sandbox"))?;
        let copy = SandboxCopy::open(record, (directory, disk.as_ref()), options)?;
        let plan = copy.plan()?;
        if !plan.report.conflicts.is_empty() {
            return Err(refusal(&plan.report));
        }
        if plan.changes.is_empty() {
            return Ok(ApplyReport { applied: true, ..plan.report });
        }
        copy.refuse_without_room(&plan.report)?;
        copy.make(&plan, directory, record.info.id.as_str())?;
        Ok(ApplyReport { applied: true, ..plan.report })
    }

    /// Says what an apply would do, of a sandbox that runs too.
    fn foresee_apply(&self, id: &SandboxId, options: &ApplyOptions) -> Result<ApplyReport> {
        self.complete_move(&BranchPoint::Sandbox(id.clone()))?;
        let (_, directory) = self.recorded(id)?;
        if folder_change::was_begun(&directory) {
            self.hold_still(id, "apply").map(drop)?;
        }
        let disk = if has_disk(&directory) { Some(self.open_disk(id)?) } else { None };
        let copy = {
            let _used = self.state.lock_snapshots(FlockOperation::LockShared).map_err(failed("apply"))?;
            let (record, directory) = self.recorded(id)?;
            if disk.as_ref().is_some_and(|disk| !disk.is_of(&directory)) {
                let message = "apply: the files of the sandbox were moved meanwhile";
                return Err(Error::new(ErrorKind::Unavailable, message).with_hint("try again"));
            }
            SandboxCopy::open(&record, (&directory, disk.as_ref()), options)?
        };
        Ok(copy.plan()?.report)
    }
}

/// A copy on write and its folder, opened to be compared.
struct SandboxCopy {
    mount: CowMount,
    /// The folder as it is now, and as the sandbox has it.
    part: ComparedPart,
    /// The folder as it was when the sandbox was made.
    base: HostFiles,
}

/// The changes that an apply is to make, and the report on them.
struct ApplyPlan {
    report: ApplyReport,
    /// The changes, in the order in which they can be made, by path relative to the folder.
    changes: Vec<(String, PathChange)>,
}

impl SandboxCopy {
    /// Opens it in the directory of its sandbox, or on the disk of that.
    fn open(
        record: &Record,
        (directory, disk): (&Path, Option<&ComparedDisk>),
        options: &ApplyOptions,
    ) -> Result<Self> {
        let files = disk.map_or(directory.to_owned(), ComparedDisk::path);
        let mount = chosen(record, options)?.clone();
        let open = || -> io::Result<(ComparedPart, HostFiles)> {
            let from = MergedLayers::open(vec![PathBuf::from(&mount.source)])?;
            let to = MergedLayers::open(copied_layers(&mount, Some(&files), &record.lower))?;
            let point = PathBuf::from(mount.target.as_str().trim_start_matches('/'));
            let part = ComparedPart { from, to, point, top: PathBuf::new() };
            Ok((part, HostFiles::read(&mount.base(directory))?))
        };
        let (part, base) = open().map_err(failed("apply: look at the folder"))?;
        Ok(Self { mount, part, base })
    }

    /// Compares the copy with the folder of now, and that with the folder as it was.
    fn plan(&self) -> Result<ApplyPlan> {
        let failed = failed("apply: compare the files");
        let found = compare(std::slice::from_ref(&self.part), false).map_err(&failed)?;
        if found.truncated {
            let message = format!("apply: there are more than {} changes", FileChanges::MAX);
            return Err(Error::new(ErrorKind::Quota, message));
        }
        let mut host = HostFolder::open(self.mount.source.as_ref()).map_err(&failed)?;
        let report = ApplyReport {
            target: self.mount.target.clone(),
            changes: Vec::new(),
            left_out: Vec::new(),
            conflicts: Vec::new(),
            applied: false,
        };
        let mut plan = ApplyPlan { report, changes: Vec::new() };
        for change in self.without_applied(found.changes).map_err(&failed)? {
            self.add(&mut plan, &mut host, change).map_err(&failed)?;
        }
        plan.changes.sort_by_cached_key(order);
        Ok(plan)
    }

    fn add(&self, plan: &mut ApplyPlan, host: &mut HostFolder, change: FileChange) -> io::Result<()> {
        let is_other = |file: &Option<ComparedFile>| {
            file.as_ref().is_some_and(|file| file.file_type == ComparedFileType::Other)
        };
        if is_other(&change.after) && change.before.is_none() {
            plan.report.left_out.push(change.path);
            return Ok(());
        }
        let path = relative(&self.mount, &change.path);
        let now = host.look(path.as_ref())?;
        let reason = if is_other(&change.after) || change.path.contains(char::REPLACEMENT_CHARACTER) {
            Some(ApplyConflictReason::Unreadable)
        } else {
            conflict(host, path.as_ref(), self.base.get(path.as_ref()), now.as_ref())?
        };
        if let Some(reason) = reason {
            plan.report.conflicts.push(ApplyConflict { path: change.path.clone(), reason });
        } else {
            plan.changes.extend(steps(&change, now).into_iter().map(|step| (path.clone(), step)));
        }
        plan.report.changes.push(change);
        Ok(())
    }

    /// Refuses more than the disk of the folder has room for: whoever fills a sandbox decides how large its files are, holes included.
    fn refuse_without_room(&self, report: &ApplyReport) -> Result<()> {
        let new = report.changes.iter().filter_map(|change| change.after.as_ref());
        let bytes: u64 = new.map(|file| file.size_bytes).fold(0, u64::saturating_add);
        let disk = rustix::fs::statvfs(self.mount.source.as_str()).map_err(io::Error::from);
        let disk = disk.map_err(failed("apply: look at the folder's disk"))?;
        if bytes <= disk.f_bavail.saturating_mul(disk.f_frsize) {
            return Ok(());
        }
        let message =
            format!("apply: the new files have {} MiB, for which the folder's disk has no room", bytes >> 20);
        Err(Error::new(ErrorKind::Quota, message))
    }

    /// Makes the changes, and notes how the files are then.
    fn make(&self, plan: &ApplyPlan, directory: &Path, id: &str) -> Result<()> {
        let (source, facts) = (self.mount.source.as_ref(), self.mount.base(Path::new("")));
        let folder = ChangedFolder::open(
            source,
            directory,
            facts,
            format!(".eyot-apply-{id}-{:x}", eyot::internal::now_ms()),
        );
        let folder = folder.map_err(failed("apply: open the folder"))?;
        let content = |path: &str| self.content(path.as_ref());
        let made = folder.make(&plan.changes, content, |file| self.note(plan, file));
        made.map_err(|failed| self.explained(failed))
    }

    /// Returns the content of a path in the sandbox; `None` if it can't be read.
    fn content(&self, path: &Path) -> io::Result<Option<NewContent>> {
        let ShownName::Leaf { place, stat } = self.part.to.find(path)? else { return Ok(None) };
        if let Some(file) = self.part.to.file(place, path)? {
            return Ok(Some(NewContent::File(file, stat.st_size.unsigned_abs())));
        }
        Ok(self.part.to.target(place, path)?.map(NewContent::Link))
    }

    /// Writes the facts about the folder as it is with the changes.
    fn note(&self, plan: &ApplyPlan, file: &Path) -> io::Result<()> {
        let (mut host, mut base) = (HostFolder::open(self.mount.source.as_ref())?, self.base.clone());
        for change in &plan.report.changes {
            let path = PathBuf::from(relative(&self.mount, &change.path));
            base.set(path.clone(), host.note(&path)?);
            let own = self.own(&path)?;
            base.set_applied(path, own);
        }
        base.write(file)
    }

    /// Returns what is known of a path of the sandbox.
    fn own(&self, path: &Path) -> io::Result<Option<FileFacts>> {
        Ok(self.part.to.find(path)?.stat().map(FileFacts::new))
    }

    /// Leaves out what the sandbox has applied before and not changed since: if the folder has something else now, the host has
    /// changed it. A directory stays if something in it does.
    fn without_applied(&self, changes: Vec<FileChange>) -> io::Result<Vec<FileChange>> {
        let (mut kept, mut used) = (Vec::new(), HashSet::new());
        // What is in a directory follows it.
        for change in changes.into_iter().rev() {
            let path = PathBuf::from(relative(&self.mount, &change.path));
            if used.contains(&path) || !self.base.is_applied(&path, self.own(&path)?.as_ref()) {
                used.extend(path.ancestors().skip(1).map(Path::to_owned));
                kept.push(change);
            }
        }
        kept.reverse();
        Ok(kept)
    }

    fn explained(&self, failed: FolderChangeError) -> Error {
        let FolderChangeError { path, is_conflict, error } = failed;
        let place = path.map_or_else(|| self.mount.target.to_string(), |path| shown(&self.mount, &path));
        if is_conflict {
            let message = format!("apply: the host has just changed `{place}`; nothing was applied");
            return Error::new(ErrorKind::Conflict, message).with_source(error);
        }
        let kind = match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ErrorKind::Quota,
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => ErrorKind::Permission,
            _ => ErrorKind::Internal,
        };
        let message = format!("apply: write `{place}`: {}; nothing was applied", system_reason(&error));
        Error::new(kind, message).with_source(error)
    }
}

/// Finds the mount that is meant.
fn chosen<'a>(record: &'a Record, options: &ApplyOptions) -> Result<&'a CowMount> {
    let targets = || record.cow.iter().map(|mount| mount.target.to_string()).collect::<Vec<_>>().join(", ");
    match (&options.target, &record.cow[..]) {
        (_, []) => Err(Error::invalid("target", "the sandbox has no copy on write of a folder")
            .with_hint("make one with `--mount SRC:DST:cow`")),
        (None, [only]) => Ok(only),
        (None, _) => Err(Error::invalid("target", "must say which copy is meant")
            .with_hint(format!("the sandbox has these: {}", targets()))),
        (Some(target), all) => all.iter().find(|mount| mount.target == *target).ok_or_else(|| {
            Error::invalid("target", format!("`{target}` is no copy on write of the sandbox"))
                .with_hint(format!("it has these: {}", targets()))
        }),
    }
}

/// Returns the reason why a path can't be changed as the sandbox has: somebody else has changed it since.
fn conflict(
    host: &mut HostFolder,
    path: &Path,
    base: Option<&FileFacts>,
    now: Option<&FileFacts>,
) -> io::Result<Option<ApplyConflictReason>> {
    Ok(match (base, now) {
        (None, None) => None,
        (None, Some(_)) => Some(ApplyConflictReason::Added),
        (Some(_), None) => Some(ApplyConflictReason::Removed),
        (Some(base), Some(now)) => match host.difference(path, base, now)? {
            HostDifference::None => None,
            HostDifference::Changed => Some(ApplyConflictReason::Changed),
            HostDifference::Unknown => Some(ApplyConflictReason::Unknown),
        },
    })
}

/// Returns the steps of a change.
fn steps(change: &FileChange, now: Option<FileFacts>) -> Vec<PathChange> {
    let make = |after: &ComparedFile| match after.file_type {
        ComparedFileType::Directory => PathChange::MakeDirectory { mode: mode(None, after) },
        _ => PathChange::Put { mode: mode(None, after) },
    };
    let is_directory = |file: &ComparedFile| file.file_type == ComparedFileType::Directory;
    match (&change.before, &change.after, now) {
        (Some(before), Some(after), _) if is_directory(before) && is_directory(after) => {
            let (from, to) = (before.mode & 0o777, mode(Some(before), after));
            if from == to { Vec::new() } else { vec![PathChange::SetMode { from, to }] }
        }
        (Some(before), Some(after), Some(now)) if is_directory(before) || is_directory(after) => {
            vec![PathChange::Remove(now), make(after)]
        }
        (Some(before), Some(after), Some(expected)) => {
            vec![PathChange::Replace { mode: mode(Some(before), after), expected }]
        }
        (_, None, Some(now)) => vec![PathChange::Remove(now)],
        (_, Some(after), None) => vec![make(after)],
        // Neither of now nor of the sandbox.
        _ => {
            debug_assert_ne!(change.change, ChangeKind::Removed, "{change:?}");
            Vec::new()
        }
    }
}

/// Returns the permission bits of a file in the folder: the sandbox's, without set-id bits. Group and others read and write only what they
/// may of the host's file, and no new file can be written to by them.
fn mode(before: Option<&ComparedFile>, after: &ComparedFile) -> u32 {
    let Some(before) = before else { return after.mode & 0o755 };
    // Who may read a program may run it.
    let run = after.mode & 0o011 & (before.mode | (before.mode >> 2));
    (after.mode & 0o700) | (after.mode & before.mode & 0o066) | run
}

/// Returns the place of a step: removals first, the deepest of them first, and whatever is made behind the directory that it is in.
fn order((path, change): &(String, PathChange)) -> (u8, std::cmp::Reverse<Option<PathBuf>>, PathBuf) {
    let place = PathBuf::from(path);
    match change {
        PathChange::Remove(_) => (0, std::cmp::Reverse(Some(place)), PathBuf::new()),
        PathChange::SetMode { .. } => (2, std::cmp::Reverse(None), place),
        _ => (1, std::cmp::Reverse(None), place),
    }
}

/// Returns a path inside relative to the mount.
fn relative(mount: &CowMount, path: &str) -> String {
    path.strip_prefix(mount.target.as_str()).unwrap_or(path).trim_start_matches('/').to_owned()
}

fn shown(mount: &CowMount, path: &str) -> String {
    format!("{}/{path}", mount.target)
}

/// Makes the error for an apply with conflicts.
fn refusal(report: &ApplyReport) -> Error {
    const SHOWN: usize = 10;
    let all = &report.conflicts;
    let told = |conflict: &ApplyConflict| format!("`{}` ({})", conflict.path, conflict.reason.words());
    let mut list = all.iter().take(SHOWN).map(told).collect::<Vec<_>>().join(", ");
    if all.len() > SHOWN {
        list.push_str(&format!(" and {} more", all.len() - SHOWN));
    }
    let message =
        format!("apply: the folder is not as it was when the sandbox was made: {list}; nothing was applied");
    Error::new(ErrorKind::Conflict, message)
        .with_hint("`eyot apply SANDBOX --dry-run` lists all; a new sandbox begins with the folder as it is")
}
