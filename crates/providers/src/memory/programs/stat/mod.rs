//! `stat`: what is known of files, in a form that the caller chooses.

mod field;

use async_trait::async_trait;

use super::choices::choose;
use super::facts::{BLOCK_BYTES, NodeFacts, ShownNodeKind, look};
use super::name_style::{NameStyle, STYLES};
use super::options::{OptionWord, complete, unknown};
use super::quoting::{curly, quoted};
use super::run::{Ending, ProgramRun, ShellProgram};
use super::times::{Moment, Zone, format_time};
use crate::memory::walk::Last;
use field::{StatField, pieces, unescaped};

const LONG_NAMES: [&str; 8] =
    ["cached", "dereference", "file-system", "format", "help", "printf", "terse", "version"];
/// The number of the disk.
const DISK: u64 = 45;
/// The bytes of a name and of its node, as the quota counts them.
const NODE_BYTES: u64 = 128;

/// The bytes that are printed at once.
const PRINTED_BYTES: usize = 64 << 10;

const FILE: &str = "  File: %P\n  Size: %-10s\tBlocks: %-10b IO Block: %-6o %F\nDevice: %Hd,%Ld\tInode: ";
const OWNERS: &str = "Access: (%04a/%10.10A)  Uid: (%5u/%8U)   Gid: (%5g/%8G)\n";
const TIMES: &str = "Access: %x\nModify: %y\nChange: %z\n Birth: %w\n";
const TERSE: &str = "%n %s %b %f %u %g %D %i %h %t %T %X %Y %Z %W %o\n";
const DISK_FORM: &str = "  File: \"%n\"\n    ID: %-8i Namelen: %-7l Type: %T\nBlock size: %-10s Fundamental block size: %S\n\
                         Blocks: Total: %-10b Free: %-10f Available: %a\nInodes: Total: %-10c Free: %d\n";
const TERSE_DISK: &str = "%n %i %l %t %s %S %b %f %a %c %d\n";

#[derive(Debug, Default)]
struct Options {
    format: Option<String>,
    /// Escapes count, and no line end is added.
    is_printf: bool,
    is_disk: bool,
    is_terse: bool,
    follows: bool,
    files: Vec<String>,
}

pub(super) struct Stat;

#[async_trait]
impl ShellProgram for Stat {
    async fn run(&self, run: &ProgramRun<'_>) -> Result<i32, Ending> {
        let options = parse(run)?;
        if options.files.is_empty() {
            return Err(Ending::usage("missing operand"));
        }
        let format = match &options.format {
            Some(format) if options.is_printf => {
                let (format, odd) = unescaped(format);
                for letter in odd {
                    run.complain(format!("warning: unrecognized escape '\\{letter}'")).await?;
                }
                Some(format)
            }
            other => other.clone(),
        };
        let last = if options.follows { Last::Follow } else { Last::Keep };
        let mut status = 0;
        for file in &options.files {
            run.breathe().await;
            match look(run, file, last).await {
                Ok(facts) => print(run, &options, format.as_deref(), file, facts).await?,
                Err(why) => {
                    let act = if options.is_disk { "read file system information for" } else { "statx" };
                    run.complain(format!("cannot {act} {}: {why}", quoted(file))).await?;
                    status = 1;
                }
            }
        }
        Ok(status)
    }
}

fn parse(run: &ProgramRun<'_>) -> Result<Options, Ending> {
    let mut options = Options::default();
    let mut words = run.words();
    while let Some(word) = words.next()? {
        let name = match &word {
            OptionWord::Operand(file) => {
                options.files.push(file.clone());
                continue;
            }
            OptionWord::Short('c') => "format",
            OptionWord::Short('f') => "file-system",
            OptionWord::Short('L') => "dereference",
            OptionWord::Short('t') => "terse",
            OptionWord::Short(_) => return Err(unknown(&word)),
            OptionWord::Long(name) => complete(name, &LONG_NAMES)?,
        };
        match name {
            "format" | "printf" => {
                options.format = Some(words.value()?);
                options.is_printf = name == "printf";
            }
            "file-system" => options.is_disk = true,
            "dereference" => options.follows = true,
            "terse" => options.is_terse = true,
            "cached" => {
                let modes = [("default", 0), ("never", 1), ("always", 2)];
                choose(&modes, &words.value()?, "--cached").map(drop)?;
            }
            _ => return Err(unknown(&word)),
        }
    }
    Ok(options)
}

async fn print(
    run: &ProgramRun<'_>,
    options: &Options,
    format: Option<&str>,
    name: &str,
    facts: NodeFacts,
) -> Result<(), Ending> {
    let usual = match (options.is_disk, options.is_terse) {
        (false, false) => {
            let place = match facts.kind {
                ShownNodeKind::Device(..) => "%-11i Links: %-5h Device type: %Hr,%Lr\n",
                _ => "%-11i Links: %h\n",
            };
            [FILE, place, OWNERS, TIMES].concat()
        }
        (false, true) => TERSE.to_owned(),
        (true, false) => DISK_FORM.to_owned(),
        (true, true) => TERSE_DISK.to_owned(),
    };
    let disk = options.is_disk.then(|| {
        let held = run.hold();
        (held.tree.max_bytes(held.root), held.tree.room(held.root))
    });
    let shown = StatSubject { name, facts, disk, zone: Zone::of(run.env), style: style_of(run) };
    let mut out = Vec::new();
    for piece in pieces(format.unwrap_or(&usual)) {
        match piece {
            Ok(text) => out.extend_from_slice(text.as_bytes()),
            Err(field) => shown.put(&field, &mut out)?,
        }
        if out.len() > PRINTED_BYTES {
            run.breathe().await;
            run.print(std::mem::take(&mut out)).await?;
        }
    }
    if format.is_some() && !options.is_printf {
        out.push(b'\n');
    }
    run.print(out).await
}

