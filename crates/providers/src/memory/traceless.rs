//! Lines that leave no trace in their interpreter, and learn nothing from it but the state that it was given. After such a line
//! the interpreter can serve another command, even one of another sandbox.
//!
//! The rule allows what is listed here and nothing else. It reads the line with the interpreter's own parser.

use std::collections::HashMap;

use bashkit::ShellState;
use bashkit::parser::{
    Command, CommandList, ListOperator, Parser, Redirect, RedirectKind, SimpleCommand, Word, WordPart,
};

use super::known_programs::KnownPrograms;

/// A longer line is not worth being read twice.
const MAX_BYTES: usize = 4 << 10;
/// The limits of the parser.
const MAX_DEPTH: usize = 20;
const MAX_STEPS: usize = 50_000;

/// The programs that read and write files and outputs, and keep nothing in the interpreter. None of them starts another
/// program, or tells of the interpreter itself.
const PROGRAMS: [&str; 58] = [
    ":",
    "[",
    "base32",
    "base64",
    "basename",
    "cat",
    "chmod",
    "cksum",
    "cmp",
    "comm",
    "cp",
    "cut",
    "date",
    "diff",
    "dir",
    "dirname",
    "echo",
    "egrep",
    "expand",
    "expr",
    "false",
    "fgrep",
    "fmt",
    "fold",
    "grep",
    "head",
    "join",
    "ln",
    "ls",
    "md5sum",
    "mkdir",
    "mktemp",
    "mv",
    "nl",
    "od",
    "paste",
    "printf",
    "pwd",
    "readlink",
    "realpath",
    "rev",
    "rm",
    "rmdir",
    "sed",
    "seq",
    "sha1sum",
    "sha256sum",
    "sort",
    "stat",
    "tac",
    "tail",
    "tee",
    "test",
    "touch",
    "tr",
    "true",
    "uniq",
    "wc",
];

/// The variables whose values are given with each command. All others may be computed by the interpreter.
const VARIABLES: [&str; 5] = ["?", "HOME", "PATH", "PWD", "USER"];

/// The state that each command sets anew.
const SET_BY_COMMANDS: &str = "_";
const STATUSES: &str = "PIPESTATUS";

/// Tells whether a line leaves no trace.
pub(super) fn leaves_no_trace(line: &str, programs: &KnownPrograms) -> bool {
    // The parser has meanings of its own for some control characters.
    let is_text = |letter: char| !letter.is_control() || matches!(letter, '\n' | '\t');
    if line.len() > MAX_BYTES || !line.chars().all(is_text) {
        return false;
    }
    let Ok(script) = Parser::with_limits(line, MAX_DEPTH, MAX_STEPS).parse() else { return false };
    script.trailing_error.is_none() && script.commands.iter().all(|command| is_traceless(command, programs))
}

fn is_traceless(command: &Command, programs: &KnownPrograms) -> bool {
    match command {
        Command::Simple(simple) => is_simple(simple, programs),
        Command::Pipeline(pipeline) => pipeline.commands.iter().all(|part| is_traceless(part, programs)),
        Command::List(list) => is_list(list, programs),
        Command::Compound(..) | Command::Function(_) => false,
    }
}

fn is_list(list: &CommandList, programs: &KnownPrograms) -> bool {
    is_traceless(&list.first, programs)
        && list.rest.iter().all(|(operator, command)| {
            let waits = match operator {
                ListOperator::And | ListOperator::Or | ListOperator::Semicolon => true,
                ListOperator::Background => false,
            };
            waits && is_traceless(command, programs)
        })
}

fn is_simple(simple: &SimpleCommand, programs: &KnownPrograms) -> bool {
    let [WordPart::Literal(name)] = simple.name.parts.as_slice() else { return false };
    PROGRAMS.contains(&name.as_str())
        && programs.has(name)
        && simple.assignments.is_empty()
        && simple.args.iter().all(is_plain)
        && simple.redirects.iter().all(is_of_this_command)
        && !(name == "printf" && simple.args.iter().any(may_name_variable))
}

/// Tells whether a word of `printf` may be `-v`, by which it sets a variable.
fn may_name_variable(word: &Word) -> bool {
    match word.parts.as_slice() {
        [WordPart::Literal(text)] => text.contains("-v"),
        _ => true,
    }
}

/// Tells whether a word is made of text and of variables that were given.
fn is_plain(word: &Word) -> bool {
    word.parts.iter().all(|part| match part {
        WordPart::Literal(_) => true,
        WordPart::Variable(name) => VARIABLES.contains(&name.as_str()),
        _ => false,
    })
}

/// Tells whether a redirection concerns an ordinary file or the three usual descriptors, and ends with its command.
fn is_of_this_command(redirect: &Redirect) -> bool {
    let is_usual = redirect.fd_var.is_none() && redirect.fd.is_none_or(|fd| (0..=2).contains(&fd));
    let target = match redirect.target.parts.as_slice() {
        [WordPart::Literal(text)] => Some(text.as_str()),
        _ => None,
    };
    let is_expected = match redirect.kind {
        RedirectKind::Output
        | RedirectKind::Clobber
        | RedirectKind::Append
        | RedirectKind::OutputBoth
        | RedirectKind::Input => target.is_some_and(|path| path == "/dev/null" || !is_provided(path)),
        RedirectKind::HereDoc | RedirectKind::HereDocStrip | RedirectKind::HereString => {
            is_plain(&redirect.target)
        }
        RedirectKind::DupOutput => matches!(target, Some("1" | "2")),
        RedirectKind::DupInput | RedirectKind::ReadWrite => false,
    };
    is_usual && is_expected
}

