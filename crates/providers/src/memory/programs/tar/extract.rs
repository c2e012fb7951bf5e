//! Lists and unpacks archives. What may be made where is decided by the rules of the contract's own
//! archives.

use std::io::{self, Read};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use eyot::{Error, ErrorKind, WatchEventKind};
use eyot_guest::tar_entry::{TarAction, TarPlan, plan_as};
use tar::{Entry, EntryType};

use super::list::TarColumns;
use super::names::{TarPattern, shown, stripped, unsafe_prefix};
use super::options::{FAILURE, Options, TarExisting, TarMode, TarStep, fatal};
use super::source::{each_entry, open};
use crate::memory::node::{FileNode, NodeContent, NodeId, no_space};
use crate::memory::place::Place;
use crate::memory::programs::run::{Ending, reason};
use crate::memory::programs::worker::{Worker, WorkerOutput};
use crate::memory::unpack::{cleared, existing, place};
use crate::memory::walk::Last;

/// A member that is asked for.
struct TarMember {
    name: String,
    pattern: TarPattern,
    directory: PathBuf,
    is_found: bool,
}

/// One way through an archive.
pub(super) struct Extraction<'a> {
    worker: &'a Worker,
    options: &'a Options,
    members: Vec<TarMember>,
    excluded: Vec<TarPattern>,
    directory: PathBuf,
    columns: TarColumns,
    status: i32,
    /// Beginnings of names that were taken away, of which each is told once.
    told: Vec<(Vec<u8>, &'static str)>,
    /// Directories with their modes and times: set at the end, because what is made inside changes
    /// them.
    directories: Vec<(NodeId, u32, SystemTime)>,
}

/// Lists or unpacks the archive of the command line.
pub(super) fn extract(worker: &Worker, options: &Options) -> Result<i32, Ending> {
    let mut extraction = Extraction {
        worker,
        options,
        members: Vec::new(),
        excluded: Vec::new(),
        directory: worker.cwd.clone(),
        columns: TarColumns::new(options),
        status: 0,
        told: Vec::new(),
        directories: Vec::new(),
    };
    extraction.take_steps()?;
    let reader = open(worker, options)?;
    let read = each_entry(worker, options, reader, |entry| extraction.entry(entry));
    extraction.set_directories();
    extraction.end(read?)
}