fn style_of(run: &ProgramRun<'_>) -> NameStyle {
    let named = run.env.get("QUOTING_STYLE");
    let known = named.and_then(|name| STYLES.iter().find(|(style, _)| style == name));
    known.map_or(NameStyle::ShellEscapeAlways, |(_, style)| *style)
}

/// A file as it is shown.
struct StatSubject<'a> {
    name: &'a str,
    facts: NodeFacts,
    /// The bytes of the disk, and those that are free.
    disk: Option<(u64, u64)>,
    zone: Zone,
    style: NameStyle,
}

impl StatSubject<'_> {
    fn put(&self, field: &StatField<'_>, out: &mut Vec<u8>) -> Result<(), Ending> {
        let is_known = match self.disk {
            Some(disk) => self.put_disk(field, disk, out),
            None => self.put_text(field, out) || self.put_number(field, out),
        };
        match field.letter {
            _ if is_known => {}
            Some('%') if field.is_bare() => out.push(b'%'),
            None if field.is_bare() => out.push(b'%'),
            Some('%') | None => {
                return Err(Ending::refused(format!("{}: invalid directive", curly(field.text))));
            }
            Some(_) => out.push(b'?'),
        }
        Ok(())
    }

    fn put_text(&self, field: &StatField<'_>, out: &mut Vec<u8>) -> bool {
        let facts = &self.facts;
        let text = match field.letter {
            Some('n') => self.name.as_bytes().to_vec(),
            Some('N') => self.named(self.style),
            Some('P') => self.named(NameStyle::Literal),
            Some('A') => facts.mode_text().into_bytes(),
            Some('F') => kind_text(facts).into(),
            Some('U' | 'G') => facts.owner().1.into(),
            Some('x' | 'y' | 'z') => {
                format_time("%Y-%m-%d %H:%M:%S.%N %z", facts.modified, &self.zone).into_bytes()
            }
            Some('w') => b"-".to_vec(),
            Some('m') if self.name.starts_with("/proc") => b"/proc".to_vec(),
            Some('m') => b"/".to_vec(),
            _ => return false,
        };
        field.put_text(&text, out);
        true
    }

    /// The name, with the target of a link.
    fn named(&self, style: NameStyle) -> Vec<u8> {
        let name = style.of(self.name.as_bytes());
        match &self.facts.target {
            Some(target) => [name.as_slice(), b" -> ", &style.of(target)].concat(),
            None => name,
        }
    }

    fn put_number(&self, field: &StatField<'_>, out: &mut Vec<u8>) -> bool {
        let facts = &self.facts;
        let (major, minor) = match facts.kind {
            ShownNodeKind::Device(major, minor) => (u64::from(major), u64::from(minor)),
            _ => (0, 0),
        };
        let owner = u64::from(facts.owner().0);
        let (number, base) = match (field.part, field.letter) {
            (None, Some('s')) => (facts.size, 10),
            (None, Some('b')) => (facts.disk_bytes / 512, 10),
            (None, Some('B')) => (512, 10),
            (None, Some('o')) => (BLOCK_BYTES, 10),
            (None, Some('a')) => (facts.mode.into(), 8),
            (None, Some('f')) => (facts.raw_mode().into(), 16),
            (None, Some('u' | 'g')) => (owner, 10),
            (None, Some('h')) => (facts.links, 10),
            (None, Some('i')) => (facts.inode as u64, 10),
            (None, Some('d')) | (Some('L'), Some('d')) => (DISK, 10),
            (None, Some('D')) => (DISK, 16),
            (Some('H'), Some('d')) => (0, 10),
            (None, Some('r')) => (major << 8 | minor, 10),
            (None, Some('R')) => (major << 8 | minor, 16),
            (Some('H'), Some('r')) => (major, 10),
            (Some('L'), Some('r')) => (minor, 10),
            (None, Some('t')) => (major, 16),
            (None, Some('T')) => (minor, 16),
            (None, Some('X' | 'Y' | 'Z')) => {
                field.put_time(facts.modified, out);
                return true;
            }
            (None, Some('W')) => {
                field.put_time(Moment { seconds: 0, nanos: 0 }, out);
                return true;
            }
            _ => return false,
        };
        field.put_number(number, base, out);
        true
    }

    fn put_disk(&self, field: &StatField<'_>, (max, room): (u64, u64), out: &mut Vec<u8>) -> bool {
        let (number, base) = match field.letter {
            Some('n') => {
                field.put_text(self.name.as_bytes(), out);
                return true;
            }
            Some('T') => {
                field.put_text(b"tmpfs", out);
                return true;
            }
            Some('a' | 'f') => (room / BLOCK_BYTES, 10),
            Some('b') => (max / BLOCK_BYTES, 10),
            Some('c') => (max / NODE_BYTES, 10),
            Some('d') => (room / NODE_BYTES, 10),
            Some('i') => (DISK, 16),
            Some('l') => (255, 10),
            Some('s' | 'S') => (BLOCK_BYTES, 10),
            // The number of tmpfs.
            Some('t') => (0x0102_1994, 16),
            _ => return false,
        };
        field.put_number(number, base, out);
        true
    }
}

fn kind_text(facts: &NodeFacts) -> &'static str {
    match facts.kind {
        ShownNodeKind::File if facts.size == 0 => "regular empty file",
        ShownNodeKind::File => "regular file",
        ShownNodeKind::Directory => "directory",
        ShownNodeKind::Link => "symbolic link",
        ShownNodeKind::Fifo => "fifo",
        ShownNodeKind::Device(..) => "character special file",
    }
}
