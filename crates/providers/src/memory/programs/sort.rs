//! `sort`. Text is compared byte by byte, as in the locale C.UTF-8.

use std::cmp::Ordering;

use async_trait::async_trait;

use super::quoting::quoted;
use super::run::{Ending, ProgramRun, ShellProgram, reason};
use super::sort_options::{SortOptions, parse};

/// The lines that are sorted at once, and the steps of a merge between two pauses. Lines may be long.
const LINES_AT_ONCE: usize = 256;

/// The most lines that are sorted. Each takes memory, even an empty one.
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
                    let step = if reason == "Is a directory" { "read failed" } else { "cannot read" };
                    return Err(Ending::refused(format!("{step}: {}: {reason}", shown(file))));
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
            sorted.extend(lines(text, options.end).take(MAX_LINES + 1 - sorted.len()));
            if sorted.len() > MAX_LINES {
                return Err(Ending::refused("memory exhausted"));
            }
            run.breathe().await;
        }
        if !options.is_merge {
            runs = (0..sorted.len()).step_by(LINES_AT_ONCE).collect();
            for piece in sorted.chunks_mut(LINES_AT_ONCE) {
                piece.sort_by(|one, other| options.compare(one, other));
                run.breathe().await;
            }
        }
        let sorted = merged(run, &options, sorted, runs).await;
        print(run, &options, &sorted).await?;
        Ok(0)
    }

    fn usage_status(&self) -> i32 {
        2
    }
}

fn shown(name: &str) -> String {
    let quoted = quoted(name);
    if quoted == format!("'{name}'") && !name.contains([' ', ':']) { name.to_owned() } else { quoted }
}

/// The lines without their ends.
fn lines(bytes: &[u8], end: u8) -> impl Iterator<Item = &[u8]> {
    bytes.split_inclusive(move |byte| *byte == end).map(move |line| line.strip_suffix(&[end]).unwrap_or(line))
}

/// Reads the names of the files from a list, in which a zero byte ends each.
fn listed(list: &str, bytes: Result<Vec<u8>, &str>) -> Result<Vec<String>, Ending> {
    let refused = |reason| Ending::refused(format!("open failed: {}: {reason}", shown(list)));
    let bytes = bytes.map_err(refused)?;
    if bytes.is_empty() {
        return Err(Ending::refused(format!("no input from {}", quoted(list))));
    }
    Ok(lines(&bytes, 0).map(|name| String::from_utf8_lossy(name).into_owned()).collect())
}

impl SortOptions {
    /// Compares two lines.
    fn compare(&self, one: &[u8], other: &[u8]) -> Ordering {
        let ordering = self.compare_keys(one, other);
        if ordering.is_ne() || self.is_stable || self.is_unique {
            return ordering;
        }
        let ordering = one.cmp(other);
        if self.order.is_reverse { ordering.reverse() } else { ordering }
    }

    fn compare_keys(&self, one: &[u8], other: &[u8]) -> Ordering {
        let orderings = self
            .keys
            .iter()
            .map(|key| key.compare(key.of(one, self.separator), key.of(other, self.separator)));
        orderings.into_iter().find(|ordering| ordering.is_ne()).unwrap_or(Ordering::Equal)
    }
}

/// Merges runs of lines that are in order, two by two, until there is one.
async fn merged<'a>(
    run: &ProgramRun<'_>,
    options: &SortOptions,
    mut lines: Vec<&'a [u8]>,
    mut runs: Vec<usize>,
) -> Vec<&'a [u8]> {
    while runs.len() > 1 {
        let mut next: Vec<&[u8]> = Vec::with_capacity(lines.len());
        let mut starts = Vec::new();
        let bound = |index: usize| runs.get(index).copied().unwrap_or(lines.len());
        for index in (0..runs.len()).step_by(2) {
            starts.push(next.len());
            let (mut left, middle, end) = (bound(index), bound(index + 1), bound(index + 2));
            let mut right = middle;
            while left < middle || right < end {
                let takes_left =
                    right == end || (left < middle && options.compare(lines[left], lines[right]).is_le());
                let taken = if takes_left { &mut left } else { &mut right };
                next.push(lines[*taken]);
                *taken += 1;
                pause(run, next.len()).await;
            }
        }
        (lines, runs) = (next, starts);
    }
    lines
}

async fn pause(run: &ProgramRun<'_>, steps: usize) {
    if steps.is_multiple_of(LINES_AT_ONCE) {
        run.breathe().await;
    }
}

/// Writes the lines; of those that are alike only the first, if that is asked for.
async fn print(run: &ProgramRun<'_>, options: &SortOptions, lines: &[&[u8]]) -> Result<(), Ending> {
    let mut out = Vec::new();
    let mut before: Option<&[u8]> = None;
    for (index, line) in lines.iter().enumerate() {
        let is_left_out =
            options.is_unique && before.is_some_and(|before| options.compare_keys(before, line).is_eq());
        if !is_left_out {
            before = Some(line);
            out.extend_from_slice(line);
            out.push(options.end);
        }
        if index % LINES_AT_ONCE == 0 {
            run.breathe().await;
            if options.output.is_none() {
                run.print(std::mem::take(&mut out)).await?;
            }
        }
    }
    match &options.output {
        None => run.print(out).await,
        Some(output) => run
            .write(output, out)
            .map_err(|error| Ending::refused(format!("open failed: {}: {}", shown(output), reason(&error)))),
    }
}

/// Looks whether a file is sorted.
async fn check(
    run: &ProgramRun<'_>,
    options: &SortOptions,
    texts: &[Vec<u8>],
    is_quiet: bool,
) -> Result<i32, Ending> {
    let (Some(text), Some(file)) = (texts.first(), options.files.first()) else { return Ok(0) };
    let all: Vec<&[u8]> = lines(text, options.end).collect();
    let mut before: Option<&[u8]> = None;
    for (index, line) in all.into_iter().enumerate() {
        let ordering = before.map(|before| options.compare(before, line));
        if ordering == Some(Ordering::Greater) || (options.is_unique && ordering == Some(Ordering::Equal)) {
            if !is_quiet {
                let said = format!("sort: {file}:{}: disorder: ", index + 1);
                let text = [said.as_bytes(), line, b"\n"].concat();
                run.write_error(text).await?;
            }
            return Ok(1);
        }
        before = Some(line);
        pause(run, index).await;
    }
    Ok(0)
}