/// Tells whether a path may lead to the interpreter's own descriptors.
fn is_provided(path: &str) -> bool {
    path.contains("dev/") || path.contains("proc/")
}

/// Tells whether an interpreter's state is the one that it was given, apart from what each command sets.
pub(super) fn is_as_given(given: &ShellState, now: &ShellState) -> bool {
    given.env == now.env
        && is_same_without(SET_BY_COMMANDS, &given.variables, &now.variables)
        && given.var_attrs == now.var_attrs
        && given.namerefs == now.namerefs
        && is_same_without(STATUSES, &given.arrays, &now.arrays)
        && given.assoc_arrays == now.assoc_arrays
        && given.cwd == now.cwd
        && given.last_bg_pid == now.last_bg_pid
        && given.functions.is_empty()
        && now.functions.is_empty()
        && given.aliases == now.aliases
        && given.traps == now.traps
        && given.dir_stack == now.dir_stack
}

/// Compares two maps without one of their keys.
fn is_same_without<V: PartialEq>(key: &str, left: &HashMap<String, V>, right: &HashMap<String, V>) -> bool {
    let rest = |map: &HashMap<String, V>| map.len() - usize::from(map.contains_key(key));
    rest(left) == rest(right)
        && left.iter().all(|(name, value)| name == key || right.get(name) == Some(value))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bashkit::Bash;

    use super::*;
    use crate::memory::plain::{LineKind, line_kind};
    use crate::memory::programs;

    #[test]
    fn a_line_of_readers_and_writers_of_files_leaves_no_trace() {
        let bash = Bash::new();
        let programs = KnownPrograms::new(Arc::new(Bash::builder), programs::names_of_ours());
        for line in [
            "echo hi",
            "printf '%s\\n' a b | sort -r >\"sorted\" || cat \"$HOME/f\"",
            "cat <f 2>/dev/null | grep -n x; echo $?",
            "ls -la *.rs &>all && ! test -e all",
            "[ -d $PWD ]; mkdir -p d/{a,b} 2>&1",
            "cat <<E\n$USER\nE\nwc -l <<<text",
        ] {
            assert!(leaves_no_trace(line, &programs), "{line}");
            assert_eq!(line_kind(&bash, line, &programs), LineKind::Plain, "{line}");
        }
        for name in PROGRAMS {
            assert!(leaves_no_trace(&format!("{name} a"), &programs), "{name}");
        }
    }

    #[test]
    fn any_other_line_may_leave_one() {
        let programs = KnownPrograms::new(Arc::new(Bash::builder), programs::names_of_ours());
        for line in [
            "x=1",
            "x=1 echo",
            "echo ${x:=1}",
            "echo ${x}",
            "echo $x",
            "echo $RANDOM",
            "echo $_ $SECONDS",
            "echo $((x=1))",
            "echo $(echo)",
            "echo `echo`",
            "cat <(echo)",
            "tee >(cat)",
            "echo & echo",
            "cd /",
            "exec 3>f",
            "exec >f",
            "echo 3>f",
            "echo >&3",
            "cat <&3",
            "cat <>f",
            "echo {fd}>f",
            "printf -v x y",
            "printf $HOME",
            "printf -vx y",
            "f() { echo; }",
            "[[ a =~ a ]]",
            "((1))",
            "for i in a; do echo; done",
            "if true; then echo; fi",
            "(echo)",
            "{ echo; }",
            "time echo",
            "set -x",
            "export A",
            "read x",
            "trap : EXIT",
            "history",
            "hash",
            "xargs echo",
            "awk 1",
            "find .",
            "sleep 1",
            "timeout 1 echo",
            "nosuch",
            "./echo",
            "/bin/echo",
            "$HOME",
            "ec$HOME",
            "echo >/dev/fd/3",
            "cat </proc/self/fd/3",
            "cat <$HOME/f",
            "echo hi\u{1}",
            "echo 'a",
            "shopt -s extglob",
        ] {
            assert!(!leaves_no_trace(line, &programs), "{line}");
        }
        assert!(!leaves_no_trace(&format!("echo {}", "a".repeat(MAX_BYTES)), &programs));
    }

    #[tokio::test]
    async fn a_state_is_as_given_until_a_line_changes_it() {
        for (line, is_same) in [
            ("echo a | cat; false", true),
            ("x=1", false),
            ("export PATH", false),
            ("cd /tmp", false),
            ("a[3]=1", false),
            ("declare -A a=([b]=1)", false),
            ("f() { :; }", false),
            ("shopt -s expand_aliases; alias a=b", false),
            ("trap 'echo' EXIT INT", false),
            ("sleep 0 & wait", false),
            ("printf {-v,x} y", false),
        ] {
            let mut bash = Bash::new();
            let given = bash.shell_state();
            bash.exec(line).await.unwrap();
            assert_eq!(is_as_given(&given, &bash.shell_state()), is_same, "{line}");
        }
    }
}
