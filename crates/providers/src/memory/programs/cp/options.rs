//! The command line of `cp`.

use super::super::options::{OptionWord, Words, unknown};
use super::super::quoting::joined;
use super::super::run::{Ending, ProgramRun};
use super::super::target::{ExistingTarget, Pair, Targets};
use crate::memory::walk::Last;

/// The links that are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CopyFollow {
    All,
    Operands,
    None,
}

#[derive(Debug, Default)]
pub(super) struct CopyOptions {
    pub targets: Targets,
    pub follow: Option<CopyFollow>,
    pub existing: ExistingTarget,
    pub is_recursive: bool,
    pub keeps_mode: bool,
    pub keeps_times: bool,
    pub keeps_hard_links: bool,
    pub removes_first: bool,
    pub has_parents: bool,
    pub makes_links: bool,
    pub makes_hard_links: bool,
    pub copies_no_data: bool,
}

pub(super) fn parse(run: &ProgramRun<'_>) -> Result<CopyOptions, Ending> {
    let mut options = CopyOptions::default();
    let mut words = run.words();
    while let Some(word) = words.next()? {
        let Some(word) = options.targets.take(word, &mut words)? else { continue };
        match word {
            OptionWord::Short('R' | 'r') => options.is_recursive = true,
            OptionWord::Short('a') => options.archive(),
            OptionWord::Short('d') => {
                options.follow = Some(CopyFollow::None);
                options.keeps_hard_links = true;
            }
            OptionWord::Short('P') => options.follow = Some(CopyFollow::None),
            OptionWord::Short('L') => options.follow = Some(CopyFollow::All),
            OptionWord::Short('H') => options.follow = Some(CopyFollow::Operands),
            OptionWord::Short('p') => (options.keeps_mode, options.keeps_times) = (true, true),
            OptionWord::Short('n') => options.existing = ExistingTarget::Keep,
            OptionWord::Short('u') => options.existing = ExistingTarget::KeepNewer,
            OptionWord::Short('i') => options.existing = ExistingTarget::Ask,
            OptionWord::Short('s') => options.makes_links = true,
            OptionWord::Short('l') => options.makes_hard_links = true,
            // There is one file system, and what can't be opened can't be removed either.
            OptionWord::Short('f' | 'x') => {}
            OptionWord::Long(name) => options.take_long(&name, &mut words)?,
            other => return Err(unknown(&other)),
        }
    }
    Ok(options)
}

impl CopyOptions {
    fn archive(&mut self) {
        self.is_recursive = true;
        self.follow = Some(CopyFollow::None);
        (self.keeps_mode, self.keeps_times, self.keeps_hard_links) = (true, true, true);
    }

    fn take_long(&mut self, name: &str, words: &mut Words) -> Result<(), Ending> {
        match name {
            "recursive" => self.is_recursive = true,
            "archive" => self.archive(),
            "no-dereference" => self.follow = Some(CopyFollow::None),
            "dereference" => self.follow = Some(CopyFollow::All),
            "no-clobber" => self.existing = ExistingTarget::Keep,
            "interactive" => self.existing = ExistingTarget::Ask,
            "update" => self.existing = ExistingTarget::of_update(words)?,
            "preserve" => self.preserve(words.attached()?.as_deref().unwrap_or("mode,timestamps"), true)?,
            "no-preserve" => self.preserve(&words.value()?, false)?,
            "parents" => self.has_parents = true,
            "symbolic-link" => self.makes_links = true,
            "link" => self.makes_hard_links = true,
            "attributes-only" => self.copies_no_data = true,
            "remove-destination" => self.removes_first = true,
            "force" | "one-file-system" => {}
            "reflink" | "sparse" => drop(words.attached()?),
            other => return Err(unknown(&OptionWord::Long(other.to_owned()))),
        }
        Ok(())
    }

    fn preserve(&mut self, list: &str, is_kept: bool) -> Result<(), Ending> {
        for name in list.split(',') {
            match name {
                "mode" => self.keeps_mode = is_kept,
                "timestamps" => self.keeps_times = is_kept,
                "links" => self.keeps_hard_links = is_kept,
                "ownership" | "context" | "xattr" => {}
                "all" => {
                    (self.keeps_mode, self.keeps_times, self.keeps_hard_links) = (is_kept, is_kept, is_kept);
                }
                other => return Err(bad_argument(other, "--preserve")),
            }
        }
        Ok(())
    }

    /// The sources with their targets.
    pub(super) fn pairs(&self, run: &ProgramRun<'_>) -> Result<Vec<Pair>, Ending> {
        if !self.has_parents {
            return self.targets.pairs(run);
        }
        let Some((directory, sources)) = self.targets.directory_and_sources(run)? else {
            return Err(Ending::usage("with --parents, the destination must be a directory"));
        };
        let pair =
            |from: &String| Pair { from: from.clone(), to: joined(&directory, from.trim_matches('/')) };
        Ok(sources.iter().map(pair).collect())
    }

    /// Tells whether a link is followed: a copy of directories copies links.
    pub(super) fn follows(&self, is_operand: bool) -> Last {
        let usual =
            if self.is_recursive || self.makes_hard_links { CopyFollow::None } else { CopyFollow::All };
        match self.follow.unwrap_or(usual) {
            CopyFollow::All => Last::Follow,
            CopyFollow::Operands if is_operand => Last::Follow,
            CopyFollow::Operands | CopyFollow::None => Last::Keep,
        }
    }
}

fn bad_argument(argument: &str, option: &str) -> Ending {
    Ending::usage(format!("invalid argument ‘{argument}’ for ‘{option}’"))
}
