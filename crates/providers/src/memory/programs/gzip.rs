//! `gzip`, `gunzip` and `zcat`: files and streams, packed and unpacked.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::time::SystemTime;

use async_trait::async_trait;
use flate2::GzBuilder;

use super::file_bytes::FileBytes;
use super::gzip_stream::{Counts, GzipError, GzipTotals, compress, decompress};
use super::options::{OptionWord, unknown};
use super::run::{Ending, ProgramRun, ShellProgram, reason};
use super::tar::time::shown;
use super::worker::{WorkReader, Worker, WorkerInput, WorkerOutput, work};
use crate::memory::content::FileContent;
use crate::memory::node::{FileNode, NodeContent};
use crate::memory::walk::Last;

/// The status of a run that left something out.
const WARNING: i32 = 2;

/// The three names of the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gzip {
    Pack,
    Unpack,
    Print,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GzipMode {
    Compress,
    Decompress,
    Test,
    List,
}

#[derive(Debug, Clone)]
struct Options {
    mode: GzipMode,
    to_stdout: bool,
    keeps: bool,
    forces: bool,
    recursive: bool,
    quiet: bool,
    verbose: bool,
    with_name: bool,
    level: u32,
    suffix: String,
    files: Vec<String>,
}

#[async_trait]
impl ShellProgram for Gzip {
    async fn run(&self, run: &ProgramRun<'_>) -> Result<i32, Ending> {
        match run.args.first().map(String::as_str) {
            Some("-V" | "--version") => return run.print("gzip 1.13\n").await.map(|()| 0),
            Some("-h" | "--help") => {
                return run.print(format!("Usage: {} [OPTION]... [FILE]...\n", run.name)).await.map(|()| 0);
            }
            _ => {}
        }
        let options = match parse(*self, run) {
            Ok(options) => options,
            Err(Ending::Refused { reason, .. }) => {
                let hint = "Try `gzip --help' for more information.";
                run.write_error(format!("gzip: {reason}\n{hint}\n")).await?;
                return Ok(1);
            }
            Err(other) => return Err(other),
        };
        work(run, move |worker| GzipRun { worker, options, status: 0, totals: Totals::default() }.run()).await
    }
}

fn parse(program: Gzip, run: &ProgramRun<'_>) -> Result<Options, Ending> {
    let mut options = Options {
        mode: if program == Gzip::Pack { GzipMode::Compress } else { GzipMode::Decompress },
        to_stdout: program == Gzip::Print,
        keeps: false,
        forces: false,
        recursive: false,
        quiet: false,
        verbose: false,
        with_name: true,
        level: 6,
        suffix: ".gz".to_owned(),
        files: Vec::new(),
    };
    let mut words = run.words();
    while let Some(word) = words.next()? {
        let letter = match &word {
            OptionWord::Operand(file) => {
                options.files.push(file.clone());
                continue;
            }
            OptionWord::Short(letter) => *letter,
            OptionWord::Long(name) => letter_of(name).ok_or_else(|| unknown(&word))?,
        };
        match letter {
            'c' => options.to_stdout = true,
            'd' => options.mode = GzipMode::Decompress,
            't' => options.mode = GzipMode::Test,
            'l' => options.mode = GzipMode::List,
            'f' => options.forces = true,
            'k' => options.keeps = true,
            'n' => options.with_name = false,
            'N' => options.with_name = true,
            'q' => options.quiet = true,
            'v' => options.verbose = true,
            'r' => options.recursive = true,
            'S' => options.suffix = words.value()?,
            '1'..='9' => options.level = letter.to_digit(10).unwrap_or(6),
            _ => return Err(unknown(&word)),
        }
    }
    Ok(options)
}

fn letter_of(name: &str) -> Option<char> {
    const NAMES: [(&str, char); 16] = [
        ("stdout", 'c'),
        ("to-stdout", 'c'),
        ("decompress", 'd'),
        ("uncompress", 'd'),
        ("force", 'f'),
        ("keep", 'k'),
        ("list", 'l'),
        ("no-name", 'n'),
        ("name", 'N'),
        ("quiet", 'q'),
        ("silent", 'q'),
        ("recursive", 'r'),
        ("suffix", 'S'),
        ("test", 't'),
        ("verbose", 'v'),
        ("fast", '1'),
    ];
    if name == "best" {
        return Some('9');
    }
    NAMES.iter().find(|(known, _)| *known == name).map(|(_, letter)| *letter)
}

#[derive(Default)]
struct Totals {
    files: u32,
    packed: u64,
    unpacked: u64,
}

