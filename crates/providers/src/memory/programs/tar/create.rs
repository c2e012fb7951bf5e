//! Makes archives, and adds to them.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use flate2::Compression;
use flate2::write::GzEncoder;
use tar::{Builder, EntryType, Header};

use super::list::TarColumns;
use super::names::{TarPattern, shown, unsafe_prefix};
use super::options::{FAILURE, Options, TarAccount, TarMode, TarStep, fatal};
use super::source::{each_entry, open};
use crate::memory::node::{FileAccess, FileNode, NodeContent, NodeId, NodeOwner};
use crate::memory::pack::{self, PackEntry};
use crate::memory::programs::file_bytes::FileBytes;
use crate::memory::programs::read_bytes::ReadError;
use crate::memory::programs::run::{Ending, reason};
use crate::memory::programs::worker::{Worker, WorkerOutput};
use crate::memory::walk::Last;

/// Archives are written in records of this size.
const RECORD_BYTES: u64 = 20 * 512;
const BLOCK_BYTES: u64 = 512;

/// Makes the archive of the command line, or adds to it.
pub(super) fn create(worker: &Worker, options: &Options) -> Result<i32, Ending> {
    let before = OldMembers::of(worker, options)?;
    let file = options.archive.as_deref().filter(|name| *name != "-");
    let id = file.map(|name| begin(worker, name, &before)).transpose()?;
    let mut creation = Creation::new(worker, options, id, before.times);
    let packs = options.gzip || (options.auto_compress && file.is_some_and(is_gzip_name));
    let Some(name) = file else {
        let output = BufWriter::with_capacity(64 << 10, WorkerOutput(worker));
        creation.write(TarOutput::new(output, packs), 0)?;
        return creation.end();
    };
    let room = {
        let held = worker.files.lock();
        id.map_or(0, |id| held.tree.room(id))
    };
    let bytes = creation.write(TarOutput::new(FileBytes { bytes: before.kept, room }, packs), before.len)?;
    if let Err(error) = worker.write(name, FileNode::file(bytes.bytes, 0o644)) {
        return Err(fatal(format!("{name}: Cannot write: {}", reason(&error))));
    }
    creation.end()
}

fn is_gzip_name(name: &str) -> bool {
    [".gz", ".tgz", ".taz"].iter().any(|suffix| name.ends_with(suffix))
}

/// Makes the file of the archive, so that what can't be written is told before anything is read.
fn begin(worker: &Worker, name: &str, before: &OldMembers) -> Result<NodeId, Ending> {
    let made = || {
        if before.len == 0 {
            worker.write(name, FileNode::file(Vec::new(), 0o644))?;
        }
        let held = worker.files.lock();
        worker.find_in(&held, &worker.cwd, name.as_bytes(), Last::Follow)?.found()
    };
    made().map_err(|error| fatal(format!("{name}: Cannot open: {}", reason(&error))))
}

/// The members of an archive that is added to.
#[derive(Default)]
struct OldMembers {
    kept: Vec<u8>,
    len: u64,
    /// The times of its members, if only newer files are added.
    times: Option<HashMap<Vec<u8>, u64>>,
}

impl OldMembers {
    fn of(worker: &Worker, options: &Options) -> Result<Self, Ending> {
        let mode = options.mode;
        let Some(name) = options.archive.as_deref().filter(|_| mode != Some(TarMode::Create)) else {
            return Ok(Self::default());
        };
        if options.gzip {
            return Err(super::options::usage("Cannot update compressed archives", FAILURE));
        }
        let mut times = HashMap::new();
        let content = match worker.read(name)? {
            Ok(content) => content,
            Err(ReadError::NotFound) => {
                return Ok(Self {
                    times: Some(times).filter(|_| mode == Some(TarMode::Update)),
                    ..Self::default()
                });
            }
            Err(reason) => return Err(fatal(format!("{name}: Cannot open: {reason}"))),
        };
        if content.piece(&(0..2)).is_some_and(|magic| *magic == [0x1f, 0x8b]) {
            return Err(fatal("Cannot update compressed archives"));
        }
        if content.len() == 0 {
            return Ok(Self {
                times: Some(times).filter(|_| mode == Some(TarMode::Update)),
                ..Self::default()
            });
        }
        let mut len = 0;
        let status = each_entry(worker, options, open(worker, options)?, |entry| {
            let size = entry.size().div_ceil(BLOCK_BYTES) * BLOCK_BYTES;
            len = entry.raw_file_position() + size;
            times.insert(entry.path_bytes().into_owned(), entry.header().mtime().unwrap_or(0));
            Ok(())
        })?;
        if status != 0 {
            return Err(fatal("This archive can't be added to"));
        }
        let mut kept = content.to_vec(u64::MAX).unwrap_or_default();
        kept.truncate(usize::try_from(len).unwrap_or(usize::MAX));
        Ok(Self { kept, len, times: Some(times).filter(|_| mode == Some(TarMode::Update)) })
    }
}

