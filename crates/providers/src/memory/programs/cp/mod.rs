//! `cp`.

mod options;
mod put;

use std::collections::{HashMap, HashSet};
use std::time::SystemTime;

use async_trait::async_trait;

use super::answers::UserAnswers;
use super::backup::noted;
use super::quoting::{joined, quoted};
use super::run::{Ending, ProgramRun, ShellProgram, reason};
use super::target::{ExistingTarget, Pair};
use crate::memory::names::shown;
use crate::memory::node::{FileNode, NodeContent, NodeId, NodeKind};
use crate::memory::place::Place;
use crate::memory::walk::Last;
use options::{CopyOptions, parse};
use put::{CopySource, SourceContent};

pub(super) struct Cp;

#[async_trait]
impl ShellProgram for Cp {
    async fn run(&self, run: &ProgramRun<'_>) -> Result<i32, Ending> {
        let options = parse(run)?;
        let pairs = options.pairs(run)?;
        let mut copy = CopyRun {
            run,
            options: &options,
            status: 0,
            answers: UserAnswers::default(),
            linked: HashMap::new(),
            made: HashSet::new(),
            copied: HashSet::new(),
            left: Vec::new(),
        };
        for pair in pairs {
            if options.has_parents && !copy.make_parents(&pair).await? {
                continue;
            }
            copy.copy_all(pair).await?;
        }
        Ok(copy.status)
    }
}

/// A part of a copy that is still to be made.
enum CopyStep {
    Copy {
        pair: Pair,
        is_operand: bool,
    },
    /// A directory gets its mode and time once everything is in it.
    Finish {
        to: String,
        mode: u32,
        modified: SystemTime,
        is_new: bool,
    },
}

/// A run of `cp`.
struct CopyRun<'a, 'r> {
    run: &'a ProgramRun<'r>,
    options: &'a CopyOptions,
    status: i32,
    answers: UserAnswers,
    /// The names that files with several names have got.
    linked: HashMap<NodeId, String>,
    /// The files that this run has made for its operands.
    made: HashSet<NodeId>,
    /// The operands that were copied.
    copied: HashSet<(NodeId, String)>,
    left: Vec<CopyStep>,
}

impl CopyRun<'_, '_> {
    async fn fail(&mut self, reason: impl AsRef<str>) -> Result<(), Ending> {
        self.status = 1;
        self.run.complain(reason).await
    }

    async fn copy_all(&mut self, pair: Pair) -> Result<(), Ending> {
        self.left.push(CopyStep::Copy { pair, is_operand: true });
        while let Some(step) = self.left.pop() {
            self.run.breathe().await;
            match step {
                CopyStep::Copy { pair, is_operand } => self.copy(pair, is_operand).await?,
                CopyStep::Finish { to, mode, modified, is_new } => self.finish(&to, mode, modified, is_new),
            }
        }
        Ok(())
    }

    async fn copy(&mut self, pair: Pair, is_operand: bool) -> Result<(), Ending> {
        let mut source = match self.source(&pair.from, self.options.follows(is_operand)) {
            Ok(source) => source,
            // The shell holds some files itself, like those of a substituted process.
            Err(error) => match self.run.read(&pair.from).await? {
                Ok(bytes) if pair.from != "-" => CopySource::of_bytes(bytes.to_vec()),
                _ => {
                    return self
                        .fail(format!("cannot stat {}: {}", quoted(&pair.from), reason(&error)))
                        .await;
                }
            },
        };
        if matches!(source.content, SourceContent::Device) && !self.options.is_recursive {
            source.content = match self.run.read(&pair.from).await? {
                Ok(bytes) => SourceContent::File(bytes.to_vec().into()),
                Err(why) => SourceContent::Unreadable(why.reason()),
            };
        }
        let seen = source.id.filter(|_| is_operand).map(|id| (id, pair.to.clone()));
        if seen.is_some_and(|seen| !self.copied.insert(seen)) {
            let what =
                if matches!(source.content, SourceContent::Directory(_)) { "directory" } else { "file" };
            let from = quoted(&pair.from);
            return self
                .run
                .complain(format!("warning: source {what} {from} specified more than once"))
                .await;
        }
        match &source.content {
            SourceContent::Directory(_) if !self.options.is_recursive => {
                let from = quoted(&pair.from);
                self.fail(format!("-r not specified; omitting directory {from}")).await
            }
            SourceContent::Directory(_) => self.copy_directory(source, pair).await,
            _ => self.copy_one(source, pair, is_operand).await,
        }
    }

