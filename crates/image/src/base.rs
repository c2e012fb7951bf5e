//! A Debian made from packages, for hosts without a registry. `mmdebstrap` makes it, and it is
//! imported like any other root file system.

use std::fs;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use eyot::{Error, ErrorKind, ImageInfo, Result};
use rustix::process::{Pid, Signal, kill_process};

use crate::ImageName;
use crate::import::ImportOptions;
use crate::progress::Progress;
use crate::store::ImageStore;

/// The contents of a Debian image.
#[derive(Debug, Clone, Default)]
pub struct BaseOptions {
    /// The release, such as `bookworm`. The default is the host's own, if that is a Debian or an
    /// Ubuntu.
    pub suite: Option<String>,
    /// Packages beyond the smallest system.
    pub packages: Vec<String>,
    /// The archive of packages. The default is Debian's own.
    pub mirror: Option<String>,
}

/// Stops a build from another thread.
#[derive(Debug, Clone, Default)]
pub struct BuildStop(Arc<Mutex<BuildState>>);

#[derive(Debug, Default)]
struct BuildState {
    is_stopped: bool,
    /// The program that builds.
    program: Option<Pid>,
}

impl BuildStop {
    /// Asks the program that builds to end, which removes what it has made. A build that begins later ends at once.
    pub fn stop(&self) {
        let mut state = self.lock();
        state.is_stopped = true;
        if let Some(program) = state.program
            && let Err(error) = kill_process(program, Signal::TERM)
        {
            tracing::debug!(%error, "a build could not be stopped");
        }
    }

    /// Notes the program, which has begun or is about to be waited for.
    fn note(&self, program: Option<Pid>) {
        self.lock().program = program;
        if self.is_stopped() {
            self.stop();
        }
    }

    fn is_stopped(&self) -> bool {
        self.lock().is_stopped
    }

    fn lock(&self) -> MutexGuard<'_, BuildState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The most output of `mmdebstrap` that is kept.
const MAX_SAID_BYTES: usize = 1 << 20;

impl ImageStore {
    /// Makes a Debian and imports it by this name. Takes minutes.
    ///
    /// # Errors
    /// `Invalid` for names that can't be. `Unsupported` if there is no `mmdebstrap`. `Unavailable`
    /// if it failed, with the last line that it printed. Errors of [`Self::import`].
    pub fn build_base(
        &self,
        name: &ImageName,
        options: &BaseOptions,
        progress: &dyn Progress,
        stop: &BuildStop,
    ) -> Result<ImageInfo> {
        let what = format!("build image `{}`", name.short());
        let suite = match &options.suite {
            Some(suite) => suite.clone(),
            None => host_suite().ok_or_else(|| {
                let message = format!("{what}: the host's release is not known");
                Error::new(ErrorKind::Invalid, message).with_hint("name one: --suite bookworm")
            })?,
        };
        check("suite", &suite)?;
        options.packages.iter().try_for_each(|package| check("package", package))?;
        let _importing = self.begin_import().map_err(crate::failure::failed(what.as_str()))?;
        // The store's file system has room for it: the host's /tmp may be small.
        let folder = tempfile::tempdir_in(self.incoming()).map_err(crate::failure::failed(what.as_str()))?;
        let tarball = folder.path().join("rootfs.tar");
        let failed = |said: &str| refusal(&what, said).with_hint(advice(name, &suite, options, said));
        run(&what, &suite, options, (&tarball, stop), failed)?;
        let options = ImportOptions { name: Some(name.clone()), ..ImportOptions::default() };
        let mut images = self.import(&tarball, &options, progress)?;
        images.pop().ok_or_else(|| Error::new(ErrorKind::Internal, format!("{what}: nothing was imported")))
    }
}

/// Returns the codename of the host.
fn host_suite() -> Option<String> {
    let release = fs::read_to_string("/etc/os-release").ok()?;
    let line = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="))?;
    Some(line.trim_matches('"').to_owned())
}

/// Refuses text that another program would take for an option or for two words.
fn check(field: &str, text: &str) -> Result<()> {
    let good = |byte: u8| byte.is_ascii_alphanumeric() || b"+-._:=~/".contains(&byte);
    if !text.is_empty() && !text.starts_with('-') && text.bytes().all(good) {
        Ok(())
    } else {
        Err(Error::invalid(field, format!("has no name that can be one: `{text}`")))
    }
}

/// Makes the tarball. `failed` makes the error of a Debian that can't be made, from what the program
/// said.
fn run(
    what: &str,
    suite: &str,
    options: &BaseOptions,
    (tarball, stop): (&Path, &BuildStop),
    failed: impl Fn(&str) -> Error,
) -> Result<()> {
    let mut program = Command::new("mmdebstrap");
    program.args(["--variant=minbase", "--dpkgopt=force-unsafe-io"]);
    if !options.packages.is_empty() {
        program.arg(format!("--include={}", options.packages.join(",")));
    }
    program.args(["--", suite]).arg(tarball).args(&options.mirror);
    let child = program.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut child = child.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            let error = Error::new(ErrorKind::Unsupported, format!("{what}: there is no `mmdebstrap` here"));
            error.with_hint("sudo apt-get install mmdebstrap; or import an image: eyot image import FILE")
        }
        _ => crate::failure::failed(what)(error),
    })?;
    stop.note(Some(Pid::from_child(&child)));
    let said = child.stderr.take().map_or(Ok(Vec::new()), last_bytes);
    // It has ended. Its number is somebody else's once it is reaped.
    stop.note(None);
    let said = said.map_err(crate::failure::failed(what))?;
    let ended = child.wait().map_err(crate::failure::failed(what))?;
    // Whoever stops it wants no image, even one that was just done.
    if ended.success() && !stop.is_stopped() { Ok(()) } else { Err(failed(&String::from_utf8_lossy(&said))) }
}

