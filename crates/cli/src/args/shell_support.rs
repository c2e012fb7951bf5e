//! The arguments of `completions`, `man`, `help` and `version`.

use std::path::PathBuf;

use clap::Args;
use clap_complete::Shell;

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  eyot completions bash > ~/.local/share/bash-completion/completions/eyot
  eyot completions zsh > ~/.zfunc/_eyot
  eyot completions fish > ~/.config/fish/completions/eyot.fish";

/// `eyot completions`
#[derive(Debug, Args)]
#[command(after_help = COMPLETIONS_EXAMPLES)]
pub struct CompletionsArgs {
    /// The shell
    pub shell: Shell,
}

const MAN_EXAMPLES: &str = "\
Examples:
  eyot man | man -l -
  eyot man run | man -l -
  eyot man image pull | man -l -
  eyot man --dir ~/.local/share/man/man1       one page for each command";

/// `eyot man`
#[derive(Debug, Args)]
#[command(after_help = MAN_EXAMPLES)]
pub struct ManArgs {
    /// Print the page of this command
    #[arg(value_name = "COMMAND", conflicts_with = "dir")]
    pub command: Vec<String>,
    /// Write every page into this directory
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
}

const HELP_EXAMPLES: &str = "\
Examples:
  eyot help                                    all commands
  eyot help run                                one, as `eyot run --help`
  eyot help image pull";

/// `eyot help`
#[derive(Debug, Args)]
#[command(after_help = HELP_EXAMPLES)]
pub struct HelpArgs {
    /// The command
    #[arg(value_name = "COMMAND")]
    pub command: Vec<String>,
}

const VERSION_EXAMPLES: &str = "\
Examples:
  eyot version
  eyot version --json                          {\"version\",\"build\"}";

/// `eyot version`
#[derive(Debug, Args)]
#[command(after_help = VERSION_EXAMPLES)]
pub struct VersionArgs {}
