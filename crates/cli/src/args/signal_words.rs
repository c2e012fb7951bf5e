//! Signals as people type them for kill(1): `-9`, `-KILL`, `-SIGKILL`. The parser has no options of
//! that kind.

use std::ffi::OsString;

use clap::Subcommand;
use eyot::Signal;

use super::CliCommand;

/// Rewrites such a word of `eyot kill` as the option `--signal`. `words` are the program's name and the
/// arguments.
pub fn with_signal_option(words: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = words.into_iter().collect();
    let is_command = |word: &OsString| word.to_str().is_some_and(CliCommand::has_subcommand);
    let called = words.iter().skip(1).position(is_command).map(|at| at + 1);
    let Some(kill) = called.filter(|at| words[*at] == "kill") else { return words };
    for word in words[kill..].iter_mut().take_while(|word| *word != "--") {
        if let Some(signal) = word.to_str().and_then(signal_word) {
            *word = format!("--signal={signal}").into();
        }
    }
    words
}

/// Returns the signal of a word such as `-9` or `-KILL`. A single letter is an option.
fn signal_word(word: &str) -> Option<&str> {
    let signal = word.strip_prefix('-')?;
    let is_one = signal.starts_with(|first: char| first.is_ascii_digit() || first.is_ascii_uppercase());
    (is_one && Signal::parse(signal).is_ok()).then_some(signal)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rewritten(line: &str) -> String {
        let words = with_signal_option(line.split(' ').map(OsString::from));
        words.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_signal_that_is_typed_as_for_kill_is_an_option() {
        for (typed, read) in [
            ("eyot kill -9 box p1", "eyot kill --signal=9 box p1"),
            ("eyot --json kill box p1 -KILL", "eyot --json kill box p1 --signal=KILL"),
            ("eyot kill -SIGINT box p1", "eyot kill --signal=SIGINT box p1"),
        ] {
            assert_eq!(rewritten(typed), read);
        }
    }

    #[test]
    fn all_else_stays_as_it_was_typed() {
        for line in [
            "eyot kill -s KILL box p1",
            "eyot kill -q box p1",
            "eyot kill -99 box p1",
            "eyot kill -- -9 p1",
            "eyot exec box kill -9 1",
            "eyot run kill -9 1",
            "eyot",
        ] {
            assert_eq!(rewritten(line), line);
        }
    }
}
