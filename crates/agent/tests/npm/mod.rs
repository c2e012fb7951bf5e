//! Npm packages for tests. They are installed into the target folder together with Node, because they need a newer version than
//! many machines have. Without npm or the network, the tests show as ignored, with the reason.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use libtest_mimic::{Arguments, Failed, Trial};

/// The errors of npm when its registry cannot be reached.
const OFFLINE: [&str; 6] =
    ["ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ECONNRESET", "ETIMEDOUT", "ENETUNREACH"];

/// The reason for missing packages.
#[derive(Clone)]
pub enum Missing {
    /// Npm or the network is missing on this machine.
    NotHere(String),
    /// Another failure, which fails the tests.
    Broken(String),
}

/// A folder of the target folder for packages. Other processes wait until this is dropped.
pub struct LockedFolder {
    pub path: PathBuf,
    _lock: File,
}

impl LockedFolder {
    /// Makes the folder. Nothing is made if the tests are only listed.
    pub fn of(arguments: &Arguments, name: &str) -> Result<Self, Missing> {
        if arguments.list {
            return Err(Missing::NotHere("not looked at".to_owned()));
        }
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let locked = fs::create_dir_all(&path)
            .and_then(|()| File::create(path.join("lock")))
            .and_then(|lock| lock.lock().map(|()| lock));
        locked.map(|_lock| Self { path, _lock }).map_err(broken(name))
    }
}

/// Says that a folder for packages could not be prepared.
pub fn broken(name: &str) -> impl Fn(io::Error) -> Missing + use<'_> {
    move |error| Missing::Broken(format!("prepare a folder for {name}: {error}"))
}

/// Installed packages, and the programs of the tests beside them.
#[derive(Clone)]
pub struct NpmPackages {
    folder: PathBuf,
}

impl NpmPackages {
    /// Installs the packages of `package-lock.json` in `sources`, unless they are installed, and copies `programs` from there.
    /// Nothing is installed if the tests are only listed.
    pub fn install(
        arguments: &Arguments,
        name: &str,
        sources: &str,
        programs: &[&str],
    ) -> Result<Self, Missing> {
        let locked = LockedFolder::of(arguments, name)?;
        let (folder, broken) = (locked.path.clone(), broken(name));
        let sources = Path::new(sources);
        copy(sources, &folder, programs).map_err(&broken)?;
        let has_changed = copy(sources, &folder, &["package.json", "package-lock.json"]).map_err(broken)?;
        let packages = Self { folder };
        if has_changed || !packages.node_path().exists() {
            packages.fetch(name)?;
        }
        Ok(packages)
    }

    fn fetch(&self, name: &str) -> Result<(), Missing> {
        let mut npm = Command::new("npm");
        npm.args(["ci", "--no-audit", "--no-fund", "--loglevel=error"]).current_dir(&self.folder);
        let output = npm.stdin(Stdio::null()).output().map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Missing::NotHere("there is no npm here".to_owned()),
            _ => Missing::Broken(format!("npm can't be run: {error}")),
        })?;
        if output.status.success() && self.node_path().exists() {
            return Ok(());
        }
        // Without the lock file, the next run tries again.
        drop(fs::remove_file(self.folder.join("package-lock.json")));
        let errors = String::from_utf8_lossy(&output.stderr);
        let reason = errors.lines().rfind(|line| line.contains("npm error")).unwrap_or("no reason given");
        let message = format!("npm can't install {name}: {reason}");
        let is_offline = OFFLINE.iter().any(|code| errors.contains(code));
        Err(if is_offline { Missing::NotHere(message) } else { Missing::Broken(message) })
    }

    fn node_path(&self) -> PathBuf {
        self.folder.join("node_modules/node/bin/node")
    }

    /// Returns a command that runs a program of this folder with Node, in a minimal environment.
    pub fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.node_path());
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.arg(self.folder.join(program));
        command
    }
}

/// Copies the files that differ. Returns whether any did.
fn copy(sources: &Path, folder: &Path, names: &[&str]) -> io::Result<bool> {
    let mut has_changed = false;
    for name in names {
        let source = fs::read(sources.join(name))?;
        let target = folder.join(name);
        if fs::read(&target).is_ok_and(|there| there == source) {
            continue;
        }
        has_changed = true;
        fs::write(target, source)?;
    }
    Ok(has_changed)
}

/// A test that needs the packages.
pub fn trial<P: Clone + Send + 'static>(
    name: &str,
    packages: &Result<P, Missing>,
    case: impl FnOnce(&P) -> Result<(), Failed> + Send + 'static,
) -> Trial {
    match packages.clone() {
        Ok(packages) => Trial::test(name, move || case(&packages)),
        Err(Missing::NotHere(reason)) => {
            Trial::test(name, || Ok(())).with_kind(reason).with_ignored_flag(true)
        }
        Err(Missing::Broken(reason)) => Trial::test(name, move || Err(reason.into())),
    }
}
