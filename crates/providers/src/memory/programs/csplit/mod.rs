//! `csplit`: a file is cut where lines say so.

mod cuts;
mod suffix;

use async_trait::async_trait;
use regex::bytes::Regex;

use super::options::{OptionWord, complete, unknown};
use super::run::{Ending, ProgramRun, ShellProgram, reason};
use crate::memory::walk::Last;
use cuts::{CsplitCut, CutPlace, cuts};
use suffix::{MAX_DIGITS, Suffix};

const LONG: &[&str] = &[
    "digits",
    "elide-empty-files",
    "keep-files",
    "prefix",
    "quiet",
    "silent",
    "suffix-format",
    "suppress-matched",
];

#[derive(Debug)]
struct Options {
    prefix: String,
    suffix: Suffix,
    keeps_files: bool,
    is_silent: bool,
    drops_empty: bool,
    drops_matched: bool,
    operands: Vec<String>,
}

pub(super) struct Csplit;

#[async_trait]
impl ShellProgram for Csplit {
    async fn run(&self, run: &ProgramRun<'_>) -> Result<i32, Ending> {
        let options = parse(run)?;
        let [file, patterns @ ..] = options.operands.as_slice() else {
            return Err(Ending::usage("missing operand"));
        };
        if patterns.is_empty() {
            return Err(Ending::usage(format!("missing operand after ‘{file}’")));
        }
        let (cuts, warnings) = cuts(patterns)?;
        for warning in warnings {
            run.complain(warning).await?;
        }
        let bytes = run
            .read(file)
            .await?
            .map_err(|reason| Ending::refused(format!("cannot open '{file}' for reading: {reason}")))?;
        let lines = bytes.split_inclusive(|byte| *byte == b'\n').collect();
        let mut cutter = Cutter {
            run,
            options: &options,
            lines,
            first: 0,
            current: 0,
            piece: None,
            written: Vec::new(),
            sizes: String::new(),
        };
        let done = cutter.cut_all(&cuts).await;
        if done.is_err() && !options.keeps_files {
            cutter.remove_written();
        }
        let status = match done {
            Ok(()) => 0,
            Err(Ending::Refused { reason, .. }) => {
                run.complain(reason).await?;
                1
            }
            Err(ending) => return Err(ending),
        };
        run.print(&cutter.sizes).await?;
        Ok(status)
    }
}

fn parse(run: &ProgramRun<'_>) -> Result<Options, Ending> {
    let mut options = Options {
        prefix: "xx".to_owned(),
        suffix: Suffix::digits(2),
        keeps_files: false,
        is_silent: false,
        drops_empty: false,
        drops_matched: false,
        operands: Vec::new(),
    };
    let mut words = run.words();
    while let Some(word) = words.next()? {
        let name = match word {
            OptionWord::Operand(operand) => {
                options.operands.push(operand);
                continue;
            }
            OptionWord::Short('b') => "suffix-format",
            OptionWord::Short('f') => "prefix",
            OptionWord::Short('k') => "keep-files",
            OptionWord::Short('n') => "digits",
            OptionWord::Short('q' | 's') => "silent",
            OptionWord::Short('z') => "elide-empty-files",
            OptionWord::Short(_) => return Err(unknown(&word)),
            OptionWord::Long(name) => complete(&name, LONG)?,
        };
        match name {
            "suffix-format" => options.suffix = Suffix::parse(&words.value()?)?,
            "prefix" => options.prefix = words.value()?,
            "keep-files" => options.keeps_files = true,
            "digits" => {
                let text = words.value()?;
                let digits = text.parse().ok().filter(|digits| *digits <= MAX_DIGITS);
                options.suffix = Suffix::digits(
                    digits.ok_or_else(|| Ending::refused(format!("invalid number: ‘{text}’")))?,
                );
            }
            "elide-empty-files" => options.drops_empty = true,
            "suppress-matched" => options.drops_matched = true,
            _ => options.is_silent = true,
        }
    }
    Ok(options)
}

/// A file that is cut: the lines that are left, and the piece that is being made.
struct Cutter<'a, 'r> {
    run: &'a ProgramRun<'r>,
    options: &'a Options,
    lines: Vec<&'a [u8]>,
    /// The first line that is in no piece yet, counted from nought.
    first: usize,
    /// The lines that were looked at.
    current: usize,
    piece: Option<Vec<u8>>,
    written: Vec<String>,
    /// The sizes of the pieces, which are printed at the end.
    sizes: String,
}

