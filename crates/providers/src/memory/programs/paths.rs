//! `readlink`, `realpath`, `basename` and `dirname`.

use async_trait::async_trait;

use super::canonical::{MissingParts, canonical, relative, tidy};
use super::options::{OptionWord, unknown};
use super::quoting::{base_name, curly};
use super::run::{Ending, ProgramRun, ShellProgram, reason};
use crate::memory::names::shown;
use crate::memory::node::{NodeContent, not_regular};
use crate::memory::walk::Last;

pub(super) struct Readlink;

#[derive(Debug, Default)]
struct ReadOptions {
    canonical: Option<MissingParts>,
    has_no_end: bool,
    is_verbose: bool,
    is_zero: bool,
    names: Vec<String>,
}

#[async_trait]
impl ShellProgram for Readlink {
    async fn run(&self, run: &ProgramRun<'_>) -> Result<i32, Ending> {
        let mut options = ReadOptions::default();
        let mut words = run.words();
        while let Some(word) = words.next()? {
            match &word {
                OptionWord::Short('f') => options.canonical = Some(MissingParts::Last),
                OptionWord::Short('e') => options.canonical = Some(MissingParts::None),
                OptionWord::Short('m') => options.canonical = Some(MissingParts::All),
                OptionWord::Short('n') => options.has_no_end = true,
                OptionWord::Short('v') => options.is_verbose = true,
                OptionWord::Short('q' | 's') => options.is_verbose = false,
                OptionWord::Short('z') => options.is_zero = true,
                OptionWord::Operand(name) => options.names.push(name.clone()),
                OptionWord::Short(_) => return Err(unknown(&word)),
                OptionWord::Long(name) => match name.as_str() {
                    "canonicalize" => options.canonical = Some(MissingParts::Last),
                    "canonicalize-existing" => options.canonical = Some(MissingParts::None),
                    "canonicalize-missing" => options.canonical = Some(MissingParts::All),
                    "no-newline" => options.has_no_end = true,
                    "verbose" => options.is_verbose = true,
                    "quiet" | "silent" => options.is_verbose = false,
                    "zero" => options.is_zero = true,
                    _ => return Err(unknown(&word)),
                },
            }
        }
        if options.names.is_empty() {
            return Err(Ending::usage("missing operand"));
        }
        let has_no_end = options.has_no_end && options.names.len() == 1;
        let end = if has_no_end { "" } else { end_of(options.is_zero) };
        let mut status = 0;
        for name in &options.names {
            let path = match options.canonical {
                Some(missing) => canonical(run, name, missing),
                None => target(run, name),
            };
            match path {
                Ok(path) => run.print(format!("{path}{end}")).await?,
                Err(error) => {
                    status = 1;
                    if options.is_verbose {
                        run.complain(format!("{name}: {}", reason(&error))).await?;
                    }
                }
            }
        }
        Ok(status)
    }
}

fn end_of(is_zero: bool) -> &'static str {
    if is_zero { "\0" } else { "\n" }
}

fn target(run: &ProgramRun<'_>, name: &str) -> eyot::Result<String> {
    match run.look(name, Last::Keep)?.content {
        NodeContent::Link(target) => Ok(shown(&target)),
        _ => Err(not_regular()),
    }
}

pub(super) struct Realpath;

#[derive(Debug)]
struct RealOptions {
    missing: MissingParts,
    keeps_links: bool,
    is_quiet: bool,
    is_zero: bool,
    relative_to: Option<String>,
    relative_base: Option<String>,
    names: Vec<String>,
}

#[async_trait]
impl ShellProgram for Realpath {
    async fn run(&self, run: &ProgramRun<'_>) -> Result<i32, Ending> {
        let options = parse_real(run)?;
        if options.names.is_empty() {
            return Err(Ending::usage("missing operand"));
        }
        let base = |name: &Option<String>| -> Result<Option<String>, Ending> {
            let Some(name) = name else { return Ok(None) };
            let path = canonical(run, name, options.missing);
            path.map(Some).map_err(|error| Ending::refused(format!("{name}: {}", reason(&error))))
        };
        let (to, below) = (base(&options.relative_to)?, base(&options.relative_base)?);
        let mut status = 0;
        for name in &options.names {
            match real(run, &options, name) {
                Ok(path) => {
                    let is_below = below.as_ref().is_none_or(|below| is_below(&path, below));
                    let shown = match to.as_ref().or(below.as_ref()) {
                        Some(base) if is_below => relative(&path, base),
                        _ => path,
                    };
                    run.print(format!("{shown}{}", end_of(options.is_zero))).await?;
                }
                Err(error) => {
                    status = 1;
                    if !options.is_quiet {
                        run.complain(format!("{name}: {}", reason(&error))).await?;
                    }
                }
            }
        }
        Ok(status)
    }
}

