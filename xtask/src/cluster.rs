//! A Kubernetes cluster of one node for the tests of its provider: Debian's packages and Debian's source, as root, in
//! namespaces and control groups of its own. Beside it is a PostgreSQL for servers that run as Pods. It ends with this
//! process. Of a task that was killed, empty control groups and files in the target folder stay until the next task.

mod archives;
mod groups;
mod parts;

use std::fs::{self, File, TryLockError};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::log::say;
use crate::process::{cargo, has, is_root, run, target_directory};
use crate::{packages, programs};
use archives::Programs;
use groups::ClusterGroups;

/// The first process of the cluster's namespaces.
const NODE: &str = include_str!("cluster/node.sh");
/// The time in which the node ends when it is told to.
const END_PATIENCE: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(100);
/// The variable that names the cluster's folder to the tests.
const FOLDER: &str = "EYOT_TEST_CLUSTER";

/// A cluster that runs. It ends with this.
pub struct TestCluster {
    node: Child,
    folder: PathBuf,
    parts: PathBuf,
    _groups: ClusterGroups,
    /// Held as long as the cluster runs.
    _lock: File,
}

/// The task: runs a command in the cluster's network, or leaves the cluster running until Enter.
pub fn task(arguments: &[String]) -> Result<(), String> {
    let command = match arguments {
        [] => None,
        [dashes, program, rest @ ..] if dashes == "--" => Some((program, rest)),
        _ => return Err("usage: cargo xtask cluster [-- COMMAND [ARGUMENT...]]".to_owned()),
    };
    let cluster = TestCluster::start()?;
    match command {
        Some((program, arguments)) => run(cluster.command(program.as_ref()).args(arguments)),
        None => cluster.leave(),
    }
}

impl TestCluster {
    /// Builds what is not built, and starts it.
    pub fn start() -> Result<Self, String> {
        if !is_root() {
            return Err("only root can start a cluster".to_owned());
        }
        packages::install_for_cluster()?;
        packages::install_for_database()?;
        let database =
            packages::database_programs().ok_or("there is no PostgreSQL here, and apt can't install it")?;
        let needed = ["dpkg-source", "openssl", "nsenter", "setpriv", "ip", "mmdebstrap", "busybox"];
        if let Some(missing) = needed.into_iter().find(|program| !has(program)) {
            return Err(format!("there is no {missing} here, and apt can't install it"));
        }
        let target = target_directory()?;
        let cache = target.join("cluster");
        let (folder, images) = (cache.join("node"), cache.join("images"));
        for folder in [&folder, &images] {
            fs::create_dir_all(folder).map_err(|error| format!("make {}: {error}", folder.display()))?;
        }
        let lock = take_lock(&cache)?;
        let groups = ClusterGroups::make()?;
        let parts = parts::ready(&cache)?;
        // Its build script makes the static program.
        run(cargo().args(["build", "--quiet", "-p", "eyot-guest", "--features", "embedded"]))?;
        let guest = format!("static/{}-unknown-linux-gnu/embedded/eyot-guest", std::env::consts::ARCH);
        let programs = Programs { eyot: built_eyot(&target)?, guest: target.join(guest) };
        archives::write(&cache, &images, &programs)?;
        let node = start(
            &NodeParts { folder: &folder, parts: &parts, images: &images, database: &database },
            &groups,
        )?;
        let mut cluster = Self { node, folder, parts, _groups: groups, _lock: lock };
        await_ready(&mut cluster.node, &cluster.folder)?;
        say("     The cluster is ready");
        Ok(cluster)
    }

    /// Returns a command that is run in the cluster's network, as its administrator.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("nsenter");
        command.arg(format!("--net=/proc/{}/ns/net", self.node.id())).arg(program);
        command.env("KUBECONFIG", self.folder.join("admin.kubeconfig")).env(FOLDER, &self.folder);
        let path = std::env::var_os("PATH").unwrap_or_default();
        let own = [self.parts.join("bin")].into_iter().chain(std::env::split_paths(&path));
        command.env("PATH", std::env::join_paths(own).unwrap_or(path));
        command
    }

    fn leave(self) -> Result<(), String> {
        println!(
            "A command in its network: nsenter --net=/proc/{}/ns/net env KUBECONFIG={} {} get pods\n\
             The image of sandboxes is eyot.local/sandbox:1, with the guest in it; that of servers is eyot.local/eyot:1. \
             The address of a database is in {}. Enter ends the cluster.",
            self.node.id(),
            self.folder.join("admin.kubeconfig").display(),
            self.parts.join("bin/kubectl").display(),
            self.folder.join("database").display(),
        );
        let read = std::io::stdin().read_line(&mut String::new());
        read.map(drop).map_err(|error| format!("read from the terminal: {error}"))
    }
}

