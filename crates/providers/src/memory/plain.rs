//! Lines that run as they are, without a shell around them: they start no other shell, and leave
//! nothing behind that would run on.

use bashkit::Bash;
use bashkit::analysis::is_command_wrapper;

use super::known_programs::KnownPrograms;

/// A longer line gets a shell of its own: it is not worth being read twice.
const MAX_PLAIN_BYTES: usize = 16 << 10;
/// Programs that run other programs, or know of background commands, or change what words mean.
const NEVER_PLAIN: [&str; 15] = [
    "alias",
    "bg",
    "builtin",
    "coproc",
    "disown",
    "fg",
    "find",
    "jobs",
    "make",
    "mapfile",
    "parallel",
    "readarray",
    "retry",
    "trap",
    "wait",
];

/// The programs whose output depends on the interpreter itself, such as its host's name or its start.
const TELLING_PROGRAMS: [&str; 7] = ["compgen", "complete", "declare", "fc", "ps", "times", "typeset"];
/// Words that tell of it, also where the interpreter's reading sees no program.
const TELLING_WORDS: [&str; 8] = ["SECONDS", "PS4", "@P", "${!", "history", "hostname", "uname", "uptime"];

/// The kind of interpreter that a line needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LineKind {
    /// The line can run in any interpreter, even in one that was prepared long before.
    Plain,
    /// The line may show facts about its interpreter, so it needs a newly made one.
    Telling,
    /// The line needs a shell of its own.
    Shell,
}

/// Returns the kind of a line. A line that can't be parsed needs a shell.
pub(super) fn line_kind(bash: &Bash, line: &str, programs: &KnownPrograms) -> LineKind {
    if line.len() > MAX_PLAIN_BYTES || has_background(line) || hides_commands(line) {
        return LineKind::Shell;
    }
    let Ok(read) = bash.analyze(line) else { return LineKind::Shell };
    let is_plain = |name: &&str| {
        let is_own = read.functions.iter().any(|function| function == name);
        is_own || (programs.has(name) && !NEVER_PLAIN.contains(name) && !is_command_wrapper(name))
    };
    let names = read.command_names();
    let runs_as_it_is = !read.truncated
        && !read.has_dynamic_commands
        && !read.has_interpreter_reentry
        && names.iter().all(is_plain);
    let is_telling = || {
        names.iter().any(|name| TELLING_PROGRAMS.contains(name))
            || (names.contains(&"set") && may_list_variables(line))
            || TELLING_WORDS.iter().any(|word| line.contains(word))
    };
    if !runs_as_it_is {
        LineKind::Shell
    } else if is_telling() {
        LineKind::Telling
    } else {
        LineKind::Plain
    }
}

/// Returns whether a line may contain `set` without options, which lists all variables.
fn may_list_variables(line: &str) -> bool {
    let mut behind = line.match_indices("set").map(|(at, set)| &line[at + set.len()..]);
    behind.any(|behind| !behind.starts_with(" -") && !behind.starts_with(" +"))
}

/// Tells whether a line may run commands within `${…}` or `name[…]`, which the interpreter's reading
/// leaves out.
fn hides_commands(line: &str) -> bool {
    // The ends of what is open.
    let mut ends = Vec::new();
    let mut is_quoted = false;
    let mut rest = line;
    while let Some(at) = rest.find(['$', '}', '[', ']', '`', '(', '\'', '"', '\\']) {
        let (before, from) = rest.split_at(at);
        let is_index = before.ends_with(|letter: char| letter.is_alphanumeric() || letter == '_');
        let mut taken = 1;
        match from.as_bytes()[0] {
            b'$' if from.starts_with("${") => {
                ends.push(b'}');
                taken = 2;
            }
            b'[' if is_index || !ends.is_empty() => ends.push(b']'),
            _ if ends.is_empty() => {}
            b'`' | b'(' => return true,
            // Where quotes are, the end is not known.
            b'\'' | b'"' | b'\\' => is_quoted = true,
            end if !is_quoted && ends.last() == Some(&end) => drop(ends.pop()),
            _ => {}
        }
        rest = &from[taken..];
    }
    false
}

/// Tells whether a line may start something in the background. Any `&` counts that is not a part of
/// `&&` or of a redirection, even one in quotes.
pub(super) fn has_background(line: &str) -> bool {
    let mut rest = line;
    while let Some(at) = rest.find('&') {
        let (before, after) = (&rest[..at], &rest[at + 1..]);
        let is_redirection = before.ends_with(['>', '<']) || after.starts_with('>');
        if let Some(behind) = after.strip_prefix('&') {
            rest = behind;
        } else if is_redirection {
            rest = after;
        } else {
            return true;
        }
    }
    line.contains(">(") || line.contains("coproc")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_line_is_plain_if_it_starts_no_shell_and_leaves_nothing_behind() {
        let bash = Bash::new();
        let programs = KnownPrograms::new(Arc::new(Bash::builder), ["sleep"]);
        for plain in [
            "echo hi",
            "cd /tmp && ls 2>&1 | sort &>all",
            "for i in 1 2; do echo $i; done",
            "f() { echo; }; f",
            "set -euo pipefail; cat <<E\ntext\nE",
            "x=$(cat f | wc -l); [[ $x -gt 2 ]] || exit 3",
            "echo ${x:-y} \"${x%.*}\" ${a[1]} ${x//[0-9]/} $(ls)",
        ] {
            assert_eq!(line_kind(&bash, plain, &programs), LineKind::Plain, "{plain}");
        }
        for telling in [
            "set | head",
            "set -e; (set)",
            "echo $SECONDS",
            "uname -n | cat",
            "echo ${x@P}",
            "fc -l",
            "set -o history",
        ] {
            assert_eq!(line_kind(&bash, telling, &programs), LineKind::Telling, "{telling}");
        }
        for other in [
            "sleep 9 &",
            "echo '&'",
            "a&b",
            "bash -c 'echo hi'",
            "eval \"$x\"",
            "$x",
            "./script",
            "nosuch",
            "timeout 1 echo",
            "exec ls",
            "tee >(cat)",
            "f() { sleep 9 & }; f",
            "echo )",
            "echo ${x:-$(ls)}",
            "echo ${x:-'}'`ls`}",
            "a[$(ls)]=1",
            "echo ${x//[a]/$(ls)}",
            "echo ${x%%]*$(ls)}",
            "trap 'echo bye' EXIT",
            "if true",
        ] {
            assert_eq!(line_kind(&bash, other, &programs), LineKind::Shell, "{other}");
        }
    }
}
