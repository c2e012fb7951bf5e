//! Lines that run as they are, without a shell around them: they start no other shell, and leave
//! nothing behind that would run on.

use bashkit::Bash;
use bashkit::analysis::is_command_wrapper;

use super::known_programs::KnownPrograms;

/// A longer line gets a shell of its own: it is not worth being read twice.
const MAX_PLAIN_BYTES: usize = 16 << 10;
/// Programs that run other programs, or know of background commands, or change what words mean.
const NEVER_PLAIN: [&str; 14] = [
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
    "wait",
];

/// Tells whether a line is plain. A line that can't be read is not.
pub(super) fn is_plain(bash: &Bash, line: &str, programs: &KnownPrograms) -> bool {
    if line.len() > MAX_PLAIN_BYTES || has_background(line) {
        return false;
    }
    let Ok(read) = bash.analyze(line) else { return false };
    let is_plain = |name: &&str| {
        let is_own = read.functions.iter().any(|function| function == name);
        is_own || (programs.has(name) && !NEVER_PLAIN.contains(name) && !is_command_wrapper(name))
    };
    !read.truncated
        && !read.has_dynamic_commands
        && !read.has_interpreter_reentry
        && read.command_names().iter().all(is_plain)
}

/// Tells whether a line may start something in the background. Any `&` counts that is not a part of
/// `&&` or of a redirection, even one in quotes.
fn has_background(line: &str) -> bool {
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
        ] {
            assert!(is_plain(&bash, plain, &programs), "{plain}");
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
            "if true",
        ] {
            assert!(!is_plain(&bash, other, &programs), "{other}");
        }
    }
}