/// Reads everything, and returns the end of it.
fn last_bytes(mut input: impl Read) -> io::Result<Vec<u8>> {
    let (mut last, mut piece) = (Vec::new(), [0; 8192]);
    loop {
        match input.read(&mut piece)? {
            0 => return Ok(last),
            read => last.extend_from_slice(&piece[..read]),
        }
        if last.len() > 2 * MAX_SAID_BYTES {
            last.drain(..last.len() - MAX_SAID_BYTES);
        }
    }
}

fn refusal(what: &str, said: &str) -> Error {
    let lines =
        || said.lines().map(str::trim).map(|line| line.strip_prefix("E: setup failed: ").unwrap_or(line));
    // Its own last words only say that a program failed, and which.
    let is_general = |line: &str| {
        ["E: mmdebstrap failed", "E: apt-get ", "E: run_chroot"].iter().any(|words| line.starts_with(words))
    };
    let last = lines().rfind(|line| line.starts_with("E:") && !is_general(line));
    let last = last.or_else(|| lines().rfind(|line| line.starts_with("E:")));
    let last = last.or_else(|| lines().rfind(|line| !line.is_empty()));
    let message = format!("{what}: mmdebstrap failed: {}", last.unwrap_or("it does not say why"));
    Error::new(ErrorKind::Unavailable, message).with_source(io::Error::other(said.to_owned()))
}

/// Says how to build it nevertheless. An ordinary user may lack the ids that `mmdebstrap` needs.
fn advice(name: &ImageName, suite: &str, options: &BaseOptions, said: &str) -> String {
    let check = "check the suite, the packages' names and the network; --mirror names another archive";
    let is_about_ids = !said.contains("Unable to locate package");
    if rustix::process::geteuid().is_root() || !is_about_ids {
        return check.to_owned();
    }
    let included = match options.packages.as_slice() {
        [] => String::new(),
        packages => format!(" --include={}", packages.join(",")),
    };
    format!(
        "as an ordinary user: sudo mmdebstrap --variant=minbase{included} {suite} base.tar && eyot image import \
         base.tar --name {}; it works without root where you have ids in /etc/subuid and `newuidmap`. Else {check}",
        name.short()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_another_program_would_take_for_options_are_refused() {
        assert!(
            ["bookworm", "python3", "libc6:amd64", "g++", "nodejs/stable"]
                .iter()
                .all(|name| check("x", name).is_ok())
        );
        for name in ["", "-x", "--customize-hook=id", "a b", "a,b", "a;b", "a\nb"] {
            assert!(check("package", name).is_err(), "{name:?}");
        }
    }

    #[test]
    fn the_last_error_is_told() {
        let error = refusal("build image `x`", "I: a\nE: no such suite\nI: cleaning up\n");
        assert_eq!(error.to_string(), "build image `x`: mmdebstrap failed: E: no such suite");
        let said = "E: Unable to locate package p\nE: setup failed: E: apt-get --yes\nI: a\nE: mmdebstrap failed to run\n";
        assert!(refusal("build", said).to_string().ends_with("E: Unable to locate package p"));
        let said = "E: setup failed: E: no space\nI: removing tempdir\nE: mmdebstrap failed to run\n";
        assert!(refusal("build", said).to_string().ends_with("failed: E: no space"));
    }
}
