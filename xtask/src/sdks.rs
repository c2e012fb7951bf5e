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
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::engine::Engine;
use crate::log::say;
use crate::process::{all_of, limited, run as run_program, target_directory};
use crate::scratch::Scratch;
use crate::{packages, programs};

/// The parts, in the order in which they are tried: the longest first.
pub const PARTS: [Part; 5] = [
    Part { name: "anvia", installer: "npm", prepare: typescript::prepare, run: typescript::run_anvia },
    Part { name: "typescript", installer: "npm", prepare: typescript::prepare, run: typescript::run },
    Part { name: "python", installer: "pip", prepare: python::prepare, run: python::run },
    Part { name: "document", installer: "pip", prepare: document::prepare, run: document::run },
    Part { name: "web", installer: "npm", prepare: web::prepare, run: web::run },
];

/// The time that one step may take. The longest takes five minutes beside others.
const STEP: Duration = Duration::from_secs(15 * 60);

/// A part that can be named on the command line.
pub struct Part {
    /// The part's name.
    pub name: &'static str,
    /// The program that installs what it needs.
    pub installer: &'static str,
    /// Installs what it needs, into this folder or where its sources are. It needs no program of
    /// this build.
    pub prepare: fn(&Path) -> Result<(), String>,
    /// Tries it.
    pub run: fn(&Ground) -> Result<(), String>,
}

/// The needs of every part.
pub struct Ground {
    /// The program `eyot`.
    eyot: PathBuf,
    /// The folder in which installed packages stay for the next time.
    folder: PathBuf,
    /// The folder for temporary files, if they have one of their own.
    scratch: Option<Arc<Scratch>>,
}

/// The task: all parts, or those that are named.
pub fn run(names: &[String]) -> Result<(), String> {
    if let Some(unknown) = names.iter().find(|name| !PARTS.iter().any(|part| part.name == **name)) {
        let known = PARTS.map(|part| part.name).join(", ");
        return Err(format!("`sdks` has no part `{unknown}`; its parts are: {known}"));
    }
    packages::install_for_sdks()?;
    let folder = folder()?;
    let scratch = Scratch::new().map(Arc::new);
    let ground = Ground::new(programs::eyot(&programs::built()?)?, scratch.clone())?;
    let is_chosen = |part: &&Part| names.is_empty() || names.iter().any(|name| name == part.name);
    let chosen: Vec<_> = PARTS.iter().filter(is_chosen).collect();
    // For the drop-in for Anvia; without one its tests on Docker show as skipped.
    let engine = chosen.iter().any(|part| part.name == "anvia");
    let engine = engine.then(|| Engine::ready(scratch.as_deref())).flatten();
    // All that fails, not the first.
    let done = all_of(chosen.iter().map(|part| (part.prepare)(&folder).and_then(|()| (part.run)(&ground))));
    drop(engine);
    done
}

/// Asks a server everything in the API's document, many times.
pub fn ask_at_length(_: &[String]) -> Result<(), String> {
    of_soak(document::prepare, document::run_at_length)
}

/// Tests the TypeScript client on the newest Node.
pub fn run_on_newest_node(_: &[String]) -> Result<(), String> {
    of_soak(typescript::prepare, typescript::run_on_newer)
}

fn of_soak(
    prepare: fn(&Path) -> Result<(), String>,
    run: fn(&Ground) -> Result<(), String>,
) -> Result<(), String> {
    packages::install_for_sdks()?;
    prepare(&folder()?)?;
    let scratch = Scratch::new().map(Arc::new);
    run(&Ground::new(programs::eyot(&programs::built()?)?, scratch)?)
}

/// Returns the folder that what is installed stays in, and makes it if it is missing.
pub fn folder() -> Result<PathBuf, String> {
    let folder = target_directory()?.join("sdks");
    fs::create_dir_all(&folder).map_err(|error| format!("make {}: {error}", folder.display()))?;
    Ok(folder)
}

impl Ground {
    /// The ground of this program.
    pub fn new(eyot: PathBuf, scratch: Option<Arc<Scratch>>) -> Result<Self, String> {
        Ok(Self { eyot, folder: folder()?, scratch })
    }

    /// Returns the folder for temporary files.
    fn temporary(&self) -> PathBuf {
        self.scratch.as_ref().map_or_else(std::env::temp_dir, |scratch| scratch.path().to_owned())
    }

    /// A program that finds the server, and nothing of another one in its environment.
    fn program(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.env("EYOT_BIN", &self.eyot);
        self.scratch.iter().for_each(|scratch| scratch.set(&mut command));
        for name in ["EYOT_SERVER", "EYOT_API_KEY", "EYOT_STATE", "EYOT_CONFIG"] {
            command.env_remove(name);
        }
        command
    }
}

/// Runs one step, and says what is run and how long it took. A step that hangs fails.
pub fn step(what: &str, command: &mut Command) -> Result<(), String> {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    say(format_args!("\n     Running {what}: {}", words.join(" ")));
    let begun = Instant::now();
    let done = run_program(&mut limited(command, STEP));
    let word = if done.is_ok() { "done" } else { "FAILED" };
    say(format_args!("     {what}: {word} after {:.0?}", begun.elapsed()));
    done.map_err(|error| format!("{what}: {error}"))
}

/// A Python of our own in this folder, with exactly the packages that `requirements` names.
fn virtual_environment(folder: &Path, requirements: &Path) -> Result<(), String> {
    // Its programs have its path in them: one that was moved is made anew.
    let settings = fs::read_to_string(folder.join("pyvenv.cfg")).unwrap_or_default();
    if !settings.contains(&folder.display().to_string()) {
        let mut make = Command::new("python3");
        step("python3 -m venv", make.args(["-m", "venv", "--clear"]).arg(folder))?;
    }
    let mut pip = Command::new(folder.join("bin/pip"));
    pip.args(["install", "--quiet", "--disable-pip-version-check", "--requirement"]).arg(requirements);
    step("pip install", &mut pip)
}
