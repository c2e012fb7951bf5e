//! `sort`. It compares text byte by byte, as in the locale C.UTF-8.

use std::cmp::Ordering;

use async_trait::async_trait;

use super::lines::lines;
use super::listed_files::names;
use super::paced_output::PacedOutput;
use super::quoting::{plain, quoted};
use super::read_bytes::{ReadBytes, ReadError};
use super::run::{Ending, ProgramRun, ShellProgram, reason};
use super::sort_keys::SortKey;
use super::sort_options::{SortOptions, parse};

/// The lines that are sorted at once.
const LINES_AT_ONCE: usize = 256;

/// The bytes that are compared between two pauses, counted for each key.
const WORK_AT_ONCE: usize = 256 << 10;

/// The most lines that are sorted. Even an empty line takes memory.
const MAX_LINES: usize = 8 << 20;

pub(super) struct SortProgram;

#[async_trait]
impl ShellProgram for SortProgram {
    async fn run(&self, run: &ProgramRun<'_>) -> Result<i32, Ending> {
        let mut options = parse(run.args)?;
        if let Some(list) = options.list.take() {
            let bytes = run.read(&list).await?;
            options.files = listed(&list, bytes)?;
        }
        let mut texts = Vec::new();
        for file in &options.files {
            match run.read(file).await? {
                Ok(bytes) => texts.push(bytes),
                Err(reason) => {
                    let step = if reason == ReadError::IsDirectory { "read failed" } else { "cannot read" };
                    return Err(Ending::refused(format!("{step}: {}: {reason}", plain(file))));
                }
            }
        }
        if let Some(is_quiet) = options.check {
            return check(run, &options, &texts, is_quiet).await;
        }
        let mut sorted = Vec::new();
        let mut runs = Vec::new();
        for text in &texts {
            runs.push(sorted.len());
            for line in lines(text, options.end) {
                if sorted.len() == MAX_LINES {
                    return Err(Ending::refused("memory exhausted"));
                }
                sorted.push(line);
                if sorted.len().is_multiple_of(LINES_AT_ONCE) {
                    run.breathe().await;
                }
            }
        }
        if !options.is_merge {
            runs = sort_pieces(run, &options, &mut sorted).await;
        }
        let sorted = merged(run, &options, sorted, runs).await;
        print(run, &options, &sorted).await?;
        Ok(0)
    }

    fn usage_status(&self) -> i32 {
        2
    }
}

/// Reads file names from a list in which a zero byte ends each name.
fn listed(list: &str, bytes: Result<ReadBytes, ReadError>) -> Result<Vec<String>, Ending> {
    let refused = |reason: ReadError| Ending::refused(format!("open failed: {}: {reason}", plain(list)));
    let bytes = bytes.map_err(refused)?;
    if bytes.is_empty() {
        return Err(Ending::refused(format!("no input from {}", quoted(list))));
    }
    Ok(names(&bytes))
}

impl SortOptions {
    /// Compares two lines.
    fn compare(&self, one: &[u8], other: &[u8]) -> Ordering {
        let ordering = self.compare_keys(one, other);
        if ordering.is_ne() { ordering } else { self.compare_rest(one, other) }
    }

    /// Compares two lines with the same keys.
    fn compare_rest(&self, one: &[u8], other: &[u8]) -> Ordering {
        if self.is_stable || self.is_unique {
            return Ordering::Equal;
        }
        let ordering = one.cmp(other);
        if self.order.is_reverse { ordering.reverse() } else { ordering }
    }

    fn compare_keys(&self, one: &[u8], other: &[u8]) -> Ordering {
        let mut orderings = self.keys.iter().map(|key| self.compare_by(key, one, other));
        orderings.find(|ordering| ordering.is_ne()).unwrap_or(Ordering::Equal)
    }

    fn compare_by(&self, key: &SortKey, one: &[u8], other: &[u8]) -> Ordering {
        key.compare(key.of(one, self.separator), key.of(other, self.separator))
    }

    /// The work that a line may be, each time that it is compared.
    fn work(&self, line: &[u8]) -> usize {
        line.len().saturating_add(1).saturating_mul(self.keys.len())
    }
}

/// Sorts pieces of the lines, and returns where each begins. Only few bytes are in one piece.
async fn sort_pieces(run: &ProgramRun<'_>, options: &SortOptions, lines: &mut [&[u8]]) -> Vec<usize> {
    let mut starts = Vec::new();
    let mut start = 0;
    while start < lines.len() {
        let (mut end, mut work) = (start, 0_usize);
        while end < lines.len().min(start + LINES_AT_ONCE) {
            work = work.saturating_add(options.work(lines[end]));
            if end > start && work > WORK_AT_ONCE {
                break;
            }
            end += 1;
        }
        lines[start..end].sort_by(|one, other| options.compare(one, other));
        starts.push(start);
        start = end;
        run.breathe().await;
    }
    starts
}

