//! The command line, as the kernel wants it: files to try in order, each with its arguments.

use std::ffi::CString;

use crate::environment::SYSTEM_PATH;
use crate::program::failure::failure;
use crate::protocol::{CommandSpec, Failure};

const BASHES: [&str; 2] = ["/bin/bash", "/usr/bin/bash"];
const SH: &str = "/bin/sh";
const LONGEST_TEXT_BYTES: usize = 4096;

/// The files to try, the argument vectors, and the shell for a file that is no program.
#[derive(Debug, PartialEq, Eq)]
pub struct CommandLine {
    /// The files, each with the index of its arguments.
    pub candidates: Vec<(CString, usize)>,
    /// The argument vectors.
    pub arguments: Vec<Vec<CString>>,
    /// The shell's arguments; the second place is the file's.
    pub script_arguments: Option<Vec<CString>>,
}

impl CommandLine {
    /// For this command, with `path` as the `PATH` to search.
    ///
    /// # Errors
    /// `invalid` for no program, an empty one, or a null byte.
    pub fn new(command: &CommandSpec, path: Option<&str>) -> Result<Self, Failure> {
        match command {
            CommandSpec::Shell(line) => shell(line),
            CommandSpec::Argv(argv) => program(argv, path.unwrap_or(SYSTEM_PATH)),
        }
    }
}

/// Returns the command as text, cut to a readable length.
pub fn text_of(command: &CommandSpec) -> String {
    let mut text = match command {
        CommandSpec::Shell(line) => line.clone(),
        CommandSpec::Argv(argv) => argv.join(" "),
    };
    text.truncate(text.floor_char_boundary(LONGEST_TEXT_BYTES));
    text
}

fn shell(line: &str) -> Result<CommandLine, Failure> {
    // A line that begins like an option would be taken for one.
    let separator = line.starts_with(['-', '+']).then_some("--");
    let arguments = |name: &str| -> Result<Vec<CString>, Failure> {
        [name, "-c"].into_iter().chain(separator).chain([line]).map(c_string).collect()
    };
    let mut candidates = Vec::new();
    for bash in BASHES {
        candidates.push((c_string(bash)?, 0));
    }
    candidates.push((c_string(SH)?, 1));
    Ok(CommandLine {
        candidates,
        arguments: vec![arguments("bash")?, arguments("sh")?],
        script_arguments: None,
    })
}

fn program(argv: &[String], path: &str) -> Result<CommandLine, Failure> {
    let Some(name) = argv.first().filter(|name| !name.is_empty()) else {
        return Err(failure("invalid", "the command names no program"));
    };
    let arguments: Vec<CString> = argv.iter().map(|part| c_string(part)).collect::<Result<_, _>>()?;
    let candidates = if name.contains('/') {
        vec![(c_string(name)?, 0)]
    } else {
        path.split(':')
            .map(|folder| Ok((c_string(&beside(folder, name))?, 0)))
            .collect::<Result<_, Failure>>()?
    };
    let shell = [SH, ""].into_iter().map(c_string);
    let script = shell.chain(argv.iter().skip(1).map(|part| c_string(part))).collect::<Result<_, _>>()?;
    Ok(CommandLine { candidates, arguments: vec![arguments], script_arguments: Some(script) })
}

/// An empty part of `PATH` is the working directory.
fn beside(folder: &str, name: &str) -> String {
    if folder.is_empty() { format!("./{name}") } else { format!("{folder}/{name}") }
}

fn c_string(text: &str) -> Result<CString, Failure> {
    CString::new(text).map_err(|_| failure("invalid", "the command contains a null byte"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(parts: &[&str]) -> CommandSpec {
        CommandSpec::Argv(parts.iter().map(|part| (*part).to_owned()).collect())
    }

    fn files(line: &CommandLine) -> Vec<&str> {
        line.candidates.iter().map(|(path, _)| path.to_str().unwrap()).collect()
    }

    #[test]
    fn a_bare_name_is_searched_for_and_a_path_is_not() {
        assert_eq!(
            files(&CommandLine::new(&argv(&["ls"]), Some("/a::/b")).unwrap()),
            ["/a/ls", "./ls", "/b/ls"]
        );
        assert_eq!(files(&CommandLine::new(&argv(&["./ls"]), Some("/a")).unwrap()), ["./ls"]);
    }

    #[test]
    fn shell_source_that_looks_like_an_option_is_none() {
        let line = CommandLine::new(&CommandSpec::Shell("-x".into()), None).unwrap();
        assert_eq!(line.arguments[0], ["bash", "-c", "--", "-x"].map(|part| CString::new(part).unwrap()));
        assert_eq!(line.candidates[2].1, 1);
    }

    #[test]
    fn nothing_and_null_bytes_are_refused() {
        for command in [argv(&[]), argv(&[""]), argv(&["a", "b\0"]), CommandSpec::Shell("\0".into())] {
            assert_eq!(CommandLine::new(&command, None).unwrap_err().kind, "invalid");
        }
    }
}