    fn source(&self, name: &str, last: Last) -> eyot::Result<CopySource> {
        let held = self.run.hold();
        let place = self.run.find(&held, name, last)?;
        let id = place.found()?;
        let node = held.tree.node(id);
        let content = match &node.content {
            NodeContent::File(_) => match held.content_of(id) {
                Ok(content) => SourceContent::File(content),
                Err(error) => SourceContent::Unreadable(reason(&error)),
            },
            NodeContent::Directory(entries) => SourceContent::Directory(entries.keys().cloned().collect()),
            NodeContent::Link(target) => SourceContent::Link(target.clone()),
            NodeContent::Fifo(_) => SourceContent::Fifo,
            NodeContent::Device(_) => SourceContent::Device,
        };
        let (mode, modified, links) = (node.mode, node.modified, node.names);
        Ok(CopySource { id: Some(id), names: place.names, content, mode, modified, links })
    }

    /// The place of a target, and the kind of what is there.
    fn target(&self, name: &str, last: Last) -> eyot::Result<(Place, Option<NodeKind>)> {
        let held = self.run.hold();
        let place = self.run.find(&held, name, last)?;
        let kind = place.node.map(|id| held.tree.node(id).kind());
        Ok((place, kind))
    }

    async fn copy_directory(&mut self, source: CopySource, pair: Pair) -> Result<(), Ending> {
        let SourceContent::Directory(names) = &source.content else { return Ok(()) };
        let (from, to) = (quoted(&pair.from), quoted(&pair.to));
        let (place, kind) = match self.target(&pair.to, Last::Follow) {
            Ok(found) => found,
            Err(error) => {
                return self.fail(format!("cannot create directory {to}: {}", reason(&error))).await;
            }
        };
        if place.names.starts_with(&source.names) && place.node != source.id {
            return self.fail(format!("cannot copy a directory, {from}, into itself, {to}")).await;
        }
        if place.node == source.id {
            return self.fail(format!("{from} and {to} are the same file")).await;
        }
        match kind {
            Some(NodeKind::Directory) => {}
            Some(_) => {
                return self.fail(format!("cannot overwrite non-directory {to} with directory {from}")).await;
            }
            None => {
                let mode = self.run.masked(source.mode & 0o777) | 0o700;
                let added = self.run.hold().add(&place, FileNode::directory(mode));
                if let Err(error) = added {
                    return self.fail(format!("cannot create directory {to}: {}", reason(&error))).await;
                }
                if self.options.targets.is_verbose {
                    self.run.print(format!("{from} -> {to}\n")).await?;
                }
            }
        }
        self.left.push(CopyStep::Finish {
            to: pair.to.clone(),
            mode: source.mode,
            modified: source.modified,
            is_new: kind.is_none(),
        });
        for name in names.iter().rev() {
            let name = shown(name);
            let pair = Pair { from: joined(&pair.from, &name), to: joined(&pair.to, &name) };
            self.left.push(CopyStep::Copy { pair, is_operand: false });
        }
        Ok(())
    }