struct GzipRun<'a> {
    worker: &'a Worker,
    options: Options,
    status: i32,
    totals: Totals,
}

impl GzipRun<'_> {
    fn run(mut self) -> Result<i32, Ending> {
        let files = std::mem::take(&mut self.options.files);
        if files.is_empty() {
            self.stream()?;
        }
        for file in &files {
            self.worker.breathe()?;
            if file == "-" { self.stream()? } else { self.operand(file)? }
        }
        if self.options.mode == GzipMode::List && self.totals.files > 1 {
            let line = list_line(self.totals.packed, self.totals.unpacked, "(totals)");
            self.worker.print(line)?;
        }
        Ok(self.status)
    }

    fn fail(&mut self, text: &str) -> Result<(), Ending> {
        self.status = 1;
        self.worker.print_error(text)
    }

    fn warn(&mut self, text: &str) -> Result<(), Ending> {
        if self.status == 0 {
            self.status = WARNING;
        }
        if self.options.quiet { Ok(()) } else { self.worker.print_error(format!("gzip: {text}\n")) }
    }

    /// Goes from the standard input to the standard output.
    fn stream(&mut self) -> Result<(), Ending> {
        let worker = self.worker;
        let input = WorkReader { worker, inner: WorkerInput::new(worker) };
        let counts = match self.options.mode {
            GzipMode::Compress => {
                let header = GzBuilder::new();
                compress(input, WorkerOutput(worker), header, self.options.level).map_err(broken_pipe)?
            }
            GzipMode::Decompress => self.unpack_to(input, WorkerOutput(worker), "stdin")?.counts,
            GzipMode::Test => self.unpack_to(input, io::sink(), "stdin")?.counts,
            GzipMode::List => {
                let unpacked = self.unpack_to(input, io::sink(), "stdin")?;
                return self.list(&unpacked, "stdout");
            }
        };
        if self.options.verbose {
            let ok = if self.options.mode == GzipMode::Test { "  OK".to_owned() } else { ratio(counts) };
            worker.print_error(format!("{ok}\n"))?;
        }
        Ok(())
    }

    fn operand(&mut self, name: &str) -> Result<(), Ending> {
        let Some((name, node)) = self.look(name)? else { return Ok(()) };
        let content = match node.content {
            NodeContent::File(ref content) => content.clone(),
            NodeContent::Directory(entries) if self.options.recursive => {
                let trimmed = name.trim_end_matches('/');
                let inside: Vec<String> = entries
                    .into_keys()
                    .filter_map(|key| String::from_utf8(key).ok())
                    .map(|key| format!("{trimmed}/{key}"))
                    .collect();
                return inside.iter().try_for_each(|inside| self.operand(inside));
            }
            NodeContent::Directory(_) => return self.warn(&format!("{name} is a directory -- ignored")),
            NodeContent::Link(_) => {
                return self.fail(&format!("gzip: {name}: Too many levels of symbolic links\n"));
            }
            // A substituted process or a device.
            NodeContent::Fifo(_) | NodeContent::Device(_) if self.options.to_stdout => {
                match self.worker.read(&name)? {
                    Ok(content) => content,
                    Err(reason) => return self.fail(&format!("gzip: {name}: {reason}\n")),
                }
            }
            _ => return self.warn(&format!("{name} is not a directory or a regular file - ignored")),
        };
        if let Err(error) = node.check(crate::memory::node::FileAccess::Read) {
            return self.fail(&format!("gzip: {name}: {}\n", reason(&error)));
        }
        match self.options.mode {
            GzipMode::Compress => self.pack_file(&name, &node, &content),
            GzipMode::Decompress => self.unpack_file(&name, &node, &content),
            GzipMode::Test => {
                let unpacked = self.unpack_to(content.reader(), io::sink(), &name)?;
                if self.options.verbose && unpacked.is_sound {
                    self.worker.print_error(format!("{name}:\t OK\n"))?;
                }
                Ok(())
            }
            GzipMode::List => {
                let unpacked = self.unpack_to(content.reader(), io::sink(), &name)?;
                let stem = name.strip_suffix(self.options.suffix.as_str()).unwrap_or(&name).to_owned();
                self.list(&unpacked, &stem)
            }
        }
    }

    /// Finds a file. When unpacking, the suffix may be left out.
    fn look(&mut self, name: &str) -> Result<Option<(String, FileNode)>, Ending> {
        let last = if self.options.to_stdout
            || self.options.forces
            || self.options.mode == GzipMode::Test
            || self.options.mode == GzipMode::List
        {
            Last::Follow
        } else {
            Last::Keep
        };
        let mut names = vec![name.to_owned()];
        if self.options.mode != GzipMode::Compress && !name.ends_with(&self.options.suffix) {
            names.push(format!("{name}{}", self.options.suffix));
        }
        for name in &names {
            let held = self.worker.files.lock();
            let found = self.worker.find_in(&held, &self.worker.cwd, name.as_bytes(), last);
            match found.and_then(|place| place.found()) {
                Ok(id) => return Ok(Some((name.clone(), held.tree.node(id).clone()))),
                Err(error) if error.kind() == eyot::ErrorKind::NotFound => {}
                Err(error) => {
                    drop(held);
                    self.fail(&format!("gzip: {name}: {}\n", reason(&error)))?;
                    return Ok(None);
                }
            }
        }
        // The shell itself may hold it: a substituted process.
        if let Ok(content) = self.worker.read(name)? {
            let node = FileNode::new(NodeContent::File(content), 0o600);
            return Ok(Some((name.to_owned(), node)));
        }
        let last = names.last().map_or(name, String::as_str);
        self.fail(&format!("gzip: {last}: No such file or directory\n"))?;
        Ok(None)
    }

    fn pack_file(&mut self, name: &str, node: &FileNode, content: &FileContent) -> Result<(), Ending> {
        let suffix = self.options.suffix.clone();
        if name.ends_with(&suffix) && !self.options.to_stdout && !self.options.forces {
            let text = format!("gzip: {name} already has {suffix} suffix -- unchanged\n");
            return if self.options.quiet { Ok(()) } else { self.worker.print_error(text) };
        }
        let header = self.header_of(name, node);
        let worker = self.worker;
        let input = WorkReader { worker, inner: content.reader() };
        if self.options.to_stdout {
            let counts =
                compress(input, WorkerOutput(worker), header, self.options.level).map_err(broken_pipe)?;
            return self.tell(name, counts, "stdout", "replaced with");
        }
        let target = format!("{name}{suffix}");
        if !self.may_write(name, node, &target)? {
            return Ok(());
        }
        let mut packed = Vec::new();
        let counts = compress(input, &mut packed, header, self.options.level).map_err(broken_pipe)?;
        self.replace(name, node, &target, packed, counts)
    }

    fn header_of(&self, name: &str, node: &FileNode) -> GzBuilder {
        if !self.options.with_name {
            return GzBuilder::new();
        }
        let base = name.rsplit('/').next().unwrap_or(name);
        let since = node.modified.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs();
        GzBuilder::new().filename(base).mtime(u32::try_from(since).unwrap_or(0))
    }

    fn unpack_file(&mut self, name: &str, node: &FileNode, content: &FileContent) -> Result<(), Ending> {
        let worker = self.worker;
        let input = WorkReader { worker, inner: content.reader() };
        if self.options.to_stdout {
            let unpacked = self.unpack_to(input, WorkerOutput(worker), name)?;
            return self.tell(name, unpacked.counts, "stdout", "replaced with");
        }
        let Some(target) = unpacked_name(name, &self.options.suffix) else {
            return self.warn(&format!("{name}: unknown suffix -- ignored"));
        };
        if !self.may_write(name, node, &target)? {
            return Ok(());
        }
        let room = {
            let held = worker.files.lock();
            held.tree.room(held.root)
        };
        let mut output = FileBytes { bytes: Vec::new(), room };
        let unpacked = self.unpack_to(input, &mut output, name)?;
        if !unpacked.is_sound {
            return Ok(());
        }
        self.replace(name, node, &target, output.bytes, unpacked.counts)
    }

    /// Tells whether a file may take the place of another.
    fn may_write(&mut self, name: &str, node: &FileNode, target: &str) -> Result<bool, Ending> {
        if node.names > 1 && !self.options.forces && !self.options.keeps {
            let links = node.names - 1;
            let many = if links == 1 { "" } else { "s" };
            self.warn(&format!("{name} has {links} other link{many} -- file ignored"))?;
            return Ok(false);
        }
        let is_there = {
            let held = self.worker.files.lock();
            let place = self.worker.find_in(&held, &self.worker.cwd, target.as_bytes(), Last::Keep);
            place.is_ok_and(|place| place.node.is_some())
        };
        if is_there && !self.options.forces {
            self.warn(&format!("{target} already exists;\tnot overwritten"))?;
            return Ok(false);
        }
        Ok(true)
    }

    fn replace(
        &mut self,
        name: &str,
        node: &FileNode,
        target: &str,
        bytes: Vec<u8>,
        counts: Counts,
    ) -> Result<(), Ending> {
        let new = FileNode { modified: node.modified, ..FileNode::file(bytes, node.mode & 0o777) };
        let written = self.worker.write(target, new).and_then(|()| {
            let mut held = self.worker.files.lock();
            let new = self.worker.find_in(&held, &self.worker.cwd, target.as_bytes(), Last::Follow)?;
            held.tree.node_mut(new.found()?).modified = node.modified;
            if self.options.keeps {
                return Ok(());
            }
            let old = self.worker.find_in(&held, &self.worker.cwd, name.as_bytes(), Last::Keep)?;
            held.remove(&old)
        });
        if let Err(error) = written {
            return self.fail(&format!("gzip: {target}: {}\n", reason(&error)));
        }
        let did = if self.options.keeps { "created" } else { "replaced with" };
        self.tell(name, counts, target, did)
    }

    fn tell(&self, name: &str, counts: Counts, target: &str, did: &str) -> Result<(), Ending> {
        if !self.options.verbose {
            return Ok(());
        }
        self.worker.print_error(format!("{name}:\t{} -- {did} {target}\n", ratio(counts)))
    }

    /// Unpacks everything, and says what is wrong with it.
    fn unpack_to(&mut self, input: impl Read, output: impl Write, name: &str) -> Result<GzipTotals, Ending> {
        let copies =
            self.options.forces && self.options.to_stdout && self.options.mode == GzipMode::Decompress;
        let mut unpacked = GzipTotals::default();
        let done = decompress(input, output, &mut unpacked, copies);
        self.worker.breathe()?;
        match done {
            Ok(()) => unpacked.is_sound = true,
            Err(GzipError::Trailing) => {
                unpacked.is_sound = true;
                if self.status == 0 {
                    self.status = WARNING;
                }
                if !self.options.quiet {
                    let text = format!("\ngzip: {name}: {}\n", GzipError::Trailing.text());
                    self.worker.print_error(text)?;
                }
            }
            Err(error) => self.fail(&format!("\ngzip: {name}: {}\n", error.text()))?,
        }
        Ok(unpacked)
    }

    fn list(&mut self, unpacked: &GzipTotals, name: &str) -> Result<(), Ending> {
        if !unpacked.is_sound {
            return Ok(());
        }
        let verbose = self.options.verbose;
        if self.totals.files == 0 && !self.options.quiet {
            let more = if verbose { "method  crc     date  time  " } else { "" };
            let title = "         compressed        uncompressed  ratio uncompressed_name";
            self.worker.print(format!("{more}{title}\n"))?;
        }
        let (packed, size) = unpacked.counts;
        self.totals.files += 1;
        self.totals.packed += packed;
        self.totals.unpacked += size;
        let mut line = String::new();
        if verbose {
            let _infallible = write!(line, "defla {:08x} ", unpacked.crc);
            line += &shown(i64::from(unpacked.modified), "%b %e %H:%M ");
        }
        line += &list_line(packed, size, name);
        self.worker.print(line)
    }
}

