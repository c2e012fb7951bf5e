//! The command line of `xargs`.

use super::leading::{KnownOption, ValueRule, read_options};
use super::run::Ending;
use super::xargs_input::SplitRule;

/// The largest command line, as Linux's `xargs` has it by default.
pub(super) const MAX_LINE_BYTES: usize = 128 * 1024;

const OPTIONS: &[KnownOption] = &[
    KnownOption { short: '0', long: "null", value: ValueRule::Never },
    KnownOption { short: 'a', long: "arg-file", value: ValueRule::Always },
    KnownOption { short: 'd', long: "delimiter", value: ValueRule::Always },
    KnownOption { short: 'e', long: "eof", value: ValueRule::Attached },
    KnownOption { short: 'E', long: "", value: ValueRule::Always },
    KnownOption { short: 'i', long: "replace", value: ValueRule::Attached },
    KnownOption { short: 'I', long: "", value: ValueRule::Always },
    KnownOption { short: 'l', long: "max-lines", value: ValueRule::Attached },
    KnownOption { short: 'L', long: "", value: ValueRule::Always },
    KnownOption { short: 'n', long: "max-args", value: ValueRule::Always },
    KnownOption { short: 'o', long: "open-tty", value: ValueRule::Never },
    KnownOption { short: 'p', long: "interactive", value: ValueRule::Never },
    KnownOption { short: 's', long: "max-chars", value: ValueRule::Always },
    KnownOption { short: 'P', long: "max-procs", value: ValueRule::Always },
    KnownOption { short: 'r', long: "no-run-if-empty", value: ValueRule::Never },
    KnownOption { short: 't', long: "verbose", value: ValueRule::Never },
    KnownOption { short: 'x', long: "exit", value: ValueRule::Never },
    KnownOption { short: 'S', long: "process-slot-var", value: ValueRule::Always },
];

/// A command line that was read.
#[derive(Debug)]
pub(super) struct XargsRequest {
    pub splitting: SplitRule,
    pub end_word: Option<Vec<u8>>,
    pub file: Option<String>,
    pub replaced: Option<String>,
    pub max_args: Option<usize>,
    pub max_lines: Option<usize>,
    pub max_bytes: usize,
    pub at_once: usize,
    pub skips_empty: bool,
    pub is_shown: bool,
    /// A command line that is not full may not be split.
    pub must_fit: bool,
    /// Set if the program asks at a terminal, which does not exist here.
    pub asks: bool,
    pub slot_variable: Option<String>,
    pub command: Vec<String>,
}

impl XargsRequest {
    /// Reads a command line. What it warns of stands beside.
    pub(super) fn read(args: &[String]) -> Result<(Self, Vec<String>), Ending> {
        let (given, command) = read_options(args, OPTIONS)?;
        let command = if command.is_empty() { vec!["echo".to_owned()] } else { command.to_vec() };
        let mut request = Self {
            splitting: SplitRule::Words,
            end_word: None,
            file: None,
            replaced: None,
            max_args: None,
            max_lines: None,
            max_bytes: MAX_LINE_BYTES,
            at_once: 1,
            skips_empty: false,
            is_shown: false,
            must_fit: false,
            asks: false,
            slot_variable: None,
            command,
        };
        let mut warnings = Vec::new();
        for (letter, value) in given {
            request.apply(letter, value, &mut warnings)?;
        }
        if request.replaced.is_some() {
            request.must_fit = true;
            if request.splitting == SplitRule::Words {
                request.splitting = SplitRule::Lines;
            }
        }
        Ok((request, warnings))
    }

