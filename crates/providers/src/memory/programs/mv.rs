//! `mv`.

use async_trait::async_trait;

use super::answers::UserAnswers;
use super::backup::noted;
use super::options::{OptionWord, unknown};
use super::quoting::{base_name, joined, quoted};
use super::run::{Ending, ProgramRun, ShellProgram, reason};
use super::target::{ExistingTarget, Pair, Targets};
use crate::memory::node::NodeKind;
use crate::memory::walk::Last;

#[derive(Debug, Default)]
struct MoveOptions {
    targets: Targets,
    existing: ExistingTarget,
}

pub(super) struct Mv;

#[async_trait]
impl ShellProgram for Mv {
    async fn run(&self, run: &ProgramRun<'_>) -> Result<i32, Ending> {
        let options = parse(run)?;
        let mut answers = UserAnswers::default();
        let mut status = 0;
        for pair in options.targets.pairs(run)? {
            run.breathe().await;
            match move_one(run, &options, &pair, &mut answers).await? {
                Ok(None) => {}
                Ok(Some(line)) => run.print(line).await?,
                Err(why) => {
                    status = 1;
                    run.complain(why).await?;
                }
            }
        }
        Ok(status)
    }
}

fn parse(run: &ProgramRun<'_>) -> Result<MoveOptions, Ending> {
    let mut options = MoveOptions::default();
    let mut words = run.words();
    while let Some(word) = words.next()? {
        let Some(word) = options.targets.take(word, &mut words)? else { continue };
        match word {
            OptionWord::Short('f') => options.existing = ExistingTarget::Replace,
            OptionWord::Short('n') => options.existing = ExistingTarget::Keep,
            OptionWord::Short('i') => options.existing = ExistingTarget::Ask,
            OptionWord::Short('u') => options.existing = ExistingTarget::KeepNewer,
            OptionWord::Long(name) => match name.as_str() {
                "force" => options.existing = ExistingTarget::Replace,
                "no-clobber" => options.existing = ExistingTarget::Keep,
                "interactive" => options.existing = ExistingTarget::Ask,
                "update" => options.existing = ExistingTarget::of_update(&mut words)?,
                "no-copy" => {}
                _ => return Err(unknown(&OptionWord::Long(name))),
            },
            other => return Err(unknown(&other)),
        }
    }
    Ok(options)
}

/// The line that is printed, or the words of what failed.
type MoveOutcome = Result<Option<String>, String>;

async fn move_one(
    run: &ProgramRun<'_>,
    options: &MoveOptions,
    pair: &Pair,
    answers: &mut UserAnswers,
) -> Result<MoveOutcome, Ending> {
    match look(run, options, pair) {
        Ok(MoveStep::Move) => {}
        Ok(MoveStep::Ask) => {
            let question = format!("overwrite {}", quoted(&pair.to));
            if !answers.ask(run, &question).await? {
                return Ok(Ok(None));
            }
        }
        Ok(MoveStep::Skip) => return Ok(Ok(None)),
        Err(why) => return Ok(Err(why)),
    }
    Ok(put(run, options, pair))
}

/// The next step of a move.
enum MoveStep {
    Move,
    Ask,
    Skip,
}

fn look(run: &ProgramRun<'_>, options: &MoveOptions, pair: &Pair) -> Result<MoveStep, String> {
    let (from_name, to_name) = (quoted(&pair.from), quoted(&pair.to));
    let held = run.hold();
    let missing = |error: eyot::Error| format!("cannot stat {from_name}: {}", reason(&error));
    let from = run.find(&held, &pair.from, Last::Keep).map_err(missing)?;
    let id = from.found().map_err(missing)?;
    let source = held.tree.node(id);
    let to = run
        .find(&held, &pair.to, Last::Keep)
        .map_err(|error| format!("cannot move {from_name} to {to_name}: {}", reason(&error)))?;
    if source.is_directory() && to.names.starts_with(&from.names) {
        let inside = || quoted(&joined(&pair.to, base_name(&pair.from)));
        let to_name = if to.node == Some(id) { inside() } else { to_name };
        return Err(format!("cannot move {from_name} to a subdirectory of itself, {to_name}"));
    }
    let Some(there) = to.node else { return Ok(MoveStep::Move) };
    if from.names == to.names {
        return Err(format!("{from_name} and {to_name} are the same file"));
    }
    let target = held.tree.node(there);
    match (source.kind(), target.kind()) {
        (NodeKind::Directory, NodeKind::Directory) => {}
        (NodeKind::Directory, _) => {
            return Err(format!("cannot overwrite non-directory {to_name} with directory {from_name}"));
        }
        (_, NodeKind::Directory) => {
            return Err(format!("cannot overwrite directory {to_name} with non-directory"));
        }
        _ => {}
    }
    Ok(match options.existing {
        ExistingTarget::Keep => MoveStep::Skip,
        ExistingTarget::KeepNewer if target.modified >= source.modified => MoveStep::Skip,
        ExistingTarget::Ask => MoveStep::Ask,
        _ => MoveStep::Move,
    })
}

fn put(run: &ProgramRun<'_>, options: &MoveOptions, pair: &Pair) -> MoveOutcome {
    let (from_name, to_name) = (quoted(&pair.from), quoted(&pair.to));
    let failed = |error: eyot::Error| {
        let why = match error.kind() {
            eyot::ErrorKind::AlreadyExists => "Directory not empty",
            _ => reason(&error),
        };
        format!("cannot move {from_name} to {to_name}: {why}")
    };
    let backup = options.targets.backup.make(run, &pair.to).map_err(failed)?;
    let mut held = run.hold();
    let from = run.find(&held, &pair.from, Last::Keep).map_err(failed)?;
    let to = run.find(&held, &pair.to, Last::Keep).map_err(failed)?;
    if to.node.is_some() && to.node == from.node {
        // Two names of one file: the first one goes.
        held.remove(&from).map_err(failed)?;
    } else {
        held.rename(&from, &to).map_err(failed)?;
    }
    let line = || format!("renamed {from_name} -> {to_name}{}\n", noted(backup.as_deref()));
    Ok(options.targets.is_verbose.then(line))
}
