//! `mktemp`.

use async_trait::async_trait;

use super::options::{OptionWord, unknown};
use super::quoting::{curly, joined};
use super::run::{Ending, ProgramRun, ShellProgram, reason};
use crate::memory::node::{FileNode, NodeContent};
use crate::memory::walk::Last;

/// The tries to find a name that is free.
const MAX_TRIES: u32 = 100;
const LETTERS: &[u8; 62] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

#[derive(Debug, Default)]
struct TempOptions {
    is_directory: bool,
    is_dry: bool,
    is_quiet: bool,
    /// The template is a name in the usual directory.
    is_in_usual: bool,
    directory: Option<String>,
    suffix: Option<String>,
    template: Option<String>,
}

pub(super) struct Mktemp;

#[async_trait]
impl ShellProgram for Mktemp {
    async fn run(&self, run: &ProgramRun<'_>) -> Result<i32, Ending> {
        let options = parse(run)?;
        match make(run, &options) {
            Ok(name) => {
                run.print(format!("{name}\n")).await?;
                Ok(0)
            }
            Err(_) if options.is_quiet => Ok(1),
            Err(why) => Err(Ending::refused(why)),
        }
    }
}

fn parse(run: &ProgramRun<'_>) -> Result<TempOptions, Ending> {
    let mut options = TempOptions::default();
    let mut words = run.words();
    while let Some(word) = words.next()? {
        match &word {
            OptionWord::Short('d') => options.is_directory = true,
            OptionWord::Short('u') => options.is_dry = true,
            OptionWord::Short('q') => options.is_quiet = true,
            OptionWord::Short('t') => options.is_in_usual = true,
            OptionWord::Short('p') => options.directory = Some(words.value()?),
            OptionWord::Operand(_) if options.template.is_some() => {
                return Err(Ending::usage("too many templates"));
            }
            OptionWord::Operand(name) => options.template = Some(name.clone()),
            OptionWord::Short(_) => return Err(unknown(&word)),
            OptionWord::Long(name) => match name.as_str() {
                "directory" => options.is_directory = true,
                "dry-run" => options.is_dry = true,
                "quiet" => options.is_quiet = true,
                "suffix" => options.suffix = Some(words.value()?),
                "tmpdir" => options.directory = Some(words.attached()?.unwrap_or_default()),
                _ => return Err(unknown(&word)),
            },
        }
    }
    Ok(options)
}

fn make(run: &ProgramRun<'_>, options: &TempOptions) -> Result<String, String> {
    let usual = || run.env.get("TMPDIR").filter(|path| !path.is_empty()).cloned();
    let usual = || usual().unwrap_or_else(|| "/tmp".to_owned());
    let given = options.directory.clone().map(|path| if path.is_empty() { usual() } else { path });
    let (template, directory) = match &options.template {
        None => ("tmp.XXXXXXXXXX".to_owned(), Some(given.unwrap_or_else(usual))),
        Some(template) if options.is_in_usual => (template.clone(), Some(given.unwrap_or_else(usual))),
        Some(template) => (template.clone(), given),
    };
    let (head, marks, tail) = parts(&template, options.suffix.as_deref())?;
    let place = |name: &str| directory.as_ref().map_or_else(|| name.to_owned(), |path| joined(path, name));
    let what = if options.is_directory { "directory" } else { "file" };
    let template = place(&format!("{template}{}", options.suffix.as_deref().unwrap_or("")));
    let failed = |why: &str| format!("failed to create {what} via template {}: {why}", curly(&template));
    for _ in 0..MAX_TRIES {
        let name = place(&format!("{head}{}{tail}", random(marks)));
        let mut held = run.hold();
        let found = run.find(&held, &name, Last::Keep).map_err(|error| failed(reason(&error)))?;
        if found.node.is_some() {
            continue;
        }
        if !options.is_dry {
            let node = if options.is_directory {
                FileNode::directory(0o700)
            } else {
                FileNode::new(NodeContent::File(Vec::new().into()), 0o600)
            };
            held.add(&found, node).map_err(|error| failed(reason(&error)))?;
        }
        return Ok(name);
    }
    Err(failed("File exists"))
}

/// The parts of a template around its last `X`s, and how many those are.
fn parts<'a>(template: &'a str, suffix: Option<&'a str>) -> Result<(&'a str, usize, &'a str), String> {
    if suffix.is_some() && !template.ends_with('X') {
        return Err(format!("with --suffix, template {} must end in X", curly(template)));
    }
    let end = template.rfind('X').map_or(0, |at| at + 1);
    let head = template[..end].trim_end_matches('X');
    let marks = end - head.len();
    if marks < 3 {
        return Err(format!("too few X's in template {}", curly(template)));
    }
    Ok((head, marks, suffix.unwrap_or(&template[end..])))
}

fn random(count: usize) -> String {
    let letter = |byte: &u8| char::from(LETTERS[usize::from(*byte) % LETTERS.len()]);
    let mut text = String::new();
    while text.len() < count {
        text.extend(uuid::Uuid::new_v4().as_bytes().iter().map(letter).take(count - text.len()));
    }
    text
}