impl Drop for TestCluster {
    fn drop(&mut self) {
        // The node ends when its input does, and everything in its namespaces with it.
        drop(self.node.stdin.take());
        if let Err(error) = end(&mut self.node) {
            eprintln!("xtask: end the cluster: {error}");
        }
        // Half a gigabyte. The logs stay until the next start.
        for large in ["containerd", "kubelet"] {
            let folder = self.folder.join(large);
            if let Err(error) = fs::remove_dir_all(&folder) {
                eprintln!("xtask: remove {}: {error}", folder.display());
            }
        }
    }
}

/// Returns the program `eyot` of the last build of the tests, which is made if there was none. A build of it alone would
/// have other features, and take minutes.
fn built_eyot(target: &Path) -> Result<PathBuf, String> {
    let eyot = target.join("debug/eyot");
    if eyot.is_file() { Ok(eyot) } else { programs::eyot(&programs::built()?) }
}

/// The folders that the node is given.
struct NodeParts<'a> {
    /// The node's own.
    folder: &'a Path,
    /// The programs of Kubernetes.
    parts: &'a Path,
    /// The archives of images.
    images: &'a Path,
    /// The programs of PostgreSQL.
    database: &'a Path,
}

fn start(node_parts: &NodeParts<'_>, groups: &ClusterGroups) -> Result<Child, String> {
    let NodeParts { folder, parts, images, database } = node_parts;
    // Joins its control groups before the namespaces are made, whose roots they become.
    // The lock goes to everything in them: a node that still ends is waited for.
    let join = "for group; do echo $$ >\"$group/cgroup.procs\" || exit 1; done; \
                exec flock --no-fork --timeout 30 \"$LOCK\" \
                unshare --mount --net --pid --ipc --uts --cgroup --fork --kill-child --mount-proc sh \"$SCRIPT\"";
    let (script, aside) = (folder.join("node.sh"), folder.join("node.sh.new"));
    let written = fs::write(&aside, NODE).and_then(|()| fs::rename(&aside, &script));
    written.map_err(|error| format!("write {}: {error}", script.display()))?;
    let mut node = Command::new("sh");
    node.args(["-c", join, "sh"]).args(groups.folders()).env("SCRIPT", &script);
    node.env("LOCK", folder.with_extension("lock"));
    node.env("FOLDER", folder)
        .env("PARTS", parts)
        .env("IMAGES", images)
        .env("DATABASE", database)
        .env("CONTROLLERS", groups.controllers());
    node.stdin(Stdio::piped()).stdout(Stdio::piped());
    node.spawn().map_err(|error| format!("start the node: {error}"))
}

/// Takes the lock of the folder, so that two tasks do not build or run the same.
fn take_lock(cache: &Path) -> Result<File, String> {
    let path = cache.join("task.lock");
    let lock = File::create(&path).map_err(|error| format!("make {}: {error}", path.display()))?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err("another task has a cluster here".to_owned()),
        Err(TryLockError::Error(error)) => Err(format!("lock {}: {error}", path.display())),
    }
}

/// Waits for the node to end, and kills it if it does not.
fn end(node: &mut Child) -> std::io::Result<()> {
    let given_up = Instant::now() + END_PATIENCE;
    while node.try_wait()?.is_none() {
        if Instant::now() > given_up {
            node.kill()?;
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

fn await_ready(node: &mut Child, folder: &Path) -> Result<(), String> {
    let output = node.stdout.take().ok_or("the node's output can't be read")?;
    let mut line = String::new();
    BufReader::new(output).read_line(&mut line).map_err(|error| format!("listen to the node: {error}"))?;
    if line.trim() == "ready" {
        return Ok(());
    }
    Err(format!("the node does not come up; {} has its logs", folder.join("log").display()))
}