    fn apply(
        &mut self,
        letter: char,
        value: Option<String>,
        warnings: &mut Vec<String>,
    ) -> Result<(), Ending> {
        let text = value.clone().unwrap_or_default();
        match letter {
            '0' => self.splitting = SplitRule::At(0),
            'a' => self.file = value.filter(|name| name != "-"),
            'd' => self.splitting = SplitRule::At(delimiter(&text)?),
            'e' | 'E' => self.end_word = Some(text.into_bytes()).filter(|word| !word.is_empty()),
            'i' | 'I' => {
                self.replaced = Some(value.unwrap_or_else(|| "{}".to_owned()));
                ignore(&mut self.max_args, "--max-args", "--replace/-I/-i", warnings);
                ignore(&mut self.max_lines, "--max-lines", "--replace/-I/-i", warnings);
            }
            'l' | 'L' => {
                let lines = value.map_or(Ok(1), |text| number(&text, letter, 1))?;
                self.max_lines = Some(lines);
                ignore(&mut self.max_args, "--max-args", "--max-lines", warnings);
                if self.replaced.take().is_some() {
                    warnings.push(exclusive("--replace", &format!("-{letter}")));
                }
            }
            'n' => {
                self.max_args = Some(number(&text, 'n', 1)?);
                ignore(&mut self.max_lines, "--max-lines", "--max-args/-n", warnings);
                if self.max_args == Some(1) && self.replaced.is_some() {
                    self.max_args = None;
                } else if self.replaced.take().is_some() {
                    warnings.push(exclusive("--replace", "--max-args/-n"));
                }
            }
            'p' | 'o' => self.asks = true,
            'P' => self.at_once = number(&text, 'P', 0)?,
            'r' => self.skips_empty = true,
            's' => self.max_bytes = number(&text, 's', 1)?.min(MAX_LINE_BYTES),
            't' => self.is_shown = true,
            'x' => self.must_fit = true,
            _ => self.slot_variable = value,
        }
        Ok(())
    }

    /// The bytes of a command line without words of the input.
    pub(super) fn command_bytes(&self) -> usize {
        self.command.iter().map(|word| word.len() + 1).sum()
    }
}

fn exclusive(previous: &str, option: &str) -> String {
    format!("options {previous} and {option} are mutually exclusive, ignoring previous {previous} value")
}

fn ignore(value: &mut Option<usize>, name: &str, option: &str, warnings: &mut Vec<String>) {
    if value.take().is_some() {
        warnings.push(exclusive(name, option));
    }
}

fn number(text: &str, letter: char, least: usize) -> Result<usize, Ending> {
    let invalid = || Ending::usage(format!("invalid number \"{text}\" for -{letter} option"));
    let number: i64 = text.parse().map_err(|_| invalid())?;
    let too_small = || Ending::usage(format!("value {text} for -{letter} option should be >= {least}"));
    usize::try_from(number).ok().filter(|number| *number >= least).ok_or_else(too_small)
}

/// Reads the byte that ends words: itself, or as an escape.
fn delimiter(text: &str) -> Result<u8, Ending> {
    let escaped = |rest: &str| match rest.as_bytes() {
        [b'a'] => Some(7),
        [b'b'] => Some(8),
        [b'f'] => Some(12),
        [b'n'] => Some(b'\n'),
        [b'r'] => Some(b'\r'),
        [b't'] => Some(b'\t'),
        [b'v'] => Some(11),
        [b'\\'] => Some(b'\\'),
        [b'x', ..] => u8::from_str_radix(&rest[1..], 16).ok(),
        [b'0'..=b'7', ..] => u8::from_str_radix(rest, 8).ok(),
        _ => None,
    };
    let found = match text.as_bytes() {
        [byte] => Some(*byte),
        [b'\\', ..] => escaped(&text[1..]),
        _ => None,
    };
    found.ok_or_else(|| {
        let rule = "the delimiter must be either a single character or an escape sequence starting with \\.";
        Ending::refused(format!("Invalid input delimiter specification {text}: {rule}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<(XargsRequest, Vec<String>), String> {
        let args: Vec<String> = line.split(' ').map(str::to_owned).collect();
        match XargsRequest::read(&args) {
            Ok(read) => Ok(read),
            Err(Ending::Refused { reason, .. }) => Err(reason),
            Err(other) => Err(format!("{other:?}")),
        }
    }

    #[test]
    fn the_last_of_options_that_exclude_each_other_counts() {
        let (request, warnings) = read("-n2 -I{} echo {}").unwrap();
        assert_eq!((request.max_args, request.replaced.as_deref()), (None, Some("{}")));
        assert_eq!(
            warnings,
            [
                "options --max-args and --replace/-I/-i are mutually exclusive, ignoring previous --max-args value"
            ]
        );
        let (request, warnings) = read("-I{} -L1 echo {}").unwrap();
        assert_eq!((request.max_lines, request.replaced), (Some(1), None));
        assert_eq!(
            warnings,
            ["options --replace and -L are mutually exclusive, ignoring previous --replace value"]
        );
    }

    #[test]
    fn wrong_numbers_and_delimiters_are_refused() {
        assert_eq!(read("-n0 x").unwrap_err(), "value 0 for -n option should be >= 1");
        assert_eq!(read("-Px x").unwrap_err(), "invalid number \"x\" for -P option");
        assert_eq!(delimiter("\\x2c").unwrap(), b',');
        assert_eq!(delimiter("\\054").unwrap(), b',');
        assert!(delimiter("xx").is_err());
    }
}
