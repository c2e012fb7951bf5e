//! `fmt`: paragraphs are filled again, by the least sum of costs for their lines. A paragraph is
//! weighed whole, however long it is; `-p` is refused.

use async_trait::async_trait;

use super::each_file::EachFile;
use super::options::{OptionWord, complete, or_standard_input, unknown};
use super::run::{Ending, ProgramRun, ShellProgram};

const USUAL_WIDTH: usize = 75;
const MAX_WIDTH: usize = 2500;
/// The goal is this part of the width, in two hundredths.
const GOAL_PART: usize = 187;
const TAB: usize = 8;
/// The indentation behind a tag that stands alone.
const TAG_INDENT: usize = 3;
/// The most words of a paragraph. Each takes memory.
const MAX_WORDS: usize = 4 << 20;
/// The words between two pauses in which others go on.
const WORDS_AT_ONCE: usize = 512;

const LINE_COST: i64 = 70 * 70;
const SENTENCE_BONUS: i64 = 50 * 50;
const NO_BREAK_COST: i64 = 600 * 600;
const PAREN_BONUS: i64 = 40 * 40;
const PUNCTUATION_BONUS: i64 = 40 * 40;
const WIDOW_COST: i64 = 200 * 200;
const ORPHAN_COST: i64 = 150 * 150;

const LONG: &[&str] = &["crown-margin", "goal", "split-only", "tagged-paragraph", "uniform-spacing", "width"];

/// The indentation of paragraphs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Margin {
    /// All lines have the same.
    #[default]
    Even,
    /// The second line has that of the rest.
    Crown,
    /// As `Crown`, if it differs from the first one's.
    Tagged,
}

#[derive(Debug, Default)]
struct Options {
    margin: Margin,
    splits_only: bool,
    is_uniform: bool,
    width: Option<usize>,
    goal: Option<usize>,
    files: Vec<String>,
}

/// A word of a paragraph, and the columns behind it.
#[derive(Debug)]
struct FmtWord<'a> {
    text: &'a [u8],
    space: usize,
    has_paren: bool,
    has_period: bool,
    has_punctuation: bool,
    /// The word ends a sentence.
    is_final: bool,
}

/// A line of input: its indentation and its words.
struct Line<'a> {
    indent: usize,
    words: Vec<FmtWord<'a>>,
}

pub(super) struct Fmt;

#[async_trait]
impl ShellProgram for Fmt {
    async fn run(&self, run: &ProgramRun<'_>) -> Result<i32, Ending> {
        let mut options = parse(run)?;
        let layout = FmtLayout::new(&options)?;
        options.files = or_standard_input(options.files);
        let mut files = EachFile::new(run, &options.files);
        while let Some(bytes) =
            files.next(|file, reason| format!("cannot open '{file}' for reading: {reason}")).await?
        {
            format(run, &options, &layout, &bytes).await?;
        }
        Ok(files.status)
    }
}

fn parse(run: &ProgramRun<'_>) -> Result<Options, Ending> {
    let mut options = Options::default();
    // `-20` is the width, as the first word alone.
    let first = run.args.first().and_then(|first| first.strip_prefix('-'));
    let obsolete = first.filter(|first| first.starts_with(|letter: char| letter.is_ascii_digit()));
    if let Some(width) = obsolete {
        options.width = Some(number(width, MAX_WIDTH, "width")?);
    }
    let mut words = super::options::Words::new(&run.args[usize::from(obsolete.is_some())..]);
    while let Some(word) = words.next()? {
        let name = match word {
            OptionWord::Operand(file) => {
                options.files.push(file);
                continue;
            }
            OptionWord::Short('c') => "crown-margin",
            OptionWord::Short('g') => "goal",
            OptionWord::Short('s') => "split-only",
            OptionWord::Short('t') => "tagged-paragraph",
            OptionWord::Short('u') => "uniform-spacing",
            OptionWord::Short('w') => "width",
            OptionWord::Short(_) => return Err(unknown(&word)),
            OptionWord::Long(name) => complete(&name, LONG)?,
        };
        match name {
            "crown-margin" => options.margin = Margin::Crown,
            "tagged-paragraph" => options.margin = Margin::Tagged,
            "split-only" => options.splits_only = true,
            "uniform-spacing" => options.is_uniform = true,
            "width" => options.width = Some(number(&words.value()?, MAX_WIDTH, "width")?),
            _ => options.goal = Some(number(&words.value()?, usize::MAX, "goal")?),
        }
    }
    Ok(options)
}

fn number(text: &str, most: usize, what: &str) -> Result<usize, Ending> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let found = text.parse().ok().filter(|number| is_number && *number <= most);
    found.ok_or_else(|| {
        let range = if is_number { ": Numerical result out of range" } else { "" };
        Ending::refused(format!("invalid {what}: ‘{text}’{range}"))
    })
}

