//! `uniq`: leaves out or counts repeated lines.

use async_trait::async_trait;

use super::choices::choose;
use super::lines::{lines, next_line};
use super::options::{OptionWord, Words, complete, unknown};
use super::quoting::{curly, quoted};
use super::read_bytes::ReadError;
use super::run::{Ending, ProgramRun, ShellProgram};

/// The number of lines between two pauses for other tasks.
const LINES_AT_ONCE: u64 = 512;

/// The largest output file.
const MAX_FILE_BYTES: usize = 256 << 20;

const LONG: &[&str] = &[
    "all-repeated",
    "check-chars",
    "count",
    "group",
    "ignore-case",
    "repeated",
    "skip-chars",
    "skip-fields",
    "unique",
    "zero-terminated",
];

/// The positions of the empty lines around groups.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum GroupGap {
    #[default]
    Nowhere,
    Before,
    After,
    Both,
    Between,
}

const REPEATED_GAPS: &[(&str, GroupGap)] =
    &[("none", GroupGap::Nowhere), ("prepend", GroupGap::Before), ("separate", GroupGap::Between)];
const GROUP_GAPS: &[(&str, GroupGap)] = &[
    ("prepend", GroupGap::Before),
    ("append", GroupGap::After),
    ("separate", GroupGap::Between),
    ("both", GroupGap::Both),
];

#[derive(Debug, Default)]
struct Options {
    counts: bool,
    only_repeated: bool,
    only_unique: bool,
    all_repeated: Option<GroupGap>,
    group: Option<GroupGap>,
    ignores_case: bool,
    fields: usize,
    skipped: usize,
    compared: Option<usize>,
    end: u8,
    operands: Vec<String>,
}

pub(super) struct Uniq;

#[async_trait]
impl ShellProgram for Uniq {
    async fn run(&self, run: &ProgramRun<'_>) -> Result<i32, Ending> {
        let options = parse(run.args)?;
        let input = options.operands.first().map_or("-", String::as_str);
        let bytes = match run.read(input).await? {
            Ok(bytes) => bytes,
            Err(ReadError::IsDirectory) => {
                return Err(Ending::refused(format!("error reading {}", quoted(input))));
            }
            Err(reason) => return Err(Ending::refused(format!("{input}: {reason}"))),
        };
        let mut out = GroupOutput { run, options: &options, kept: Vec::new(), is_first: true };
        let mut rest = &*bytes;
        while !rest.is_empty() {
            let group = rest;
            let (mut key, mut count) = (None, 0_u64);
            loop {
                let mut behind = rest;
                let Some(line) = next_line(&mut behind, options.end) else { break };
                let line = options.key(line);
                if !options.is_same(key.get_or_insert(line), line) {
                    break;
                }
                rest = behind;
                count += 1;
                if count.is_multiple_of(LINES_AT_ONCE) {
                    run.breathe().await;
                }
            }
            out.add(&group[..group.len() - rest.len()], count).await?;
        }
        out.finish().await
    }

    fn usage(&self) -> &'static str {
        "[OPTION]... [INPUT [OUTPUT]]"
    }
}

fn parse(args: &[String]) -> Result<Options, Ending> {
    let mut options = Options { end: b'\n', ..Options::default() };
    let mut words = Words::new(args);
    let mut before = ' ';
    while let Some(word) = words.next()? {
        let letter = match &word {
            OptionWord::Short(letter) => *letter,
            OptionWord::Long(name) => match complete(name, LONG)? {
                "all-repeated" => 'A',
                "check-chars" => 'w',
                "count" => 'c',
                "group" => 'g',
                "ignore-case" => 'i',
                "repeated" => 'd',
                "skip-chars" => 's',
                "skip-fields" => 'f',
                "unique" => 'u',
                _ => 'z',
            },
            OptionWord::Operand(operand) => {
                options.operands.push(operand.clone());
                continue;
            }
        };
        let is_long = matches!(word, OptionWord::Long(_));
        match letter {
            'c' => options.counts = true,
            'd' => options.only_repeated = true,
            'u' => options.only_unique = true,
            'i' => options.ignores_case = true,
            'z' => options.end = 0,
            'D' => options.all_repeated = Some(GroupGap::Nowhere),
            'A' if is_long => {
                let gap = words.attached()?;
                let gap = gap.map(|gap| choose(REPEATED_GAPS, &gap, "--all-repeated")).transpose()?;
                options.all_repeated = Some(gap.unwrap_or_default());
            }
            'g' if is_long => {
                let gap = words.attached()?;
                let gap = gap.map(|gap| choose(GROUP_GAPS, &gap, "--group")).transpose()?;
                options.group = Some(gap.unwrap_or(GroupGap::Between));
            }
            // The old form of `-f`: only a number.
            '0'..='9' => {
                let number = if before.is_ascii_digit() { options.fields } else { 0 };
                let digit = letter.to_digit(10).and_then(|digit| usize::try_from(digit).ok());
                options.fields = number.saturating_mul(10).saturating_add(digit.unwrap_or(0));
            }
            'f' => options.fields = number(&words.value()?, "fields to skip")?,
            's' => options.skipped = number(&words.value()?, "bytes to skip")?,
            'w' => options.compared = Some(number(&words.value()?, "bytes to compare")?),
            _ => return Err(unknown(&word)),
        }
        before = letter;
    }
    check(&options)?;
    Ok(options)
}

