//! `eyot top`: shows the resources that every sandbox uses, or the processes of one of them, again
//! and again.
//!
//! The use of processors is a difference between two samples, so one sample is taken before the
//! first that is shown.

mod processes;
mod quit_key;
mod sandboxes;
mod screen;

use std::io::IsTerminal;
use std::time::Duration;

use crate::args::TopArgs;
use crate::context::Context;
use crate::errors::Failure;
use crate::output::json_line;
use crate::terminal;
use processes::SandboxProcesses;
use quit_key::QuitKey;
use sandboxes::AllSandboxes;
use screen::Screen;

/// The longest time between the first two samples of one sandbox's processes.
const FIRST_LOOKS: Duration = Duration::from_millis(500);

/// The time between two tables on a terminal.
const INTERVAL: Duration = Duration::from_secs(2);

/// The subject that is sampled.
enum TopSubject {
    All(AllSandboxes),
    One(SandboxProcesses),
}

impl TopSubject {
    /// Takes a sample and renders it as a table, or as objects one a line.
    async fn look(&mut self, args: &TopArgs, context: &Context) -> Result<String, Failure> {
        match self {
            Self::All(all) => all.look(args.sort, &context.names()?, context.output.json).await,
            Self::One(one) => one.look(args.sort, context.output.json).await,
        }
    }

    /// Returns the longest time between the beginnings of the first two samples.
    fn first_window(&self) -> Duration {
        match self {
            Self::All(all) => all.window(),
            Self::One(_) => FIRST_LOOKS,
        }
    }
}

pub async fn run(args: &TopArgs, context: &Context) -> Result<u8, Failure> {
    let mut subject = match &args.name {
        Some(name) => TopSubject::One(SandboxProcesses::new(context.sandbox(name).await?)),
        None => TopSubject::All(AllSandboxes::new(context.provider().await?)),
    };
    let is_once = args.once || (args.interval.is_none() && !std::io::stdout().is_terminal());
    let interval = args.interval.map_or(INTERVAL, Duration::from_millis);
    let mut screen = Screen::new(context.output);
    let quit_key = (!is_once && screen.is_redrawn() && terminal::stdin_is_terminal()).then(QuitKey::listen);
    let showing = show(&mut subject, &mut screen, is_once, interval, args, context);
    match quit_key.transpose()? {
        None => showing.await,
        Some(quit_key) => tokio::select! {
            shown = showing => shown,
            quit = quit_key.quits() => quit.map(|()| 0),
        },
    }
}

/// Shows one table, or one after another without an end.
async fn show(
    subject: &mut TopSubject,
    screen: &mut Screen,
    is_once: bool,
    interval: Duration,
    args: &TopArgs,
    context: &Context,
) -> Result<u8, Failure> {
    let begun = tokio::time::Instant::now();
    subject.look(args, context).await?;
    tokio::time::sleep_until(begun + interval.min(subject.first_window())).await;
    loop {
        let shown = subject.look(args, context).await?;
        screen.show(&shown, is_once)?;
        if is_once {
            return Ok(0);
        }
        tokio::time::sleep(interval).await;
    }
}

/// Returns the share of one processor that was used between two samples, in percent.
fn percent(before_ms: u64, now_ms: u64, passed: Duration) -> Option<f64> {
    let passed_ms = passed.as_secs_f64() * 1000.0;
    let used_ms = now_ms.saturating_sub(before_ms) as f64;
    (passed_ms >= 1.0).then(|| (used_ms / passed_ms * 1000.0).round() / 10.0)
}

fn percent_cell(percent: Option<f64>) -> String {
    percent.map_or_else(unknown, |percent| format!("{percent:.1}"))
}

fn mebibytes(bytes: Option<u64>) -> String {
    let shown = |bytes: u64| match bytes as f64 / f64::from(1 << 20) {
        mebibytes if mebibytes < 1024.0 => format!("{mebibytes:.1}M"),
        mebibytes => format!("{:.1}G", mebibytes / 1024.0),
    };
    bytes.map_or_else(unknown, shown)
}

fn unknown() -> String {
    "-".to_owned()
}

/// Renders a row as one line of JSON.
fn json_row(row: &impl serde::Serialize) -> Result<String, Failure> {
    Ok(json_line(row)? + "\n")
}

/// Orders the larger value first, and unknown values last.
fn descending<T: PartialOrd>(one: Option<T>, other: Option<T>) -> std::cmp::Ordering {
    other.partial_cmp(&one).unwrap_or(std::cmp::Ordering::Equal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_use_is_a_share_of_one_processor() {
        assert_eq!(percent(1000, 1500, Duration::from_secs(1)), Some(50.0));
        assert_eq!(percent(0, 4000, Duration::from_secs(2)), Some(200.0));
        assert_eq!(percent(5, 4, Duration::from_secs(1)), Some(0.0));
        assert_eq!(percent(0, 1, Duration::ZERO), None);
    }

    #[test]
    fn what_is_not_known_comes_last_and_shows_as_a_dash() {
        let mut values = [None, Some(1.0), Some(3.0)];
        values.sort_by(|one, other| descending(*one, *other));
        assert_eq!(values, [Some(3.0), Some(1.0), None]);
        assert_eq!((mebibytes(None).as_str(), mebibytes(Some(3 << 19)).as_str()), ("-", "1.5M"));
    }
}
