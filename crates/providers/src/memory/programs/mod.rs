//! Programs of ours, in place of the interpreter's: they wait without a limit of their own, write
//! without end, keep Linux's rules of files, and print what GNU's print.

mod adjusted;
mod answers;
mod argument_limits;
mod awk;
mod backup;
mod base_encoding;
mod basic_regex;
mod byte_classes;
mod canonical;
mod checksums;
mod child_runs;
mod children;
mod chmod;
mod choices;
mod cmp;
mod comm;
mod counts;
mod cp;
mod csplit;
mod cut;
mod date;
mod diff;
mod directories;
mod each_file;
mod ending;
mod expr;
mod facts;
mod file_bytes;
mod file_parts;
mod fmt;
mod fold;
mod frame;
mod gzip;
mod gzip_stream;
mod head;
mod jq;
mod leading;
mod lines;
mod listed_files;
mod ln;
mod ls;
mod mktemp;
mod mode;
mod mv;
mod name_style;
mod options;
mod pace;
mod paced_output;
mod paste;
mod paths;
mod pgrep;
mod quoting;
mod read_bytes;
mod rev;
mod reworded;
mod rewording;
mod rm;
mod run;
mod sed_script;
mod signals;
mod sort;
mod sort_keys;
mod sort_numbers;
mod sort_options;
mod starts;
mod stat;
mod streams;
mod tac;
mod tail;
mod tar;
mod target;
mod tee;
mod timeout;
mod times;
mod touch;
mod tr;
mod tr_sets;
mod truncate;
mod umask;
mod uniq;
mod waiting;
mod wc;
mod worker;
mod xargs;
mod xargs_input;
mod xargs_options;
mod zgrep;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use bashkit::BashBuilder;
use tokio_util::sync::CancellationToken;

use super::end_mark::EndMark;
use super::input::JobInput;
use super::interpreters::Interpreters;
use checksums::{Algorithm, ChecksumFamily, Checksums};
use children::Children;
pub(super) use children::CommandSlot;
use run::{InstalledProgram, LiveOutput, ShellProgram};

/// The programs that work on files or text, by their names.
static PROGRAMS: &[(&str, &dyn ShellProgram)] = &[
    ("awk", &awk::Awk),
    ("b2sum", &Checksums(ChecksumFamily::One(Algorithm::Blake2b))),
    ("base32", &base_encoding::BASE32),
    ("base64", &base_encoding::BASE64),
    ("basename", &paths::Basename),
    ("chmod", &chmod::Chmod),
    ("cksum", &Checksums(ChecksumFamily::Cksum)),
    ("cmp", &cmp::Cmp),
    ("comm", &comm::Comm),
    ("cp", &cp::Cp),
    ("csplit", &csplit::Csplit),
    ("cut", &cut::CutProgram),
    ("date", &date::Date),
    ("diff", &diff::Diff),
    ("dir", &ls::DIR),
    ("dirname", &paths::Dirname),
    ("expr", &expr::Expr),
    ("fmt", &fmt::Fmt),
    ("fold", &fold::Fold),
    ("gunzip", &gzip::Gzip::Unpack),
    ("gzip", &gzip::Gzip::Pack),
    ("head", &head::HeadProgram),
    ("jq", &jq::Jq),
    ("ln", &ln::Ln),
    ("ls", &ls::LS),
    ("mawk", &awk::Awk),
    ("md5sum", &Checksums(ChecksumFamily::One(Algorithm::Md5))),
    ("mkdir", &directories::Mkdir),
    ("mktemp", &mktemp::Mktemp),
    ("mv", &mv::Mv),
    ("nawk", &awk::Awk),
    ("paste", &paste::Paste),
    ("pgrep", &pgrep::Pgrep),
    ("readlink", &paths::Readlink),
    ("realpath", &paths::Realpath),
    ("rev", &rev::Rev),
    ("rm", &rm::Rm),
    ("rmdir", &directories::Rmdir),
    ("sha1sum", &Checksums(ChecksumFamily::One(Algorithm::Sha1))),
    ("sha224sum", &Checksums(ChecksumFamily::One(Algorithm::Sha224))),
    ("sha256sum", &Checksums(ChecksumFamily::One(Algorithm::Sha256))),
    ("sha384sum", &Checksums(ChecksumFamily::One(Algorithm::Sha384))),
    ("sha512sum", &Checksums(ChecksumFamily::One(Algorithm::Sha512))),
    ("sort", &sort::SortProgram),
    ("stat", &stat::Stat),
    ("sum", &Checksums(ChecksumFamily::Sum)),
    ("tac", &tac::Tac),
    ("tail", &tail::Tail),
    ("tar", &tar::Tar),
    ("tee", &tee::Tee),
    ("timeout", &timeout::Timeout),
    ("touch", &touch::Touch),
    ("tr", &tr::Tr),
    ("truncate", &truncate::Truncate),
    ("uniq", &uniq::Uniq),
    ("vdir", &ls::VDIR),
    ("wc", &wc::Wc),
    ("xargs", &xargs::Xargs),
    ("zcat", &gzip::Gzip::Print),
];

/// The command behind a script, which says that the script has ended.
pub(super) const END: &str = "__eyot_end";
/// The command behind that one, which writes the mark of the end.
pub(super) const MARK: &str = "__eyot_mark";
/// The command before a script, which hands on the standard input.
pub(super) const INPUT: &str = "__eyot_input";

/// The name of `timeout` behind its front.
const TIMEOUT: &str = "__eyot_timeout";

/// The children of a command.
pub(super) fn children_of(shells: Interpreters) -> Children {
    Children::of_command(shells, install)
}

/// Gives an interpreter the programs of ours, perhaps without one of those that are reworded.
pub(super) fn install(builder: BashBuilder, command: &CommandSlot, without: Option<&str>) -> BashBuilder {
    let builder = builder
        .before_tool(Box::new(adjusted::adjust))
        .builtin("sleep", Box::new(waiting::Sleep(command.clone())))
        .builtin("setsid", Box::new(waiting::Setsid))
        .builtin("umask", Box::new(umask::Umask))
        .builtin("zgrep", Box::new(zgrep::Zgrep))
        .command("yes", waiting::Yes);
    let builder = reworded::NAMES
        .iter()
        .filter(|name| Some(**name) != without)
        .fold(builder, |builder, name| builder.builtin(*name, Box::new(reworded::Entrance(name))));
    let installed = |name: &'static str, program: &'static dyn ShellProgram| InstalledProgram {
        name,
        program,
        command: command.clone(),
    };
    let builder = builder.command(reworded::HIDDEN, installed(reworded::HIDDEN, &reworded::RewordedProgram));
    PROGRAMS.iter().fold(builder, |builder, (name, program)| {
        let installed = installed(name, *program);
        match *name {
            "timeout" => builder.builtin(*name, Box::new(LiveOutput(TIMEOUT))).command(TIMEOUT, installed),
            "tee" | "tr" | "xargs" => builder.command(*name, installed),
            _ => builder.builtin(*name, Box::new(installed)),
        }
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

/// Lists the names of ours that a script may use.
pub(super) fn names_of_ours() -> impl Iterator<Item = &'static str> {
    ["sleep", "setsid", "yes", "zgrep"].into_iter().chain(PROGRAMS.iter().map(|(name, _)| *name))
}
