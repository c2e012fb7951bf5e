//! `rm`.

use async_trait::async_trait;

use super::answers::UserAnswers;
use super::options::{OptionWord, unknown};
use super::quoting::{base_name, joined, quoted};
use super::run::{Ending, ProgramRun, ShellProgram, reason};
use crate::memory::names::shown;
use crate::memory::node::NodeKind;
use crate::memory::walk::Last;

/// The questions that are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Questions {
    #[default]
    None,
    /// One, before many files or a directory.
    Once,
    Each,
}

#[derive(Debug, Default)]
struct RmRemoveOptions {
    is_forced: bool,
    is_recursive: bool,
    takes_empty: bool,
    is_verbose: bool,
    root_too: bool,
    questions: Questions,
    names: Vec<String>,
}

pub(super) struct Rm;

#[async_trait]
impl ShellProgram for Rm {
    async fn run(&self, run: &ProgramRun<'_>) -> Result<i32, Ending> {
        let options = parse(run)?;
        if options.names.is_empty() {
            return if options.is_forced { Ok(0) } else { Err(Ending::usage("missing operand")) };
        }
        let mut removing = RmRun { run, options: &options, answers: UserAnswers::default(), status: 0 };
        if options.questions == Questions::Once && !removing.may_begin().await? {
            return Ok(0);
        }
        for name in &options.names {
            run.breathe().await;
            removing.remove(name).await?;
        }
        Ok(removing.status)
    }
}

fn parse(run: &ProgramRun<'_>) -> Result<RmRemoveOptions, Ending> {
    let mut options = RmRemoveOptions::default();
    let mut words = run.words();
    while let Some(word) = words.next()? {
        match word {
            OptionWord::Short('f') => (options.is_forced, options.questions) = (true, Questions::None),
            OptionWord::Short('i') => (options.is_forced, options.questions) = (false, Questions::Each),
            OptionWord::Short('I') => (options.is_forced, options.questions) = (false, Questions::Once),
            OptionWord::Short('r' | 'R') => options.is_recursive = true,
            OptionWord::Short('d') => options.takes_empty = true,
            OptionWord::Short('v') => options.is_verbose = true,
            OptionWord::Operand(name) => options.names.push(name),
            OptionWord::Short(_) => return Err(unknown(&word)),
            OptionWord::Long(name) => match name.as_str() {
                "force" => (options.is_forced, options.questions) = (true, Questions::None),
                "interactive" => {
                    options.questions = match words.attached()?.as_deref() {
                        None | Some("always" | "yes") => Questions::Each,
                        Some("once") => Questions::Once,
                        Some("never" | "no" | "none") => Questions::None,
                        Some(other) => {
                            return Err(Ending::usage(format!(
                                "invalid argument ‘{other}’ for ‘--interactive’"
                            )));
                        }
                    }
                }
                "recursive" => options.is_recursive = true,
                "dir" => options.takes_empty = true,
                "verbose" => options.is_verbose = true,
                "no-preserve-root" => options.root_too = true,
                "one-file-system" => {}
                "preserve-root" => drop(words.attached()?),
                _ => return Err(unknown(&OptionWord::Long(name))),
            },
        }
    }
    Ok(options)
}

/// A run of `rm`.
struct RmRun<'a, 'r> {
    run: &'a ProgramRun<'r>,
    options: &'a RmRemoveOptions,
    answers: UserAnswers,
    status: i32,
}

/// A part of what is removed.
enum RmStep {
    Look(String),
    /// A directory, once all in it has gone.
    Finish(String),
}

impl RmRun<'_, '_> {
    async fn fail(&mut self, reason: impl AsRef<str>) -> Result<(), Ending> {
        self.status = 1;
        self.run.complain(reason).await
    }

    /// Asks once, if there is much to remove.
    async fn may_begin(&mut self) -> Result<bool, Ending> {
        let count = self.options.names.len();
        if !self.options.is_recursive && count <= 3 {
            return Ok(true);
        }
        let how = if self.options.is_recursive { " recursively" } else { "" };
        let (noun, count) =
            if count == 1 { ("argument", "1".to_owned()) } else { ("arguments", count.to_string()) };
        self.answers.ask(self.run, &format!("remove {count} {noun}{how}")).await
    }