    async fn copy_one(&mut self, source: CopySource, pair: Pair, is_operand: bool) -> Result<(), Ending> {
        let (from, to) = (quoted(&pair.from), quoted(&pair.to));
        let is_link = matches!(source.content, SourceContent::Link(_)) || self.options.makes_links;
        let last = if is_link || self.options.makes_hard_links { Last::Keep } else { Last::Follow };
        let (place, kind) = match self.target(&pair.to, last) {
            Ok(found) => found,
            Err(error) => {
                return self.fail(format!("cannot create regular file {to}: {}", reason(&error))).await;
            }
        };
        if kind == Some(NodeKind::Directory) {
            return self.fail(format!("cannot overwrite directory {to} with non-directory")).await;
        }
        if let Some(there) = place.node {
            if Some(there) == source.id {
                if self.options.makes_hard_links || self.options.existing == ExistingTarget::Keep {
                    return Ok(());
                }
                return self.fail(format!("{from} and {to} are the same file")).await;
            }
            if self.made.contains(&there) && !self.options.targets.backup.is_wanted() {
                return self.fail(format!("will not overwrite just-created {to} with {from}")).await;
            }
            if !self.may_replace(&source, &pair, there).await? {
                return Ok(());
            }
        } else if last == Last::Follow
            && self.run.kind(&pair.to, Last::Keep).is_ok()
            && !self.options.removes_first
        {
            return self.fail(format!("not writing through dangling symlink {to}")).await;
        }
        let backup = match self.options.targets.backup.make(self.run, &pair.to) {
            Ok(backup) => backup,
            Err(error) => return self.fail(format!("cannot backup {to}: {}", reason(&error))).await,
        };
        if self.options.targets.is_verbose {
            self.run.print(format!("{from} -> {to}{}\n", noted(backup.as_deref()))).await?;
        }
        match self.put(&source, &pair) {
            Ok(id) => {
                if is_operand {
                    self.made.insert(id);
                }
                Ok(())
            }
            Err(why) => self.fail(why).await,
        }
    }

    /// Tells whether what is at a target may be replaced.
    async fn may_replace(&mut self, source: &CopySource, pair: &Pair, there: NodeId) -> Result<bool, Ending> {
        Ok(match self.options.existing {
            ExistingTarget::Replace => true,
            ExistingTarget::Keep => false,
            ExistingTarget::KeepNewer => {
                let held = self.run.hold();
                !held.tree.has(there) || held.tree.node(there).modified < source.modified
            }
            ExistingTarget::Ask => {
                let question = format!("overwrite {}", quoted(&pair.to));
                self.answers.ask(self.run, &question).await?
            }
        })
    }

    fn finish(&self, to: &str, mode: u32, modified: SystemTime, is_new: bool) {
        let mut held = self.run.hold();
        let Ok(id) = self.run.find(&held, to, Last::Follow).and_then(|place| place.found()) else { return };
        let node = held.tree.node_mut(id);
        if self.options.keeps_mode {
            node.mode = mode & 0o7777;
        } else if is_new {
            node.mode = self.run.masked(mode & 0o777);
        }
        if self.options.keeps_times {
            node.modified = modified;
        }
    }

    /// Makes the directories that a source has above it, below the target.
    async fn make_parents(&mut self, pair: &Pair) -> Result<bool, Ending> {
        let from = pair.from.trim_matches('/');
        let Some(base) = pair.to.strip_suffix(from) else { return Ok(true) };
        for (at, _) in from.match_indices('/') {
            let directory = format!("{base}{}", &from[..at]);
            let made = {
                let mut held = self.run.hold();
                match self.run.find(&held, &directory, Last::Follow) {
                    Ok(place) if place.node.is_some() => Ok(false),
                    Ok(place) => held.add(&place, FileNode::directory(self.run.masked(0o777))).map(|_| true),
                    Err(error) => Err(error),
                }
            };
            match made {
                Ok(is_new) if is_new && self.options.targets.is_verbose => {
                    self.run.print(format!("{} -> {directory}\n", &from[..at])).await?;
                }
                Ok(_) => {}
                Err(error) => {
                    let directory = quoted(&directory);
                    self.fail(format!("cannot make directory {directory}: {}", reason(&error))).await?;
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}
