//! `wc`: counts lines, words, characters and bytes.

use async_trait::async_trait;
use unicode_width::UnicodeWidthChar;

use super::choices::choose;
use super::listed_files::{names, refuse_operands};
use super::options::{OptionWord, complete, unknown};
use super::quoting::{plain, quoted};
use super::read_bytes::ReadError;
use super::run::{BYTES_AT_ONCE, Ending, ProgramRun, ShellProgram};
use crate::memory::node::{FileAccess, NodeContent};
use crate::memory::walk::Last;

const TAB: usize = 8;
/// The width of the numbers for an input that is not a file.
const USUAL_WIDTH: usize = 7;

const LONG: &[&str] = &["bytes", "chars", "files0-from", "lines", "max-line-length", "total", "words"];

/// The rule for printing a line with the sums.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum TotalRule {
    #[default]
    Auto,
    Always,
    Only,
    Never,
}

const TOTALS: &[(&str, TotalRule)] = &[
    ("auto", TotalRule::Auto),
    ("always", TotalRule::Always),
    ("only", TotalRule::Only),
    ("never", TotalRule::Never),
];

/// The numbers to print, in order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct ShownCounts {
    lines: bool,
    words: bool,
    chars: bool,
    bytes: bool,
    width: bool,
}

impl ShownCounts {
    fn number(self) -> usize {
        [self.lines, self.words, self.chars, self.bytes, self.width]
            .into_iter()
            .filter(|shown| *shown)
            .count()
    }

    fn only_bytes(self) -> bool {
        self == Self { bytes: true, ..Self::default() }
    }
}

/// The counts so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct TextCounts {
    lines: u64,
    words: u64,
    chars: u64,
    bytes: u64,
    width: usize,
    /// The width of the current line.
    open_width: usize,
    is_in_word: bool,
}

pub(super) struct Wc;

#[async_trait]
impl ShellProgram for Wc {
    async fn run(&self, run: &ProgramRun<'_>) -> Result<i32, Ending> {
        let mut options = parse(run)?;
        if let Some(list) = &options.list {
            options.files = listed(run, list).await?;
        }
        let width = if options.total == TotalRule::Only { 1 } else { width(run, &options) };
        let (mut total, mut status) = (TextCounts::default(), 0);
        for file in &options.files {
            let counts = match count(run, &options, file).await? {
                Ok(counts) => counts,
                Err(reason) => {
                    run.complain(format!("{}: {reason}", plain(file))).await?;
                    status = 1;
                    if reason != ReadError::IsDirectory {
                        continue;
                    }
                    TextCounts::default()
                }
            };
            total.add(&counts);
            if options.total != TotalRule::Only {
                run.print(counts.line(options.shown, width, options.label(file))).await?;
            }
        }
        let has_total = match options.total {
            TotalRule::Auto => options.files.len() > 1,
            rule => rule != TotalRule::Never,
        };
        if has_total {
            let label = (options.total != TotalRule::Only).then_some("total");
            run.print(total.line(options.shown, width, label)).await?;
        }
        Ok(status)
    }
}

#[derive(Debug)]
struct Options {
    shown: ShownCounts,
    total: TotalRule,
    list: Option<String>,
    files: Vec<String>,
    /// Set if no files are given and the standard input is counted, which has no name.
    is_input: bool,
}

impl Options {
    fn label<'a>(&self, file: &'a str) -> Option<&'a str> {
        (!self.is_input).then_some(file)
    }
}

fn parse(run: &ProgramRun<'_>) -> Result<Options, Ending> {
    let mut shown = ShownCounts::default();
    let (mut total, mut list, mut files) = (TotalRule::Auto, None, Vec::new());
    let mut words = run.words();
    while let Some(word) = words.next()? {
        let letter = match &word {
            OptionWord::Short(letter) => *letter,
            OptionWord::Long(name) => match complete(name, LONG)? {
                "bytes" => 'c',
                "chars" => 'm',
                "lines" => 'l',
                "max-line-length" => 'L',
                "words" => 'w',
                "total" => {
                    total = choose(TOTALS, &words.value()?, "--total")?;
                    continue;
                }
                _ => {
                    list = Some(words.value()?);
                    continue;
                }
            },
            OptionWord::Operand(operand) => {
                files.push(operand.clone());
                continue;
            }
        };
        match letter {
            'c' => shown.bytes = true,
            'm' => shown.chars = true,
            'l' => shown.lines = true,
            'L' => shown.width = true,
            'w' => shown.words = true,
            _ => return Err(unknown(&word)),
        }
    }
    if shown == ShownCounts::default() {
        shown = ShownCounts { lines: true, words: true, bytes: true, ..shown };
    }
    refuse_operands(list.as_deref(), &files)?;
    let is_input = files.is_empty() && list.is_none();
    if is_input {
        files.push("-".to_owned());
    }
    Ok(Options { shown, total, list, files, is_input })
}

/// Reads file names from a list in which a zero byte ends each name.
async fn listed(run: &ProgramRun<'_>, list: &str) -> Result<Vec<String>, Ending> {
    match run.read(list).await? {
        Ok(bytes) => {
            let mut names = names(&bytes);
            names.retain(|name| !name.is_empty());
            Ok(names)
        }
        Err(reason) => Err(Ending::refused(format!("cannot open {} for reading: {reason}", quoted(list)))),
    }
}

