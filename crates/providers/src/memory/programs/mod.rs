//! Programs of ours, in place of the interpreter's: they wait without a limit of their own, write
//! without end, keep Linux's rules of files, and print what GNU's print.

mod children;
mod command_names;
mod frame;
mod leading;
mod options;
mod reworded;
mod rewording;
mod run;
mod signals;
mod tee;
mod timeout;
mod truncate;
mod waiting;
mod xargs;
mod xargs_input;
mod xargs_options;

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use bashkit::BashBuilder;
use tokio_util::sync::CancellationToken;

use super::end_mark::EndMark;
use super::input::JobInput;
pub(super) use children::Children;
pub(super) use run::reason;
use run::{Installed, Program};

/// The programs that work on files or text, by their names.
static PROGRAMS: &[(&str, &dyn Program)] =
    &[("timeout", &timeout::Timeout), ("truncate", &truncate::Truncate), ("xargs", &xargs::Xargs)];

/// Makes a fresh interpreter for each command.
#[doc(alias = "BashFactory")]
pub type ShellFactory = Arc<dyn Fn() -> BashBuilder + Send + Sync>;

/// The command behind a script, which says that the script has ended.
pub(super) const END: &str = "__eyot_end";
/// The command behind that one, which writes the mark of the end.
pub(super) const MARK: &str = "__eyot_mark";
/// The command before a script, which hands on the standard input.
pub(super) const INPUT: &str = "__eyot_input";

/// Gives an interpreter the programs of ours, perhaps without one of those that are reworded.
pub(super) fn install(builder: BashBuilder, children: &Children, without: Option<&str>) -> BashBuilder {
    let builder = builder
        .builtin("sleep", Box::new(waiting::Sleep(children.shells().tasks.clone())))
        .builtin("setsid", Box::new(waiting::Setsid))
        .command("tee", tee::Tee)
        .command("yes", waiting::Yes);
    let builder = reworded::NAMES
        .iter()
        .filter(|name| Some(**name) != without)
        .fold(builder, |builder, name| builder.builtin(*name, Box::new(reworded::Entrance(name))));
    let hidden: (&str, &dyn Program) = (reworded::HIDDEN, &reworded::Reworded);
    PROGRAMS.iter().chain([&hidden]).fold(builder, |builder, (name, program)| {
        let files = children.shells().files.clone();
        builder.command(*name, Installed { program: *program, files, children: children.clone() })
    })
}

/// Gives the interpreter of a command what stands around its script.
pub(super) fn install_frame(
    builder: BashBuilder,
    input: Option<&Arc<JobInput>>,
    mark: &Arc<EndMark>,
    stop: &CancellationToken,
) -> BashBuilder {
    let builder = builder
        .command(END, frame::End { mark: mark.clone(), input: input.cloned() })
        .builtin(MARK, Box::new(frame::WriteMark(mark.clone())));
    match input {
        Some(input) => {
            builder.command(INPUT, frame::InputProgram { input: input.clone(), stop: stop.clone() })
        }
        None => builder,
    }
}

/// The names of the programs that a script may call.
pub(super) struct KnownPrograms {
    factory: ShellFactory,
    names: OnceLock<BTreeSet<String>>,
}

impl KnownPrograms {
    pub(super) fn new(factory: ShellFactory) -> Self {
        Self { factory, names: OnceLock::new() }
    }

    /// Tells whether there is a program of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        let known = || {
            let names = (self.factory)().build().builtin_names().into_iter();
            names.chain(names_of_ours().map(str::to_owned)).collect()
        };
        self.names.get_or_init(known).contains(name)
    }
}

/// Lists the names of ours that a script may use.
fn names_of_ours() -> impl Iterator<Item = &'static str> {
    ["sleep", "setsid", "tee", "yes"].into_iter().chain(PROGRAMS.iter().map(|(name, _)| *name))
}

/// A word as GNU's programs show it to a shell.
fn shell_quoted(word: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "%+,-./:@_{}^]#~".contains(c);
    let is_plain = !word.is_empty() && !word.starts_with(['#', '~']) && word.chars().all(plain);
    if is_plain {
        word.to_owned()
    } else if word.contains('\'') && !word.contains(['"', '$', '`', '\\', '!', '\n']) {
        format!("\"{word}\"")
    } else {
        let word = word.replace('\'', r"'\''").replace('\n', r"'$'\n''");
        let word = format!("'{word}'");
        word.strip_suffix("''").filter(|rest| rest.len() > 1).map_or(word.clone(), str::to_owned)
    }
}