async fn format(
    run: &ProgramRun<'_>,
    options: &Options,
    layout: &FmtLayout,
    bytes: &[u8],
) -> Result<(), Ending> {
    let has_tabs = memchr::memchr(b'\t', bytes).is_some();
    let mut lines =
        bytes.split_inclusive(|byte| *byte == b'\n').map(|line| Line::read(line, options.is_uniform));
    let mut next = lines.next();
    // The indentation of the later lines; one without a second line has that of the paragraph before.
    let mut rest = 0;
    while let Some(line) = next {
        run.breathe().await;
        if line.words.is_empty() {
            run.print("\n").await?;
            next = lines.next();
            continue;
        }
        let first = line.indent;
        let mut words = line.words;
        next = lines.next();
        let second = next.as_ref().filter(|next| !next.words.is_empty()).map(|next| next.indent);
        let joins = options.later_indent(first, second, &mut rest);
        while let Some(line) = next.take_if(|next| joins && !next.words.is_empty() && next.indent == rest) {
            words.extend(line.words);
            if words.len() > MAX_WORDS {
                break;
            }
            next = lines.next();
            run.breathe().await;
        }
        if words.len() > MAX_WORDS {
            return Err(Ending::refused("memory exhausted"));
        }
        if let Some(last) = words.last_mut() {
            (last.has_period, last.is_final) = (true, true);
        }
        let paragraph = Paragraph { layout, words: &words, indents: [first, rest], has_tabs };
        run.print(paragraph.fill(run).await).await?;
    }
    Ok(())
}

impl Options {
    /// Finds the indentation of the later lines of a paragraph, and tells whether any are joined.
    fn later_indent(&self, first: usize, second: Option<usize>, rest: &mut usize) -> bool {
        match (self.margin, second) {
            _ if self.splits_only => *rest = first,
            (Margin::Crown, Some(second)) => *rest = second,
            (Margin::Tagged, Some(second)) if second != first => *rest = second,
            (Margin::Tagged, _) => {
                if *rest == first {
                    *rest = if first == 0 { TAG_INDENT } else { 0 };
                }
                return false;
            }
            _ => *rest = first,
        }
        !self.splits_only
    }
}

impl<'a> Line<'a> {
    fn read(line: &'a [u8], is_uniform: bool) -> Self {
        let mut read = Line { indent: 0, words: Vec::new() };
        let mut column = 0;
        let mut rest = line.strip_suffix(b"\n").unwrap_or(line);
        loop {
            let blanks = rest.iter().take_while(|byte| is_blank(**byte)).count();
            let start = column;
            for byte in &rest[..blanks] {
                column = if *byte == b'\t' { (column / TAB + 1) * TAB } else { column + 1 };
            }
            rest = &rest[blanks..];
            match read.words.last_mut() {
                None => read.indent = column,
                Some(word) => word.end(column - start, rest.is_empty(), is_uniform),
            }
            if rest.is_empty() || read.words.len() > MAX_WORDS {
                return read;
            }
            let len = rest.iter().take_while(|byte| !is_blank(**byte)).count();
            read.words.push(FmtWord::new(&rest[..len]));
            column += len;
            rest = &rest[len..];
        }
    }
}

fn is_blank(byte: u8) -> bool {
    byte.is_ascii_whitespace() || byte == 0x0b
}

impl<'a> FmtWord<'a> {
    fn new(text: &'a [u8]) -> Self {
        let closed = text.iter().rev().find(|byte| !b")]'\"".contains(byte));
        FmtWord {
            text,
            space: 1,
            has_paren: text.first().is_some_and(|first| b"(['`\"".contains(first)),
            has_period: closed.is_some_and(|last| b".?!".contains(last)),
            has_punctuation: text.last().is_some_and(u8::is_ascii_punctuation),
            is_final: false,
        }
    }

    /// Takes the space behind it.
    fn end(&mut self, space: usize, is_last: bool, is_uniform: bool) {
        self.is_final = self.has_period && (is_last || space > 1);
        self.space = if is_last || is_uniform { if self.is_final { 2 } else { 1 } } else { space };
    }
}

/// The widths that lines are measured by.
struct FmtLayout {
    width: usize,
    goal: usize,
}

impl FmtLayout {
    fn new(options: &Options) -> Result<Self, Ending> {
        let width = match (options.width, options.goal) {
            (Some(width), _) => width,
            (None, Some(goal)) => goal.saturating_add(10),
            (None, None) => USUAL_WIDTH,
        };
        let goal = options.goal.unwrap_or(width * GOAL_PART / 200);
        if goal > width || options.width.is_none() && goal > USUAL_WIDTH {
            return Err(Ending::refused(format!("invalid goal: ‘{goal}’: Numerical result out of range")));
        }
        Ok(Self { width, goal })
    }
}

/// The best way from a word to the end of its paragraph.
#[derive(Clone, Copy, Default)]
struct BestBreak {
    cost: i64,
    /// The word that begins the next line.
    next: usize,
    /// The length of the line that begins here.
    length: usize,
}

