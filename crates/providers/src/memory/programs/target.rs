//! Sources and their target, as `cp`, `mv` and `ln` read them from the command line.

use super::backup::Backup;
use super::options::{OptionWord, Words};
use super::quoting::{base_name, joined, quoted};
use super::run::{Ending, ProgramRun, reason};
use crate::memory::walk::Last;

/// The part of the command line that the three have in common.
#[derive(Debug, Default)]
pub(super) struct Targets {
    directory: Option<String>,
    /// The target is never a directory to put something into.
    is_plain: bool,
    /// A link to a directory is a target itself.
    keeps_links: bool,
    strips_slashes: bool,
    pub is_verbose: bool,
    pub backup: Backup,
    operands: Vec<String>,
}

/// The treatment of an existing target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum ExistingTarget {
    #[default]
    Replace,
    Keep,
    KeepNewer,
    Ask,
}

impl ExistingTarget {
    /// Reads the value of `--update`.
    pub(super) fn of_update(words: &mut Words) -> Result<Self, Ending> {
        match words.attached()?.as_deref() {
            None | Some("older") => Ok(Self::KeepNewer),
            Some("all") => Ok(Self::Replace),
            Some("none" | "none-fail") => Ok(Self::Keep),
            Some(other) => Err(Ending::usage(format!("invalid argument ‘{other}’ for ‘--update’"))),
        }
    }
}

/// A source and the name that it gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pair {
    pub from: String,
    pub to: String,
}

impl Targets {
    /// Takes a word that all three know, and returns any other.
    pub(super) fn take(&mut self, word: OptionWord, words: &mut Words) -> Result<Option<OptionWord>, Ending> {
        match &word {
            OptionWord::Operand(name) => self.operands.push(name.clone()),
            OptionWord::Short('t') => self.directory = Some(words.value()?),
            OptionWord::Short('T') => self.is_plain = true,
            OptionWord::Short('v') => self.is_verbose = true,
            OptionWord::Short('b') => self.backup.choose(None)?,
            OptionWord::Short('S') => self.backup.set_suffix(words.value()?),
            OptionWord::Long(name) => match name.as_str() {
                "target-directory" => self.directory = Some(words.value()?),
                "no-target-directory" => self.is_plain = true,
                "strip-trailing-slashes" => self.strips_slashes = true,
                "verbose" => self.is_verbose = true,
                "backup" => self.backup.choose(words.attached()?.as_deref())?,
                "suffix" => self.backup.set_suffix(words.value()?),
                _ => return Ok(Some(word)),
            },
            OptionWord::Short(_) => return Ok(Some(word)),
        }
        Ok(None)
    }

    /// Treats a link to a directory as a target itself, as `ln -n` does.
    pub(super) fn keep_links(&mut self) {
        self.keeps_links = true;
    }

    /// The only operand, if there is one only and no directory.
    pub(super) fn only_operand(&self) -> Option<&str> {
        match self.operands.as_slice() {
            [only] if self.directory.is_none() && !self.is_plain => Some(only),
            _ => None,
        }
    }

    /// The directory that everything goes into, and the sources.
    pub(super) fn directory_and_sources(
        &self,
        run: &ProgramRun<'_>,
    ) -> Result<Option<(String, &[String])>, Ending> {
        if self.operands.is_empty() {
            return Err(Ending::usage("missing file operand"));
        }
        if let Some(directory) = &self.directory {
            if self.is_plain {
                return Err(Ending::refused(
                    "cannot combine --target-directory (-t) and --no-target-directory (-T)",
                ));
            }
            return match self.why_no_directory(run, directory) {
                None => Ok(Some((directory.clone(), &self.operands))),
                Some(why) => Err(Ending::refused(format!("target directory {}: {why}", quoted(directory)))),
            };
        }
        let Some((last, sources)) = self.operands.split_last() else { return Ok(None) };
        if sources.is_empty() {
            return Err(Ending::usage(format!("missing destination file operand after {}", quoted(last))));
        }
        if self.is_plain {
            return match sources.get(1) {
                Some(_) => Err(Ending::usage(format!("extra operand {}", quoted(&self.operands[2])))),
                None => Ok(None),
            };
        }
        match self.why_no_directory(run, last) {
            None => Ok(Some((last.clone(), sources))),
            Some(why) if sources.len() > 1 => Err(Ending::refused(format!("target {}: {why}", quoted(last)))),
            Some(_) => Ok(None),
        }
    }

    /// Every source with the name that it gets.
    pub(super) fn pairs(&self, run: &ProgramRun<'_>) -> Result<Vec<Pair>, Ending> {
        let Some((directory, sources)) = self.directory_and_sources(run)? else {
            let pair = Pair { from: self.stripped(&self.operands[0]), to: self.operands[1].clone() };
            return Ok(vec![pair]);
        };
        let pair =
            |source: &String| Pair { from: self.stripped(source), to: joined(&directory, base_name(source)) };
        Ok(sources.iter().map(pair).collect())
    }

    fn stripped(&self, source: &str) -> String {
        let trimmed = source.trim_end_matches('/');
        if self.strips_slashes && !trimmed.is_empty() { trimmed.to_owned() } else { source.to_owned() }
    }

    /// Says why a name leads to no directory, if it does not.
    fn why_no_directory(&self, run: &ProgramRun<'_>, name: &str) -> Option<&'static str> {
        let last = if self.keeps_links { Last::Keep } else { Last::Follow };
        match run.kind(name, last) {
            Ok(kind) if kind.is_directory() => None,
            Ok(_) => Some("Not a directory"),
            Err(error) => Some(reason(&error)),
        }
    }
}
