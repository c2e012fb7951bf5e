//! Programs of ours, in place of the interpreter's: they wait without a limit of their own, write
//! without end, keep Linux's rules of files, and print what GNU's print.

mod frame;
mod gzip;
mod gzip_stream;
mod jq;
mod options;
mod run;
mod tar;
mod tee;
mod truncate;
mod waiting;
mod worker;
mod zgrep;

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use bashkit::BashBuilder;
use tokio_util::sync::CancellationToken;

use super::end_mark::EndMark;
use super::files::MemoryFiles;
use super::input::JobInput;
use super::tasks::Tasks;
pub(super) use run::reason;
use run::{Installed, Program};

/// The programs that work on files or text, by their names.
static PROGRAMS: &[(&str, &dyn Program)] = &[
    ("gunzip", &gzip::Gzip::Unpack),
    ("gzip", &gzip::Gzip::Pack),
    ("jq", &jq::Jq),
    ("tar", &tar::Tar),
    ("truncate", &truncate::Truncate),
    ("zcat", &gzip::Gzip::Print),
];

/// Makes a fresh interpreter for each command.
#[doc(alias = "BashFactory")]
pub type ShellFactory = Arc<dyn Fn() -> BashBuilder + Send + Sync>;

/// The command behind a script, which says that the script has ended.
pub(super) const END: &str = "__eyot_end";
/// The command behind that one, which writes the mark of the end.
pub(super) const MARK: &str = "__eyot_mark";
/// The command before a script, which hands on the standard input.
pub(super) const INPUT: &str = "__eyot_input";

/// The files, tasks and input that the programs of a command work on.
pub(super) struct ProgramParts<'a> {
    pub files: &'a MemoryFiles,
    pub tasks: &'a Arc<Tasks>,
    pub input: Option<&'a Arc<JobInput>>,
}

/// Gives an interpreter the programs that a command needs.
pub(super) fn install(
    builder: BashBuilder,
    parts: &ProgramParts<'_>,
    mark: &Arc<EndMark>,
    stop: &CancellationToken,
) -> BashBuilder {
    let builder = builder
        .command(END, frame::End { mark: mark.clone(), input: parts.input.cloned() })
        .builtin(MARK, Box::new(frame::WriteMark(mark.clone())))
        .builtin("sleep", Box::new(waiting::Sleep(parts.tasks.clone())))
        .builtin("setsid", Box::new(waiting::Setsid))
        .builtin("zgrep", Box::new(zgrep::Zgrep))
        .command("tee", tee::Tee)
        .command("yes", waiting::Yes);
    let builder = PROGRAMS.iter().fold(builder, |builder, (name, program)| {
        builder.command(*name, Installed { program: *program, files: parts.files.clone() })
    });
    match parts.input {
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
    ["sleep", "setsid", "tee", "yes", "zgrep"].into_iter().chain(PROGRAMS.iter().map(|(name, _)| *name))
}
