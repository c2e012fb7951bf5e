//! `mkdir` and `rmdir`.

use async_trait::async_trait;
use eyot::ErrorKind;

use super::mode::ModeChange;
use super::options::{OptionWord, unknown};
use super::quoting::{curly, quoted};
use super::run::{Ending, ProgramRun, ShellProgram, reason};
use crate::memory::node::FileNode;
use crate::memory::walk::Last;

pub(super) struct Mkdir;

#[derive(Debug, Default)]
struct MakeOptions {
    has_parents: bool,
    is_verbose: bool,
    mode: Option<ModeChange>,
    names: Vec<String>,
}

#[async_trait]
impl ShellProgram for Mkdir {
    async fn run(&self, run: &ProgramRun<'_>) -> Result<i32, Ending> {
        let options = parse_make(run)?;
        if options.names.is_empty() {
            return Err(Ending::usage("missing operand"));
        }
        let mut status = 0;
        for name in &options.names {
            if !make(run, &options, name).await? {
                status = 1;
            }
        }
        Ok(status)
    }
}

fn parse_make(run: &ProgramRun<'_>) -> Result<MakeOptions, Ending> {
    let mut options = MakeOptions::default();
    let mut words = run.words();
    let mode = |text: String| {
        let change = ModeChange::parse(&text);
        change.map(Some).ok_or_else(|| Ending::refused(format!("invalid mode {}", curly(&text))))
    };
    while let Some(word) = words.next()? {
        match word {
            OptionWord::Short('p') => options.has_parents = true,
            OptionWord::Short('v') => options.is_verbose = true,
            OptionWord::Short('m') => options.mode = mode(words.value()?)?,
            OptionWord::Operand(name) => options.names.push(name),
            OptionWord::Short(_) => return Err(unknown(&word)),
            OptionWord::Long(name) => match name.as_str() {
                "parents" => options.has_parents = true,
                "verbose" => options.is_verbose = true,
                "mode" => options.mode = mode(words.value()?)?,
                _ => return Err(unknown(&OptionWord::Long(name))),
            },
        }
    }
    Ok(options)
}

/// Makes a directory, and with `-p` those above it. Returns whether it is there now.
async fn make(run: &ProgramRun<'_>, options: &MakeOptions, name: &str) -> Result<bool, Ending> {
    let trimmed = name.trim_end_matches('/');
    let above = trimmed.match_indices('/').map(|(at, _)| &trimmed[..at]);
    let above = above.filter(|path| options.has_parents && !path.is_empty() && !path.ends_with('/'));
    for path in above.chain([name]) {
        run.breathe().await;
        let is_last = path == name;
        let mode = options.mode.as_ref().filter(|_| is_last);
        match make_one(run, path, mode) {
            Ok(()) if options.is_verbose => {
                run.print(format!("{}: created directory {}\n", run.name, quoted(path))).await?;
            }
            Ok(()) => {}
            Err(error) => {
                let is_there = options.has_parents && error.kind() == ErrorKind::AlreadyExists;
                let is_directory = run.kind(path, Last::Follow).is_ok_and(|kind| kind.is_directory());
                if is_there && is_directory {
                    continue;
                }
                // What stands in the way of a directory below it is no directory.
                let why = if is_there && !is_last { "Not a directory" } else { reason(&error) };
                run.complain(format!("cannot create directory {}: {why}", curly(path))).await?;
                return Ok(false);
            }
        }
    }
    Ok(true)
}

fn make_one(run: &ProgramRun<'_>, path: &str, mode: Option<&ModeChange>) -> eyot::Result<()> {
    let mut held = run.hold();
    let place = run.find(&held, path, Last::Keep)?;
    if place.node.is_some() {
        return Err(crate::memory::node::already_exists());
    }
    // A symbolic change starts from what all may do, as in GNU's.
    let mode = match mode {
        None => run.masked(0o777),
        Some(ModeChange::To(mode)) => *mode,
        Some(change) => change.applied(0o777, true, run.mask()),
    };
    held.add(&place, FileNode::directory(mode)).map(drop)
}

pub(super) struct Rmdir;

#[derive(Debug, Default)]
struct RmdirRemoveOptions {
    has_parents: bool,
    is_verbose: bool,
    passes_over_full: bool,
    names: Vec<String>,
}

#[async_trait]
impl ShellProgram for Rmdir {
    async fn run(&self, run: &ProgramRun<'_>) -> Result<i32, Ending> {
        let options = parse_remove(run)?;
        if options.names.is_empty() {
            return Err(Ending::usage("missing operand"));
        }
        let mut status = 0;
        for name in &options.names {
            let mut path = name.trim_end_matches('/');
            while !path.is_empty() {
                run.breathe().await;
                if !remove_empty(run, &options, path).await? {
                    status = 1;
                    break;
                }
                path = match path.rsplit_once('/') {
                    Some((above, _)) if options.has_parents => above.trim_end_matches('/'),
                    _ => "",
                };
            }
        }
        Ok(status)
    }
}

fn parse_remove(run: &ProgramRun<'_>) -> Result<RmdirRemoveOptions, Ending> {
    let mut options = RmdirRemoveOptions::default();
    let mut words = run.words();
    while let Some(word) = words.next()? {
        match word {
            OptionWord::Short('p') => options.has_parents = true,
            OptionWord::Short('v') => options.is_verbose = true,
            OptionWord::Operand(name) => options.names.push(name),
            OptionWord::Short(_) => return Err(unknown(&word)),
            OptionWord::Long(name) => match name.as_str() {
                "parents" => options.has_parents = true,
                "verbose" => options.is_verbose = true,
                "ignore-fail-on-non-empty" => options.passes_over_full = true,
                _ => return Err(unknown(&OptionWord::Long(name))),
            },
        }
    }
    Ok(options)
}

async fn remove_empty(
    run: &ProgramRun<'_>,
    options: &RmdirRemoveOptions,
    path: &str,
) -> Result<bool, Ending> {
    if options.is_verbose {
        run.print(format!("{}: removing directory, {}\n", run.name, quoted(path))).await?;
    }
    let removed = {
        let mut held = run.hold();
        match run.find(&held, path, Last::Keep) {
            Ok(place) => place.found().and_then(|id| {
                held.tree.entries(id)?;
                held.remove_one(&place, false)
            }),
            Err(error) => Err(error),
        }
    };
    let Err(error) = removed else { return Ok(true) };
    let is_full = error.kind() == ErrorKind::AlreadyExists;
    if is_full && options.passes_over_full {
        return Ok(true);
    }
    let why = if is_full { "Directory not empty" } else { reason(&error) };
    run.complain(format!("failed to remove {}: {why}", quoted(path))).await?;
    Ok(false)
}
