//! Finding the directories that are to be watched: all of them at the beginning, one that is made
//! or moved in later, and all again after something was missed.

use std::collections::HashSet;
use std::ffi::CStr;

use eyot_archive::Descent;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, OFlags, ResolveFlags};

use super::super::failure::{FileError, FileErrorKind};
use super::super::list::{self, ListedName};
use super::super::locate::{file_type, open_beneath};
use super::super::walk::is_passed_over;
use super::tree::{Tree, identity};
use super::{Watch, record};
use crate::program::call_io::{CallIo, Stopped};
use crate::protocol::WatchKind;

/// The longest path of a directory that is watched: no call can name what is deeper.
const MAX_PATH_BYTES: usize = 4095;

/// The entries of a scan that are reported.
pub enum ScanReport {
    /// Nothing: the client looks for itself.
    Nothing,
    /// The entries of directories that were not marked before: they were made before the kernel
    /// could report them.
    New,
}

/// A directory that is being scanned.
struct Level {
    watch: i32,
    names: Vec<ListedName>,
}

/// The state that all levels of a scan share.
struct Scan<'i> {
    tell: ScanReport,
    /// The marks from before, if the tree is made anew.
    marked_before: Option<HashSet<i32>>,
    io: &'i mut dyn CallIo,
}

impl Watch {
    /// Watches a directory that was made or moved in, and what is below it.
    pub(super) fn adopt(&mut self, parent: i32, name: &[u8], io: &mut dyn CallIo) -> Result<(), FileError> {
        if !self.recursive || !self.tree.contains(parent) {
            return Ok(());
        }
        let Some(above) = self.open(parent) else {
            // It is called otherwise by now, as the kernel is about to say.
            self.is_behind = true;
            return Ok(());
        };
        let mut scan = Scan { tell: ScanReport::New, marked_before: None, io };
        let mut levels = Vec::new();
        match Descent::open(above, name) {
            Ok(directory) => {
                let mut descent = Descent::new(directory);
                self.mark(&descent, parent, name, &mut scan, &mut levels)?;
                self.scan_levels(&mut descent, levels, &mut scan)
            }
            Err(errno) if is_passed_over(&errno.into()) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    /// Watches the tree below a directory that is marked.
    pub(super) fn scan(
        &mut self,
        watch: i32,
        directory: OwnedFd,
        tell: ScanReport,
        io: &mut dyn CallIo,
    ) -> Result<(), FileError> {
        self.scan_from(watch, directory, Scan { tell, marked_before: None, io })
    }

    /// Begins anew with the tree as it is, and tells what was not marked before.
    pub(super) fn look_through(&mut self, tell: ScanReport, io: &mut dyn CallIo) -> Result<(), FileError> {
        if !self.recursive {
            return Ok(());
        }
        // If it is gone, that is found out next.
        let Some(directory) = self.place.open() else { return Ok(()) };
        let root = self.tree.root();
        let old = std::mem::replace(&mut self.tree, Tree::new(root, self.place.identity()));
        let marked_before = Some(old.watches().collect());
        self.scan_from(root, directory, Scan { tell, marked_before, io })?;
        old.watches().filter(|watch| !self.tree.contains(*watch)).for_each(|watch| self.marks.remove(watch));
        Ok(())
    }

    fn scan_from(&mut self, watch: i32, directory: OwnedFd, mut scan: Scan<'_>) -> Result<(), FileError> {
        let mut descent = Descent::new(directory);
        let mut levels = Vec::new();
        self.list(&descent, watch, false, &mut scan, &mut levels)?;
        self.scan_levels(&mut descent, levels, &mut scan)
    }

    fn scan_levels(
        &mut self,
        descent: &mut Descent,
        mut levels: Vec<Level>,
        scan: &mut Scan<'_>,
    ) -> Result<(), FileError> {
        while let Some(level) = levels.last_mut() {
            if scan.io.stopped() {
                return Err(Stopped.into());
            }
            let Some(named) = level.names.pop() else {
                levels.pop();
                // A directory that was moved away meanwhile takes its names along.
                if !levels.is_empty() && !descent.leave() {
                    self.is_behind = true;
                    levels.last_mut().into_iter().for_each(|lost| lost.names.clear());
                }
                continue;
            };
            let watch = level.watch;
            self.enter(descent, watch, &named.name, scan, &mut levels)?;
        }
        Ok(())
    }

    fn enter(
        &mut self,
        descent: &mut Descent,
        parent: i32,
        name: &CStr,
        scan: &mut Scan<'_>,
        levels: &mut Vec<Level>,
    ) -> Result<(), FileError> {
        match descent.enter(name) {
            Ok(()) => {}
            Err(errno) if is_passed_over(&errno.into()) => return Ok(()),
            Err(errno) => return Err(errno.into()),
        }
        let depth = levels.len();
        self.mark(descent, parent, name.to_bytes(), scan, levels)?;
        if levels.len() == depth && !descent.leave() {
            self.is_behind = true;
            levels.last_mut().into_iter().for_each(|lost| lost.names.clear());
        }
        Ok(())
    }

    /// Marks the current directory, enters it into the tree and lists it; one that may not be read
    /// is left out.
    fn mark(
        &mut self,
        descent: &Descent,
        parent: i32,
        name: &[u8],
        scan: &mut Scan<'_>,
        levels: &mut Vec<Level>,
    ) -> Result<(), FileError> {
        if self.tree.path_of(parent, name).is_none_or(|path| path.len() > MAX_PATH_BYTES) {
            return Ok(());
        }
        let watch = match self.marks.add(descent.current()) {
            Err(problem) if is_passed_over(&problem) => return Ok(()),
            watch => watch?,
        };
        let is_known = self.tree.contains(watch);
        if !is_known && self.tree.len() >= self.max_directories as usize {
            return Err(too_many(self.max_directories));
        }
        let is_new = !scan.marked_before.as_ref().map_or(is_known, |marked| marked.contains(&watch));
        let found = rustix::fs::fstat(descent.current())?;
        self.tree.insert(watch, parent, name, identity(&found));
        self.list(descent, watch, is_new, scan, levels)
    }

    /// Lists the current directory, reports its entries if they are to be reported, and leaves its
    /// directories to be scanned.
    fn list(
        &mut self,
        descent: &Descent,
        watch: i32,
        is_new: bool,
        scan: &mut Scan<'_>,
        levels: &mut Vec<Level>,
    ) -> Result<(), FileError> {
        let mut names = match list::names(descent.current(), list::MAX_ENTRIES, scan.io) {
            Err(problem) if is_passed_over(&problem) => Vec::new(),
            names => names?,
        };
        for named in names.iter_mut().filter(|named| named.kind == FileType::Unknown) {
            let stat = rustix::fs::statat(descent.current(), &named.name, AtFlags::SYMLINK_NOFOLLOW);
            named.kind = stat.map_or(FileType::Unknown, |stat| file_type(&stat));
        }
        if is_new && matches!(scan.tell, ScanReport::New) {
            self.tell(watch, &names, scan)?;
        }
        names.retain(|named| named.kind == FileType::Directory);
        levels.push(Level { watch, names });
        Ok(())
    }

    fn tell(&mut self, watch: i32, names: &[ListedName], scan: &mut Scan<'_>) -> Result<(), FileError> {
        for named in names {
            if let Some(path) = self.tree.path_of(watch, named.name.to_bytes()) {
                let directory = named.kind == FileType::Directory;
                self.report.add(record(WatchKind::Created, path, directory), scan.io)?;
                self.tree.note_found(watch, named.name.to_bytes());
            }
        }
        Ok(())
    }

    /// Opens a directory of the tree, if its path still leads to it.
    fn open(&self, watch: i32) -> Option<OwnedFd> {
        let path = self.tree.path(watch)?;
        let root = self.place.open()?;
        let opened = if path.is_empty() {
            root
        } else {
            open_beneath(&root, &path, OFlags::PATH | OFlags::DIRECTORY, ResolveFlags::NO_SYMLINKS).ok()?
        };
        let found = rustix::fs::fstat(opened.as_fd()).ok()?;
        (Some(identity(&found)) == self.tree.identity(watch)).then_some(opened)
    }
}

fn too_many(most: u32) -> FileError {
    let reason = format!(
        "has more than {most} directories, as many as this watch may have; watch a smaller place, or allow it more"
    );
    FileError::new(FileErrorKind::Quota, reason)
}
