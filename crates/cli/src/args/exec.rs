//! The arguments of `run`, `exec` and `sh`: commands attached to our own terminal or pipes.

use clap::Args;

use super::environment::EnvironmentArgs;
use super::spec::SpecArgs;
use crate::durations;
use crate::sizes::parse_bytes;

const RUN_EXAMPLES: &str = "\
Examples:
  eyot run -- python3 -c 'print(6 * 7)'
  eyot run sh -c 'echo $HOME | wc -c'          pipes and variables need a shell
  cat data.csv | eyot run -- sort -u           our stdin is the command's
  eyot run --mount .:/src -w /tmp/w -- ls /src
  eyot run --timeout 10s --memory 512m -- ./untrusted
  eyot run -it -- bash

COMMAND is a program and its arguments, never a shell line: `eyot run 'echo hi'` looks for \
a program called `echo hi`.

Exit codes: the command's own; 128+n when signal n ended it; 124 when its deadline passed; \
125 when Eyot failed; 126 when the program may not be executed; 127 when it does not exist; \
2 for wrong arguments.

Ctrl-C is sent to the command; a second one kills it. The sandbox is destroyed in any case, and within \
half a minute if eyot itself is killed (kill -9): its command ends at once.";

/// The way in which a command is attached to our terminal.
#[derive(Debug, Clone, Copy, Args)]
pub struct TerminalArgs {
    /// Pass stdin to the command even if it is a terminal (a pipe or a file is always passed)
    #[arg(long, short)]
    pub interactive: bool,
    /// Run the command on a terminal
    #[arg(long, short)]
    pub tty: bool,
}

/// `eyot run`
#[derive(Debug, Args)]
#[command(after_help = RUN_EXAMPLES)]
pub struct RunArgs {
    /// The terminal options.
    #[command(flatten)]
    pub terminal: TerminalArgs,
    /// Keep the sandbox after the command has ended, and print its name on stderr
    #[arg(long)]
    pub keep: bool,
    /// Destroy the sandbox after the command has ended; this is the default
    #[arg(long, conflicts_with = "keep")]
    pub rm: bool,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub command: Vec<String>,
    /// The spec of the new sandbox.
    #[command(flatten)]
    pub spec: SpecArgs,
}

const EXEC_EXAMPLES: &str = "\
Examples:
  eyot exec builder -- make -j2
  eyot exec builder -- sh -c 'cd src && ls | head'
  eyot exec -w /tmp -e DEBUG=1 --timeout 30s builder -- ./test.sh
  eyot exec -it builder -- python3
  tar c . | eyot exec builder -- tar x

Exit codes are those of `eyot run`.";

/// `eyot exec`
#[derive(Debug, Args)]
#[command(after_help = EXEC_EXAMPLES)]
pub struct ExecArgs {
    /// The terminal options.
    #[command(flatten)]
    pub terminal: TerminalArgs,
    /// Directory to run it in, relative to the sandbox's working directory
    #[arg(long, short = 'w', alias = "cwd", value_name = "DIR")]
    pub workdir: Option<String>,
    /// The variables.
    #[command(flatten)]
    pub environment: EnvironmentArgs,
    /// The user that runs it
    #[arg(long, short, value_name = "USER")]
    pub user: Option<String>,
    /// Kill it after this time, such as 10s, 500ms, 1.5h
    #[arg(long, value_name = "DURATION", value_parser = durations::parse_timeout_ms, conflicts_with = "timeout_ms")]
    pub timeout: Option<u64>,
    /// Kill it after this many milliseconds
    #[arg(long, value_name = "N", hide = true)]
    pub timeout_ms: Option<u64>,
    /// With --json: the bytes to keep of each stream, such as 64k or 10m [default: 1m]
    #[arg(long, value_name = "SIZE", value_parser = parse_bytes)]
    pub max_output_bytes: Option<u64>,
    /// The sandbox's name or id
    pub name: String,
    /// The program and its arguments
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub command: Vec<String>,
}

const SH_EXAMPLES: &str = "\
Examples:
  eyot sh builder
  eyot sh --user root --workdir / builder
  echo 'ls | wc -l' | eyot sh builder          a script on stdin, no terminal

The shell is bash where there is one, else sh; its exit code is ours.";

/// `eyot sh`
#[derive(Debug, Args)]
#[command(after_help = SH_EXAMPLES)]
pub struct ShArgs {
    /// Directory to begin in
    #[arg(long, short = 'w', alias = "cwd", value_name = "DIR")]
    pub workdir: Option<String>,
    /// The variables.
    #[command(flatten)]
    pub environment: EnvironmentArgs,
    /// The user whose shell to start
    #[arg(long, short, value_name = "USER")]
    pub user: Option<String>,
    /// The sandbox's name or id
    pub name: String,
}
