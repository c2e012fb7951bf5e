//! Watching a file or a directory: what happens to names in it, and, if asked for, in every
//! directory below it.
//!
//! One inotify instance for a watch, and one of its marks for a directory. `queue` pairs the halves
//! of renames, `tree` knows the directories' paths, `place` whether the path still leads to what is
//! watched, `report` what the client is told. The worker thread waits for the kernel or for the
//! client; while the client takes nothing, the kernel's own queue fills, and what it loses is told
//! as an overflow.
//!
//! A directory is marked before it is listed, so nothing that is made in it is missed; and it is
//! opened name by name, so no link is followed, whatever is swapped in meanwhile.

mod marks;
mod queue;
mod report;
mod scan;
mod target;
#[cfg(test)]
mod tests;
mod tree;

use std::time::Instant;

use rustix::fd::AsFd;
use rustix::fs::inotify::ReadFlags;

use super::failure::FileError;
use crate::program::call_io::CallIo;
use crate::protocol::{Event, Location, Reply, WatchKind, WatchRecord};
use marks::Marks;
use queue::{EventQueue, KernelEvent, NextEvent};
use report::WatchReport;
use target::WatchTarget;
use tree::Tree;

const MODIFIED: ReadFlags = ReadFlags::MODIFY.union(ReadFlags::CLOSE_WRITE).union(ReadFlags::ATTRIB);

/// Reports changes at a path until it is gone or the caller is.
pub fn watch(
    location: &Location,
    recursive: bool,
    max_directories: u32,
    io: &mut dyn CallIo,
) -> Result<Reply, FileError> {
    let mut watch = Watch::begin(location, recursive, max_directories, io)?;
    io.event(Event::Opened(None))?;
    while watch.step(io)? {}
    Ok(Reply::Done)
}

struct Watch {
    place: WatchTarget,
    recursive: bool,
    max_directories: u32,
    marks: Marks,
    queue: EventQueue,
    tree: Tree,
    report: WatchReport,
    /// A directory could not be opened under the name that it had when it was made: the tree is to
    /// be looked through once the kernel has said everything.
    is_behind: bool,
    /// The file that is watched was not removed since it was seen last.
    is_there: bool,
}

impl Watch {
    fn begin(
        location: &Location,
        recursive: bool,
        max_directories: u32,
        io: &mut dyn CallIo,
    ) -> Result<Self, FileError> {
        let (place, directory) = WatchTarget::find(location)?;
        let marks = Marks::new()?;
        // The directory that holds the target reports its removal at once. The target itself may
        // report it only when no process has it open any more. This is no more than a hint: not
        // every target has such a directory that may be read.
        if let (None, Some(name)) = (place.file(), place.name()) {
            marks.add_parent(&name.parent);
        }
        let root = marks.add(directory.as_fd())?;
        let tree = Tree::new(root, place.identity());
        let recursive = recursive && place.file().is_none();
        let (queue, report) = (EventQueue::default(), WatchReport::default());
        let (is_behind, is_there) = (false, true);
        let mut watch =
            Self { place, recursive, max_directories, marks, queue, tree, report, is_behind, is_there };
        if watch.recursive {
            watch.scan(root, directory, scan::ScanReport::Nothing, io)?;
        }
        Ok(watch)
    }

    /// Waits for events of the kernel, and reports them. Returns `false` when the target is gone.
    fn step(&mut self, io: &mut dyn CallIo) -> Result<bool, FileError> {
        let mut until = None;
        if !self.queue.read(self.marks.fd())? && self.queue.is_empty() {
            self.tree.forget_found();
            if std::mem::take(&mut self.is_behind) {
                self.look_through(scan::ScanReport::New, io)?;
                return Ok(true);
            }
        }
        // What was read happened while the place was still there. Afterwards its directories may be
        // elsewhere.
        if !self.place.holds() {
            return self.end(io);
        }
        loop {
            match self.queue.next(Instant::now()) {
                NextEvent::One(raw) => self.on_event(&raw, io)?,
                NextEvent::Pair(from, to) => self.on_rename(&from, &to, io)?,
                NextEvent::Wait(moment) => until = Some(moment),
                NextEvent::Empty => {}
            }
            if until.is_some() || self.queue.is_empty() {
                break;
            }
        }
        self.report.send(io)?;
        io.wait(self.marks.fd(), until)?;
        Ok(true)
    }