/// The output of an archive, packed or not, and its size before that.
struct TarOutput<W: Write> {
    inner: Stream<W>,
    len: u64,
}

enum Stream<W: Write> {
    Plain(W),
    Gzip(GzEncoder<W>),
}

impl<W: Write> TarOutput<W> {
    fn new(inner: W, packs: bool) -> Self {
        let inner = if packs {
            Stream::Gzip(GzEncoder::new(inner, Compression::default()))
        } else {
            Stream::Plain(inner)
        };
        Self { inner, len: 0 }
    }

    /// Fills the last record up, and returns what was written to.
    fn finish(mut self, before: u64) -> io::Result<W> {
        let left = (RECORD_BYTES - (before + self.len) % RECORD_BYTES) % RECORD_BYTES;
        io::copy(&mut io::Read::take(io::repeat(0), left), &mut self)?;
        let mut inner = match self.inner {
            Stream::Plain(inner) => inner,
            Stream::Gzip(encoder) => encoder.finish()?,
        };
        inner.flush()?;
        Ok(inner)
    }
}

impl<W: Write> Write for TarOutput<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = match &mut self.inner {
            Stream::Plain(inner) => inner.write(bytes)?,
            Stream::Gzip(encoder) => encoder.write(bytes)?,
        };
        self.len += len as u64;
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.inner {
            Stream::Plain(inner) => inner.flush(),
            Stream::Gzip(_) => Ok(()),
        }
    }
}

/// One way through the files that are packed.
struct Creation<'a> {
    worker: &'a Worker,
    options: &'a Options,
    archive: Option<NodeId>,
    times: Option<HashMap<Vec<u8>, u64>>,
    columns: TarColumns,
    excluded: Vec<TarPattern>,
    first_names: BTreeMap<NodeId, Vec<u8>>,
    told: Vec<Vec<u8>>,
    packed: Vec<(PathBuf, Vec<u8>)>,
    status: i32,
}

/// A file that is next: where it is, and its name as it was given.
struct Visit {
    path: Vec<u8>,
    ancestors: Vec<NodeId>,
}

impl<'a> Creation<'a> {
    fn new(
        worker: &'a Worker,
        options: &'a Options,
        archive: Option<NodeId>,
        times: Option<HashMap<Vec<u8>, u64>>,
    ) -> Self {
        Self {
            worker,
            options,
            archive,
            times,
            columns: TarColumns::new(options),
            excluded: Vec::new(),
            first_names: BTreeMap::new(),
            told: Vec::new(),
            packed: Vec::new(),
            status: 0,
        }
    }

    fn fail(&mut self, text: impl AsRef<str>) -> Result<(), Ending> {
        self.status = FAILURE;
        self.worker.print_error(format!("tar: {}\n", text.as_ref()))
    }

    fn write<W: Write>(&mut self, output: TarOutput<W>, before: u64) -> Result<W, Ending> {
        let mut builder = Builder::new(output);
        let mut directory = self.worker.cwd.clone();
        for step in super::expanded(self.worker, self.options)? {
            match step {
                TarStep::Directory(name) => {
                    directory = directory.join(&name);
                    let held = self.worker.files.lock();
                    let found = self.worker.find_in(&held, &directory, b".", Last::Follow);
                    let is_there = found.and_then(|place| held.tree.entries(place.found()?).map(drop));
                    is_there.map_err(|error| fatal(format!("{name}: Cannot open: {}", reason(&error))))?;
                }
                TarStep::Exclude(pattern) => self.excluded.push(pattern),
                TarStep::Name(name) => self.member(&mut builder, &directory, name.as_bytes())?,
                TarStep::NamesFrom(_) | TarStep::ExcludeFrom(_) => {}
            }
        }
        let finished = builder.into_inner().and_then(|output| output.finish(before));
        finished.map_err(|error| self.unwritten(&error))
    }

    fn unwritten(&self, error: &io::Error) -> Ending {
        let name = self.options.archive.as_deref().unwrap_or("-");
        let reason = match error.kind() {
            io::ErrorKind::StorageFull => "No space left on device",
            _ => "Broken pipe",
        };
        fatal(format!("{name}: Cannot write: {reason}"))
    }

