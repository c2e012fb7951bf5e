//! Flue, installed by npm into the target folder together with Node: it needs a newer one than many machines
//! have.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The files for npm and the program.
const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/flue");

/// The errors of npm if its registry cannot be reached.
const OFFLINE: [&str; 6] =
    ["ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "ENETUNREACH"];

/// The reason why there is no Flue.
#[derive(Clone)]
pub enum Missing {
    /// This machine has no npm, or no network.
    NotHere(String),
    /// Anything else, which is a failure of the tests.
    Broken(String),
}

/// Flue, ready to run.
#[derive(Clone)]
pub struct FlueProgram {
    folder: PathBuf,
}

impl FlueProgram {
    /// Installs it unless that was done before.
    pub fn install() -> Result<Self, Missing> {
        let broken = |error: io::Error| Missing::Broken(format!("prepare a folder for Flue: {error}"));
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("flue");
        fs::create_dir_all(&folder).map_err(broken)?;
        let _lock =
            File::create(folder.join("lock")).and_then(|lock| lock.lock().map(|()| lock)).map_err(broken)?;
        let has_changed = copy(&folder).map_err(broken)?;
        let program = Self { folder };
        if has_changed || !program.node().exists() {
            program.fetch()?;
        }
        Ok(program)
    }

    fn fetch(&self) -> Result<(), Missing> {
        let mut npm = Command::new("npm");
        npm.args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]).current_dir(&self.folder);
        let output = npm.stdin(Stdio::null()).output().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Missing::NotHere("there is no npm here".to_owned()),
            _ => Missing::Broken(format!("npm can't be run: {error}")),
        })?;
        if output.status.success() && self.node().exists() {
            return Ok(());
        }
        // Next time it is tried again.
        drop(fs::remove_file(self.folder.join("package-lock.json")));
        let errors = String::from_utf8_lossy(&output.stderr);
        let reason = errors.lines().rfind(|line| line.contains("npm error")).unwrap_or("no reason given");
        let message = format!("npm can't install Flue: {reason}");
        let is_offline = OFFLINE.iter().any(|code| errors.contains(code));
        Err(if is_offline { Missing::NotHere(message) } else { Missing::Broken(message) })
    }

    fn node(&self) -> PathBuf {
        self.folder.join("node_modules/node/bin/node")
    }

    /// The program that plays the scenario, with only the environment that programs need.
    pub fn command(&self) -> Command {
        let mut command = Command::new(self.node());
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.arg(self.folder.join("flue.mjs"));
        command
    }
}

/// Copies the files. Returns whether the list of packages has changed.
fn copy(folder: &Path) -> io::Result<bool> {
    let mut has_changed = false;
    for name in ["package.json", "package-lock.json", "flue.mjs"] {
        let source = fs::read(Path::new(SOURCES).join(name))?;
        let target = folder.join(name);
        if fs::read(&target).is_ok_and(|there| there == source) {
            continue;
        }
        has_changed |= name != "flue.mjs";
        fs::write(target, source)?;
    }
    Ok(has_changed)
}
