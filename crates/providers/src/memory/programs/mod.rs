//! Programs of ours, in place of the interpreter's: they wait without a limit of their own, write
//! without end, keep Linux's rules of files, and print what GNU's print.

mod base_encoding;
mod basic_regex;
mod checksums;
mod cmp;
mod comm;
mod csplit;
mod diff;
mod expr;
mod fmt;
mod frame;
mod options;
mod run;
mod tee;
mod truncate;
mod waiting;

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use bashkit::BashBuilder;
use tokio_util::sync::CancellationToken;

use super::end_mark::EndMark;
use super::files::MemoryFiles;
use super::input::JobInput;
use super::tasks::Tasks;
use checksums::{Algorithm, Checksums, Family};
pub(super) use run::reason;
use run::{Installed, InstalledWhole, Program};

/// The programs that work on files or text, by their names.
static PROGRAMS: &[(&str, &dyn Program)] = &[("csplit", &csplit::Csplit), ("truncate", &truncate::Truncate)];

/// Those that read their input whole before they print, by their names.
static WHOLE_PROGRAMS: &[(&str, &dyn Program)] = &[
    ("b2sum", &Checksums(Family::One(Algorithm::Blake2b))),
    ("base32", &base_encoding::BASE32),
    ("base64", &base_encoding::BASE64),
    ("cksum", &Checksums(Family::Cksum)),
    ("cmp", &cmp::Cmp),
    ("comm", &comm::Comm),
    ("diff", &diff::Diff),
    ("expr", &expr::Expr),
    ("fmt", &fmt::Fmt),
    ("md5sum", &Checksums(Family::One(Algorithm::Md5))),
    ("sha1sum", &Checksums(Family::One(Algorithm::Sha1))),
    ("sha224sum", &Checksums(Family::One(Algorithm::Sha224))),
    ("sha256sum", &Checksums(Family::One(Algorithm::Sha256))),
    ("sha384sum", &Checksums(Family::One(Algorithm::Sha384))),
    ("sha512sum", &Checksums(Family::One(Algorithm::Sha512))),
    ("sum", &Checksums(Family::Sum)),
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
        .command("tee", tee::Tee)
        .command("yes", waiting::Yes);
    let builder = WHOLE_PROGRAMS.iter().fold(builder, |builder, (name, program)| {
        let whole = InstalledWhole { name, program: *program, files: parts.files.clone() };
        builder.builtin(*name, Box::new(whole))
    });
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
    ["sleep", "setsid", "tee", "yes"]
        .into_iter()
        .chain([PROGRAMS, WHOLE_PROGRAMS].into_iter().flatten().map(|(name, _)| *name))
}