fn number(text: &str, what: &str) -> Result<usize, Ending> {
    if text.is_empty() || text.bytes().any(|byte| !byte.is_ascii_digit()) {
        return Err(Ending::refused(format!("{text}: invalid number of {what}")));
    }
    Ok(text.parse().unwrap_or(usize::MAX))
}

fn check(options: &Options) -> Result<(), Ending> {
    if let Some(extra) = options.operands.get(2) {
        return Err(Ending::usage(format!("extra operand {}", curly(extra))));
    }
    let shows_some = options.counts || options.only_repeated || options.only_unique;
    if options.group.is_some() && (shows_some || options.all_repeated.is_some()) {
        return Err(Ending::usage("--group is mutually exclusive with -c/-d/-D/-u"));
    }
    if options.counts && options.all_repeated.is_some() {
        return Err(Ending::usage("printing all duplicated lines and repeat counts is meaningless"));
    }
    Ok(())
}

impl Options {
    /// Returns the part of a line that is compared.
    fn key<'a>(&self, line: &'a [u8]) -> &'a [u8] {
        let mut rest = line;
        for _ in 0..self.fields {
            let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
            let start = rest.iter().position(|byte| !is_blank(byte)).unwrap_or(rest.len());
            let end = rest[start..].iter().position(is_blank).map_or(rest.len(), |end| start + end);
            rest = &rest[end..];
            if rest.is_empty() {
                break;
            }
        }
        let rest = &rest[self.skipped.min(rest.len())..];
        &rest[..self.compared.unwrap_or(rest.len()).min(rest.len())]
    }

    fn is_same(&self, one: &[u8], other: &[u8]) -> bool {
        if self.ignores_case { one.eq_ignore_ascii_case(other) } else { one == other }
    }

    /// Returns the gap between groups, if all lines of a group are printed.
    fn gap(&self) -> Option<GroupGap> {
        self.group.or(self.all_repeated)
    }
}

/// The output of groups.
struct GroupOutput<'a, 'r> {
    run: &'a ProgramRun<'r>,
    options: &'a Options,
    kept: Vec<u8>,
    is_first: bool,
}

impl GroupOutput<'_, '_> {
    async fn add(&mut self, group: &[u8], count: u64) -> Result<(), Ending> {
        let options = self.options;
        let is_repeated = count > 1;
        let is_hidden = (options.only_unique && is_repeated)
            || ((options.only_repeated || options.all_repeated.is_some()) && !is_repeated);
        if is_hidden {
            return Ok(());
        }
        let gap = options.gap().unwrap_or_default();
        let is_first = std::mem::take(&mut self.is_first);
        if matches!(gap, GroupGap::Before | GroupGap::Both) || (gap == GroupGap::Between && !is_first) {
            self.kept.push(options.end);
        }
        if options.counts {
            self.kept.extend_from_slice(format!("{count:7} ").as_bytes());
        }
        let shown = if options.gap().is_some() {
            group
        } else {
            lines(group, options.end).next().unwrap_or_default()
        };
        self.kept.extend_from_slice(shown.strip_suffix(&[options.end]).unwrap_or(shown));
        self.kept.push(options.end);
        if self.kept.len() > MAX_FILE_BYTES {
            return Err(Ending::refused("write error: No space left on device"));
        }
        if gap == GroupGap::After {
            self.kept.push(options.end);
        }
        if self.kept.len() > 64 << 10 && options.operands.len() < 2 {
            self.run.breathe().await;
            self.run.print(std::mem::take(&mut self.kept)).await?;
        }
        Ok(())
    }

    async fn finish(mut self) -> Result<i32, Ending> {
        if self.options.gap() == Some(GroupGap::Both) && !self.is_first {
            self.kept.push(self.options.end);
        }
        match self.options.operands.get(1).filter(|output| *output != "-") {
            None => self.run.print(self.kept).await?,
            Some(output) => {
                let written = self.run.write(output, self.kept);
                written
                    .map_err(|error| Ending::refused(format!("{output}: {}", super::run::reason(&error))))?;
            }
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key<'a>(args: &[&str], line: &'a str) -> &'a str {
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        std::str::from_utf8(parse(&args).unwrap().key(line.as_bytes())).unwrap()
    }

    #[test]
    fn fields_and_bytes_may_be_left_out_of_the_comparison() {
        assert_eq!(key(&["-f1"], "  a b c"), " b c");
        assert_eq!(key(&["-1", "-s1", "-w1"], "a b c"), "b");
        assert_eq!(key(&["-f9"], "a b"), "");
        assert_eq!(key(&["-w0"], "a b"), "");
    }
}
