//! The clients for Python and TypeScript with the frameworks that they are for, the API's document,
//! and the page, tried against the server as it is built here. Whatever can't be tried is an error:
//! nothing of this is ever skipped.

mod document;
mod python;
pub mod typescript;
mod web;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use crate::process::{all_of, run as run_program, target_directory};
use crate::{packages, programs};

/// The parts that can be named on the command line, in the order in which they run.
const PARTS: [(&str, Part); 4] = [
    ("python", python::run),
    ("typescript", typescript::run),
    ("document", document::run),
    ("web", web::run),
];

/// Tries one part.
type Part = fn(&Ground) -> Result<(), String>;

/// The needs of every part.
struct Ground {
    /// The program `eyot`.
    eyot: PathBuf,
    /// The folder in which installed packages stay for the next time.
    folder: PathBuf,
}

/// The task: all parts, or those that are named.
pub fn run(names: &[String]) -> Result<(), String> {
    if let Some(unknown) = names.iter().find(|name| !PARTS.iter().any(|(part, _)| part == name)) {
        return Err(format!("there is no `{unknown}`: python, typescript, document or web"));
    }
    packages::install_for_sdks()?;
    let ground = Ground { eyot: programs::eyot()?, folder: target_directory()?.join("sdks") };
    fs::create_dir_all(&ground.folder)
        .map_err(|error| format!("make {}: {error}", ground.folder.display()))?;
    let chosen =
        PARTS.iter().filter(|(name, _)| names.is_empty() || names.iter().any(|chosen| chosen == name));
    // All that fails, not the first.
    all_of(chosen.map(|(_, part)| part(&ground)))
}

impl Ground {
    /// A program that finds the server, and nothing of another one in its environment.
    fn program(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env("EYOT_BIN", &self.eyot);
        for name in ["EYOT_SERVER", "EYOT_API_KEY", "EYOT_STATE", "EYOT_CONFIG"] {
            command.env_remove(name);
        }
        command
    }
}

/// Runs one step, and says what is run and how long it took.
pub fn step(what: &str, command: &mut Command) -> Result<(), String> {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    println!("\n     Running {what}: {}", words.join(" "));
    let begun = Instant::now();
    let done = run_program(command);
    println!("     {what}: {} after {:.0?}", if done.is_ok() { "done" } else { "FAILED" }, begun.elapsed());
    done.map_err(|error| format!("{what}: {error}"))
}

/// A Python of our own in this folder, with exactly the packages that `requirements` names.
fn virtual_environment(folder: &Path, requirements: &Path) -> Result<(), String> {
    if !folder.join("bin/pip").is_file() {
        let mut make = Command::new("python3");
        step("python3 -m venv", make.args(["-m", "venv", "--clear"]).arg(folder))?;
    }
    let mut pip = Command::new(folder.join("bin/pip"));
    pip.args(["install", "--quiet", "--disable-pip-version-check", "--requirement"]).arg(requirements);
    step("pip install", &mut pip)
}
