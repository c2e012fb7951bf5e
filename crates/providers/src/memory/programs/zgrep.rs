//! `zgrep`: files are unpacked, and `grep` searches them.

use std::fmt::Write as _;

use async_trait::async_trait;
use bashkit::{Builtin, BuiltinContext, ExecResult, ExecutionPlan, SubCommand};

use super::gzip_stream;

/// The most of one file that is searched.
const MAX_BYTES: usize = 64 << 20;
/// Short options of `grep` that take a value.
const WITH_VALUE: &str = "ABCDXdefm";

pub(super) struct Zgrep;

#[async_trait]
impl Builtin for Zgrep {
    async fn execute(&self, _: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        let usage = "Usage: zgrep [OPTION]... [-e] PATTERN [FILE]...";
        Ok(ExecResult::err(format!("{usage}\nTry 'zgrep --help' for more information.\n"), 2))
    }

    async fn execution_plan(&self, context: &BuiltinContext<'_>) -> bashkit::Result<Option<ExecutionPlan>> {
        let Some(search) = ZgrepSearch::of(context.args) else { return Ok(None) };
        if search.files.is_empty() {
            let input = context.stdin.map(|input| input.as_bytes().to_vec()).unwrap_or_default();
            let commands = vec![search.command(None, gzip_stream::unpacked(&input, MAX_BYTES))];
            return Ok(Some(ExecutionPlan::Batch { commands }));
        }
        let mut commands = Vec::new();
        let mut told = String::new();
        for file in &search.files {
            match context.fs.read_file(&context.cwd.join(file)).await {
                Ok(bytes) => {
                    commands.push(search.command(Some(file), gzip_stream::unpacked(&bytes, MAX_BYTES)))
                }
                Err(_) => {
                    let _infallible = writeln!(told, "gzip: {file}: No such file or directory");
                }
            }
        }
        let force_error_exit = !told.is_empty();
        Ok(Some(ExecutionPlan::BatchWithStatus { commands, stderr_prefix: told, force_error_exit }))
    }
}

/// The command line, in parts.
#[derive(Debug, Default, PartialEq, Eq)]
struct ZgrepSearch {
    options: Vec<String>,
    files: Vec<String>,
}

impl ZgrepSearch {
    /// Reads the command line; without a pattern there is nothing to search.
    fn of(args: &[String]) -> Option<Self> {
        let mut search = Self::default();
        let mut has_pattern = false;
        let mut operands = Vec::new();
        let mut left = args.iter();
        while let Some(word) = left.next() {
            if word == "--" {
                operands.extend(left.by_ref().cloned());
            } else if !word.starts_with('-') || word == "-" {
                operands.push(word.clone());
            } else {
                search.options.push(word.clone());
                let letter = value_option(word);
                has_pattern |= matches!(letter, Some('e' | 'f')) || word.starts_with("--regexp");
                if letter.is_some_and(|letter| word.ends_with(letter)) {
                    search.options.extend(left.next().cloned());
                }
            }
        }
        if !has_pattern {
            if operands.is_empty() {
                return None;
            }
            search.options.extend(["-e".to_owned(), operands.remove(0)]);
        }
        search.files = operands;
        Some(search)
    }

    fn command(&self, file: Option<&String>, content: Vec<u8>) -> SubCommand {
        let mut args = Vec::new();
        if self.files.len() > 1 {
            args.push("-H".to_owned());
        }
        args.extend(file.map(|file| format!("--label={file}")));
        args.extend(self.options.iter().cloned());
        SubCommand { name: "grep".to_owned(), args, stdin: Some(content.into()), assignments: Vec::new() }
    }
}

/// The short option among these together that takes a value.
fn value_option(word: &str) -> Option<char> {
    let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'))?;
    letters.chars().find(|letter| WITH_VALUE.contains(*letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pattern_is_the_first_operand_unless_an_option_gives_it() {
        let read = |args: &[&str]| {
            let search = ZgrepSearch::of(&args.iter().map(|arg| (*arg).to_owned()).collect::<Vec<_>>())?;
            Some((search.options.join(" "), search.files.join(" ")))
        };
        let parts = |options: &str, files: &str| Some((options.to_owned(), files.to_owned()));
        assert_eq!(read(&["-c", "x", "a", "b"]), parts("-c -e x", "a b"));
        assert_eq!(read(&["-ne", "x", "-m", "2", "a"]), parts("-ne x -m 2", "a"));
        assert_eq!(read(&["-m2", "--", "-x", "a"]), parts("-m2 -e -x", "a"));
        assert_eq!(read(&["-c"]), None);
    }
}
