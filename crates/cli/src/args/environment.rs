//! Variables for commands: `-e K=V` and `--env-file`.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use clap::Args;

use super::values::{EnvArg, parse_env, parse_env_file, resolve_env};
use crate::errors::Failure;

/// The variables of one command.
#[derive(Debug, Args)]
pub struct EnvironmentArgs {
    /// A variable for it; K alone takes the value from eyot's environment
    #[arg(long, short, value_name = "K=V", value_parser = parse_env)]
    pub env: Vec<EnvArg>,
    /// Read variables from a file, one K=V a line
    #[arg(long, value_name = "FILE")]
    pub env_file: Vec<PathBuf>,
}

impl EnvironmentArgs {
    /// Returns the variables with their values.
    pub fn resolve(&self) -> Result<BTreeMap<String, String>, Failure> {
        environment(&self.env_file, &self.env)
    }
}

/// Returns the variables of files and, before those, of options.
pub(super) fn environment(
    files: &[PathBuf],
    options: &[EnvArg],
) -> Result<BTreeMap<String, String>, Failure> {
    let mut variables = Vec::new();
    for file in files {
        let shown = file.display();
        let text = fs::read_to_string(file)
            .map_err(|error| Failure::host(format!("read the env file `{shown}`"), error))?;
        let parsed = parse_env_file(&text);
        variables.extend(parsed.map_err(|reason| Failure::usage(format!("`{shown}`, {reason}")))?);
    }
    variables.extend(options.iter().cloned());
    resolve_env(&variables, |name| std::env::var(name).ok())
}
