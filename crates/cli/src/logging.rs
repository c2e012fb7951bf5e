//! Diagnostics on standard error, if asked for: by `EYOT_LOG` or the configuration's `log`, such as
//! `eyot=debug,eyot_native=trace`; `-vv` means `debug` for all of Eyot. A server logs warnings by
//! default, since errors between two requests are seen nowhere else.

use std::io::{self, Write};

use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::errors::Failure;
use crate::output::printable;

/// Turns diagnostics on, if there is a filter or this is a server.
pub fn start(filter: Option<&str>, verbose: u8, is_server: bool) -> Result<(), Failure> {
    let ours = |level| Targets::new().with_target("eyot", level);
    let targets = match (verbose, filter) {
        (2.., _) => ours(LevelFilter::DEBUG),
        (_, Some(filter)) => parse(filter)?,
        (_, None) if is_server => ours(LevelFilter::WARN),
        (_, None) => return Ok(()),
    };
    let layer = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(|| StderrLines);
    tracing_subscriber::registry().with(layer).with(targets).init();
    Ok(())
}

/// Standard error, written in whole lines and escaped: names from inside a sandbox may be logged.
struct StderrLines;

impl Write for StderrLines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let lines = text.split_inclusive('\n').map(|line| match line.strip_suffix('\n') {
            Some(line) => printable(line) + "\n",
            None => printable(line),
        });
        io::stderr().lock().write_all(lines.collect::<String>().as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

fn parse(filter: &str) -> Result<Targets, Failure> {
    let refused = |why: String| {
        Failure::usage(format!("the log filter `{filter}` can't be read: {why}"))
            .hint("write a level such as `debug`, or TARGET=LEVEL such as `eyot=debug,hyper=trace`")
    };
    // The library takes every word for the name of a target.
    let is_known =
        |word: &str| word.starts_with("eyot") || word.contains('=') || word.parse::<LevelFilter>().is_ok();
    if let Some(word) = filter.split(',').find(|word| !is_known(word)) {
        return Err(refused(format!("`{word}` is no level")));
    }
    filter.parse().map_err(|error: tracing_subscriber::filter::ParseError| refused(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_is_a_level_or_a_list_of_targets() {
        assert!(parse("debug").is_ok() && parse("eyot=debug,eyot_native=trace").is_ok());
        assert!(parse("eyot_native").is_ok() && parse("info,hyper=trace").is_ok());
        assert!(parse("eyot=loud").is_err() && parse("verbose").is_err());
    }
}
