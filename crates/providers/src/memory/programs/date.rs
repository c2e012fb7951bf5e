//! `date`: prints the time, or another one. Nobody can set the clock.

use async_trait::async_trait;

use super::choices::choose;
use super::options::{OptionWord, complete, unknown};
use super::quoting::curly;
use super::run::{Ending, ProgramRun, ShellProgram, reason};
use super::times::{Moment, Zone, format_time, read_time};
use crate::memory::walk::Last;

const LONG_NAMES: [&str; 14] = [
    "date",
    "file",
    "iso-8601",
    "reference",
    "resolution",
    "rfc-2822",
    "rfc-3339",
    "rfc-822",
    "rfc-email",
    "set",
    "uct",
    "universal",
    "utc",
    "help",
];
/// The form of the C locale.
const USUAL: &str = "%a %b %e %H:%M:%S %Z %Y";
const RFC_EMAIL: &str = "%a, %d %b %Y %H:%M:%S %z";
static ISO_8601: [(&str, &str); 5] = [
    ("hours", "%Y-%m-%dT%H%:z"),
    ("minutes", "%Y-%m-%dT%H:%M%:z"),
    ("date", "%Y-%m-%d"),
    ("seconds", "%Y-%m-%dT%H:%M:%S%:z"),
    ("ns", "%Y-%m-%dT%H:%M:%S,%N%:z"),
];
static RFC_3339: [(&str, &str); 3] =
    [("date", "%Y-%m-%d"), ("seconds", "%Y-%m-%d %H:%M:%S%:z"), ("ns", "%Y-%m-%d %H:%M:%S.%N%:z")];

/// The times that are printed.
#[derive(Debug, Clone, PartialEq, Eq)]
enum DateSource {
    Text(String),
    /// The lines of a file.
    Lines(String),
    /// The time of a file.
    Reference(String),
    Resolution,
}

#[derive(Debug, Default)]
struct Options {
    format: Option<String>,
    sources: Vec<DateSource>,
    set: Option<String>,
    is_utc: bool,
}

pub(super) struct Date;

#[async_trait]
impl ShellProgram for Date {
    async fn run(&self, run: &ProgramRun<'_>) -> Result<i32, Ending> {
        let options = parse(run)?;
        let zone = if options.is_utc { Zone::utc() } else { Zone::of(run.env) };
        let format = options.format.as_deref().unwrap_or(match options.sources.last() {
            Some(DateSource::Resolution) => "%s.%N",
            _ => USUAL,
        });
        let now = Moment::now();
        let moment = match (&options.set, options.sources.last()) {
            (Some(text), _) => {
                let moment = read(text, now, &zone)?;
                run.complain("cannot set date: Operation not permitted").await?;
                print(run, format, moment, &zone).await?;
                return Ok(1);
            }
            (None, None) => now,
            (None, Some(DateSource::Text(text))) => read(text, now, &zone)?,
            (None, Some(DateSource::Reference(name))) => time_of(run, name)?,
            (None, Some(DateSource::Resolution)) => Moment { seconds: 0, nanos: 1 },
            (None, Some(DateSource::Lines(name))) => return print_lines(run, name, format, &zone).await,
        };
        print(run, format, moment, &zone).await?;
        Ok(0)
    }

    fn usage(&self) -> &'static str {
        "[OPTION]... [+FORMAT]"
    }
}

fn parse(run: &ProgramRun<'_>) -> Result<Options, Ending> {
    let mut options = Options::default();
    let mut operands = Vec::new();
    let mut words = run.words();
    while let Some(word) = words.next()? {
        let name = match &word {
            OptionWord::Operand(operand) => {
                operands.push(operand.clone());
                continue;
            }
            OptionWord::Short('d') => "date",
            OptionWord::Short('f') => "file",
            OptionWord::Short('r') => "reference",
            OptionWord::Short('s') => "set",
            OptionWord::Short('u') => "utc",
            OptionWord::Short('R') => "rfc-email",
            OptionWord::Short('I') => "iso-8601",
            OptionWord::Short(_) => return Err(unknown(&word)),
            OptionWord::Long(name) => complete(name, &LONG_NAMES)?,
        };
        match name {
            "date" => options.put_source(DateSource::Text(words.value()?)),
            "file" => options.put_source(DateSource::Lines(words.value()?)),
            "reference" => options.put_source(DateSource::Reference(words.value()?)),
            "resolution" => options.put_source(DateSource::Resolution),
            "set" => options.set = Some(words.value()?),
            "utc" | "uct" | "universal" => options.is_utc = true,
            "rfc-email" | "rfc-2822" | "rfc-822" => options.put_format(RFC_EMAIL)?,
            "iso-8601" => {
                let kind = words.attached()?.unwrap_or_else(|| "date".to_owned());
                options.put_format(choose(&ISO_8601, &kind, "--iso-8601")?)?;
            }
            "rfc-3339" => options.put_format(choose(&RFC_3339, &words.value()?, "--rfc-3339")?)?,
            _ => return Err(unknown(&word)),
        }
    }
    options.take(operands)?;
    Ok(options)
}

