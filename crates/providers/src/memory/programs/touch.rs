//! `touch`: files get a new time, and are made where they are missing.

use async_trait::async_trait;

use super::choices::choose;
use super::options::{OptionWord, complete, unknown};
use super::quoting::{curly, quoted};
use super::run::{Ending, ProgramRun, ShellProgram, reason};
use super::times::{Moment, Zone, format_time, read_time};
use crate::memory::node::{FileAccess, FileNode, NodeOwner};
use crate::memory::walk::Last;
use eyot::{ErrorKind, WatchEventKind};

const LONG_NAMES: [&str; 6] = ["date", "help", "no-create", "no-dereference", "reference", "time"];
/// The times that `--time` knows: `true` for the one of the last change, which is the one there is.
static TIMES: [(&str, bool); 5] =
    [("atime", false), ("access", false), ("use", false), ("mtime", true), ("modify", true)];

#[derive(Debug, Default)]
struct Options {
    changes_access: bool,
    changes_modified: bool,
    creates_nothing: bool,
    keeps_links: bool,
    date: Option<String>,
    reference: Option<String>,
    stamp: Option<Moment>,
    files: Vec<String>,
}

pub(super) struct Touch;

#[async_trait]
impl ShellProgram for Touch {
    async fn run(&self, run: &ProgramRun<'_>) -> Result<i32, Ending> {
        let options = parse(run)?;
        let time = time(run, &options)?;
        if options.files.is_empty() {
            return Err(Ending::usage("missing file operand"));
        }
        let mut status = 0;
        for file in options.files.iter().filter(|file| *file != "-") {
            run.breathe().await;
            if let Err(reason) = touch(run, file, &options, time) {
                run.complain(reason).await?;
                status = 1;
            }
        }
        Ok(status)
    }
}

fn parse(run: &ProgramRun<'_>) -> Result<Options, Ending> {
    let mut options = Options::default();
    let mut words = run.words();
    while let Some(word) = words.next()? {
        let name = match &word {
            OptionWord::Operand(file) => {
                options.files.push(file.clone());
                continue;
            }
            OptionWord::Short('a') => "access",
            OptionWord::Short('m') => "modified",
            OptionWord::Short('c') => "no-create",
            OptionWord::Short('f') => continue,
            OptionWord::Short('h') => "no-dereference",
            OptionWord::Short('d') => "date",
            OptionWord::Short('r') => "reference",
            OptionWord::Short('t') => "stamp",
            OptionWord::Short(_) => return Err(unknown(&word)),
            OptionWord::Long(name) => complete(name, &LONG_NAMES)?,
        };
        match name {
            "access" => options.changes_access = true,
            "modified" => options.changes_modified = true,
            "no-create" => options.creates_nothing = true,
            "no-dereference" => options.keeps_links = true,
            "date" => options.date = Some(words.value()?),
            "reference" => options.reference = Some(words.value()?),
            "stamp" => options.stamp = Some(stamp(&words.value()?, &Zone::of(run.env))?),
            "time" => {
                let is_modified = choose(&TIMES, &words.value()?, "--time")?;
                options.changes_modified |= is_modified;
                options.changes_access |= !is_modified;
            }
            _ => return Err(unknown(&word)),
        }
    }
    Ok(options)
}

fn invalid(text: &str) -> Ending {
    Ending::refused(format!("invalid date format {}", curly(text)))
}

/// Reads `[[CC]YY]MMDDhhmm[.ss]`.
fn stamp(text: &str, zone: &Zone) -> Result<Moment, Ending> {
    let now = Moment::now();
    let words = spelled_out(text, &format_time("%Y", now, zone)).ok_or_else(|| invalid(text))?;
    read_time(&words, now, zone).map_err(|_| invalid(text))
}

