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
pub(super) fn complete(name: &str, known: &[&'static str]) -> Result<&'static str, Ending> {
    if let Some(whole) = known.iter().find(|option| **option == name) {
        return Ok(whole);
    }
    let possible: Vec<&'static str> =
        known.iter().copied().filter(|option| option.starts_with(name)).collect();
    match possible.as_slice() {
        [one] => Ok(one),
        [] => Err(unknown(&OptionWord::Long(name.to_owned()))),
        _ => {
            let all: String = possible.iter().map(|option| format!(" '--{option}'")).collect();
            Err(Ending::usage(format!("option '--{name}' is ambiguous; possibilities:{all}")))
        }
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