/// The name of a file when it is unpacked.
fn unpacked_name(name: &str, suffix: &str) -> Option<String> {
    let stem =
        |suffix: &str| name.strip_suffix(suffix).filter(|stem| !stem.is_empty() && !stem.ends_with('/'));
    if let Some(stem) = stem(suffix) {
        return Some(stem.to_owned());
    }
    for other in [".gz", "-gz", ".z", "-z", "_z", ".Z"] {
        if let Some(stem) = stem(other) {
            return Some(stem.to_owned());
        }
    }
    stem(".tgz").or_else(|| stem(".taz")).map(|stem| format!("{stem}.tar"))
}

/// The share that was saved, as `gzip -v` prints it.
#[allow(clippy::cast_precision_loss, reason = "a share needs no more digits")]
fn ratio((packed, unpacked): Counts) -> String {
    let overhead = 18.0;
    let share = if unpacked == 0 {
        0.0
    } else {
        (unpacked as f64 - (packed as f64 - overhead).max(0.0)) * 100.0 / unpacked as f64
    };
    format!("{share:5.1}%")
}

fn list_line(packed: u64, unpacked: u64, name: &str) -> String {
    format!("{packed:19} {unpacked:19} {} {name}\n", ratio((packed, unpacked)))
}

fn broken_pipe(_: io::Error) -> Ending {
    Ending::refused("the output is closed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_loses_its_suffix() {
        for (name, unpacked) in [
            ("a.gz", Some("a")),
            ("a.tgz", Some("a.tar")),
            ("a.Z", Some("a")),
            ("a.txt", None),
            ("d/.gz", None),
        ] {
            assert_eq!(unpacked_name(name, ".gz").as_deref(), unpacked, "{name}");
        }
    }
}