    async fn remove(&mut self, name: &str) -> Result<(), Ending> {
        if self.options.is_recursive && matches!(base_name(name), "." | "..") {
            let name = quoted(name);
            return self.fail(format!("refusing to remove '.' or '..' directory: skipping {name}")).await;
        }
        if self.options.is_recursive && !self.options.root_too && base_name(name) == "/" {
            self.fail(format!("it is dangerous to operate recursively on {}", quoted(name))).await?;
            return self.run.complain("use --no-preserve-root to override this failsafe").await;
        }
        let mut left = vec![RmStep::Look(name.to_owned())];
        while let Some(step) = left.pop() {
            self.run.breathe().await;
            match step {
                RmStep::Look(name) => self.look(name, &mut left).await?,
                RmStep::Finish(name) => self.take(&name, true).await?,
            }
        }
        Ok(())
    }

    async fn look(&mut self, name: String, left: &mut Vec<RmStep>) -> Result<(), Ending> {
        let kind = match self.run.kind(&name, Last::Keep) {
            Ok(kind) => kind,
            Err(error) if self.options.is_forced && error.kind() == eyot::ErrorKind::NotFound => {
                return Ok(());
            }
            Err(error) => {
                return self.fail(format!("cannot remove {}: {}", quoted(&name), reason(&error))).await;
            }
        };
        if kind != NodeKind::Directory {
            let asks = self.options.questions == Questions::Each;
            if asks && !self.answers.ask(self.run, &self.question(&name, kind)).await? {
                return Ok(());
            }
            return self.take(&name, false).await;
        }
        if !self.options.is_recursive {
            if self.options.takes_empty {
                return self.take(&name, true).await;
            }
            return self.fail(format!("cannot remove {}: Is a directory", quoted(&name))).await;
        }
        let is_quiet = !self.options.is_verbose && self.options.questions != Questions::Each;
        if is_quiet && self.take_whole(&name) {
            return Ok(());
        }
        let names = self.names_in(&name);
        if self.options.questions == Questions::Each && !names.is_empty() {
            let question = format!("descend into directory {}", quoted(&name));
            if !self.answers.ask(self.run, &question).await? {
                return Ok(());
            }
        }
        left.push(RmStep::Finish(name.clone()));
        left.extend(names.iter().rev().map(|inner| RmStep::Look(joined(&name, inner))));
        Ok(())
    }

    fn question(&self, name: &str, kind: NodeKind) -> String {
        let size = self.run.look(name, Last::Keep).map_or(0, |node| node.size());
        let what = match kind {
            NodeKind::File if size == 0 => "regular empty file",
            NodeKind::File => "regular file",
            NodeKind::Link => "symbolic link",
            NodeKind::Fifo => "fifo",
            NodeKind::Device => "character special file",
            NodeKind::Directory => "directory",
        };
        format!("remove {what} {}", quoted(name))
    }

    fn names_in(&self, name: &str) -> Vec<String> {
        let held = self.run.hold();
        let Ok(id) = self.run.find(&held, name, Last::Keep).and_then(|place| place.found()) else {
            return Vec::new();
        };
        let names = held.tree.entries(id).map(|entries| entries.keys().map(|name| shown(name)).collect());
        names.unwrap_or_default()
    }

    /// Removes a directory with all in it, if nothing stands in the way.
    fn take_whole(&self, name: &str) -> bool {
        let mut held = self.run.hold();
        let Ok(place) = self.run.find(&held, name, Last::Keep) else { return false };
        !place.names.is_empty() && held.remove_one(&place, true).is_ok()
    }

    /// Removes one file, or a directory that is empty by now.
    async fn take(&mut self, name: &str, is_directory: bool) -> Result<(), Ending> {
        if is_directory && self.options.questions == Questions::Each {
            let question = format!("remove directory {}", quoted(name));
            if !self.answers.ask(self.run, &question).await? {
                return Ok(());
            }
        }
        let taken = {
            let mut held = self.run.hold();
            match self.run.find(&held, name, Last::Keep) {
                Ok(place) if place.names.is_empty() => Err(crate::memory::node::not_permitted()),
                Ok(place) => held.remove_one(&place, false),
                Err(error) => Err(error),
            }
        };
        match taken {
            Ok(()) if self.options.is_verbose => {
                let what = if is_directory { "removed directory" } else { "removed" };
                self.run.print(format!("{what} {}\n", quoted(name))).await
            }
            Ok(()) => Ok(()),
            Err(error) => {
                let why = match error.kind() {
                    eyot::ErrorKind::AlreadyExists => "Directory not empty",
                    _ => reason(&error),
                };
                self.fail(format!("cannot remove {}: {why}", quoted(name))).await
            }
        }
    }
}
