//! A Docker Engine for the tests of the Docker provider, and the images that they use. One that answers is used as it is; else,
//! as root and where Debian's packages are, one is started, and ended with the tests. No registry is asked for anything.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::packages;
use crate::process::{has, is_root, target_directory};

/// How long an Engine may take until it answers.
const START_PATIENCE: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(200);

/// Debian, and what of it the tests run.
const DEBIAN: &str = "eyot-test-debian:1";
const DEBIAN_PACKAGES: &str = "bash,python3";
/// Busybox alone: static, without users, without GNU tools.
const BUSYBOX: &str = "eyot-test-busybox:1";
/// What an image need not have.
const LEFT_OUT: [&str; 3] = ["/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*"];

/// An Engine that answers. One that was started here ends with it.
pub struct Engine {
    started: Option<Child>,
}

impl Engine {
    /// Finds or starts one, and makes the images that are missing. `None`, after it was said why: there is none, and the
    /// tests that need it show as ignored.
    pub fn ready() -> Option<Self> {
        let engine =
            Self::find_or_start().map_err(|reason| eprintln!("xtask: no Docker Engine: {reason}")).ok()?;
        if let Err(reason) = make_images() {
            eprintln!("xtask: images for the Docker tests: {reason}; those tests show as ignored");
        }
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
    match Engine::ready() {
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

fn docker() -> Command {
    Command::new("docker")
}

fn answers() -> bool {
    let asked = docker().arg("version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    asked.is_ok_and(|status| status.success())
}

fn make_images() -> Result<(), String> {
    if !has_image(BUSYBOX) {
        import(BUSYBOX, busybox_tree()?, "PATH=/bin")?;
    }
    if !has_image(DEBIAN) {
        import(DEBIAN, debian_tree()?, "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")?;
    }
    Ok(())
}

fn has_image(name: &str) -> bool {
    let found =
        docker().args(["image", "inspect", name]).stdout(Stdio::null()).stderr(Stdio::null()).status();
    found.is_ok_and(|status| status.success())
}

/// Whatever writes a tree's archive to its standard output, and what must stay until it has.
struct Tree {
    writer: Command,
    _folder: Option<Removed>,
}

fn import(image: &str, mut tree: Tree, variable: &str) -> Result<(), String> {
    println!("     Making {image}");
    let failed = |error: std::io::Error| format!("make {image}: {error}");
    let mut writer = tree.writer.stdout(Stdio::piped()).spawn().map_err(failed)?;
    let archive = writer.stdout.take().ok_or("its archive can't be read")?;
    let imported =
        docker().args(["import", "-c", &format!("ENV {variable}"), "-", image]).stdin(archive).status();
    let written = writer.wait().map_err(failed)?;
    match imported.map_err(failed)?.success() && written.success() {
        true => Ok(()),
        false => Err(format!("make {image}: the archive could not be made or imported")),
    }
}

fn busybox_tree() -> Result<Tree, String> {
    let folder = Removed(std::env::temp_dir().join(format!("eyot-busybox-{}", std::process::id())));
    let failed = |error: std::io::Error| format!("lay out busybox: {error}");
    for name in ["bin", "tmp", "etc"] {
        fs::create_dir_all(folder.0.join(name)).map_err(failed)?;
    }
    fs::set_permissions(folder.0.join("tmp"), Permissions::from_mode(0o1777)).map_err(failed)?;
    let program = folder.0.join("bin/busybox");
    let found = ["/bin/busybox", "/usr/bin/busybox"].into_iter().find(|path| Path::new(path).is_file());
    fs::copy(found.ok_or("there is no busybox here")?, &program).map_err(failed)?;
    let applets = Command::new(&program).arg("--list").output().map_err(failed)?;
    for applet in String::from_utf8_lossy(&applets.stdout).lines().filter(|applet| *applet != "busybox") {
        std::os::unix::fs::symlink("busybox", folder.0.join("bin").join(applet)).map_err(failed)?;
    }
    let mut writer = Command::new("tar");
    writer.arg("--owner=0").arg("--group=0").arg("-C").arg(&folder.0).args(["-c", "."]);
    Ok(Tree { writer, _folder: Some(folder) })
}

fn debian_tree() -> Result<Tree, String> {
    if !has("mmdebstrap") {
        return Err("there is no mmdebstrap here".to_owned());
    }
    let mut writer = Command::new("mmdebstrap");
    writer.args(["--quiet", "--variant=minbase", "--dpkgopt=force-unsafe-io"]);
    writer.args(LEFT_OUT.map(|path| format!("--dpkgopt=path-exclude={path}")));
    writer.arg(format!("--include={DEBIAN_PACKAGES}")).args([codename().as_str(), "-"]);
    Ok(Tree { writer, _folder: None })
}

/// The host's own release, whose packages apt can fetch.
fn codename() -> String {
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let line = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="));
    line.map_or_else(|| "stable".to_owned(), |name| name.trim_matches('"').to_owned())
}

/// A folder that goes with this.
struct Removed(PathBuf);

impl Drop for Removed {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir_all(&self.0) {
            eprintln!("xtask: remove {}: {error}", self.0.display());
        }
    }
}
