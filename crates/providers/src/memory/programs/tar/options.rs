//! The command line of `tar`, old style and new.

use std::collections::VecDeque;

use super::names::TarPattern;
use crate::memory::programs::options::{OptionWord, Words, unknown};
use crate::memory::programs::run::Ending;

const HINT: &str = "Try 'tar --help' or 'tar --usage' for more information.";
/// The status of a command line that can't be read.
const USAGE_STATUS: i32 = 64;
/// The status of everything else that fails.
pub(super) const FAILURE: i32 = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TarMode {
    Create,
    Append,
    Update,
    Extract,
    List,
}

/// A file that may be in the way of an extraction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum TarExisting {
    #[default]
    Replace,
    Keep,
    Skip,
    KeepNewer,
}

/// A word that counts from where it stands.
#[derive(Debug, Clone)]
pub(super) enum TarStep {
    Name(String),
    Directory(String),
    Exclude(TarPattern),
    NamesFrom(String),
    ExcludeFrom(String),
}

/// An owner or a group that members get: a number, and perhaps a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TarAccount {
    pub name: String,
    pub id: Option<u64>,
}

#[derive(Debug, Clone, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of the command line")]
pub(super) struct Options {
    pub mode: Option<TarMode>,
    pub archive: Option<String>,
    pub verbose: u8,
    pub gzip: bool,
    pub auto_compress: bool,
    pub to_stdout: bool,
    pub existing: TarExisting,
    pub strip: usize,
    pub keeps_modes: bool,
    pub touches: bool,
    pub follows_links: bool,
    pub absolute: bool,
    pub wildcards: bool,
    pub numeric: bool,
    pub full_time: bool,
    pub no_recursion: bool,
    pub ignores_zeros: bool,
    pub removes: bool,
    pub zero_names: bool,
    pub modified: Option<i64>,
    pub owner: Option<TarAccount>,
    pub group: Option<TarAccount>,
    pub steps: Vec<TarStep>,
}

/// Long options, and the short ones that mean the same. Others mean themselves.
const LONG: &[(&str, &str)] = &[
    ("absolute-names", "P"),
    ("append", "r"),
    ("auto-compress", "a"),
    ("block-number", "R"),
    ("blocking-factor", "b"),
    ("bzip2", "j"),
    ("catenate", "A"),
    ("compare", "d"),
    ("concatenate", "A"),
    ("create", "c"),
    ("delay-directory-restore", "none"),
    ("delete", "delete"),
    ("dereference", "h"),
    ("diff", "d"),
    ("directory", "C"),
    ("exclude", "exclude"),
    ("exclude-from", "X"),
    ("exclude-vcs", "exclude-vcs"),
    ("extract", "x"),
    ("file", "f"),
    ("files-from", "T"),
    ("force-local", "none"),
    ("format", "H"),
    ("full-time", "full-time"),
    ("get", "x"),
    ("group", "group"),
    ("gunzip", "z"),
    ("gzip", "z"),
    ("ignore-zeros", "i"),
    ("keep-newer-files", "keep-newer-files"),
    ("keep-old-files", "k"),
    ("list", "t"),
    ("lzip", "lzip"),
    ("lzma", "lzma"),
    ("lzop", "lzop"),
    ("mtime", "mtime"),
    ("no-acls", "none"),
    ("no-auto-compress", "no-auto-compress"),
    ("no-recursion", "no-recursion"),
    ("no-same-owner", "o"),
    ("no-same-permissions", "no-same-permissions"),
    ("no-selinux", "none"),
    ("no-wildcards", "no-wildcards"),
    ("no-xattrs", "none"),
    ("null", "null"),
    ("numeric-owner", "numeric-owner"),
    ("old-archive", "old-archive"),
    ("one-file-system", "none"),
    ("overwrite", "none"),
    ("owner", "owner"),
    ("posix", "posix"),
    ("preserve-order", "s"),
    ("preserve-permissions", "p"),
    ("recursion", "recursion"),
    ("remove-files", "remove-files"),
    ("same-order", "s"),
    ("same-owner", "none"),
    ("same-permissions", "p"),
    ("skip-old-files", "skip-old-files"),
    ("sort", "sort"),
    ("strip-components", "strip-components"),
    ("to-stdout", "O"),
    ("touch", "m"),
    ("transform", "transform"),
    ("ungzip", "z"),
    ("unlink-first", "U"),
    ("update", "u"),
    ("use-compress-program", "I"),
    ("verbose", "v"),
    ("warning", "warning"),
    ("wildcards", "wildcards"),
    ("xform", "transform"),
    ("xz", "J"),
    ("zstd", "zstd"),
];

const VCS: [&str; 12] = [
    "CVS",
    ".cvsignore",
    "RCS",
    "SCCS",
    ".git",
    ".gitignore",
    ".gitattributes",
    ".gitmodules",
    ".svn",
    ".hg",
    ".hgignore",
    ".bzr",
];