/// Comparisons with pauses between them, and within those of long lines.
struct PacedComparison<'a, 'r> {
    run: &'a ProgramRun<'r>,
    options: &'a SortOptions,
    work: usize,
}

impl<'a, 'r> PacedComparison<'a, 'r> {
    fn new(run: &'a ProgramRun<'r>, options: &'a SortOptions) -> Self {
        Self { run, options, work: 0 }
    }

    async fn compare(&mut self, one: &[u8], other: &[u8]) -> Ordering {
        if self.is_short(one, other).await {
            return self.options.compare(one, other);
        }
        let ordering = self.by_key(one, other).await;
        if ordering.is_ne() { ordering } else { self.options.compare_rest(one, other) }
    }

    async fn compare_keys(&mut self, one: &[u8], other: &[u8]) -> Ordering {
        if self.is_short(one, other).await {
            return self.options.compare_keys(one, other);
        }
        self.by_key(one, other).await
    }

    async fn by_key(&self, one: &[u8], other: &[u8]) -> Ordering {
        for key in &self.options.keys {
            self.run.breathe().await;
            let ordering = self.options.compare_by(key, one, other);
            if ordering.is_ne() {
                return ordering;
            }
        }
        Ordering::Equal
    }

    /// Pauses now and then. Tells whether a comparison needs no pause within.
    async fn is_short(&mut self, one: &[u8], other: &[u8]) -> bool {
        let work = self.options.work(one).saturating_add(self.options.work(other));
        self.work = self.work.saturating_add(work);
        if self.work > WORK_AT_ONCE {
            self.work = 0;
            self.run.breathe().await;
        }
        work <= WORK_AT_ONCE
    }
}

/// Merges runs of lines that are in order, two by two, until there is one.
async fn merged<'a>(
    run: &ProgramRun<'_>,
    options: &SortOptions,
    mut lines: Vec<&'a [u8]>,
    mut runs: Vec<usize>,
) -> Vec<&'a [u8]> {
    let mut comparison = PacedComparison::new(run, options);
    while runs.len() > 1 {
        let mut next: Vec<&[u8]> = Vec::with_capacity(lines.len());
        let mut starts = Vec::new();
        let bound = |index: usize| runs.get(index).copied().unwrap_or(lines.len());
        for index in (0..runs.len()).step_by(2) {
            starts.push(next.len());
            let (mut left, middle, end) = (bound(index), bound(index + 1), bound(index + 2));
            let mut right = middle;
            while left < middle && right < end {
                let takes_left = comparison.compare(lines[left], lines[right]).await.is_le();
                let taken = if takes_left { &mut left } else { &mut right };
                next.push(lines[*taken]);
                *taken += 1;
            }
            next.extend_from_slice(&lines[left..middle]);
            next.extend_from_slice(&lines[right..end]);
            run.breathe().await;
        }
        (lines, runs) = (next, starts);
    }
    lines
}

/// Writes the lines. With `--unique`, only the first of equal lines is written.
async fn print(run: &ProgramRun<'_>, options: &SortOptions, lines: &[&[u8]]) -> Result<(), Ending> {
    let mut comparison = PacedComparison::new(run, options);
    let mut out = PacedOutput::new(run);
    let mut content = Vec::new();
    let mut before: Option<&[u8]> = None;
    for line in lines {
        if options.is_unique
            && let Some(before) = before
            && comparison.compare_keys(before, line).await.is_eq()
        {
            continue;
        }
        before = Some(line);
        if options.output.is_some() {
            content.extend_from_slice(line);
            content.push(options.end);
            out.step().await;
        } else {
            out.add(line).await?;
            out.add(&[options.end]).await?;
        }
    }
    match &options.output {
        None => out.flush().await,
        Some(output) => run
            .write(output, content)
            .map_err(|error| Ending::refused(format!("open failed: {}: {}", plain(output), reason(&error)))),
    }
}

/// Checks whether a file is sorted.
async fn check(
    run: &ProgramRun<'_>,
    options: &SortOptions,
    texts: &[ReadBytes],
    is_quiet: bool,
) -> Result<i32, Ending> {
    let (Some(text), Some(file)) = (texts.first(), options.files.first()) else { return Ok(0) };
    let mut comparison = PacedComparison::new(run, options);
    let mut before: Option<&[u8]> = None;
    for (index, line) in lines(text, options.end).enumerate() {
        let ordering = match before {
            Some(before) => Some(comparison.compare(before, line).await),
            None => None,
        };
        if ordering == Some(Ordering::Greater) || (options.is_unique && ordering == Some(Ordering::Equal)) {
            if !is_quiet {
                let said = format!("sort: {file}:{}: disorder: ", index + 1);
                let text = [said.as_bytes(), line, b"\n"].concat();
                run.write_error(text).await?;
            }
            return Ok(1);
        }
        before = Some(line);
    }
    Ok(0)
}