fn spelled_out(text: &str, this_year: &str) -> Option<String> {
    let (digits, seconds) = text.split_once('.').unwrap_or((text, "00"));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(digits) || !is_number(seconds) || seconds.len() != 2 {
        return None;
    }
    let (year, rest) = match digits.len() {
        8 => (this_year.to_owned(), digits),
        10 => {
            let century = if digits < "69" { "20" } else { "19" };
            (format!("{century}{}", &digits[..2]), &digits[2..])
        }
        12 => (digits[..4].to_owned(), &digits[4..]),
        _ => return None,
    };
    Some(format!("{year}-{}-{} {}:{}:{seconds}", &rest[..2], &rest[2..4], &rest[4..6], &rest[6..8]))
}

/// The time that is asked for. `None` is the time of the call.
fn time(run: &ProgramRun<'_>, options: &Options) -> Result<Option<Moment>, Ending> {
    if options.stamp.is_some() && (options.date.is_some() || options.reference.is_some()) {
        return Err(Ending::usage("cannot specify times from more than one source"));
    }
    let last = if options.keeps_links { Last::Keep } else { Last::Follow };
    let reference = options.reference.as_ref().map(|name| {
        run.look(name, last).map(|node| Moment::from(node.modified)).map_err(|error| {
            Ending::refused(format!("failed to get attributes of {}: {}", quoted(name), reason(&error)))
        })
    });
    let reference = reference.transpose()?;
    let Some(date) = &options.date else { return Ok(options.stamp.or(reference)) };
    let now = reference.unwrap_or_else(Moment::now);
    read_time(date, now, &Zone::of(run.env)).map(Some).map_err(|_| invalid(date))
}

fn touch(run: &ProgramRun<'_>, file: &str, options: &Options, time: Option<Moment>) -> Result<(), String> {
    let not_set = |why: &str| format!("setting times of {}: {why}", quoted(file));
    let cannot = |error: eyot::Error| {
        // What is not made is not opened either.
        if options.creates_nothing {
            return not_set(reason(&error));
        }
        format!("cannot touch {}: {}", quoted(file), reason(&error))
    };
    let modified = match time {
        Some(time) => time.system_time().ok_or_else(|| not_set("Invalid argument"))?,
        None => std::time::SystemTime::now(),
    };
    let keeps_time = options.changes_access && !options.changes_modified;
    let mut held = run.hold();
    let last = if options.keeps_links { Last::Keep } else { Last::Follow };
    let place = match run.find(&held, file, last) {
        Err(error) if options.creates_nothing && error.kind() == ErrorKind::NotFound => return Ok(()),
        place => place.map_err(cannot)?,
    };
    let Some(id) = place.node else {
        return match (options.creates_nothing, options.keeps_links || file.ends_with('/')) {
            (true, _) => Ok(()),
            (false, true) => Err(not_set("No such file or directory")),
            (false, false) => {
                let node = FileNode { modified, ..FileNode::file(Vec::new(), run.masked(0o666)) };
                held.add(&place, node).map(drop).map_err(cannot)
            }
        };
    };
    let node = held.tree.node(id);
    if node.owner != NodeOwner::User {
        match time {
            Some(_) => return Err(not_set("Operation not permitted")),
            None => node.check(FileAccess::Write).map_err(cannot)?,
        }
    }
    let is_directory = node.is_directory();
    if file.ends_with('/') && !is_directory {
        return Err(not_set("Not a directory"));
    }
    if !keeps_time {
        held.tree.node_mut(id).modified = modified;
    }
    held.tell(&WatchEventKind::Modified, &place, is_directory);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_may_leave_out_the_year_or_the_century() {
        assert_eq!(spelled_out("202401020304.05", "2026").unwrap(), "2024-01-02 03:04:05");
        assert_eq!(spelled_out("6901020304", "2026").unwrap(), "1969-01-02 03:04:00");
        assert_eq!(spelled_out("6801020304", "2026").unwrap(), "2068-01-02 03:04:00");
        assert_eq!(spelled_out("01020304", "2026").unwrap(), "2026-01-02 03:04:00");
        for text in ["", "1", "2024010203040", "20240102030x", "202401020304.5"] {
            assert!(spelled_out(text, "2026").is_none(), "{text}");
        }
    }
}
