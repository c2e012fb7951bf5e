//! The command line of `jq`.

use super::write::JqStyle;
use crate::memory::programs::run::Ending;

const HINT: &str = "Use jq --help for help with command-line options,\n\
                    or see the jq manpage, or online docs  at https://jqlang.github.io/jq";
pub(super) const USAGE: &str = "Usage:\tjq [OPTIONS] FILTER [FILES...]\n\
    \tjq [OPTIONS] -f FILE [FILES...]\n\
    \tjq [OPTIONS] --args FILTER [ARGUMENTS...]\n\
    \tjq [OPTIONS] --jsonargs FILTER [JSON_VALUES...]\n";
const USAGE_STATUS: i32 = 2;

/// The text of a named argument, and how it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum JqNamedValue {
    JqText(String),
    Json(String),
    /// The values in a file, as an array.
    Values(String),
    /// The text of a file.
    File(String),
}

/// An argument behind `--args` or `--jsonargs`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Positional {
    JqText(String),
    Json(String),
}

#[derive(Debug, Clone, Default)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of the command line")]
pub(super) struct Options {
    pub filter: Option<String>,
    pub filter_is_file: bool,
    pub files: Vec<String>,
    pub named: Vec<(String, JqNamedValue)>,
    pub positional: Vec<Positional>,
    pub style: JqStyle,
    /// Strings are printed as they are.
    pub raw: bool,
    /// No line end follows.
    pub joins: bool,
    /// A zero byte follows.
    pub ends_with_zero: bool,
    pub marks_records: bool,
    pub no_input: bool,
    pub raw_input: bool,
    pub slurps: bool,
    pub streams: bool,
    pub sets_status: bool,
}

/// The task of a call.
#[derive(Debug)]
pub(super) enum JqTask {
    Run(Box<Options>),
    Print(&'static str),
}

/// The meaning of the words that are no options.
#[derive(Clone, Copy, PartialEq, Eq)]
enum OperandUse {
    Files,
    Args,
    JsonArgs,
}

struct JqWords<'a> {
    left: std::slice::Iter<'a, String>,
    options: Options,
    rest: OperandUse,
}

fn usage(reason: impl AsRef<str>) -> Ending {
    Ending::with_status(format!("{}\n{HINT}", reason.as_ref()), USAGE_STATUS)
}

/// Reads the command line.
pub(super) fn parse(args: &[String]) -> Result<JqTask, Ending> {
    let options = Options {
        style: JqStyle { indent: Some("  ".to_owned()), ..JqStyle::default() },
        ..Options::default()
    };
    let mut words = JqWords { left: args.iter(), options, rest: OperandUse::Files };
    let mut has_ended = false;
    while let Some(word) = words.left.next() {
        // `-1 | abs` is a filter.
        let is_option = word
            .strip_prefix('-')
            .is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_alphabetic() || first == '-'));
        if has_ended || !is_option {
            words.operand(word);
        } else if word == "--" {
            has_ended = true;
        } else if let Some(name) = word.strip_prefix("--") {
            if let Some(text) = printed(name) {
                return Ok(JqTask::Print(text));
            }
            words.long(name)?;
        } else {
            for letter in word[1..].chars() {
                match letter {
                    'h' => return Ok(JqTask::Print(USAGE)),
                    'V' => return Ok(JqTask::Print("jq-1.7.1\n")),
                    letter => words.short(letter, word)?,
                }
            }
        }
    }
    if words.options.filter.is_none() {
        // Without a filter everything is printed as it is, unless nothing was asked for.
        if args.is_empty() {
            return Err(Ending::with_status(USAGE.trim_end(), USAGE_STATUS));
        }
        words.options.filter = Some(".".to_owned());
    }
    Ok(JqTask::Run(Box::new(words.options)))
}

fn printed(name: &str) -> Option<&'static str> {
    match name {
        "help" => Some(USAGE),
        "version" => Some("jq-1.7.1\n"),
        _ => None,
    }
}

