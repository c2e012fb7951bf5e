//! The programs that a build of the tests made: the tests themselves, and `eyot`.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

use crate::process::{cargo, output, root, target_directory};

/// Everything that has tests, in one set of features, so that nothing is built twice.
pub const ARGUMENTS: [&str; 4] = [
    "test",
    "--workspace",
    "--features",
    "eyot/conformance,eyot-agent/opentelemetry,eyot-guest/client,eyot-guest/program,eyot-providers/cloudflare,eyot-providers/daytona,eyot-providers/docker,eyot-providers/e2b,eyot-providers/kubernetes,eyot-providers/memory,eyot-providers/modal,eyot-providers/native,eyot-providers/remote",
];

/// A program.
#[derive(Debug, Clone)]
pub struct Built {
    /// The target's name.
    pub name: String,
    /// The program's path.
    pub path: PathBuf,
    /// The folder of its package, where cargo runs it.
    pub package: PathBuf,
    /// The kind of target that it is made of.
    pub kind: Kind,
}

/// A kind of target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A program that is no test.
    Program,
    /// The tests inside a library or a program.
    UnitTests,
    /// A test target of its own.
    Tests,
}

impl Built {
    /// Returns whether it is a test.
    pub fn is_test(&self) -> bool {
        self.kind != Kind::Program
    }

    /// Returns its name with the folder of its package.
    pub fn id(&self) -> String {
        let folder = self.package.file_name().unwrap_or_default().to_string_lossy();
        format!("{folder}/{}", self.name)
    }
}

/// Returns `eyot` among these programs. It is the one that the tests of all packages use: a build
/// of it alone would have other features, and take minutes.
///
/// # Errors
/// It is not there.
pub fn eyot(built: &[Built]) -> Result<PathBuf, String> {
    program_named(built, "eyot")
}

/// Returns the program of this name, such as an example.
///
/// # Errors
/// It is not there.
pub fn program_named(built: &[Built], name: &str) -> Result<PathBuf, String> {
    let found = built.iter().find(|built| built.name == name && built.kind == Kind::Program);
    found.map(|built| built.path.clone()).ok_or_else(|| format!("cargo names no program `{name}`"))
}

/// Builds what is not built, and says what there is.
///
/// # Errors
/// A build that fails.
pub fn built() -> Result<Vec<Built>, String> {
    built_by(cargo().args(ARGUMENTS))
}

/// Builds the example of a provider as a crate outside of the workspace, which it is: with its own features and profile.
/// It has the versions of the workspace's lock file, so nothing is downloaded for it.
///
/// # Errors
/// A build that fails.
pub fn built_example_provider() -> Result<Vec<Built>, String> {
    let folder = root().join("examples/provider");
    let lock = fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock"));
    lock.map_err(|error| format!("copy Cargo.lock to {}: {error}", folder.display()))?;
    let mut example = cargo();
    example.current_dir(&folder).args(["test", "--target-dir"]).arg(target_directory()?);
    // What the workspace's build has made is taken where features allow.
    built_by(example.env("CARGO_PROFILE_DEV_DEBUG", "line-tables-only"))
}

fn built_by(command: &mut Command) -> Result<Vec<Built>, String> {
    let messages = output(command.args(["--no-run", "--message-format=json-render-diagnostics"]))?;
    let parsed = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    Ok(parsed.filter_map(|message| program(&message)).collect())
}

fn program(message: &Value) -> Option<Built> {
    let path = PathBuf::from(message.get("executable")?.as_str()?);
    let package = PathBuf::from(message.get("manifest_path")?.as_str()?).parent()?.to_owned();
    let target = message.get("target")?;
    let name = target.get("name")?.as_str()?.to_owned();
    let is_test = message.get("profile")?.get("test")?.as_bool()?;
    let kind = match target.get("kind")?.get(0)?.as_str()? {
        _ if !is_test => Kind::Program,
        "test" => Kind::Tests,
        _ => Kind::UnitTests,
    };
    Some(Built { name, path, package, kind })
}
