//! `comm`: two sorted files are compared line by line.

use async_trait::async_trait;

use super::lines::next_line;
use super::options::{OptionWord, complete, unknown};
use super::run::{BYTES_AT_ONCE, Ending, ProgramRun, ShellProgram};

/// The lines between two pauses in which others go on.
const LINES_AT_ONCE: usize = 512;

const LONG: &[&str] = &["check-order", "nocheck-order", "output-delimiter", "total", "zero-terminated"];

/// The treatment of a file that is not sorted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum OrderCheck {
    Never,
    /// A fault is reported as soon as one file has a line that the other lacks.
    #[default]
    IfUnpaired,
    /// The fault ends the run.
    Always,
}

#[derive(Debug)]
struct Options {
    shows: [bool; 3],
    order: OrderCheck,
    delimiter: Option<Vec<u8>>,
    has_total: bool,
    end: u8,
    operands: Vec<String>,
}

pub(super) struct Comm;

#[async_trait]
impl ShellProgram for Comm {
    async fn run(&self, run: &ProgramRun<'_>) -> Result<i32, Ending> {
        let options = parse(run)?;
        let mut files = Vec::new();
        for name in &options.operands {
            match run.read(name).await? {
                Ok(bytes) => files.push(bytes),
                Err(reason) => return Err(Ending::refused(format!("{name}: {reason}"))),
            }
        }
        let sides = [0, 1].map(|index| SortedLines::new(&files[index], options.end));
        Merge { run, options: &options, sides, counts: [0; 3], is_unpaired: false }.run().await
    }
}

fn parse(run: &ProgramRun<'_>) -> Result<Options, Ending> {
    let mut options = Options {
        shows: [true; 3],
        order: OrderCheck::default(),
        delimiter: None,
        has_total: false,
        end: b'\n',
        operands: Vec::new(),
    };
    let mut words = run.words();
    while let Some(word) = words.next()? {
        match word {
            OptionWord::Short('1') => options.shows[0] = false,
            OptionWord::Short('2') => options.shows[1] = false,
            OptionWord::Short('3') => options.shows[2] = false,
            OptionWord::Short('z') => options.end = 0,
            OptionWord::Short(_) => return Err(unknown(&word)),
            OptionWord::Operand(operand) => options.operands.push(operand),
            OptionWord::Long(name) => match complete(&name, LONG)? {
                "check-order" => options.order = OrderCheck::Always,
                "nocheck-order" => options.order = OrderCheck::Never,
                "total" => options.has_total = true,
                "zero-terminated" => options.end = 0,
                _ => {
                    let value = words.value()?.into_bytes();
                    if options.delimiter.as_ref().is_some_and(|before| *before != value) {
                        return Err(Ending::refused("multiple output delimiters specified"));
                    }
                    options.delimiter = Some(value);
                }
            },
        }
    }
    match options.operands.as_slice() {
        [] => Err(Ending::usage("missing operand")),
        [one] => Err(Ending::usage(format!("missing operand after ‘{one}’"))),
        [_, _, extra, ..] => Err(Ending::usage(format!("extra operand ‘{extra}’"))),
        _ => Ok(options),
    }
}

/// The lines of a file, and whether they are in order so far.
struct SortedLines<'a> {
    rest: &'a [u8],
    end: u8,
    line: Option<&'a [u8]>,
    is_disordered: bool,
    is_told: bool,
}

impl<'a> SortedLines<'a> {
    fn new(bytes: &'a [u8], end: u8) -> Self {
        let mut lines = Self { rest: bytes, end, line: None, is_disordered: false, is_told: false };
        lines.next();
        lines
    }

    fn next(&mut self) {
        let before = self.line;
        self.line = next_line(&mut self.rest, self.end);
        let Some(line) = self.line else { return };
        self.is_disordered |= before.is_some_and(|before| before > line);
    }
}

struct Merge<'a, 'r> {
    run: &'a ProgramRun<'r>,
    options: &'a Options,
    sides: [SortedLines<'a>; 2],
    counts: [u64; 3],
    /// A line was in one file alone.
    is_unpaired: bool,
}

impl Merge<'_, '_> {
    async fn run(mut self) -> Result<i32, Ending> {
        let mut out = Vec::new();
        let mut steps = 0;
        self.check(&mut out).await?;
        loop {
            let column = match (self.sides[0].line, self.sides[1].line) {
                (None, None) => break,
                (Some(_), None) => 0,
                (None, Some(_)) => 1,
                (Some(left), Some(right)) => match left.cmp(right) {
                    std::cmp::Ordering::Less => 0,
                    std::cmp::Ordering::Greater => 1,
                    std::cmp::Ordering::Equal => 2,
                },
            };
            self.write(column, &mut out);
            self.is_unpaired |= column != 2;
            for (index, side) in self.sides.iter_mut().enumerate() {
                if column == 2 || column == index {
                    side.next();
                }
            }
            self.check(&mut out).await?;
            steps += 1;
            if steps % LINES_AT_ONCE == 0 || out.len() > BYTES_AT_ONCE {
                self.run.breathe().await;
                self.run.print(std::mem::take(&mut out)).await?;
            }
        }
        if self.options.has_total {
            let (delimiter, [one, two, both]) = (String::from_utf8_lossy(self.delimiter()), self.counts);
            let total = format!("{one}{delimiter}{two}{delimiter}{both}{delimiter}total");
            out.extend_from_slice(total.as_bytes());
            out.push(self.options.end);
        }
        self.run.print(out).await?;
        if self.sides.iter().any(|side| side.is_told) {
            return Err(Ending::refused("input is not in sorted order"));
        }
        Ok(0)
    }

    fn delimiter(&self) -> &[u8] {
        match self.options.delimiter.as_deref() {
            None => b"\t",
            Some(b"") => b"\0",
            Some(delimiter) => delimiter,
        }
    }

    fn write(&mut self, column: usize, out: &mut Vec<u8>) {
        self.counts[column] += 1;
        let shows = self.options.shows;
        if !shows[column] {
            return;
        }
        for _ in shows[..column].iter().filter(|shows| **shows) {
            out.extend_from_slice(self.delimiter());
        }
        let line = self.sides[usize::from(column == 1)].line.unwrap_or_default();
        out.extend_from_slice(line);
        out.push(self.options.end);
    }

    /// Says that a file is not sorted, once.
    async fn check(&mut self, out: &mut Vec<u8>) -> Result<(), Ending> {
        let is_due = match self.options.order {
            OrderCheck::Never => false,
            OrderCheck::IfUnpaired => self.is_unpaired,
            OrderCheck::Always => true,
        };
        for (index, side) in self.sides.iter_mut().enumerate() {
            if !(is_due && side.is_disordered && !side.is_told) {
                continue;
            }
            side.is_told = true;
            let reason = format!("file {} is not in sorted order", index + 1);
            self.run.print(std::mem::take(out)).await?;
            if self.options.order == OrderCheck::Always {
                return Err(Ending::refused(reason));
            }
            self.run.complain(reason).await?;
        }
        Ok(())
    }
}
