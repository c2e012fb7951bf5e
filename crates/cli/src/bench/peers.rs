//! Other isolators that are installed: each runs `/bin/true` once, as a program, the way it is
//! used.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::Serialize;
use serde_json::{Value, json};

use super::Item;

/// The row that the design's ratios are relative to.
pub const BWRAP: &str = "bwrap --unshare-all /bin/true as a process";
/// The row of our own program.
pub const EYOT_RUN: &str = "eyot run -- /bin/true as a process";

/// Another isolator.
pub struct OtherIsolator {
    /// The peer's row.
    pub item: Item,
    program: &'static str,
    arguments: Vec<String>,
}

impl OtherIsolator {
    /// Returns the command to run once.
    pub fn command(&self) -> Command {
        let mut command = Command::new(self.program);
        command.args(&self.arguments);
        command
    }
}

/// A peer that is not measured, with the reason.
#[derive(Debug, Clone, Serialize)]
pub struct SkippedPeer {
    pub peer: &'static str,
    pub reason: String,
}

/// The peers that work here.
pub struct Peers {
    found: Vec<OtherIsolator>,
    /// The peers that do not work here.
    pub left_out: Vec<SkippedPeer>,
}

impl Peers {
    /// Tries each of them once. `folder` is for their files.
    pub fn find(folder: &Path) -> Self {
        let mut peers = Self { found: Vec::new(), left_out: Vec::new() };
        let bundle = make_bundle(folder);
        for peer in [bwrap(), crun(&bundle), runc(&bundle), docker()] {
            match try_once(&peer) {
                Ok(()) => peers.found.push(peer),
                Err(reason) => peers.left_out.push(SkippedPeer { peer: peer.program, reason }),
            }
        }
        peers
    }

    /// Iterates over the peers that work here.
    pub fn iter(&self) -> impl Iterator<Item = &OtherIsolator> {
        self.found.iter()
    }
}

fn bwrap() -> OtherIsolator {
    let arguments = ["--unshare-all", "--ro-bind", "/", "/", "--proc", "/proc", "--dev", "/dev", "/bin/true"];
    OtherIsolator {
        item: Item::plain(BWRAP),
        program: "bwrap",
        arguments: arguments.map(str::to_owned).to_vec(),
    }
}

/// Returns crun without control groups: it refuses hosts with both versions of them.
fn crun(bundle: &Result<PathBuf, String>) -> OtherIsolator {
    let item = Item::beside("crun run of /bin/true as a process, without cgroups", EYOT_RUN);
    OtherIsolator { item, program: "crun", arguments: oci_arguments(bundle, &["--cgroup-manager=disabled"]) }
}

fn runc(bundle: &Result<PathBuf, String>) -> OtherIsolator {
    let item = Item::beside("runc run of /bin/true as a process", EYOT_RUN);
    OtherIsolator { item, program: "runc", arguments: oci_arguments(bundle, &[]) }
}

/// Returns Docker with an image that is there already; nothing is fetched.
fn docker() -> OtherIsolator {
    let arguments = ["run", "--rm", "--network", "none", "--pull", "never", "debian:bookworm-slim", "true"];
    let item = Item::beside("docker run --rm --network none … true as a process", EYOT_RUN);
    OtherIsolator { item, program: "docker", arguments: arguments.map(str::to_owned).to_vec() }
}

fn oci_arguments(bundle: &Result<PathBuf, String>, before: &[&str]) -> Vec<String> {
    let mut arguments: Vec<String> = before.iter().map(|argument| (*argument).to_owned()).collect();
    // Where there is no bundle the program says so itself when it is tried.
    let bundle = bundle.as_ref().map(|bundle| bundle.display().to_string()).unwrap_or_default();
    arguments.extend(["--root".to_owned(), format!("{bundle}/runtime"), "run".to_owned()]);
    arguments.extend(["--bundle".to_owned(), bundle, format!("eyot-bench-{}", std::process::id())]);
    arguments
}

fn try_once(peer: &OtherIsolator) -> Result<(), String> {
    let output = peer.command().stdin(Stdio::null()).output().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => "is not installed".to_owned(),
        _ => error.to_string(),
    })?;
    if output.status.success() {
        Ok(())
    } else {
        let text = String::from_utf8_lossy(&output.stderr);
        let said = text.lines().map(str::trim).find(|line| !line.is_empty());
        Err(said.unwrap_or("fails without a word").to_owned())
    }
}

/// Makes an OCI bundle of the host's own programs, so that all run the same `/bin/true`.
fn make_bundle(folder: &Path) -> Result<PathBuf, String> {
    let bundle = folder.join("bundle");
    let written = fs::create_dir_all(bundle.join("rootfs/usr")).and_then(|()| {
        for name in ["bin", "lib", "lib64", "sbin"] {
            if let Ok(target) = fs::read_link(Path::new("/").join(name)) {
                std::os::unix::fs::symlink(target, bundle.join("rootfs").join(name))?;
            }
        }
        fs::write(bundle.join("config.json"), bundle_config().to_string())
    });
    written.map(|()| bundle).map_err(|error| error.to_string())
}

fn bundle_config() -> Value {
    let mount = |destination: &str, kind: &str, source: &str, options: &[&str]| json!({"destination": destination, "type": kind, "source": source, "options": options});
    let quiet = ["nosuid", "noexec", "nodev"];
    let namespaces = ["pid", "network", "ipc", "uts", "mount"].map(|kind| json!({"type": kind}));
    json!({
        "ociVersion": "1.0.2",
        "process": {
            "terminal": false, "user": {"uid": 0, "gid": 0}, "args": ["/bin/true"],
            "env": ["PATH=/usr/bin:/bin"], "cwd": "/", "noNewPrivileges": true,
        },
        "root": {"path": "rootfs", "readonly": false},
        "hostname": "bench",
        "mounts": [
            mount("/usr", "bind", "/usr", &["rbind", "ro"]),
            mount("/proc", "proc", "proc", &[]),
            mount("/dev", "tmpfs", "tmpfs", &["nosuid", "strictatime", "mode=755", "size=65536k"]),
            mount("/dev/pts", "devpts", "devpts", &["nosuid", "noexec", "newinstance", "ptmxmode=0666", "mode=0620"]),
            mount("/dev/shm", "tmpfs", "shm", &quiet),
        ],
        "linux": {
            "namespaces": namespaces,
            "maskedPaths": ["/proc/kcore", "/proc/keys", "/proc/timer_list", "/sys/firmware"],
            "readonlyPaths": ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"],
        },
    })
}