impl Extraction<'_> {
    fn take_steps(&mut self) -> Result<(), Ending> {
        for step in super::expanded(self.worker, self.options)? {
            match step {
                TarStep::Directory(directory) => {
                    self.directory = self.directory.join(&directory);
                    if self.options.mode == Some(TarMode::Extract) {
                        self.check_directory(&directory)?;
                    }
                }
                TarStep::Exclude(pattern) => self.excluded.push(pattern),
                TarStep::Name(name) => {
                    let plain = name.strip_suffix('/').filter(|plain| !plain.is_empty()).unwrap_or(&name);
                    let pattern = TarPattern::new(plain, self.options.wildcards);
                    let directory = self.directory.clone();
                    self.members.push(TarMember { name, pattern, directory, is_found: false });
                }
                TarStep::NamesFrom(_) | TarStep::ExcludeFrom(_) => {}
            }
        }
        Ok(())
    }

    fn check_directory(&self, shown: &str) -> Result<(), Ending> {
        let held = self.worker.files.lock();
        let found = self.worker.find_in(&held, &self.directory, b".", Last::Follow);
        let is_there = found.and_then(|place| held.tree.entries(place.found()?).map(drop));
        is_there.map_err(|error| fatal(format!("{shown}: Cannot open: {}", reason(&error))))
    }

    fn fail(&mut self, text: impl AsRef<str>) -> Result<(), Ending> {
        self.status = FAILURE;
        self.worker.print_error(format!("tar: {}\n", text.as_ref()))
    }

    fn end(mut self, read: i32) -> Result<i32, Ending> {
        let missing: Vec<String> =
            self.members.iter().filter(|member| !member.is_found).map(|member| member.name.clone()).collect();
        let is_wild = |name: &String| name.contains(['*', '?', '[']);
        if !self.options.wildcards && missing.iter().any(is_wild) {
            self.worker.print_error(
                "tar: TarPattern matching characters used in file names\n\
                 tar: Use --wildcards to enable pattern matching, or --no-wildcards to suppress this warning\n",
            )?;
        }
        for name in missing {
            self.fail(format!("{name}: Not found in archive"))?;
        }
        let status = self.status.max(read);
        if status != 0 {
            self.worker.print_error("tar: Exiting with failure status due to previous errors\n")?;
        }
        Ok(status)
    }

    /// The directory for a member, or `None` if it is not asked for.
    fn wanted(&mut self, name: &[u8]) -> Option<PathBuf> {
        let name = String::from_utf8_lossy(name);
        let name = name.strip_suffix('/').unwrap_or(&name);
        if self.excluded.iter().any(|pattern| pattern.excludes(name)) {
            return None;
        }
        if self.members.is_empty() {
            return Some(self.directory.clone());
        }
        let member = self.members.iter_mut().find(|member| member.pattern.leads(name))?;
        member.is_found = true;
        Some(member.directory.clone())
    }

    fn entry(&mut self, entry: &mut Entry<'_, impl Read>) -> Result<(), Ending> {
        if entry.header().entry_type() == EntryType::XGlobalHeader {
            return Ok(());
        }
        let name = entry.path_bytes().into_owned();
        let Some(directory) = self.wanted(&name) else { return Ok(()) };
        if self.options.mode == Some(TarMode::List) {
            self.safe(&name, "member names")?;
            return self.tell(entry, &name, self.options.verbose > 0);
        }
        let Some(kept) = stripped(&name, self.options.strip) else { return Ok(()) };
        if self.options.verbose > 0 {
            self.tell(entry, kept, self.options.verbose > 1)?;
        }
        if self.options.to_stdout {
            return self.copy(entry);
        }
        self.make(entry, kept, &directory)
    }

    fn tell(&mut self, entry: &Entry<'_, impl Read>, name: &[u8], is_long: bool) -> Result<(), Ending> {
        let line = if is_long { self.columns.line(entry) } else { format!("{}\n", shown(name)) };
        if self.options.to_stdout { self.worker.print_error(line) } else { self.worker.print(line) }
    }

    fn copy(&mut self, entry: &mut Entry<'_, impl Read>) -> Result<(), Ending> {
        let kind = entry.header().entry_type();
        if matches!(kind, EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse) {
            let size = entry.size();
            let mut output = io::BufWriter::with_capacity(64 << 10, WorkerOutput(self.worker));
            let copied = io::copy(entry, &mut output);
            drop(output);
            self.worker.breathe()?;
            if copied.ok() != Some(size) {
                return Err(fatal("Unexpected EOF in archive"));
            }
        }
        Ok(())
    }

    /// A name without what may not be at its beginning.
    fn safe<'n>(&mut self, name: &'n [u8], what: &'static str) -> Result<&'n [u8], Ending> {
        let prefix = unsafe_prefix(name);
        if prefix > 0 && !self.options.absolute {
            let told = (name[..prefix].to_vec(), what);
            if !self.told.contains(&told) {
                let text = format!("tar: Removing leading `{}' from {what}\n", shown(&told.0));
                self.told.push(told);
                self.worker.print_error(text)?;
            }
        }
        Ok(&name[prefix..])
    }

    fn make(
        &mut self,
        entry: &mut Entry<'_, impl Read>,
        name: &[u8],
        directory: &std::path::Path,
    ) -> Result<(), Ending> {
        let kind = entry.header().entry_type();
        let name_shown = shown(name);
        let is_absolute = self.options.absolute && name.starts_with(b"/");
        let path = self.safe(name, "member names")?.to_vec();
        if name.split(|byte| *byte == b'/').any(|segment| segment == b"..") {
            return self.fail(format!("{name_shown}: TarMember name contains '..'"));
        }
        let path = if path.is_empty() { b".".to_vec() } else { path };
        let mut link = entry.link_name_bytes().map(std::borrow::Cow::into_owned).unwrap_or_default();
        if kind == EntryType::Link {
            let kept = stripped(&link, self.options.strip).unwrap_or(&link).to_vec();
            link = self.safe(&kept, "hard link targets")?.to_vec();
        }
        let plan = match plan_as(entry, &path, &link, false) {
            Ok(plan) => plan,
            Err(_) if matches!(kind, EntryType::Fifo) => {
                return self.fail(format!("{name_shown}: Cannot mkfifo: Operation not permitted"));
            }
            Err(_) if matches!(kind, EntryType::Char | EntryType::Block) => {
                return self.fail(format!("{name_shown}: Cannot mknod: Operation not permitted"));
            }
            Err(refused) => return self.fail(format!("{name_shown}: {}", refused.reason)),
        };
        if plan.path.is_empty() {
            return Ok(());
        }
        let directory = if is_absolute { std::path::Path::new("/") } else { directory };
        let root = {
            let held = self.worker.files.lock();
            self.worker.find_in(&held, directory, b".", Last::Follow)
        };
        let made = root.and_then(|root| self.put(entry, &plan, &root));
        self.worker.breathe()?;
        match made {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::Internal => Err(fatal("Unexpected EOF in archive")),
            Err(error) => {
                let doing = match &plan.make {
                    TarAction::Directory => "Cannot mkdir".to_owned(),
                    TarAction::Symlink(target) => format!("Cannot create symlink to ‘{}’", shown(target)),
                    TarAction::HardLink(source) => format!("Cannot hard link to ‘{}’", shown(source)),
                    TarAction::File | TarAction::Nothing => "Cannot open".to_owned(),
                };
                self.fail(format!("{name_shown}: {doing}: {}", reason_here(&error)))
            }
        }
    }

    /// Makes what an entry says. An error of the kind `Internal` is an archive that ends early.
    fn put(&mut self, entry: &mut Entry<'_, impl Read>, plan: &TarPlan, root: &Place) -> eyot::Result<()> {
        let modified = self.time_of(plan);
        if plan.make == TarAction::Directory {
            return self.put_directory(plan, root, modified);
        }
        if !self.may_replace(plan, root, modified)? {
            return Ok(());
        }
        let node = match &plan.make {
            TarAction::File => {
                let bytes = self.content(entry, root)?;
                FileNode { modified, ..FileNode::file(bytes, self.mode_of(plan)) }
            }
            TarAction::Symlink(target) => {
                FileNode { modified, ..FileNode::new(NodeContent::Link(target.clone()), 0o777) }
            }
            TarAction::HardLink(source) => return self.put_link(plan, source, root),
            TarAction::Directory | TarAction::Nothing => return Ok(()),
        };
        let mut held = self.worker.files.lock();
        let place = place(&mut held, root, &plan.path)?;
        let place = cleared(&mut held, place)?;
        held.add(&place, node).map(drop)
    }

    fn time_of(&self, plan: &TarPlan) -> SystemTime {
        if self.options.touches {
            return SystemTime::now();
        }
        SystemTime::UNIX_EPOCH + Duration::from_secs(plan.modified.max(0).unsigned_abs())
    }

    fn mode_of(&self, plan: &TarPlan) -> u32 {
        if self.options.keeps_modes { plan.mode } else { plan.mode & !self.worker.mask }
    }

    fn content(&self, entry: &mut Entry<'_, impl Read>, root: &Place) -> eyot::Result<Vec<u8>> {
        let room = {
            let held = self.worker.files.lock();
            held.tree.room(root.parent)
        };
        if entry.size() > room {
            return Err(no_space());
        }
        let mut bytes = Vec::new();
        let early = || Error::new(ErrorKind::Internal, "ends early");
        entry.read_to_end(&mut bytes).map_err(|_| early())?;
        if (bytes.len() as u64) < entry.size() { Err(early()) } else { Ok(bytes) }
    }

    /// Tells whether an entry may take the place of what has its name.
    fn may_replace(&self, plan: &TarPlan, root: &Place, modified: SystemTime) -> eyot::Result<bool> {
        let held = self.worker.files.lock();
        let Some(id) = existing(&held, root, &plan.path).ok().and_then(|place| place.node) else {
            return Ok(true);
        };
        match self.options.existing {
            TarExisting::Replace => Ok(true),
            TarExisting::Keep => Err(Error::new(ErrorKind::AlreadyExists, "already exists")),
            TarExisting::Skip => Ok(false),
            TarExisting::KeepNewer => Ok(held.tree.node(id).modified < modified),
        }
    }

    fn put_directory(&mut self, plan: &TarPlan, root: &Place, modified: SystemTime) -> eyot::Result<()> {
        let mut held = self.worker.files.lock();
        let place = place(&mut held, root, &plan.path)?;
        let id = match place.node.filter(|id| held.tree.node(*id).is_directory()) {
            Some(id) => id,
            None if place.node.is_some() && self.options.existing != TarExisting::Replace => {
                return Err(Error::new(ErrorKind::AlreadyExists, "already exists"));
            }
            None => {
                let place = cleared(&mut held, place)?;
                held.add(&place, FileNode::directory(0o755))?
            }
        };
        drop(held);
        self.directories.push((id, self.mode_of(plan), modified));
        Ok(())
    }

    fn put_link(&self, plan: &TarPlan, source: &[u8], root: &Place) -> eyot::Result<()> {
        if source == plan.path {
            return Ok(());
        }
        let mut held = self.worker.files.lock();
        let id = existing(&held, root, source)?.found()?;
        if held.tree.node(id).is_directory() {
            return Err(crate::memory::node::not_permitted());
        }
        let place = place(&mut held, root, &plan.path)?;
        if place.node == Some(id) {
            return Ok(());
        }
        let place = cleared(&mut held, place)?;
        held.tree.link(id, &place)?;
        held.tell(&WatchEventKind::Created, &place, false);
        Ok(())
    }

    fn set_directories(&mut self) {
        let mut held = self.worker.files.lock();
        for (id, mode, modified) in self.directories.drain(..).rev() {
            if held.tree.has(id) {
                let node = held.tree.node_mut(id);
                (node.mode, node.modified) = (mode, modified);
            }
        }
    }
}

/// The reason in the words of programs.
fn reason_here(error: &Error) -> &'static str {
    match error.kind() {
        // A directory that is not empty is in the way.
        ErrorKind::IsDirectory => "File exists",
        // A link on the way, which is not followed.
        ErrorKind::Invalid => "Not a directory",
        _ => reason(error),
    }
}
