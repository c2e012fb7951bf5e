//! `ln`.

use async_trait::async_trait;

use super::answers::UserAnswers;
use super::backup::noted;
use super::canonical::{MissingParts, canonical, relative};
use super::options::{OptionWord, unknown};
use super::quoting::{base_name, quoted};
use super::run::{Ending, ProgramRun, ShellProgram, reason};
use super::target::{Pair, Targets};
use crate::memory::names::bytes_of;
use crate::memory::node::{FileNode, NodeContent, NodeKind};
use crate::memory::walk::Last;

#[derive(Debug, Default)]
struct LinkOptions {
    targets: Targets,
    is_symbolic: bool,
    is_forced: bool,
    is_relative: bool,
    follows: bool,
    asks: bool,
}

pub(super) struct Ln;

#[async_trait]
impl ShellProgram for Ln {
    async fn run(&self, run: &ProgramRun<'_>) -> Result<i32, Ending> {
        let options = parse(run)?;
        let pairs = match options.targets.only_operand() {
            Some(from) => vec![Pair { from: from.to_owned(), to: format!("./{}", base_name(from)) }],
            None => options.targets.pairs(run)?,
        };
        let mut answers = UserAnswers::default();
        let mut status = 0;
        for pair in pairs {
            run.breathe().await;
            if options.asks && run.kind(&pair.to, Last::Keep).is_ok() {
                let question = format!("replace {}", quoted(&pair.to));
                if !answers.ask(run, &question).await? {
                    continue;
                }
            }
            match link(run, &options, &pair) {
                Ok(line) if options.targets.is_verbose => run.print(line).await?,
                Ok(_) => {}
                Err(why) => {
                    status = 1;
                    run.complain(why).await?;
                }
            }
        }
        Ok(status)
    }
}

fn parse(run: &ProgramRun<'_>) -> Result<LinkOptions, Ending> {
    let mut options = LinkOptions::default();
    let mut words = run.words();
    while let Some(word) = words.next()? {
        let Some(word) = options.targets.take(word, &mut words)? else { continue };
        match word {
            OptionWord::Short('s') => options.is_symbolic = true,
            OptionWord::Short('f') => (options.is_forced, options.asks) = (true, false),
            OptionWord::Short('i') => (options.is_forced, options.asks) = (true, true),
            OptionWord::Short('n') => options.targets.keep_links(),
            OptionWord::Short('r') => options.is_relative = true,
            OptionWord::Short('L') => options.follows = true,
            OptionWord::Short('P') => options.follows = false,
            OptionWord::Long(name) => match name.as_str() {
                "symbolic" => options.is_symbolic = true,
                "force" => (options.is_forced, options.asks) = (true, false),
                "interactive" => (options.is_forced, options.asks) = (true, true),
                "no-dereference" => options.targets.keep_links(),
                "relative" => options.is_relative = true,
                "logical" => options.follows = true,
                "physical" => options.follows = false,
                _ => return Err(unknown(&OptionWord::Long(name))),
            },
            other => return Err(unknown(&other)),
        }
    }
    if options.is_relative && !options.is_symbolic {
        return Err(Ending::usage("cannot do --relative without --symbolic"));
    }
    Ok(options)
}

/// Makes a link, and returns the line of `-v`.
fn link(run: &ProgramRun<'_>, options: &LinkOptions, pair: &Pair) -> Result<String, String> {
    let (from, to) = (quoted(&pair.from), quoted(&pair.to));
    let what = if options.is_symbolic { "symbolic link" } else { "hard link" };
    let failed = |error: eyot::Error| format!("failed to create {what} {to}: {}", reason(&error));
    let last = if options.follows { Last::Follow } else { Last::Keep };
    if !options.is_symbolic {
        match run.kind(&pair.from, last) {
            Ok(NodeKind::Directory) => {
                return Err(format!("{}: hard link not allowed for directory", pair.from));
            }
            Ok(_) => {}
            Err(error) => return Err(format!("failed to access {from}: {}", reason(&error))),
        }
    }
    let target = if options.is_relative { relative_target(run, pair) } else { pair.from.clone() };
    let backup = options.targets.backup.make(run, &pair.to).map_err(failed)?;
    let mut held = run.hold();
    let mut place = run.find(&held, &pair.to, Last::Keep).map_err(failed)?;
    if let Some(there) = place.node {
        let is_directory = held.tree.node(there).is_directory();
        if !options.is_forced || is_directory {
            return Err(format!("failed to create {what} {to}: File exists"));
        }
        let source = run.find(&held, &pair.from, last).ok().and_then(|place| place.node);
        if !options.is_symbolic && source == Some(there) {
            return Err(format!("{from} and {to} are the same file"));
        }
        held.remove(&place).map_err(failed)?;
        place.node = None;
    }
    if options.is_symbolic {
        let bytes = bytes_of(target.as_ref()).into_owned();
        held.add(&place, FileNode::new(NodeContent::Link(bytes), 0o777)).map_err(failed)?;
    } else {
        let id = run.find(&held, &pair.from, last).and_then(|place| place.found()).map_err(failed)?;
        held.tree.link(id, &place).map_err(failed)?;
        held.tell(&eyot::WatchEventKind::Created, &place, false);
    }
    let arrow = if options.is_symbolic { "->" } else { "=>" };
    Ok(format!("{to} {arrow} {}{}\n", quoted(&target), noted(backup.as_deref())))
}

/// The target of a link as its own directory sees it.
fn relative_target(run: &ProgramRun<'_>, pair: &Pair) -> String {
    let directory = pair.to.rsplit_once('/').map_or(".", |(directory, _)| directory);
    let directory = if directory.is_empty() { "/" } else { directory };
    match (canonical(run, directory, MissingParts::All), canonical(run, &pair.from, MissingParts::All)) {
        (Ok(base), Ok(target)) => relative(&target, &base),
        _ => pair.from.clone(),
    }
}
