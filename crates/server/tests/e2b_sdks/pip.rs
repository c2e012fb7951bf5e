//! Packages from PyPI for tests, in an environment of their own in the target folder. Without Python or the network,
//! the tests show as ignored, with the reason.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use libtest_mimic::Arguments;

use crate::npm::{LockedFolder, Missing, broken};

const REQUIREMENTS: &str = "requirements.txt";
/// The words of pip when its registry cannot be reached.
const OFFLINE: [&str; 3] = ["NewConnectionError", "NameResolutionError", "ConnectTimeoutError"];

/// Installed packages, and the programs of the tests beside them.
#[derive(Clone)]
pub struct PipPackages {
    folder: PathBuf,
}

impl PipPackages {
    /// Installs the packages of `requirements.txt` in `sources`, unless they are installed, and copies `programs` from
    /// there. Nothing is installed if the tests are only listed.
    pub fn install(
        arguments: &Arguments,
        name: &str,
        sources: &str,
        programs: &[&str],
    ) -> Result<Self, Missing> {
        let locked = LockedFolder::of(arguments, name)?;
        let (folder, broken) = (locked.path.clone(), broken(name));
        for program in programs {
            fs::copy(Path::new(sources).join(program), folder.join(program)).map_err(&broken)?;
        }
        let wanted = fs::read(Path::new(sources).join(REQUIREMENTS)).map_err(&broken)?;
        let packages = Self { folder };
        let installed = packages.folder.join(REQUIREMENTS);
        if fs::read(&installed).is_ok_and(|there| there == wanted) {
            return Ok(packages);
        }
        packages.fetch(name, &Path::new(sources).join(REQUIREMENTS))?;
        fs::write(installed, wanted).map_err(broken)?;
        Ok(packages)
    }

    fn fetch(&self, name: &str, requirements: &Path) -> Result<(), Missing> {
        let mut make = Command::new("python3");
        let made = output(make.args(["-m", "venv", "--clear"]).arg(self.environment()))?;
        if !made.status.success() {
            return Err(Missing::NotHere("this Python makes no environments".to_owned()));
        }
        let mut pip = Command::new(self.environment().join("bin/pip"));
        pip.args(["install", "--quiet", "--disable-pip-version-check", "--requirement"]).arg(requirements);
        let done = output(&mut pip)?;
        if done.status.success() {
            return Ok(());
        }
        let errors = String::from_utf8_lossy(&done.stderr);
        let reason = errors.lines().rfind(|line| line.contains("ERROR")).unwrap_or("no reason given");
        let message = format!("pip can't install {name}: {reason}");
        let is_offline = OFFLINE.iter().any(|word| errors.contains(word));
        Err(if is_offline { Missing::NotHere(message) } else { Missing::Broken(message) })
    }

    fn environment(&self) -> PathBuf {
        self.folder.join("environment")
    }

    /// Returns a command that runs a program of this folder with Python, in a minimal environment.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.environment().join("bin/python"));
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.arg(self.folder.join(program));
        command
    }
}

fn output(command: &mut Command) -> Result<Output, Missing> {
    command.stdin(Stdio::null()).output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Missing::NotHere("there is no Python here".to_owned()),
        _ => Missing::Broken(format!("Python can't be run: {error}")),
    })
}