fn parse_real(run: &ProgramRun<'_>) -> Result<RealOptions, Ending> {
    let mut options = RealOptions {
        missing: MissingParts::Last,
        keeps_links: false,
        is_quiet: false,
        is_zero: false,
        relative_to: None,
        relative_base: None,
        names: Vec::new(),
    };
    let mut words = run.words();
    while let Some(word) = words.next()? {
        match &word {
            OptionWord::Short('e') => options.missing = MissingParts::None,
            OptionWord::Short('m') => options.missing = MissingParts::All,
            OptionWord::Short('L' | 'P') => options.keeps_links = false,
            OptionWord::Short('s') => options.keeps_links = true,
            OptionWord::Short('q') => options.is_quiet = true,
            OptionWord::Short('z') => options.is_zero = true,
            OptionWord::Operand(name) => options.names.push(name.clone()),
            OptionWord::Short(_) => return Err(unknown(&word)),
            OptionWord::Long(name) => match name.as_str() {
                "canonicalize-existing" => options.missing = MissingParts::None,
                "canonicalize-missing" => options.missing = MissingParts::All,
                "logical" | "physical" => options.keeps_links = false,
                "strip" | "no-symlinks" => options.keeps_links = true,
                "quiet" => options.is_quiet = true,
                "zero" => options.is_zero = true,
                "relative-to" => options.relative_to = Some(words.value()?),
                "relative-base" => options.relative_base = Some(words.value()?),
                _ => return Err(unknown(&word)),
            },
        }
    }
    Ok(options)
}

fn real(run: &ProgramRun<'_>, options: &RealOptions, name: &str) -> eyot::Result<String> {
    let path = canonical(run, name, options.missing)?;
    Ok(if options.keeps_links { tidy(&shown(&run.path(name))) } else { path })
}

fn is_below(path: &str, base: &str) -> bool {
    let base = base.trim_end_matches('/');
    path.strip_prefix(base).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

pub(super) struct Basename;

#[async_trait]
impl ShellProgram for Basename {
    async fn run(&self, run: &ProgramRun<'_>) -> Result<i32, Ending> {
        let (mut is_several, mut is_zero, mut suffix, mut names) = (false, false, None, Vec::new());
        let mut words = run.words();
        while let Some(word) = words.next()? {
            match &word {
                OptionWord::Short('a') => is_several = true,
                OptionWord::Short('s') => suffix = Some(words.value()?),
                OptionWord::Short('z') => is_zero = true,
                OptionWord::Operand(name) => names.push(name.clone()),
                OptionWord::Short(_) => return Err(unknown(&word)),
                OptionWord::Long(name) => match name.as_str() {
                    "multiple" => is_several = true,
                    "suffix" => suffix = Some(words.value()?),
                    "zero" => is_zero = true,
                    _ => return Err(unknown(&word)),
                },
            }
        }
        if names.is_empty() {
            return Err(Ending::usage("missing operand"));
        }
        if !is_several && suffix.is_none() {
            if let Some(extra) = names.get(2) {
                return Err(Ending::usage(format!("extra operand {}", curly(extra))));
            }
            suffix = names.get(1).cloned();
            names.truncate(1);
        }
        for name in &names {
            let base = base_name(name);
            let suffix = suffix.as_deref().filter(|suffix| *suffix != base);
            let base = suffix.and_then(|suffix| base.strip_suffix(suffix)).unwrap_or(base);
            run.print(format!("{base}{}", end_of(is_zero))).await?;
        }
        Ok(0)
    }
}

pub(super) struct Dirname;

#[async_trait]
impl ShellProgram for Dirname {
    async fn run(&self, run: &ProgramRun<'_>) -> Result<i32, Ending> {
        let (mut is_zero, mut names) = (false, Vec::new());
        let mut words = run.words();
        while let Some(word) = words.next()? {
            match &word {
                OptionWord::Short('z') => is_zero = true,
                OptionWord::Operand(name) => names.push(name.clone()),
                OptionWord::Long(name) if name == "zero" => is_zero = true,
                _ => return Err(unknown(&word)),
            }
        }
        if names.is_empty() {
            return Err(Ending::usage("missing operand"));
        }
        for name in &names {
            run.print(format!("{}{}", directory_of(name), end_of(is_zero))).await?;
        }
        Ok(0)
    }
}

fn directory_of(name: &str) -> &str {
    match name.trim_end_matches('/').rsplit_once('/') {
        Some((directory, _)) if directory.trim_end_matches('/').is_empty() => "/",
        Some((directory, _)) => directory.trim_end_matches('/'),
        None if name.starts_with('/') => "/",
        None => ".",
    }
}
