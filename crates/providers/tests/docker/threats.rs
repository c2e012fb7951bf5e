//! The threats (`eyot-probes`), tried in containers as a user and as root, who has no capabilities.
//! The attacker is this very program, put into an image of its own for the time of the tests. A
//! threat that an Engine does not hold off is ignored with that reason. The long probes are left to
//! the native provider, because they test nothing of a container.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, OnceLock};

use eyot::{SandboxName, SandboxSpec};
use eyot_probes::{Case, Verdict, World};
use libtest_mimic::{Completion, Failed, Trial};

use crate::check::{Check, docker};
use crate::engine::{DEBIAN, TestEngine, block_on, spec};

/// Users that differ from a host's, by which the image is recognized.
const PASSWD: &str = "root:x:0:0:root:/root:/bin/bash\nuser:x:1000:1000::/home/user:/bin/bash\n\
                      nobody:x:65534:65534::/nonexistent:/usr/sbin/nologin\n";

/// The threats over an Engine, and the things that they leave.
pub struct Threats {
    world: OnceLock<Result<Arc<World>, String>>,
}

impl Threats {
    pub fn new() -> Arc<Self> {
        Arc::new(Self { world: OnceLock::new() })
    }

    /// Makes one trial for each threat.
    pub fn trials(self: &Arc<Self>, engine: &TestEngine) -> Vec<Trial> {
        eyot_probes::cases().into_iter().map(|case| self.trial(engine, case)).collect()
    }

    fn trial(self: &Arc<Self>, engine: &TestEngine, case: Case) -> Trial {
        let (threats, of) = (Arc::clone(self), engine.clone());
        engine.trial(format!("threats::{}", case.name), DEBIAN, move || {
            let world = threats.world.get_or_init(|| prepare(&of).map_err(|failed| said(&failed)));
            match block_on(case.attempt(Arc::clone(world.as_ref()?))) {
                Ok(Verdict::Holds) => Ok(Completion::Completed),
                Ok(Verdict::NotHere(reason) | Verdict::NotEnforced(reason)) => {
                    Ok(Completion::ignored_with(reason))
                }
                Ok(Verdict::NotTried(broken)) | Err(broken) => Err(broken.into()),
            }
        })
    }

    /// Removes everything that was made, if anything was.
    pub fn clear(&self) -> Check {
        let Some(Ok(world)) = self.world.get() else { return Ok(()) };
        let cleared = block_on(world.clear());
        docker(&["rmi", "-f", &image()])?;
        Ok(cleared?)
    }
}

fn said(failed: &Failed) -> String {
    failed.message().unwrap_or("no word").to_owned()
}

fn image() -> String {
    format!("eyot-test-attack:{}", std::process::id())
}

fn prepare(engine: &TestEngine) -> Check<Arc<World>> {
    let folder = tempfile::tempdir()?;
    let attack = folder.path().join("attack");
    std::fs::create_dir(&attack)?;
    std::fs::copy(std::env::current_exe()?, attack.join("threats"))?;
    std::fs::write(folder.path().join("passwd"), PASSWD)?;
    let container = format!("eyot-test-attack-{}", std::process::id());
    docker(&["create", "--network", "none", "--name", &container, DEBIAN, "true"])?;
    let made = commit(&container, folder.path());
    docker(&["rm", "-f", &container])?;
    made?;
    let spec = SandboxSpec { user: Some("1000:1000".to_owned()), ..spec(&image()) };
    Ok(Arc::new(World::of_containers(engine.provider.clone(), spec, kill, &std::env::temp_dir())?))
}

fn commit(container: &str, folder: &Path) -> Check {
    for (name, target) in [("attack", "/attack"), ("passwd", "/etc/passwd")] {
        docker(&["cp", &folder.join(name).display().to_string(), &format!("{container}:{target}")])?;
    }
    docker(&["commit", container, &image()]).map(drop)
}

fn kill(sandbox: &SandboxName) -> std::io::Result<()> {
    let container = format!("eyot-{sandbox}");
    let killed = Command::new("docker").args(["kill", &container]).stdout(Stdio::null()).status()?;
    if killed.success() { Ok(()) } else { Err(std::io::Error::other(format!("docker kill: {killed}"))) }
}
