//! The options of programs that run a command: they end where the command begins.

use super::options::complete_in;
use super::run::{Ending, ProgramRun};

/// An option that a program knows.
pub(super) struct KnownOption {
    /// The letter. It stands for the option in what is read.
    pub short: char,
    /// The name. It is empty where another option has it.
    pub long: &'static str,
    pub value: ValueRule,
}

/// The rule for an option's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueRule {
    Never,
    Always,
    /// Only attached to it.
    Attached,
}

/// An option as it was given.
pub(super) type GivenOption = (char, Option<String>);

/// Reads the options in front of a command. The rest is the command.
pub(super) fn read_options<'a>(
    args: &'a [String],
    known: &[KnownOption],
) -> Result<(Vec<GivenOption>, &'a [String]), Ending> {
    let mut given = Vec::new();
    let mut rest = args;
    while let Some((word, after)) = rest.split_first() {
        if word == "--" {
            return Ok((given, after));
        }
        let mut values = after.iter().cloned();
        if let Some(long) = word.strip_prefix("--") {
            given.push(read_long(long, &mut values, known)?);
        } else if let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            read_letters(letters, &mut values, known, &mut given)?;
        } else {
            break;
        }
        rest = &after[after.len() - values.len()..];
    }
    Ok((given, rest))
}

/// The answer to `--help` and `--version`, where one of them comes first.
pub(super) fn about(run: &ProgramRun<'_>, operands: &str) -> Option<String> {
    match run.args.first()?.as_str() {
        "--help" => Some(format!("Usage: {} [OPTION]... {operands}\n", run.name)),
        "--version" => Some(format!("{} (Eyot) {}\n", run.name, env!("CARGO_PKG_VERSION"))),
        _ => None,
    }
}

fn read_long(
    word: &str,
    values: &mut impl Iterator<Item = String>,
    known: &[KnownOption],
) -> Result<GivenOption, Ending> {
    let (name, attached) = match word.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (word, None),
    };
    let option = complete_in(name, known, |option| option.long)?;
    let long = option.long;
    let value = match (option.value, attached) {
        (ValueRule::Never, Some(_)) => {
            return Err(Ending::usage(format!("option '--{long}' doesn't allow an argument")));
        }
        (ValueRule::Always, None) => {
            let missing = || Ending::usage(format!("option '--{long}' requires an argument"));
            Some(values.next().ok_or_else(missing)?)
        }
        (_, attached) => attached,
    };
    Ok((option.short, value))
}

fn read_letters(
    letters: &str,
    values: &mut impl Iterator<Item = String>,
    known: &[KnownOption],
    given: &mut Vec<GivenOption>,
) -> Result<(), Ending> {
    for (index, letter) in letters.char_indices() {
        let Some(option) = known.iter().find(|option| option.short == letter) else {
            return Err(Ending::usage(format!("invalid option -- '{letter}'")));
        };
        let attached = &letters[index + letter.len_utf8()..];
        let attached = Some(attached.to_owned()).filter(|value| !value.is_empty());
        let missing = || Ending::usage(format!("option requires an argument -- '{letter}'"));
        match option.value {
            ValueRule::Never => given.push((letter, None)),
            ValueRule::Attached => {
                given.push((letter, attached));
                return Ok(());
            }
            ValueRule::Always => {
                given.push((letter, Some(attached.or_else(|| values.next()).ok_or_else(missing)?)));
                return Ok(());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: &[KnownOption] = &[
        KnownOption { short: 'n', long: "max-args", value: ValueRule::Always },
        KnownOption { short: 's', long: "max-chars", value: ValueRule::Always },
        KnownOption { short: 'i', long: "replace", value: ValueRule::Attached },
        KnownOption { short: 'r', long: "no-run-if-empty", value: ValueRule::Never },
    ];

    fn read(line: &str) -> Result<(Vec<GivenOption>, Vec<String>), String> {
        let args: Vec<String> = line.split(' ').map(str::to_owned).collect();
        match read_options(&args, KNOWN) {
            Ok((given, rest)) => Ok((given, rest.to_vec())),
            Err(Ending::Refused { reason, .. }) => Err(reason),
            Err(other) => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn options_end_where_the_command_begins() {
        let (given, rest) = read("-rn3 --max-a 5 -i --replace=% echo -n x").unwrap();
        let value = |text: &str| Some(text.to_owned());
        assert_eq!(
            given,
            [('r', None), ('n', value("3")), ('n', value("5")), ('i', None), ('i', value("%"))]
        );
        assert_eq!(rest, ["echo", "-n", "x"]);
        assert_eq!(read("-- -r").unwrap(), (vec![], vec!["-r".to_owned()]));
    }

    #[test]
    fn wrong_options_are_refused_in_the_usual_words() {
        assert_eq!(read("-z").unwrap_err(), "invalid option -- 'z'");
        assert_eq!(read("-n").unwrap_err(), "option requires an argument -- 'n'");
        assert_eq!(read("--max-args").unwrap_err(), "option '--max-args' requires an argument");
        assert_eq!(
            read("--no-run-if-empty=1").unwrap_err(),
            "option '--no-run-if-empty' doesn't allow an argument"
        );
        assert_eq!(
            read("--max").unwrap_err(),
            "option '--max' is ambiguous; possibilities: '--max-args' '--max-chars'"
        );
        assert_eq!(read("--nosuch").unwrap_err(), "unrecognized option '--nosuch'");
    }
}
