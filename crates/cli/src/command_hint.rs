//! Hints about a command that was typed as for a shell, or for a terminal: programs are started here
//! without either.

use std::path::Path;

use eyot::{Command, SandboxInfo};

use crate::args::TerminalArgs;
use crate::output::Output;
use crate::provider::has_hosts_programs;
use crate::terminal;

/// Commands of every shell that no program stands for.
const OF_SHELLS: [&str; 14] = [
    "alias", "bg", "cd", "eval", "exec", "export", "fg", "jobs", "set", "trap", "ulimit", "umask", "unalias",
    "unset",
];
/// Commands that bash has beside those.
const OF_BASH: [&str; 9] =
    ["declare", "history", "let", "local", "popd", "pushd", "shopt", "source", "typeset"];

/// Programs that install packages of a whole system.
const PACKAGE_MANAGERS: [&str; 8] = ["apk", "apt", "apt-get", "dnf", "dpkg", "pacman", "yum", "zypper"];

/// Shells and interpreters that read commands from a terminal where they have no arguments.
const READ_COMMANDS: [&str; 20] = [
    "ash",
    "bash",
    "bun",
    "dash",
    "deno",
    "fish",
    "ghci",
    "iex",
    "irb",
    "ksh",
    "lua",
    "mysql",
    "node",
    "psql",
    "python",
    "python3",
    "redis-cli",
    "sh",
    "sqlite3",
    "zsh",
];

/// Returns what to write instead of a command whose program is missing, if a shell would take it.
pub fn shell_hint(command: &Command) -> Option<String> {
    let Command::Argv(words) = command else { return None };
    let (first, rest) = words.split_first()?;
    if rest.is_empty() && first.contains(char::is_whitespace) {
        return Some(format!("a line for a shell needs one: -- sh -c {}", quoted(first)));
    }
    if let Some((name, value)) = first.split_once('=').filter(|(name, _)| is_variable(name)) {
        return Some(format!("-e sets a variable: -e {name}={} before the program", shell_word(value)));
    }
    let shell = match first.as_str() {
        word if OF_SHELLS.contains(&word) => "sh",
        word if OF_BASH.contains(&word) => "bash",
        _ => return None,
    };
    let words: Vec<String> = words.iter().map(|word| shell_word(word)).collect();
    let line = quoted(&format!("{} && COMMAND", words.join(" ")));
    let own = if first == "cd" { "; -w DIR starts a command elsewhere" } else { "" };
    Some(format!("`{first}` is a shell's own command and ends with it: -- {shell} -c {line}{own}"))
}

/// Says that a shell or an interpreter ends at once where it reads nothing: our terminal is not passed
/// on unasked. `again` is the command line up to the program, with `-it`.
pub fn note_without_terminal(words: &[String], asked: TerminalArgs, again: &str, output: Output) {
    let [program] = words else { return };
    let name = Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let is_asked = asked.interactive || asked.tty || output.json;
    if !is_asked && READ_COMMANDS.contains(&name) && terminal::is_both_ways() {
        output.note(&format!("`{program}` reads nothing; for a terminal: {again} {}", shell_word(program)));
    }
}

/// Says where packages come from, if a command asks a package manager of the image `host` for them: its system is this machine's,
/// and read-only.
pub fn package_hint(command: &Command, sandbox: &SandboxInfo) -> Option<&'static str> {
    let Command::Argv(words) = command else { return None };
    let program = words.iter().find(|word| *word != "sudo")?;
    (has_hosts_programs(sandbox) && PACKAGE_MANAGERS.contains(&program.as_str())).then_some(
        "the image `host` is this machine's own system, read-only. Install packages on this machine, or make an image: \
         eyot image build-base --name mine:1 -p PACKAGE, then --image mine:1. `pip` and `npm` install into the sandbox",
    )
}

/// Quotes a word for a shell, if it needs that.
pub fn shell_word(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "/._-+=:@%,".contains(letter);
    if !word.is_empty() && word.chars().all(is_plain) { word.to_owned() } else { quoted(word) }
}

fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn is_variable(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|first: char| first.is_ascii_digit())
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_only_a_shell_understands_is_written_for_one() {
        let hint = |words: &[&str]| shell_hint(&Command::argv(words.iter().copied())).unwrap_or_default();
        assert!(hint(&["echo it's | wc"]).ends_with(r"-- sh -c 'echo it'\''s | wc'"));
        assert!(hint(&["cd", "/tmp"]).contains("-- sh -c 'cd /tmp && COMMAND'; -w DIR"));
        assert!(hint(&["export", "A=b c"]).ends_with(r"-- sh -c 'export '\''A=b c'\'' && COMMAND'"));
        assert!(hint(&["source", "env.sh"]).ends_with("-- bash -c 'source env.sh && COMMAND'"));
        assert!(hint(&["A=1", "env"]).ends_with("-e A=1 before the program"));
        assert_eq!((hint(&["no-such-program"]), hint(&["./a=b"])), (String::new(), String::new()));
    }
}