struct Paragraph<'a> {
    layout: &'a FmtLayout,
    words: &'a [FmtWord<'a>],
    indents: [usize; 2],
    has_tabs: bool,
}

impl Paragraph<'_> {
    async fn fill(&self, run: &ProgramRun<'_>) -> Vec<u8> {
        let mut best = vec![BestBreak::default(); self.words.len() + 1];
        for start in (0..self.words.len()).rev() {
            best[start] = self.best_from(start, &best);
            if start % WORDS_AT_ONCE == 0 {
                run.breathe().await;
            }
        }
        let mut out = Vec::new();
        let mut at = 0;
        while at < self.words.len() {
            let end = best[at].next.max(at + 1);
            self.write_line(at, end, &mut out);
            at = end;
        }
        out
    }

    /// Finds the best line that begins with a word.
    fn best_from(&self, start: usize, best: &[BestBreak]) -> BestBreak {
        let words = self.words;
        let mut length = self.indents[usize::from(start > 0)] + words[start].text.len();
        let mut found = BestBreak { cost: i64::MAX, next: start + 1, length };
        let mut next = start + 1;
        loop {
            let cost = self.line_cost(next, length, best).saturating_add(best[next].cost);
            if cost < found.cost {
                found = BestBreak { cost, next, length };
            }
            if next == words.len() {
                break;
            }
            length += words[next - 1].space + words[next].text.len();
            if length >= self.layout.width {
                break;
            }
            next += 1;
        }
        found.cost = found.cost.saturating_add(self.start_cost(start));
        found
    }

    /// The cost of a line's length, and of the difference to the next.
    fn line_cost(&self, next: usize, length: usize, best: &[BestBreak]) -> i64 {
        if next == self.words.len() {
            return 0;
        }
        let square = |difference: i64| difference.saturating_mul(10).saturating_pow(2);
        let difference = |left: usize, right: usize| left as i64 - right as i64;
        let mut cost = square(difference(self.layout.goal, length));
        if best[next].next != self.words.len() {
            cost = cost.saturating_add(square(difference(length, best[next].length)) / 2);
        }
        cost
    }

    /// The cost of a line's beginning with a word.
    fn start_cost(&self, start: usize) -> i64 {
        let word = &self.words[start];
        let over = |cost: i64, word: &FmtWord<'_>| cost / (word.text.len() as i64 + 2);
        let mut cost = LINE_COST;
        if let Some(before) = start.checked_sub(1).map(|before| &self.words[before]) {
            if before.has_period {
                cost += if before.is_final { -SENTENCE_BONUS } else { NO_BREAK_COST };
            } else if before.has_punctuation {
                cost -= PUNCTUATION_BONUS;
            } else if start > 1 && self.words[start - 2].is_final {
                cost += over(WIDOW_COST, before);
            }
        }
        if word.has_paren {
            cost -= PAREN_BONUS;
        } else if word.is_final {
            cost += over(ORPHAN_COST, word);
        }
        cost
    }

    fn write_line(&self, from: usize, to: usize, out: &mut Vec<u8>) {
        let mut column = 0;
        self.write_space(self.indents[usize::from(from > 0)], &mut column, out);
        for (at, word) in (from..to).zip(&self.words[from..to]) {
            out.extend_from_slice(word.text);
            column += word.text.len();
            if at + 1 < to {
                self.write_space(word.space, &mut column, out);
            }
        }
        out.push(b'\n');
    }

    /// Writes space, with tabs if the input has any.
    fn write_space(&self, space: usize, column: &mut usize, out: &mut Vec<u8>) {
        let target = *column + space;
        let stop = target / TAB * TAB;
        if self.has_tabs && *column + 1 < stop {
            while *column < stop {
                out.push(b'\t');
                *column = (*column / TAB + 1) * TAB;
            }
        }
        out.resize(out.len() + target - *column, b' ');
        *column = target;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_sentence_has_two_columns_behind_it() {
        let line = Line::read(b"  One.  Two (three.) four.\n", false);
        assert_eq!(line.indent, 2);
        let words: Vec<_> = line.words.iter().map(|word| (word.is_final, word.space)).collect();
        assert_eq!(words, [(true, 2), (false, 1), (false, 1), (true, 2)]);
        assert!(line.words[2].has_paren && line.words[2].has_period);
    }

    #[test]
    fn lines_come_near_the_goal() {
        let mut line = Line::read(b"the quick brown fox jumps over the lazy dog\n", false);
        line.words[8].is_final = true;
        let layout = FmtLayout::new(&Options { width: Some(20), ..Options::default() }).unwrap();
        assert_eq!(layout.goal, 18);
        let paragraph = Paragraph { layout: &layout, words: &line.words, indents: [0, 0], has_tabs: false };
        let mut best = vec![BestBreak::default(); line.words.len() + 1];
        for start in (0..line.words.len()).rev() {
            best[start] = paragraph.best_from(start, &best);
        }
        assert_eq!((best[0].next, best[3].next, best[7].next), (3, 7, 9));
    }
}
