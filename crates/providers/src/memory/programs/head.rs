//! `head`: prints the beginning of files.

use async_trait::async_trait;

use super::counts::signed_count;
use super::file_parts::print_parts;
use super::options::{OptionWord, Words, complete, or_standard_input, unknown};
use super::run::{Ending, ProgramRun, ShellProgram};

const LONG: &[&str] = &["bytes", "lines", "quiet", "silent", "verbose", "zero-terminated"];

pub(super) struct HeadProgram;

#[async_trait]
impl ShellProgram for HeadProgram {
    async fn run(&self, run: &ProgramRun<'_>) -> Result<i32, Ending> {
        let options = parse(run)?;
        let from_device = match options.part {
            FirstPart::Bytes(number) => Some(number),
            _ => None,
        };
        print_parts(run, &options.files, options.has_titles, from_device, |bytes| {
            options.part.of(bytes, options.end)
        })
        .await
    }
}

/// The part of a file to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FirstPart {
    Lines(u64),
    Bytes(u64),
    AllButLines(u64),
    AllButBytes(u64),
}

impl FirstPart {
    fn of(self, bytes: &[u8], end: u8) -> &[u8] {
        let size = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        match self {
            Self::Bytes(number) => &bytes[..bytes.len().min(size(number))],
            Self::AllButBytes(number) => &bytes[..bytes.len().saturating_sub(size(number))],
            Self::Lines(0) => &[],
            Self::Lines(number) => match memchr::memchr_iter(end, bytes).nth(size(number) - 1) {
                Some(at) => &bytes[..=at],
                None => bytes,
            },
            Self::AllButLines(0) => bytes,
            Self::AllButLines(number) => {
                // A last line without an end is a line too.
                let is_open = bytes.last().is_some_and(|last| *last != end);
                let ends = size(number) - usize::from(is_open);
                match memchr::memrchr_iter(end, bytes).nth(ends) {
                    Some(at) => &bytes[..=at],
                    None => &[],
                }
            }
        }
    }
}

struct Options {
    part: FirstPart,
    has_titles: Option<bool>,
    end: u8,
    files: Vec<String>,
}

fn parse(run: &ProgramRun<'_>) -> Result<Options, Ending> {
    let mut options = Options { part: FirstPart::Lines(10), has_titles: None, end: b'\n', files: Vec::new() };
    let old = run.args.first().and_then(|first| first.strip_prefix('-'));
    let old = old.filter(|text| text.starts_with(|digit: char| digit.is_ascii_digit()));
    let args = if old.is_some() { &run.args[1..] } else { run.args };
    if let Some(old) = old {
        old_form(old, &mut options)?;
    }
    let mut words = Words::new(args);
    while let Some(word) = words.next()? {
        let letter = match &word {
            OptionWord::Short(letter) => *letter,
            OptionWord::Long(name) => match complete(name, LONG)? {
                "bytes" => 'c',
                "lines" => 'n',
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
            'q' => options.has_titles = Some(false),
            'v' => options.has_titles = Some(true),
            'z' => options.end = 0,
            '0'..='9' => return Err(Ending::usage(format!("invalid trailing option -- {letter}"))),
            _ => return Err(unknown(&word)),
        }
    }
    options.files = or_standard_input(options.files);
    Ok(options)
}

fn part(value: &str, is_bytes: bool) -> Result<FirstPart, Ending> {
    let (number, is_rest) = signed_count(value, is_bytes, '-')?;
    Ok(match (is_bytes, is_rest) {
        (false, false) => FirstPart::Lines(number),
        (false, true) => FirstPart::AllButLines(number),
        (true, false) => FirstPart::Bytes(number),
        (true, true) => FirstPart::AllButBytes(number),
    })
}

/// Reads an option in the old form: `-5`, `-5c`, `-2kq`.
fn old_form(text: &str, options: &mut Options) -> Result<(), Ending> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, letters) = text.split_at(digits);
    let (mut is_bytes, mut unit) = (false, "");
    for letter in letters.chars() {
        match letter {
            'c' => (is_bytes, unit) = (true, ""),
            'b' => (is_bytes, unit) = (true, "b"),
            'k' => (is_bytes, unit) = (true, "k"),
            'm' => (is_bytes, unit) = (true, "m"),
            'l' => is_bytes = false,
            'q' => options.has_titles = Some(false),
            'v' => options.has_titles = Some(true),
            'z' => options.end = 0,
            other => return Err(Ending::usage(format!("invalid trailing option -- {other}"))),
        }
    }
    options.part = part(&format!("{number}{unit}"), is_bytes)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(part: FirstPart, text: &str) -> &str {
        std::str::from_utf8(part.of(text.as_bytes(), b'\n')).unwrap()
    }

    #[test]
    fn a_number_of_lines_or_bytes_is_printed_or_left_out() {
        assert_eq!(text(FirstPart::Lines(2), "1\n2\n3\n"), "1\n2\n");
        assert_eq!(text(FirstPart::Lines(0), "1\n"), "");
        assert_eq!(text(FirstPart::Lines(u64::MAX), "1\n2"), "1\n2");
        assert_eq!(text(FirstPart::AllButLines(1), "1\n2\n3"), "1\n2\n");
        assert_eq!(text(FirstPart::AllButLines(1), "1\n2\n3\n"), "1\n2\n");
        assert_eq!(text(FirstPart::AllButLines(4), "1\n2\n"), "");
        assert_eq!(text(FirstPart::AllButBytes(2), "12345"), "123");
        assert_eq!(text(FirstPart::Bytes(9), "12345"), "12345");
    }
}