    fn member(
        &mut self,
        builder: &mut Builder<impl Write>,
        directory: &std::path::Path,
        name: &[u8],
    ) -> Result<(), Ending> {
        let mut left = vec![Visit { path: name.to_vec(), ancestors: Vec::new() }];
        while let Some(visit) = left.pop() {
            self.worker.breathe()?;
            let Some((id, node)) = self.look(directory, &visit)? else { continue };
            if let NodeContent::Directory(entries) = &node.content
                && !self.options.no_recursion
                && !visit.ancestors.contains(&id)
            {
                let ancestors = [visit.ancestors.as_slice(), &[id]].concat();
                let slash: &[u8] = if visit.path.ends_with(b"/") { b"" } else { b"/" };
                left.extend(entries.keys().rev().map(|name| Visit {
                    path: [visit.path.as_slice(), slash, name].concat(),
                    ancestors: ancestors.clone(),
                }));
            }
            self.pack(builder, directory, &visit.path, id, node)?;
        }
        Ok(())
    }

    /// Finds a file, unless it is passed over.
    fn look(
        &mut self,
        directory: &std::path::Path,
        visit: &Visit,
    ) -> Result<Option<(NodeId, FileNode)>, Ending> {
        let path = String::from_utf8_lossy(&visit.path);
        let name = path.strip_suffix('/').unwrap_or(&path);
        if self.excluded.iter().any(|pattern| pattern.excludes(name)) {
            return Ok(None);
        }
        let last = if self.options.follows_links { Last::Follow } else { Last::Keep };
        let found = {
            let held = self.worker.files.lock();
            let place = self.worker.find_in(&held, directory, &visit.path, last);
            place.and_then(|place| place.found()).map(|id| (id, held.tree.node(id).clone()))
        };
        let (id, node) = match found {
            Ok(found) => found,
            Err(error) => {
                self.fail(format!("{}: Cannot stat: {}", shown(&visit.path), reason(&error)))?;
                return Ok(None);
            }
        };
        if self.archive == Some(id) {
            let text = format!("tar: {}: archive cannot contain itself; not dumped\n", shown(&visit.path));
            self.worker.print_error(text)?;
            return Ok(None);
        }
        let is_read = matches!(node.content, NodeContent::File(_) | NodeContent::Directory(_));
        if is_read && let Err(error) = node.check(FileAccess::Read) {
            self.fail(format!("{}: Cannot open: {}", shown(&visit.path), reason(&error)))?;
            return Ok(None);
        }
        Ok(Some((id, node)))
    }

    fn pack(
        &mut self,
        builder: &mut Builder<impl Write>,
        directory: &std::path::Path,
        path: &[u8],
        id: NodeId,
        node: FileNode,
    ) -> Result<(), Ending> {
        let name = self.member_name(path)?;
        let is_directory = node.is_directory();
        let slash: &[u8] = if is_directory { b"/" } else { b"" };
        let packed = PackEntry { path: name, id, node };
        if self.is_old(&[packed.path.as_slice(), slash].concat(), &packed.node) {
            return Ok(());
        }
        let (options, node) = (self.options, &packed.node);
        let make = |node: &FileNode, kind: EntryType, size: u64| header(options, node, kind, size);
        let first = self.first_names.get(&id).filter(|_| node.names > 1 && !is_directory).cloned();
        let written = match (&first, &node.content) {
            (Some(first), _) => pack::append_link(builder, &packed, EntryType::Link, first, &make),
            (None, NodeContent::Fifo(_)) => {
                let mut header = header(options, node, EntryType::Fifo, 0);
                pack::append_entry(builder, &mut header, &packed.path, io::empty())
            }
            (None, NodeContent::Device(_)) => {
                return self.fail(format!("{}: Unknown file type; file ignored", shown(path)));
            }
            _ => pack::append(builder, &packed, &make),
        };
        self.worker.breathe()?;
        written.map_err(|error| self.unwritten(&error))?;
        self.tell(&packed, path, first.as_deref())?;
        if node_counts(&packed.node) {
            self.first_names.entry(id).or_insert(packed.path);
        }
        if self.options.removes {
            self.packed.push((directory.to_path_buf(), path.to_vec()));
        }
        Ok(())
    }

    fn is_old(&self, name: &[u8], node: &FileNode) -> bool {
        let since = node.modified.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        self.times.as_ref().and_then(|times| times.get(name)).is_some_and(|time| *time >= since)
    }

