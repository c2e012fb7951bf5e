//! `timeout`. A command in memory hears no signal: it ends where a signal would end it.

use std::time::Duration;

use async_trait::async_trait;

use super::children::{ChildEnd, ChildInput};
use super::leading::{KnownOption, ValueRule, about, read_options};
use super::run::{Ending, ProgramRun, ShellProgram};
use super::signals::{KILL, TERM, read_signal, signal_name};
use super::waiting::interval;

const OPTIONS: &[KnownOption] = &[
    KnownOption { short: 'f', long: "foreground", value: ValueRule::Never },
    KnownOption { short: 'k', long: "kill-after", value: ValueRule::Always },
    KnownOption { short: 'p', long: "preserve-status", value: ValueRule::Never },
    KnownOption { short: 's', long: "signal", value: ValueRule::Always },
    KnownOption { short: 'v', long: "verbose", value: ValueRule::Never },
];
const TIMED_OUT: i32 = 124;
const FAILED: i32 = 125;

/// Runs a command for so long at most.
pub(super) struct Timeout;

/// A command line that was read.
#[derive(Debug, PartialEq, Eq)]
struct TimeoutRequest {
    signal: i32,
    preserves_status: bool,
    is_verbose: bool,
    /// `None` is without a limit.
    limit: Option<Duration>,
    /// It is empty where an operand is missing.
    argv: Vec<String>,
}

impl TimeoutRequest {
    fn read(args: &[String]) -> Result<Self, Ending> {
        let (given, rest) = read_options(args, OPTIONS)?;
        let mut request =
            Self { signal: TERM, preserves_status: false, is_verbose: false, limit: None, argv: Vec::new() };
        for (letter, value) in given {
            let value = value.unwrap_or_default();
            match letter {
                's' => {
                    let invalid = || Ending::usage(format!("‘{value}’: invalid signal"));
                    request.signal = read_signal(&value).ok_or_else(invalid)?;
                }
                // Whatever is still there after the first signal is not in memory.
                'k' => drop(read_time(&value)?),
                'p' => request.preserves_status = true,
                'v' => request.is_verbose = true,
                _ => {}
            }
        }
        if let [time, argv @ ..] = rest
            && !argv.is_empty()
        {
            request.limit = Some(read_time(time)?).filter(|limit| !limit.is_zero());
            request.argv = argv.to_vec();
        }
        Ok(request)
    }

    /// The status after the time is over.
    fn late_status(&self) -> i32 {
        if self.preserves_status || self.signal == KILL { 128 + self.signal } else { TIMED_OUT }
    }
}

fn read_time(text: &str) -> Result<Duration, Ending> {
    interval(text).ok_or_else(|| Ending::usage(format!("invalid time interval ‘{text}’")))
}

#[async_trait]
impl ShellProgram for Timeout {
    async fn run(&self, run: &ProgramRun<'_>) -> Result<i32, Ending> {
        if let Some(text) = about(run, "DURATION COMMAND [ARG]...") {
            run.print(text).await?;
            return Ok(0);
        }
        let request = TimeoutRequest::read(run.args)?;
        let Some(program) = request.argv.first() else {
            run.write_error("Try 'timeout --help' for more information.\n").await?;
            return Ok(FAILED);
        };
        let path = run.env.get("PATH").map(String::as_str);
        if let Err(error) = run.check_command(program, run.cwd, path).await {
            run.complain(format!("failed to run command ‘{program}’: {}", error.reason())).await?;
            return Ok(error.status());
        }
        let shown = std::iter::once(run.name).chain(run.args.iter().map(String::as_str)).map(str::to_owned);
        let shells = run.children.shells();
        let _task = shells.tasks.add_part(shown.collect(), shells.command);
        let mut child = run.child(request.argv.clone(), ChildInput::Caller);
        child.limit = request.limit;
        match run.run_child(child).await? {
            ChildEnd::Exited(status) => Ok(status),
            ChildEnd::TimedOut => {
                if request.is_verbose {
                    let signal = signal_name(request.signal);
                    run.complain(format!("sending signal {signal} to command ‘{program}’")).await?;
                }
                Ok(request.late_status())
            }
        }
    }

    fn usage_status(&self) -> i32 {
        FAILED
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<TimeoutRequest, String> {
        let args: Vec<String> = line.split(' ').map(str::to_owned).collect();
        TimeoutRequest::read(&args).map_err(|ending| format!("{ending:?}"))
    }

    #[test]
    fn the_status_of_a_late_command_is_124_or_its_signal() {
        assert_eq!(read("1 x").unwrap().late_status(), 124);
        assert_eq!(read("-s INT 1 x").unwrap().late_status(), 124);
        assert_eq!(read("-s KILL 1 x").unwrap().late_status(), 137);
        assert_eq!(read("--preserve-status 1 x").unwrap().late_status(), 143);
    }

    #[test]
    fn no_time_is_no_limit_and_wrong_times_are_refused() {
        assert_eq!(read("0 x").unwrap().limit, None);
        assert_eq!(read("-k5 .5m x -k").unwrap().limit, Some(Duration::from_secs(30)));
        assert!(read("x x").unwrap_err().contains("invalid time interval ‘x’"));
        assert!(read("-s NOSUCH 1 x").unwrap_err().contains("‘NOSUCH’: invalid signal"));
        assert!(read("1").unwrap().argv.is_empty());
    }
}
