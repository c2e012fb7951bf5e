//! `cmp`: two files are compared byte by byte.

use async_trait::async_trait;

use super::counts;
use super::options::{OptionWord, complete, unknown};
use super::run::{BYTES_AT_ONCE, Ending, ProgramRun, ShellProgram};
use crate::memory::node::NodeContent;
use crate::memory::walk::Last;

/// The digits of the largest count, for files whose size is not known.
const MOST_DIGITS: usize = 20;

const LONG: &[&str] =
    &["bytes", "ignore-initial", "print-bytes", "print-chars", "quiet", "silent", "verbose"];

#[derive(Debug, Default)]
struct Options {
    prints_bytes: bool,
    is_verbose: bool,
    is_silent: bool,
    skips: [u64; 2],
    limit: Option<u64>,
    operands: Vec<String>,
}

pub(super) struct Cmp;

#[async_trait]
impl ShellProgram for Cmp {
    async fn run(&self, run: &ProgramRun<'_>) -> Result<i32, Ending> {
        let options = parse(run).map_err(with_hint)?;
        let left = options.operands[0].clone();
        let right = options.operands.get(1).cloned().unwrap_or_else(|| "-".to_owned());
        let comparison = CmpComparison { run, options: &options, names: [left, right] };
        comparison.compare().await
    }

    fn usage_status(&self) -> i32 {
        2
    }
}

/// Gives a refusal the hint as `cmp` prints it.
fn with_hint(ending: Ending) -> Ending {
    match ending {
        Ending::Refused { reason, has_hint: true, .. } => {
            Ending::with_status(format!("{reason}\ncmp: Try 'cmp --help' for more information."), 2)
        }
        other => other,
    }
}

fn parse(run: &ProgramRun<'_>) -> Result<Options, Ending> {
    let mut options = Options::default();
    let mut words = run.words();
    while let Some(word) = words.next()? {
        let name = match word {
            OptionWord::Operand(operand) => {
                options.operands.push(operand);
                continue;
            }
            OptionWord::Short('b' | 'c') => "print-bytes",
            OptionWord::Short('i') => "ignore-initial",
            OptionWord::Short('l') => "verbose",
            OptionWord::Short('n') => "bytes",
            OptionWord::Short('s') => "silent",
            OptionWord::Short(_) => return Err(unknown(&word)),
            OptionWord::Long(name) => complete(&name, LONG)?,
        };
        match name {
            "bytes" => {
                let value = words.value()?;
                let limit = count(&value, "--bytes")?;
                options.limit = Some(options.limit.unwrap_or(u64::MAX).min(limit));
            }
            "ignore-initial" => take_skips(&mut options, &words.value()?)?,
            "verbose" => options.is_verbose = true,
            "quiet" | "silent" => options.is_silent = true,
            _ => options.prints_bytes = true,
        }
    }
    check(options)
}

fn check(mut options: Options) -> Result<Options, Ending> {
    if options.is_verbose && options.is_silent {
        return Err(Ending::usage("options -l and -s are incompatible"));
    }
    if options.operands.is_empty() {
        return Err(Ending::usage("missing operand after 'cmp'"));
    }
    let skips: Vec<String> = options.operands.iter().skip(2).cloned().collect();
    if let Some(extra) = skips.get(2) {
        return Err(Ending::usage(format!("extra operand '{extra}'")));
    }
    for (skip, value) in options.skips.iter_mut().zip(&skips) {
        *skip = (*skip).max(count(value, "--ignore-initial")?);
    }
    Ok(options)
}

/// Reads the bytes to skip: `5`, or for each file its own, `5:7`.
fn take_skips(options: &mut Options, value: &str) -> Result<(), Ending> {
    let wrong = || Ending::usage(format!("invalid --ignore-initial value '{value}'"));
    let (left, right) = value.split_once(':').unwrap_or((value, value));
    for (skip, text) in options.skips.iter_mut().zip([left, right]) {
        *skip = (*skip).max(number(text).ok_or_else(wrong)?);
    }
    Ok(())
}

fn count(value: &str, option: &str) -> Result<u64, Ending> {
    number(value).ok_or_else(|| Ending::usage(format!("invalid {option} value '{value}'")))
}

/// Reads a number of bytes with its unit.
fn number(text: &str) -> Option<u64> {
    counts::count(text, "kKMGTPEZY").filter(|number| *number != u64::MAX)
}

struct CmpComparison<'a, 'r> {
    run: &'a ProgramRun<'r>,
    options: &'a Options,
    names: [String; 2],
}

impl CmpComparison<'_, '_> {
    async fn compare(&self) -> Result<i32, Ending> {
        if self.names[0] == self.names[1]
            && self.options.skips[0] == self.options.skips[1]
            && self.names[0] == "-"
        {
            return Ok(0);
        }
        let mut files = Vec::new();
        for name in &self.names {
            match self.run.read(name).await? {
                Ok(bytes) => files.push(bytes),
                Err(_) if self.options.is_silent => return Ok(2),
                Err(reason) => return Err(Ending::with_status(format!("{name}: {reason}"), 2)),
            }
        }
        let parts: Vec<&[u8]> = files
            .iter()
            .zip(self.options.skips)
            .map(|(bytes, skip)| {
                let skip = usize::try_from(skip).unwrap_or(usize::MAX).min(bytes.len());
                &bytes[skip..]
            })
            .collect();
        let limit = usize::try_from(self.options.limit.unwrap_or(u64::MAX)).unwrap_or(usize::MAX);
        let ends = [parts[0].len() > limit, parts[1].len() > limit];
        let [left, right] = [0, 1].map(|index| &parts[index][..parts[index].len().min(limit)]);
        let is_cut = ends[0] || ends[1] || left.len() == right.len();
        if self.options.is_verbose {
            return self.list(left, right, is_cut).await;
        }
        let Some(at) = self.first_difference(left, right).await else {
            return if is_cut && left.len() == right.len() { Ok(0) } else { self.short(left, right).await };
        };
        if !self.options.is_silent {
            self.run.print(self.difference(left, right, at)).await?;
        }
        Ok(1)
    }