/// A refusal of the command line, with tar's own hint.
pub(super) fn usage(reason: impl AsRef<str>, status: i32) -> Ending {
    Ending::with_status(format!("{}\n{HINT}", reason.as_ref()), status)
}

/// The end of a run that can't go on.
pub(super) fn fatal(reason: impl AsRef<str>) -> Ending {
    Ending::with_status(format!("{}\ntar: Error is not recoverable: exiting now", reason.as_ref()), FAILURE)
}

/// Reads the command line.
pub(super) fn parse(args: &[String]) -> Result<Options, Ending> {
    let mut options = Options::default();
    let args = in_new_style(args)?;
    let mut words = Words::new(&args);
    loop {
        match words.next().map_err(with_hint)? {
            None => break,
            Some(OptionWord::Operand(name)) => options.steps.push(TarStep::Name(name)),
            Some(word) => options.apply(&word, &mut words).map_err(with_hint)?,
        }
    }
    if options.mode.is_none() {
        let modes = "'-Acdtrux', '--delete' or '--test-label'";
        return Err(usage(format!("You must specify one of the {modes} options"), FAILURE));
    }
    Ok(options)
}

/// A refusal of the usual kind gets tar's hint and status.
fn with_hint(ending: Ending) -> Ending {
    match ending {
        Ending::Refused { reason, status: None, has_hint: true } => usage(reason, USAGE_STATUS),
        other => other,
    }
}

/// Spells out a first word without a dash: its letters are options, whose values follow in turn.
fn in_new_style(args: &[String]) -> Result<Vec<String>, Ending> {
    let mut left: VecDeque<String> = args.iter().cloned().collect();
    if left.front().is_none_or(|first| first.starts_with('-') || first.is_empty()) {
        return Ok(left.into());
    }
    let letters = left.pop_front().unwrap_or_default();
    let mut spelt = Vec::new();
    for letter in letters.chars() {
        spelt.push(format!("-{letter}"));
        if "bCfFgHIKLNTVX".contains(letter) {
            let missing = || usage(format!("Old option '{letter}' requires an argument."), FAILURE);
            spelt.push(left.pop_front().ok_or_else(missing)?);
        }
    }
    spelt.extend(left);
    Ok(spelt)
}

/// Finds a long option by its name or the beginning of it.
fn long_option(name: &str) -> Result<&'static str, Ending> {
    if let Some((_, option)) = LONG.iter().find(|(known, _)| *known == name) {
        return Ok(option);
    }
    let mut begun = LONG.iter().filter(|(known, _)| known.starts_with(name));
    match (begun.next(), begun.next()) {
        (Some((_, option)), None) => Ok(option),
        (Some(_), Some(_)) => Err(Ending::usage(format!("option '--{name}' is ambiguous"))),
        (None, _) => Err(unknown(&OptionWord::Long(name.to_owned()))),
    }
}

fn not_here(program: &str) -> Ending {
    fatal(format!("{program} is not available in memory; use gzip (-z)"))
}

impl Options {
    fn set_mode(&mut self, mode: TarMode) -> Result<(), Ending> {
        if self.mode.is_some_and(|other| other != mode) {
            let modes = "'-Acdtrux', '--delete' or  '--test-label'";
            return Err(usage(format!("You may not specify more than one {modes} option"), FAILURE));
        }
        self.mode = Some(mode);
        Ok(())
    }

    fn apply(&mut self, word: &OptionWord, words: &mut Words) -> Result<(), Ending> {
        let short;
        let option = match word {
            OptionWord::Long(name) => long_option(name)?,
            OptionWord::Short(letter) => {
                short = letter.to_string();
                short.as_str()
            }
            OptionWord::Operand(_) => return Ok(()),
        };
        match option {
            "c" => self.set_mode(TarMode::Create)?,
            "r" => self.set_mode(TarMode::Append)?,
            "u" => self.set_mode(TarMode::Update)?,
            "x" => self.set_mode(TarMode::Extract)?,
            "t" => self.set_mode(TarMode::List)?,
            "f" => self.archive = Some(words.value()?),
            "C" => self.steps.push(TarStep::Directory(words.value()?)),
            "T" => self.steps.push(TarStep::NamesFrom(words.value()?)),
            "X" => self.steps.push(TarStep::ExcludeFrom(words.value()?)),
            "exclude" => self.steps.push(TarStep::Exclude(TarPattern::new(&words.value()?, true))),
            "exclude-vcs" => {
                self.steps.extend(VCS.iter().map(|name| TarStep::Exclude(TarPattern::new(name, false))));
            }
            "H" | "posix" | "old-archive" => {
                let format = if option == "H" { words.value()? } else { option.to_owned() };
                if !matches!(format.as_str(), "gnu" | "oldgnu") {
                    return Err(fatal(format!(
                        "archives in memory are written in the format gnu, not {format}"
                    )));
                }
            }
            "I" => match words.value()?.as_str() {
                "gzip" | "pigz" => self.gzip = true,
                program => return Err(not_here(program)),
            },
            "j" => return Err(not_here("bzip2")),
            "J" => return Err(not_here("xz")),
            "Z" => return Err(not_here("compress")),
            "zstd" | "lzma" | "lzip" | "lzop" => return Err(not_here(option)),
            "transform" | "delete" => return Err(fatal(format!("--{option} is not available in memory"))),
            "A" | "d" | "g" | "M" => {
                return Err(fatal(format!("-{option} is not available in memory")));
            }
            _ => return self.apply_rest(option, word, words),
        }
        Ok(())
    }

