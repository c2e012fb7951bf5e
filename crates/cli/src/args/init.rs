//! The arguments of `eyot init`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

const EXAMPLES: &str = "\
Examples:
  eyot init flue                     in a project of Flue's
  eyot init flue ./app --folder src  there, into src/
  eyot init flue --force             over the one that is there

Writes sandboxes/eyot.ts, checks it, and says what is missing. Nothing is installed, and no other \
file is changed.";

/// `eyot init`
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct InitArgs {
    #[command(subcommand)]
    pub framework: InitFramework,
}

/// An agent framework.
#[derive(Debug, Subcommand)]
pub enum InitFramework {
    /// Write sandboxes/eyot.ts for the agents of a Flue project, and check it with the project's own tsc
    Flue(InitFlueArgs),
}

/// `eyot init flue`
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub struct InitFlueArgs {
    /// The project, or a folder in it
    #[arg(value_name = "DIR", default_value = ".")]
    pub directory: PathBuf,
    /// Flue's source folder [default: the first that exists of .flue, src and the project itself]
    #[arg(long, value_name = "FOLDER", value_parser = [".flue", "src", "."])]
    pub folder: Option<String>,
    /// Replace an existing file
    #[arg(long)]
    pub force: bool,
}