impl JqWords<'_> {
    fn operand(&mut self, word: &str) {
        if self.options.filter.is_none() {
            self.options.filter = Some(word.to_owned());
            return;
        }
        match self.rest {
            OperandUse::Files => self.options.files.push(word.to_owned()),
            OperandUse::Args => self.options.positional.push(Positional::JqText(word.to_owned())),
            OperandUse::JsonArgs => self.options.positional.push(Positional::Json(word.to_owned())),
        }
    }

    fn value(&mut self, option: &str) -> Result<String, Ending> {
        let missing = || usage(format!("--{option} takes one parameter (e.g. --{option} value)"));
        self.left.next().cloned().ok_or_else(missing)
    }

    fn short(&mut self, letter: char, word: &str) -> Result<(), Ending> {
        let options = &mut self.options;
        match letter {
            'n' => options.no_input = true,
            'r' => options.raw = true,
            'j' => (options.raw, options.joins) = (true, true),
            'a' => options.style.ascii = true,
            'c' => options.style.indent = None,
            'S' => options.style.sorts = true,
            's' => options.slurps = true,
            'R' => options.raw_input = true,
            'e' => options.sets_status = true,
            'f' => options.filter_is_file = true,
            // Nothing is coloured here.
            'C' | 'M' => {}
            'L' => drop(self.value("L")?),
            _ => return Err(usage(format!("Unknown option {word}"))),
        }
        Ok(())
    }

    fn long(&mut self, name: &str) -> Result<(), Ending> {
        const SHORT: [(&str, char); 14] = [
            ("null-input", 'n'),
            ("raw-output", 'r'),
            ("join-output", 'j'),
            ("ascii-output", 'a'),
            ("compact-output", 'c'),
            ("sort-keys", 'S'),
            ("slurp", 's'),
            ("raw-input", 'R'),
            ("exit-status", 'e'),
            ("from-file", 'f'),
            ("color-output", 'C'),
            ("monochrome-output", 'M'),
            ("library-path", 'L'),
            ("ascii", 'a'),
        ];
        if let Some((_, letter)) = SHORT.iter().find(|(long, _)| *long == name) {
            return self.short(*letter, name);
        }
        match name {
            "tab" => self.options.style.indent = Some("\t".to_owned()),
            "indent" => self.indent()?,
            "unbuffered" => {}
            "stream" => self.options.streams = true,
            "seq" => self.options.marks_records = true,
            "raw-output0" => (self.options.raw, self.options.ends_with_zero) = (true, true),
            "args" => self.rest = OperandUse::Args,
            "jsonargs" => self.rest = OperandUse::JsonArgs,
            "arg" => self.named(name, "varname value", JqNamedValue::JqText)?,
            "argjson" => self.named(name, "varname text", JqNamedValue::Json)?,
            "slurpfile" => self.named(name, "varname filename", JqNamedValue::Values)?,
            "rawfile" => self.named(name, "varname filename", JqNamedValue::File)?,
            _ => return Err(usage(format!("Unknown option --{name}"))),
        }
        Ok(())
    }

    fn named(&mut self, option: &str, example: &str, make: fn(String) -> JqNamedValue) -> Result<(), Ending> {
        let missing = || usage(format!("--{option} takes two parameters (e.g. --{option} {example})"));
        let (Some(name), Some(value)) = (self.left.next(), self.left.next()) else { return Err(missing()) };
        // The first of a name counts.
        if !self.options.named.iter().any(|(known, _)| known == name) {
            self.options.named.push((name.clone(), make(value.clone())));
        }
        Ok(())
    }

    fn indent(&mut self) -> Result<(), Ending> {
        let text = self.value("indent")?;
        let number: i64 = text.parse().unwrap_or(0);
        self.options.style.indent = match number {
            0 => None,
            1..=7 => Some(" ".repeat(usize::try_from(number).unwrap_or(2))),
            _ => return Err(usage("--indent takes a number between -1 and 7")),
        };
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(args: &[&str]) -> Options {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        match parse(&args) {
            Ok(JqTask::Run(options)) => *options,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn options_stand_anywhere_and_together() {
        let options = read(&["-rn", ".a", "file", "--arg", "x", "1", "-c", "--args", "y"]);
        assert!(options.raw && options.no_input && options.style.indent.is_none());
        assert_eq!((options.filter.as_deref(), options.files), (Some(".a"), vec!["file".to_owned()]));
        assert_eq!(options.named, [("x".to_owned(), JqNamedValue::JqText("1".to_owned()))]);
        assert_eq!(options.positional, [Positional::JqText("y".to_owned())]);
    }

    #[test]
    fn a_filter_may_begin_with_a_minus() {
        assert_eq!(read(&["-1|abs"]).filter.as_deref(), Some("-1|abs"));
    }

    #[test]
    fn unknown_options_are_refused() {
        for args in [&["-z", "."][..], &["--nothing"], &["--arg", "x"], &["--indent", "9", "."], &[]] {
            let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
            assert!(parse(&args).is_err(), "{args:?}");
        }
    }
}