/// Returns the width of the numbers, from the sum of the files' sizes.
fn width(run: &ProgramRun<'_>, options: &Options) -> usize {
    let is_alone = options.files.len() == 1 && options.shown.number() == 1;
    // The sizes are not known in advance if the list comes from the standard input.
    if is_alone || options.list.as_deref() == Some("-") {
        return 1;
    }
    let (mut total, mut least) = (0, 1);
    for file in &options.files {
        if file == "-" {
            least = USUAL_WIDTH;
            continue;
        }
        match run.look(file, Last::Follow).map(|node| node.content) {
            Ok(NodeContent::File(content)) => total += content.len(),
            Ok(_) => least = USUAL_WIDTH,
            Err(_) => {}
        }
    }
    total.to_string().len().max(least)
}

async fn count(
    run: &ProgramRun<'_>,
    options: &Options,
    file: &str,
) -> Result<Result<TextCounts, ReadError>, Ending> {
    if options.shown.only_bytes()
        && let Ok(node) = run.look(file, Last::Follow)
        && node.check(FileAccess::Read).is_ok()
        && let NodeContent::File(content) = node.content
    {
        return Ok(Ok(TextCounts { bytes: content.len(), ..TextCounts::default() }));
    }
    let bytes = match run.read(file).await? {
        Ok(bytes) => bytes,
        Err(reason) => return Ok(Err(reason)),
    };
    let mut counts = TextCounts::default();
    let needs_letters = options.shown.words || options.shown.chars || options.shown.width;
    let mut rest = &*bytes;
    while !rest.is_empty() {
        let (piece, behind) = rest.split_at(piece_end(rest));
        if needs_letters {
            counts.count(piece);
        } else {
            counts.bytes += piece.len() as u64;
            counts.lines += memchr::memchr_iter(b'\n', piece).count() as u64;
        }
        rest = behind;
        run.breathe().await;
    }
    counts.width = counts.width.max(counts.open_width);
    Ok(Ok(counts))
}

/// Returns the end of a piece that does not split a character.
fn piece_end(text: &[u8]) -> usize {
    if text.len() <= BYTES_AT_ONCE {
        return text.len();
    }
    let is_inside = |at: &usize| text[*at] & 0xc0 == 0x80;
    let start = (BYTES_AT_ONCE - 3..=BYTES_AT_ONCE).rev().find(|at| !is_inside(at));
    start.unwrap_or(BYTES_AT_ONCE)
}

impl TextCounts {
    fn count(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        for chunk in bytes.utf8_chunks() {
            for letter in chunk.valid().chars() {
                self.chars += 1;
                self.letter(letter);
            }
            // Invalid bytes count as part of a word.
            if !chunk.invalid().is_empty() {
                self.word_goes_on();
            }
        }
    }

    fn letter(&mut self, letter: char) {
        match letter {
            '\n' => {
                self.lines += 1;
                self.end_line();
            }
            '\r' | '\x0c' => self.end_line(),
            '\t' => self.open_width += TAB - self.open_width % TAB,
            _ => self.open_width += letter.width().unwrap_or(0),
        }
        if letter.is_whitespace() || letter == '\u{2060}' {
            self.is_in_word = false;
        } else {
            self.word_goes_on();
        }
    }

    fn end_line(&mut self) {
        self.width = self.width.max(std::mem::take(&mut self.open_width));
    }

    fn word_goes_on(&mut self) {
        self.words += u64::from(!std::mem::replace(&mut self.is_in_word, true));
    }

    fn add(&mut self, other: &Self) {
        self.lines += other.lines;
        self.words += other.words;
        self.chars += other.chars;
        self.bytes += other.bytes;
        self.width = self.width.max(other.width);
    }

    fn line(&self, shown: ShownCounts, width: usize, label: Option<&str>) -> String {
        let widest = u64::try_from(self.width).unwrap_or(u64::MAX);
        let numbers = [
            (shown.lines, self.lines),
            (shown.words, self.words),
            (shown.chars, self.chars),
            (shown.bytes, self.bytes),
            (shown.width, widest),
        ];
        let numbers = numbers.into_iter().filter(|(is_shown, _)| *is_shown);
        let mut parts: Vec<String> = numbers.map(|(_, number)| format!("{number:width$}")).collect();
        parts.extend(label.map(|label| if label.contains('\n') { quoted(label) } else { label.to_owned() }));
        parts.join(" ") + "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_words_and_lines_are_counted() {
        let mut counts = TextCounts::default();
        counts.count("é b\u{a0}c\tü\nx".as_bytes());
        counts.count(b"\xff y");
        assert_eq!((counts.lines, counts.words, counts.chars, counts.bytes), (1, 6, 11, 15));
        assert_eq!(counts.width, 9);
    }

    #[test]
    fn a_piece_cuts_no_letter() {
        let text = "é".repeat(BYTES_AT_ONCE);
        assert_eq!(piece_end(text.as_bytes()), BYTES_AT_ONCE);
        assert_eq!(piece_end(format!("a{text}").as_bytes()), BYTES_AT_ONCE - 1);
    }
}
