//! `cut`: parts of lines, by bytes or by fields. A character is a byte, as in GNU's.

use async_trait::async_trait;
use memchr::memchr_iter;

use super::each_file::EachFile;
use super::lines::next_line;
use super::options::{OptionWord, complete, or_standard_input, unknown};
use super::paced_output::PacedOutput;
use super::quoting::curly;
use super::run::{Ending, ProgramRun, ShellProgram};

const LONG: &[&str] = &[
    "bytes",
    "characters",
    "complement",
    "delimiter",
    "fields",
    "only-delimited",
    "output-delimiter",
    "zero-terminated",
];

pub(super) struct CutProgram;

#[async_trait]
impl ShellProgram for CutProgram {
    async fn run(&self, run: &ProgramRun<'_>) -> Result<i32, Ending> {
        let cutter = parse(run)?;
        let mut files = EachFile::new(run, &cutter.files);
        while let Some(bytes) = files.next(|file, reason| format!("{file}: {reason}")).await? {
            cutter.print(run, &bytes).await?;
        }
        Ok(files.status)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CutUnit {
    Byte,
    Field,
}

/// The parts to print, and how.
#[derive(Debug)]
struct PartCutter {
    unit: CutUnit,
    /// The ranges from and to a number, counted from one, in order.
    ranges: Vec<(usize, usize)>,
    delimiter: u8,
    output_delimiter: Option<Vec<u8>>,
    only_delimited: bool,
    end: u8,
    files: Vec<String>,
}

fn parse(run: &ProgramRun<'_>) -> Result<PartCutter, Ending> {
    let mut list = None;
    let (mut delimiter, mut output_delimiter, mut is_complement) = (None, None, false);
    let (mut only_delimited, mut end, mut files) = (false, b'\n', Vec::new());
    let mut words = run.words();
    while let Some(word) = words.next()? {
        let letter = match &word {
            OptionWord::Short(letter) => *letter,
            OptionWord::Long(name) => match complete(name, LONG)? {
                "complement" => 'C',
                "output-delimiter" => 'o',
                "zero-terminated" => 'z',
                "only-delimited" => 's',
                other => other.chars().next().unwrap_or_default(),
            },
            OptionWord::Operand(operand) => {
                files.push(operand.clone());
                continue;
            }
        };
        match letter {
            'b' | 'c' | 'f' => {
                let unit = if letter == 'f' { CutUnit::Field } else { CutUnit::Byte };
                if list.replace((unit, words.value()?)).is_some() {
                    return Err(Ending::usage("only one list may be specified"));
                }
            }
            'd' => delimiter = Some(one_byte(&words.value()?)?),
            's' => only_delimited = true,
            'z' => end = 0,
            'n' => {}
            'C' if matches!(word, OptionWord::Long(_)) => is_complement = true,
            'o' if matches!(word, OptionWord::Long(_)) => {
                output_delimiter = Some(words.value()?.into_bytes())
            }
            _ => return Err(unknown(&word)),
        }
    }
    let missing = || Ending::usage("you must specify a list of bytes, characters, or fields");
    let (unit, list) = list.ok_or_else(missing)?;
    if unit == CutUnit::Byte && delimiter.is_some() {
        return Err(Ending::usage("an input delimiter may be specified only when operating on fields"));
    }
    if unit == CutUnit::Byte && only_delimited {
        let reason = "suppressing non-delimited lines makes sense\n\tonly when operating on fields";
        return Err(Ending::usage(reason));
    }
    let ranges = ranges(&list, unit)?;
    let has_spaces = output_delimiter.is_some();
    let ranges = if is_complement { complement(&ranges) } else { merged(ranges, unit, has_spaces) };
    let files = or_standard_input(files);
    let output_delimiter = output_delimiter.map(|bytes| if bytes.is_empty() { vec![0] } else { bytes });
    let delimiter = delimiter.unwrap_or(b'\t');
    Ok(PartCutter { unit, ranges, delimiter, output_delimiter, only_delimited, end, files })
}

fn one_byte(value: &str) -> Result<u8, Ending> {
    match value.as_bytes() {
        [] => Ok(0),
        [one] => Ok(*one),
        _ => Err(Ending::usage("the delimiter must be a single character")),
    }
}

/// Reads a list: `N`, `N-`, `N-M` and `-M`, between commas or blanks.
fn ranges(list: &str, unit: CutUnit) -> Result<Vec<(usize, usize)>, Ending> {
    let is_field = unit == CutUnit::Field;
    let zero = || {
        let what = if is_field { "fields" } else { "byte/character positions" };
        Ending::usage(format!("{what} are numbered from 1"))
    };
    let number = |text: &str| {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        if digits < text.len() {
            let what = if is_field { "field value" } else { "byte/character position" };
            return Err(Ending::usage(format!("invalid {what} {}", curly(&text[digits..]))));
        }
        text.parse().map_err(|_| {
            let what = if is_field { "field number" } else { "byte/character offset" };
            Ending::usage(format!("{what} {} is too large", curly(text)))
        })
    };
    let mut all = Vec::new();
    for part in list.split([',', ' ', '\t']) {
        let (from, to) = match part.split_once('-') {
            Some(("", "")) => return Err(Ending::usage("invalid range with no endpoint: -")),
            Some((_, to)) if to.contains('-') => {
                return Err(Ending::usage(if is_field {
                    "invalid field range"
                } else {
                    "invalid byte or character range"
                }));
            }
            Some(("", to)) => (1, number(to)?),
            Some((from, "")) => (number(from)?, usize::MAX),
            Some((from, to)) => (number(from)?, number(to)?),
            None if part.is_empty() => (0, 0),
            None => {
                let only = number(part)?;
                (only, only)
            }
        };
        if from == 0 || to == 0 {
            return Err(zero());
        }
        if to < from {
            return Err(Ending::usage("invalid decreasing range"));
        }
        all.push((from, to));
    }
    all.sort_unstable();
    Ok(all)
}

/// Joins ranges that overlap. Adjacent ranges are joined too, if nothing is printed between them.
fn merged(ranges: Vec<(usize, usize)>, unit: CutUnit, has_spaces: bool) -> Vec<(usize, usize)> {
    let touches = usize::from(unit == CutUnit::Field || !has_spaces);
    let mut all: Vec<(usize, usize)> = Vec::new();
    for (from, to) in ranges {
        match all.last_mut() {
            Some(last) if from <= last.1.saturating_add(touches) => last.1 = last.1.max(to),
            _ => all.push((from, to)),
        }
    }
    all
}

/// The ranges between these.
fn complement(ranges: &[(usize, usize)]) -> Vec<(usize, usize)> {
    let mut all = Vec::new();
    let mut next = 1;
    for (from, to) in ranges {
        if next < *from {
            all.push((next, from - 1));
        }
        next = next.max(to.saturating_add(1));
    }
    if next < usize::MAX {
        all.push((next, usize::MAX));
    }
    all
}

impl PartCutter {
    async fn print(&self, run: &ProgramRun<'_>, bytes: &[u8]) -> Result<(), Ending> {
        let mut out = PacedOutput::new(run);
        let mut rest = bytes;
        while !rest.is_empty() {
            let line = self.next_line(&mut rest);
            self.cut(line, &mut out).await?;
        }
        out.flush().await
    }

    /// Takes the next line. If lines are fields, all of them are one line.
    fn next_line<'a>(&self, rest: &mut &'a [u8]) -> &'a [u8] {
        if self.unit == CutUnit::Field && self.delimiter == self.end {
            let all = std::mem::take(rest);
            return all.strip_suffix(&[self.end]).unwrap_or(all);
        }
        next_line(rest, self.end).unwrap_or_default()
    }

