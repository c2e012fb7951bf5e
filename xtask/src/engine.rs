//! A Docker Engine for the tests of the Docker provider. One that answers is used as it is; else,
//! as root and where Debian's packages are, one is started, and ended with the tests.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::log::say;
use crate::process::{has, is_root, target_directory};
use crate::scratch::Scratch;
use crate::{images, packages};

/// The time that an Engine may take until it answers.
const START_PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(200);

/// An Engine that answers. One that was started here ends with it.
pub struct Engine {
    started: Option<Child>,
}

impl Engine {
    /// Finds or starts one, and makes the images that are missing. `None`, after it was said why:
    /// there is none, and the tests that need it show as ignored.
    pub fn ready(scratch: Option<&Scratch>) -> Option<Self> {
        let engine =
            Self::find_or_start().map_err(|reason| say(format_args!("no Docker Engine: {reason}"))).ok()?;
        images::make_missing(scratch);
        Some(engine)
    }

    fn find_or_start() -> Result<Self, String> {
        if answers() {
            return Ok(Self { started: None });
        }
        packages::install_for_engine()?;
        if !is_root() || !has("dockerd") {
            return Err("none answers, and only root can start one, with Debian's docker.io".to_owned());
        }
        let folder = target_directory()?.join("engine");
        fs::create_dir_all(&folder).map_err(|error| format!("make {}: {error}", folder.display()))?;
        unmount_left_over(&folder.join("data"))?;
        let mut engine = Self { started: Some(start(&folder)?) };
        engine.await_answer(&folder.join("dockerd.log"))?;
        Ok(engine)
    }

    fn await_answer(&mut self, log: &Path) -> Result<(), String> {
        let given_up = Instant::now() + START_PATIENCE;
        while !answers() {
            let ended = self.started.as_mut().and_then(|child| child.try_wait().ok().flatten());
            if ended.is_some() || Instant::now() > given_up {
                let said = fs::read_to_string(log).unwrap_or_default();
                let last = said.lines().last().unwrap_or("nothing").to_owned();
                return Err(format!("dockerd does not come up; it said: {last}"));
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Leaves it running, and says how to end it.
    pub fn leave(mut self) {
        match self.started.take() {
            Some(child) => println!("dockerd runs as process {0}; to end it: kill {0}", child.id()),
            None => println!("an Engine answered already; it was left as it is"),
        }
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let Some(child) = &mut self.started else { return };
        // By its id, and asked: it ends its containers and its containerd.
        let asked = Command::new("kill").arg(child.id().to_string()).status();
        if let Err(error) = asked.and_then(|_| child.wait()) {
            eprintln!("xtask: end dockerd: {error}");
        }
    }
}

/// The task.
pub fn run() -> Result<(), String> {
    match Engine::ready(Scratch::new().as_ref()) {
        Some(engine) => {
            engine.leave();
            Ok(())
        }
        None => Err("there is no Engine for the tests".to_owned()),
    }
}

/// The host's firewall and forwarding are left alone: no test needs a way out of a container.
fn start(folder: &Path) -> Result<Child, String> {
    let log = folder.join("dockerd.log");
    let failed = |error: std::io::Error| format!("start dockerd: {error}");
    let output = File::create(&log).map_err(failed)?;
    let mut command = Command::new("dockerd");
    command.arg("--data-root").arg(folder.join("data")).args(["--iptables=false", "--ip-forward=false"]);
    command.stdin(Stdio::null()).stdout(output.try_clone().map_err(failed)?).stderr(output);
    command.spawn().map_err(failed)
}

/// Takes away the mount that an Engine which was killed has left on its folder. The next one would take it for the
/// host's and leave it, too, and then nothing could remove the folder.
fn unmount_left_over(data: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("unmount {}: {error}", data.display());
    let mounts = fs::read_to_string("/proc/self/mountinfo").map_err(failed)?;
    for _ in 0..mounts_on(data, &mounts) {
        // What a container of that Engine still has open goes with the container.
        let unmounted = Command::new("umount").arg("--lazy").arg(data).status().map_err(failed)?;
        if !unmounted.success() {
            return Err(format!("unmount {}: {unmounted}", data.display()));
        }
    }
    Ok(())
}

/// Counts the mounts on this folder in the kernel's list of mounts. The kernel writes a blank as `\040`.
fn mounts_on(folder: &Path, mounts: &str) -> usize {
    let folder = folder.to_string_lossy().replace(' ', "\\040");
    mounts.lines().filter(|line| line.split(' ').nth(4) == Some(folder.as_str())).count()
}

fn answers() -> bool {
    let asked = Command::new("docker").arg("version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    asked.is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_that_was_left_over_is_found() {
        let mounts = "22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n\
            66 22 254:0 /t/engine/data /t/engine/data rw shared:1 - ext4 /dev/vda rw\n\
            67 66 0:5 / /t/engine/data/overlay2/x/merged rw - overlay overlay rw\n\
            68 22 0:6 / /my\\040t/data rw - tmpfs none rw\n";
        let counts = ["/t/engine/data", "/t/engine", "/my t/data"].map(|at| mounts_on(Path::new(at), mounts));
        assert_eq!(counts, [1, 0, 1]);
    }
}
