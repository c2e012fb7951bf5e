//! The programs that a build of the tests made: the tests themselves, and `eyot`.

use std::path::PathBuf;

use serde_json::Value;

use crate::process::{cargo, output};

/// Everything that has tests, in one set of features, so that nothing is built twice.
pub const ARGUMENTS: [&str; 4] = [
    "test",
    "--workspace",
    "--features",
    "eyot/conformance,eyot-guest/client,eyot-guest/program,eyot-providers/docker,eyot-providers/remote",
];

/// A program.
#[derive(Debug)]
pub struct Built {
    /// The target's name.
    pub name: String,
    /// The program's path.
    pub path: PathBuf,
    /// The folder of its package, where cargo runs it.
    pub package: PathBuf,
    /// Tells whether it is a test.
    pub is_test: bool,
}

/// The program `eyot`, as the tests of all packages have it.
///
/// # Errors
/// When it can't be built.
pub fn eyot() -> Result<PathBuf, String> {
    // A test of the command line needs it; building that alone would give it other features.
    let built = of(&["--test", "cli"])?;
    let eyot = built.into_iter().find(|built| built.name == "eyot" && !built.is_test);
    eyot.map(|built| built.path).ok_or_else(|| "cargo names no program `eyot`".to_owned())
}

/// Builds what is not built, and says what there is.
///
/// # Errors
/// When it can't be built.
pub fn built() -> Result<Vec<Built>, String> {
    of(&[])
}

fn of(targets: &[&str]) -> Result<Vec<Built>, String> {
    let arguments = ["--no-run", "--message-format=json"];
    let messages = output(cargo().args(ARGUMENTS).args(targets).args(arguments))?;
    let parsed = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    Ok(parsed.filter_map(|message| program(&message)).collect())
}

fn program(message: &Value) -> Option<Built> {
    let path = PathBuf::from(message.get("executable")?.as_str()?);
    let package = PathBuf::from(message.get("manifest_path")?.as_str()?).parent()?.to_owned();
    let name = message.get("target")?.get("name")?.as_str()?.to_owned();
    let is_test = message.get("profile")?.get("test")?.as_bool()?;
    Some(Built { name, path, package, is_test })
}
