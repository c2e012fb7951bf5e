//! `chmod`.

use async_trait::async_trait;
use eyot::WatchEventKind;

use super::mode::{ModeChange, letters};
use super::options::{OptionWord, Words, unknown};
use super::quoting::{curly, joined, quoted};
use super::run::{Ending, ProgramRun, ShellProgram, reason};
use crate::memory::names::shown;
use crate::memory::node::{NodeKind, NodeOwner};
use crate::memory::walk::Last;

/// The changes that are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum ChmodReport {
    #[default]
    None,
    Changes,
    All,
}

#[derive(Debug, Default)]
struct ChangeOptions {
    is_recursive: bool,
    is_silent: bool,
    told: ChmodReport,
    reference: Option<String>,
    operands: Vec<String>,
}

pub(super) struct Chmod;

#[async_trait]
impl ShellProgram for Chmod {
    async fn run(&self, run: &ProgramRun<'_>) -> Result<i32, Ending> {
        let mut options = parse(run.args)?;
        let change = match &options.reference {
            Some(name) => {
                let node = run.look(name, Last::Follow).map_err(|error| {
                    Ending::refused(format!(
                        "failed to get attributes of {}: {}",
                        quoted(name),
                        reason(&error)
                    ))
                })?;
                ModeChange::To(node.mode)
            }
            None if options.operands.is_empty() => return Err(Ending::usage("missing operand")),
            None => {
                let mode = options.operands.remove(0);
                if options.operands.is_empty() {
                    return Err(Ending::usage(format!("missing operand after {}", curly(&mode))));
                }
                ModeChange::parse(&mode)
                    .ok_or_else(|| Ending::usage(format!("invalid mode: {}", curly(&mode))))?
            }
        };
        if options.operands.is_empty() {
            return Err(Ending::usage("missing operand"));
        }
        let mut status = 0;
        for name in &options.operands {
            if !change_all(run, &options, &change, name).await? {
                status = 1;
            }
        }
        Ok(status)
    }
}

/// Tells whether a word that begins with `-` is a mode, like `-x`.
fn is_mode(word: &str) -> bool {
    let rest = word.strip_prefix('-').unwrap_or("");
    !rest.is_empty() && rest.chars().all(|letter| "rwxXstugoa,+-=01234567".contains(letter))
}

fn parse(args: &[String]) -> Result<ChangeOptions, Ending> {
    let end = args.iter().position(|word| word == "--").unwrap_or(args.len());
    let mut options = ChangeOptions::default();
    let mode = args[..end].iter().find(|word| is_mode(word)).cloned();
    let mut others = args.to_vec();
    if let Some(mode) = &mode {
        others.remove(args.iter().position(|word| word == mode).unwrap_or(0));
        options.operands.push(mode.clone());
    }
    let mut words = Words::new(&others);
    while let Some(word) = words.next()? {
        match word {
            OptionWord::Short('R') => options.is_recursive = true,
            OptionWord::Short('v') => options.told = ChmodReport::All,
            OptionWord::Short('c') => options.told = ChmodReport::Changes,
            OptionWord::Short('f') => options.is_silent = true,
            OptionWord::Operand(name) => options.operands.push(name),
            OptionWord::Short(_) => return Err(unknown(&word)),
            OptionWord::Long(name) => match name.as_str() {
                "recursive" => options.is_recursive = true,
                "verbose" => options.told = ChmodReport::All,
                "changes" => options.told = ChmodReport::Changes,
                "silent" | "quiet" => options.is_silent = true,
                "reference" => options.reference = Some(words.value()?),
                "preserve-root" | "no-preserve-root" => {}
                _ => return Err(unknown(&OptionWord::Long(name))),
            },
        }
    }
    Ok(options)
}

/// A change that was made: the modes before and after it.
struct ChmodResult {
    before: u32,
    after: u32,
    inside: Vec<String>,
}

async fn change_all(
    run: &ProgramRun<'_>,
    options: &ChangeOptions,
    change: &ModeChange,
    name: &str,
) -> Result<bool, Ending> {
    let mut left = vec![name.to_owned()];
    let mut is_well = true;
    while let Some(path) = left.pop() {
        run.breathe().await;
        let is_operand = path == name;
        if !is_operand && run.kind(&path, Last::Keep).is_ok_and(|kind| kind == NodeKind::Link) {
            continue;
        }
        match change_one(run, change, &path, options.is_recursive) {
            Ok(changed) => {
                tell(run, options.told, &path, &changed).await?;
                left.extend(changed.inside.iter().rev().map(|inner| joined(&path, inner)));
            }
            Err(why) => {
                is_well = false;
                if !options.is_silent {
                    run.complain(why).await?;
                }
            }
        }
    }
    Ok(is_well)
}

fn change_one(
    run: &ProgramRun<'_>,
    change: &ModeChange,
    path: &str,
    is_recursive: bool,
) -> Result<ChmodResult, String> {
    let mut held = run.hold();
    let missing = |error: eyot::Error| format!("cannot access {}: {}", quoted(path), reason(&error));
    let place = run.find(&held, path, Last::Follow).map_err(missing)?;
    let is_dangling = || run.find(&held, path, Last::Keep).is_ok_and(|place| place.node.is_some());
    if place.node.is_none() && is_dangling() {
        return Err(format!("cannot operate on dangling symlink {}", quoted(path)));
    }
    let id = place.found().map_err(missing)?;
    let node = held.tree.node(id);
    if node.owner != NodeOwner::User {
        return Err(format!("changing permissions of {}: Operation not permitted", quoted(path)));
    }
    let is_directory = node.is_directory();
    let entries = held.tree.entries(id).ok().filter(|_| is_recursive);
    let inside = entries.map(|entries| entries.keys().map(|name| shown(name)).collect()).unwrap_or_default();
    let before = node.mode;
    let after = change.applied(before, is_directory, run.mask());
    held.tree.node_mut(id).mode = after;
    held.tell(&WatchEventKind::Modified, &place, is_directory);
    Ok(ChmodResult { before, after, inside })
}

async fn tell(
    run: &ProgramRun<'_>,
    told: ChmodReport,
    path: &str,
    changed: &ChmodResult,
) -> Result<(), Ending> {
    let ChmodResult { before, after, .. } = changed;
    let mode = |mode: &u32| format!("{mode:04o} ({})", letters(*mode));
    let line = match told {
        ChmodReport::All | ChmodReport::Changes if before != after => {
            format!("mode of {} changed from {} to {}\n", quoted(path), mode(before), mode(after))
        }
        ChmodReport::All => format!("mode of {} retained as {}\n", quoted(path), mode(before)),
        _ => return Ok(()),
    };
    run.print(line).await
}
