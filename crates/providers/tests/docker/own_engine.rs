//! An Engine that a test may kill. It has process, mount and network namespaces of its own, so it
//! shares nothing with the Engine of the other tests, and everything of it ends with the test. Only
//! root can make one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use eyot_providers::docker::{DockerOptions, DockerProvider};
use rustix::process::{Pid, Signal, kill_process};

use crate::check::{Check, ensure, until};

/// Starts an Engine inside, each time a line comes in. It has no bridge, leaves the firewall alone,
/// and keeps everything on a small disk.
const SCRIPT: &str = r#"
ip link set lo up
mount -t tmpfs -o size=96m none "$0/data"
while read -r _; do
    rm -f "$0/docker.pid" "$0/exec/containerd/containerd.pid"
    dockerd --host "unix://$0/docker.sock" --data-root "$0/data" --exec-root "$0/exec" --pidfile "$0/docker.pid" \
        --bridge=none --iptables=false --ip-forward=false --cgroup-parent "/$1" >> "$0/log" 2>&1 &
done
"#;

/// A started Engine. Dropping it ends the Engine.
pub struct OwnEngine {
    folder: tempfile::TempDir,
    /// The first process of its namespaces, as seen from outside. Everything else ends with it.
    ground: Child,
    group: String,
}

impl OwnEngine {
    /// Returns the reason why this host can't run one.
    pub fn missing() -> Option<String> {
        if !rustix::process::geteuid().is_root() {
            return Some("only root can start an Engine to kill".to_owned());
        }
        let path = std::env::var_os("PATH").unwrap_or_default();
        let has = |program: &&str| std::env::split_paths(&path).any(|folder| folder.join(program).is_file());
        let absent = ["dockerd", "containerd", "unshare", "ip"].into_iter().find(|program| !has(program));
        absent.map(|program| format!("there is no {program} for an Engine to kill"))
    }

    /// Starts an Engine that answers, with an image of the other Engine.
    pub async fn start(image: &str) -> Check<Self> {
        let folder = tempfile::Builder::new().prefix("eyot-engine-").tempdir()?;
        fs::create_dir(folder.path().join("data"))?;
        let group = folder.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut command = Command::new("unshare");
        command.args(["--net", "--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"]);
        command.args(["sh", "-c", SCRIPT]).arg(folder.path()).arg(&group);
        let ground = command.stdin(Stdio::piped()).spawn()?;
        let mut engine = Self { folder, ground, group };
        engine.begin().await?;
        let saved = Command::new("docker").args(["save", image]).stdout(Stdio::piped()).spawn()?;
        let archive = saved.stdout.ok_or("docker save has no output")?;
        let loaded = engine.docker().args(["load", "-q"]).stdin(archive).output()?;
        ensure!(loaded.status.success(), "{loaded:?}");
        Ok(engine)
    }

    /// Starts the Engine again after a kill.
    pub async fn begin(&mut self) -> Check {
        use std::io::Write;
        let ground = self.ground.stdin.as_mut().ok_or("it has no input")?;
        writeln!(ground)?;
        let started =
            until("the Engine's start", async || Ok(self.docker().arg("version").output()?.status.success()));
        let started = started.await;
        let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        ensure!(started.is_ok(), "it does not come up: {}", log.lines().last().unwrap_or_default());
        Ok(())
    }

    /// Kills the Engine itself, but nothing that it has started.
    pub fn kill(&self) -> Check {
        let inside = fs::read_to_string(self.folder.path().join("docker.pid"))?;
        let pid = self.pid_outside(inside.trim())?.ok_or("its process is not there")?;
        Ok(kill_process(Pid::from_raw(pid).ok_or("a process id")?, Signal::KILL)?)
    }

    /// Finds the process below ours that has this number in its namespace.
    fn pid_outside(&self, inside: &str) -> Check<Option<i32>> {
        let mut below = vec![i32::try_from(self.ground.id())?];
        while let Some(pid) = below.pop() {
            let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) else { continue };
            let numbers = status.lines().find_map(|line| line.strip_prefix("NSpid:")).unwrap_or_default();
            let mut numbers = numbers.split_whitespace();
            if numbers.clone().count() > 1 && numbers.next_back() == Some(inside) {
                return Ok(Some(pid));
            }
            for task in fs::read_dir(format!("/proc/{pid}/task"))?.flatten() {
                let children = fs::read_to_string(task.path().join("children")).unwrap_or_default();
                below.extend(children.split_whitespace().filter_map(|child| child.parse::<i32>().ok()));
            }
        }
        Ok(None)
    }

    /// Fills the Engine's disk. Removing the file at the returned path frees it.
    pub fn fill_disk(&self) -> Check<PathBuf> {
        let inside = fs::read_to_string(self.folder.path().join("docker.pid"))?;
        let pid = self.pid_outside(inside.trim())?.ok_or("its process is not there")?;
        let data = self.folder.path().join("data");
        let file = PathBuf::from(format!("/proc/{pid}/root{}", data.join("filled").display()));
        let written = std::io::copy(&mut std::io::repeat(1), &mut fs::File::create(&file)?);
        ensure!(
            written.is_err_and(|error| error.kind() == std::io::ErrorKind::StorageFull),
            "it is not full"
        );
        Ok(file)
    }

    /// Opens a provider over it.
    pub fn provider(&self) -> Arc<DockerProvider> {
        DockerProvider::new(DockerOptions {
            address: Some(self.address()),
            ..DockerOptions::node(self.folder.path().join("state"))
        })
    }

    /// Returns the command `docker` for this Engine.
    pub fn docker(&self) -> Command {
        let mut docker = Command::new("docker");
        docker.env("DOCKER_HOST", self.address()).stderr(Stdio::piped());
        docker
    }

    fn address(&self) -> String {
        format!("unix://{}", self.folder.path().join("docker.sock").display())
    }
}

impl Drop for OwnEngine {
    fn drop(&mut self) {
        // `unshare` passes it on to the first process of the namespace, whose end is that of all others.
        let ended = self.ground.kill().and_then(|()| self.ground.wait());
        if let Err(error) = ended {
            eprintln!("end an Engine: {error}");
        }
        for hierarchy in fs::read_dir("/sys/fs/cgroup").into_iter().flatten().flatten() {
            remove_groups(&hierarchy.path().join(&self.group));
        }
        remove_groups(&Path::new("/sys/fs/cgroup").join(&self.group));
    }
}

/// Removes a control group and those below it. Its last processes may still be ending.
fn remove_groups(group: &PathBuf) {
    for entry in fs::read_dir(group).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            remove_groups(&entry.path());
        }
    }
    for _ in 0..200 {
        match fs::remove_dir(group) {
            Err(error) if error.kind() == std::io::ErrorKind::ResourceBusy => {
                std::thread::sleep(Duration::from_millis(10));
            }
            _ => return,
        }
    }
}