impl Cutter<'_, '_> {
    async fn cut_all(&mut self, cuts: &[CsplitCut]) -> Result<(), Ending> {
        for cut in cuts {
            let mut repetition = 0;
            while cut.repeats.is_none_or(|repeats| repetition <= repeats) {
                self.run.breathe().await;
                let goes_on = match &cut.place {
                    CutPlace::Line(line) => self.cut_at_line(cut, *line, repetition)?,
                    CutPlace::Match { pattern, offset, is_skipped } => {
                        self.cut_at_match(cut, (pattern, *offset, *is_skipped), repetition).await?
                    }
                };
                if !goes_on {
                    return Ok(());
                }
                repetition += 1;
            }
        }
        self.piece = Some(Vec::new());
        self.take_rest();
        self.close()
    }

    /// Takes the next line into the piece, if there is one.
    fn take(&mut self) -> bool {
        let Some(line) = self.lines.get(self.first) else { return false };
        if let Some(piece) = &mut self.piece {
            piece.extend_from_slice(line);
        }
        self.first += 1;
        self.current = self.current.max(self.first);
        true
    }

    fn take_rest(&mut self) {
        while self.take() {}
    }

    /// Takes a line that is in no piece.
    fn drop_line(&mut self) {
        self.piece = None;
        self.take();
    }

    fn cut_at_line(&mut self, cut: &CsplitCut, line: usize, repetition: u64) -> Result<bool, Ending> {
        let times = usize::try_from(repetition).unwrap_or(usize::MAX).saturating_add(1);
        let end = line.saturating_mul(times) - 1;
        let out_of_range = || failed(cut, "line number out of range", repetition);
        self.piece = Some(Vec::new());
        let drops = self.options.drops_matched;
        if drops && self.first >= self.lines.len() {
            return Err(self.fail(out_of_range()));
        }
        while self.first < end {
            if !self.take() {
                return Err(self.fail(out_of_range()));
            }
        }
        self.close()?;
        if drops {
            self.drop_line();
        } else if self.first >= self.lines.len() {
            return Err(out_of_range());
        }
        Ok(true)
    }

    /// Cuts before a line that matches. Returns `false` at the end of repetitions without number.
    async fn cut_at_match(
        &mut self,
        cut: &CsplitCut,
        (pattern, offset, is_skipped): (&Regex, i64, bool),
        repetition: u64,
    ) -> Result<bool, Ending> {
        self.piece = (!is_skipped).then(Vec::new);
        let found = loop {
            let Some(line) = self.lines.get(self.current) else {
                if offset < 0 || cut.repeats.is_none() || !is_skipped {
                    self.take_rest();
                }
                if cut.repeats.is_some() {
                    return Err(self.fail(failed(cut, "match not found", repetition)));
                }
                self.close()?;
                return Ok(false);
            };
            self.current += 1;
            if pattern.is_match(line.strip_suffix(b"\n").unwrap_or(line)) {
                break self.current - 1;
            }
            if offset >= 0 {
                self.take();
            }
        };
        let end = found.checked_add_signed(isize::try_from(offset).unwrap_or(isize::MAX));
        let out_of_range = || failed(cut, "line number out of range", 0);
        let Some(end) = end.filter(|end| *end >= self.first) else {
            return Err(self.fail(out_of_range()));
        };
        while self.first < end {
            if !self.take() {
                return Err(self.fail(out_of_range()));
            }
        }
        self.close()?;
        if offset > 0 {
            self.current = end + 1;
        }
        if self.options.drops_matched {
            self.drop_line();
        }
        Ok(true)
    }

    /// Closes the piece and hands on what went wrong.
    fn fail(&mut self, ending: Ending) -> Ending {
        match self.close() {
            Ok(()) => ending,
            Err(worse) => worse,
        }
    }

    fn close(&mut self) -> Result<(), Ending> {
        let Some(piece) = self.piece.take() else { return Ok(()) };
        if piece.is_empty() && self.options.drops_empty {
            return Ok(());
        }
        let (len, name) =
            (piece.len(), format!("{}{}", self.options.prefix, self.options.suffix.of(self.written.len())));
        self.run
            .write(&name, piece)
            .map_err(|error| Ending::refused(format!("{name}: {}", reason(&error))))?;
        self.written.push(name);
        if !self.options.is_silent {
            self.sizes += &format!("{len}\n");
        }
        Ok(())
    }

    fn remove_written(&self) {
        let mut held = self.run.hold();
        for name in &self.written {
            if let Ok(place) = self.run.find(&held, name, Last::Keep) {
                // One that is gone already is as good as removed.
                drop(held.remove(&place));
            }
        }
    }
}

fn failed(cut: &CsplitCut, reason: &str, repetition: u64) -> Ending {
    let mut text = format!("‘{}’: {reason}", cut.argument.replace('\\', "\\\\"));
    if repetition > 0 {
        text += &format!(" on repetition {repetition}");
    }
    Ending::refused(text)
}