    /// The name in the archive: without what would lead out of a directory.
    fn member_name(&mut self, path: &[u8]) -> Result<Vec<u8>, Ending> {
        let mut end = path.len();
        while end > 1 && path[end - 1] == b'/' {
            end -= 1;
        }
        let path = &path[..end];
        let prefix = if self.options.absolute { 0 } else { unsafe_prefix(path) };
        if prefix > 0 && !self.told.iter().any(|told| told == &path[..prefix]) {
            self.told.push(path[..prefix].to_vec());
            let text = format!("tar: Removing leading `{}' from member names\n", shown(&path[..prefix]));
            self.worker.print_error(text)?;
        }
        let name = &path[prefix..];
        Ok(if name.is_empty() { b".".to_vec() } else { name.to_vec() })
    }

    fn tell(&mut self, packed: &PackEntry, path: &[u8], first: Option<&[u8]>) -> Result<(), Ending> {
        if self.options.verbose == 0 {
            return Ok(());
        }
        let slash: &[u8] = if packed.node.is_directory() && !path.ends_with(b"/") { b"/" } else { b"" };
        let path = [path, slash].concat();
        let line = if self.options.verbose > 1 {
            let (kind, link) = match (&packed.node.content, first) {
                (_, Some(first)) => (EntryType::Link, first),
                (NodeContent::Directory(_), _) => (EntryType::Directory, &b""[..]),
                (NodeContent::Link(target), _) => (EntryType::Symlink, target.as_slice()),
                (NodeContent::Fifo(_), _) => (EntryType::Fifo, &b""[..]),
                _ => (EntryType::Regular, &b""[..]),
            };
            let header = header(self.options, &packed.node, kind, packed.node.size());
            self.columns.line_of(&header, &path, link)
        } else {
            format!("{}\n", shown(&path))
        };
        let to_stdout = self.options.archive.as_deref().is_none_or(|name| name == "-");
        if to_stdout { self.worker.print_error(line) } else { self.worker.print(line) }
    }

    fn end(mut self) -> Result<i32, Ending> {
        for (directory, path) in std::mem::take(&mut self.packed).into_iter().rev() {
            let removed = {
                let mut held = self.worker.files.lock();
                let place = self.worker.find_in(&held, &directory, &path, Last::Keep);
                place.and_then(|place| held.remove_one(&place, false))
            };
            if let Err(error) = removed {
                self.fail(format!("{}: Cannot unlink: {}", shown(&path), reason(&error)))?;
            }
        }
        let idle = self.options.idle_patterns();
        if self.options.has_names() && !idle.is_empty() {
            self.worker.print_error(
                "tar: The following options were used after any non-optional arguments in archive create or \
                 update mode.  These options are positional and affect only arguments that follow them.  \
                 Please, rearrange them properly.\n",
            )?;
            for pattern in idle {
                self.fail(format!("--exclude ‘{pattern}’ has no effect"))?;
            }
        }
        if self.status != 0 {
            self.worker.print_error("tar: Exiting with failure status due to previous errors\n")?;
        }
        Ok(self.status)
    }
}

fn node_counts(node: &FileNode) -> bool {
    node.names > 1 && !node.is_directory()
}

/// The header of a node, as the options change it.
fn header(options: &Options, node: &FileNode, kind: EntryType, size: u64) -> Header {
    let seconds = options.modified.map(|seconds| Duration::from_secs(seconds.max(0).unsigned_abs()));
    let modified = seconds.map_or(node.modified, |since| SystemTime::UNIX_EPOCH + since);
    let node = FileNode { content: NodeContent::Link(Vec::new()), modified, ..node.clone() };
    let mut header = pack::header(&node, kind, size);
    let (name, id) = match node.owner {
        NodeOwner::Root => ("root", 0),
        NodeOwner::User => ("user", 1000),
    };
    let own = TarAccount { name: name.to_owned(), id: Some(id) };
    let (owner, group) = (options.owner.as_ref().unwrap_or(&own), options.group.as_ref().unwrap_or(&own));
    header.set_uid(owner.id.unwrap_or_else(|| known_id(&owner.name)));
    header.set_gid(group.id.unwrap_or_else(|| known_id(&group.name)));
    if !options.numeric {
        let _too_long = header.set_username(known_name(owner));
        let _too_long = header.set_groupname(known_name(group));
    }
    header
}

fn known_name(account: &TarAccount) -> &str {
    match account.id {
        Some(0) if account.name.is_empty() => "root",
        Some(1000) if account.name.is_empty() => "user",
        _ => &account.name,
    }
}

fn known_id(name: &str) -> u64 {
    if name == "root" { 0 } else { 1000 }
}