    fn apply_rest(&mut self, option: &str, word: &OptionWord, words: &mut Words) -> Result<(), Ending> {
        match option {
            "v" => self.verbose = self.verbose.saturating_add(1),
            "z" => self.gzip = true,
            "a" => self.auto_compress = true,
            "no-auto-compress" => self.auto_compress = false,
            "O" => self.to_stdout = true,
            "k" => self.existing = TarExisting::Keep,
            "skip-old-files" => self.existing = TarExisting::Skip,
            "keep-newer-files" => self.existing = TarExisting::KeepNewer,
            "strip-components" => {
                let number = words.value()?;
                let wrong = |_| usage(format!("{number}: Invalid number of elements"), FAILURE);
                self.strip = number.parse().map_err(wrong)?;
            }
            "p" => self.keeps_modes = true,
            "no-same-permissions" => self.keeps_modes = false,
            "m" => self.touches = true,
            "h" => self.follows_links = true,
            "P" => self.absolute = true,
            "i" => self.ignores_zeros = true,
            "wildcards" => self.wildcards = true,
            "no-wildcards" => self.wildcards = false,
            "numeric-owner" => self.numeric = true,
            "full-time" => self.full_time = true,
            "no-recursion" => self.no_recursion = true,
            "recursion" => self.no_recursion = false,
            "remove-files" => self.removes = true,
            "null" => self.zero_names = true,
            "mtime" => {
                let text = words.value()?;
                let seconds = super::time::seconds(&text);
                self.modified = Some(seconds.ok_or_else(|| fatal(format!("Invalid date: ‘{text}’")))?);
            }
            "owner" => self.owner = Some(account(&words.value()?)),
            "group" => self.group = Some(account(&words.value()?)),
            "sort" => match words.value()?.as_str() {
                // A directory in memory is in order anyway.
                "name" | "none" | "inode" => {}
                other => {
                    return Err(usage(format!("invalid argument ‘{other}’ for ‘--sort’"), USAGE_STATUS));
                }
            },
            "b" | "warning" => drop(words.value()?),
            // Owners are never set, and there are no sparse files, blocks or attributes to care for.
            "o" | "s" | "S" | "B" | "U" | "l" | "none" => {}
            _ => return Err(unknown(word)),
        }
        Ok(())
    }

    /// The directory that is the last to be changed to, and whether names are given.
    pub(super) fn has_names(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, TarStep::Name(_) | TarStep::NamesFrom(_)))
    }

    /// The patterns behind the last name, which are about nothing.
    pub(super) fn idle_patterns(&self) -> Vec<&str> {
        let patterns = self.steps.iter().rev().take_while(|step| !matches!(step, TarStep::Name(_)));
        let mut idle: Vec<&str> = patterns
            .filter_map(|step| match step {
                TarStep::Exclude(pattern) => Some(pattern.text.as_str()),
                _ => None,
            })
            .collect();
        idle.reverse();
        idle
    }
}

/// Reads `NAME`, `NAME:ID` or `ID`.
fn account(text: &str) -> TarAccount {
    match text.split_once(':') {
        Some((name, id)) => TarAccount { name: name.to_owned(), id: id.parse().ok() },
        None => match text.trim_start_matches('+').parse() {
            Ok(id) => TarAccount { name: String::new(), id: Some(id) },
            Err(_) => TarAccount { name: text.to_owned(), id: None },
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(args: &[&str]) -> Result<Options, Ending> {
        parse(&args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn values_of_the_old_style_follow_in_turn() {
        let options = read(&["xfC", "a.tar", "d", "name"]).unwrap();
        assert_eq!(options.archive.as_deref(), Some("a.tar"));
        let steps = &options.steps[..];
        assert!(
            matches!(steps, [TarStep::Directory(d), TarStep::Name(n)] if d == "d" && n == "name"),
            "{steps:?}"
        );
    }

    #[test]
    fn long_options_may_be_cut_where_they_are_alone() {
        let options = read(&["-x", "--strip=2", "--no-same-o"]).unwrap();
        assert_eq!(options.strip, 2);
        for refused in [&["-x", "--no"][..], &["-c", "-x"], &["-f"], &["-y"], &["-cJ"], &["x", "--strip=a"]] {
            assert!(read(refused).is_err(), "{refused:?}");
        }
    }
}
