//! The words of a command line, read as GNU's programs read them: options anywhere before `--`,
//! short ones together, values attached or behind. `-d=` has the value `=`.

use lexopt::Parser;
use lexopt::prelude::ValueExt;

use super::ending::Ending;

/// The words that are still to be read.
pub(super) struct Words(Parser);

/// A word, or a part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum OptionWord {
    Short(char),
    Long(String),
    Operand(String),
}

impl Words {
    pub(super) fn new(args: &[String]) -> Self {
        let mut parser = Parser::from_args(args);
        parser.set_short_equals(false);
        Self(parser)
    }

    /// Reads the next option or operand.
    pub(super) fn next(&mut self) -> Result<Option<OptionWord>, Ending> {
        Ok(match self.0.next()? {
            None => None,
            Some(lexopt::Arg::Short(letter)) => Some(OptionWord::Short(letter)),
            Some(lexopt::Arg::Long(name)) => Some(OptionWord::Long(name.to_owned())),
            Some(lexopt::Arg::Value(value)) => Some(OptionWord::Operand(value.string()?)),
        })
    }

    /// Reads the value of the option that was read last.
    pub(super) fn value(&mut self) -> Result<String, Ending> {
        Ok(self.0.value()?.string()?)
    }

    /// Reads the value of the option that was read last, if one is attached to it.
    pub(super) fn attached(&mut self) -> Result<Option<String>, Ending> {
        Ok(self.0.optional_value().map(ValueExt::string).transpose()?)
    }
}

/// The files that are named, or the standard input where none is.
pub(super) fn or_standard_input(mut files: Vec<String>) -> Vec<String> {
    if files.is_empty() {
        files.push("-".to_owned());
    }
    files
}

/// Refuses an option that a program does not know.
pub(super) fn unknown(word: &OptionWord) -> Ending {
    Ending::usage(match word {
        OptionWord::Short(letter) => format!("invalid option -- '{letter}'"),
        OptionWord::Long(name) => format!("unrecognized option '--{name}'"),
        OptionWord::Operand(operand) => format!("extra operand '{operand}'"),
    })
}

/// Finds the long option that a name, perhaps cut short, stands for.
pub(super) fn complete<'k>(name: &str, known: &[&'k str]) -> Result<&'k str, Ending> {
    complete_in(name, known, |option| option).copied()
}

/// Finds the entry of a table whose long option a name, perhaps cut short, stands for. One that has no
/// name is not meant.
pub(super) fn complete_in<'t, T>(
    name: &str,
    known: &'t [T],
    long: impl Fn(&T) -> &str,
) -> Result<&'t T, Ending> {
    let fits = |option: &&T| !long(option).is_empty() && long(option).starts_with(name);
    let possible: Vec<&T> = known.iter().filter(fits).collect();
    match possible.as_slice() {
        [one] => Ok(one),
        [] => Err(unknown(&OptionWord::Long(name.to_owned()))),
        all => match all.iter().find(|option| long(option) == name) {
            Some(whole) => Ok(whole),
            None => {
                let all: String = all.iter().map(|option| format!(" '--{}'", long(option))).collect();
                Err(Ending::usage(format!("option '--{name}' is ambiguous; possibilities:{all}")))
            }
        },
    }
}

impl From<lexopt::Error> for Ending {
    fn from(error: lexopt::Error) -> Self {
        Self::usage(match &error {
            lexopt::Error::MissingValue { option: Some(option) } => match option.strip_prefix("--") {
                Some(name) => format!("option '--{name}' requires an argument"),
                None => format!("option requires an argument -- '{}'", option.trim_start_matches('-')),
            },
            lexopt::Error::UnexpectedValue { option, .. } => {
                format!("option '{option}' doesn't allow an argument")
            }
            other => other.to_string(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_be_cut_short_while_they_are_clear() {
        let said = |result: Result<&str, Ending>| match result {
            Err(Ending::Refused { reason, .. }) => reason,
            other => format!("{other:?}"),
        };
        assert_eq!(complete("deb", &["date", "date-only", "debug"]).unwrap(), "debug");
        assert_eq!(complete("date", &["date", "date-only"]).unwrap(), "date");
        assert!(said(complete("d", &["date", "debug"])).contains("possibilities: '--date' '--debug'"));
        assert_eq!(said(complete("x", &["date"])), "unrecognized option '--x'");
    }
}