    /// The last word: the place is not there any more.
    fn end(&mut self, io: &mut dyn CallIo) -> Result<bool, FileError> {
        self.report.clear();
        let directory = self.place.file().is_none();
        self.report.add(record(WatchKind::Removed, Vec::new(), directory), io)?;
        self.report.send(io)?;
        Ok(false)
    }

    fn on_event(&mut self, raw: &KernelEvent, io: &mut dyn CallIo) -> Result<(), FileError> {
        let has = |flag: ReadFlags| raw.flags.contains(flag);
        if has(ReadFlags::QUEUE_OVERFLOW) {
            self.report.add(record(WatchKind::Overflow, Vec::new(), self.place.file().is_none()), io)?;
            return self.look_through(scan::ScanReport::Nothing, io);
        }
        if has(ReadFlags::IGNORED) {
            self.tree.remove(raw.watch);
            return Ok(());
        }
        let Some(path) = self.path(raw) else { return Ok(()) };
        let directory = has(ReadFlags::ISDIR);
        if raw.flags.intersects(MODIFIED) {
            self.report.add(record(WatchKind::Modified, path, directory), io)
        } else if raw.name.is_empty() {
            Ok(())
        } else if raw.flags.intersects(ReadFlags::CREATE.union(ReadFlags::MOVED_TO)) {
            self.on_created(raw, path, directory, io)
        } else {
            self.tree.take_found(raw.watch, &raw.name);
            self.forget(raw);
            self.is_there = false;
            self.report.add(record(WatchKind::Removed, path, directory), io)
        }
    }

    fn on_created(
        &mut self,
        raw: &KernelEvent,
        path: Vec<u8>,
        directory: bool,
        io: &mut dyn CallIo,
    ) -> Result<(), FileError> {
        // A file that another one replaces by its name has another content.
        let is_replaced = self.place.file().is_some() && std::mem::replace(&mut self.is_there, true);
        let kind = if is_replaced { WatchKind::Modified } else { WatchKind::Created };
        if !self.tree.take_found(raw.watch, &raw.name) {
            self.report.add(record(kind, path, directory), io)?;
        }
        if directory { self.adopt(raw.watch, &raw.name, io) } else { Ok(()) }
    }

    fn on_rename(
        &mut self,
        from: &KernelEvent,
        to: &KernelEvent,
        io: &mut dyn CallIo,
    ) -> Result<(), FileError> {
        let directory = from.flags.contains(ReadFlags::ISDIR);
        self.tree.take_found(from.watch, &from.name);
        match (self.path(from), self.path(to)) {
            (Some(old), Some(new)) => {
                let renamed = WatchRecord { from: Some(old), ..record(WatchKind::Renamed, new, directory) };
                self.report.add(renamed, io)?;
                let is_known = self.tree.rename((from.watch, &from.name), (to.watch, &to.name));
                if directory && !is_known { self.adopt(to.watch, &to.name, io) } else { Ok(()) }
            }
            (Some(_), None) => self.on_event(from, io),
            (None, Some(_)) => self.on_event(to, io),
            (None, None) => Ok(()),
        }
    }

    /// Returns the path that an event is about; `None` when that is not watched, or not any more.
    fn path(&self, raw: &KernelEvent) -> Option<Vec<u8>> {
        match self.place.file() {
            // Of a file's directory nothing but the file counts, and the file is the place itself.
            Some(file) => (raw.name == file && self.tree.contains(raw.watch)).then(Vec::new),
            None if raw.name.is_empty() => (raw.watch == self.tree.root()).then(Vec::new),
            None => self.tree.path_of(raw.watch, &raw.name),
        }
    }

    /// Forgets a directory that has left: changes in it no longer belong to the target.
    fn forget(&mut self, raw: &KernelEvent) {
        if let Some(watch) = self.tree.child(raw.watch, &raw.name) {
            for watch in self.tree.remove(watch) {
                self.marks.remove(watch);
            }
        }
    }
}

fn record(kind: WatchKind, path: Vec<u8>, directory: bool) -> WatchRecord {
    WatchRecord { kind, path, from: None, directory }
}
