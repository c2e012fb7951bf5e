//! The arguments: one structure for each command, with the help that teaches it. Parsing refuses what can be refused
//! without looking at the machine; nothing here acts.

mod exec;
mod files;
mod processes;
mod sandboxes;
mod shell_support;
mod side;
mod spec;
mod values;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

pub use exec::{ExecArgs, RunArgs, ShArgs, TerminalArgs};
pub use files::{CpArgs, GlobArgs, GrepArgs, ReadArgs, WriteArgs};
pub use processes::{KillArgs, LogsArgs, PsArgs, StartArgs, WaitArgs};
pub use sandboxes::{CreateArgs, DialArgs, InspectArgs, LsArgs, RmArgs};
pub use shell_support::{CompletionsArgs, ManArgs};
pub use side::Side;
pub use values::{NetworkArg, resolve_env};

const EXAMPLES: &str = "\
Examples:
  eyot run -- python3 -c 'print(6 * 7)'     one command in a throw-away sandbox
  eyot create --name builder                a sandbox that stays
  eyot exec builder -- sh -c 'make 2>&1'    a command in it
  eyot sh builder                           a shell in it
  eyot cp ./src builder:/workspace/         files into it
  eyot rm builder                           and gone

Configuration, the first that says something counts: flags, EYOT_* variables,
~/.config/eyot/config.toml, /etc/eyot/config.toml.";

/// Computers for AI agents: private Linux sandboxes in about a millisecond.
#[derive(Debug, Parser)]
#[command(name = "eyot", version, after_help = EXAMPLES, max_term_width = 100)]
#[command(subcommand_required = true, arg_required_else_help = true)]
pub struct Cli {
    /// What holds for every command.
    #[command(flatten)]
    pub global: GlobalArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: CliCommand,
}

/// What holds for every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Global options")]
pub struct GlobalArgs {
    /// Folder that holds the sandboxes [env: EYOT_STATE]
    #[arg(long, global = true, value_name = "DIR")]
    pub state: Option<PathBuf>,
    /// Print results (and errors, as one more line on stderr) as JSON
    #[arg(long, global = true)]
    pub json: bool,
    /// No notes and no progress on stderr
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// Show the causes of an error; twice: diagnostics too
    #[arg(long, short, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
}

/// What to do.
#[derive(Debug, Subcommand)]
#[command(disable_help_subcommand = true)]
pub enum CliCommand {
    /// Run one command in a throw-away sandbox
    Run(RunArgs),
    /// Make a sandbox that stays
    Create(CreateArgs),
    /// List the sandboxes
    #[command(visible_alias = "list")]
    Ls(LsArgs),
    /// Run a command in a sandbox
    Exec(ExecArgs),
    /// Open a shell in a sandbox
    #[command(visible_alias = "shell")]
    Sh(ShArgs),
    /// Start a process in a sandbox and leave it running
    Start(StartArgs),
    /// List the started processes of a sandbox
    Ps(PsArgs),
    /// Print what a started process wrote
    Logs(LogsArgs),
    /// Send a signal to a started process
    Kill(KillArgs),
    /// Wait for a started process to end
    Wait(WaitArgs),
    /// Copy files and trees into, out of and between sandboxes
    Cp(CpArgs),
    /// Print a file of a sandbox
    Read(ReadArgs),
    /// Write a file in a sandbox
    Write(WriteArgs),
    /// Find files by pattern
    Glob(GlobArgs),
    /// Find lines by pattern
    Grep(GrepArgs),
    /// Show what is known of a sandbox and what isolates it
    Inspect(InspectArgs),
    /// Destroy sandboxes
    Rm(RmArgs),
    /// Connect stdin and stdout to a TCP port in a sandbox
    Dial(DialArgs),
    /// Print a completion script for a shell
    Completions(CompletionsArgs),
    /// Print the man page
    Man(ManArgs),
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn everything_after_the_commands_first_word_belongs_to_the_command() {
        let cli = Cli::try_parse_from(["eyot", "run", "--net", "none", "ls", "-la", "--json"]).unwrap();
        assert!(!cli.global.json);
        let CliCommand::Run(run) = cli.command else {
            panic!("run")
        };
        assert_eq!(run.command, ["ls", "-la", "--json"]);
    }

    #[test]
    fn a_line_with_spaces_is_one_word_and_not_a_shell_line() {
        let cli = Cli::try_parse_from(["eyot", "run", "echo hi"]).unwrap();
        let CliCommand::Run(run) = cli.command else {
            panic!("run")
        };
        assert_eq!(run.command, ["echo hi"]);
    }

    #[test]
    fn an_unknown_flag_before_the_command_is_refused() {
        assert!(Cli::try_parse_from(["eyot", "run", "--imagine", "x", "--", "true"]).is_err());
        assert!(Cli::try_parse_from(["eyot", "exec", "--nope", "box", "--", "true"]).is_err());
    }

    #[test]
    fn it_is_two_flags_for_exec() {
        let cli = Cli::try_parse_from(["eyot", "exec", "-it", "box", "--", "vi", "-R"]).unwrap();
        let CliCommand::Exec(exec) = cli.command else {
            panic!("exec")
        };
        assert!(exec.terminal.interactive && exec.terminal.tty);
        assert_eq!(
            (exec.name.as_str(), exec.command.as_slice()),
            ("box", &["vi".to_owned(), "-R".to_owned()][..])
        );
    }
}
