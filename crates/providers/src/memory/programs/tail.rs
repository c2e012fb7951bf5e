//! `tail`: prints the end of files. It does not follow files: `-f` is refused for a file, and has no effect for a pipe.

use async_trait::async_trait;

use super::counts::signed_count;
use super::file_parts::print_parts;
use super::options::{OptionWord, Words, complete, or_standard_input, unknown};
use super::run::{Ending, ProgramRun, ShellProgram};

const LONG: &[&str] = &[
    "bytes",
    "follow",
    "lines",
    "pid",
    "quiet",
    "retry",
    "silent",
    "sleep-interval",
    "verbose",
    "zero-terminated",
];

pub(super) struct Tail;

#[async_trait]
impl ShellProgram for Tail {
    async fn run(&self, run: &ProgramRun<'_>) -> Result<i32, Ending> {
        let options = parse(run)?;
        if options.follows && options.files.iter().any(|file| file != "-") {
            return Err(Ending::refused("following files is not supported here"));
        }
        print_parts(run, &options.files, options.has_titles, None, |bytes| {
            options.part.of(bytes, options.end)
        })
        .await
    }
}

/// The part of a file to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LastPart {
    Lines(u64),
    Bytes(u64),
    /// The lines from this one on, counted from one.
    FromLine(u64),
    FromByte(u64),
}

impl LastPart {
    fn of(self, bytes: &[u8], end: u8) -> &[u8] {
        let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        match self {
            Self::Bytes(number) => &bytes[bytes.len().saturating_sub(size(number))..],
            Self::FromByte(number) => &bytes[bytes.len().min(size(number.saturating_sub(1)))..],
            Self::FromLine(0 | 1) => bytes,
            Self::FromLine(number) => match memchr::memchr_iter(end, bytes).nth(size(number) - 2) {
                Some(at) => &bytes[at + 1..],
                None => &[],
            },
            Self::Lines(0) => &[],
            Self::Lines(number) => {
                // The line break at the very end does not begin another line.
                let before = &bytes[..bytes.len() - usize::from(bytes.ends_with(&[end]))];
                match memchr::memrchr_iter(end, before).nth(size(number) - 1) {
                    Some(at) => &bytes[at + 1..],
                    None => bytes,
                }
            }
        }
    }
}

struct Options {
    part: LastPart,
    follows: bool,
    has_titles: Option<bool>,
    end: u8,
    files: Vec<String>,
}

fn parse(run: &ProgramRun<'_>) -> Result<Options, Ending> {
    let mut options = Options {
        part: LastPart::Lines(10),
        follows: false,
        has_titles: None,
        end: b'\n',
        files: Vec::new(),
    };
    let is_old = run.args.len() <= 2 && run.args.first().is_some_and(|first| old_form(first, &mut options));
    let mut words = Words::new(if is_old { &run.args[1..] } else { run.args });
    while let Some(word) = words.next()? {
        let letter = match &word {
            OptionWord::Short(letter) => *letter,
            OptionWord::Long(name) => match complete(name, LONG)? {
                "bytes" => 'c',
                "follow" => {
                    words.attached()?;
                    'f'
                }
                "lines" => 'n',
                "pid" | "sleep-interval" => 's',
                "retry" => continue,
                "verbose" => 'v',
                "zero-terminated" => 'z',
                _ => 'q',
            },
            OptionWord::Operand(operand) => {
                options.files.push(operand.clone());
                continue;
            }
        };
        match letter {
            'c' | 'n' => options.part = part(&words.value()?, letter == 'c')?,
            'f' | 'F' => options.follows = true,
            's' => drop(words.value()?),
            'q' => options.has_titles = Some(false),
            'v' => options.has_titles = Some(true),
            'z' => options.end = 0,
            '0'..='9' => return Err(Ending::refused(format!("option used in invalid context -- {letter}"))),
            _ => return Err(unknown(&word)),
        }
    }
    options.files = or_standard_input(options.files);
    Ok(options)
}

fn part(value: &str, is_bytes: bool) -> Result<LastPart, Ending> {
    let (number, is_from) = signed_count(value, is_bytes, '+')?;
    Ok(match (is_bytes, is_from) {
        (false, false) => LastPart::Lines(number),
        (false, true) => LastPart::FromLine(number),
        (true, false) => LastPart::Bytes(number),
        (true, true) => LastPart::FromByte(number),
    })
}

/// Reads an option in the old form: `-5`, `+5`, `-5c`, `-5f`. Returns whether the text is one.
fn old_form(text: &str, options: &mut Options) -> bool {
    let (is_from, rest) = match (text.strip_prefix('-'), text.strip_prefix('+')) {
        (Some(rest), _) => (false, rest),
        (_, Some(rest)) => (true, rest),
        _ => return false,
    };
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (number, letters) = rest.split_at(digits);
    let (letters, follows) = letters.strip_suffix('f').map_or((letters, false), |letters| (letters, true));
    let Ok(number) = number.parse::<u64>() else { return false };
    options.part = match (letters, is_from) {
        ("" | "l", false) => LastPart::Lines(number),
        ("" | "l", true) => LastPart::FromLine(number),
        ("c", false) => LastPart::Bytes(number),
        ("c", true) => LastPart::FromByte(number),
        ("b", false) => LastPart::Bytes(number.saturating_mul(512)),
        _ => return false,
    };
    options.follows = follows;
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(part: LastPart, text: &str) -> &str {
        std::str::from_utf8(part.of(text.as_bytes(), b'\n')).unwrap()
    }

    #[test]
    fn the_last_lines_or_those_from_a_place_on_are_printed() {
        assert_eq!(text(LastPart::Lines(1), "1\n2\n3\n"), "3\n");
        assert_eq!(text(LastPart::Lines(2), "1\n2\n3"), "2\n3");
        assert_eq!(text(LastPart::Lines(9), "1\n2\n"), "1\n2\n");
        assert_eq!(text(LastPart::Lines(1), "\n"), "\n");
        assert_eq!(text(LastPart::Lines(0), "1\n"), "");
        assert_eq!(text(LastPart::FromLine(2), "1\n2\n3\n"), "2\n3\n");
        assert_eq!(text(LastPart::FromLine(4), "1\n2\n3\n"), "");
        assert_eq!(text(LastPart::Bytes(2), "123"), "23");
        assert_eq!(text(LastPart::FromByte(2), "123"), "23");
        assert_eq!(text(LastPart::FromByte(u64::MAX), "123"), "");
    }
}