    /// Writes the parts of a line.
    async fn cut(&self, line: &[u8], out: &mut PacedOutput<'_, '_>) -> Result<(), Ending> {
        match self.unit {
            CutUnit::Byte => self.cut_bytes(line, out).await?,
            CutUnit::Field if memchr::memchr(self.delimiter, line).is_some() => {
                self.cut_fields(line, out).await?;
            }
            CutUnit::Field if self.only_delimited => return Ok(()),
            CutUnit::Field => out.add(line).await?,
        }
        out.add(&[self.end]).await
    }

    async fn cut_bytes(&self, line: &[u8], out: &mut PacedOutput<'_, '_>) -> Result<(), Ending> {
        let mut is_first = true;
        for (from, to) in self.ranges.iter().take_while(|(from, _)| *from <= line.len()) {
            match &self.output_delimiter {
                Some(delimiter) if !is_first => out.add(delimiter).await?,
                _ => {}
            }
            out.add(&line[from - 1..line.len().min(*to)]).await?;
            is_first = false;
        }
        Ok(())
    }

    async fn cut_fields(&self, line: &[u8], out: &mut PacedOutput<'_, '_>) -> Result<(), Ending> {
        let mut ranges = self.ranges.iter();
        let mut range = ranges.next();
        let (mut start, mut is_first) = (0, true);
        let ends = memchr_iter(self.delimiter, line).chain(std::iter::once(line.len()));
        for (index, end) in ends.enumerate() {
            let number = index + 1;
            while range.is_some_and(|(_, to)| *to < number) {
                range = ranges.next();
            }
            let Some((from, _)) = range else { return Ok(()) };
            if *from <= number {
                if !is_first {
                    let between = self.output_delimiter.as_deref();
                    out.add(between.unwrap_or(&[self.delimiter])).await?;
                }
                out.add(&line[start..end]).await?;
                is_first = false;
            } else {
                out.step().await;
            }
            start = end + 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(list: &str, unit: CutUnit) -> String {
        match ranges(list, unit) {
            Err(Ending::Refused { reason, .. }) => reason,
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn a_list_is_sorted_and_its_ranges_are_joined() {
        let read = |list: &str| merged(ranges(list, CutUnit::Field).unwrap(), CutUnit::Field, false);
        assert_eq!(read("3,1-2 7-"), [(1, 3), (7, usize::MAX)]);
        assert_eq!(read("-2,5"), [(1, 2), (5, 5)]);
        assert_eq!(complement(&read("2-3,5")), [(1, 1), (4, 4), (6, usize::MAX)]);
    }

    #[test]
    fn a_list_that_is_none_is_refused() {
        assert_eq!(reason("0", CutUnit::Field), "fields are numbered from 1");
        assert_eq!(reason("3-1", CutUnit::Byte), "invalid decreasing range");
        assert_eq!(reason("-", CutUnit::Byte), "invalid range with no endpoint: -");
        assert_eq!(reason("1x", CutUnit::Field), "invalid field value ‘x’");
    }
}