    /// Finds the first byte that differs, within what both have.
    async fn first_difference(&self, left: &[u8], right: &[u8]) -> Option<usize> {
        let pieces = left.chunks(BYTES_AT_ONCE).zip(right.chunks(BYTES_AT_ONCE));
        for (index, (left, right)) in pieces.enumerate() {
            self.run.breathe().await;
            let len = left.len().min(right.len());
            if left[..len] != right[..len] {
                let within = left.iter().zip(right).position(|(left, right)| left != right)?;
                return Some(index * BYTES_AT_ONCE + within);
            }
        }
        None
    }

    fn difference(&self, left: &[u8], right: &[u8], at: usize) -> Vec<u8> {
        let line = newlines(&left[..at]) + 1;
        let mut text =
            format!("{} {} differ: byte {}, line {line}", self.names[0], self.names[1], at + 1).into_bytes();
        if self.options.prints_bytes {
            let (left, right) = (left[at], right[at]);
            let shown = format!(" is {left:3o} {} {right:3o} {}", visible(left), visible(right));
            text.extend_from_slice(shown.as_bytes());
        }
        text.push(b'\n');
        text
    }

    /// Says which file ended before the other.
    async fn short(&self, left: &[u8], right: &[u8]) -> Result<i32, Ending> {
        if self.options.is_silent {
            return Ok(1);
        }
        let (name, all) =
            if left.len() < right.len() { (&self.names[0], left) } else { (&self.names[1], right) };
        let lines = newlines(all);
        self.run
            .complain(match all {
                [] => format!("EOF on {name} which is empty"),
                _ if self.options.is_verbose => format!("EOF on {name} after byte {}", all.len()),
                [.., b'\n'] => format!("EOF on {name} after byte {}, line {lines}", all.len()),
                _ => format!("EOF on {name} after byte {}, in line {}", all.len(), lines + 1),
            })
            .await?;
        Ok(1)
    }

    /// Lists all bytes that differ.
    async fn list(&self, left: &[u8], right: &[u8], is_cut: bool) -> Result<i32, Ending> {
        let width = self.width();
        let mut status = 0;
        let pieces = left.chunks(BYTES_AT_ONCE).zip(right.chunks(BYTES_AT_ONCE));
        for (index, (left, right)) in pieces.enumerate() {
            let mut out = String::new();
            for (within, (left, right)) in left.iter().zip(right).enumerate() {
                if left == right {
                    continue;
                }
                let at = index * BYTES_AT_ONCE + within + 1;
                out += &if self.options.prints_bytes {
                    let (shown, other) = (visible(*left), visible(*right));
                    format!("{at:width$} {left:3o} {shown:<4} {right:3o} {other}\n")
                } else {
                    format!("{at:width$} {left:3o} {right:3o}\n")
                };
            }
            self.run.breathe().await;
            if !out.is_empty() {
                status = 1;
                self.run.print(out).await?;
            }
        }
        if left.len() == right.len() && is_cut { Ok(status) } else { self.short(left, right).await }
    }

    /// The width of a position: that of the last byte that may be compared.
    fn width(&self) -> usize {
        let sizes = self.names.iter().zip(self.options.skips).filter(|(name, _)| *name != "-").filter_map(
            |(name, skip)| match self.run.look(name, Last::Follow).ok()?.content {
                NodeContent::File(content) => Some(content.len().saturating_sub(skip)),
                _ => None,
            },
        );
        let most = sizes.chain(self.options.limit).min();
        most.map_or(MOST_DIGITS, |most| most.to_string().len())
    }
}

fn newlines(bytes: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', bytes).count()
}

/// Shows a byte: `^A` for a control character, `M-` before what is not ASCII.
fn visible(byte: u8) -> String {
    let (meta, low) = if byte >= 0x80 { ("M-", byte - 0x80) } else { ("", byte) };
    match low {
        0x7f => format!("{meta}^?"),
        0..=0x1f => format!("{meta}^{}", char::from(low + 0x40)),
        _ => format!("{meta}{}", char::from(low)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_as_cat_shows_them() {
        for (byte, shown) in [(b'a', "a"), (1, "^A"), (0x7f, "^?"), (0x80, "M-^@"), (0xe1, "M-a")] {
            assert_eq!(visible(byte), shown);
        }
    }

    #[test]
    fn counts_have_units() {
        for (text, count) in [
            ("2", Some(2)),
            ("1K", Some(1024)),
            ("1k", Some(1024)),
            ("1kB", Some(1000)),
            ("1Z", None),
            ("1MiB", Some(1 << 20)),
            ("2B", None),
            ("", None),
        ] {
            assert_eq!(number(text), count, "{text}");
        }
    }
}