impl Options {
    /// Adds a source. A second one of the same kind takes the place of the first.
    fn put_source(&mut self, source: DateSource) {
        let kind = std::mem::discriminant(&source);
        self.sources.retain(|other| std::mem::discriminant(other) != kind);
        self.sources.push(source);
    }

    fn put_format(&mut self, format: &str) -> Result<(), Ending> {
        match self.format.replace(format.to_owned()) {
            Some(_) => Err(Ending::refused("multiple output formats specified")),
            None => Ok(()),
        }
    }

    fn take(&mut self, operands: Vec<String>) -> Result<(), Ending> {
        if self.sources.len() > 1 {
            return Err(Ending::usage("the options to specify dates for printing are mutually exclusive"));
        }
        if self.set.is_some() && !self.sources.is_empty() {
            return Err(Ending::usage("the options to print and set the time may not be used together"));
        }
        let mut operands = operands.into_iter();
        let Some(first) = operands.next() else { return Ok(()) };
        if let Some(extra) = operands.next() {
            return Err(Ending::usage(format!("extra operand {}", curly(&extra))));
        }
        if let Some(format) = first.strip_prefix('+') {
            return self.put_format(format);
        }
        if self.set.is_some() || !self.sources.is_empty() {
            return Err(Ending::usage(format!(
                "the argument {} lacks a leading '+';\nwhen using an option to specify date(s), any non-option\n\
                 argument must be a format string beginning with '+'",
                curly(&first)
            )));
        }
        self.set = Some(read_digits(&first).ok_or_else(|| invalid(&first))?);
        Ok(())
    }
}

/// Reads `MMDDhhmm[[CC]YY][.ss]`, the form in which the clock is set.
fn read_digits(text: &str) -> Option<String> {
    let (digits, seconds) = text.split_once('.').unwrap_or((text, "00"));
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(digits) || !is_number(seconds) || seconds.len() != 2 {
        return None;
    }
    let now = format_time("%Y", Moment::now(), &Zone::utc());
    let year = match digits.len() {
        8 => now,
        10 => format!("{}{}", &now[..2], &digits[8..]),
        12 => digits[8..].to_owned(),
        _ => return None,
    };
    let part = |at: usize| &digits[at..at + 2];
    Some(format!("{year}-{}-{} {}:{}:{seconds}", part(0), part(2), part(4), part(6)))
}

fn invalid(text: &str) -> Ending {
    Ending::refused(format!("invalid date {}", curly(text)))
}

fn read(text: &str, now: Moment, zone: &Zone) -> Result<Moment, Ending> {
    read_time(text, now, zone).map_err(|_| invalid(text))
}

fn time_of(run: &ProgramRun<'_>, name: &str) -> Result<Moment, Ending> {
    let node = run.look(name, Last::Follow);
    node.map(|node| node.modified.into())
        .map_err(|error| Ending::refused(format!("{name}: {}", reason(&error))))
}

async fn print(run: &ProgramRun<'_>, format: &str, moment: Moment, zone: &Zone) -> Result<(), Ending> {
    run.print(format_time(format, moment, zone) + "\n").await
}

async fn print_lines(run: &ProgramRun<'_>, name: &str, format: &str, zone: &Zone) -> Result<i32, Ending> {
    let bytes = run.read(name).await?.map_err(|reason| Ending::refused(format!("{name}: {reason}")))?;
    let mut status = 0;
    for line in String::from_utf8_lossy(&bytes).lines() {
        run.breathe().await;
        match read_time(line, Moment::now(), zone) {
            Ok(moment) => print(run, format, moment, zone).await?,
            Err(_) => {
                run.complain(format!("invalid date {}", curly(line))).await?;
                status = 1;
            }
        }
    }
    Ok(status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_is_set_by_digits() {
        assert_eq!(read_digits("010203042024.05").unwrap(), "2024-01-02 03:04:05");
        assert_eq!(read_digits("0102030499").unwrap()[2..].to_owned(), "99-01-02 03:04:00");
        for text in ["foo", "0102", "01020304.5", "0102030", ""] {
            assert!(read_digits(text).is_none(), "{text}");
        }
    }
}
