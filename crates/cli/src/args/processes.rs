//! The arguments of `start`, `ps`, `logs`, `kill` and `wait`: processes that outlive the call.

use clap::{Args, ValueEnum};
use eyot::{LogStream, ProcessId, Signal};

use super::environment::EnvironmentArgs;
use crate::durations;
use crate::sizes::parse_bytes;

const START_EXAMPLES: &str = "\
Examples:
  eyot start builder -- python3 -m http.server 8000
  eyot start --workdir app -e PORT=3000 builder -- npm start
  eyot start --timeout 1.5h builder -- make test
  echo yes | eyot start -i builder -- ./install.sh
  eyot logs -f builder $(eyot start builder -- make)

Docker's `start` is `eyot wake`. Prints the process's id, such as p1. `eyot logs` shows what it writes.";

/// `eyot start`
#[derive(Debug, Args)]
#[command(after_help = START_EXAMPLES)]
pub struct StartArgs {
    /// Directory to run it in, relative to the sandbox's working directory
    #[arg(long, short = 'w', alias = "cwd", value_name = "DIR")]
    pub workdir: Option<String>,
    /// The variables.
    #[command(flatten)]
    pub environment: EnvironmentArgs,
    /// The user that runs it
    #[arg(long, short, value_name = "USER")]
    pub user: Option<String>,
    /// Kill it when it has not ended after this time, such as 10m or 1.5h
    #[arg(long, value_name = "DURATION", value_parser = durations::parse_timeout_ms)]
    pub timeout: Option<u64>,
    /// Give it what comes on our standard input, at most 64 KiB
    #[arg(long, short)]
    pub interactive: bool,
    /// Run it on a terminal of 80 columns
    #[arg(long, short)]
    pub tty: bool,
    /// The sandbox's name or id
    pub name: String,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

const PS_EXAMPLES: &str = "\
Examples:
  eyot ps builder
  eyot ps -q builder                           ids only
  eyot ps --json builder";

/// `eyot ps`
#[derive(Debug, Args)]
#[command(after_help = PS_EXAMPLES)]
pub struct PsArgs {
    /// The sandbox's name or id
    pub name: String,
}

const LOGS_EXAMPLES: &str = "\
Examples:
  eyot logs builder p1
  eyot logs -f builder p1                      go on until it ends
  eyot logs --tail 100 -f builder p1           from the last 100 lines on
  eyot logs --stream stderr builder p1
  eyot logs --since-offset 4096 --limit 1024 builder p1

What it wrote to stdout comes on stdout, what it wrote to stderr on stderr. About the last MiB is \
kept, and of each stream at least its last half MiB, however much the other one writes. \
With --json: one object a line, first {\"range\":{\"start\",\"end\",\"total_bytes\",\"dropped_bytes\"}}, then \
{\"stream\",\"offset\",\"stream_offset\",\"data\"}, or \"data_base64\" where it is not UTF-8. Offsets count both \
streams together; `--since-offset` with the end of what was read misses nothing.";

/// `eyot logs`
#[derive(Debug, Args)]
#[command(after_help = LOGS_EXAMPLES)]
pub struct LogsArgs {
    /// The sandbox's name or id
    pub name: String,
    /// The process, such as p1
    #[arg(value_name = "PROCESS", value_parser = parse_process)]
    pub process: ProcessId,
    /// Then print new output until the process ends
    #[arg(long, short)]
    pub follow: bool,
    /// Begin this many lines before the end
    #[arg(long, short = 'n', value_name = "LINES", conflicts_with_all = ["tail_bytes", "since_offset"])]
    pub tail: Option<u64>,
    /// Begin this many bytes before the end
    #[arg(long, value_name = "SIZE", conflicts_with = "since_offset", value_parser = parse_bytes)]
    pub tail_bytes: Option<u64>,
    /// Begin at this byte, counted from the start of the output
    #[arg(long, alias = "offset", value_name = "N", default_value_t = 0)]
    pub since_offset: u64,
    /// Stop after this many bytes, such as 4k
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub limit: Option<u64>,
    /// Only the output on this stream
    #[arg(long, value_name = "STREAM")]
    pub stream: Option<LogStreamArg>,
}

/// An output stream of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogStreamArg {
    /// Standard output
    Stdout,
    /// Standard error
    Stderr,
}

impl From<LogStreamArg> for LogStream {
    fn from(stream: LogStreamArg) -> Self {
        match stream {
            LogStreamArg::Stdout => Self::Stdout,
            LogStreamArg::Stderr => Self::Stderr,
        }
    }
}

const KILL_EXAMPLES: &str = "\
Examples:
  eyot kill builder p1                         SIGTERM to its process group
  eyot kill -s INT builder p1                  also -INT, -2 and --signal 2
  eyot kill --tree builder p1                  SIGKILL to its process tree";

/// `eyot kill`
#[derive(Debug, Args)]
#[command(after_help = KILL_EXAMPLES)]
pub struct KillArgs {
    /// The sandbox's name or id
    pub name: String,
    /// The process, such as p1
    #[arg(value_name = "PROCESS", value_parser = parse_process)]
    pub process: ProcessId,
    /// The signal, by name or number, for its process group
    #[arg(long, short, value_name = "SIGNAL", default_value = "TERM", value_parser = parse_signal)]
    pub signal: Signal,
    /// Kill it and every descendant with SIGKILL instead
    #[arg(long, conflicts_with = "signal")]
    pub tree: bool,
}

const WAIT_EXAMPLES: &str = "\
Examples:
  eyot wait builder p1; echo $?                its exit code is ours
  eyot wait --json builder p1";

/// `eyot wait`
#[derive(Debug, Args)]
#[command(after_help = WAIT_EXAMPLES)]
pub struct WaitArgs {
    /// The sandbox's name or id
    pub name: String,
    /// The process, such as p1
    #[arg(value_name = "PROCESS", value_parser = parse_process)]
    pub process: ProcessId,
    /// Wait no longer than this, such as 30s; the process goes on, and the exit code is 124
    #[arg(long, value_name = "DURATION", value_parser = durations::parse_timeout_ms)]
    pub timeout: Option<u64>,
}

fn parse_process(text: &str) -> Result<ProcessId, String> {
    text.parse().map_err(|error: eyot::Error| error.to_string())
}

fn parse_signal(text: &str) -> Result<Signal, String> {
    Signal::parse(text).map_err(|error| error.to_string())
}
